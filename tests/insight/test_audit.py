"""Every check of the audit passes on a worked database, and fails on the violation it is for."""

from __future__ import annotations

import re
import zlib
from datetime import UTC, datetime
from hashlib import sha256
from typing import TYPE_CHECKING

import pytest

from freehold.adapters.sql.audit import OF_A_RULE, OF_A_TABLE, OF_THE_LEDGER
from freehold.application.audit import CHECKS, audit
from freehold.domain.facts import Facts
from freehold.domain.facts_text import canonical, facts_digest
from freehold.ports.audit import Check, Terms
from freehold.testing.backdoor import BackDoor
from tests.house.source import ROOT

if TYPE_CHECKING:
    from tests.insight.shop import Shop

LONG_AGO = "'2020-01-01T00:00:00.000000Z'"
FAR = "'2999-01-01T00:00:00.000000Z'"
OTHER = "'00000000-0000-0000-0000-000000000001'"
OPEN = "where hold_key = '8'"
ENDED = "where hold_key = '1'"
EVENT = "type, operation_id, rule, tenant, hold_key, digest, generation, due_at, at, tokens, carry, state"
TICK = "schedule, logical_time, started_at, host_at, runner"
ATTEMPT = (
    "operation_id, attempt, failure_class, failure_code, failure_message, failed_at, lease_token"
)
DAY = [
    f"'2998-01-0{day}', '2998-01-0{day}T00:00:00.000000Z', '2998-01-0{day + 1}T00:00:00.000000Z',"
    " 'UTC', '2998a'"
    for day in (1, 2, 3)
]
NEWEST = "(select max(id) from {s}report)"


def report(tenant: str, day: int, expired_count: int = 0) -> str:
    return (
        "insert into {s}report (watermark_at, due_at, assigned_at, state, tenant, report_date,"
        f" start_at, end_at, zone, tz_version, expired_count) values ({FAR}, {FAR}, {FAR},"
        f" 'assigned', '{tenant}', {DAY[day]}, {expired_count})"
    )


def froze(facts: str, digest: str) -> str:
    return (
        f"update {{s}}report set state = 'frozen', facts = '{facts}', facts_digest = '{digest}',"
        f" frozen_at = {FAR}"
    )


_NOON = datetime(2026, 3, 10, 12, tzinfo=UTC)
_QUIET = Facts("a", "a", _NOON.date(), _NOON, _NOON, "UTC", "test", _NOON, _NOON)
NOTHING_DONE = (canonical(_QUIET).decode(), facts_digest(canonical(_QUIET)))
WINDOW_IN_HAND = (
    "insert into {s}report_calendar (tenant, next_date, start_at, end_at, zone, tz_version)"
    f" values ('a', {DAY[2]})"
)
TEXT_ATTEMPT = (
    "insert into {s}summary_attempt (report_id, tenant, attempt, prompt_version, facts_digest, host,"
    f" model_asked, started_at, tokens_max) values ({NEWEST}, 'a', 1, '1', 'd', 'h', 'm',"
    f" {LONG_AGO}, 9)"
)
TOLD = f"update {{s}}summary_attempt set ended_at = {FAR}, outcome = 'rejected'"
MAIL_WITH_TEXT = (
    "insert into {s}mail (report_id, locale, subject, body_digest, byte_count, summary_id, frozen_at)"
    f" values ({NEWEST}, 'en', 's', 'd', 1, (select max(id) from {{s}}summary_attempt), {FAR})"
)

MAIL = (
    "insert into {s}mail (report_id, locale, subject, body_digest, byte_count, frozen_at)"
    f" values ({NEWEST}, 'en', 's', 'd', 1, {FAR})"
)
SENT = f"update {{s}}report set state = 'sent', facts = '{NOTHING_DONE[0]}', frozen_at = {FAR}"
OF_SEND = "(select max(id) from {s}send)"


def send(state: str) -> str:
    return (
        "insert into {s}send (report_id, recipient, message_key, head, mail_digest, state,"
        f" available_at, changed_at) values ({NEWEST}, 'a@x', 'k', 'h', 'd', '{state}', {LONG_AGO},"
        f" {FAR})"
    )


