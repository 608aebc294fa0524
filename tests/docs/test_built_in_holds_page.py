"""The pages on built-in holds: the how-to runs as it stands, the reference names every column."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from freehold.domain.inventory_text import OPTIONAL, REQUIRED
from tests.e2e.command import environment

ROOT = Path(__file__).parents[2]
HOW_TO = ROOT / "docs" / "how-to" / "built-in-holds.md"
IMPORT = ROOT / "docs" / "reference" / "import.md"
BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.proof  # twenty processes
def test_the_how_to_runs(tmp_path: Path) -> None:
    script = "".join(BLOCK.findall(HOW_TO.read_text()))
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for said in (
        "still held: True\nconfirmed\n",
        "3 new, 0 there already, 0 rejected",
        "0 new, 3 there already, 0 rejected",
        "holds: 2 holds are due",
        "released 2 holds",
        "All is well.",
    ):
        assert said in done.stdout, said


def test_the_reference_names_every_column() -> None:
    for kind, required in REQUIRED.items():
        section = IMPORT.read_text().partition(f"### {kind} import")[2].partition("\n#")[0]
        found = re.findall(r"^\| `(\w+)` \| (\w+) \|", section, re.MULTILINE)
        wanted = {
            **dict.fromkeys(required, "required"),
            **dict.fromkeys(OPTIONAL[kind], "optional"),
        }
        assert dict(found) == wanted
