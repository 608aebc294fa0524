"""The invariants, each a query over history and ledger that returns no row; one check for all tests.

They read the standard table of `tables`, or our own of `own_table` in its guise, through the raw
back door. The queries share no text with the product, so that one mistake cannot hide in both.
*Not here*: the audit that a customer runs (`freehold.application.audit`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from freehold.domain.names import digest, pack
from freehold.domain.rules import Rule
from freehold.testing.backdoor import BackDoor
from freehold.testing.invariants_relay import OF_THE_RELAY

SHOWN_MAX = 5  # offending rows in a failure's text
SWEEP_EVERY = timedelta(seconds=15)
LEDGER_TABLES = (
    *("operation", "attempt", "record", "tally", "outbox", "action"),
    *("target", "target_pause", "forward", "forward_attempt"),
)
HOST_TABLES = ("reservation", "history", "stock", "receipt")


@dataclass(frozen=True, slots=True)
class Invariant:
    """One promise.

    Attributes:
        query: returns one text for each broken case. `<column>` is an instant of the customer's,
            written the way the ledger writes one.
    """

    number: str
    promise: str
    query: str


_EXPIRED = (
    "(select reservation_id, cast(reservation_id as text) as hold_key, tenant, old_status,"
    " old_token, <old_hold_until> as due_at, <released_at+> as released_at, seq"
    " from history where new_status = 'expired')"
)
_RECORD = "(select * from {s}record where outcome = 'expired' and rule = :rule)"
_SAME_GRANTING = "{r}.hold_key = h.hold_key and {r}.due_at = h.due_at"

INVARIANTS = (
    Invariant(
        "I1",
        "never early",
        f"select 'reservation ' || h.hold_key || ' was released at ' || h.released_at"
        f" || ', due at ' || h.due_at from {_EXPIRED} h where h.released_at < h.due_at"
        " union all select 'record of ' || hold_key || ' ended at ' || finished_at"
        " || ', due at ' || due_at from {s}record"
        " where outcome = 'expired' and finished_at < due_at",
    ),
    Invariant(
        "I2",
        "never the wrong hold",
        f"select 'reservation ' || h.hold_key || ' expired with token ' || h.old_token"
        f" || ', which no record names' from {_EXPIRED} h where not exists (select 1"
        f" from {_RECORD} r where {_SAME_GRANTING.format(r='r')}"
        " and r.before_image ->> '<token>' = h.old_token)",
    ),
    Invariant(
        "I3",
        "never lost",
        "select 'reservation ' || id || ' is held, was due at ' || hold_until"
        " || ' and has no operation' from reservation h where status = 'held'"
        " and <hold_until> < :promised and not exists (select 1 from {s}operation o"
        " where o.rule = :rule and o.hold_key = cast(h.id as text))",
    ),
    Invariant(
        "I4",
        "a release has one event, and an event a release",
        f"select 'reservation ' || h.hold_key || ' expired with ' || count(o.id) || ' events'"
        f" from {_EXPIRED} h left join {{s}}outbox o on {_SAME_GRANTING.format(r='o')}"
        " and o.type = 'hold.expired.v1' and o.tokens ->> '<token>' = h.old_token"
        " group by h.seq, h.hold_key having count(o.id) <> 1"
        " union all select 'event ' || o.id || ' tells a release that never was' from {s}outbox o"
        f" where o.type = 'hold.expired.v1' and not exists (select 1 from {_EXPIRED} h"
        f" where {_SAME_GRANTING.format(r='o')})",
    ),
    Invariant(
        "I5",
        "a release has one record, and a record a release",
        f"select 'reservation ' || h.hold_key || ' expired with ' || count(r.operation_id)"
        f" || ' records' from {_EXPIRED} h left join {_RECORD} r"
        f" on {_SAME_GRANTING.format(r='r')} and r.before_image ->> '<token>' = h.old_token"
        " group by h.seq, h.hold_key having count(r.operation_id) <> 1"
        f" union all select 'record of ' || r.hold_key || ' tells a release that never was'"
        f" from {_RECORD} r where not exists (select 1 from {_EXPIRED} h"
        f" where {_SAME_GRANTING.format(r='r')})",
    ),
    Invariant(
        "I6",
        "an operation is open or has one outcome",
        "select 'operation ' || operation_id || ' ended ' || count(*) || ' times' from {s}record"
        " group by operation_id having count(*) > 1"
        " union all select 'operation ' || id || ' is open and ended' from {s}operation"
        " where id in (select operation_id from {s}record)"
        " union all select 'an attempt names operation ' || operation_id || ', which is nowhere'"
        " from {s}attempt where operation_id not in (select id from {s}operation)"
        " and operation_id not in (select operation_id from {s}record)"
        " union all select 'an event names operation ' || operation_id || ', which has no record'"
        " from {s}outbox where type in ('hold.expired.v1', 'hold.skipped.v1')"
        " and operation_id not in (select operation_id from {s}record)",
    ),
    Invariant(
        "I7",
        "keys are unique",
        "select 'identity of ' || hold_key || ' ended twice as generation ' || generation"
        " from {s}record group by rule, hold_key, digest, generation having count(*) >"
        " 1 + max(case when outcome = 'expired' and reason = 'straight' then 1 else 0 end)"
        " or sum(case when outcome = 'expired' then 1 else 0 end) > 1"
        " union all select 'operation ' || operation_id || ' has two events' from {s}outbox"
        " group by operation_id, type having count(*) > 1"
        " union all select 'identity of ' || hold_key || ' is open twice' from {s}operation"
        " group by rule, hold_key, digest having count(*) > 1",
    ),
    Invariant(
        "I8",
        "no other writer's change was overwritten",
        f"select 'reservation ' || hold_key || ' expired while it was ' || old_status"
        f" from {_EXPIRED} h where old_status <> 'held'",
    ),
    Invariant(
        "I9",
        "at most one release for each granting",
        f"select 'reservation ' || hold_key || ' with token ' || old_token || ' expired '"
        f" || count(*) || ' times' from {_EXPIRED} h group by hold_key, old_token, due_at"
        " having count(*) > 1",
    ),
    Invariant(
        "I10",
        "confirmed and cancelled holds never expire",
        f"select 'reservation ' || h.hold_key || ' expired after it was ' || p.new_status"
        f" from {_EXPIRED} h join history p on p.reservation_id = h.reservation_id"
        " and p.new_token = h.old_token and p.seq < h.seq"
        " where p.new_status in ('confirmed', 'cancelled')",
    ),
    Invariant(
        "I11",
        "attempts are bounded, and what gave up waits in review with a reason",
        "select 'operation ' || id || ' is ' || state || ' after ' || attempt || ' attempts'"
        " from {s}operation where attempt > :attempts_max"
        " or (attempt >= :attempts_max and state in ('ready', 'retrying', 'deferred'))"
        " union all select 'operation ' || id || ' is ' || state || ' without a reason'"
        " from {s}operation where state in ('dead', 'discarded') and coalesce(reason, '') = ''"
        " union all select 'operation ' || operation_id || ' ended at attempt ' || attempt"
        " from {s}record where attempt > :attempts_max",
    ),
    Invariant(
        "I12",
        "no write came from a lease that was lost",
        "select 'operation ' || o.id || ' has lease token ' || o.lease_token"
        " || ', an attempt has the newer ' || a.lease_token from {s}operation o"
        " join {s}attempt a on a.operation_id = o.id where a.lease_token > o.lease_token"
        " union all select 'attempts of operation ' || a.operation_id || ' came out of order'"
        " from {s}attempt a join {s}attempt b on b.operation_id = a.operation_id"
        " and b.attempt > a.attempt and b.failed_at >= a.failed_at"
        " and b.lease_token < a.lease_token",
    ),
    Invariant(
        "I13",
        "leases that ended were taken back",
        "select 'operation ' || id || ' has a lease that ended at ' || leased_until"
        " from {s}operation where state = 'leased' and leased_until < :swept",
    ),
    Invariant(
        "I14",
        "work that is ready does not wait longer than the promise",
        "select 'operation ' || id || ' is ' || state || ' and available since ' || available_at"
        " from {s}operation where state in ('ready', 'retrying', 'deferred')"
        " and available_at < :promised",
    ),
    *(Invariant(*one) for one in OF_THE_RELAY),
    Invariant(
        "I17",
        "each release is counted in one report, or waits for the next",
        "select 'tally ' || t.id || ' is in report ' || t.report_id || ', which does not take it'"
        " from {s}tally t where t.report_id is not null and not exists (select 1 from {s}report r"
        " where r.id = t.report_id and r.tenant = coalesce(t.tenant, '') and t.at < r.end_at)"
        " union all select 'tenant ' || c.tenant || ': ' || c.released || ' released, '"
        " || c.late || ' late, ' || c.waiting || ' waiting, the rest not in its reports' from"
        " (select o.tenant, sum(o.expired_count) as released,"
        " sum(case when o.at < r.start_at or (r.id is not null and r.expired_count is null)"
        " then o.expired_count else 0 end) as late,"
        " sum(case when o.report_id is null then o.expired_count else 0 end) as waiting"
        " from (select coalesce(tenant, '') as tenant, at, expired_count, report_id from {s}tally) o"
        " left join {s}report r on r.id = o.report_id group by o.tenant) c"
        " where c.released <> c.late + c.waiting + coalesce("
        "(select sum(r.expired_count) from {s}report r where r.tenant = c.tenant), 0)",
    ),
    Invariant(
        "I18",
        "a tenant's windows tile the time line",
        "select 'the report of ' || a.report_date || ' for ' || a.tenant || ' ends at ' || a.end_at"
        " || ', where nothing begins' from {s}report a where not exists (select 1 from {s}report b"
        " where b.tenant = a.tenant and b.start_at = a.end_at and b.report_date > a.report_date)"
        " and not exists (select 1 from {s}report_calendar c where c.tenant = a.tenant"
        " and c.start_at = a.end_at and c.next_date > a.report_date)"
        " union all select 'reports of ' || a.tenant || ' overlap at ' || b.start_at"
        " from {s}report a join {s}report b on b.tenant = a.tenant and b.id <> a.id"
        " and b.start_at >= a.start_at and b.start_at < a.end_at",
    ),
    Invariant(
        "I25",
        "a tick that began has finished",
        "select 'tick ' || schedule || ' of ' || logical_time || ' began and never finished'"
        " from {s}tick where finished_at is null and started_at < :stale"
        " union all select 'tick ' || schedule || ' of ' || logical_time || ' has two rows'"
        " from {s}tick group by schedule, logical_time having count(*) > 1",
    ),
    Invariant(
        "I26",
        "holds are conserved, and tallies count what happened",
        "select 'tenant ' || c.tenant || ': ' || c.made || ' made, ' || c.now || ' accounted for'"
        " from (select h.tenant, sum(case when h.old_status is null then 1 else 0 end) as made,"
        " sum(case when h.new_status is null then 1 else 0 end) + (select count(*)"
        " from reservation r where r.tenant = h.tenant and r.status in"
        " ('held', 'expired', 'confirmed', 'cancelled')) as now from history h"
        " group by h.tenant) c where c.made <> c.now"
        " union all select 'tenant ' || h.tenant || ': ' || count(*) || ' expired, '"
        " || coalesce((select sum(t.expired_count) from {s}tally t where t.rule = :rule"
        f" and t.tenant = h.tenant), 0) || ' tallied' from {_EXPIRED} h group by h.tenant"
        " having count(*) <> coalesce((select sum(t.expired_count) from {s}tally t"
        " where t.rule = :rule and t.tenant = h.tenant), 0)"
        " union all select 'tally ' || t.id || ' counts ' || t.expired_count || ' expired, its'"
        " || ' records are ' || count(r.operation_id) from {s}tally t left join {s}record r"
        " on r.tally_id = t.id and r.outcome = 'expired' group by t.id, t.expired_count"
        " having t.expired_count <> count(r.operation_id)"
        " union all select 'record of ' || hold_key || ' names no tally' from {s}record"
        " where outcome <> 'closed' and (tally_id is null"
        " or tally_id not in (select id from {s}tally))",
    ),
    Invariant(
        "I27",
        "nothing of one tenant is told of another",
        "select 'hold ' || w.hold_key || ' of tenant ' || h.tenant || ' is ' || w.what"
        " || ' under ' || coalesce(w.tenant, 'nobody') from (select 'open' as what, rule, hold_key,"
        " tenant from {s}operation where due_at is not null union all select 'recorded', rule,"
        " hold_key, tenant from {s}record union all select 'told', rule, hold_key, tenant"
        " from {s}outbox) w join reservation h on cast(h.id as text) = w.hold_key"
        " where w.rule = :rule and coalesce(w.tenant, '') <> h.tenant"
        " union all select 'record of ' || r.hold_key || ' is tallied under '"
        " || coalesce(t.tenant, 'nobody') from {s}record r join {s}tally t on t.id = r.tally_id"
        " where coalesce(t.tenant, '') <> coalesce(r.tenant, '')",
    ),
    Invariant(
        "counters",
        "every release gave its pieces back once",
        "select 'stock ' || s.id || ': ' || s.free || ' free, ' || coalesce(e.pieces, 0)"
        " || ' released' from stock s left join (select r.stock_id, sum(r.quantity) as pieces"
        " from history h join reservation r on r.id = h.reservation_id"
        " where h.new_status = 'expired' group by r.stock_id) e on e.stock_id = s.id"
        " where s.free <> coalesce(e.pieces, 0)",
    ),
)


def find_violations(door: BackDoor, rule: Rule, now: datetime) -> list[str]:
    """Return one line for each broken invariant, with the first offending rows.

    Args:
        now: the instant that the installation lives in.
    """
    values = {
        "rule": rule.name,
        "promised": door.ledger(now - rule.promise),
        "swept": door.ledger(now - SWEEP_EVERY),
        "stale": door.ledger(now - timedelta(seconds=30)),
        "attempts_max": rule.retry.attempts_max,
    }
    found = [
        f"{one.number} {one.promise}: {_shown(cases)}"
        for one in INVARIANTS
        if (cases := [str(row[0]) for row in door.rows(_spelled(door, rule, one.query), **values)])
    ]
    return [*found, *_missing_keys(door), *_wrong_digests(door, rule)]


def check_invariants(door: BackDoor, rule: Rule, now: datetime) -> None:
    """Check every invariant whose tables exist.

    Raises:
        AssertionError: names each broken invariant and its first offending rows.
    """
    found = find_violations(door, rule, now)
    assert not found, "broken invariants:\n  " + "\n  ".join(found)


def _shown(cases: list[str]) -> str:
    more = len(cases) - SHOWN_MAX
    return "; ".join(cases[:SHOWN_MAX]) + (f"; and {more} more" if more > 0 else "")


def _spelled(door: BackDoor, rule: Rule, query: str) -> str:
    """Name the token column, and write the customer's instants as the ledger's.

    SQLite's are text of two widths.
    """
    query = query.replace("<token>", rule.fence[0])
    for name in ("old_hold_until", "hold_until"):
        text = f"replace({name}, ' ', 'T') || 'Z'" if door.dialect == "sqlite" else name
        query = query.replace(f"<{name}>", text)
    # SQLite's own clock functions stop at milliseconds, and so does what the rule writes there.
    text = "replace(released_at, ' ', 'T') || '999Z'" if door.dialect == "sqlite" else "released_at"
    return query.replace("<released_at+>", text)


def _missing_keys(door: BackDoor) -> Iterator[str]:
    """I7: the unique keys stand in the catalogue, not only in today's rows."""
    for table, columns in (
        ("operation", "rule, hold_key, digest"),
        ("outbox", "operation_id, type"),
        ("forward", "event_id, target"),
        ("tick", "schedule, logical_time"),
    ):
        if columns not in _unique_keys(door, table):
            yield f"I7 keys are unique: {table} has no unique key ({columns})"


