"""Frozen reports that are due become mails, once, or end with a reason that a person can read."""

from __future__ import annotations

import hashlib
import zlib
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from email import message_from_bytes
from email.policy import SMTP
from typing import TYPE_CHECKING, Any

import pytest

from freehold.adapters.rendering import MimeRenderer
from freehold.application.reporting.mailing import SMALL_PAGE, Mailer
from freehold.domain.facts import Facts
from freehold.domain.facts_text import canonical, facts_digest
from freehold.domain.inventory import Tenant
from freehold.domain.unsubscribing import token
from freehold.ports.summary import SummaryWanted, Told
from freehold.ports.system import Boundary
from freehold.ports.telemetry import Event, MailsFrozen, MailUnwritable
from freehold.testing.contracts.ground import NOW, only
from tests.contract.grounds import SqlGround
from tests.reports.sample import BUSY, CALM, POLICY

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from freehold.domain.reports import ReportPolicy
    from freehold.ports.rendering import Rendered

TO, OTHER = "desk@harbour.example", "boss@harbour.example"
REPORT = """
insert into {s}report (tenant, report_date, start_at, end_at, zone, tz_version, watermark_at, due_at,
    state, expired_count, facts, facts_digest, assigned_at, frozen_at)
values (:tenant, :date, :start, :end, :zone, '1', :end, :due, 'frozen', 0, :facts, :digest, :end, :end)
"""


def _pass(_: Boundary) -> None:
    """Reach a boundary, and go on."""


@dataclass
class Stage:
    """One database with a mailer on it."""

    ground: SqlGround
    told: list[Event] = field(default_factory=list)
    reached: Callable[[Boundary], None] = _pass
    drawn: Callable[[], None] = lambda: None

    def tell(self, event: Event) -> None:
        self.told.append(event)

    def reach(self, boundary: Boundary) -> None:
        self.reached(boundary)

    def render(self, facts: Facts, locale: str, summary: str | None = None) -> Rendered:
        self.drawn()
        return MimeRenderer(self.policy).render(facts, locale, summary)

    def heads(self, *given: Any) -> Sequence[tuple[str, str]]:
        return MimeRenderer(self.policy).heads(*given)

    policy: ReportPolicy = POLICY

    def mailer(self) -> Mailer:
        return Mailer(self.ground.open(), self, self.policy, self, self)

    def add_tenant(self, name: str, *recipients: str, **fields: Any) -> None:
        tenant = Tenant(name, name, recipients=recipients, **fields)
        with self.ground.open().transaction() as tx:
            tx.tenants.add([tenant])

    def add_report(self, tenant: str, facts: Facts = BUSY, day: date | None = None) -> None:
        facts = replace(facts, tenant=tenant, report_date=day or facts.report_date)
        body, door = canonical(facts), self.ground.back.door
        shift = facts.report_date - BUSY.report_date
        door.execute(
            REPORT,
            tenant=tenant,
            date=f"{facts.report_date}",
            start=door.ledger(facts.start_at + shift),
            end=door.ledger(facts.end_at + shift),
            due=door.ledger(facts.end_at + shift + timedelta(hours=7)),
            zone=facts.zone,
            facts=body.decode(),
            digest=facts_digest(body),
        )

    def report(self, tenant: str) -> tuple[str, str | None]:
        rows = [row for row in self.rows("report") if row["tenant"] == tenant]
        return only(rows)["state"], only(rows)["reason"]

    def rows(self, table: str) -> Sequence[Mapping[str, Any]]:
        return self.ground.back.rows(table)

    def sends(self) -> list[tuple[str, str]]:
        return [(row["recipient"], row["state"]) for row in self.rows("send")]

    def mail(self) -> bytes:
        """Return the only mail, read behind the adapter's back."""
        head: str = only(self.rows("send"))["head"]
        return head.encode() + zlib.decompress(bytes(only(self.rows("mail"))["body"]))


@pytest.fixture
def stage(ground: SqlGround) -> Stage:
    return Stage(ground)


def test_a_report_that_is_due_becomes_one_mail_for_each_recipient(stage: Stage) -> None:
    stage.add_tenant("t", TO, OTHER, locale="de")
    stage.add_report("t")
    assert stage.mailer().prepare(10) == 1
    assert stage.report("t") == ("sending", None)
    assert stage.sends() == [(TO, "ready"), (OTHER, "ready")]
    body = zlib.decompress(bytes(only(stage.rows("mail"))["body"]))
    for send in stage.rows("send"):
        whole = send["head"].encode() + body
        assert send["mail_digest"] == hashlib.sha256(whole).hexdigest()
        assert message_from_bytes(whole, policy=SMTP)["To"] == send["recipient"]
    assert only(stage.rows("mail"))["locale"] == "de"
    assert stage.told == [MailsFrozen(1)]
    assert stage.mailer().prepare(10) == 0
    assert len(stage.rows("send")) == 2


