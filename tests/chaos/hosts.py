"""Host applications in processes of their own, which act at random and tell only their journal.

*Invariants*: every act is one conditional statement that names the hold token, as the how-to for
applications says; what a host does not commit it does not count.
"""

from __future__ import annotations

import fcntl
import os
import random
import signal
import sqlite3
import time
from abc import ABC, abstractmethod
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import psycopg

from freehold import holds
from freehold.testing.backdoor import BackDoor
from tests.chaos.journal import (
    CANCELLED,
    CONFIRMED,
    DELETED,
    HELD,
    RENEWED,
    REPLACED,
    Act,
    End,
    Granting,
    Journal,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from freehold.domain.rules import Rule
    from freehold.testing.forking import Wire

BUSY = (
    psycopg.errors.DeadlockDetected,
    psycopg.errors.LockNotAvailable,
    holds.DatabaseBusy,
    sqlite3.OperationalError,
)
PATIENCE_MS = 1_000  # of a host on SQLite, which must never see it end
LINGER_SECONDS = {"sqlite": 0.05, "postgres": 0.25}
PAUSE_SECONDS = 0.008  # between transactions, at most, so that the machine serves others too
SPAN_SECONDS = 1.2  # of a hold, at most
ROLLED_BACK_OF_100 = 12
KILLED_OF_1000 = 4
LINGERING_OF_100 = 8
CROSSING_OF_100 = 15
TENANTS = ("anna", "bela", "cleo")
NIGHTS = 20
FIRST_NIGHT = datetime(2031, 5, 6, 14, tzinfo=UTC)


def on_stop(act: Callable[[], object]) -> None:
    """Act at a SIGTERM, also at one that came before."""
    signal.signal(signal.SIGTERM, lambda *_: act())
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])


@dataclass
class Host(ABC):
    """One process; `number` also names its incarnation, so that no id comes twice."""

    url: str
    folder: Path
    number: int
    dice: random.Random
    rule: Rule
    turns: int = 0
    stopping: bool = False
    door: BackDoor = field(init=False)
    journal: Journal = field(init=False)

    def run(self, wire: Wire) -> int:
        """Act until SIGTERM; return how many transactions there were."""
        on_stop(lambda: setattr(self, "stopping", True))
        self.journal = Journal(self.folder / f"host-{self.number}.jsonl")
        with BackDoor(self.url) as self.door:
            if self.door.dialect == "sqlite":
                self.door.rows(f"pragma busy_timeout = {PATIENCE_MS}")
            while not self.stopping:
                self.turns += 1
                with self._alone():
                    self._turn(f"{self.number}-{self.turns}")
                time.sleep(self.dice.uniform(0, PAUSE_SECONDS))
        return self.turns

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Let one host at a time write on SQLite, so that only Freehold can make it wait."""
        if self.door.dialect != "sqlite":
            yield
            return
        with (self.folder / "hosts.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _turn(self, number: str) -> None:
        """Run one transaction; the database may ask to repeat it, which the next one does."""
        try:
            self.door.execute("begin immediate" if self.door.dialect == "sqlite" else "begin")
            self._fill(number)
        except BUSY as error:
            self._give_up(number, error)

    def _give_up(self, number: str, error: Exception) -> None:
        locked = self.door.dialect == "sqlite"
        self.journal.note("locked" if locked else "repeated", number, str(error))
        if not locked or self.door.connection.in_transaction:
            self.door.execute("rollback")

    def _fill(self, number: str) -> None:
        self.door.execute("insert into mark values (:number)", number=number)
        acts: list[Act] = []
        if self.dice.randrange(100) < CROSSING_OF_100:
            # Whoever releases takes the stock behind the hold: this is a deadlock in the making.
            stock = self.dice.randint(1, 2)
            self.door.execute("update stock set free = free where id = :id", id=stock)
        for place in range(self.dice.randint(1, 3)):
            acts += self.act(f"{number}-{place}")
            self._perhaps_die()
        if self.dice.randrange(100) < LINGERING_OF_100:
            time.sleep(self.dice.uniform(0, LINGER_SECONDS[self.door.dialect]))
        self.journal.intend(number, acts)
        self._perhaps_die()
        keep = self.dice.randrange(100) >= ROLLED_BACK_OF_100
        self.door.execute("commit" if keep else "rollback")
        self._perhaps_die()
        self.journal.note("committed" if keep else "rolled back", number)

    def _perhaps_die(self) -> None:
        if self.dice.randrange(1000) < KILLED_OF_1000:
            os.kill(os.getpid(), signal.SIGKILL)

    @abstractmethod
    def act(self, token: str) -> list[Act]:
        """Do one thing; return what it comes to if it is committed."""

    def span(self) -> timedelta:
        """Return how long something is held."""
        return timedelta(seconds=self.dice.uniform(0.01, SPAN_SECONDS))

    def soon(self) -> datetime:
        """Return an end for a hold."""
        return datetime.now(UTC) + self.span()


class Shop(Host):
    """Writes a table of its own."""

    made: int = 0

    def act(self, token: str) -> list[Act]:
        """Make a hold, or change one."""
        if self.dice.randrange(100) < 40:
            return self._make(token)
        row = self._pick()
        if row is None:
            return []
        return self._change(row, token) if row[2] == HELD else self._replace(row, token)

    def _make(self, token: str) -> list[Act]:
        self.made += 1
        new = Granting(
            id=self.number * 100_000 + self.made,
            token=token,
            tenant=self.dice.choice(TENANTS),
            until=self.soon().isoformat(),
            stock_id=self.dice.randint(1, 2),
            quantity=self.dice.randint(1, 3),
        )
        self.door.execute(
            "insert into reservation values (:id, :tenant, 'held', :token, :until, null, :stock,"
            " :quantity)",
            id=new.id,
            tenant=new.tenant,
            token=token,
            until=self.door.local(datetime.fromisoformat(new.until)),
            stock=new.stock_id,
            quantity=new.quantity,
        )
        return [new]

    def _pick(self) -> tuple[Any, ...] | None:
        """Read a row of any host's, rather a young one."""
        base = 100_000 * self.dice.randint(max(0, self.number - 3), self.number)
        first = base + max(0, self.made - self.dice.randint(0, 40))
        rows = self.door.rows(
            "select id, token, status, tenant, stock_id, quantity from reservation"
            " where id >= :first order by id limit 1",
            first=first,
        )
        return rows[0] if rows else None

    def _change(self, row: tuple[Any, ...], token: str) -> list[Act]:
        number, old, *_ = row
        match self.dice.choice((RENEWED, RENEWED, CONFIRMED, CANCELLED, DELETED)):
            case "renewed":
                return self._grant_anew(row, token, RENEWED)
            case "deleted":
                # Only what never expired: the pieces of one that did are looked up by its row.
                done = self.door.execute(
                    "delete from reservation where id = :id and token = :old and status = 'held'"
                    " and not exists (select 1 from history h where h.reservation_id = :id"
                    " and h.new_status = 'expired')",
                    id=number,
                    old=old,
                )
                return [End(number, old, DELETED)] if done else []
            case how:
                done = self.door.execute(
                    "update reservation set status = :how"
                    " where id = :id and token = :old and status = 'held'",
                    how=how,
                    id=number,
                    old=old,
                )
                return [End(number, old, how)] if done else []

    def _replace(self, row: tuple[Any, ...], token: str) -> list[Act]:
        return [] if row[2] == CONFIRMED else self._grant_anew(row, token, REPLACED)

    def _grant_anew(self, row: tuple[Any, ...], token: str, how: str) -> list[Act]:
        number, old, status, tenant, stock_id, quantity = row
        until = self.soon()
        done = self.door.execute(
            "update reservation set status = 'held', released_at = null, token = :token,"
            " hold_until = :until where id = :id and token = :old and status = :status",
            token=token,
            until=self.door.local(until),
            id=number,
            old=old,
            status=status,
        )
        new = Granting(number, token, tenant, until.isoformat(), stock_id, quantity)
        return [End(number, old, how), new] if done else []


