"""What the tests of the crash matrix do: one step in a process of its own, killed or not."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from freehold.application.release import BatchResult
from freehold.application.rulestate import admit
from freehold.domain.operations import Claim
from freehold.domain.retries import RetryPolicy
from freehold.domain.rules import Rule
from freehold.domain.schedule import Every
from freehold.ports.system import Boundary, Checkpoint
from freehold.testing.backdoor import BackDoor, Row
from freehold.testing.clock import SetClock
from freehold.testing.crash import KillAt
from freehold.testing.forking import Child, Wire, fork, run
from freehold.testing.invariants import digest_tables, find_violations
from freehold.testing.pipeline import Pipeline
from freehold.testing.tables import StandardTable, standard_rule
from tests.crash.script import ONWARDS, as_leased

NOW = datetime(2026, 3, 2, 12, 0, 5, tzinfo=UTC)
SOON = NOW + timedelta(hours=2)  # after everything that a test lives through
Step = Callable[[Pipeline], object]
DELAYS = (timedelta(seconds=10), timedelta(seconds=30))


@dataclass
class Acts:
    """One prepared database, and processes that come and go; times are seconds after `NOW`."""

    url: str
    changes: dict[str, Any] = field(default_factory=dict)
    limits: dict[str, Any] = field(default_factory=dict)

    @property
    def rule(self) -> Rule:
        """The rule of all processes."""
        fields = {"schedule": Every(60), "retry": RetryPolicy(DELAYS), **self.changes}
        return standard_rule(self.url, **fields)

    # ------------------------------------------------------------------------------- processes

    def pipeline(
        self, at: float = 0, checkpoint: Checkpoint = ONWARDS, runner: str = "one"
    ) -> Pipeline:
        """Return a pipeline for a child to use."""
        clock = SetClock(NOW + timedelta(seconds=at))
        return Pipeline(self.url, self.rule, clock, checkpoint, runner, **self.limits)

    def do(self, step: Step, at: float = 0, runner: str = "one") -> Any:
        """Run a step in a process of its own and return what it returned."""
        return run(lambda _: _plain(step(self.pipeline(at, runner=runner)))).value

    def kill(self, step: Step, boundary: Boundary, nth: int = 1, at: float = 0) -> None:
        """Run a step in a process of its own, killed at the n-th reach of the boundary."""
        ending = run(
            lambda wire: _plain(step(self.pipeline(at, KillAt(nth, boundary, wire.tell), "killed")))
        )
        assert ending.was_killed, f"the step ended without reaching {boundary} {nth} times"
        self.wait_until_alone()

    def wait_until_alone(self) -> None:
        """Wait until the server has noticed that a process is gone."""
        with BackDoor(self.url) as door:
            door.wait_until_alone()

    def start(
        self, step: Step, checkpoint: Callable[[Wire], Checkpoint] | None = None, at: float = 0
    ) -> Child:
        """Start a step in a process of its own; use it in a `with`."""

        def child(wire: Wire) -> object:
            crash = ONWARDS if checkpoint is None else checkpoint(wire)
            pipeline = self.pipeline(at, crash, runner="started")
            wire.tell("started")
            wire.wait()
            return _plain(step(pipeline))

        return fork(child)

    def message(self) -> list[Claim]:
        """Return what a message would name now; the work itself is left where it is."""
        carried = self.do(lambda pipeline: pickle.dumps(list(pipeline.peek())).hex())
        claims: list[Claim] = pickle.loads(bytes.fromhex(carried))  # noqa: S301 -- our own child's
        return claims

    def lease_always(self) -> None:
        """Let the rule take committed leases, as after a lost backend."""

        def write(pipeline: Pipeline) -> None:
            with pipeline.ledger.transaction() as tx:
                tx.rules.write(as_leased(admit(tx, pipeline.rule)))

        self.do(write)

    # ------------------------------------------------------------------------ the host's own view

    def host(self, act: Callable[[StandardTable], Any]) -> Any:
        """Let the host application act through its own connection."""
        with BackDoor(self.url) as door:
            return act(StandardTable(door))

    def hold(self, number: int = 1, due: float = 0, **values: Any) -> None:
        """Make a hold that falls due so many seconds after `NOW`."""
        until = NOW + timedelta(seconds=due)
        self.host(lambda table: table.hold(number, until, **values))

    def rows(self, sql: str) -> list[Row]:
        """Read through the back door."""
        with BackDoor(self.url) as door:
            return door.rows(sql)

    def one(self, sql: str) -> Any:
        """Read the first column of the only row through the back door."""
        ((value, *_),) = self.rows(sql)
        return value

    def status(self, number: int = 1) -> str | None:
        """Return a reservation's status."""
        return self.host(lambda table: table.status(number))  # type: ignore[no-any-return]

    def expired_count(self, number: int = 1) -> int:
        """Return how often a reservation expired, as the history saw it."""
        return len(self.host(lambda table: table.expirations(number)))

    # ------------------------------------------------------------------------------------ the end

    def drained(self, at: float) -> None:
        """Drain in a new process; every invariant holds then, and once more changes nothing."""

        def settle(pipeline: Pipeline) -> list[str]:
            pipeline.drain()
            with BackDoor(self.url) as door:
                wrong = find_violations(door, self.rule, pipeline.clock.instant)
                wrong += pipeline.audit()
                before = digest_tables(door)
                pipeline.round()
                after = digest_tables(door)
            return [*wrong, *(f"I30: {name}" for name in before if before[name] != after[name])]

        assert self.do(settle, at, runner="last") == []


def _plain(value: object) -> object:
    """Turn a batch's result into what JSON carries."""
    if not isinstance(value, BatchResult):
        return value
    return {
        "released": value.released_count,
        "buried": value.buried_count,
        **{reason.value: count for reason, count in value.skipped.items()},
        **{reason.value: count for reason, count in value.deferred.items()},
    }


def released(count: int) -> dict[str, int]:
    """Return what a step says that released so many holds and did nothing else."""
    return {"released": count, "buried": 0}


NOTHING = released(0)
