"""Many tenants in many zones, whose days end within seconds while services are killed and replaced.

SYNTHESISED: zones whose midnights are near (`made_zones`), and the first releases of every tenant, done
hours or days before midnight by a clock that was set. All else is real: what services do from the
moment on that they start, and every clock that they read.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from freehold.adapters.sql import migrations
from freehold.adapters.system import Onwards, StopRequest, SystemDice
from freehold.application.scan import Scanner
from freehold.application.work import PassEnd, Worker
from freehold.bootstrap import open_ledger, open_session
from freehold.settings import load_settings
from freehold.testing.backdoor import BackDoor
from freehold.testing.clock import SetClock
from freehold.testing.tables import RESTOCK, StandardTable
from tests.e2e.command import Ended, freehold
from tests.reports.crew import ROOT
from tests.reports.made_zones import MadeZone, next_second, write_tz_database

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from freehold.domain.rules import Rule
    from freehold.settings import Settings

REAL_ZONES = (
    "Europe/Berlin",
    "Asia/Kathmandu",
    "Australia/Lord_Howe",
    "America/St_Johns",
    "Pacific/Kiritimati",
    "Pacific/Pago_Pago",
    "Asia/Kolkata",
    "Pacific/Chatham",
)
JUMPS_SECONDS = (0, 3_600, -1_800, 0)
BEFORE_MIDNIGHT = timedelta(hours=2)
DAYS_BEFORE = (timedelta(hours=50), timedelta(hours=26))
ATTACHED = timedelta(minutes=1)  # from due to release, of what was released before
SETTINGS = """
[database]
url = "{url}"

[loops]
lease = "2s"
sweep = "500ms"
poll = "500ms"
heartbeat = "1s"
drain = "40s"

[report]
sender = "reports@freehold.example"
hour = 0
close_delay = "{close_delay}"
senders = 2
retry = {{ delays = ["1s", "1s", "1s", "1s", "1s"] }}

[report.smtp]
host = "{host}"
port = {port}
security = "none"
timeout = "2s"
final_timeout = "5s"

