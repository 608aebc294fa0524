"""The host application of the demonstration: a shop that knows nothing of Freehold.

It runs as a process of its own and does what a real shop does to its own table: it makes holds,
renews, confirms and cancels them, each by one conditional UPDATE that names the hold token.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
from datetime import timedelta
from pathlib import Path

from freehold.adapters.system import StopRequest, SystemClock, SystemDice
from freehold.entrypoints.signals import on_signals

TABLE = """
create table carts (
    id integer primary key,
    shop text not null,
    seat text not null,
    status text not null default 'held',
    hold_token text not null,
    hold_until text not null,
    paid_at text,
    released_at text
)
"""
INDEX = "create index carts_due on carts (hold_until) where status = 'held'"
HOLD = "insert into carts (shop, seat, hold_token, hold_until) values (?, ?, ?, ?) returning id"
RENEW = (
    "update carts set hold_token = ?, hold_until = ? "
    "where id = ? and hold_token = ? and status = 'held' and hold_until > ?"
)
CONFIRM = (
    "update carts set status = 'confirmed', paid_at = ? "
    "where id = ? and hold_token = ? and status = 'held' and hold_until > ?"
)
CANCEL = "update carts set status = 'cancelled' where id = ? and hold_token = ? and status = 'held'"

SHOPS = ("harbour", "old town", "lakeside")
WINDOW = timedelta(seconds=6)
PAUSE_SECONDS = 0.25
RENEW_BELOW, CONFIRM_BELOW, CANCEL_BELOW = 0.3, 0.6, 0.75  # draws in [0, 1); the rest lapses


def make_table(path: Path) -> None:
    """Make the shop's database with its table and the index on its due column."""
    path.touch(mode=0o600)
    with sqlite3.connect(path) as connection:
        connection.execute("pragma journal_mode=wal")
        connection.execute(TABLE)
        connection.execute(INDEX)
    connection.close()


class Shop:
    """Makes holds and does something to some of them; the others are left to lapse."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, timeout=5, isolation_level=None)
        self._clock = SystemClock()
        self._dice = SystemDice()
        self._open: list[tuple[int, str]] = []

    def step(self) -> None:
        """Make one hold, and renew, confirm or cancel another."""
        self._hold()
        if len(self._open) > len(SHOPS):
            self._touch(*self._open.pop(int(self._dice.luck() * len(self._open))))
        del self._open[:-12]

    def _now(self, later: timedelta = timedelta(0)) -> str:
        return (self._clock.wall() + later).strftime("%Y-%m-%d %H:%M:%S.%f")

    def _hold(self) -> None:
        shop = SHOPS[int(self._dice.luck() * len(SHOPS))]
        seat = f"{'ABCDEFGH'[int(self._dice.luck() * 8)]}{1 + int(self._dice.luck() * 30)}"
        token = self._dice.name()
        row = self._connection.execute(HOLD, (shop, seat, token, self._now(WINDOW))).fetchone()
        self._open.append((row[0], token))

    def _touch(self, key: int, token: str) -> None:
        luck, now = self._dice.luck(), self._now()
        if luck < RENEW_BELOW:
            new = self._dice.name()
            renewed = self._connection.execute(RENEW, (new, self._now(WINDOW), key, token, now))
            if renewed.rowcount:
                self._open.append((key, new))
        elif luck < CONFIRM_BELOW:
            self._connection.execute(CONFIRM, (now, key, token, now))
        elif luck < CANCEL_BELOW:
            self._connection.execute(CANCEL, (key, token))

    def close(self) -> None:
        """Close the shop."""
        self._connection.close()


def main() -> None:
    """Run the shop on the database named first until SIGTERM, or until its parent is gone."""
    stop = StopRequest()
    parent = os.getppid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal's whole group; the demo decides
    with on_signals(stop.stop, [signal.SIGTERM]):
        shop = Shop(Path(sys.argv[1]))
        while not stop.wait(PAUSE_SECONDS) and os.getppid() == parent:
            shop.step()
        shop.close()


if __name__ == "__main__":
    main()
