"""Providers over HTTP: what each answer means, and that no request is ever made twice."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from freehold.adapters.mail.mailgun import MailgunTransport
from freehold.adapters.mail.postmark import PostmarkTransport
from freehold.domain.sending import SendOutcome
from freehold.testing.contracts.transports import BERT, SECRET, START, mail, send
from freehold.testing.mailbox import Fault
from tests.reports.dripping import dripping
from tests.reports.http_kinds import KINDS, every_kind, running
from tests.reports.mailgun_double import MailgunDouble
from tests.reports.postmark_double import PostmarkDouble
from tests.reports.providers import resend_at

if TYPE_CHECKING:
    from freehold.ports.mail import Answer

ACCEPTED, REFUSED = SendOutcome.ACCEPTED, SendOutcome.REFUSED
TRANSIENT, UNKNOWN = SendOutcome.TRANSIENT, SendOutcome.UNKNOWN
FOUND, NOT_FOUND = SendOutcome.FOUND, SendOutcome.NOT_FOUND


def answered(kind: str, status: int, said: dict[str, Any]) -> Answer:
    """Return what one answer is read as."""
    with running(kind) as (double, transport):
        double.answer_next(status, said)
        (answer,) = send(transport, mail(1))
        assert len(double.asked) == 1  # whatever it was, nothing was repeated
        return answer


RESEND_ENDS = [
    (400, "validation_error", REFUSED, False),
    (401, "missing_api_key", REFUSED, True),
    (401, "restricted_api_key", REFUSED, True),
    (403, "invalid_api_key", REFUSED, True),
    (403, "validation_error", REFUSED, True),
    (409, "invalid_idempotent_request", UNKNOWN, False),
    (409, "concurrent_idempotent_requests", UNKNOWN, False),
    (422, "invalid_attachment", REFUSED, False),
    (422, "invalid_from_address", REFUSED, True),
    (429, "rate_limit_exceeded", TRANSIENT, True),
    (429, "daily_quota_exceeded", TRANSIENT, True),
    (429, "monthly_quota_exceeded", TRANSIENT, True),
    (451, "security_error", REFUSED, False),
    (500, "application_error", UNKNOWN, False),
    (503, "", UNKNOWN, False),
    (200, "", UNKNOWN, False),
    (302, "", REFUSED, True),
    (408, "", TRANSIENT, False),
]


@pytest.mark.parametrize(("status", "name", "outcome", "everyone"), RESEND_ENDS)
def test_what_resend_says(status: int, name: str, outcome: SendOutcome, everyone: bool) -> None:
    said = {"statusCode": status, "name": name, "message": f"because of {BERT}"}
    answer = answered("resend", status, said)
    assert (answer.outcome, answer.everyone) == (outcome, everyone)
    assert answer.code == f"{status} {name}".strip()
    assert BERT not in answer.text


POSTMARK_ENDS = [
    (401, 10, REFUSED, True),
    (422, 300, REFUSED, False),
    (422, 400, REFUSED, True),
    (422, 401, REFUSED, True),
    (422, 405, REFUSED, True),
    (422, 406, REFUSED, False),
    (422, 411, REFUSED, False),
    (422, 412, REFUSED, True),
    (422, 413, REFUSED, True),
    (413, 0, REFUSED, False),
    (429, 429, TRANSIENT, True),
    (503, 100, TRANSIENT, True),
    (500, 0, UNKNOWN, False),
    (200, 0, UNKNOWN, False),
    (403, None, REFUSED, True),
]


@pytest.mark.parametrize(("status", "code", "outcome", "everyone"), POSTMARK_ENDS)
def test_what_postmark_says(
    status: int, code: int | None, outcome: SendOutcome, everyone: bool
) -> None:
    said = {} if code is None else {"ErrorCode": code, "Message": f"because of {BERT}"}
    answer = answered("postmark", status, said)
    assert (answer.outcome, answer.everyone) == (outcome, everyone)
    assert BERT not in answer.text


MAILGUN_ENDS = [
    (400, REFUSED, False),
    (401, REFUSED, True),
    (402, REFUSED, True),
    (403, REFUSED, True),
    (404, REFUSED, True),
    (413, REFUSED, False),
    (429, TRANSIENT, True),
    (500, UNKNOWN, False),
    (502, UNKNOWN, False),
]


@pytest.mark.parametrize(("status", "outcome", "everyone"), MAILGUN_ENDS)
def test_what_mailgun_says(status: int, outcome: SendOutcome, everyone: bool) -> None:
    answer = answered("mailgun", status, {"message": f"because of {BERT}"})
    assert (answer.outcome, answer.everyone) == (outcome, everyone)
    assert BERT not in answer.text


ODD: list[Any] = [
    [],
    "x",
    None,
    7,
    {"id": 5, "MessageID": []},
    {"ErrorCode": [1], "name": {}, "message": [BERT]},
    {"Messages": [1, {"Metadata": 3}], "items": [1, {"user-variables": [], "message": 2}]},
    {"Messages": {}, "items": "x"},
    b"[" * 200_000,  # deeper than a reader goes
]


@every_kind
def test_odd_answers_raise_nothing_and_accept_nothing(kind: str) -> None:
    with running(kind) as (double, transport):
        for said in ODD:
            for status in (200, 500):
                double.answer_next(status, said)
                (answer,) = send(transport, mail(1))
                assert answer.outcome is UNKNOWN, said
                double.answer_next(status, said)
                (looked,) = transport.look_up([(mail(1), START)])
                assert looked.outcome in {NOT_FOUND, TRANSIENT}, said
                double.answer_next(status, said)
                transport.check()


@every_kind
@pytest.mark.parametrize("status", [302, 307])
def test_a_redirect_is_not_followed(kind: str, status: int) -> None:
    answer = answered(kind, status, {"message": "moved"})
    assert (answer.outcome, answer.everyone) == (REFUSED, True)


@every_kind
def test_an_error_after_accepting_is_unknown(kind: str) -> None:
    with running(kind) as (double, transport):
        double.answer_next(500, {"message": "sorry"}, accept=True)
        (answer,) = send(transport, mail(1))
        assert (answer.outcome, len(double.accepted)) == (UNKNOWN, 1)


@every_kind
@pytest.mark.parametrize(
    ("header", "wait"),
    [
        ("7", timedelta(seconds=7)),
        ("Tue, 06 May 2031 06:02:00 GMT", timedelta(minutes=2)),  # by the provider's own clock
        ("Tue, 06 May 2031 05:00:00 GMT", timedelta(0)),
        ("9999999999999999999", timedelta(days=1)),
        ("soon", None),
        ("nan", None),
        ("Tue, 06 May 2031 06:02:00 +99999999999999999999", None),
        (None, None),
    ],
)
def test_the_provider_says_how_long_to_wait(
    kind: str, header: str | None, wait: timedelta | None
) -> None:
    with running(kind) as (double, transport):
        double.retry_after = header
        double.play(Fault.TRANSIENT)
        (answer,) = send(transport, mail(1))
        assert (answer.outcome, answer.retry_after) == (TRANSIENT, wait)


@every_kind
def test_many_mails_go_over_one_connection(kind: str) -> None:
    with running(kind) as (double, transport):
        send(transport, *(mail(number) for number in range(1, 6)))
        assert (len(double.accepted), double.connection_count) == (5, 1)


@every_kind
def test_a_drip_ends_in_the_promised_time(kind: str) -> None:
    with dripping(b"HTTP/1.1 200 OK\r\nX-Slow: ", b"x") as port:
        transport = KINDS[kind][1](f"http://127.0.0.1:{port}", 0.1)
        (answer,) = send(transport, mail(1))
        transport.close()
    assert answer.outcome is UNKNOWN


# ------------------------------------------------------------------------------------------ Resend


def test_a_key_that_may_only_send_passes_the_check() -> None:
    with running("resend") as (double, transport):
        double.answer_next(401, {"name": "restricted_api_key", "message": "only send"})
        assert transport.check() is None


def test_a_request_that_is_still_at_work_is_waited_for() -> None:
    with running("resend") as (double, patient):
        impatient = resend_at(double.url, 0.2)
        double.play(Fault.SILENT)
        (first,) = send(impatient, mail(1))
        impatient.close()
        (second,) = send(patient, mail(1))
        double.running.clear()
        (third,) = send(patient, mail(1))
        assert [one.outcome for one in (first, second, third)] == [UNKNOWN, UNKNOWN, ACCEPTED]
        assert second.retry_after == timedelta(seconds=5)
        assert len(double.accepted) == 1


def test_past_its_window_a_key_is_new() -> None:
    with running("resend") as (double, transport):
        send(transport, mail(1))
        double.now += timedelta(hours=24)
        send(transport, mail(1))
        assert len(double.accepted) == 2
        assert transport.promise.window < timedelta(hours=24)


def test_a_quota_is_hours_away() -> None:
    answer = answered("resend", 429, {"name": "daily_quota_exceeded"})
    assert (answer.retry_after or timedelta(0)) >= timedelta(hours=1)


def test_one_mail_is_one_payload_in_every_process() -> None:
    program = (
        "from freehold.adapters.mail.payload import read_parts as r\n"
        "from freehold.adapters.mail.resend import payload as p\n"
        "from freehold.testing.contracts.transports import mail as m, ANNA\n"
        "print(p(r(m(1).message), ANNA).decode())"
    )
    payloads = {
        subprocess.run(
            [sys.executable, "-c", program],
            check=True,
            capture_output=True,
            env={"PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }
    (payload,) = payloads
    assert json.loads(payload)["headers"]["Message-ID"] == "<report.1.2031-05-05@hotel.example>"


# ---------------------------------------------------------------------------------------- Postmark


def test_a_search_that_ignores_its_filter_finds_nobody_elses_mail() -> None:
    with running("postmark") as (double, transport):
        send(transport, mail(1))
        double.now += transport.promise.indexing
        double.ignores_filters = True
        answers = transport.look_up([(mail(2), START), (mail(1), START)])
        assert [one.outcome for one in answers] == [NOT_FOUND, FOUND]


def test_the_longest_key_is_found_by_its_digest() -> None:
    with running("postmark") as (double, transport):
        long, other = (replace(mail(1), key=(f"k{n}" * 50)[:100]) for n in (1, 2))
        (sent,) = send(transport, long)
        double.now += transport.promise.indexing
        found, not_found = transport.look_up([(long, START), (other, START)])
        assert (found.outcome, found.reference) == (FOUND, sent.reference)
        assert not_found.outcome is NOT_FOUND


def test_mails_go_to_the_stream_that_was_named() -> None:
    with PostmarkDouble.started() as double:
        transport = PostmarkTransport(SECRET, stream="reports", url=double.url)
        send(transport, mail(1))
        transport.close()
        assert double.streams == ["reports"]
        assert {"x-pm-keepid", "message-id"} <= double.accepted[0].arrived.headers.keys()


@pytest.mark.parametrize(("kind", "days"), [("postmark", 7), ("mailgun", 3)])
def test_what_may_be_forgotten_is_not_said_to_be_missing(kind: str, days: int) -> None:
    with running(kind) as (double, transport):
        double.now += timedelta(days=days)
        old, new = transport.look_up([(mail(1), START), (mail(1), double.now)])
        assert [old.outcome, new.outcome] == [TRANSIENT, NOT_FOUND]


# ----------------------------------------------------------------------------------------- Mailgun


@pytest.mark.parametrize("keeps", [True, False])
def test_an_event_is_known_by_our_variable_or_its_message_id(keeps: bool) -> None:
    with running("mailgun") as (double, transport):
        double.keeps_message_ids = keeps
        (sent,) = send(transport, mail(1))
        double.now += transport.promise.indexing
        (answer,) = transport.look_up([(mail(1), START)])
        assert (answer.outcome, answer.reference) == (FOUND, sent.reference)


def test_more_events_than_a_page_prove_nothing() -> None:
    with running("mailgun") as (double, transport):
        double.answer_next(200, {"items": [{"event": "accepted"}] * 300})
        double.answer_next(200, {"items": [{"event": "accepted"}] * 299})
        answers = transport.look_up([(mail(1), START)] * 2)
        assert [one.outcome for one in answers] == [TRANSIENT, NOT_FOUND]


def test_a_domain_that_is_not_there_is_said_by_the_check() -> None:
    with MailgunDouble.started() as double:
        transport = MailgunTransport(SECRET, "other.example", url=double.url)
        assert "404 Domain not found" in (transport.check() or "")
        transport.close()


def test_one_recipient_stays_one() -> None:
    with running("mailgun") as (double, transport):
        two = replace(mail(1), recipient=f"anna@guests.example, {BERT}")
        assert send(transport, two)[0].outcome is REFUSED
        assert not double.asked
