"""The turn in which our connections to one SQLite file write, so that the host application gets in.

A connection that waits for SQLite's write lock polls, and its polls come at most 100 ms apart. Pauses
that each connection takes by itself may all fall between two polls, and those of several connections
overlap. So all connections of ours, of all threads and processes, take turns by a file beside the
database: an flock says who writes, its content says until when nobody of ours does.

*Invariants*: a write is followed by a pause as long as itself, in which nobody of ours begins one. Once
we wrote and paused for `STRETCH_SECONDS`, the pause is longer than the longest time between two polls,
so one waiting connection of the host gets in. Nobody holds the flock in a pause, so that a process
which is stopped there holds up nobody; a killed one frees it.
*Limits*: a single write that is longer than the host's patience (a handler's) cannot be shared out.
Connections of the host that wait for one another meet in the pauses too: there chance decides. Where the
file cannot be opened (it is another user's), a connection knows its own pauses only.
"""

from __future__ import annotations

import fcntl
import os
import struct
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from pathlib import Path

from freehold.ports.system import HostClock

SUFFIX = "-freehold-turn"
# Two polls are at most 0.1 s apart; half of that besides, for a scheduler that wakes the host late.
# Source: `delays` of sqliteDefaultBusyCallback in SQLite's main.c: 1, 2, 5, ... 50, 50, 100 ms.
GAP_SECONDS = 0.15
STRETCH_SECONDS = 0.3  # with its last write and the gap under 0.5 s: two gaps a second
PATIENCE_SECONDS = 2.0  # with one who holds the turn and ends nothing; he may have been stopped
POLL_SECONDS = 0.005  # a small part of a write, which aims at 20 ms
_LAYOUT = struct.Struct("<ddd")


@dataclass(frozen=True, slots=True)
class LastWrite:
    """What the file says, in seconds of the clock that all processes of the host share.

    Attributes:
        ended_at: when somebody of ours last ended a write.
        free_at: when the next one may begin.
        worked_from: since when there was no gap in which the host is sure to get in.
    """

    ended_at: float = -inf
    free_at: float = -inf
    worked_from: float = -inf

    def pause_left(self, now: float) -> float:
        """Return how many seconds to wait yet; a write that is still to end is of an earlier boot."""
        return max(0.0, self.free_at - now) if self.ended_at <= now else 0.0

    def followed_by(self, began_at: float, ended_at: float) -> LastWrite:
        """Return what is to be written after another write."""
        rested = not self.ended_at <= began_at < self.ended_at + GAP_SECONDS
        worked_from = began_at if rested else min(self.worked_from, began_at)
        pause_seconds = ended_at - began_at
        if ended_at - worked_from >= STRETCH_SECONDS:
            pause_seconds = max(pause_seconds, GAP_SECONDS)
        return LastWrite(ended_at, ended_at + pause_seconds, worked_from)


class WriteTurn:
    """One connection's part in the turns of its file."""

    def __init__(self, path: str, host_clock: HostClock) -> None:
        self._path = os.path.realpath(path)  # as SQLite names its own files beside the database
        self._clock = host_clock
        self._file: int | None = None
        self._own = LastWrite()
        self._began_at: float | None = None
        self._seen: LastWrite | None = None
        self._patient_until = 0.0
        self._stuck = False

    def take(self) -> None:
        """Wait until nobody of ours writes and the last one's pause is over.

        Who holds the turn for long and ends nothing is passed by: if he holds SQLite's lock too, the
        caller meets that.
        """
        self._open()
        self._seen = None
        while True:
            self._clock.sleep(self._pause_left())
            if self._lock():
                if not self._pause_left():
                    self._stuck = False
                    return
                self._unlock()
            elif self._lost_patience():
                return
            else:
                self._clock.sleep(POLL_SECONDS)

    def begun(self) -> None:
        """Note that SQLite's write lock is ours: from now on the host waits."""
        self._began_at = self._clock.monotonic()

    def leave(self) -> None:
        """Give the turn back, and have everybody of ours pause if the write had begun.

        Again: nothing.
        """
        if self._began_at is not None:
            ended_at = self._clock.monotonic()
            self._own = self._read().followed_by(self._began_at, ended_at)
            self._began_at = None
            if self._file is not None:
                with suppress(OSError):  # a full disk: our own pauses remain
                    os.pwrite(self._file, _LAYOUT.pack(*_fields(self._own)), 0)
        self._unlock()

    def close(self) -> None:
        """Give the turn back and close the file, which stays: others may hold its lock."""
        self.leave()
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _pause_left(self) -> float:
        return self._read().pause_left(self._clock.monotonic())

    def _lost_patience(self) -> bool:
        """Tell whether the turn was not free, and nothing was ended in it, for too long."""
        if not self._stuck:
            now, last = self._clock.monotonic(), self._read()
            if last != self._seen:
                self._seen, self._patient_until = last, now + PATIENCE_SECONDS
            self._stuck = now >= self._patient_until
        return self._stuck

    def _read(self) -> LastWrite:
        if self._file is not None:
            with suppress(OSError):
                raw = os.pread(self._file, _LAYOUT.size, 0)
                if len(raw) == _LAYOUT.size:
                    return LastWrite(*_LAYOUT.unpack(raw))
        return self._own

    def _lock(self) -> bool:
        if self._file is None:
            return True
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:  # a file system without locks
            return True
        return True

    def _unlock(self) -> None:
        if self._file is not None:
            with suppress(OSError):
                fcntl.flock(self._file, fcntl.LOCK_UN)

    def _open(self) -> None:
        if self._file is None:
            with suppress(OSError):
                self._file = _open_beside(self._path)


def _fields(last: LastWrite) -> tuple[float, float, float]:
    return last.ended_at, last.free_at, last.worked_from


def _open_beside(path: str) -> int:
    """Open the file of turns; a new one is for those who may use the database."""
    flags = os.O_RDWR | os.O_NOFOLLOW
    with suppress(FileNotFoundError):
        return os.open(path + SUFFIX, flags)
    database = Path(path).stat()
    file = os.open(path + SUFFIX, flags | os.O_CREAT, 0o600)
    with suppress(OSError):  # another one made it a moment ago
        os.fchmod(file, database.st_mode & 0o666)
        if os.geteuid() == 0:
            os.fchown(file, database.st_uid, database.st_gid)
    return file
