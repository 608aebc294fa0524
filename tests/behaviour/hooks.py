"""Handlers under test: they note what they are given, and do to some keys what they are told."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from freehold.adapters.handlers import PythonHandler
from freehold.adapters.system import Onwards, StopRequest, SystemClock, SystemDice
from freehold.application.handling import Handling
from freehold.application.work import Worker
from freehold.domain.rules import HandlerSpec
from tests.behaviour.till import Till, cart, open_table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import timedelta

    from freehold.ports.handlers import ExpiredBatch, ExpiredHold
    from freehold.ports.system import Checkpoint
    from tests.behaviour.place import Place


@dataclass
class Hook:
    """One handler.

    Attributes:
        acts: what to do, with the connection, for a hold of that key.
        batches: the keys of every call, in order.
    """

    acts: Mapping[str, Callable[[Any], object]] = field(default_factory=dict)
    every: Callable[[Any], object] | None = None
    batches: list[list[str]] = field(default_factory=list)
    holds: list[ExpiredHold] = field(default_factory=list)

    def __call__(self, batch: ExpiredBatch) -> None:
        """Note, write a row a hold, and act."""
        self.batches.append([hold.key for hold in batch.holds])
        self.holds += batch.holds
        for hold in batch.holds:
            batch.connection.execute(f"insert into noted values ({int(hold.key)})")
            act = self.acts.get(hold.key, self.every)
            if act is not None:
                act(batch.connection)

    @property
    def calls(self) -> list[str]:
        """Every key of every call."""
        return [key for keys in self.batches for key in keys]


def hooked(place: Place, hook: Hook, limit: timedelta, **changes: Any) -> Till:
    """Open the shared table with a handler on its rule; what it writes is unique by key."""
    open_table(place)
    place.host.run("create table noted (id integer primary key)")
    rule = cart(place, handler=HandlerSpec("tests:hook", limit), **changes)
    till = Till.open(place, rule)
    till.worker = worker_of(till, hook)
    return till


def worker_of(till: Till, hook: Hook, checkpoint: Checkpoint | None = None) -> Worker:
    """Make a worker as a fresh process has it, with the handler loaded."""
    rule = till.rule
    assert rule.handler is not None
    handler = PythonHandler(rule, hook, seconds=rule.handler.time_limit.total_seconds())
    handling = Handling({rule.name: handler}, SystemClock())
    checkpoint = checkpoint or Onwards()
    return Worker(till.ledger, checkpoint, SystemDice(), StopRequest(), handling=handling)


def noted(place: Place) -> list[int]:
    """What handlers wrote, and was committed."""
    return sorted(row[0] for row in place.host.run("select id from noted"))
