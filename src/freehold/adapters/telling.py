"""Tell several listeners at once; implements `ports.telemetry.Telemetry`.

*Invariants*: one that fails keeps neither the others nor the work from going on.
"""

from __future__ import annotations

from collections.abc import Sequence

from freehold.ports.telemetry import Event, Telemetry


class Everybody:
    """Passes each event on to every listener, in order."""

    def __init__(self, listeners: Sequence[Telemetry]) -> None:
        self._listeners = tuple(listeners)
        self.failed_count = 0

    def tell(self, event: Event) -> None:
        """Tell everybody; a listener that raises is passed over, and counted."""
        for listener in self._listeners:
            try:
                listener.tell(event)
            except Exception:  # noqa: BLE001 - a bug in a listener must not harm a release
                self.failed_count += 1
