"""The scripted run of the kill sweep: every kind of hold, every kind of step, no luck, no waiting.

Expected ends do not depend on where the run was killed: the host application does its part in any
case, and whoever comes after drains the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from freehold.adapters.system import Onwards
from freehold.application.rulestate import admit
from freehold.domain.retries import RetryPolicy
from freehold.domain.rules import HandlerSpec, Mode, Rule
from freehold.domain.schedule import Every
from freehold.ports.handlers import ExpiredBatch
from freehold.ports.ledger import RuleState
from freehold.ports.queue import Queue
from freehold.ports.system import Checkpoint
from freehold.testing.backdoor import BackDoor
from freehold.testing.clock import SetClock
from freehold.testing.invariants import digest_tables, find_violations
from freehold.testing.pipeline import Pipeline
from freehold.testing.tables import Refusal, StandardTable, standard_rule

START = datetime(2026, 3, 2, 12, 0, 5, tzinfo=UTC)
LATER = START + timedelta(days=30)
RENEWED, CONFIRMED, CANCELLED, TAKEN_OVER, DELETED, RAISES, DEFERS, FUTURE = range(11, 19)
PLAIN = range(1, 5)
ENDS = {
    **dict.fromkeys(PLAIN, "expired"),
    RENEWED: "held",
    CONFIRMED: "confirmed",
    CANCELLED: "cancelled",
    TAKEN_OVER: "held",
    RAISES: "held",
    DEFERS: "held",
    FUTURE: "held",
}
SEALS = HandlerSpec("tests.crash.script:seal", timedelta(seconds=10))
ONWARDS = Onwards()
LEDGER = (
    *("forward_attempt", "forward", "target_pause", "target"),
    "operation",
    "attempt",
    "record",
    "tally",
    "outbox",
    "tick",
    "rule_state",
    "worker",
    "action",
    "stray",
    "delivery_count",
)


def rule_of(url: str, attempts_max: int) -> Rule:
    """Return the rule of the script: small batches, a minute's schedule, few attempts."""
    return standard_rule(
        url,
        schedule=Every(60),
        batch_size=6,
        retry=RetryPolicy((timedelta(seconds=10),) * (attempts_max - 1)),
    )


@dataclass(frozen=True, slots=True)
class Script:
    """One variant of the run on one prepared database."""

    url: str
    leased: bool = False
    handled: bool = False
    attempts_max: int = 2
    mode: Mode = Mode.RESERVATION
    alone: bool = False  # without companions, so that pages behind a plain one go in bulk
    connect: Callable[[], Queue] | None = None  # to a queue whose messages the workers wait for

    @property
    def rule(self) -> Rule:
        """The rule that runs."""
        rule = rule_of(self.url, self.attempts_max)
        if self.mode is not Mode.RESERVATION:  # pages with and without poison
            rule = replace(rule, mode=self.mode, batch_size=2)
        if self.alone:
            rule = replace(rule, companions=(), batch_size=1)
        return replace(rule, handler=SEALS) if self.handled else rule

    def reset(self) -> None:
        """Bring the database back to the beginning."""
        with BackDoor(self.url) as door:
            door.wait_until_alone()
            with door.together():
                empty(door)
                _seed(StandardTable(door), pieces=0 if self.alone else 1)
        if self.leased:
            pipeline = self._pipeline(SetClock(START))
            with pipeline.ledger.transaction() as tx:
                tx.rules.write(as_leased(admit(tx, self.rule)))
            pipeline.close()

    def _pipeline(
        self, clock: SetClock, checkpoint: Checkpoint = ONWARDS, runner: str = "first"
    ) -> Pipeline:
        return Pipeline(self.url, self.rule, clock, checkpoint, runner, connect=self.connect)

    def run(self, checkpoint: Checkpoint) -> None:
        """Scan, let the host act, work, retry until the poison is dead, sweep."""
        clock = SetClock(START)
        pipeline = self._pipeline(clock, checkpoint)
        if self.mode is Mode.DIRECT:  # which leaves no time between scan and release
            self.host_acts()
        pipeline.fire()
        self.host_acts()
        for _ in range(self.rule.retry.attempts_max):
            pipeline.work()
            clock.advance(11)
        pipeline.sweep()
        pipeline.close()

    def host_acts(self) -> None:
        """Renew, confirm, cancel, take over and delete, each once however often it is called."""
        with BackDoor(self.url) as door:
            table = StandardTable(door)
            if table.status(CONFIRMED) != "held":
                return
            table.renew(RENEWED, LATER)
            table.set_status(CANCELLED, "cancelled")
            table.take_over(TAKEN_OVER, "somebody else", LATER)
            table.delete(DELETED)
            table.set_status(CONFIRMED, "confirmed")

    def recover(self, checkpoint: Checkpoint = ONWARDS) -> list[str]:
        """Drain what a killed run left; return what is wrong then, in sentences."""
        self.host_acts()
        clock = SetClock(START + timedelta(seconds=100))
        pipeline = self._pipeline(clock, checkpoint, runner="second")
        pipeline.drain()
        with BackDoor(self.url) as door:
            wrong = [
                *_wrong_ends(StandardTable(door), restocked=not self.alone),
                *(_wrong_seals(door) if self.handled else ()),
                *find_violations(door, self.rule, clock.instant),
            ]
            wrong += pipeline.audit()
            before = digest_tables(door)
            pipeline.round()
            after = digest_tables(door)
        pipeline.close()
        changed = [name for name, digest in before.items() if after[name] != digest]
        return [*wrong, *(f"I30 running again changed {name}" for name in changed)]


