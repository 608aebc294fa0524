"""What the crash tests of relaying share: one database, and relays in processes of their own."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from freehold.adapters.sql.migrations import upgrade
from freehold.adapters.system import Onwards
from freehold.application.relaying.forwarding import Forwarder
from freehold.application.relaying.relayer import Lane, Relayer
from freehold.application.scan import Scanner
from freehold.application.sweep import Sweeper
from freehold.bootstrap import open_ledger, open_session
from freehold.domain.forwards import TargetKind, TargetPolicy
from freehold.settings import DatabaseSettings, Settings
from freehold.testing.backdoor import BackDoor
from freehold.testing.clock import SetClock
from freehold.testing.dice import SeededDice
from freehold.testing.forking import run
from freehold.testing.invariants_relay import OF_THE_RELAY, undelivered
from freehold.testing.postbox import Postbox

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from freehold.adapters.sql.ledger import SqlLedger
    from freehold.ports.system import Checkpoint
    from freehold.testing.forking import Ending, Wire

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
LEASE = timedelta(seconds=60)
POLICIES = (TargetPolicy("bus", TargetKind.NATS), TargetPolicy("shop", TargetKind.WEBHOOK))
TABLES = ("forward_attempt", "forward", "target_pause", "target", "outbox", "worker")
KEPT = ("forward_attempt", "forward", "target", "target_pause", "outbox")


def migrate(url: str) -> str:
    """Make the ledger in a fresh database; nothing stays connected."""
    session = open_session(Settings(DatabaseSettings(url)))
    upgrade(session)
    session.close()
    return url


@dataclass
class Process:
    """What one process has: a ledger, a relayer and a sweeper, all passing one checkpoint."""

    ledger: SqlLedger
    relayer: Relayer
    sweeper: Sweeper
    clock: SetClock

    def relay(self) -> None:
        """Relay until nothing is left to hand over now."""
        self.relayer.run_until_idle()

    def recover(self) -> None:
        """Let every lease end, sweep, and relay."""
        for _ in range(3):
            self.clock.instant += LEASE
            self.sweeper.sweep(())
            self.relay()


@dataclass
class Hall:
    """One database, and a folder for what arrives; nothing is connected between two calls."""

    url: str
    folder: Path
    batch_most: int = 3

    def empty(self) -> Hall:
        """Begin anew."""
        with BackDoor(self.url) as door:
            door.wait_until_alone()
            door.script("".join(f"delete from {{s}}{name}; " for name in TABLES))
        return self

    def add(self, count: int) -> None:
        """Let the targets be known, and write events that wait for them."""
        with BackDoor(self.url) as door:
            at, active = door.ledger(NOW), "true" if door.dialect == "postgres" else "1"
            for one in POLICIES:
                door.execute(
                    "insert into {s}target (name, kind, active, changed_at)"
                    f" values (:name, :kind, {active}, :at)",
                    name=one.name,
                    kind=one.kind.value,
                    at=at,
                )
            for number in range(1, count + 1):
                door.execute(
                    "insert into {s}outbox (type, operation_id, rule, hold_key, digest, generation,"
                    " due_at, at, tokens, carry, state) values ('hold.expired.v1', :n, 'cart', :key,"
                    " :digest, 1, :at, :at, '{}', '{}', 'pending')",
                    n=number,
                    key=str(number),
                    digest=f"00000000-0000-0000-0000-{number:012}",
                    at=at,
                )

    def box(self, name: str) -> Postbox:
        """Return a target."""
        return Postbox(self.folder / f"{name}.txt", batch_most=self.batch_most, seconds_most=15.0)

    def process(
        self, checkpoint: Checkpoint | None = None, after: timedelta = LEASE * 0
    ) -> Process:
        """Return what a child works with."""
        crash, clock = checkpoint or Onwards(), SetClock(NOW + after)
        settings = Settings(DatabaseSettings(self.url))
        ledger = open_ledger(settings, checkpoint=crash, clock=clock, considerate=False)
        dice = SeededDice(1)
        lanes = [Lane(Forwarder(ledger, self.box(p.name), p, crash, dice)) for p in POLICIES]
        sweeper = Sweeper(ledger, crash, Scanner(ledger, crash))
        return Process(ledger, Relayer(ledger, lanes, crash), sweeper, clock)

    def run(
        self,
        act: Callable[[Process], object],
        checkpoint: Callable[[Wire], Checkpoint] | None = None,
        after: timedelta = LEASE * 0,
    ) -> Ending:
        """Act in a process of its own, which a checkpoint may kill."""

        def child(wire: Wire) -> None:
            act(self.process(checkpoint(wire) if checkpoint else None, after))

        ending = run(child)
        with BackDoor(self.url) as door:
            door.wait_until_alone()
        return ending

    # ------------------------------------------------------------------------------ evidence

    def assert_all_arrived(self, count: int) -> None:
        """Check that each target has each event, that repeats are the same, and nothing is open."""
        with BackDoor(self.url) as door:
            keys = {f"cart:{row[0]}:1:hold.expired.v1" for row in door.rows(
                "select cast(digest as text) from {s}outbox")}  # fmt: skip
            rows = door.rows(
                "select target, state, count(*) from {s}forward group by target, state"
            )
            events = door.rows("select state, count(*) from {s}outbox group by state")
            promised, swept = (door.ledger(NOW + LEASE * 30 - over) for over in (LEASE, LEASE / 4))
            bounds = {"promised": promised, "swept": swept}
            for number, _, query in OF_THE_RELAY:
                names = {name: bounds[name] for name in bounds if f":{name}" in query}
                assert door.rows(query, **names) == [], number
            assert undelivered(door) == []
        assert len(keys) == count
        assert sorted(map(tuple, rows)) == [(p.name, "delivered", count) for p in POLICIES]
        assert list(map(tuple, events)) == [("published", count)]
        for policy in POLICIES:
            bodies = self.box(policy.name).bodies()
            assert set(bodies) == keys
            assert {len(one) for one in bodies.values()} == {1}

    def rows(self) -> dict[str, list[Any]]:
        """Read everything that a run may change."""
        with BackDoor(self.url) as door:
            return {
                name: sorted(map(repr, door.rows(f"select * from {{s}}{name}"))) for name in KEPT
            }
