"""On SQLite the host application gets as much time to write as we took, whatever became of it."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from freehold.adapters.sql.sqlite import SqliteSession
from freehold.adapters.system import SystemClock

if TYPE_CHECKING:
    from tests.behaviour.place import Place


class _Counting:
    """A host clock that the test moves; notes how long it was asked to wait."""

    def __init__(self) -> None:
        self.now = 0.0
        self.waited: list[float] = []

    def wall(self) -> datetime:
        return SystemClock().wall()

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.waited.append(seconds)


def test_a_pause_follows_every_write_transaction(lite: Place) -> None:
    for end in (SqliteSession.commit, SqliteSession.rollback):
        clock = _Counting()
        session = SqliteSession(lite.target, clock)
        session.begin()
        clock.now += 10
        end(session)
        session.begin()
        session.close()
        assert clock.waited == [0.0, 10.0]


def test_no_pause_follows_a_reading(lite: Place) -> None:
    clock = _Counting()
    session = SqliteSession(lite.target, clock)
    session.begin(read_only=True)
    clock.now += 10
    session.rollback()
    session.begin()
    session.close()
    assert clock.waited == [0.0]
