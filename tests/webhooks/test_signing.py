"""Signatures as Standard Webhooks want them, checked by the customer's library and by hand."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta

import pytest
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from freehold.adapters.system import SystemClock
from freehold.adapters.webhook import WebhookTarget
from freehold.adapters.webhook.signing import Signer, webhook_id
from freehold.domain.errors import UsageError
from tests.webhooks.receiver import SECRET, Receiver, answering, parcel

Connect = Callable[..., WebhookTarget]
OTHER = "whsec_" + base64.b64encode(bytes(range(32))).decode()
# Source: the worked example of Standard Webhooks, in the tests of its libraries (`test_sign_function`).
VECTOR = {
    "id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
    "at": datetime.fromtimestamp(1614265330, UTC),
    "body": '{"test": 2432232314}',
    "signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
}


class StillClock(SystemClock):
    """A host's clock whose wall stands still."""

    def __init__(self, at: datetime) -> None:
        self._at = at

    def wall(self) -> datetime:
        return self._at


def by_hand(secret: str, headers: Mapping[str, str], body: bytes) -> str:
    """Compute the signature from the standard's text, with nothing but HMAC."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()


def now() -> datetime:
    return datetime.now(UTC)


def test_the_official_vector_by_hand_and_by_the_signer(monkeypatch: pytest.MonkeyPatch) -> None:
    headers = {
        "webhook-id": str(VECTOR["id"]),
        "webhook-timestamp": "1614265330",
    }
    body = str(VECTOR["body"]).encode()
    assert by_hand(SECRET, headers, body) == VECTOR["signature"]
    monkeypatch.setattr("freehold.adapters.webhook.signing.webhook_id", lambda _: VECTOR["id"])
    signed = Signer([SECRET]).headers("any", body, datetime.fromtimestamp(1614265330.9, UTC))
    assert signed == {**headers, "webhook-signature": VECTOR["signature"]}


def test_the_customers_library_accepts_what_arrives(connect: Connect, receiver: Receiver) -> None:
    connect().deliver([parcel()])
    (got,) = receiver.got
    assert Webhook(SECRET).verify(got.body, got.headers)["id"] == parcel().event_key
    assert got.headers["webhook-signature"] == by_hand(SECRET, got.headers, got.body)


@pytest.mark.parametrize("changed", ["body", "id", "timestamp", "signature"])
def test_whatever_is_altered_is_refused(changed: str) -> None:
    body = parcel().body
    headers = dict(Signer([SECRET]).headers(parcel().event_key, body, now()))
    Webhook(SECRET).verify(body, headers)
    if changed == "body":
        body = body.replace(b"Zimmer 7", b"Zimmer 8")
    elif changed == "timestamp":
        headers["webhook-timestamp"] = str(int(headers["webhook-timestamp"]) + 1)
    elif changed == "id":
        headers["webhook-id"] += "0"
    else:
        headers["webhook-signature"] = by_hand(OTHER, headers, body)
    with pytest.raises(WebhookVerificationError, match="No matching signature"):
        Webhook(SECRET).verify(body, headers)


@pytest.mark.parametrize("minutes", [-6, 6])
def test_an_old_or_early_stamp_is_refused(minutes: int) -> None:
    at = now() + timedelta(minutes=minutes)
    headers = dict(Signer([SECRET]).headers("k", b"{}", at))
    with pytest.raises(WebhookVerificationError, match=r"too (old|new)"):
        Webhook(SECRET).verify(b"{}", headers)


def test_both_secrets_verify_while_they_change(connect: Connect, receiver: Receiver) -> None:
    connect(secret=OTHER, old_secret=SECRET).deliver([parcel()])
    (got,) = receiver.got
    for secret in (OTHER, SECRET):
        Webhook(secret).verify(got.body, got.headers)
    assert got.headers["webhook-signature"].split(" ") == [
        by_hand(secret, got.headers, got.body) for secret in (OTHER, SECRET)
    ]
    third = "whsec_" + base64.b64encode(bytes(24)).decode()
    with pytest.raises(WebhookVerificationError):
        Webhook(third).verify(got.body, got.headers)


@pytest.mark.parametrize("old_secret", [None, ""])
def test_after_the_change_the_old_secret_verifies_nothing(
    connect: Connect, receiver: Receiver, old_secret: str | None
) -> None:
    connect(secret=OTHER, old_secret=old_secret).deliver([parcel()])
    (got,) = receiver.got
    with pytest.raises(WebhookVerificationError):
        Webhook(SECRET).verify(got.body, got.headers)


def test_a_repeat_has_the_same_id_and_a_new_stamp(connect: Connect, receiver: Receiver) -> None:
    receiver.play = answering(500)
    first_at = datetime(2026, 3, 29, 1, 59, 59, 999_999, tzinfo=UTC)
    for at in (first_at, first_at + timedelta(seconds=5)):
        connect(clock=StillClock(at)).deliver([parcel()])
    one, two = receiver.got
    assert one.headers["webhook-id"] == two.headers["webhook-id"]
    assert one.body == two.body
    assert int(one.headers["webhook-timestamp"]) == int(first_at.timestamp())
    assert int(two.headers["webhook-timestamp"]) == int(first_at.timestamp()) + 5
    assert one.headers["webhook-signature"] != two.headers["webhook-signature"]


def test_ids_have_no_dot_and_differ() -> None:
    keys = [f"rule:{n}:1:hold.expired.v1" for n in range(1_000)] + ["a.b:c", "a:b.c", "a.b.c", "ü"]
    ids = {webhook_id(key) for key in keys}
    assert len(ids) == len(keys)
    assert all(one.startswith("msg_") and one.isascii() and "." not in one for one in ids)
    # Written down: a consumer remembers ids for months, whatever version made them.
    assert webhook_id("cart:d:1:hold.expired.v1") == "msg_91d70bc786a4948fe90678d13771bc05"


@pytest.mark.parametrize("length_bytes", [24, 32, 64])
def test_a_secret_of_any_allowed_length(length_bytes: int) -> None:
    secret = "whsec_" + base64.b64encode(b"\xfb" * length_bytes).decode()
    headers = dict(Signer([secret]).headers("k", b"{}", now()))
    Webhook(secret).verify(b"{}", headers)


@pytest.mark.parametrize(
    "secret",
    [
        "",
        "whsec_",
        SECRET.removeprefix("whsec_"),
        "WHSEC_" + SECRET.removeprefix("whsec_"),
        "whsec_" + base64.b64encode(bytes(23)).decode(),
        "whsec_" + base64.b64encode(bytes(65)).decode(),
        "whsec_" + base64.urlsafe_b64encode(b"\xfb" * 32).decode(),
        "whsec_" + base64.b64encode(bytes(32)).decode().rstrip("="),
        SECRET + "\n",
        SECRET + " ",
        SECRET[:-4] + "ü",
        "whsk_" + SECRET.removeprefix("whsec_"),
    ],
)
@pytest.mark.parametrize("is_old", [False, True])
def test_what_is_no_secret_is_refused_and_not_shown(secret: str, is_old: bool) -> None:
    with pytest.raises(UsageError, match="openssl rand") as refused:
        Signer([SECRET, secret] if is_old else [secret])
    assert len(secret) < 12 or secret[6:16] not in str(refused.value)
