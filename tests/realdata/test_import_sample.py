"""The synthesised sample through `freehold hold import`, and released in each mode."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from freehold.domain.rules import Mode
from tests.e2e.inprocess import Program
from tests.realdata.bookings import SAMPLE
from tests.realdata.holds_file import write_holds
from tests.realdata.import_evidence import check_imported, check_released, is_done
from tests.realdata.imports import attach, import_all
from tests.servers import Servers, find_debian_major


@pytest.fixture
def program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Program]:
    """The program in this process, which takes its signals back at the end."""
    wanted = (signal.SIGTERM, signal.SIGINT)
    ours = [signal.getsignal(one) for one in wanted]
    yield Program(tmp_path, monkeypatch, capsys)
    for one, handler in zip(wanted, ours, strict=True):
        signal.signal(one, handler)


def test_the_file_has_holds_of_every_kind(tmp_path: Path) -> None:
    holds = write_holds(SAMPLE, tmp_path / "bookings.csv")
    kinds = Counter((hold.status, hold.lapsed) for hold in holds)
    assert set(kinds) == {
        ("held", True),
        ("held", False),
        ("confirmed", False),
        ("cancelled", False),
    }


@pytest.mark.parametrize("kind", ["sqlite", f"postgres{find_debian_major()}"])
def test_the_sample_is_imported_and_released(
    kind: str, servers: Servers, program: Program, tmp_path: Path
) -> None:
    server = None if kind == "sqlite" else servers.read(kind)
    url = f"sqlite:///{tmp_path / 'all.db'}" if server is None else server.create_database()
    imported = import_all(program, url, server, SAMPLE, tmp_path)
    check_imported(imported)
    for mode in Mode:
        with imported.copied(tmp_path, mode) as copy:
            attach(program, copy, imported.holds)
            assert program("run", "--until-idle").code == 0
            assert is_done(copy)
            check_released(program, copy, mode, imported.holds)
    if server is not None:
        server.drop_database(url)
