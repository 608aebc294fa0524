"""119,390 real bookings through `freehold hold import`, and released by the service; at length in each mode.

`pytest -m proof tests/realdata/test_import.py -s` prints how fast that was.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import psutil
import pytest

from freehold.domain.rules import Mode
from tests.e2e.command import run_for
from tests.realdata.bookings import FILE, FOLDER_VARIABLE, find_file
from tests.realdata.fleet import service
from tests.realdata.import_evidence import (
    check_imported,
    check_released,
    is_done,
    releases_a_second,
)
from tests.realdata.imports import Imported, attach, import_all
from tests.servers import Servers, find_debian_major

pytestmark = [pytest.mark.proof, pytest.mark.timeout(900)]

LINES = 119_390
PATIENCE_SECONDS = 600
LOOK_SECONDS = 0.5
IS_LONG = os.environ.get("FREEHOLD_PROOF") == "long"  # each releases the sample in `make test`
POSTGRES = f"postgres{find_debian_major()}"
FLEETS = {"sqlite": ("scan,work",), POSTGRES: ("scan", "work", "work")}


@pytest.fixture(scope="module", params=FLEETS)
def kind(request: pytest.FixtureRequest) -> str:
    """Each database in turn."""
    return str(request.param)


@pytest.fixture(scope="module")
def imported(
    kind: str, servers: Servers, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Imported | None]:
    """A database with every booking; None where the file of the bookings is not there."""
    source = find_file()
    if source is None:
        yield None
        return
    folder = tmp_path_factory.mktemp(kind)
    run = partial(run_for, PATIENCE_SECONDS, cwd=folder)
    server = None if kind == "sqlite" else servers.read(kind)
    url = f"sqlite:///{folder / 'all.db'}" if server is None else server.create_database()
    yield import_all(run, url, server, source, folder)
    if server is not None:
        server.drop_database(url)


def test_every_booking_is_imported_once(
    imported: Imported | None, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if imported is None:
        with capsys.disabled():
            print(f"\nreal bookings NOT imported: no {FILE} in {FOLDER_VARIABLE} or ../shared/data")  # noqa: T201
        return
    assert len(imported.holds) == LINES
    check_imported(imported)
    first, again = imported.first_seconds, imported.again_seconds
    print(f"\n{kind}: import {first:.1f} s, {LINES / first:,.0f} lines/s; again {again:.1f} s")  # noqa: T201


@pytest.mark.parametrize("kind", FLEETS if IS_LONG else [POSTGRES], indirect=True, scope="module")
@pytest.mark.parametrize("mode", Mode if IS_LONG else [Mode.RESERVATION])
def test_the_service_releases_all_that_lapsed(
    imported: Imported | None, kind: str, mode: Mode, tmp_path: Path
) -> None:
    if imported is None:
        return
    run = partial(run_for, PATIENCE_SECONDS, cwd=tmp_path)
    with imported.copied(tmp_path, mode) as url:
        attach(run, url, imported.holds)
        with service(tmp_path, FLEETS[kind]) as processes:
            while not is_done(url):
                look_again(processes)
        check_released(run, url, mode, imported.holds)
        print(f"\n{kind}: {mode} {releases_a_second(url):,.0f} holds/s")  # noqa: T201


def look_again(processes: Sequence[psutil.Process]) -> None:
    """Wait a little, in which no service may end."""
    gone, _ = psutil.wait_procs(processes, timeout=LOOK_SECONDS)
    assert not gone, "a service ended by itself"
