"""What a person asks for with a hold command: units, times, tokens out of the options."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar
from uuid import UUID

from freehold.domain.errors import UnknownHold, UnknownUnit, UsageError
from freehold.domain.inventory import ID_MAX

if TYPE_CHECKING:
    from freehold.adapters.sql.ledger import SqlLedger
    from freehold.domain.inventory import Hold, Stay, Tenant, Unit
    from freehold.domain.rules import Rule
    from freehold.ports.ledger import Transaction

T = TypeVar("T")


def within(ledger: SqlLedger, step: Callable[[Transaction], T]) -> T:
    """Run a step in a transaction of its own; one that met a deadlock is repeated."""
    from freehold.adapters.system import StopRequest, SystemDice
    from freehold.application.repeat import repeated

    answers: list[T] = []

    def once() -> None:
        with ledger.transaction() as tx:
            answer = step(tx)
        answers.append(answer)

    repeated(once, SystemDice(), StopRequest())
    return answers[0]


def new_token() -> UUID:
    """Draw a hold token."""
    from freehold.adapters.system import SystemDice

    return UUID(SystemDice().name())


def read_token(text: str) -> UUID:
    """Read a hold token.

    Raises:
        UsageError: it is none; what was given is not repeated.
    """
    try:
        return UUID(text)
    except ValueError:
        raise UsageError(
            "That is no hold token: give the one that create or renew printed last."
        ) from None


def owner_and_unit(tx: Transaction, tenant: str, name: str) -> tuple[Tenant, Unit]:
    """Look up a tenant's unit by its name.

    Raises:
        UnknownUnit: there is no such tenant or unit.
    """
    owner = next(iter(tx.tenants.read([tenant])), None)
    if owner is None:
        raise UnknownUnit(
            f"There is no tenant {tenant!r}; add it with `freehold tenant add`, or see "
            "`freehold tenant list`."
        )
    found = next(iter(tx.units.named(tenant, [name])), None)
    if found is None:
        raise UnknownUnit(
            f"Tenant {tenant!r} has no unit {name!r}; add it with `freehold unit add`, or see "
            f"`freehold unit list --tenant {tenant}`."
        )
    return owner, found


def granted(tx: Transaction, token: UUID) -> Hold:
    """Read the hold that has the token.

    Raises:
        UnknownHold: none has it.
    """
    found = next(iter(tx.own_holds.granted([token])), None)
    if found is None:
        raise UnknownHold(
            "No hold has this token: it was renewed under another one, or never granted."
        )
    return found


def by_key(tx: Transaction, key: str) -> Hold | None:
    """Read a hold by its id or token."""
    if not (key.isascii() and key.isdigit()):
        return next(iter(tx.own_holds.granted([read_token(key)])), None)
    number = int(key)
    return next(iter(tx.own_holds.read([number])), None) if number <= ID_MAX else None


def held_until(
    tx: Transaction, rule: Rule, length: str | None, until: str | None, owner: Tenant
) -> datetime:
    """Return the instant that a granting ends: until then, for so long, or for the usual window.

    Raises:
        UsageError: both were given, or one cannot be read.
    """
    from freehold.settings.notation import read_span

    if length is not None and until is not None:
        raise UsageError("Give --for or --until, not both.")
    if until is not None:
        return _time("--until", until, owner)
    assert rule.hold_window is not None
    try:
        return tx.now + (rule.hold_window if length is None else read_span(length))
    except ValueError as error:
        raise UsageError(f"--for {error}.") from None
    except OverflowError:
        raise UsageError("--for ends outside the years 1 to 9999.") from None


def stay_of(start: str | None, end: str | None, owner: Tenant) -> Stay | None:
    """Return the stay between two times; None for the unit itself.

    Raises:
        UsageError: one end is missing, or cannot be read, or nothing is between them.
    """
    from freehold.domain.inventory import Stay

    if start is None and end is None:
        return None
    if start is None or end is None:
        raise UsageError("A stay has two ends: give both --from and --to, or neither.")
    return Stay(_time("--from", start, owner), _time("--to", end, owner))


def _time(option: str, text: str, owner: Tenant) -> datetime:
    from freehold.domain.instants import read_instant
    from freehold.domain.inventory_text import DEFAULT_ZONE

    try:
        return read_instant(text, owner.zone or DEFAULT_ZONE)
    except ValueError as error:
        raise UsageError(f"{option} {error}.") from None
