"""A small business that gets reports: a table of its own, two tenants, and holds released days ago."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any

from freehold.adapters.sql import migrations
from freehold.adapters.system import Onwards, StopRequest, SystemDice
from freehold.application.scan import Scanner
from freehold.application.work import PassEnd, Worker
from freehold.bootstrap import open_ledger, open_session
from freehold.domain.inventory import Tenant
from freehold.settings import Settings, load_settings
from freehold.testing.backdoor import BackDoor
from freehold.testing.clock import SetClock

if TYPE_CHECKING:
    from tests.e2e.inprocess import Program

TABLE = "create table res (id {key} primary key, tenant text, status text, hold_until {due})"
FILE = """
[database]
url = "{url}"
[report]
sender = "reports@freehold.example"
empty = "skip"
hour = 0
retry = {{ delays = ["1s"] }}
{transport}
[[rules]]
name = "cart"
table = "res"
key = ["id"]
tenant = {{ column = "tenant" }}
held = [{{ status = "held" }}]
due = {{ column = "hold_until", kind = "naive", zone = "UTC" }}
expire = {{ set = {{ status = "expired" }} }}
"""
MAILDIR = '[report.maildir]\npath = "mails"'


@dataclass
class Desk:
    """The program in a folder, over one database.

    Attributes:
        day: the local day, in UTC, on which holds were released.
    """

    freehold: Program
    url: str
    transport: str = MAILDIR
    more: str = ""
    day: date = field(default_factory=lambda: datetime.now(UTC).date() - timedelta(days=2))
    _keys: Any = field(default_factory=lambda: itertools.count(1))

    def __post_init__(self) -> None:
        text = FILE.format(url=self.url, transport=self.transport) + self.more
        self.freehold.write("freehold.toml", text)
        session = open_session(self.settings)
        migrations.upgrade(session)
        session.close()
        key = "integer" if self.url.startswith("sqlite") else "bigint"
        due = "text" if self.url.startswith("sqlite") else "timestamp"
        with BackDoor(self.url) as door:
            door.execute(TABLE.format(key=key, due=due))

    @property
    def settings(self) -> Settings:
        """Return the settings as the program reads them."""
        return load_settings(self.freehold.folder / "freehold.toml", {})

    def add(self, *tenants: Tenant) -> None:
        """Add tenants."""
        ledger = open_ledger(self.settings)
        with ledger.transaction() as tx:
            tx.tenants.set(tenants)
        ledger.close()

    def release(self, tenant: str | None, count: int = 1) -> list[str]:
        """Have holds of a tenant released on the day, and return their keys."""
        due = datetime.combine(self.day, time(12), UTC)
        keys = [next(self._keys) for _ in range(count)]
        with BackDoor(self.url) as door:
            for key in keys:
                door.execute(
                    "insert into res values (:id, :tenant, 'held', :due)",
                    id=key,
                    tenant=tenant,
                    due=f"{due:%Y-%m-%d %H:%M:%S}",
                )
        ledger = open_ledger(self.settings, clock=SetClock(due + timedelta(minutes=1)))
        (rule,) = self.settings.rules
        Scanner(ledger, Onwards()).scan(rule)
        worker = Worker(ledger, Onwards(), SystemDice(), StopRequest())
        while worker.work(rule).end is PassEnd.WORKED:
            pass
        ledger.close()
        return [str(key) for key in keys]

    def mails(self) -> list[bytes]:
        """Return the mails in the folder."""
        folder = self.freehold.folder / "mails" / "new"
        return [path.read_bytes() for path in sorted(folder.iterdir())] if folder.exists() else []

    def states(self) -> list[tuple[str, str]]:
        """Return tenant and state of the day's reports, by the plain driver."""
        with BackDoor(self.url) as door:
            return [
                (row[0], row[1])
                for row in door.rows(
                    "select tenant, state from {s}report where report_date = :day order by tenant",
                    day=self.day.isoformat(),
                )
            ]


HARBOUR = Tenant("harbour", "Harbour Hotel", recipients=("desk@harbour.example",))