class Hotel(Host):
    """Has no table: calls `freehold.holds` inside its own transactions."""

    def act(self, token: str) -> list[Act]:
        """Grab a stay, or change a hold; a refusal leaves the transaction as it was."""
        try:
            if self.dice.randrange(100) < 60:
                return self._grab()
            return self._change()
        except (holds.RefusedByState, holds.UnknownHold):
            return []

    def _grab(self) -> list[Act]:
        unit = self.dice.choice(self.units)
        first = FIRST_NIGHT + timedelta(days=self.dice.randrange(NIGHTS))
        granted = holds.hold(
            self.door.connection,
            tenant=TENANTS[unit % len(TENANTS)],
            unit=unit,
            window=self.span(),
            starts_at=first,
            ends_at=first + timedelta(days=self.dice.randint(1, 2)),
            rule=self.rule,
        )
        return [_granting(granted.hold)]

    @property
    def units(self) -> range:
        """The ids of the units."""
        return range(1, 1 + 2 * len(TENANTS))

    def _change(self) -> list[Act]:
        last = self.door.one("select coalesce(max(id), 0) from {s}hold")
        rows = self.door.rows(
            "select id, cast(hold_token as text) from {s}hold where id >= :first"
            " and status in ('held', 'confirmed') order by id limit 1",
            first=last - self.dice.randint(0, 60),
        )
        if not rows:
            return []
        ((number, token),) = rows
        match self.dice.choice((RENEWED, RENEWED, CONFIRMED, CANCELLED, CANCELLED)):
            case "renewed":
                new = holds.renew(self.door.connection, token, window=self.span(), rule=self.rule)
                return [End(number, token, RENEWED), _granting(new)]
            case "confirmed":
                holds.confirm(self.door.connection, token, rule=self.rule)
                return [End(number, token, CONFIRMED)]
            case _:
                holds.cancel(self.door.connection, token, rule=self.rule)
                return [End(number, token, CANCELLED)]


def _granting(hold: holds.Hold) -> Granting:
    until = hold.hold_until.isoformat()
    return Granting(hold.id, str(hold.token), hold.tenant, until, hold.unit_id)
