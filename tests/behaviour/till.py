"""The table, the rule and the passes that most tests here share, and the evidence of what happened.

A pass is one scan, then batches until none is claimable; the clock stands still within it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from freehold.adapters.system import Onwards, StopRequest, SystemDice
from freehold.application.direct import StraightPages
from freehold.application.release import BatchResult
from freehold.application.scan import Scanner
from freehold.application.work import PassEnd, Worker
from freehold.domain.due import DueKind, DueSpec
from freehold.domain.rules import (
    Condition,
    Predicate,
    Rule,
    SetColumns,
    TableName,
    TenantSource,
    Test,
)
from tests.behaviour.place import NOON

if TYPE_CHECKING:
    from collections.abc import Iterable

    from freehold.adapters.sql.ledger import SqlLedger
    from freehold.ports.system import Checkpoint
    from tests.behaviour.place import Place

HOLDS = {
    "postgres": """create table hold (
        id bigint primary key, tenant text, status text not null, token text, due timestamptz,
        note varchar(20), qty integer not null default 1, stock_id integer)""",
    "sqlite": """create table hold (
        id integer primary key, tenant text, status text not null, token text, due text,
        note text check (length(note) <= 20), qty integer not null default 1, stock_id integer)""",
}
HELD = Predicate(((Condition("status", Test.EQUALS, ("held",)),),))
EXPIRE = SetColumns((("status", "expired"),))
LONGER_THAN_ANY_DELAY = timedelta(seconds=1_000)


def due_spec(place: Place, column: str = "due", **more: Any) -> DueSpec:
    """Return the due column of the shared table: an instant, or naive UTC text on SQLite."""
    if place.dialect == "postgres":
        return DueSpec(column, DueKind.INSTANT, **more)
    return DueSpec(column, DueKind.NAIVE, "UTC", **more)


def cart(place: Place, **changes: Any) -> Rule:
    """Return the shared rule, with changes."""
    parts: dict[str, Any] = {
        "name": "cart",
        "table": TableName("hold"),
        "key": ("id",),
        "held": HELD,
        "due": due_spec(place),
        "action": EXPIRE,
        "tenant": TenantSource("tenant"),
        "fence": ("token",),
        "attach_limit": 1_000_000,
    }
    return Rule(**{**parts, **changes})


def open_table(place: Place) -> None:
    """Make the shared table with the index that doctor asks for."""
    place.host.run(HOLDS[place.dialect])
    place.host.run("create index hold_due on hold (due) where status = 'held'")


def wall(instant: datetime) -> str:
    """Write an instant as UTC text without an offset."""
    return instant.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")


def hold(number: int, due: datetime = NOON - timedelta(hours=1), **more: Any) -> dict[str, Any]:
    """Return one row; a larger number is due a little later."""
    at = due + timedelta(milliseconds=number)
    row = {"id": number, "tenant": "t1", "status": "held", "token": f"k{number}", "due": wall(at)}
    return {**row, **more}


def put_holds(place: Place, numbers: Iterable[int], **more: Any) -> None:
    """Insert held rows that are due."""
    rows = [hold(number, **more) for number in numbers]
    if place.dialect == "postgres":
        rows = [{**row, "due": row["due"] + "+00"} for row in rows]
    place.host.insert("hold", rows)


def refuse(
    place: Place, when: str, message: str, name: str = "refuse", code: str = "P0001"
) -> None:
    """Let a trigger raise for rows of `hold` that meet a condition on `new`."""
    if place.dialect == "sqlite":
        place.host.run(
            f"create trigger {name} before update on hold when {when} "
            f"begin select raise(abort, '{message}'); end"
        )
        return
    body = f"begin raise exception '{message}' using errcode = '{code}', detail = new.token; end"
    on_change(place, name, body, when)


def on_change(place: Place, name: str, body: str, when: str = "true", time: str = "before") -> None:
    """Let a PostgreSQL trigger run a body for changed rows of `hold`."""
    place.host.run(f"create function {name}() returns trigger language plpgsql as $${body}$$")
    place.host.run(
        f"create trigger {name} {time} update on hold for each row when ({when}) "
        f"execute function {name}()"
    )


@dataclass
class Till:
    """One scanner and one worker over one connection, as a process has them."""

    place: Place
    rule: Rule
    ledger: SqlLedger
    scanner: Scanner
    worker: Worker
    straight: StraightPages

    @classmethod
    def open(
        cls, place: Place, rule: Rule, checkpoint: Checkpoint | None = None, **session: Any
    ) -> Till:
        """Open a ledger connection of its own."""
        ledger = place.ledger(checkpoint, **session)
        checkpoint = checkpoint or Onwards()
        worker = Worker(ledger, checkpoint, SystemDice(), StopRequest())
        scanner = Scanner(ledger, checkpoint, straight=worker.straight)
        return cls(place, rule, ledger, scanner, worker, worker.straight)

    def run(self) -> BatchResult:
        """Do one pass."""
        total = BatchResult()
        while True:
            scan = self.scanner.scan(self.rule)
            total.add(scan.released)
            while (done := self.worker.work(self.rule)).end is PassEnd.WORKED:
                total.add(done.batch)
            if (scan.finished and not scan.windowed) or not scan.admitted:
                return total

    def run_again(self, count: int, after: timedelta = LONGER_THAN_ANY_DELAY) -> BatchResult:
        """Do more passes, each when every retry is due; what floors passed over is seen again."""
        total = BatchResult()
        for _ in range(count):
            self.place.advance(after)
            self.worker.forget_floors()
            total.add(self.run())
        return total


# ------------------------------------------------------------------------------------- evidence


class Dead(NamedTuple):
    """A dead letter as a person sees it."""

    attempt: int
    failure_class: str
    message: str


def statuses(place: Place) -> Counter[str]:
    """Count the rows of `hold` by status."""
    return Counter(dict(place.host.run("select status, count(*) from hold group by status")))


def status(place: Place, number: int) -> str:
    """Return the status of one row."""
    return str(place.host.run("select status from hold where id = :id", id=number)[0][0])


def dead(place: Place) -> dict[str, Dead]:
    """Return the dead letters by hold key."""
    rows = place.host.run(
        "select hold_key, attempt, failure_class, failure_message "
        f"from {place.prefix}operation where state = 'dead'"
    )
    return {key: Dead(*rest) for key, *rest in rows}


def attempts(place: Place) -> Counter[str]:
    """Count the rows of failed attempts by hold key of open operations."""
    rows = place.host.run(
        f"select o.hold_key, count(*) from {place.prefix}operation o "
        f"join {place.prefix}attempt a on a.operation_id = o.id group by o.hold_key"
    )
    return Counter(dict(rows))
