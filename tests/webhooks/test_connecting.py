"""Where deliveries may go, judged at the address that is connected to."""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address, ip_address, ip_network
from typing import Any

import httpcore
import pytest

from freehold.adapters.system import SystemClock
from freehold.adapters.webhook import WebhookTarget, connecting
from freehold.adapters.webhook.connecting import look_up
from freehold.domain.errors import TargetAway, UsageError
from freehold.domain.public_addresses import is_public
from freehold.ports.target import Answer, Reception
from tests.webhooks.receiver import (
    LOOPBACK,
    NAME,
    PATIENCE_SECONDS,
    SECRET,
    Certificates,
    Receiver,
    parcel,
    target_for,
)

Connect = Callable[..., WebhookTarget]
FORBIDDEN = Answer(Reception.REFUSED, "address", f"{NAME} is not on the public internet")


def finding(*texts: str) -> Callable[[str, int], Any]:
    return lambda *_: tuple(ip_address(text) for text in texts)


@pytest.fixture
def connected(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every address that is connected to."""
    found: list[str] = []
    plain = httpcore.AnyIOBackend.connect_tcp

    async def noting(self: Any, host: str, *rest: Any, **named: Any) -> Any:
        found.append(host)
        return await plain(self, host, *rest, **named)

    monkeypatch.setattr("httpcore.AnyIOBackend.connect_tcp", noting)
    return found


@pytest.mark.parametrize(
    "texts",
    [
        ("127.0.0.2",),
        ("10.0.0.1",),
        ("169.254.169.254",),
        ("100.64.0.1",),
        ("::1",),
        ("fd00:ec2::254",),
        ("::ffff:10.0.0.1",),
        ("64:ff9b::a00:1",),
        ("2002:a00:1::1",),
        ("0.0.0.0",),  # noqa: S104 -- to be refused
        ("8.8.8.8", "10.0.0.1"),
        ("127.0.0.1", "127.0.0.2"),
        ("127.0.0.1", "::1"),
    ],
)
def test_one_address_inside_keeps_all_away(
    connect: Connect, connected: list[str], texts: tuple[str, ...]
) -> None:
    """The loopback of the receiver is allowed; nothing else is."""
    (answer,) = connect(look_up=finding(*texts)).deliver([parcel()])
    assert answer == FORBIDDEN
    assert not connected


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "10.0.0.1",
        "169.254.169.254",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[fd00:ec2::254]",
    ],
)
def test_a_literal_address_inside_is_refused(
    connect: Connect, receiver: Receiver, connected: list[str], host: str
) -> None:
    target = connect(url=receiver.url(host=host), allow=(), look_up=finding())
    (answer,) = target.deliver([parcel()])
    assert (answer.reception, answer.code) == (Reception.REFUSED, "address")
    assert not connected


def test_a_name_that_points_inside_is_judged_by_the_systems_answer(
    connect: Connect, receiver: Receiver, connected: list[str]
) -> None:
    """As `10.0.0.1.nip.io` does: the name is fine, the address is not."""
    target = connect(url=receiver.url(host="localhost"), allow=(), look_up=look_up)
    (answer,) = target.deliver([parcel()])
    assert answer.reason == "localhost is not on the public internet"
    assert not connected


def test_the_systems_look_up_reaches_what_is_allowed(certificates: Certificates) -> None:
    allow = (*LOOPBACK, ip_network("::1/128"))
    with Receiver(certificates.context("localhost")).serving() as receiver:
        target = target_for(
            receiver, certificates, url=receiver.url(host="localhost"), allow=allow, look_up=look_up
        )
        (answer,) = target.deliver([parcel()])
        target.close()
    assert answer.reception is Reception.ACCEPTED


def test_a_name_server_that_changes_its_mind_is_asked_once(
    connect: Connect, receiver: Receiver, connected: list[str]
) -> None:
    asked: list[str] = []

    def rebinding(host: str, port: int) -> Any:
        asked.append(host)
        return finding("127.0.0.1" if len(asked) == 1 else "127.0.0.2")(host, port)

    target = connect(look_up=rebinding, allow=LOOPBACK)
    (answer,) = target.deliver([parcel()])
    assert answer.reception is Reception.ACCEPTED
    assert (asked, connected) == ([NAME], ["127.0.0.1"])
    assert receiver.got[0].headers["host"].startswith(NAME)
    target.close()
    (answer,) = target.deliver([parcel()])  # a new connection is a new look
    assert answer == FORBIDDEN
    assert connected == ["127.0.0.1"]


def test_the_next_address_is_tried(connect: Connect, receiver: Receiver) -> None:
    allow = (ip_network("127.0.0.0/8"),)
    target = connect(look_up=finding("127.0.0.9", "127.0.0.1"), allow=allow)
    (answer,) = target.deliver([parcel()])
    assert answer.reception is Reception.ACCEPTED


def test_not_every_address_of_many_is_tried(
    connect: Connect, connected: list[str], unused_port: int
) -> None:
    target = connect(
        url=f"https://{NAME}:{unused_port}/",
        ports=(unused_port,),
        look_up=finding(*(f"127.0.0.{n}" for n in range(1, 250))),
        allow=(ip_network("127.0.0.0/8"),),
    )
    with pytest.raises(TargetAway):
        target.deliver([parcel()])
    assert len(connected) == connecting.ADDRESSES_MOST


@pytest.mark.parametrize("error", [OSError("no such name"), UnicodeError("odd"), None])
def test_a_name_without_an_address_is_away(connect: Connect, error: Exception | None) -> None:
    def failing(*_: object) -> Any:
        if error is not None:
            raise error
        return ()

    with pytest.raises(TargetAway, match=f"{NAME} cannot be looked up"):
        connect(look_up=failing).deliver([parcel(1), parcel(2)])


def test_a_slow_name_server_has_no_more_time_and_one_thread(
    connect: Connect, receiver: Receiver
) -> None:
    asked: list[str] = []

    def hanging(host: str, port: int) -> Any:
        asked.append(host)
        receiver.hang()
        return finding("127.0.0.1")(host, port)

    target = connect(look_up=hanging, seconds=PATIENCE_SECONDS)
    before_count = threading.active_count()
    for _ in range(2):
        begun_at = time.monotonic()
        with pytest.raises(TargetAway, match="cannot be reached in time"):
            target.deliver([parcel(n) for n in range(8)])
        assert time.monotonic() - begun_at < target.seconds_most
    assert asked == [NAME]
    assert threading.active_count() <= before_count + 1
    target.close()
    with pytest.raises(TargetAway, match="cannot be reached in time"):
        target.deliver([parcel()])  # what was asked before is left behind
    assert asked == [NAME, NAME]


@pytest.mark.parametrize("name", ["HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY"])
def test_no_proxy_of_the_environment_is_used(
    connect: Connect, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    for spelt in (name, name.lower()):
        monkeypatch.setenv(spelt, "http://127.0.0.1:1")
    for spelt in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(spelt, raising=False)
    (answer,) = connect().deliver([parcel()])
    assert answer.reception is Reception.ACCEPTED


def _certificates_that_are_wrong(
    certificates: Certificates, folder: Any
) -> Iterator[tuple[str, ssl.SSLContext]]:
    yesterday = datetime.now(UTC) - timedelta(days=1)
    yield "another name", certificates.context("other.customer.example")
    yield "expired", certificates.context(NAME, not_after=yesterday)
    yield "another authority", Certificates(folder).context(NAME)


def test_a_wrong_certificate_gets_nothing(certificates: Certificates, tmp_path: Any) -> None:
    for what, context in _certificates_that_are_wrong(certificates, tmp_path):
        with Receiver(context).serving() as receiver:
            target = target_for(receiver, certificates)
            with pytest.raises(TargetAway, match="certificate"):
                target.deliver([parcel()])
            target.close()
            assert not receiver.got, what


def test_the_systems_authorities_are_trusted_unless_others_are_named(connect: Connect) -> None:
    with pytest.raises(TargetAway, match="certificate"):
        connect(ca_file=None).deliver([parcel()])


def test_what_does_not_speak_tls_gets_nothing(certificates: Certificates) -> None:
    with Receiver(None).serving() as receiver:
        url = receiver.url().replace("http://", "https://")
        target = target_for(receiver, certificates, url=url, seconds=1.0)
        with pytest.raises(TargetAway):
            target.deliver([parcel()])
        target.close()
        assert not receiver.got


def test_http_reaches_what_is_allowed(certificates: Certificates) -> None:
    with Receiver(None).serving() as receiver:
        target = target_for(receiver, certificates, insecure=True)
        (answer,) = target.deliver([parcel()])
        target.close()
    assert answer.reception is Reception.ACCEPTED


def test_http_reaches_nothing_else_however_public(
    certificates: Certificates, connected: list[str]
) -> None:
    assert is_public(IPv4Address("8.8.8.8"))
    with Receiver(None).serving() as receiver:
        target = target_for(receiver, certificates, insecure=True, look_up=finding("8.8.8.8"))
        (answer,) = target.deliver([parcel()])
        target.close()
    assert (answer.reception, answer.code) == (Reception.REFUSED, "address")
    assert "is not in `allow`" in answer.reason
    assert not connected


@pytest.mark.parametrize("url", ["http://a.example/", "https://u:p@a.example/", "https://127.1/"])
def test_a_url_that_is_none_is_refused_at_the_start(url: str) -> None:
    with pytest.raises(UsageError, match="The URL of a webhook") as refused:
        WebhookTarget(url, SECRET, SystemClock(), ports=(443,))
    assert "u:p" not in str(refused.value)


def test_a_file_of_certificates_that_is_none_is_refused_at_the_start(tmp_path: Any) -> None:
    empty = tmp_path / "empty.pem"
    empty.write_text("")
    for file in (empty, tmp_path / "missing.pem"):
        with pytest.raises(UsageError, match="cannot be read"):
            WebhookTarget(
                "https://a.example/", SECRET, SystemClock(), ports=(443,), ca_file=str(file)
            )
