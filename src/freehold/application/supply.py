"""Where a worker's next batch comes from beside a broker: its messages, or the ledger itself.

The broker is a hint. While it cannot be reached, workers claim from the ledger as if there were
none. While it can, they wait for its messages, and look from time to time whether something has
been ready for longer than a sweep: then nobody named it, and they claim it all the same.

*Invariants*: no operation waits for a broker or a dispatcher longer than a sweep and a look.
*Not here*: handling messages (`deliveries`), publishing them (`dispatch`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

from freehold.domain.errors import QueueUnfit
from freehold.domain.pauses import Role
from freehold.domain.rules import Mode, Rule
from freehold.ports.ledger import Ledger
from freehold.ports.system import HostClock
from freehold.ports.telemetry import UNHEARD, HintsMissing, QueueFound, QueueLost, Telemetry

LOOKS_A_SWEEP = 3
QUIET_SECONDS = 1.0  # without a message: what is overdue is then worked off without a pause


@dataclass(slots=True)
class Hints:
    """What the deliveries of this process say about the broker.

    One thread writes, others read.

    Attributes:
        loop: the loop that asks the broker.
        on_lost: called when the broker is lost, so that the ledger is asked at once.
        is_reachable: None before the first answer.
    """

    clock: HostClock
    telemetry: Telemetry = UNHEARD
    loop: str = "deliveries"
    on_lost: Callable[[], None] = lambda: None
    is_reachable: bool | None = None
    _brought_seconds: float = field(default=float("-inf"))

    def answered(self, delivered_count: int) -> None:
        """Note that the broker answered, and with how many messages."""
        if delivered_count:
            self._brought_seconds = self.clock.monotonic()
        if not self.is_reachable:
            self.is_reachable = True
            self.telemetry.tell(QueueFound(self.loop))

    def lost(self, error: Exception) -> None:
        """Note that the broker cannot be used; told once, until it answers again."""
        if self.is_reachable is not False:
            self.is_reachable = False
            kind = type(error.__cause__ or error).__name__
            reason = str(error) if isinstance(error, QueueUnfit) else None
            self.telemetry.tell(QueueLost(self.loop, kind, reason))
            self.on_lost()

    def are_quiet(self) -> bool:
        """Tell whether no message came for a moment."""
        return self.clock.monotonic() - self._brought_seconds >= QUIET_SECONDS


@dataclass(slots=True)
class _Look:
    """What the last look at a rule found."""

    seconds: float = float("-inf")
    is_overdue: bool = False


@dataclass(slots=True)
class Supply:
    """Says which rules one worker takes from the ledger.

    Attributes:
        patience: how long an operation may be ready without a message that came of it.
    """

    ledger: Ledger
    hints: Hints
    patience: timedelta
    telemetry: Telemetry = UNHEARD
    _looks: dict[str, _Look] = field(default_factory=dict)

    def is_from_ledger(self, rule: Rule) -> bool:
        """Tell whether a rule is to be worked from the ledger now.

        Windows are no messages, so their rules always are.

        Raises:
            DatabaseAway: the ledger cannot be looked at.
        """
        if not self.hints.is_reachable or rule.mode is Mode.WINDOW:
            return True
        look = self._looks.setdefault(rule.name, _Look())
        now = self.hints.clock.monotonic()
        is_time = now - look.seconds >= self.patience.total_seconds() / LOOKS_A_SWEEP
        if not is_time and not (look.is_overdue and self.hints.are_quiet()):
            return False
        look.seconds, look.is_overdue = now, self._is_overdue(rule, look)
        return look.is_overdue

    def _is_overdue(self, rule: Rule, look: _Look) -> bool:
        """Look for what nobody names: ready for too long, not to be named, or a window.

        A window can be left by a former mode of the rule.
        """
        with self.ledger.glance() as tx:
            oldest = tx.operations.oldest_ready(rule.name, None)
            is_late = oldest is not None and tx.now - oldest > self.patience
            state = tx.rules.read(rule.name)
            is_unnamed = state is not None and state.pause_of(Role.DISPATCH, tx.now) is not None
            is_open = tx.windows.is_open(rule.name)
        if is_late and not (is_unnamed or look.is_overdue) and self.hints.are_quiet():
            self.telemetry.tell(HintsMissing(rule.name))
        return is_late or is_unnamed or is_open
