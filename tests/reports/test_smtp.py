"""SMTP phase by phase: what surely was not taken, what may have been, and what goes in clear."""

from __future__ import annotations

import ssl
from base64 import b64encode
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from freehold.adapters.mail.smtp import SmtpTransport
from freehold.adapters.mail.smtp_conversation import reply_of
from freehold.domain.errors import UsageError
from freehold.domain.sending import SendOutcome
from freehold.testing.contracts.transports import ANNA, BERT, SECRET, mail, send
from tests.reports.dripping import dripping
from tests.reports.smtp_server import CUT, SILENCE, SLOW, MailServer, Phase

if TYPE_CHECKING:
    from collections.abc import Iterator

ACCEPTED, REFUSED = SendOutcome.ACCEPTED, SendOutcome.REFUSED
TRANSIENT, UNKNOWN = SendOutcome.TRANSIENT, SendOutcome.UNKNOWN
OPENING = [Phase.GREETING, Phase.EHLO, Phase.STARTTLS, Phase.AUTH]
BEFORE_THE_BODY = [*OPENING, Phase.MAIL, Phase.RCPT, Phase.DATA]


@pytest.fixture
def server() -> Iterator[MailServer]:
    with MailServer.started(user="freehold", password=SECRET) as server:
        yield server


@contextmanager
def connected(server: MailServer, **changes: Any) -> Iterator[SmtpTransport]:
    """Open a transport to a server; closed at the end."""
    options = {
        "user": server.user,
        "password": server.password,
        "seconds": 5.0,
        "final_seconds": 5.0,
        "tls_context": server.client_tls,
        "security": server.tls,
    }
    transport = SmtpTransport(server.host, server.port, **(options | changes))
    try:
        yield transport
    finally:
        transport.close()


@pytest.mark.parametrize("phase", [*BEFORE_THE_BODY, Phase.DOT])
@pytest.mark.parametrize(("digit", "outcome"), [(4, TRANSIENT), (5, REFUSED)])
def test_a_reply_says_whether_to_try_again(
    server: MailServer, phase: Phase, digit: int, outcome: SendOutcome
) -> None:
    server.play(phase, f"{digit}50 {digit}.2.1 not for {ANNA}")
    with connected(server) as transport:
        first, second = send(transport, mail(1), mail(2, BERT))
    assert first.outcome is outcome
    assert first.code == f"{digit}50 {digit}.2.1"
    assert first.everyone is (phase in {*OPENING, Phase.MAIL})
    assert first.text.endswith(f"with {digit}50 {digit}.2.1 not for [address]")
    assert second.outcome is ACCEPTED
    assert [one.recipient for one in server.accepted] == [BERT]


@pytest.mark.parametrize("phase", [*BEFORE_THE_BODY, Phase.DOT, Phase.ACCEPTED])
def test_a_broken_connection_is_unknown_only_after_the_body(
    server: MailServer, phase: Phase
) -> None:
    server.play(phase, CUT)
    with connected(server) as transport:
        first, second = send(transport, mail(1), mail(2, BERT))
    assert first.outcome is (UNKNOWN if phase in {Phase.DOT, Phase.ACCEPTED} else TRANSIENT)
    assert second.outcome is ACCEPTED
    count = 1 if phase is Phase.ACCEPTED else 0
    assert [one.recipient for one in server.accepted] == [ANNA] * count + [BERT]


@pytest.mark.parametrize("phase", [*BEFORE_THE_BODY, Phase.DOT, Phase.ACCEPTED])
def test_silence_is_a_broken_connection(server: MailServer, phase: Phase) -> None:
    late = phase in {Phase.DOT, Phase.ACCEPTED}
    server.play(phase, SILENCE)
    limits = {"final_seconds": 0.2} if late else {"seconds": 0.2}
    with connected(server, **limits) as transport:
        (answer,) = send(transport, mail(1))
    assert answer.outcome is (UNKNOWN if late else TRANSIENT)
    assert "did not answer in time" in answer.text