def _unique_keys(door: BackDoor, table: str) -> set[str]:
    if door.dialect == "sqlite":
        names = door.rows(f"select name from pragma_index_list('{{s}}{table}') where \"unique\"")
        return {
            ", ".join(row[0] for row in door.rows(f"select name from pragma_index_info('{name}')"))
            for (name,) in names
        }
    rows = door.rows(
        "select pg_get_indexdef(indexrelid) from pg_index"
        f" where indisunique and indrelid = '{{s}}{table}'::regclass"
    )
    return {str(row[0]).rpartition("(")[2].removesuffix(")") for row in rows}


def _wrong_digests(door: BackDoor, rule: Rule) -> Iterator[str]:
    """I2: a record's name is that of the granting which its before-image shows."""
    rows = door.rows(
        "select hold_key, cast(digest as text), before_image ->> 'hold_until',"
        f" before_image ->> '{rule.fence[0]}' from {{s}}record"
        " where outcome = 'expired' and rule = :rule",
        rule=rule.name,
    )
    for hold_key, name, until, token in rows:
        if str(digest(rule.name, hold_key, pack((until, token)))) != name:
            yield f"I2 never the wrong hold: record of {hold_key} is named for another granting"


def digest_tables(door: BackDoor) -> dict[str, str]:
    """Return a digest of each table's rows, for I30: running again changes nothing.

    Ticks and heartbeats are left out; they say that somebody looked.
    """
    tables = [*HOST_TABLES, *(f"{door.prefix}{name}" for name in LEDGER_TABLES)]
    return {table: _digest(door, table) for table in tables}


def _digest(door: BackDoor, table: str) -> str:
    rows = sorted(repr(row) for row in door.rows(f"select * from {table}"))
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()[:16]
