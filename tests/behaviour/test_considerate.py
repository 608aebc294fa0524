"""On SQLite the host application gets time to write, however many connections of ours work."""

from __future__ import annotations

import os
import signal
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from freehold.adapters.sql.session import Limits
from freehold.adapters.sql.sqlite import SqliteSession
from freehold.adapters.sql.write_turn import (
    GAP_SECONDS,
    PATIENCE_SECONDS,
    STRETCH_SECONDS,
    SUFFIX,
    WriteTurn,
)
from freehold.adapters.system import SystemClock
from freehold.domain.errors import DatabaseBusy
from freehold.testing.forking import fork

if TYPE_CHECKING:
    from collections.abc import Callable

    from freehold.testing.forking import Wire
    from tests.behaviour.place import Place

LENGTH_SECONDS = 0.0625  # of a write; exact in binary, as are its sums


class _Counting:
    """A host clock that moves as the test says, and by every wait."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.waited_seconds = 0.0

    def wall(self) -> datetime:
        return SystemClock().wall()

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.waited_seconds += seconds
        self.now += seconds


@pytest.fixture
def clock() -> _Counting:
    return _Counting()


@pytest.fixture
def session(
    lite: Place, clock: _Counting, request: pytest.FixtureRequest
) -> Callable[[], SqliteSession]:
    """Make sessions of one file under one clock, before anybody took a turn."""
    Path(lite.target + SUFFIX).unlink(missing_ok=True)

    def make() -> SqliteSession:
        made = SqliteSession(lite.target, clock, limits=Limits(lock_timeout_ms=1))
        request.addfinalizer(made.close)
        return made

    return make


def _write(session: SqliteSession, clock: _Counting, seconds: float = LENGTH_SECONDS) -> float:
    """Write for so long; return how long the session waited before."""
    before = clock.waited_seconds
    session.begin()
    waited = clock.waited_seconds - before
    clock.now += seconds
    session.commit()
    return waited


@pytest.mark.parametrize("end", [SqliteSession.commit, SqliteSession.rollback, SqliteSession.close])
def test_a_pause_follows_every_write_however_it_ended(
    session: Callable[[], SqliteSession], clock: _Counting, end: Callable[[SqliteSession], None]
) -> None:
    first, second = session(), session()
    first.begin()
    clock.now += 10
    end(first)
    assert _write(second, clock) == 10.0


def test_all_connections_share_the_pauses(
    session: Callable[[], SqliteSession], clock: _Counting
) -> None:
    first, second = session(), session()
    assert _write(first, clock) == 0.0
    assert _write(second, clock) == LENGTH_SECONDS
    assert _write(first, clock) == LENGTH_SECONDS


def test_a_gap_longer_than_the_hosts_polls_follows_a_stretch_of_work(
    session: Callable[[], SqliteSession], clock: _Counting
) -> None:
    both = [session(), session()]
    worked_from = clock.now
    for turn in range(200):
        waited = _write(both[turn % 2], clock)
        if waited >= GAP_SECONDS - 1e-9:
            worked_from = clock.now - LENGTH_SECONDS
        assert clock.now - worked_from <= STRETCH_SECONDS + 2 * LENGTH_SECONDS


def test_a_rest_counts_as_a_gap(session: Callable[[], SqliteSession], clock: _Counting) -> None:
    ours = session()
    for _ in range(50):
        clock.now += GAP_SECONDS + LENGTH_SECONDS
        assert _write(ours, clock) == 0.0


def test_no_pause_follows_a_reading(
    lite: Place, session: Callable[[], SqliteSession], clock: _Counting
) -> None:
    ours = session()
    ours.begin(read_only=True)
    clock.now += 10
    ours.rollback()
    assert not Path(lite.target + SUFFIX).exists()
    assert _write(ours, clock) == 0.0


@pytest.mark.timeout(method="signal")  # no thread may be alive at a fork
def test_a_stopped_process_with_the_turn_is_passed_by_and_a_killed_one_frees_it(
    lite: Place, session: Callable[[], SqliteSession], clock: _Counting
) -> None:
    def stop_in_turn(_: Wire) -> None:
        WriteTurn(lite.target, SystemClock()).take()
        os.kill(os.getpid(), signal.SIGSTOP)

    with fork(stop_in_turn) as child:
        child.wait_until_stopped()
        ours, others = session(), session()
        assert _write(ours, clock) == pytest.approx(PATIENCE_SECONDS, abs=0.1)
        assert _write(ours, clock) == pytest.approx(LENGTH_SECONDS), "it is known by now"
        assert _write(others, clock) == pytest.approx(PATIENCE_SECONDS, abs=0.1)
        child.kill()
        assert child.end().was_killed
    clock.now += 10
    assert _write(ours, clock) == 0.0


def test_who_was_passed_by_once_is_waited_for_again(
    lite: Place, session: Callable[[], SqliteSession], clock: _Counting
) -> None:
    ours, slow = session(), WriteTurn(lite.target, clock)
    for _ in range(2):
        slow.take()
        assert _write(ours, clock) == pytest.approx(PATIENCE_SECONDS, abs=0.1)
        slow.leave()
        clock.now += 10
        assert _write(ours, clock) == 0.0
        clock.now += 10
    slow.close()


def test_a_refused_beginning_gives_the_turn_back(
    session: Callable[[], SqliteSession], clock: _Counting, lite: Place
) -> None:
    hasty, ours = SqliteSession(lite.target, clock, considerate=False), session()
    hasty.begin()
    with pytest.raises(DatabaseBusy):
        ours.begin()
    hasty.close()
    assert _write(session(), clock) == 0.0


def test_what_an_earlier_boot_left_delays_nobody(
    session: Callable[[], SqliteSession], clock: _Counting
) -> None:
    _write(session(), clock, 10)
    clock.now = 5.0
    assert _write(session(), clock) == 0.0


def test_the_file_is_for_those_who_may_use_the_database(
    lite: Place, session: Callable[[], SqliteSession], clock: _Counting
) -> None:
    Path(lite.target).chmod(0o640)
    _write(session(), clock)
    file = Path(lite.target + SUFFIX).stat()
    assert file.st_mode & 0o777 == 0o640
    assert file.st_uid == Path(lite.target).stat().st_uid


def test_a_file_that_cannot_be_opened_leaves_a_connection_its_own_pauses(
    lite: Place, session: Callable[[], SqliteSession], clock: _Counting
) -> None:
    Path(lite.target + SUFFIX).mkdir()
    ours = session()
    assert _write(ours, clock) == 0.0
    assert _write(ours, clock) == LENGTH_SECONDS
