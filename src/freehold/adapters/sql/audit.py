"""The checks of the audit as queries; implements `ports.audit.Audit`.

*Invariants*: every statement returns (rule, hold key, operation id, detail), at most as many rows
as were asked for; none of them writes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

from freehold.adapters.sql.audit_mails import changed_mails
from freehold.adapters.sql.facts import changed_facts
from freehold.adapters.sql.holds import rule_slots
from freehold.adapters.sql.loops import CHAIN_START, STALE_AFTER, act_hash
from freehold.adapters.sql.mapping import RuleSql
from freehold.adapters.sql.retention import SqlRetention
from freehold.adapters.sql.session import Row, Runner, Session
from freehold.adapters.sql.spelling import PostgresSpelling, Spelling, SqliteSpelling
from freehold.domain.rules import Rule
from freehold.domain.schedule import Cron, Every
from freehold.ports.audit import Check, ReleasedImage, Terms, Violation
from freehold.ports.ledger import Act
from freehold.ports.retention import Subject

_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)
_PAGE = 1_000  # rows of the action log at a time
_ASKED_LONG_AGO = timedelta(hours=1)  # far beyond any call of a model, and its being given up
_ROLLED_UP_BELOW = timedelta(minutes=1)

OF_THE_LEDGER: dict[Check, tuple[str, ...]] = {
    Check.EXPIRED_HAS_EVENT: ("expired_without_event",),
    Check.EVENT_HAS_EXPIRED: ("event_without_expired",),
    Check.ENDED_ONCE: ("identity_ended_twice", "operation_ended_twice"),
    Check.OPEN_OR_ENDED: ("open_and_ended",),
    Check.UNIQUE_INDEXES: ("unique_index_missing",),
    Check.EVENTS_UNIQUE: ("event_told_twice",),
    Check.DEAD_HAS_REASON: ("dead_without_reason", "dead_forward_without_reason"),
    Check.LEASE_TOKENS_GROW: (
        "lease_token_fell",
        "leased_without_token",
        "forward_leased_without_token",
    ),
    Check.LEASES_RETURN: ("lease_not_returned", "forward_lease_not_returned"),
    Check.EVENTS_LEAVE: ("event_left_wrongly", "forward_of_nothing"),
    Check.TALLIES_EQUAL_RECORDS: ("tally_differs", "record_without_tally"),
    Check.REPORTED_ONCE: ("tally_of_wrong_report", "report_counts_wrongly"),
    Check.WINDOWS_TILE: ("windows_apart", "calendar_apart"),
    Check.MAILED_ONCE: ("accepted_twice",),
    Check.SENDS_AGREE: ("accepted_by_nobody", "acceptance_overlooked", "report_without_its_sends"),
    Check.SENDS_MOVE: ("send_lease_not_returned", "send_rests", "send_attempt_left_open"),
    Check.SUMMARIES_ACCOUNTED: ("summary_left_open", "summary_of_nothing"),
}
# What asks old records for events, which are pruned sooner.
_ASKS_FOR_EVENTS = ("expired_without_event",)
OF_A_RULE: dict[Check, tuple[str, ...]] = {
    Check.NEVER_EARLY: ("released_early",),
    Check.ATTEMPTS_BOUNDED: ("attempts_over_policy", "recorded_attempts_over_policy"),
    Check.READY_IS_TAKEN: ("ready_not_taken",),
    Check.EVENTS_LEAVE: ("event_not_leaving",),
    Check.TICKS_FINISH: ("tick_not_finished",),
}
OF_A_TABLE: dict[Check, tuple[str, ...]] = {
    Check.TENANT_IS_THE_ROWS: ("tenant_of_operation", "tenant_of_record"),
    Check.RELEASED_STAYS_RELEASED: ("released_but_held",),
}


class SqlAudit:
    """The checks inside one reading."""

    def __init__(
        self, session: Session, now: datetime, compiled: Callable[[Rule], RuleSql]
    ) -> None:
        self._session = session
        self._sql = Runner(session)
        self._now = now
        self._compiled = compiled

    def violations(self, check: Check, terms: Terms) -> Sequence[Violation]:
        """Ask one check about the whole ledger."""
        if check is Check.ACTIONS_CHAINED:
            return self._broken_chain(terms.limit)
        if check is Check.FACTS_UNCHANGED:
            return list(islice(changed_facts(self._sql, terms.since or _BEGINNING), terms.limit))
        if check is Check.MAILS_UNCHANGED:
            return list(islice(changed_mails(self._sql, terms.since or _BEGINNING), terms.limit))
        return self._asked(self._sql, OF_THE_LEDGER.get(check, ()), self._bounds(terms))

    def violations_of_rule(self, check: Check, rule: Rule, terms: Terms) -> Sequence[Violation]:
        """Ask one check about one rule."""
        bounds = {**self._bounds(terms), **self._promises(rule)}
        if check in OF_A_TABLE:
            runner, fixed = self._on_table(rule)
            names = OF_A_TABLE[check]
            if rule.tenant.column is None:
                names = tuple(name for name in names if name != "tenant_of_record")
            return self._asked(runner, names, {**bounds, **fixed})
        return self._asked(self._sql, OF_A_RULE.get(check, ()), bounds)

    def _asked(
        self, runner: Runner, names: Sequence[str], bounds: dict[str, Any]
    ) -> list[Violation]:
        found: list[Violation] = []
        for name in names:
            asked = {**bounds, "limit": bounds["limit"] - len(found)}
            if name in _ASKS_FOR_EVENTS:
                asked["since"] = max(asked["since"], self._kept_since(Subject.EVENTS))
            rows = runner.rows(name, **asked)
            found += [Violation(*row) for row in rows]
        return found

    def _bounds(self, terms: Terms) -> dict[str, Any]:
        kept_since = self._kept_since(Subject.RECORDS, Subject.TALLIES)
        return {
            "since": max(terms.since or _BEGINNING, kept_since),
            "limit": terms.limit,
            "lapsed_before": self._now - 2 * terms.sweep,
            "asked_before": self._now - _ASKED_LONG_AGO,
        }

    def _kept_since(self, *subjects: Subject) -> datetime:
        """Return the instant since when nothing of these was pruned: before it, parts are gone."""
        readings = SqlRetention(self._sql, self._now).readings()
        pruned = [readings[one].pruned_before for one in subjects if one in readings]
        return max((at for at in pruned if at is not None), default=_BEGINNING)

    def _promises(self, rule: Rule) -> dict[str, Any]:
        promised_before = self._now - rule.promise
        return {
            "rule": rule.name,
            "grace_seconds": rule.due.grace.total_seconds(),
            "attempts_max": rule.retry.attempts_max,
            "promised_before": promised_before,
            "due_before": promised_before - rule.due.grace,
            "stale_before": self._now - 2 * STALE_AFTER,
            "rolled_up": int(_rolls_up(rule)),
        }

    def _on_table(self, rule: Rule) -> tuple[Runner, dict[str, Any]]:
        """Return a runner whose statements read the rule's table, and what they need."""
        rule_sql = self._compiled(rule)
        slots = {**rule_slots(self._session, rule_sql), **image_slots(rule, self._session.dialect)}
        fixed = {**rule_sql.parameters, **rule_sql.bounds(self._now), "now": self._now}
        return Runner(self._session, slots), fixed

    def released_images(
        self, rule: Rule, after: tuple[str, int], limit: int, terms: Terms
    ) -> Sequence[ReleasedImage]:
        """Page through expired records of a rule."""
        runner, fixed = self._on_table(rule)
        rows = runner.rows(
            "released_images",
            **fixed,
            rule=rule.name,
            since=max(terms.since or _BEGINNING, self._kept_since(Subject.RECORDS)),
            after_key=after[0],
            after_id=after[1],
            limit=limit,
        )
        uuid = self._session.uuid
        return [ReleasedImage(row[0], row[1], uuid(row[2]), row[3], bool(row[4])) for row in rows]

    def _broken_chain(self, limit: int) -> list[Violation]:
        """Compute every hash of the action log again, a page at a time."""
        found: list[Violation] = []
        previous, after_id = CHAIN_START, 0
        while page := self._sql.rows("acts", after_id=after_id, limit=_PAGE):
            for row in page:
                if row[8] != previous or row[9] != self._hash_of(row):
                    detail = f"act {row[0]} ({row[3]} by {row[2]}) does not fit the chain"
                    found.append(Violation(None, None, None, detail))
                previous, after_id = row[9], row[0]
        return found[:limit]

    def _hash_of(self, row: Row) -> str:
        at = self._session.instant(row[1])
        assert at is not None
        return act_hash(row[8], at, Act(*row[2:8]))


def image_slots(rule: Rule, dialect: str) -> dict[str, str]:
    """Return identity and tenant out of a record's before-image, spelled as those of a row.

    An image of other columns was taken under another mapping, and says nothing about this one.
    """
    spelling: Spelling = {"postgres": PostgresSpelling, "sqlite": SqliteSpelling}[dialect]()

    def text(name: str) -> str:
        return f"(o.before_image ->> {_literal(name)})"

    keys = {"postgres": "json_object_keys", "sqlite": "json_each"}[dialect]
    columns = rule.mapped_columns
    same = [f"(select count(*) from {keys}(o.before_image)) = {len(columns)}"]
    same += [f"(o.before_image -> {_literal(name)}) is not null" for name in columns]
    return {
        "of_this_mapping": " and ".join(same),
        "image_identity": spelling.pack([text(name) for name in rule.identity_columns]),
        "image_tenant": text(rule.tenant.column or ""),
    }


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _rolls_up(rule: Rule) -> bool:
    """Tell whether several runs of the rule's schedule share one row."""
    match rule.schedule:
        case Every(seconds):
            return timedelta(seconds=seconds) < _ROLLED_UP_BELOW
        case Cron():
            return False
    return True
