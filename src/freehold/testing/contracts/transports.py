"""The contract of `ports.mail.Transport`, for every way to send and for any further one.

A provider is the other side: it says what it took, goes wrong when asked to, and keeps a clock of
its own. What one cannot play (`plays`) is not asked of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from email.policy import SMTP
from typing import Protocol

from freehold.domain.sending import Repeat, SendOutcome
from freehold.ports.mail import Answer, Mail, Transport
from freehold.testing.mailbox import Fault

SENDER = "reports@hotel.example"
ANNA = "anna@guests.example"
BERT = "bert@guests.example"
SECRET = "s3cret-Key_42"  # noqa: S105 -- what every ground gives its transport as key or password
START = datetime(2031, 5, 6, 6, 0, tzinfo=UTC)
TEXT = "17 holds were released.\n.\n..and a line with dots\nGrüße, 3 €\n"
HTML = "<p>17 holds were released &amp; <b>Grüße</b></p>\n"
TABLE = "unit,released\r\nroom 7,17\r\n"
SUBJECT = "Holds released on 5 May: 17 - Größe"

UNKNOWN_FAULTS = (Fault.ACCEPT_THEN_CUT, Fault.SILENT)
LOUD_FAULTS = tuple(fault for fault in Fault if fault is not Fault.SILENT)  # cost no waiting
TRANSIENT_FAULTS = (Fault.TRANSIENT, Fault.TRANSIENT_FOR_EVERYONE)
REFUSING_FAULTS = (Fault.REFUSE, Fault.REFUSE_EVERYONE)


@dataclass(frozen=True, slots=True)
class Arrived:
    """One mail as the provider has it.

    Attributes:
        message: the whole of it, byte for byte; None where the provider builds it anew.
        headers: some of its headers by lower-case names.
    """

    recipient: str
    sender: str
    subject: str
    text: str
    html: str
    attachments: tuple[tuple[str, bytes], ...]
    headers: dict[str, str]
    message: bytes | None


class Provider(Protocol):
    """The other side of a transport, with a back door that does not use the adapter."""

    def connect(self, *, impatient: bool = False) -> Transport:
        """Open one more transport; the provider closes it at the end.

        Args:
            impatient: wait for an answer for a moment only.
        """
        ...

    def connect_unreachable(self) -> Transport | None:
        """Return a transport whose provider cannot be reached; None where that cannot be."""
        ...

    def arrived(self) -> Sequence[Arrived]:
        """Read what was taken, in order; taken twice is there twice."""
        ...

    def plays(self, fault: Fault) -> bool:
        """Tell whether this can go wrong here."""
        ...

    def play(self, fault: Fault, recipient: str | None = None) -> None:
        """Let the next request go wrong, or the next of one recipient."""
        ...

    def pass_time(self, span: timedelta) -> None:
        """Put the provider's clock forward from `START`."""
        ...


