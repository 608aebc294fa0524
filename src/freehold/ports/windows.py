"""Windows: operations of mode `window`, each of which releases all that is due in its span.

*Invariants*: no claim of holds takes a window, and no claim of windows a hold; put off, failed and
renewed they are as any operation is.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from freehold.domain.operations import Claim


@dataclass(frozen=True, slots=True)
class Window:
    """A window under a lease.

    Attributes:
        begins_at: the oldest due that was found when it was opened.
        until: no later due belongs to it.
    """

    claim: Claim
    begins_at: datetime
    until: datetime
    tick_id: int | None


class Windows(Protocol):
    """The windows of all rules, inside one transaction."""

    def is_open(self, rule: str) -> bool:
        """Tell whether a window of the rule waits, or is worked on; one in review is not open."""
        ...

    def open(self, rule: str, begins_at: datetime, until: datetime, tick_id: int | None) -> bool:
        """Write a window; False where the same one is open or in review already."""
        ...

    def lease(self, rule: str, until: datetime) -> Window | None:
        """Take the rule's oldest claimable window; counts an attempt and draws a fencing token.

        Crash: after the commit it comes back when the lease ends.
        """
        ...

    def close(self, window: Window, reason: str) -> None:
        """Move the window to `record` with outcome closed.

        Raises:
            ChangeLost: the lease was lost; somebody else ends it.
        """
        ...
