"""Counts of deliveries on their way from a loop's memory to the ledger.

*Invariants*: what is counted is written at most once, unless a commit's answer is lost; a killed
process loses the counts of its last moment, and never a hold.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace

from freehold.ports.ledger import Ledger
from freehold.ports.strays import DeliveryCounts
from freehold.ports.system import HostClock

EVERY_SECONDS = 5.0


@dataclass(slots=True)
class Counting:
    """The counts of one loop; belongs to its thread.

    Attributes:
        process: whose counts they are; the loops of one process add up in one row a minute.
        counts: what dispatcher and handler add to.
    """

    ledger: Ledger
    clock: HostClock
    process: str
    every_seconds: float = EVERY_SECONDS
    counts: DeliveryCounts = field(default_factory=DeliveryCounts)
    _written_seconds: float = float("-inf")

    def flush(self, *, at_once: bool = False) -> bool:
        """Write what was counted since; return whether there was anything to write, and time to.

        Args:
            at_once: do not wait for the next turn; the last call of a loop that drains.

        Raises:
            DatabaseError: nothing was written, or its answer was lost; the counts are kept.
        """
        now = self.clock.monotonic()
        is_time = at_once or now - self._written_seconds >= self.every_seconds
        if not is_time or self.counts == DeliveryCounts():
            return False
        self._written_seconds = now
        with self.ledger.transaction() as tx:
            tx.strays.count(self.process, replace(self.counts))
        for one in fields(self.counts):
            setattr(self.counts, one.name, 0)
        return True