class SendContract:
    """Give the fixture `provider`."""

    def test_a_mail_is_accepted_with_a_reference(self, provider: Provider) -> None:
        (answer,) = send(provider.connect(), mail(1))
        assert answer.outcome is SendOutcome.ACCEPTED
        assert answer.reference
        assert [one.recipient for one in provider.arrived()] == [ANNA]

    def test_what_arrives_is_what_was_frozen(self, provider: Provider) -> None:
        sent = mail(1)
        send(provider.connect(), sent)
        (arrived,) = provider.arrived()
        assert arrived.message in {sent.message, None}
        assert (arrived.sender, arrived.subject) == (SENDER, SUBJECT)
        assert (lines(arrived.text), lines(arrived.html)) == (lines(TEXT), lines(HTML))
        assert arrived.attachments == (("holds.csv", TABLE.encode()),)
        for name in ("Message-ID", "List-Unsubscribe", "Auto-Submitted", "X-Freehold-Report"):
            assert arrived.headers[name.lower()] == headers_of(sent)[name.lower()], name

    def test_each_mail_is_answered_before_the_next_is_asked_for(self, provider: Provider) -> None:
        log: list[str] = []

        def mails() -> Iterator[Mail]:
            for number, recipient in enumerate((ANNA, BERT, ANNA), start=1):
                log.append(f"asked {number}")
                yield mail(number, recipient)

        for number, answer in enumerate(provider.connect().send(mails()), start=1):
            assert answer.outcome is SendOutcome.ACCEPTED
            log.append(f"answered {number}")
            assert len(provider.arrived()) == number
        assert log == [f"{what} {number}" for number in (1, 2, 3) for what in ("asked", "answered")]
        assert [one.recipient for one in provider.arrived()] == [ANNA, BERT, ANNA]

    def test_no_mails_are_no_answers(self, provider: Provider) -> None:
        assert send(provider.connect()) == []

    def test_a_refusal_is_one_recipients(self, provider: Provider) -> None:
        if not provider.plays(Fault.REFUSE):
            return
        provider.play(Fault.REFUSE, ANNA)
        refused, accepted = send(provider.connect(), mail(1), mail(2, BERT))
        assert (refused.outcome, refused.everyone) == (SendOutcome.REFUSED, False)
        assert accepted.outcome is SendOutcome.ACCEPTED
        assert [one.recipient for one in provider.arrived()] == [BERT]

    def test_trouble_of_the_account_is_everyones(self, provider: Provider) -> None:
        for fault in (Fault.REFUSE_EVERYONE, Fault.TRANSIENT_FOR_EVERYONE):
            if provider.plays(fault):
                provider.play(fault)
                (answer,) = send(provider.connect(), mail(1))
                assert answer.everyone, fault
                assert answer.outcome in {SendOutcome.REFUSED, SendOutcome.TRANSIENT}
        assert not provider.arrived()

    def test_a_transient_end_took_nothing_and_may_be_tried_again(self, provider: Provider) -> None:
        transport = provider.connect()
        for fault in filter(provider.plays, TRANSIENT_FAULTS):
            provider.play(fault)
            (answer,) = send(transport, mail(1))
            assert answer.outcome is SendOutcome.TRANSIENT, fault
        assert not provider.arrived()
        (answer,) = send(transport, mail(1))
        assert answer.outcome is SendOutcome.ACCEPTED
        assert len(provider.arrived()) == 1

    def test_accepted_without_an_answer_is_unknown(self, provider: Provider) -> None:
        played = [fault for fault in UNKNOWN_FAULTS if provider.plays(fault)]
        for number, fault in enumerate(played, start=1):
            transport = provider.connect(impatient=fault is Fault.SILENT)
            provider.play(fault)
            (answer,) = send(transport, mail(number))
            assert answer.outcome is SendOutcome.UNKNOWN, fault
            assert answer.text

    def test_a_cut_is_never_an_acceptance(self, provider: Provider) -> None:
        if not provider.plays(Fault.CUT):
            return
        provider.play(Fault.CUT)
        (answer,) = send(provider.connect(), mail(1))
        assert answer.outcome in {SendOutcome.UNKNOWN, SendOutcome.TRANSIENT}
        assert not provider.arrived()

    def test_after_trouble_the_next_mail_goes(self, provider: Provider) -> None:
        transport = provider.connect()
        for fault in filter(provider.plays, LOUD_FAULTS):
            count = len([one for one in provider.arrived() if one.recipient == BERT])
            provider.play(fault, ANNA)
            _, answer = send(transport, mail(1), mail(10 + count, BERT))
            assert answer.outcome is SendOutcome.ACCEPTED, fault
            assert len([one for one in provider.arrived() if one.recipient == BERT]) == count + 1

    def test_a_missing_provider_is_transient(self, provider: Provider) -> None:
        transport = provider.connect_unreachable()
        if transport is None:
            return
        answers = send(transport, mail(1), mail(2, BERT))
        assert [one.outcome for one in answers] == [SendOutcome.TRANSIENT] * 2
        assert transport.check()
        transport.close()

    def test_texts_are_short_and_name_nobody(self, provider: Provider) -> None:
        transport = provider.connect()
        for fault in filter(provider.plays, LOUD_FAULTS):
            provider.play(fault)
            (answer,) = send(transport, mail(1))
            words = f"{answer.text} {answer.code} {answer.reference}"
            assert len(answer.text) <= 500
            for secret in (ANNA, BERT, SENDER, SECRET):
                assert secret not in words, fault

    def test_no_secret_in_a_repr(self, provider: Provider) -> None:
        transport = provider.connect()
        assert SECRET not in repr(transport)
        assert SECRET not in repr(vars(transport) if hasattr(transport, "__dict__") else "")

    def test_a_check_sends_nothing(self, provider: Provider) -> None:
        assert provider.connect().check() is None
        assert not provider.arrived()

    def test_a_second_close_does_nothing(self, provider: Provider) -> None:
        transport = provider.connect()
        send(transport, mail(1))
        transport.close()
        transport.close()


