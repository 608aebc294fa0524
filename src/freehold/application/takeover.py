"""Take tenants, units and holds over from lines of text, a batch in a transaction.

*Invariants*: a line that is wrong, or that the database refuses, keeps no other line out; what was
taken over once is not taken over twice, so that a killed run is finished by running it again.
*Not here*: reading and writing files (`entrypoints.cli`), what the columns mean
(`domain.inventory_text`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol, TypeVar
from uuid import UUID

from freehold.application.repeat import repeated
from freehold.domain.errors import RowRefused, UsageError
from freehold.domain.inventory import ImportedHold, NewUnit, Tenant
from freehold.domain.inventory_text import (
    DEFAULT_ZONE,
    Values,
    clause,
    read_hold,
    read_tenant,
    read_unit,
)
from freehold.ports.inventory import Imported, ImportRefusal, Written
from freehold.ports.ledger import Ledger, Transaction
from freehold.ports.system import Dice, Pause

T = TypeVar("T")
_SEEN_MOST = 100_000  # names kept in mind, so that they are not looked up again; about 20 MB
_THERE_OTHERWISE = "it is there with other values, which were left as they are"
_NO_TENANT = "there is no such tenant: add it, or import with --create-units"
_NO_UNIT = "there is no such unit: add it, or import with --create-units"
_NO_TENANT_OF_UNIT = "there is no such tenant: add it first"
_REFUSED = "the database refused the line"


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of one line: it is new, it was there already, or why it stays out."""

    written: Written | None
    refusal: str | None = None


class Lines(Protocol):
    """Lines of one kind."""

    def write(self, tx: Transaction, lines: Sequence[Values]) -> list[Answer]:
        """Write the lines in the transaction; one answer each, in order."""
        ...

    def committed(self) -> None:
        """Learn that what was written last is there to stay."""
        ...


class _Undone(Exception):
    """Ends a transaction that was only a trial."""


@dataclass(slots=True)
class Takeover:
    """Takes lines over, batch by batch.

    Attributes:
        trial: write, look at the answers, and roll back.
    """

    ledger: Ledger
    lines: Lines
    dice: Dice
    pause: Pause
    trial: bool = False

    def take(self, batch: Sequence[Values]) -> list[Answer]:
        """Take a batch over; one answer each, in order.

        Again: what is there already is answered so.
        Crash: the whole batch is there, or nothing of it.

        Raises:
            DatabaseAway: the connection was lost; run it again.
            DatabaseBusy: still locked after several repeats.
        """
        try:
            return self._take(batch)
        except RowRefused:
            if len(batch) == 1:
                return [Answer(None, _REFUSED)]
            half = len(batch) // 2
            return self.take(batch[:half]) + self.take(batch[half:])

    def _take(self, batch: Sequence[Values]) -> list[Answer]:
        answers: list[Answer] = []

        def step() -> None:
            with self.ledger.transaction() as tx:
                answers[:] = self.lines.write(tx, batch)
                if self.trial:
                    raise _Undone
            self.lines.committed()

        with suppress(_Undone):
            repeated(step, self.dice, self.pause)
        return answers


class TenantLines:
    """Lines that are tenants."""

    def write(self, tx: Transaction, lines: Sequence[Values]) -> list[Answer]:
        """Add tenants."""
        return _write(lines, read_tenant, lambda good: map(_answer, tx.tenants.add(good)))

    def committed(self) -> None:
        """Nothing is kept in mind."""


class UnitLines:
    """Lines that are units."""

    def write(self, tx: Transaction, lines: Sequence[Values]) -> list[Answer]:
        """Add units of tenants that are there."""
        return _write(lines, read_unit, lambda good: map(_answer, tx.units.add(good)))

    def committed(self) -> None:
        """Nothing is kept in mind."""


@dataclass(slots=True)
class HoldLines:
    """Lines that are holds granted elsewhere.

    Attributes:
        create: make tenants and units that are missing.
    """

    dice: Dice
    create: bool = False
    created_count: int = 0
    _seen: set[tuple[str, str]] = field(default_factory=set)
    _new: set[tuple[str, str]] = field(default_factory=set)
    _new_count: int = 0

    def write(self, tx: Transaction, lines: Sequence[Values]) -> list[Answer]:
        """Take holds over, with their tenants and units where those are missing and wanted."""
        self._new, self._new_count = set(), 0
        wanted = sorted({one.get("tenant", "") for one in lines})
        known = {one.id: one for one in tx.tenants.read(wanted)}
        if self.create:
            known |= self._create_tenants(tx, [one for one in wanted if one not in known])

        def read(values: Values) -> ImportedHold:
            name = values.get("tenant", "")
            tenant = known.get(name)
            if tenant is None:
                raise ValueError(_NO_TENANT if not self.create else _wrong_tenant(name))
            return read_hold(values, tenant.zone or DEFAULT_ZONE, UUID(self.dice.name()))

        def store(good: Sequence[ImportedHold]) -> Iterable[Answer]:
            if self.create:
                self._create_units(tx, good)
            return map(_answer_of_import, tx.own_holds.take_over(good))

        return _write(lines, read, store)

    def committed(self) -> None:
        """Keep in mind which units are there, and count what was made."""
        self.created_count += self._new_count
        if len(self._seen) > _SEEN_MOST:
            self._seen.clear()
        self._seen |= self._new

    def _create_tenants(self, tx: Transaction, ids: Sequence[str]) -> dict[str, Tenant]:
        made: dict[str, Tenant] = {}
        for one in ids:
            if not _wrong_tenant(one):
                made[one] = Tenant(one, one)
        self._count(tx.tenants.add(list(made.values())))
        return made

    def _create_units(self, tx: Transaction, holds: Sequence[ImportedHold]) -> None:
        self._new = {(one.tenant, one.unit) for one in holds} - self._seen
        self._count(tx.units.add([NewUnit(*one) for one in sorted(self._new)]))

    def _count(self, written: Sequence[Written]) -> None:
        self._new_count += sum(one is Written.NEW for one in written)


def _wrong_tenant(name: str) -> str:
    """Say why a tenant of that name cannot be made; empty where it can."""
    try:
        Tenant(name, name)
    except UsageError as error:
        return clause(error)
    return ""


def _write(
    lines: Sequence[Values],
    read: Callable[[Values], T],
    store: Callable[[Sequence[T]], Iterable[Answer]],
) -> list[Answer]:
    """Read each line, store the good ones together, and put the answers in the lines' order."""
    answers: list[Answer | None] = []
    good: list[T] = []
    for one in lines:
        try:
            good.append(read(one))
            answers.append(None)
        except (ValueError, UsageError) as error:
            answers.append(Answer(None, clause(error)))
    stored = iter(store(good)) if good else iter(())
    return [one or next(stored) for one in answers]


def _answer(written: Written) -> Answer:
    if written is Written.DIFFERS:
        return Answer(None, _THERE_OTHERWISE)
    if written is Written.MISSING:
        return Answer(None, _NO_TENANT_OF_UNIT)
    return Answer(written)


def _answer_of_import(one: Imported) -> Answer:
    if one.refusal is ImportRefusal.UNKNOWN_UNIT:
        return Answer(None, _NO_UNIT)
    return Answer(one.written if one.refusal is None else None, one.refusal)
