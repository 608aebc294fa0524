"""Where the scans of a rule go on: the pass over what became due, and the walk from the beginning.

Not here: reading rows (`scan`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from freehold.ports.holds import ScanCursor

FULL_EVERY = timedelta(seconds=15)  # as the sweep: what was passed over waits no longer
REST_SHARE = 9  # times as long as whole reading took: at most a tenth of the time goes on it


@dataclass(frozen=True, slots=True)
class Place:
    """Where the next pass of a rule's scan begins.

    Attributes:
        since: what was due at that instant has been seen; None is the beginning.
        after: the row after which an unfinished pass goes on.
        began_at: when the unfinished pass began.
        rests_until: before that, text that must be read whole is not read again unasked.
    """

    since: datetime | None = None
    after: ScanCursor | None = None
    began_at: datetime | None = None
    rests_until: datetime | None = None


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

    def begin(self, now: datetime) -> None:
        """Begin, unless it is under way."""
        if not self.places:
            self.began_at = now

    def rest(self, went_on_at: datetime, now: datetime, *, finished: bool) -> None:
        """Rest for longer than it took, so that what is new is not kept waiting."""
        self.rests_until = now + REST_SHARE * (now - went_on_at)
        if finished:
            self.places.clear()