class RepeatContract:
    """Give the fixture `provider`."""

    def test_a_repeat_does_what_was_promised(self, provider: Provider) -> None:
        transport = provider.connect()
        first, again = send(transport, mail(1), mail(1))
        assert first.outcome is SendOutcome.ACCEPTED
        assert again.outcome is SendOutcome.ACCEPTED
        sends = transport.promise.repeat is Repeat.SENDS
        assert len(provider.arrived()) == (2 if sends else 1)
        if transport.promise.repeat is Repeat.REPLAYS:
            assert again.reference == first.reference

    def test_a_repeat_after_an_unknown_end_too(self, provider: Provider) -> None:
        if not provider.plays(Fault.ACCEPT_THEN_CUT):
            return
        first, other = provider.connect(), provider.connect()
        provider.play(Fault.ACCEPT_THEN_CUT)
        send(first, mail(1))
        send(other, mail(1))
        assert len(provider.arrived()) == (2 if first.promise.repeat is Repeat.SENDS else 1)

    def test_a_repeat_is_known_to_the_end_of_the_window(self, provider: Provider) -> None:
        transport = provider.connect()
        if transport.promise.repeat is Repeat.SENDS:
            assert transport.promise.window == timedelta(0)
            return
        send(transport, mail(1))
        provider.pass_time(transport.promise.window - timedelta(seconds=1))
        (again,) = send(transport, mail(1))
        assert again.outcome is SendOutcome.ACCEPTED
        assert len(provider.arrived()) == 1

    def test_another_mail_under_the_key_is_not_sent(self, provider: Provider) -> None:
        transport = provider.connect()
        if transport.promise.repeat is not Repeat.REPLAYS:
            return
        other = Mail(mail(1).key, SENDER, ANNA, mail(2).message)
        _, answer = send(transport, mail(1), other)
        assert answer.outcome in {SendOutcome.REFUSED, SendOutcome.UNKNOWN}
        assert len(provider.arrived()) == 1

    def test_what_was_not_accepted_leaves_no_trace_under_its_key(self, provider: Provider) -> None:
        transport = provider.connect()
        for fault in filter(provider.plays, (*TRANSIENT_FAULTS, *REFUSING_FAULTS)):
            provider.play(fault)
            send(transport, mail(1))
        (answer,) = send(transport, mail(1))
        assert answer.outcome is SendOutcome.ACCEPTED
        assert len(provider.arrived()) == 1


