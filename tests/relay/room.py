"""What the tests of relaying share: events, targets that say what they are told, and a relayer."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from freehold.adapters.system import Onwards
from freehold.application.relaying.forwarding import Forwarder
from freehold.application.relaying.relayer import Lane, Relayer
from freehold.domain.forwards import TargetKind, TargetPolicy
from freehold.domain.retries import RetryPolicy
from freehold.ports.target import Answer, Reception
from freehold.testing.clock import SteadyDice
from freehold.testing.postbox import Postbox, accepting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from freehold.ports.ledger import Ledger
    from freehold.ports.system import Checkpoint
    from freehold.ports.target import Parcel
    from freehold.ports.telemetry import Event
    from tests.behaviour.place import Place

SECOND = timedelta(seconds=1)
DELAYS = (10 * SECOND, 30 * SECOND)
BUSY = Answer(Reception.TRANSIENT, "503", "busy")


def policy(name: str = "shop", **changes: Any) -> TargetPolicy:
    """Return what a target wants: everything."""
    return TargetPolicy(name, TargetKind.WEBHOOK, retry=RetryPolicy(DELAYS), **changes)


@dataclass
class Script:
    """Says the next answer to each batch, the last one for ever; an error is raised."""

    lines: list[Answer | Exception] = field(default_factory=list)
    asked_count: int = 0

    def __call__(self, parcels: Sequence[Parcel]) -> Sequence[Answer]:
        line = self.lines[min(self.asked_count, len(self.lines) - 1)] if self.lines else None
        self.asked_count += 1
        if isinstance(line, Exception):
            raise line
        return accepting(parcels) if line is None else [line] * len(parcels)


@dataclass
class Told:
    """Keeps what telemetry is told."""

    events: list[Event] = field(default_factory=list)

    def tell(self, event: Event) -> None:
        self.events.append(event)

    def names(self) -> list[str]:
        return [event.name for event in self.events]


@dataclass
class Room:
    """A place, a folder for what arrives, and relayers over some targets."""

    place: Place
    folder: Path
    policies: Sequence[TargetPolicy] = field(default_factory=lambda: [policy()])
    told: Told = field(default_factory=Told)

    def open(self, ledger: Ledger | None = None) -> Room:
        """Let the ledger know the targets."""
        own = ledger or self.place.ledger()
        with own.transaction() as tx:
            tx.relay.follow_targets([(one.name, one.kind) for one in self.policies])
        if ledger is None:
            own.close()
        return self

    def box(self, name: str = "shop", answers: Callable[..., Any] = accepting) -> Postbox:
        """Return the target of a name."""
        return Postbox(self.folder / f"{name}.txt", answers)

    def forwarder(
        self,
        ledger: Ledger,
        name: str = "shop",
        *,
        answers: Callable[..., Any] = accepting,
        checkpoint: Checkpoint | None = None,
    ) -> Forwarder:
        """Return what works for one target."""
        found = next(one for one in self.policies if one.name == name)
        target, crash = self.box(name, answers), checkpoint or Onwards()
        return Forwarder(ledger, target, found, crash, SteadyDice(), self.told)

    def relayer(
        self,
        ledger: Ledger | None = None,
        checkpoint: Checkpoint | None = None,
        **answers: Callable[..., Any],
    ) -> Relayer:
        """Follow the targets, and return a relayer over them; each says what it is told to."""
        crash = checkpoint or Onwards()
        own = ledger or self.place.ledger(crash)
        self.open(own)
        lanes = [
            Lane(
                self.forwarder(
                    own,
                    one.name,
                    answers=answers.get(one.name, accepting),
                    checkpoint=crash,
                )
            )
            for one in self.policies
        ]
        return Relayer(own, lanes, crash, self.told)

    def add(self, numbers: Iterable[int], kind: str = "hold.expired.v1") -> None:
        """Write events, as a release does while a target is active."""
        at = "2026-03-10T11:00:00.000000Z"
        rows = [
            {
                "type": kind, "operation_id": number, "rule": "cart", "hold_key": str(number),
                "digest": f"00000000-0000-0000-0000-{number:012}", "generation": 1, "due_at": at,
                "at": at, "tokens": "{}", "carry": "{}", "state": "pending",
            }
            for number in numbers
        ]  # fmt: skip
        table = f"{self.place.prefix}outbox"
        columns = ", ".join(rows[0])
        mark = "%s" if self.place.dialect == "postgres" else "?"
        marks = ", ".join([mark] * len(rows[0]))
        connection = self.place.host.connection
        cursor = connection.cursor()
        connection.execute("begin")
        cursor.executemany(
            f"insert into {table} ({columns}) values ({marks})", [(*row.values(),) for row in rows]
        )
        connection.execute("commit")

    def events(self) -> dict[str, int]:
        """Count the events by state."""
        sql = f"select state, count(*) from {self.place.prefix}outbox group by state"
        return dict(self.place.host.run(sql))

    def forwards(self, columns: str = "state, attempt") -> list[tuple[Any, ...]]:
        """Read columns of all forwards, in the order of events and targets."""
        sql = f"select {columns} from {self.place.prefix}forward order by event_id, target"
        return self.place.host.run(sql)