def seal(batch: ExpiredBatch) -> None:
    """Do what a handler does: write a row for each hold, and fail at a second one."""
    for hold in batch.holds:
        batch.connection.execute(f"insert into seal values ({int(hold.key)})")


def empty(door: BackDoor) -> None:
    """Bring a prepared database back to its beginning."""
    for table in LEDGER:
        door.execute(f"delete from {{s}}{table}")
    StandardTable(door).clear()


def as_leased(state: RuleState) -> RuleState:
    """Return the state of a rule that takes committed leases."""
    return replace(state, leased=True)


def _seed(table: StandardTable, pieces: int) -> None:
    for number in PLAIN:
        due = START - timedelta(seconds=19 - number)
        tenant, quantity = "abc"[number % 3], number * pieces
        table.hold(number, due, tenant=tenant, stock=1 + number % 2, quantity=quantity)
    for number in (RENEWED, CONFIRMED, CANCELLED, TAKEN_OVER, DELETED):
        table.hold(number, START - timedelta(seconds=30 - number), tenant="abc"[number % 3])
    table.hold(RAISES, START - timedelta(seconds=14), tenant="b", refusal=Refusal.RAISE)
    table.hold(DEFERS, START - timedelta(seconds=18), tenant="c", refusal=Refusal.DEFER)
    table.hold(FUTURE, LATER)


def _wrong_seals(door: BackDoor) -> list[str]:
    sealed = {row[0] for row in door.rows("select id from seal")}
    return [] if sealed == {*PLAIN} else [f"the handler sealed {sorted(sealed)}"]


def _wrong_ends(table: StandardTable, *, restocked: bool) -> list[str]:
    found = table.statuses()
    wrong = [
        f"reservation {number} ended {found.get(number)}, not {end}"
        for number, end in ENDS.items()
        if found.get(number) != end
    ]
    free = {1: sum(n for n in PLAIN if n % 2 == 0), 2: sum(n for n in PLAIN if n % 2)}
    if table.free() != (free if restocked else {1: 0, 2: 0}):
        wrong.append(f"free pieces are {table.free()}, not {free}")
    dead = table.door.rows("select hold_key from {s}operation where state = 'dead'")
    if {row[0] for row in dead} != {str(RAISES), str(DEFERS)}:
        wrong.append(f"in review are {dead}")
    return wrong
