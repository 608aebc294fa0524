"""The shop that most scenarios play in: one table of holds, one of stock, one rule."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from tests.stage import NOON, wall

if TYPE_CHECKING:
    from collections.abc import Callable

    from freehold.domain.rules import Rule
    from freehold.ports.system import Boundary
    from tests.stage import Stage

TABLES = """
create table stock (
    id integer primary key, free integer not null, constraint stock_sane check (free >= 0));
create table hold (
    id integer primary key, tenant_id integer, status varchar(20) not null, token varchar(40),
    due_at timestamp, paid_at timestamp, created_via varchar(20), code varchar(20) unique,
    qty integer not null, stock_id integer references stock (id));
"""

CART = """
[[rules]]
name = "cart"
table = "hold"
key = ["id"]
tenant = { column = "tenant_id" }
held = [{ status = "held" }]
confirmed = [{ status = "paid" }]
cancelled = [{ status = "cancelled" }]
due = { column = "due_at", kind = "naive", zone = "UTC" }
fence = ["token"]
expire = { set = { status = "expired" } }
carry = ["stock_id", "qty"]
"""

GIVE_BACK = """
[[rules.also]]
sql = "update stock set free = free + :qty where id = :stock_id"
rows = "1"
lock_by = ":stock_id"
"""


def open_shop(stage: Stage, toml: str = CART) -> Rule:
    """Make the tables, one stock row of nothing, and attach the rule."""
    stage.host.script(TABLES)
    stage.host.insert("stock", [{"id": 1, "free": 0}])
    return stage.attach(toml)


def held(number: int, due_in: timedelta | None = timedelta(minutes=-1), **more: Any) -> Any:
    """Return one row of `hold`; its due counts from noon."""
    due_at = None if due_in is None else wall(NOON + due_in)
    row = {
        "id": number,
        "tenant_id": 1,
        "status": "held",
        "token": f"t{number}",
        "due_at": due_at,
        "paid_at": None,
        "created_via": "checkout",
        "code": None,
        "qty": 1,
        "stock_id": 1,
    }
    return {**row, **more}


def add(stage: Stage, *rows: Any) -> None:
    """Insert rows of `hold`."""
    stage.host.insert("hold", list(rows))


def statuses(stage: Stage) -> dict[int, str]:
    """Return every hold's status."""
    return dict(stage.host.run("select id, status from hold order by id"))


def free(stage: Stage) -> int:
    """Return what the stock row counts."""
    return int(stage.host.run("select free from stock where id = 1")[0][0])


class Killed(BaseException):
    """The process is gone; nothing in Freehold may catch it."""


@dataclass
class At:
    """A checkpoint that acts the first time that a boundary is reached."""

    boundary: Boundary
    act: Callable[[], None]
    reached: list[Boundary] = field(default_factory=list)

    def reach(self, boundary: Boundary) -> None:
        """Act once."""
        first = boundary is self.boundary and boundary not in self.reached
        self.reached.append(boundary)
        if first:
            self.act()


def die() -> None:
    """End the pass as a killed process would."""
    raise Killed


def kill_itself() -> None:
    """End this process by SIGKILL."""
    os.kill(os.getpid(), signal.SIGKILL)


def killed_at(stage: Stage, boundary: Boundary) -> bool:
    """Drain in a forked process that is killed at a boundary; tell whether it was reached."""
    child = os.fork()
    if child == 0:
        try:
            stage.forget()
            stage.checkpoint = At(boundary, kill_itself)
            stage.drain()
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
