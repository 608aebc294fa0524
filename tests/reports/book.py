"""One installation whose days are closed: tenants, releases, a clock to set, and what came of it."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from freehold.adapters.sql.ledger import SqlLedger
from freehold.adapters.system import Onwards
from freehold.application.reporting.closing import Closed, Closer
from freehold.domain.inventory import Tenant
from freehold.domain.reports import ReportPolicy
from freehold.domain.tallies import Tally
from freehold.testing.backdoor import BackDoor
from freehold.testing.invariants import INVARIANTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from freehold.ports.system import Checkpoint
    from freehold.ports.telemetry import Event
    from tests.contract.grounds import SqlGround

POLICY = ReportPolicy(sender="reports@example.org")
OF_REPORTS = ("I17", "I18")


def utc(text: str) -> datetime:
    """Read an instant that is written without an offset."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@dataclass
class Heard:
    """Keeps what it is told."""

    events: list[Event] = field(default_factory=list)

    def tell(self, event: Event) -> None:
        """Keep the event."""
        self.events.append(event)


@dataclass
class Book:
    """Closes days over a ground."""

    ground: SqlGround
    policy: ReportPolicy = POLICY
    heard: Heard = field(default_factory=Heard)
    _stack: ExitStack = field(default_factory=ExitStack)
    _ledger: SqlLedger | None = None
    _closer: Closer | None = None

    @property
    def ledger(self) -> SqlLedger:
        """The connection that the book writes with."""
        self._ledger = self._ledger or self.ground.open()
        return self._ledger

    @property
    def door(self) -> BackDoor:
        """The plain driver's way in."""
        return self.ground.back.door

    def at(self, text: str) -> None:
        """Set the clock."""
        self.ground.set_now(utc(text))

    def pass_on(self, **span: float) -> None:
        """Move the clock on."""
        self.ground.set_now(self.ground.clock.instant + timedelta(**span))

    def tenant(self, name: str, **more: Any) -> None:
        """Write a tenant whole."""
        with self.ledger.transaction() as tx:
            tx.tenants.set([Tenant(name, name.upper(), **more)])

    def release(self, tenant: str | None, count: int = 1) -> None:
        """Write a tally of so many releases, now."""
        with self.ledger.transaction() as tx:
            tx.operations.add_tallies([Tally("r", tenant, expired_count=count)])

    # ------------------------------------------------------------------------------- closing

    def closer(self, checkpoint: Checkpoint | None = None) -> Closer:
        """Make a closer as a fresh process has it."""
        checkpoint = checkpoint or Onwards()
        ledger = SqlLedger(self.ground.open().session, checkpoint)
        return Closer(ledger, self.policy, checkpoint, self.heard)

    def restart(self) -> None:
        """Let the next pass be that of another process."""
        self._closer = None

    def close(self) -> Closed:
        """Close what is over, by a process that goes on living."""
        self._closer = self._closer or self.closer()
        return self._closer.close()

    # ------------------------------------------------------------------------------ evidence

    def reports(self, tenant: str | None = None) -> list[Mapping[str, Any]]:
        """Return the reports in the order of their windows."""
        rows = [row for row in self.ground.back.rows("report") if tenant in (None, row["tenant"])]
        return sorted(rows, key=lambda row: (row["start_at"], row["tenant"]))

    def days(self, tenant: str) -> list[str]:
        """Return the dates of a tenant's reports, with the reason behind those only recorded."""
        return [
            f"{row['report_date']}" + (f" {row['reason']}" if row["reason"] else "")
            for row in self.reports(tenant)
        ]

    def in_hand(self, tenant: str) -> Mapping[str, Any]:
        """Return a tenant's row of the calendar."""
        (row,) = [r for r in self.ground.back.rows("report_calendar") if r["tenant"] == tenant]
        return row

    def window_in_hand(self, tenant: str) -> tuple[date, datetime, datetime]:
        """Return the date and bounds of a tenant's window."""
        row = self.in_hand(tenant)
        return date.fromisoformat(str(row["next_date"])), row["start_at"], row["end_at"]

    def broken(self) -> list[str]:
        """Return what the invariants of reports say."""
        return list(broken(self.door))

    def conserved(self) -> tuple[int, int]:
        """Return the holds released, and those in reports, late ones included, or in none yet."""
        released = self.door.one("select coalesce(sum(expired_count), 0) from {s}tally")
        counted = self.door.one("select coalesce(sum(expired_count), 0) from {s}report")
        late = self.door.one(
            "select coalesce(sum(t.expired_count), 0) from {s}tally t"
            " join {s}report r on r.id = t.report_id where t.at < r.start_at or r.expired_count is null"
        )
        waiting = self.door.one(
            "select coalesce(sum(expired_count), 0) from {s}tally where report_id is null"
        )
        return int(released), int(counted) + int(late) + int(waiting)


def broken(door: BackDoor) -> Iterator[str]:
    """Say what the invariants of reports find."""
    for one in INVARIANTS:
        if one.number in OF_REPORTS:
            for row in door.rows(one.query):
                yield f"{one.number}: {row[0]}"