def tried(attempt: int, outcome: str = "accepted", kind: str = "send") -> str:
    ended = f"{FAR}, '{outcome}'" if outcome else "null, null"
    return (
        "insert into {s}send_attempt (send_id, attempt, kind, transport, started_at, ended_at,"
        f" outcome) values ({OF_SEND}, {attempt}, '{kind}', 'x', {FAR}, {ended})"
    )


LEASED = (
    "update {s}send set state = 'leased', state_before = 'ready', lease_token = 1,"
    f" leased_until = {LONG_AGO}"
)
TARGET = f"insert into {{s}}target (name, kind, changed_at) values ('shop', 'webhook', {LONG_AGO})"
RELAY_PAUSED = f"'relay', 'ann', 'why', {FAR}"
FORWARD = "event_id, target, state, attempt, owed_at, available_at, changed_at, reason"


def owed(state: str, reason: str = "'why'", event: str = "id") -> str:
    """Owe the event of what ended to a target since long ago."""
    ended = LONG_AGO if state == "dead" else "null"
    leased = LONG_AGO if state == "leased" else "null"
    return (
        f"insert into {{s}}forward ({FORWARD}, ended_at, leased_until) select {event}, 'shop',"
        f" '{state}', 0, {LONG_AGO}, {LONG_AGO}, {LONG_AGO}, {reason}, {ended}, {leased}"
        f" from {{s}}outbox {ENDED}"
    )


WAITS = f"update {{s}}outbox set state = 'pending', at = {LONG_AGO}, routed_at = {LONG_AGO} {ENDED}"