@pytest.mark.parametrize("phase", [*BEFORE_THE_BODY, Phase.DOT])
def test_421_is_for_everyone_and_ends_the_connection(server: MailServer, phase: Phase) -> None:
    server.play(phase, "421 4.3.2 closing", hang_up=True)
    with connected(server) as transport:
        first, second = send(transport, mail(1), mail(2, BERT))
    assert (first.outcome, first.everyone) == (TRANSIENT, True)
    assert second.outcome is ACCEPTED
    assert server.connection_count == 2


@pytest.mark.parametrize(
    ("phase", "outcome"), [(Phase.RCPT, TRANSIENT), (Phase.DATA, TRANSIENT), (Phase.DOT, UNKNOWN)]
)
@pytest.mark.parametrize("nonsense", ["HTTP/1.1 400 Bad Request", "354 go on", "x" * 9000])
def test_what_is_no_reply_accepts_nothing(
    server: MailServer, phase: Phase, outcome: SendOutcome, nonsense: str
) -> None:
    if (phase, nonsense[:3]) == (Phase.DATA, "354"):
        nonsense = "250 go on"  # 354 is what it waits for
    server.play(phase, nonsense)
    with connected(server) as transport:
        first, second = send(transport, mail(1), mail(2, BERT))
    assert first.outcome is outcome
    assert second.outcome is ACCEPTED
    assert [one.recipient for one in server.accepted] == [BERT]


def test_slow_answers_are_waited_for(server: MailServer) -> None:
    for phase in Phase:
        server.play(phase, SLOW)
    with connected(server) as transport:
        (answer,) = send(transport, mail(1))
    assert answer.outcome is ACCEPTED


def test_a_drip_ends_in_the_promised_time() -> None:
    with dripping(b"220", b"-") as port:
        transport = SmtpTransport("127.0.0.1", port, security="none", seconds=0.1)
        (answer,) = send(transport, mail(1))
        transport.close()
    assert answer.outcome is TRANSIENT


# -------------------------------------------------------------------------------- what is in clear


def test_a_stripped_offer_of_tls_gets_neither_password_nor_mail() -> None:
    with MailServer.started(user="freehold", password=SECRET, offers_tls=False) as server:
        with connected(server) as transport:
            (answer,) = send(transport, mail(1))
            said = transport.check()
        assert (answer.outcome, answer.everyone) == (REFUSED, True)
        assert "does not offer STARTTLS" in answer.text
        assert said == answer.text
        assert server.commands == ["EHLO", "EHLO"]


@pytest.mark.parametrize("tls", ["starttls", "tls"])
def test_a_certificate_that_nobody_vouches_for_gets_nothing(tls: str) -> None:
    with MailServer.started(user="freehold", password=SECRET, tls=tls) as server:
        stranger = ssl.create_default_context()
        with connected(server, tls_context=stranger) as transport:
            (answer,) = send(transport, mail(1))
        assert (answer.outcome, answer.everyone) == (TRANSIENT, True)
        assert "certificate is not valid" in answer.text
        assert server.commands == ([] if tls == "tls" else ["EHLO", "STARTTLS"])


def test_a_certificate_of_another_host_gets_nothing(server: MailServer) -> None:
    with connected(server) as transport:
        transport._server = replace(transport._server, host="127.0.0.1")
        assert send(transport, mail(1))[0].outcome is ACCEPTED  # the certificate names both
    with connected(server) as transport:
        transport._server = replace(transport._server, host="127.0.0.2")
        (answer,) = send(transport, mail(2))
    assert answer.outcome is TRANSIENT
    assert len(server.accepted) == 1


def test_tls_from_the_start_and_none_at_all() -> None:
    for tls, user in (("tls", "freehold"), ("none", None)):
        with MailServer.started(user=user, password=SECRET, tls=tls) as server:
            with connected(server, password=SECRET if user else None) as transport:
                assert [one.outcome for one in send(transport, mail(1))] == [ACCEPTED]
            assert ("AUTH" in server.commands) is bool(user)
            assert "STARTTLS" not in server.commands


def test_no_password_in_clear() -> None:
    SmtpTransport("localhost", 25, security="none", user="u", password=SECRET)
    with pytest.raises(UsageError, match="in clear") as raised:
        SmtpTransport("mx.hotel.example", 25, security="none", user="u", password=SECRET)
    assert SECRET not in str(raised.value)


