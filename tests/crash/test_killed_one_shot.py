"""A one-shot that is killed holds its successor up no longer than its lease."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from freehold.bootstrap import open_telemetry
from freehold.entrypoints.draining import drain_once
from freehold.ports.system import Boundary
from freehold.settings import load_settings
from freehold.testing.crash import KillAt
from freehold.testing.forking import Wire, run
from tests.e2e.inprocess import Program
from tests.e2e.shop import make_shop, statuses

if TYPE_CHECKING:
    from pathlib import Path

WINDOW = """
mode = "window"

[loops]
lease = "1s"
sweep = "100ms"
heartbeat = "100ms"
"""


def test_the_next_one_takes_a_window_over_when_its_lease_ends(
    tmp_path: Path,
    sqlite_url: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    make_shop(tmp_path, sqlite_url, due_count=3, more=WINDOW)
    program = Program(tmp_path, monkeypatch, capsys)
    assert program("db", "upgrade").code == 0

    def child(wire: Wire) -> None:
        settings = load_settings(tmp_path / "freehold.toml", {})
        checkpoint = KillAt(1, Boundary.LEASE_COMMITTED, wire.tell)
        drain_once(settings, checkpoint, open_telemetry(settings))

    assert run(child).was_killed
    ended = program("run", "--until-idle", "--deadline", "20s", "--json")
    assert (ended.code, ended.data["released"]) == (0, 3)
    assert statuses(sqlite_url)["expired"] == 3
