"""Run the command line inside the test's process: a process of its own costs most of a second."""

from __future__ import annotations

import io
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from freehold.entrypoints.cli.main import main
from tests.e2e.command import Ended


@dataclass(frozen=True, slots=True)
class Program:
    """The program, in a folder of its own."""

    folder: Path
    _patch: pytest.MonkeyPatch
    _capture: pytest.CaptureFixture[str]
    columns: int = 160

    def __call__(self, *words: str, stdin: bytes = b"") -> Ended:
        """Run a command and return how it ended."""
        with self._patch.context() as patch:
            patch.chdir(self.folder)
            patch.setattr(sys, "argv", ["freehold", *words])
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
            patch.setenv("NO_COLOR", "1")
            patch.setenv("COLUMNS", str(self.columns))
            self._capture.readouterr()
            with pytest.raises(SystemExit) as ended:
                main()
        out, err = self._capture.readouterr()
        return Ended(int(ended.value.code or 0), out, err)

    def write(self, name: str, *lines: str) -> str:
        """Write a file of lines into the folder; return its name."""
        (self.folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return name