@pytest.mark.parametrize("password", ["wrong", "größer", "two\r\nlines", ""])
def test_a_wrong_password_is_everyones(server: MailServer, password: str) -> None:
    with connected(server, password=password) as transport:
        (answer,) = send(transport, mail(1))
        assert (answer.outcome, answer.everyone) == (REFUSED, True)
        assert answer.code == "535 5.7.8"
        assert not password or password not in answer.text
        assert transport.check() == answer.text
    assert "MAIL" not in server.commands
    assert server.commands.count("AUTH") == 2  # once by each: a third could lock the account


def test_a_server_that_says_the_login_back_shows_it_to_nobody(server: MailServer) -> None:
    line = b64encode(f"\0freehold\0{SECRET}".encode()).decode()
    alone = b64encode(SECRET.encode()).decode()
    server.play(Phase.AUTH, f"535 5.7.8 no good: AUTH PLAIN {line}, {alone}, {SECRET}")
    with connected(server) as transport:
        (answer,) = send(transport, mail(1))
    assert answer.text.endswith("no good: AUTH PLAIN [secret], [secret], [secret]")


def test_a_password_outside_ascii_is_right_where_it_is_right() -> None:
    for offer in ("PLAIN", "LOGIN"):
        with MailServer.started(user="größe", password="glück €", offers=offer) as server:
            with connected(server) as transport:
                assert send(transport, mail(1))[0].outcome is ACCEPTED
            assert server.commands.count("AUTH") == 1


def test_a_server_without_a_way_to_log_in_is_everyones(server: MailServer) -> None:
    server.offers = "XOAUTH2"
    with connected(server) as transport:
        (answer,) = send(transport, mail(1))
    assert (answer.outcome, answer.everyone) == (REFUSED, True)
    assert "AUTH" not in server.commands


# ------------------------------------------------------------------------------------ connections


def test_one_connection_serves_many_mails(server: MailServer) -> None:
    server.play(Phase.RCPT, "550 5.1.1 unknown", recipient=ANNA)
    with connected(server) as transport:
        answers = send(transport, mail(1), mail(2, BERT), mail(3, BERT))
    assert [one.outcome for one in answers] == [REFUSED, ACCEPTED, ACCEPTED]
    assert [one.reference for one in answers[1:]] == ["Q00001", "Q00002"]
    assert server.connection_count == 1
    assert server.commands.count("RSET") == 1


def test_a_connection_that_died_between_mails_is_replaced(server: MailServer) -> None:
    with connected(server) as transport:
        assert send(transport, mail(1))[0].outcome is ACCEPTED
        server.cut_connections()
        assert send(transport, mail(2))[0].outcome is ACCEPTED
        server.play(Phase.MAIL, "421 4.4.2 idle too long", hang_up=True)
        assert send(transport, mail(3))[0].outcome is ACCEPTED
        server.play(Phase.MAIL, CUT, times=2)
        assert send(transport, mail(4))[0].outcome is TRANSIENT  # and no third connection
    assert [len(server.accepted), server.connection_count] == [3, 4]


def test_a_connection_that_dies_after_mail_is_not_replaced(server: MailServer) -> None:
    with connected(server) as transport:
        send(transport, mail(1))
        server.play(Phase.RCPT, CUT)
        assert send(transport, mail(2))[0].outcome is TRANSIENT
    assert server.connection_count == 1


def test_a_drop_after_the_acceptance_changes_nothing(server: MailServer) -> None:
    with connected(server) as transport:
        assert send(transport, mail(1))[0].outcome is ACCEPTED
        server.cut_connections()
    assert len(server.accepted) == 1


def test_a_failed_reset_costs_the_connection_only(server: MailServer) -> None:
    server.play(Phase.RCPT, "450 4.2.0 later")
    server.play(Phase.RSET, CUT)
    with connected(server) as transport:
        answers = send(transport, mail(1), mail(2))
    assert [one.outcome for one in answers] == [TRANSIENT, ACCEPTED]
    assert server.connection_count == 2


def test_a_check_says_noop_and_no_more(server: MailServer) -> None:
    with connected(server) as transport:
        assert transport.check() is None
        assert server.commands == ["EHLO", "STARTTLS", "EHLO", "AUTH", "NOOP"]
        server.play(Phase.NOOP, "451 4.3.0 not well")
        assert "451 4.3.0 not well" in (transport.check() or "")