class LookUpContract:
    """Give the fixture `provider`."""

    def test_who_cannot_be_asked_says_so(self, provider: Provider) -> None:
        transport = provider.connect()
        if not transport.promise.looks_up:
            outcomes = {one.outcome for one in transport.look_up([(mail(1), START)])}
            assert SendOutcome.FOUND not in outcomes

    def test_what_was_accepted_is_found_after_indexing(self, provider: Provider) -> None:
        transport = provider.connect()
        if not transport.promise.looks_up:
            return
        sent = send(transport, mail(1), mail(2, BERT))
        provider.pass_time(transport.promise.indexing)
        asked = [(mail(2, BERT), START), (mail(3), START), (mail(1), START)]
        second, third, first = provider.connect().look_up(asked)
        assert [one.outcome for one in (first, second)] == [SendOutcome.FOUND] * 2
        assert [first.reference, second.reference] == [one.reference for one in sent]
        assert third.outcome is SendOutcome.NOT_FOUND

    def test_what_ended_unknown_is_found_too(self, provider: Provider) -> None:
        transport = provider.connect()
        if not (transport.promise.looks_up and provider.plays(Fault.ACCEPT_THEN_CUT)):
            return
        provider.play(Fault.ACCEPT_THEN_CUT)
        send(transport, mail(1))
        provider.pass_time(transport.promise.indexing)
        (answer,) = transport.look_up([(mail(1), START)])
        assert (answer.outcome, bool(answer.reference)) == (SendOutcome.FOUND, True)

    def test_before_indexing_not_found_proves_nothing(self, provider: Provider) -> None:
        transport = provider.connect()
        if not transport.promise.looks_up:
            return
        assert transport.promise.indexing > timedelta(0)
        send(transport, mail(1))
        (answer,) = transport.look_up([(mail(1), START)])
        assert answer.outcome is SendOutcome.NOT_FOUND  # and yet it was accepted
        assert len(provider.arrived()) == 1

    def test_a_missing_provider_finds_nothing_out(self, provider: Provider) -> None:
        transport = provider.connect_unreachable()
        if transport is None or not transport.promise.looks_up:
            return
        (answer,) = transport.look_up([(mail(1), START)])
        assert answer.outcome is SendOutcome.TRANSIENT

    def test_an_attempt_ends_in_the_time_that_was_promised(self, provider: Provider) -> None:
        assert 0 < provider.connect().promise.attempt_seconds_max < 3600


def mail(number: int, recipient: str = ANNA) -> Mail:
    """Freeze a mail, the same for the same number in every process."""
    message = EmailMessage(policy=SMTP)
    message["From"] = f"Hotel Größe <{SENDER}>"
    message["To"] = recipient
    message["Subject"] = SUBJECT
    message["Date"] = "Tue, 06 May 2031 06:00:00 +0000"
    message["Message-ID"] = f"<report.{number}.2031-05-05@hotel.example>"
    message["Reply-To"] = f"Desk <desk{number}@hotel.example>"
    message["List-Unsubscribe"] = f"<https://hotel.example/unsubscribe/{number}>"
    message["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
    message["Auto-Submitted"] = "auto-generated"
    message["X-Freehold-Report"] = f"hotel/2031-05-05/{number}"
    message.set_content(TEXT)
    message.add_alternative(HTML, subtype="html")
    message.add_attachment(TABLE.encode(), maintype="text", subtype="csv", filename="holds.csv")
    for depth, part in enumerate(part for part in message.walk() if part.is_multipart()):
        part.set_boundary(f"=_{depth}_{number}")  # or it is drawn anew in each process
    return Mail(f"report.{number}.2031-05-05", SENDER, recipient, message.as_bytes())


def send(transport: Transport, *mails: Mail) -> list[Answer]:
    """Send mails and return the answers."""
    return list(transport.send(mails))


def lines(text: str) -> list[str]:
    """Return lines without their ends, which providers spell as they like."""
    return text.strip().splitlines()


def headers_of(sent: Mail) -> dict[str, str]:
    """Read the headers of a frozen mail by lower-case names."""
    head = sent.message.partition(b"\r\n\r\n")[0].decode()
    pairs = (line.partition(": ") for line in head.replace("\r\n ", " ").split("\r\n"))
    return {name.lower(): value for name, _, value in pairs}
