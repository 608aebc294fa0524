"""Providers over HTTP: where a key may go, and where it may never stand."""

from __future__ import annotations

from base64 import b64encode

import httpx
import pytest

from freehold.adapters.mail.mailgun import MailgunTransport
from freehold.adapters.mail.postmark import PostmarkTransport
from freehold.adapters.mail.resend import ResendTransport
from freehold.domain.errors import UsageError
from freehold.domain.sending import SendOutcome
from freehold.testing.contracts.transports import BERT, SECRET, mail, send
from tests.reports.http_kinds import KINDS, every_kind, running
from tests.reports.mailgun_double import DOMAIN
from tests.reports.smtp_server import MailServer

ACCEPTED, TRANSIENT = SendOutcome.ACCEPTED, SendOutcome.TRANSIENT


@every_kind
def test_what_is_said_back_fits_into_a_row_and_has_no_key(kind: str) -> None:
    odd = "x\0\ud800" + "y" * 1000
    with running(kind) as (double, transport):
        double.answer_next(200, {"id": odd, "MessageID": odd})
        (took,) = send(transport, mail(1))
        headers = " ".join(double.asked[0].headers.values())
        said = {"name": f"{BERT} {SECRET} {odd}", "message": f"what is {headers}?"}
        double.answer_next(400, said)
        (answer,) = send(transport, mail(2))
    assert took.outcome is ACCEPTED
    assert str(took.reference).isprintable()
    assert len(str(took.reference)) <= 200
    assert answer.code.isprintable()
    assert len(answer.code) <= 100
    assert SECRET not in answer.text + answer.code
    assert BERT not in answer.code  # which logs repeat
    assert b64encode(f"api:{SECRET}".encode()).decode() not in answer.text


@every_kind
def test_no_proxy_is_taken_from_the_environment(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    with running(kind) as (double, transport):
        with pytest.raises(httpx.ConnectError):  # so it would be taken
            httpx.get(double.url)
        assert send(transport, mail(1))[0].outcome is ACCEPTED


@every_kind
def test_a_certificate_that_nobody_vouches_for_gets_nothing(kind: str) -> None:
    with MailServer.started(tls="tls") as server:  # what it speaks inside TLS does not matter
        transport = KINDS[kind][1](f"https://localhost:{server.port}", 5.0)
        (answer,) = send(transport, mail(1))
        transport.close()
    assert (answer.outcome, answer.everyone) == (TRANSIENT, True)
    assert "CERTIFICATE_VERIFY_FAILED" in answer.text


@every_kind
@pytest.mark.parametrize(
    "url", ["http://api.example", "ftp://api.example", "api.example", "https://", "https://[", ""]
)
def test_the_key_goes_nowhere_in_clear(kind: str, url: str) -> None:
    with pytest.raises(UsageError) as raised:
        KINDS[kind][1](url, 5.0)
    assert SECRET not in str(raised.value)


@pytest.mark.parametrize("key", ["", "two words", "line\n", "größe", "a\r\nX-Other: b"])
def test_what_is_no_key_is_refused_at_once(key: str) -> None:
    for open_with in (ResendTransport, PostmarkTransport, lambda it: MailgunTransport(it, DOMAIN)):
        with pytest.raises(UsageError) as raised:
            open_with(key)
        assert not key.strip() or key not in str(raised.value)


@every_kind
def test_a_host_that_cannot_be_asked_for_cannot_be_reached(kind: str) -> None:
    transport = KINDS[kind][1]("https://..", 1.0)
    assert [one.outcome for one in send(transport, mail(1))] == [TRANSIENT]
    transport.close()


@every_kind
def test_a_wrong_key_is_said_by_the_check(kind: str) -> None:
    with running(kind) as (double, transport):
        double.answer_next(401, {"message": "wrong key", "Message": "wrong key"})
        assert "401 wrong key" in (transport.check() or "")
        assert {one.method for one in double.asked} == {"GET"}