# ---------------------------------------------------------------------------------- what is mailed


@pytest.mark.parametrize(
    "recipient",
    [
        "a@x.example> RCPT TO:<b@y.example",
        "a@x.example\r\nRCPT TO:<b@y.example>",
        "a,b@x.example",
        "Anna <a@x.example>",
        "a@x.example b@y.example",
        "nobody",
        "@x.example",
    ],
)
def test_what_is_no_address_is_not_sent_to(server: MailServer, recipient: str) -> None:
    with connected(server) as transport:
        (answer,) = send(transport, replace(mail(1), recipient=recipient))
    assert (answer.outcome, answer.everyone) == (REFUSED, False)
    assert server.commands == []


@pytest.mark.parametrize(
    "tail",
    [b"\n.\nMAIL FROM:<x@y.example>\r\n", b"\r.\r\r\n", b"\0\r\n", b"no end", b"\r\n.\r\n\n"],
)
def test_bytes_that_could_pass_for_commands_are_not_sent(server: MailServer, tail: bytes) -> None:
    whole = mail(1)
    with connected(server) as transport:
        (answer,) = send(transport, replace(whole, message=whole.message + tail))
    assert answer.outcome is REFUSED
    assert server.commands == []


def test_dots_arrive_as_they_were(server: MailServer) -> None:
    message = mail(1).message + b".\r\n..\r\n.x\r\n\r\n.\r\nQUIT\r\n"
    with connected(server) as transport:
        (answer,) = send(transport, replace(mail(1), message=message))
    assert answer.outcome is ACCEPTED
    assert [one.message for one in server.accepted] == [message]


def test_addresses_outside_ascii_need_a_server_that_takes_them() -> None:
    for smtputf8, outcome in ((True, ACCEPTED), (False, REFUSED)):
        with MailServer.started(tls="none", smtputf8=smtputf8) as server:
            with connected(server) as transport:
                abroad = replace(mail(1), recipient="größe@gäste.example")
                first, second = send(transport, abroad, mail(2))
            assert [first.outcome, second.outcome] == [outcome, ACCEPTED]
            assert outcome is ACCEPTED or "SMTPUTF8" in first.text
            assert server.connection_count == 1


def test_a_mail_that_is_too_large_is_refused_alone() -> None:
    with MailServer.started(tls="none", size_max=5000) as server:
        large = replace(mail(1), message=mail(1).message + b"x" * 70 + b"\r\n" * 3000)
        with connected(server) as transport:
            first, second = send(transport, large, mail(2))
        assert (first.outcome, first.everyone) == (REFUSED, False)
        assert first.code == "552"
        assert second.outcome is ACCEPTED
        assert server.lines[0].endswith(f"SIZE={len(large.message)}")


@pytest.mark.parametrize(
    ("said", "reference"),
    [
        ("2.0.0 Ok: queued as 4F2A1C3B9D", "4F2A1C3B9D"),
        ("OK id=1rXyZ0-0001Ab-2C", "1rXyZ0-0001Ab-2C"),
        ("Ok 0102018f2b3c-example-000000", "Ok 0102018f2b3c-example-000000"),
        ("2.0.0 OK  1700000000 a1-b2.3 - gsmtp", "OK 1700000000 a1-b2.3 - gsmtp"),
        ("2.6.0 <x@mx.example> Queued mail for delivery", "<[address]> Queued mail for delivery"),
    ],
)
def test_the_queue_id_is_found(said: str, reference: str) -> None:
    assert reply_of(250, said.encode()).queue_id == reference


def test_a_host_that_cannot_be_asked_for_cannot_be_reached() -> None:
    for host in ("a" * 70, ".."):
        transport = SmtpTransport(
            host, 25, security="starttls", user=None, password=None, seconds=1, final_seconds=1
        )
        assert "cannot be reached" in (transport.check() or "")


def test_a_session_that_is_not_smtp_is_no_server() -> None:
    with dripping(b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\n") as port:
        transport = SmtpTransport("127.0.0.1", port, security="none", seconds=1)
        (answer,) = send(transport, mail(1))
        transport.close()
    assert (answer.outcome, answer.everyone) == (TRANSIENT, True)
