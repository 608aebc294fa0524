"""The real service over a database: one process scans, others work; their memory is watched."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean

import psutil

from tests.e2e.command import PROGRAM, environment
from tests.realdata.customers import customers_of, rows

POLL_SECONDS = 0.5  # the question counts what is left, which costs the server too
LIMIT_SECONDS = 240
STOP_SECONDS = 30


@contextmanager
def service(folder: Path, roles: Sequence[str]) -> Iterator[list[psutil.Process]]:
    """Run one process for each role, and drain all of them at the end."""
    with (folder / "service.log").open("w") as log:
        started = [
            subprocess.Popen(
                [PROGRAM, "run", "--role", role],
                cwd=folder,
                env=environment(),
                stdout=log,
                stderr=subprocess.STDOUT,
            )
            for role in roles
        ]
        try:
            yield [psutil.Process(one.pid) for one in started]
        finally:
            for one in started:
                one.send_signal(signal.SIGTERM)
            codes = [one.wait(STOP_SECONDS) for one in started]
    assert codes == [0] * len(started), (folder / "service.log").read_text()[-2_000:]


def wait_until_released(url: str, processes: Sequence[psutil.Process]) -> list[list[int]]:
    """Wait until no customer has a lapsed hold left.

    Returns:
        The resident bytes of each process over the time of its work, one list a process.
    """
    end = time.monotonic() + LIMIT_SECONDS
    samples: list[list[int]] = [[] for _ in processes]
    while left := _left(url):
        assert time.monotonic() < end, f"{left} holds are left"
        if rows(url, "select 1 from {s}record limit 1"):
            for process, seen in zip(processes, samples, strict=True):
                seen.append(process.memory_info().rss)
        time.sleep(POLL_SECONDS)
    return samples


def _left(url: str) -> int:
    found = [rows(url, customer.lapsed_by_tenant) for customer in customers_of(url)]
    return sum(count for customer in found for _, count in customer)


def growth(resident: Sequence[int]) -> float:
    """Return the mean of the last third of the samples over that of the first."""
    third = len(resident) // 3
    assert third > 0, "the work ended before memory could be watched"
    return fmean(resident[-third:]) / fmean(resident[:third])