[[rules]]
name = "reservation"
table = "reservation"
key = ["id"]
tenant = {{ column = "tenant" }}
held = [{{ status = "held" }}]
due = {{ column = "hold_until", kind = "timestamptz" }}
fence = ["token"]
expire = {{ set = {{ status = "expired", released_at = {{ now = true }} }} }}
confirmed = [{{ status = "confirmed" }}]
cancelled = [{{ status = "cancelled" }}]
also = [{{ sql = "{restock}", rows = "1", lock_by = ":stock_id" }}]
carry = ["stock_id", "quantity"]
when = "precise"
batch = 40
attach_limit = 1000000
retry = {{ delays = [{delays}] }}
"""


@dataclass(frozen=True, slots=True)
class Resident:
    """A tenant, and where it lives."""

    id: str
    recipient: str
    zone: str
    stock_id: int
    made: MadeZone | None


@dataclass
class Town:
    """Tenants spread over zones; their holds lapse around the midnights of the made ones.

    Attributes:
        hold_count: the holds made so far.
        soon: until the first of those midnights; the zones' follow over the span behind it.
    """

    url: str
    folder: Path
    mail_at: tuple[str, int]
    resident_count: int
    zone_count: int
    soon: timedelta
    span: timedelta
    close_delay: str = "1s"
    hold_count: int = 0

    def __post_init__(self) -> None:
        first = next_second(self.soon)
        real = REAL_ZONES[: self.zone_count // 5]
        made_count = self.zone_count - len(real)
        seconds = int(self.span.total_seconds())
        self.first_midnight_at = first
        self.made = [
            MadeZone(
                f"Made/Z{n}",
                first + timedelta(seconds=n * seconds // made_count),
                JUMPS_SECONDS[n % len(JUMPS_SECONDS)],
            )
            for n in range(made_count)
        ]
        homes: list[MadeZone | str] = [*self.made, *real]
        self.residents = list(self._settle(homes))

    def _settle(self, homes: list[MadeZone | str]) -> Iterator[Resident]:
        for n in range(self.resident_count):
            home = homes[n % len(homes)]
            name = f"tenant-{n:03}"
            made = home if isinstance(home, MadeZone) else None
            zone = home.name if isinstance(home, MadeZone) else home
            yield Resident(name, f"desk@{name}.example", zone, 1 + n % len(homes), made)

    # ------------------------------------------------------------------------------- set up

    def prepare(self) -> None:
        """Make the database, write settings and tz database, import tenants and make holds."""
        self._write_settings()
        write_tz_database(self.path, self.made)
        with BackDoor(self.url) as door:
            StandardTable(door).create()
        session = open_session(self.settings)
        migrations.upgrade(session)
        session.close()
        with BackDoor(self.url) as door, door.together():
            for stock_id in range(3, 1 + self.zone_count):
                door.execute("insert into stock values (:id, 0)", id=stock_id)
            self._hold_before(door)
        self._release_before()
        with BackDoor(self.url) as door, door.together():
            self._hold_soon(door)
        self._import_tenants()

    @property
    def path(self) -> Path:
        """The folder with the tz database."""
        return self.folder / "path"

    def _write_settings(self) -> None:
        text = SETTINGS.format(
            url=self.url,
            host=self.mail_at[0],
            port=self.mail_at[1],
            close_delay=self.close_delay,
            restock=RESTOCK.sql,
            delays=", ".join(['"100ms"'] * 30),
        )
        (self.folder / "freehold.toml").write_text(text)

    @cached_property
    def settings(self) -> Settings:
        """The settings as the program reads them."""
        return load_settings(self.folder / "freehold.toml", {})

    @property
    def rule(self) -> Rule:
        """The rule."""
        return self.settings.rules[0]

    def _import_tenants(self) -> None:
        with (self.folder / "tenants.csv").open("w", newline="") as file:
            lines = csv.writer(file)
            lines.writerow(["id", "name", "zone", "recipients"])
            lines.writerows(
                (one.id, f"House {one.id}", one.zone, one.recipient) for one in self.residents
            )
        done = self.freehold("tenant", "import", "tenants.csv")
        assert done.code == 0, done.err

    def _hold(self, door: BackDoor, one: Resident, until: datetime) -> None:
        self.hold_count += 1
        StandardTable(door).hold(self.hold_count, until, tenant=one.id, stock=one.stock_id)

    def _hold_before(self, door: BackDoor) -> None:
        """Make holds of earlier hours of the made zones' day, and of earlier days elsewhere."""
        for one in self.residents:
            for before in DAYS_BEFORE if one.made is None else (BEFORE_MIDNIGHT,):
                self._hold(door, one, self.first_midnight_at - before)

    def _release_before(self) -> None:
        """Release them, each by a clock that is set to a minute after they were due."""
        for before in (*DAYS_BEFORE, BEFORE_MIDNIGHT):
            clock = SetClock(self.first_midnight_at - before + ATTACHED)
            ledger = open_ledger(self.settings, clock=clock)
            Scanner(ledger, Onwards()).scan(self.rule)
            worker = Worker(ledger, Onwards(), SystemDice(), StopRequest())
            while worker.work(self.rule).end is PassEnd.WORKED:
                pass
            ledger.close()

    def _hold_soon(self, door: BackDoor) -> None:
        """Make two holds for each resident of a made zone: due before its midnight, and after."""
        for number, one in enumerate(self.residents):
            if one.made is not None:
                aside = timedelta(milliseconds=(number * 37) % 1_000)
                self._hold(door, one, one.made.midnight_at - aside - timedelta(milliseconds=1))
                self._hold(door, one, one.made.midnight_at + aside)

    # ------------------------------------------------------------------------------- meanwhile

    def freehold(self, *words: str) -> Ended:
        """Run a command in a process of its own."""
        return freehold(*words, cwd=self.folder, PYTHONPATH=f"{self.path}:{ROOT}")

    def days_of(self, one: Resident, now: datetime) -> list[date]:
        """Return the days that a resident must have a report of, by no code of the product."""
        if one.made is not None:
            return [one.made.day]
        zone = ZoneInfo(one.zone)
        first = (self.first_midnight_at - DAYS_BEFORE[0] + ATTACHED).astimezone(zone).date()
        today = now.astimezone(zone).date()
        return [first + timedelta(days=n) for n in range((today - first).days)]
