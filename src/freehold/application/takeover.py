"""Take tenants, units and holds over from lines of text, a batch in a transaction.

*Invariants*: a line that is wrong, or that the database refuses, keeps no other line out; what was
taken over once is not taken over twice, so that a killed run is finished by running it again.
*Not here*: reading and writing files (`entrypoints.cli`), what the columns mean
(`domain.inventory_text`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar
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
_KEPT_MOST = 100_000  # names kept in mind, so that they are not looked up again; about 20 MB
_THERE_OTHERWISE = "it is there with other values, which were left as they are"
_NO_TENANT = "there is no such tenant: add it, or import with --create-units"
_NO_UNIT = "there is no such unit: add it, or import with --create-units"
_NO_TENANT_OF_UNIT = "there is no such tenant: add it first"
_SAME_AS_ANOTHER = "its token is that of another hold"
_REFUSED = "the database refused the line"


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of one line: it is new, it was there already, or why it stays out."""

    written: Written | None
    refusal: str | None = None


class Lines(Protocol[T]):
    """Lines of one kind, in two steps, so that no lock is held while texts are read."""

    def parse(self, lines: Sequence[Values]) -> list[T | Answer | None]:
        """Read what can be read without the database; None where it must be asked first."""
        ...

    def write(
        self, tx: Transaction, lines: Sequence[Values], parsed: Sequence[T | Answer | None]
    ) -> list[Answer]:
        """Write the lines in the transaction; one answer each, in order."""
        ...

    def committed(self) -> None:
        """Learn that what was written last is there to stay."""
        ...


class _Undone(Exception):
    """Ends a transaction that was only a trial."""


@dataclass(slots=True)
class Takeover(Generic[T]):
    """Takes lines over, batch by batch.

    Attributes:
        trial: write, look at the answers, and roll back.
    """

    ledger: Ledger
    lines: Lines[T]
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
        parsed = self.lines.parse(batch)

        def step() -> None:
            with self.ledger.transaction() as tx:
                answers[:] = self.lines.write(tx, batch, parsed)
                if self.trial:
                    raise _Undone
            self.lines.committed()

        with suppress(_Undone):
            repeated(step, self.dice, self.pause)
        return answers


class TenantLines:
    """Lines that are tenants."""

    def parse(self, lines: Sequence[Values]) -> list[Tenant | Answer | None]:
        """Read tenants."""
        return [_parsed(read_tenant, one) for one in lines]

    def write(
        self,
        tx: Transaction,
        lines: Sequence[Values],
        parsed: Sequence[Tenant | Answer | None],
    ) -> list[Answer]:
        """Add tenants."""
        return _stored(parsed, Tenant, lambda good: map(_answer, tx.tenants.add(good)))

    def committed(self) -> None:
        """Nothing is kept in mind."""


class UnitLines:
    """Lines that are units."""

    def parse(self, lines: Sequence[Values]) -> list[NewUnit | Answer | None]:
        """Read units."""
        return [_parsed(read_unit, one) for one in lines]

    def write(
        self,
        tx: Transaction,
        lines: Sequence[Values],
        parsed: Sequence[NewUnit | Answer | None],
    ) -> list[Answer]:
        """Add units of tenants that are there."""
        return _stored(parsed, NewUnit, lambda good: map(_answer, tx.units.add(good)))

    def committed(self) -> None:
        """Nothing is kept in mind."""