PLANTED: list[tuple[Check, list[str]]] = [
    (Check.NEVER_EARLY, [f"update {{s}}record set due_at = {FAR} {ENDED}"]),
    (Check.NEVER_EARLY, [f"update {{s}}record set due_at = null {ENDED}"]),
    (Check.RIGHT_HOLD, [f"update {{s}}record set digest = {OTHER} {ENDED}"]),
    (Check.NEVER_LOST, [f"delete from {{s}}operation {OPEN}"]),
    (Check.RELEASED_STAYS_RELEASED, ["update res set status = 'held' where id = 1"]),
    (Check.EXPIRED_HAS_EVENT, [f"delete from {{s}}outbox {ENDED}"]),
    (Check.EVENT_HAS_EXPIRED, [f"delete from {{s}}record {ENDED}"]),
    (Check.EVENT_HAS_EXPIRED, [f"update {{s}}outbox set tenant = 'other' {ENDED}"]),
    (Check.ENDED_ONCE, [f"insert into {{s}}record select * from {{s}}record {ENDED}"]),
    (Check.ENDED_ONCE, ["update {s}record set operation_id = 1"]),
    (
        Check.OPEN_OR_ENDED,
        [
            (
                "insert into {s}operation (rule, hold_key, digest, identity, guard, due_at, generation,"
                " after_expired, state, available_at, found_at, changed_at) select rule, hold_key,"
                " digest, '[\"x\"]', '[]', due_at, generation, false, 'ready', found_at, found_at,"
                f" found_at from {{s}}record {ENDED}"
            )
        ],
    ),
    (Check.UNIQUE_INDEXES, ["drop index {s}operation_identity"]),
    (Check.UNIQUE_INDEXES, ["drop index {s}tick_once"]),
    (
        Check.EVENTS_UNIQUE,
        [
            "drop index {s}outbox_event",
            f"insert into {{s}}outbox ({EVENT}) select {EVENT} from {{s}}outbox {ENDED}",
        ],
    ),
    (Check.ATTEMPTS_BOUNDED, [f"update {{s}}operation set attempt = 6 {OPEN}"]),
    (Check.ATTEMPTS_BOUNDED, [f"update {{s}}record set attempt = 7 {ENDED}"]),
    (Check.DEAD_HAS_REASON, [f"update {{s}}operation set state = 'dead', reason = '' {OPEN}"]),
    (
        Check.LEASE_TOKENS_GROW,
        [
            f"insert into {{s}}attempt ({ATTEMPT}) values (1, 1, 'broken', '', '', {LONG_AGO}, 7)",
            f"insert into {{s}}attempt ({ATTEMPT}) values (1, 2, 'broken', '', '', {FAR}, 6)",
        ],
    ),
    (
        Check.LEASE_TOKENS_GROW,
        [f"update {{s}}operation set state = 'leased', leased_until = {FAR} {OPEN}"],
    ),
    (
        Check.LEASES_RETURN,
        [
            (
                "update {s}operation set state = 'leased', lease_token = 1,"
                f" leased_until = {LONG_AGO} {OPEN}"
            )
        ],
    ),
    (Check.READY_IS_TAKEN, [f"update {{s}}operation set available_at = {LONG_AGO} {OPEN}"]),
    (Check.EVENTS_LEAVE, [f"update {{s}}outbox set state = 'pending', at = {LONG_AGO} {ENDED}"]),
    (
        Check.EVENTS_LEAVE,
        [f"update {{s}}outbox set state = 'published', published_at = {LONG_AGO} {ENDED}"],
    ),
    (
        Check.TICKS_FINISH,
        [
            (
                f"insert into {{s}}tick ({TICK}) values"
                f" ('cart', {LONG_AGO}, {LONG_AGO}, {LONG_AGO}, 'somebody')"
            )
        ],
    ),
    (Check.TALLIES_EQUAL_RECORDS, ["update {s}tally set expired_count = expired_count + 1"]),
    (Check.TALLIES_EQUAL_RECORDS, ["update {s}record set reason = 'gone' where hold_key = '4'"]),
    (Check.TALLIES_EQUAL_RECORDS, [f"update {{s}}record set tally_id = null {ENDED}"]),
    (Check.REPORTED_ONCE, ["update {s}tally set report_id = 7"]),
    (
        Check.REPORTED_ONCE,
        [report("none of these", 0), f"update {{s}}tally set report_id = {NEWEST}"],
    ),
    (Check.REPORTED_ONCE, [report("a", 0, expired_count=1)]),
    (Check.FACTS_UNCHANGED, [report("a", 0), froze("{}", "d")]),
    (Check.FACTS_UNCHANGED, [report("a", 0), froze("{}", facts_digest(b"{}"))]),
    (Check.FACTS_UNCHANGED, [report("a", 0, 9), froze(*NOTHING_DONE)]),
    (Check.WINDOWS_TILE, [report("a", 0), report("a", 2)]),
    (Check.WINDOWS_TILE, [report("a", 0), WINDOW_IN_HAND]),
    (Check.MAILED_ONCE, [report("a", 0), MAIL, send("accepted"), tried(1), tried(2)]),
    (Check.SENDS_AGREE, [report("a", 0), MAIL, send("accepted"), tried(1, "transient")]),
    (Check.SENDS_AGREE, [report("a", 0), MAIL, send("refused"), tried(1)]),
    (Check.SENDS_AGREE, [report("a", 0), MAIL, send("refused"), SENT]),
    (Check.SENDS_AGREE, [report("a", 0), MAIL, send("unknown"), SENT]),
    (Check.SENDS_MOVE, [report("a", 0), MAIL, send("unknown")]),
    (Check.SENDS_MOVE, [report("a", 0), MAIL, send("ready"), LEASED]),
    (Check.SENDS_MOVE, [report("a", 0), MAIL, send("review"), tried(1, "")]),
    (Check.SUMMARIES_ACCOUNTED, [report("a", 0), TEXT_ATTEMPT]),
    (Check.SUMMARIES_ACCOUNTED, [report("a", 0), TEXT_ATTEMPT, TOLD, MAIL_WITH_TEXT]),
    (Check.TENANT_IS_THE_ROWS, [f"update {{s}}operation set tenant = 'other' {OPEN}"]),
    (Check.TENANT_IS_THE_ROWS, [f"update {{s}}record set tenant = null {ENDED}"]),
    (Check.ACTIONS_CHAINED, ["update {s}action set reason = 'kinder' where action = 'pause'"]),
    (Check.ACTIONS_CHAINED, ["delete from {s}action where action = 'attach'"]),
]


