"""The README's commands work as they stand there."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from tests.e2e.command import environment

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks() -> list[str]:
    return BLOCK.findall((ROOT / "README.md").read_text())


def run(script: str, cwd: Path, **more: str) -> str:
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=cwd,
        env=environment(**more),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_the_two_commands_are_make_demo_and_make_test() -> None:
    assert blocks()[0].split("\n")[:2] == ["make demo", "make test"]


def test_make_demo_ends_by_itself_and_says_where_to_look() -> None:
    out = run("make demo FOR=9", ROOT)
    assert "freehold.toml status" in out
    expired = re.search(r"(\d+) expired", out)
    assert expired is not None
    assert int(expired[1]) > 0


def test_attach_your_own_table(tmp_path: Path) -> None:
    out = [run(block, tmp_path) for block in blocks()[1:]]
    assert "released 60 holds" in out[-2]
    assert "Room 12" in out[-1]
