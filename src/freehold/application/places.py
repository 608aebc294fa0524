"""Where the scans of a rule go on: the pass over what became due, and the walk from the beginning.

Not here: reading rows (`scan`), and whose rows come next (`turns`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from freehold.ports.due_by_tenant import TenantKey, TenantPlace
from freehold.ports.holds import ScanCursor

OVERLAP = timedelta(seconds=10)  # a host's transaction may commit this long after it wrote due

FULL_EVERY = timedelta(seconds=15)  # as the sweep: what was passed over waits no longer
REST_SHARE = 9  # times as long as whole reading took: at most a tenth of the time goes on it


@dataclass(frozen=True, slots=True)
class Deep:
    """A tenant with more due rows than its share, and where reading them goes on.

    Attributes:
        since: when the round began that found it so.
    """

    place: TenantPlace
    since: datetime


@dataclass(frozen=True, slots=True)
class Rounds:
    """A pass that goes by turns from tenant to tenant; see `turns`.

    Attributes:
        began_at: when the round under way began; None between two rounds.
        looked_at: when what is new was last looked for.
        after: the tenant behind which it goes on.
        behind: what it reads of every tenant stands behind that place.
        deep: the queue of tenants with a backlog.
        is_flooded: what was new filled the last page that it was read by.
        left_since: the earliest `since` of those that left the queue.
        is_deep_next: the deep have their turn before the round goes on.
    """

    began_at: datetime | None = None
    looked_at: datetime | None = None
    after: TenantKey | None = None
    behind: ScanCursor | None = None
    deep: tuple[Deep, ...] = ()
    is_flooded: bool = False
    left_since: datetime | None = None
    is_deep_next: bool = True

    def begun(self, now: datetime) -> Rounds:
        """Return the same with another round under way."""
        return replace(self, began_at=now, after=None, behind=None)


@dataclass(frozen=True, slots=True)
class Place:
    """Where the next pass of a rule's scan begins.

    Attributes:
        since: what was due at that instant has been seen; None is the beginning.
        after: the row after which an unfinished pass goes on.
        began_at: when the unfinished pass began.
        rests_until: before that, text that must be read whole is not read again unasked.
        rounds: set while the pass goes from tenant to tenant.
        looks_again: such a pass looks at what is new meanwhile; a walk leaves that to the pass.
        in_bulk: the last page was full, and released straight as a whole: so may be the next.
    """

    since: datetime | None = None
    after: ScanCursor | None = None
    began_at: datetime | None = None
    rests_until: datetime | None = None
    rounds: Rounds | None = None
    looks_again: bool = True
    in_bulk: bool = False

    @property
    def is_under_way(self) -> bool:
        """Tell whether a pass has begun and not ended."""
        return self.after is not None or self.rounds is not None

    @property
    def floor(self) -> datetime | None:
        """Return up to when the pass leaves out what was due; None reads from the beginning."""
        return None if self.since is None else self.since - OVERLAP


Places = dict[str, Place]


@dataclass(slots=True)
class Walk:
    """The reading of one rule from the beginning, a few pages at a time.

    Only it finds holds that became due long ago: held again, or written late.

    Attributes:
        began_at: when it began, or the last one did.
        places: the rule's place while it is under way; empty between two walks.
    """

    began_at: datetime
    places: Places = field(default_factory=dict)
    rests_until: datetime | None = None

    def goes_on(self, now: datetime) -> bool:
        """Tell whether it is to begin or to go on; a clock that was set back holds up neither."""
        if self.rests_until is not None and self.began_at <= now < self.rests_until:
            return False
        return bool(self.places) or not self.began_at <= now < self.began_at + FULL_EVERY

    def hurry(self, since: datetime) -> None:
        """Begin anew what began before that instant, and do not rest."""
        self.rests_until = None
        if self.began_at < since:
            self.places.clear()
            self.began_at = since - FULL_EVERY

    def begin(self, now: datetime) -> None:
        """Begin, unless it is under way."""
        if not self.places:
            self.began_at = now

    def rest(self, went_on_at: datetime, now: datetime, *, finished: bool) -> None:
        """Rest for longer than it took, so that what is new is not kept waiting."""
        self.rests_until = now + REST_SHARE * (now - went_on_at)
        if finished:
            self.places.clear()