def test_a_report_that_is_not_due_waits(stage: Stage) -> None:
    stage.add_tenant("t", TO)
    stage.add_report("t")
    stage.ground.set_now(BUSY.end_at + timedelta(hours=6))
    assert stage.mailer().prepare(10) == 0
    assert stage.told == []
    assert stage.mailer().prepare_one("t", BUSY.report_date)
    assert not stage.mailer().prepare_one("t", BUSY.report_date)
    assert not stage.mailer().prepare_one("t", date(2020, 1, 1))
    assert stage.sends() == [(TO, "ready")]


def test_a_due_time_between_two_hourly_passes_is_kept(stage: Stage) -> None:
    """Of a due time that no pass meets, the next pass makes the mail (apache/superset#12419)."""
    stage.add_tenant("t", TO)
    stage.add_report("t")
    due_at = BUSY.end_at + timedelta(hours=7)
    prepared = []
    for minutes in (-50, 10, 70):
        stage.ground.set_now(due_at + timedelta(minutes=minutes))
        prepared.append(stage.mailer().prepare(10))
    assert prepared == [0, 1, 0]
    assert stage.sends() == [(TO, "ready")]


def test_a_mail_is_dated_when_it_was_due_or_caught_up_with(stage: Stage) -> None:
    stage.add_tenant("t", TO)
    stage.add_report("t")
    stage.mailer().prepare(1)
    due_at = BUSY.end_at + timedelta(hours=7)
    assert message_from_bytes(stage.mail(), policy=SMTP)["Date"].datetime == due_at


def test_a_day_that_is_caught_up_with_is_a_mail_of_today(stage: Stage) -> None:
    stage.add_tenant("t", TO)
    stage.add_report("t", replace(BUSY, frozen_at=NOW))
    stage.mailer().prepare(1)
    assert message_from_bytes(stage.mail(), policy=SMTP)["Date"].datetime == NOW


def test_a_report_that_nobody_gets_ends_with_its_reason(stage: Stage) -> None:
    stage.policy = replace(POLICY, empty="skip")
    stage.add_tenant("asleep", TO, active=False)
    stage.add_tenant("alone")
    stage.add_tenant("tired", TO)
    stage.add_tenant("idle", TO)
    with stage.ground.open().transaction() as tx:
        tx.unsubscribed.add("tired", TO, "me", "asked")
    for tenant in ("asleep", "alone", "tired", "stranger", ""):
        stage.add_report(tenant)
    stage.add_report("idle", CALM)
    assert stage.mailer().prepare(10) == 6
    assert stage.report("asleep") == ("skipped", "the tenant is not active")
    assert stage.report("alone") == ("not sent", "no recipient")
    assert stage.report("stranger") == ("not sent", "no recipient")
    assert stage.report("") == ("not sent", "no recipient")
    assert stage.report("tired") == ("not sent", "every recipient has unsubscribed")
    assert stage.report("idle") == ("skipped", "nothing happened")
    assert stage.rows("mail") == []
    told = [event for event in stage.told if isinstance(event, MailsFrozen)]
    assert sum(sum(event.ended.values()) for event in told) == 6


def test_a_calm_day_is_sent_where_it_is_wanted(stage: Stage) -> None:
    stage.add_tenant("t", TO)
    stage.add_report("t", CALM)
    assert stage.mailer().prepare(10) == 1
    assert b"A quiet day" in stage.mail()


def test_one_who_unsubscribed_is_named_beside_those_who_did_not(stage: Stage) -> None:
    stage.add_tenant("t", TO, OTHER)
    stage.add_report("t")
    with stage.ground.open().transaction() as tx:
        tx.unsubscribed.add("t", TO, "me", "asked")
    stage.mailer().prepare(10)
    assert stage.sends() == [(TO, "unsubscribed"), (OTHER, "ready")]


def test_an_address_that_can_stand_in_no_header_is_refused_and_named(stage: Stage) -> None:
    stage.add_tenant("t", TO)
    stage.add_tenant("u", TO)
    door = stage.ground.back.door
    for tenant, stored in (("t", f'["no address", "{TO}"]'), ("u", '["x\\r\\nBcc: y@z.example"]')):
        kind = "::jsonb" if door.dialect == "postgres" else ""
        sql = f"update {{s}}tenant set recipients = :stored{kind} where id = :tenant"
        assert door.execute(sql, stored=stored, tenant=tenant) == 1
        stage.add_report(tenant)
    assert stage.mailer().prepare(10) == 2
    refused = [row for row in stage.rows("send") if row["state"] == "refused"]
    assert len(refused) == 2
    assert all("no plain mail address" in row["reason"] for row in refused)
    assert (TO, "ready") in stage.sends()
    assert stage.report("t") == ("sending", None)
    assert stage.report("u") == ("not sent", "no recipient's mail was accepted")