def broken(shop: Shop) -> dict[Check, str]:
    """Return what each check that is not clean has to say."""
    with shop.ledger() as ledger:
        results = audit(ledger, [shop.rule])
    return {
        one.check: one.not_asked or one.violations[0].detail for one in results if not one.clean
    }


def test_a_worked_database_is_clean(every_shop: Shop) -> None:
    assert broken(every_shop) == {}


@pytest.mark.parametrize(
    ("check", "statements"),
    PLANTED,
    ids=[f"{check}-{place}" for place, (check, _) in enumerate(PLANTED)],
)
def test_a_planted_violation_is_found(shop: Shop, check: Check, statements: list[str]) -> None:
    shop.run(*statements)
    assert check in broken(shop)


@pytest.mark.parametrize(
    ("kept", "digest", "copy_digest"),
    [
        (zlib.compress(b"body"), "other", sha256(b"hbody").hexdigest()),
        (zlib.compress(b"body"), sha256(b"body").hexdigest(), "other"),
        (b"junk", sha256(b"body").hexdigest(), sha256(b"hbody").hexdigest()),
    ],
    ids=["body", "copy", "junk"],
)
def test_changed_bytes_of_a_mail_are_found(
    shop: Shop, kept: bytes, digest: str, copy_digest: str
) -> None:
    shop.run(report("a", 0), MAIL, send("accepted"), tried(1))
    with BackDoor(shop.url) as door:
        door.execute(
            "update {s}mail set body = :kept, body_digest = :digest", kept=kept, digest=digest
        )
        door.execute("update {s}send set mail_digest = :digest", digest=copy_digest)
        assert set(broken(shop)) == {Check.MAILS_UNCHANGED}
        right = [sha256(one).hexdigest() for one in (b"body", b"hbody")]
        body = zlib.compress(b"body")
        door.execute("update {s}mail set body = :b, body_digest = :d", b=body, d=right[0])
        door.execute("update {s}send set mail_digest = :d", d=right[1])
    assert broken(shop) == {}


def test_every_check_has_a_planted_violation() -> None:
    elsewhere = {Check.MAILS_UNCHANGED}  # test_changed_bytes_of_a_mail_are_found
    assert {check for check, _ in PLANTED} | elsewhere == set(Check)


def test_every_check_is_asked() -> None:
    digests = {Check.ACTIONS_CHAINED, Check.FACTS_UNCHANGED, Check.MAILS_UNCHANGED}
    in_python = {Check.RIGHT_HOLD, Check.NEVER_LOST, *digests}
    assert {*OF_THE_LEDGER, *OF_A_RULE, *OF_A_TABLE, *in_python} == set(Check) == set(CHECKS)


def test_a_persons_word_stands_against_an_acceptance_that_was_heard_later(shop: Shop) -> None:
    shop.run(report("a", 0), MAIL, send("abandoned"), tried(1))
    assert Check.SENDS_AGREE in broken(shop)
    shop.run(tried(2, "abandoned", "resolve"))
    assert Check.SENDS_AGREE not in broken(shop)


def found_of_events(shop: Shop) -> set[Check]:
    """Ask only the checks that know of events and what they owe."""
    known = (
        Check.EVENTS_LEAVE,
        Check.DEAD_HAS_REASON,
        Check.LEASES_RETURN,
        Check.LEASE_TOKENS_GROW,
    )
    with shop.ledger() as ledger, ledger.reading(whole_tables=True) as reading:
        ask, of_rule = reading.audit.violations, reading.audit.violations_of_rule
        return {
            check for check in known if ask(check, Terms()) or of_rule(check, shop.rule, Terms())
        }


def test_events_that_could_have_left_are_found(shop: Shop) -> None:
    shop.run(TARGET, WAITS)
    assert found_of_events(shop) == {Check.EVENTS_LEAVE}  # nothing is owed of it
    for state, reason, found in (
        ("ready", "'why'", {Check.EVENTS_LEAVE}),
        ("dead", "'why'", set()),  # it waits for a person
        ("dead", "''", {Check.DEAD_HAS_REASON}),
        ("leased", "'why'", {Check.LEASES_RETURN, Check.LEASE_TOKENS_GROW}),
    ):
        shop.run("delete from {s}forward", owed(state, reason))
        assert found_of_events(shop) == found
    shop.run("delete from {s}forward", owed("ready", event="id + 1000"), owed("dead"))
    assert found_of_events(shop) == {Check.EVENTS_LEAVE}  # the other is owed, and gone


