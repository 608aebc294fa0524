"""The service in a process of its own."""

from __future__ import annotations

import json
import signal
import subprocess
from typing import TYPE_CHECKING, Self

from tests.e2e.command import PROGRAM, environment

if TYPE_CHECKING:
    from pathlib import Path


class Running:
    """`freehold run` in a process of its own; its journal is the signal that tests wait for."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self._process = subprocess.Popen(
            [PROGRAM, "run", *arguments],
            cwd=folder,
            env=environment(),
            stderr=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def wait_for(self, event: str) -> dict[str, object]:
        """Read the journal until a line of that event."""
        while (entry := self.read())["event"] != event:
            pass
        return entry

    def read(self) -> dict[str, object]:
        """Read the journal's next line."""
        assert self._process.stderr is not None
        line = self._process.stderr.readline()
        assert line, "the service ended"
        assert line.startswith("{"), f"no log line: {line}{self._process.stderr.read()}"
        entry: dict[str, object] = json.loads(line)
        return entry

    def kill(self) -> None:
        """Send SIGKILL, and wait until the process is gone."""
        self._process.kill()
        self._process.communicate()

    def stop(self, times: int = 1) -> int:
        """Send SIGTERM and return the exit code."""
        for _ in range(times):
            self._process.send_signal(signal.SIGTERM)
        self._process.communicate(timeout=30)
        return self._process.returncode
