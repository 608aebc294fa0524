"""Follow the customer's table of tenants: new ones are added, changed ones written, gone ones retired.

*Invariants*: no tenant is ever deleted; a row that cannot be used keeps its tenant's last good
state and stops no other; where the table has lost more than half of the tenants that came from it,
nothing at all is changed until a person confirms it.
*Not here*: what a row says (`domain.tenant_mapping`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

from freehold.domain.inventory import Tenant
from freehold.domain.schedule import Every, last_at_or_before
from freehold.domain.tenant_mapping import TenantMapping, TenantRow, read_row
from freehold.ports.ledger import Act, Ledger, Transaction
from freehold.ports.system import HostClock
from freehold.ports.telemetry import UNHEARD, Telemetry, TenantsSynced
from freehold.ports.tenant_source import Taken

PAGE = 1_000  # tenants of one transaction
NAMED_MOST = 100  # rejected rows and taken over tenants that are named; all are counted
SOURCE = "[tenants]"  # the actor in the action log, and the schedule of ticks; no rule is named so


@dataclass(frozen=True, slots=True)
class Rejected:
    """A row that was left out."""

    id: str
    reason: str


@dataclass(slots=True)
class Synced:
    """What one reading of the table did, or would do.

    Attributes:
        seen_count: rows of the table.
        retired_count: tenants that became inactive because their row is gone.
        lost_count: of `known_count` active tenants that came from the table, those that it no
            longer has or no longer calls active.
        taken_over: tenants that a person had added under an id that the table has too; from here
            on the table is right about what it maps. The first hundred.
        rejected: rows that cannot be used. The first hundred.
        refusal: why nothing was changed, in a sentence; None when all went through.
    """

    seen_count: int = 0
    new_count: int = 0
    changed_count: int = 0
    retired_count: int = 0
    known_count: int = 0
    lost_count: int = 0
    rejected_count: int = 0
    taken_over_count: int = 0
    taken_over: list[str] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    refusal: str | None = None


class _Undone(Exception):
    """Ends a transaction that was only a trial."""


def sync_tenants(
    ledger: Ledger,
    mapping: TenantMapping,
    *,
    confirmed: bool = False,
    trial: bool = False,
    telemetry: Telemetry = UNHEARD,
) -> Synced:
    """Read the table from end to end, page by page, and follow it.

    Args:
        confirmed: a person said that the table may have lost so many.
        trial: say what would be done, and do nothing.

    Again: changes nothing. Crash: some pages are done; the next call does the rest.

    Raises:
        RuleRefused: table or column is not there, or may not be read.
    """
    sync = _Sync(ledger, mapping, trial)
    sync.run(confirmed)
    if not trial:
        told = sync.synced
        telemetry.tell(
            TenantsSynced(
                told.seen_count,
                told.new_count,
                told.changed_count,
                told.retired_count,
                told.rejected_count,
                refused=told.refusal is not None,
            )
        )
    return sync.synced


def sync_in_turn(
    ledger: Ledger,
    mapping: TenantMapping,
    runner: str,
    host_clock: HostClock,
    telemetry: Telemetry = UNHEARD,
) -> Synced | None:
    """Follow the table, unless that was done since `every` came round last.

    Returns:
        None where it was done.
    Again: nothing before the next turn. Crash: the next call reads the table again.

    Raises:
        RuleRefused: as `sync_tenants`; the next call tries again.
    """
    turn = Every(max(1, round(mapping.every.total_seconds())))
    with ledger.transaction() as tx:
        logical_time, last = last_at_or_before(turn, tx.now), tx.ticks.last(SOURCE)
        assert logical_time is not None  # an interval has one always
        if last is not None and logical_time <= last <= tx.now:
            return None
    synced = sync_tenants(ledger, mapping, telemetry=telemetry)
    with ledger.transaction() as tx:
        tick = tx.ticks.start(SOURCE, logical_time, runner, host_clock.wall())
        if tick is not None:
            outcome = "done" if synced.refusal is None else "too many are gone"
            tx.ticks.finish(tick, synced.seen_count, synced.new_count, outcome)
    return synced


class _Sync:
    """One reading of the table."""

    def __init__(self, ledger: Ledger, mapping: TenantMapping, trial: bool) -> None:
        self._ledger = ledger
        self._mapping = mapping
        self._trial = trial
        self._page = min(PAGE, ledger.batch_limit or PAGE)
        self.synced = Synced()

    def run(self, confirmed: bool) -> None:
        """Look at what is lost, then follow the table, then retire what is gone."""
        gone = self._gone()
        synced = self.synced
        if not confirmed and 2 * synced.lost_count > synced.known_count:
            synced.refusal = (
                f"Table {self._mapping.table} of [tenants] has lost {synced.lost_count} of the "
                f"{synced.known_count} active tenants that came from it, so that nothing was "
                "changed; look at the table, and run `freehold tenant sync --confirm` if that is "
                "right."
            )
            return
        after_id: str | None = None
        while True:
            rows = self._step(partial(self._follow, after_id))
            if len(rows) < self._page:
                break
            after_id = rows[-1].id
        for page in _pages(gone, self._page):
            self._step(partial(self._retire, page))

    def _step(self, work: Callable[[Transaction], Sequence[TenantRow]]) -> Sequence[TenantRow]:
        """Do one page in a transaction of its own, which a trial rolls back."""
        rows: Sequence[TenantRow] = ()
        with suppress(_Undone), self._ledger.transaction() as tx:
            rows = work(tx)
            if self._trial:
                raise _Undone
        return rows

    def _gone(self) -> list[str]:
        """Return the tenants whose row is gone, and count those that are lost in any way."""
        gone: list[str] = []
        after_id = ""
        while True:
            with self._ledger.transaction() as tx:
                ids = tx.sourced_tenants.find(after_id, self._page)
                standing = tx.tenant_rows(self._mapping).standing(ids)
            gone += [one for one in ids if one not in standing]
            self.synced.known_count += len(ids)
            self.synced.lost_count += sum(not standing.get(one, False) for one in ids)
            if len(ids) < self._page:
                return gone
            after_id = ids[-1]

    def _retire(self, ids: Sequence[str], tx: Transaction) -> Sequence[TenantRow]:
        """Retire what is still gone."""
        back = tx.tenant_rows(self._mapping).standing(ids)
        gone = [one for one in ids if one not in back]
        self.synced.retired_count += tx.sourced_tenants.retire(gone)
        return ()

    def _follow(self, after_id: str | None, tx: Transaction) -> Sequence[TenantRow]:
        """Take one page over."""
        rows = tx.tenant_rows(self._mapping).find(after_id, self._page)
        known = {one.id: one for one in tx.tenants.read([row.id for row in rows])}
        good = self._read(rows, known)
        taken = tx.sourced_tenants.write(list(good.values()))
        synced = self.synced
        synced.seen_count += len(rows)
        synced.new_count += taken.count(Taken.NEW)
        synced.changed_count += taken.count(Taken.CHANGED)
        for one, how in zip(good.values(), taken, strict=True):
            if how is Taken.TAKEN_OVER:
                self._take_over(tx, known[one.id], one)
        return rows

    def _read(self, rows: Sequence[TenantRow], known: dict[str, Tenant]) -> dict[str, Tenant]:
        """Read the rows that can be used; what is not mapped stays as it is here."""
        good: dict[str, Tenant] = {}
        for row in rows:
            try:
                if row.id in good:
                    raise ValueError("another row has the same id")  # noqa: TRY301 - as from `read_row`
                fields = read_row(row)
                there = known.get(row.id) or Tenant(row.id, row.id)
                good[row.id] = replace(there, **fields)
            except ValueError as error:
                self._reject(row.id, str(error))
        return good

    def _reject(self, tenant_id: str, reason: str) -> None:
        self.synced.rejected_count += 1
        if len(self.synced.rejected) < NAMED_MOST:
            self.synced.rejected.append(Rejected(tenant_id, reason))

    def _take_over(self, tx: Transaction, before: Tenant, after: Tenant) -> None:
        """Say once that the table is right from here on about a tenant that a person had added."""
        reason = f"table {self._mapping.table} names the tenant too"
        said = (_said(before), _said(after))
        tx.actions.record(Act(SOURCE, "tenant taken over", after.id, reason, *said))
        self.synced.taken_over_count += 1
        if len(self.synced.taken_over) < NAMED_MOST:
            self.synced.taken_over.append(after.id)


def _said(tenant: Tenant) -> str:
    recipients = ", ".join(tenant.recipients) or "none"
    active = "active" if tenant.active else "inactive"
    return f"name {tenant.name}; zone {tenant.zone}; recipients {recipients}; {active}"


def _pages(ids: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    for start in range(0, len(ids), size):
        yield ids[start : start + size]