@dataclass(slots=True)
class HoldLines:
    """Lines that are holds granted elsewhere.

    Attributes:
        create: make tenants and units that are missing.
        created_count: how many were made.
    """

    dice: Dice
    create: bool = False
    created_count: int = 0
    _tenants: dict[str, Tenant] = field(default_factory=dict)
    _units: set[tuple[str, str]] = field(default_factory=set)
    _met: dict[str, Tenant] = field(default_factory=dict)
    _new_units: set[tuple[str, str]] = field(default_factory=set)
    _new_count: int = 0

    def parse(self, lines: Sequence[Values]) -> list[ImportedHold | Answer | None]:
        """Read the holds of tenants that were met before."""
        return [self._read(one, self._tenants) for one in lines]

    def write(
        self,
        tx: Transaction,
        lines: Sequence[Values],
        parsed: Sequence[ImportedHold | Answer | None],
    ) -> list[Answer]:
        """Take holds over, with their tenants and units where those are missing and wanted."""
        self._new_units, self._new_count = set(), 0
        self._met = self._meet(tx, lines)
        read = [
            one or self._read(values, self._met) or Answer(None, self._no_tenant(values))
            for one, values in zip(parsed, lines, strict=True)
        ]
        return _stored(read, ImportedHold, lambda good: self._store(tx, good))

    def committed(self) -> None:
        """Keep in mind which tenants and units are there, and count what was made."""
        self.created_count += self._new_count
        for kept in (self._tenants, self._units):
            if len(kept) > _KEPT_MOST:
                kept.clear()
        self._tenants |= self._met
        self._units |= self._new_units

    def _read(self, values: Values, known: Mapping[str, Tenant]) -> ImportedHold | Answer | None:
        tenant = known.get(values.get("tenant", ""))
        if tenant is None:
            return None
        zone = tenant.zone or DEFAULT_ZONE
        return _parsed(lambda line: read_hold(line, zone, self._token), values)

    def _token(self) -> UUID:
        return UUID(self.dice.name())

    def _no_tenant(self, values: Values) -> str:
        return _wrong_tenant(values.get("tenant", "")) or _NO_TENANT

    def _meet(self, tx: Transaction, lines: Sequence[Values]) -> dict[str, Tenant]:
        """Look up the tenants that were not met before, and make those that are missing."""
        unmet = sorted({one.get("tenant", "") for one in lines} - self._tenants.keys())
        met = {one.id: one for one in tx.tenants.read(unmet)} if unmet else {}
        if not self.create:
            return met
        missing = [one for one in unmet if one not in met and not _wrong_tenant(one)]
        made = {one: Tenant(one, one) for one in missing}
        self._count(tx.tenants.add(list(made.values())))
        return met | made

    def _store(self, tx: Transaction, holds: Sequence[ImportedHold]) -> list[Answer]:
        if self.create:
            self._new_units = {(one.tenant, one.unit) for one in holds} - self._units
            self._count(tx.units.add([NewUnit(*one) for one in sorted(self._new_units)]))
        answers = [_answer_of_import(one) for one in tx.own_holds.take_over(holds)]
        late = [n for n, one in enumerate(answers) if one.refusal == ImportRefusal.OVERLAP]
        granted = {one.token for one in tx.own_holds.granted([holds[n].token for n in late])}
        for n in late:
            if holds[n].token in granted:
                answers[n] = Answer(None, _SAME_AS_ANOTHER)
        return answers

    def _count(self, written: Sequence[Written]) -> None:
        self._new_count += sum(one is Written.NEW for one in written)


def _wrong_tenant(name: str) -> str:
    """Say why a tenant of that name cannot be made; empty where it can."""
    try:
        Tenant(name, name)
    except UsageError as error:
        return clause(error)
    return ""


def _parsed(read: Callable[[Values], T], line: Values) -> T | Answer:
    try:
        return read(line)
    except (ValueError, UsageError) as error:
        return Answer(None, clause(error))


def _stored(
    parsed: Sequence[T | Answer | None],
    kind: type[T],
    store: Callable[[Sequence[T]], Iterable[Answer]],
) -> list[Answer]:
    """Store the good lines together, and put the answers in the lines' order."""
    good = [one for one in parsed if isinstance(one, kind)]
    stored = iter(store(good)) if good else iter(())
    return [one if isinstance(one, Answer) else next(stored) for one in parsed]


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
