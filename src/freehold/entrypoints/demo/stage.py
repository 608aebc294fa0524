"""The demonstration's stage: makes the files, starts shop and service, ends both in order."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.live import Live

from freehold.adapters.sql.migrations import upgrade
from freehold.adapters.system import Onwards, StopRequest, SystemClock
from freehold.bootstrap import open_ledger, open_session, open_telemetry
from freehold.domain.errors import RefusedByState, UsageError
from freehold.domain.inventory import Tenant
from freehold.domain.pauses import Role
from freehold.entrypoints.demo.screen import View, draw, look, plain
from freehold.entrypoints.demo.shop import SHOPS, make_table
from freehold.entrypoints.service import Service
from freehold.entrypoints.signals import on_signals
from freehold.settings import Settings, load_settings

CONFIG = """\
# The shop's table, attached by configuration alone.
[database]
url = "sqlite:///{database}"

[[rules]]
name = "cart"
table = "carts"
key = ["id"]
tenant = {{ column = "shop" }}
held = [{{ status = "held" }}]
due = {{ column = "hold_until", kind = "naive", zone = "UTC" }}
fence = ["hold_token"]
expire = {{ set = {{ status = "expired", released_at = {{ now = true }} }} }}
confirmed = [{{ status = "confirmed" }}]
cancelled = [{{ status = "cancelled" }}]
carry = ["seat"]
unit = "seat"
when = "precise"
promise = "5s"

# Each shop's day as a mail the next morning, here written into a folder.
[report]
sender = "reports@demo.example"

[report.maildir]
path = "{mails}"
"""
DESK = ("desk@demo.example",)
FRAME_SECONDS = 0.25
LINE_SECONDS = 2.0


@dataclass(slots=True)
class Stage:
    """One run of the demonstration."""

    folder: Path
    settings: Settings
    stop: StopRequest = field(default_factory=StopRequest)
    _shop: subprocess.Popen[bytes] | None = None
    _service: Service | None = None
    _thread: threading.Thread | None = None

    @classmethod
    def set_up(cls, folder: Path | None) -> Stage:
        """Make the shop's database, the settings file and the ledger.

        Raises:
            RefusedByState: the folder holds a demonstration already.
            UsageError: the folder cannot be made.
        """
        where = (folder or Path(tempfile.mkdtemp(prefix="freehold-demo-"))).absolute()
        try:
            where.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"--folder {where} cannot be made: {error.strerror}.") from None
        database, config = where / "shop.db", where / "freehold.toml"
        if database.exists() or config.exists():
            raise RefusedByState(f"{where} holds a demonstration already; name an empty folder.")
        make_table(database)
        config.write_text(CONFIG.format(database=database, mails=where / "mails"))
        settings = load_settings(config, {})
        session = open_session(settings)
        upgrade(session)
        session.close()
        ledger = open_ledger(settings)
        with ledger.transaction() as tx:
            tx.tenants.set([Tenant(name, name.title(), recipients=DESK) for name in SHOPS])
        ledger.close()
        return cls(where, settings)

    def run(self, seconds: float | None) -> None:
        """Start shop and service, and show them until the time is over or Ctrl-C."""
        with on_signals(self.stop.stop):
            self._start()
            self._show(seconds)

    def _start(self) -> None:
        self._shop = subprocess.Popen(  # noqa: S603 - our own module, our own file
            [sys.executable, "-m", "freehold.entrypoints.demo.shop", str(self.database)]
        )
        journal = (self.folder / "journal.log").open("w")
        self._service = Service(self.settings, Onwards(), open_telemetry(self.settings, journal))
        self._thread = threading.Thread(
            target=self._service.run, args=([Role.SCAN, Role.WORK, Role.REPORT],), name="service"
        )
        self._thread.start()

    @property
    def database(self) -> Path:
        """Return the shop's file."""
        return self.folder / "shop.db"

    @property
    def command(self) -> str:
        """Return the command that shows this installation."""
        return f"freehold -c {self.folder / 'freehold.toml'} status"

    def _show(self, seconds: float | None) -> None:
        console, clock = Console(), SystemClock()
        ends = None if seconds is None else clock.monotonic() + seconds
        if not console.is_terminal:
            self._show_plain(clock, ends)
            return
        with Live(console=console, auto_refresh=False, screen=False) as live:
            while not self._over(clock, ends, FRAME_SECONDS):
                left = None if ends is None else ends - clock.monotonic()
                frame = draw(look(self.database), clock.wall(), left, self.command)
                live.update(frame, refresh=True)

    def _show_plain(self, clock: SystemClock, ends: float | None) -> None:
        print(f"Look yourself: {self.command}")  # noqa: T201 - this is the screen
        while not self._over(clock, ends, LINE_SECONDS):
            print(plain(look(self.database), clock.wall()), flush=True)  # noqa: T201

    def _over(self, clock: SystemClock, ends: float | None, wait_seconds: float) -> bool:
        left = wait_seconds if ends is None else min(wait_seconds, ends - clock.monotonic())
        return left <= 0 or self.stop.wait(left)

    def clear_up(self) -> None:
        """End the shop first, then let the service drain."""
        if self._shop is not None:
            self._shop.terminate()
            self._shop.wait()
        if self._service is not None and self._thread is not None:
            self._service.ask_to_stop()
            self._thread.join()

    def summary(self) -> Summary:
        """Return what there is to say at the end."""
        return Summary(look(self.database), self.folder, self.command)


@dataclass(frozen=True, slots=True)
class Summary:
    """The end of a demonstration."""

    view: View
    folder: Path
    command: str

    def data(self) -> dict[str, Any]:
        """Return the figures."""
        return {"counts": self.view.counts, "folder": str(self.folder)}

    def text(self) -> str:
        """Say the figures and where to go on."""
        counts = ", ".join(f"{count} {name}" for name, count in sorted(self.view.counts.items()))
        others = [
            self.command.replace(" status", f" {one}")
            for one in ("audit", f"report preview {SHOPS[0]} --html")
        ]
        return (
            f"{counts}. Everything is still in {self.folder}:\n"
            f"  {self.command}\n  {others[0]}\n  {others[1]}\n"
            f"  {self.folder / 'journal.log'}"
        )