def test_an_event_that_no_target_takes_now_may_wait(shop: Shop) -> None:
    shop.run(TARGET, WAITS, owed("ready"))
    for why, undone in (
        (
            f"insert into {{s}}target_pause (target, reason, paused_at) values ('shop', 'w', {FAR})",
            "delete from {s}target_pause",
        ),
        (
            f"update {{s}}target set failing_since = {FAR}, failure_count = 1",
            "update {s}target set failing_since = null, failure_count = 0",
        ),
        ("update {s}target set active = (1 = 0)", "update {s}target set active = (1 = 1)"),
        (
            f"insert into {{s}}pause (role, paused_by, reason, paused_at) values ({RELAY_PAUSED})",
            "delete from {s}pause",
        ),
    ):
        shop.run(why)
        assert found_of_events(shop) == set()
        shop.run(undone)
        assert found_of_events(shop) == {Check.EVENTS_LEAVE}


@pytest.mark.parametrize("until", ["2026-03-01", "2999-01-01"])
@pytest.mark.parametrize("table", ["target_pause", "pause"])
def test_a_pause_that_is_over_excuses_no_event(shop: Shop, table: str, until: str) -> None:
    about = "target" if table == "target_pause" else "paused_by, role"
    values = "'shop'" if table == "target_pause" else "'ann', 'relay'"
    ends = f"'{until}T00:00:00.000000Z'"
    shop.run(TARGET, WAITS, owed("ready"))
    shop.run(
        f"insert into {{s}}{table} ({about}, reason, paused_at, paused_until)"
        f" values ({values}, 'w', {LONG_AGO}, {ends})"
    )
    is_over = until < "2999"
    assert found_of_events(shop) == ({Check.EVENTS_LEAVE} if is_over else set())


def test_an_event_gets_the_promised_time_once_it_can_leave_again(shop: Shop) -> None:
    """A pause that ended, or a target that is back, has not broken a promise a moment later."""
    shop.run(TARGET, WAITS, owed("ready"))
    for why in (
        (
            "insert into {s}target_pause (target, reason, paused_at, ended_at)"
            f" values ('shop', 'w', {LONG_AGO}, @)"
        ),
        (
            "insert into {s}pause (role, paused_by, reason, paused_at, ended_at)"
            f" values ('relay', 'ann', 'w', {LONG_AGO}, @)"
        ),
        "update {s}target set changed_at = @",
    ):
        for ended_at, found in ((FAR, set()), (LONG_AGO, {Check.EVENTS_LEAVE})):
            shop.run(why.replace("@", ended_at))
            assert found_of_events(shop) == found
            shop.run("delete from {s}target_pause", "delete from {s}pause")


def test_an_event_that_left_is_owed_again_only_when_it_is_told_again(shop: Shop) -> None:
    left = f"update {{s}}outbox set state = 'published', published_at = {FAR} {ENDED}"
    shop.run(TARGET, left, owed("dead"))
    assert found_of_events(shop) == {Check.EVENTS_LEAVE}
    shop.run("update {s}forward set replay_count = 1")
    assert found_of_events(shop) == set()


def test_a_rule_that_may_not_work_loses_nothing(shop: Shop) -> None:
    shop.run(f"delete from {{s}}operation {OPEN}", "update {s}rule_state set condition = 'paused'")
    assert Check.NEVER_LOST not in broken(shop)


def test_a_missing_table_is_said_and_stops_no_other_check(shop: Shop) -> None:
    shop.run("drop table res", f"delete from {{s}}outbox {ENDED}")
    found = broken(shop)
    assert "res" in found[Check.NEVER_LOST]
    assert Check.EXPIRED_HAS_EVENT in found


def test_every_check_has_its_heading() -> None:
    page = (ROOT / "docs" / "reference" / "audit.md").read_text()
    assert set(re.findall(r"^## (.+)$", page, re.MULTILINE)) == {check.value for check in Check}
