"""Services of several roles in processes of their own, supervised: whoever is gone is replaced.

Each is the installed program; where a post has fates left, it is the same program that kills itself
at a boundary (`doomed`). Each line of their journals is a signal to a test that waits.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Self

from tests.e2e.command import PROGRAM, environment

if TYPE_CHECKING:
    from collections.abc import Callable

    from freehold.ports.system import Boundary

ROOT = Path(__file__).parents[2]
LOOK_AGAIN_SECONDS = 0.1  # rows change without a line in any journal, too

Fate = tuple["Boundary", int]  # where a process kills itself, and at which reach


@dataclass
class Post:
    """One place in the crew; its processes come one after the other."""

    roles: str
    fates: list[Fate] = field(default_factory=list)
    fate: Fate | None = None
    process: subprocess.Popen[bytes] | None = None
    struck: signal.Signals | None = None


@dataclass
class Crew:
    """Posts that are manned until the crew is dismissed.

    Attributes:
        path: a folder that stands first on the program's path.
        ends: how often processes ended, by role and by what ended them.
        wrong: ends that nobody wanted, with the last lines that were told.
    """

    folder: Path
    path: Path
    posts: list[Post]
    ends: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    _over: bool = False

    def __enter__(self) -> Self:
        self._told = threading.Event()
        self._lock = threading.Lock()
        self._watchers = [threading.Thread(target=self._man, args=(post,)) for post in self.posts]
        for watcher in self._watchers:
            watcher.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._dismiss(signal.SIGKILL)

    def _dismiss(self, how: signal.Signals) -> None:
        with self._lock:
            self._over = True
            for post in self.posts:
                if post.process is not None and post.process.poll() is None:
                    post.process.send_signal(how)
        for watcher in self._watchers:
            watcher.join()

    # ---------------------------------------------------------------------------- processes

    def _man(self, post: Post) -> None:
        """Keep a post manned."""
        while process := self._start(post):
            told: list[bytes] = []
            with process:
                assert process.stderr is not None
                for line in process.stderr:
                    told = [*told[-5:], line]
                    self._told.set()
            self._note_end(post, process.wait(), told)

    def _start(self, post: Post) -> subprocess.Popen[bytes] | None:
        with self._lock:
            if self._over:
                return None
            post.fate = post.fates.pop(0) if post.fates else None
            post.struck = None
            words = ["run", "--role", post.roles]
            command: list[str | Path] = [PROGRAM, *words]
            if post.fate is not None:
                doom = (post.fate[0].value, str(post.fate[1]))
                command = [sys.executable, "-m", "tests.reports.doomed", *doom, *words]
            post.process = subprocess.Popen(
                command,
                cwd=self.folder,
                env=environment(PYTHONPATH=f"{self.path}:{ROOT}"),
                stderr=subprocess.PIPE,
            )
            return post.process

    def _note_end(self, post: Post, code: int, told: list[bytes]) -> None:
        killed = code == -signal.SIGKILL
        if killed and post.struck is None and post.fate is not None and not self._over:
            self.ends[f"{post.roles} killed at {post.fate[0].value!r}"] += 1
        elif post.struck is not None and code in (0, -post.struck):
            self.ends[f"{post.roles} struck by {post.struck.name}"] += 1
            post.fates[:0] = [] if post.fate is None else [post.fate]  # the next one has it
        elif not (self._over and code in (0, -signal.SIGTERM, -signal.SIGKILL)):
            self.wrong.append(f"{post.roles} ended with {code}: {b''.join(told).decode()}")

    def strike(self, post: Post, how: signal.Signals) -> None:
        """Send a signal to whoever is at a post; a starting process is not spared."""
        with self._lock:
            if post.process is not None and post.process.poll() is None:
                post.struck = how
                post.process.send_signal(how)

    def died_at(self, boundary: Boundary) -> int:
        """Return how many processes killed themselves there."""
        there = f"killed at {boundary.value!r}"
        return sum(count for end, count in self.ends.items() if end.endswith(there))

    # ---------------------------------------------------------------------------- signals

    def wait_until(self, holds: Callable[[], bool], what: str, seconds: float = 60) -> None:
        """Look whenever somebody tells something, or a moment has passed, until it holds."""
        give_up_at = time.monotonic() + seconds
        while time.monotonic() < give_up_at:
            if holds():
                return
            self._told.wait(LOOK_AGAIN_SECONDS)
            self._told.clear()
        raise AssertionError(f"it never came to: {what}; {self.ends}, {self.wrong}")

    def stop(self) -> None:
        """Ask everybody to stop, and insist that it is done in order."""
        self._dismiss(signal.SIGTERM)
        assert not self.wrong, self.wrong
