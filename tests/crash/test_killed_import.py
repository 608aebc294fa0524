"""An import that is killed between, or within, its batches is finished by running it again."""

from __future__ import annotations

from pathlib import Path

import pytest

from freehold.adapters.system import SystemDice
from freehold.application.takeover import HoldLines
from freehold.bootstrap import open_ledger
from freehold.entrypoints.cli.context import Invocation
from freehold.entrypoints.cli.importing import BATCH, import_file
from freehold.ports.system import Boundary
from freehold.settings import load_settings
from freehold.testing.backdoor import BackDoor
from freehold.testing.crash import KillAt
from freehold.testing.forking import Wire, run
from tests.e2e.inprocess import Program

COUNT = 2 * BATCH + 200
HEADER = "tenant,unit,starts_at,ends_at,hold_until"


@pytest.mark.parametrize("boundary", [Boundary.BEFORE_COMMIT, Boundary.COMMITTED])
def test_a_rerun_finishes_it(
    tmp_path: Path,
    database_url: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    boundary: Boundary,
) -> None:
    freehold = Program(tmp_path, monkeypatch, capsys)
    freehold.write("freehold.toml", "[database]", f'url = "{database_url}"', "[holds]")
    lines = [f"t{n % 7},{n},2099-01-01,2099-01-02,2098-01-01" for n in range(COUNT)]
    freehold.write("h.csv", HEADER, *lines)
    assert freehold("db", "upgrade").code == 0

    def child(wire: Wire) -> None:
        settings = load_settings(tmp_path / "freehold.toml", {})
        ledger = open_ledger(settings, checkpoint=KillAt(2, boundary, wire.tell))
        made = HoldLines(SystemDice(), create=True)
        file = str(tmp_path / "h.csv")
        import_file(Invocation(json=True), ledger, file, "hold", made, None, dry_run=False)

    assert run(child).was_killed
    with BackDoor(database_url) as door:
        door.wait_until_alone()
        there = door.one("select count(*) from {s}hold")
    assert 0 < there < COUNT
    ended = freehold("--json", "hold", "import", "h.csv", "--create-units")
    assert (ended.code, ended.data["rejected"]) == (0, 0)
    assert (ended.data["there_already"], ended.data["new"]) == (there, COUNT - there)
    with BackDoor(database_url) as door:
        assert door.one("select count(distinct reference) from {s}hold") == COUNT
        assert door.one("select count(*) from {s}hold") == COUNT
