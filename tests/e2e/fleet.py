"""Several services over one folder, supervised: one that ends by itself is started again."""

from __future__ import annotations

import json
import queue
import subprocess
import threading
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from tests.e2e.command import PROGRAM, environment

if TYPE_CHECKING:
    from pathlib import Path

LINE_SECONDS = 60  # longer than any service is silent


@dataclass
class Fleet:
    """Services whose journals, read line by line, are the signals that tests wait for.

    Attributes:
        codes: the exit codes of services that ended by themselves.
    """

    folder: Path
    size: int = 1
    events: list[dict[str, Any]] = field(default_factory=list)
    codes: list[int] = field(default_factory=list)
    _over: bool = False

    def __enter__(self) -> Self:
        self._lines: queue.Queue[bytes] = queue.Queue()
        self._lock = threading.Lock()
        self._processes: list[subprocess.Popen[bytes]] = []
        self._watchers = [threading.Thread(target=self._supervise) for _ in range(self.size)]
        for watcher in self._watchers:
            watcher.start()
        return self

    def _supervise(self) -> None:
        while True:
            with self._lock:
                if self._over:
                    return
                process = subprocess.Popen(
                    [PROGRAM, "run"], cwd=self.folder, env=environment(), stderr=subprocess.PIPE
                )
                self._processes.append(process)
            with process:
                assert process.stderr is not None
                for line in process.stderr:
                    self._lines.put(line)
            code = process.wait()
            if not self._over:
                self.codes.append(code)

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._over = True
            for process in self._processes:
                process.kill()
        for watcher in self._watchers:
            watcher.join()

    def kill_one(self) -> None:
        """Send SIGKILL to the service that was started first of those that run."""
        with self._lock:
            next(process for process in self._processes if process.poll() is None).kill()

    def wait_for(self, **counts: int) -> None:
        """Read the journals until their events have so many of each: `released=3, dead=1`."""
        total: Counter[str] = Counter()
        while any(total[name] < count for name, count in counts.items()):
            event = json.loads(self._lines.get(timeout=LINE_SECONDS))
            self.events.append(event)
            if event["event"] in ("batch", "sweep"):
                total.update({name: event.get(name, 0) for name in counts})
