"""Run the real command in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROGRAM = Path(sys.executable).parent / "freehold"
LIMIT_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Ended:
    """A command that ended."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        """Return what it printed as JSON."""
        return json.loads(self.out)

    @property
    def sentence(self) -> str:
        """Return its one line of error, and insist that it is one, without a traceback."""
        assert "Traceback" not in self.err
        lines = self.err.strip().splitlines()
        assert len(lines) == 1, self.err
        return lines[0]


def environment(**more: str) -> dict[str, str]:
    """Return this process's environment without settings of ours, and with the program found."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("FREEHOLD_")}
    path = f"{PROGRAM.parent}{os.pathsep}{own.get('PATH', '')}"
    return {**own, "PATH": path, "NO_COLOR": "1", "COLUMNS": "120", **more}


def freehold(*arguments: str, cwd: Path, **more: str) -> Ended:
    """Run `freehold` and wait for its end."""
    return run_for(LIMIT_SECONDS, *arguments, cwd=cwd, **more)


def run_for(seconds_max: float, *arguments: str, cwd: Path, **more: str) -> Ended:
    """Run `freehold` and wait for its end, at most so long."""
    done = subprocess.run(
        [PROGRAM, *arguments],
        cwd=cwd,
        env=environment(**more),
        capture_output=True,
        text=True,
        timeout=seconds_max,
        check=False,
    )
    return Ended(done.returncode, done.stdout, done.stderr)
