"""Strays: payloads of a queue that are no message of ours, and how much a queue brought.

*Invariants*: the same bytes are one row, however often they come; what is kept of each is bounded,
and so is their number; counts are added up by minute and process, never in one hot row.
*Not here*: reading a payload (`domain.messages`), dead operations (`ports.reviews`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from freehold.domain.messages import Unreadable

STRAYS_MOST = 10_000  # rows; whoever floods a queue must not fill the database


@dataclass(frozen=True, slots=True)
class Stray:
    """One payload in review.

    Attributes:
        raw: its first bytes; see `domain.messages.RAW_BYTES_KEPT`.
        byte_count: how long it was.
        seen_count: how often it came.
    """

    id: int
    queue: str
    digest: str
    raw: bytes
    byte_count: int
    reason: str
    seen_count: int
    first_seen_at: datetime
    last_seen_at: datetime


@dataclass(slots=True)
class DeliveryCounts:
    """What one process published and took.

    Attributes:
        unconfirmed_count: published without a confirm, and published again later.
        passed_over_count: messages that named nothing to do: the no-ops.
    """

    published_count: int = 0
    unconfirmed_count: int = 0
    delivered_count: int = 0
    redelivered_count: int = 0
    passed_over_count: int = 0
    unreadable_count: int = 0


class Strays(Protocol):
    """Strays and counts, inside one transaction."""

    def record(self, queue: str, payloads: Sequence[Unreadable]) -> int:
        """Write down payloads that nobody can read; return how many are new.

        At `STRAYS_MOST` open ones no new row is made; those that are there still count, and one
        that a person discarded stays discarded.
        Again: counts them once more, since a queue may well bring them once more.
        """
        ...

    def open(self, after_id: int, limit: int) -> Sequence[Stray]:
        """Read strays in review by id, those behind `after_id`."""
        ...

    def count_open(self, at_most: int) -> int:
        """Count strays in review, and stop counting at `at_most`."""
        ...

    def find(self, stray_id: int) -> Stray | None:
        """Read one stray in review; None where there is none of that id."""
        ...

    def discard(self, stray_ids: Sequence[int]) -> int:
        """Take strays out of review; return how many were in it. The rows stay."""
        ...

    def count(self, process: str, counts: DeliveryCounts) -> None:
        """Add to this minute's counts of a process."""
        ...

    def counts_since(self, since: datetime) -> DeliveryCounts:
        """Add up all processes' counts of the minutes that begin at or after an instant."""
        ...