def test_an_address_that_stands_there_twice_gets_one_mail(stage: Stage) -> None:
    stage.add_tenant("t", TO, "desk@HARBOUR.example", TO)
    stage.add_report("t")
    stage.mailer().prepare(10)
    assert stage.sends() == [(TO, "ready")]


def test_a_report_that_cannot_be_written_stops_none_of_the_others(stage: Stage) -> None:
    for tenant in ("a", "b", "c"):
        stage.add_tenant(tenant, TO)
        stage.add_report(tenant, replace(BUSY, zone="No/Where") if tenant == "b" else BUSY)
    assert stage.mailer().prepare(10) == 3
    assert [stage.report(one)[0] for one in ("a", "b", "c")] == ["sending", "not sent", "sending"]
    assert str(stage.report("b")[1]).startswith("its mail could not be made")
    assert [event.error for event in stage.told if isinstance(event, MailUnwritable)] == [
        "ValueError"
    ]


def test_a_link_is_known_before_its_mail_leaves(stage: Stage) -> None:
    stage.policy = replace(POLICY, unsubscribe="https://harbour.example/{token}")
    stage.add_tenant("t", TO)
    stage.add_report("t")
    stage.mailer().prepare(10)
    name = token("t", TO)
    assert name in only(stage.rows("send"))["head"]
    with stage.ground.open().transaction() as tx:
        link = tx.unsubscribed.find_link(name)
    assert link is not None
    assert (link.tenant, link.recipient) == ("t", TO)


def test_an_accepted_summary_is_in_the_mail(stage: Stage) -> None:
    stage.add_tenant("t", TO)
    stage.add_report("t")
    told = Told("A busy day.")
    with stage.ground.open().transaction() as tx:
        report = tx.reports.read("t", BUSY.report_date)
        assert report is not None
        wanted = SummaryWanted(
            report_id=report.id,
            tenant="t",
            facts=report.facts,
            facts_digest=report.facts_digest,
            locale="en",
            due_at=report.due_at,
            attempt_count=0,
        )
        attempt = tx.summaries.begin(wanted, "1", "host", "model", 100)
        assert attempt is not None
        assert tx.summaries.end(attempt, told, None, None, None)
    stage.mailer().prepare(10)
    assert only(stage.rows("mail"))["summary_id"] == attempt.id
    assert b"A busy day." in stage.mail()


def test_a_crash_before_the_commit_leaves_the_report_to_the_next_pass(stage: Stage) -> None:
    def die(boundary: Boundary) -> None:
        assert boundary is Boundary.MAILS_FROZEN
        raise KeyboardInterrupt

    stage.add_tenant("t", TO)
    stage.add_report("t")
    stage.reached = die
    with pytest.raises(KeyboardInterrupt):
        stage.mailer().prepare(10)
    assert (stage.rows("mail"), stage.told) == ([], [])
    stage.reached = _pass
    assert stage.mailer().prepare(10) == 1


def test_a_pass_is_bounded_and_the_next_goes_on(stage: Stage) -> None:
    stage.add_tenant("t", TO)
    count = 2 * SMALL_PAGE + 1
    for number in range(count):
        stage.add_report("t", CALM, BUSY.report_date + timedelta(days=number))
    mailer = stage.mailer()
    assert mailer.prepare(SMALL_PAGE + 1) == SMALL_PAGE + 1
    assert len(stage.rows("mail")) == SMALL_PAGE + 1
    assert mailer.prepare(100) == SMALL_PAGE
    assert len({row["message_key"] for row in stage.rows("send")}) == count


def test_recipients_are_those_of_the_transaction_that_writes(stage: Stage) -> None:
    """Where one writer keeps all others waiting, mails are made while nobody waits."""
    stage.add_tenant("t", TO)
    stage.add_report("t")
    ledger = stage.ground.open()

    def change() -> None:
        stage.drawn = lambda: None
        door = stage.ground.back.door
        kind = "::jsonb" if door.dialect == "postgres" else ""
        door.execute(f"update {{s}}tenant set recipients = :stored{kind}", stored=f'["{OTHER}"]')

    stage.drawn = change
    assert stage.mailer().prepare(10) == 1
    assert stage.sends() == [(OTHER if ledger.one_writer else TO, "ready")]
