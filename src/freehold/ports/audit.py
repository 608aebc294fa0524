"""The read-only check of the invariants: a closed list of checks, each asks for violations.

*Invariants*: a check that finds nothing returns nothing; what it returns are bounded examples.
*Not here*: what the checks mean to a person, and in which order they run (`application.audit`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol
from uuid import UUID

from freehold.domain.rules import Rule


class Check(StrEnum):
    """One check of the audit; the name is public, docs/reference/audit.md has a heading for each."""

    NEVER_EARLY = "never-early"
    RIGHT_HOLD = "right-hold"
    NEVER_LOST = "never-lost"
    RELEASED_STAYS_RELEASED = "released-stays-released"
    EXPIRED_HAS_EVENT = "expired-has-event"
    EVENT_HAS_EXPIRED = "event-has-expired"
    ENDED_ONCE = "ended-once"
    OPEN_OR_ENDED = "open-or-ended"
    UNIQUE_INDEXES = "unique-indexes"
    EVENTS_UNIQUE = "events-unique"
    ATTEMPTS_BOUNDED = "attempts-bounded"
    DEAD_HAS_REASON = "dead-has-reason"
    LEASE_TOKENS_GROW = "lease-tokens-grow"
    LEASES_RETURN = "leases-return"
    READY_IS_TAKEN = "ready-is-taken"
    EVENTS_LEAVE = "events-leave"
    TICKS_FINISH = "ticks-finish"
    TALLIES_EQUAL_RECORDS = "tallies-equal-records"
    REPORTED_ONCE = "reported-once"
    FACTS_UNCHANGED = "facts-unchanged"
    WINDOWS_TILE = "windows-tile"
    MAILED_ONCE = "mailed-once"
    SENDS_AGREE = "sends-agree"
    MAILS_UNCHANGED = "mails-unchanged"
    SENDS_MOVE = "sends-move"
    SUMMARIES_ACCOUNTED = "summaries-accounted"
    TENANT_IS_THE_ROWS = "tenant-is-the-rows"
    ACTIONS_CHAINED = "actions-chained"


@dataclass(frozen=True, slots=True)
class Violation:
    """One example of what must not be; fields that do not apply are None."""

    rule: str | None
    hold_key: str | None
    operation_id: int | None
    detail: str


@dataclass(frozen=True, slots=True)
class Terms:
    """By what a check is bounded.

    Attributes:
        since: leave out what finished before; None takes everything.
        limit: the most examples of one check.
        sweep: how often the sweep runs; an ended lease may wait two of them.
    """

    since: datetime | None = None
    limit: int = 20
    sweep: timedelta = timedelta(seconds=15)


@dataclass(frozen=True, slots=True)
class ReleasedImage:
    """What one expired record says that it released.

    Attributes:
        identity: packed texts of due and tokens in the before-image.
        is_of_mapping: the image has the columns of today's mapping; under another one a granting
            may have been named by other columns.
    """

    operation_id: int
    hold_key: str
    digest: UUID
    identity: str
    is_of_mapping: bool


class Audit(Protocol):
    """The queries of the checks, inside one reading."""

    def violations(self, check: Check, terms: Terms) -> Sequence[Violation]:
        """Ask one check about the whole ledger."""
        ...

    def violations_of_rule(self, check: Check, rule: Rule, terms: Terms) -> Sequence[Violation]:
        """Ask one check about one rule, by the rule's own grace, promise and policy.

        Raises:
            RuleRefused: the check reads the customer's table, and it is not as mapped.
        """
        ...

    def released_images(
        self, rule: Rule, after: tuple[str, int], limit: int, terms: Terms
    ) -> Sequence[ReleasedImage]:
        """Page through expired records of a rule in the order (hold_key, operation_id)."""
        ...
