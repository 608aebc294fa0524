"""What a database that was put back to an older state may not know: mails that were sent since.

*Invariants*: what may have been sent becomes unknown, with an attempt in its trail that says why; it is
then replayed, looked up or put before a person like any other unknown end.
*Not here*: the order of steps (`application.restored`).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol


class Restoring(Protocol):
    """Doubts about the sends, inside one transaction."""

    def living(self, since: datetime) -> Sequence[str]:
        """Name the processes, host and id, that said since an instant that they live."""
        ...

    def leased_count(self) -> int:
        """Count the sends in somebody's hands."""
        ...

    def doubt(self, since: datetime, transport: str, limit: int) -> int:
        """Make sends that wait unknown, as if tried first at an instant; return how many.

        Args:
            transport: by which they may have been sent.

        Again: finds those that are left. Crash: all of one call, or nothing.
        """
        ...
