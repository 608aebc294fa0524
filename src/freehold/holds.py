"""Built-in holds inside your own transaction: hold, renew, confirm, cancel, still_held, read.

Every function takes your open connection, of psycopg 3 or of `sqlite3`, joins the transaction on
it, and neither commits nor rolls back: what it did stands or falls with yours. The settings of your
session are as before when it returns. A refusal (`RefusedByState`, `UsageError`) leaves the
transaction usable; a `DatabaseError` has lost it, as an error of the driver's would have.

*Not here*: the service that expires holds on time (`freehold run`), tenants, units, import and
lists (commands of `freehold`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from uuid import UUID

from freehold.adapters.system import Onwards, SystemDice
from freehold.application import granting
from freehold.application.granting import Granted
from freehold.bootstrap import join
from freehold.domain.errors import (
    DatabaseAway,
    DatabaseBusy,
    DatabaseError,
    FreeholdError,
    HoldLapsed,
    HoldTaken,
    RefusedByState,
    RuleRefused,
    UnknownHold,
    UnknownUnit,
    UsageError,
)
from freehold.domain.inventory import (
    Hold,
    HoldStatus,
    NewHold,
    Renewal,
    Stay,
    built_in_rule,
    check_text,
)
from freehold.domain.rules import Rule
from freehold.ports.ledger import Transaction

__all__ = [
    "DatabaseAway",
    "DatabaseBusy",
    "DatabaseError",
    "FreeholdError",
    "Granted",
    "Hold",
    "HoldLapsed",
    "HoldStatus",
    "HoldTaken",
    "RefusedByState",
    "Stay",
    "UnknownHold",
    "UnknownUnit",
    "UsageError",
    "cancel",
    "confirm",
    "hold",
    "read",
    "renew",
    "still_held",
]


def hold(
    connection: object,
    *,
    tenant: str,
    unit: int | str,
    window: timedelta | None = None,
    until: datetime | None = None,
    starts_at: datetime | None = None,
    ends_at: datetime | None = None,
    reference: str | None = None,
    rule: Rule | None = None,
) -> Granted:
    """Hold a unit for a while; a lapsed hold in the way is released first, with record and event.

    After such a release of a rule with companions that have no `lock_by`, the service releases
    nothing of that rule until your transaction ends: keep it short.

    Args:
        unit: its id, or its name within the tenant.
        window: how long it is held from the database's now on; or give `until`.
        starts_at: with `ends_at` the stay, half-open; without both the unit itself, for ever.
        reference: a key of yours, unique in the tenant, that makes a second call harmless.
        rule: the built-in rule as your installation sets it (`Settings.built_in`); needed where
            the table [holds] names a handler, companions or another name.

    Again: with the same reference the same hold, never a second one.

    Raises:
        HoldTaken: another hold is in the way, or a lapsed one that is not released yet.
        HoldLapsed: the reference names a hold that has ended.
        UnknownUnit: the tenant has no such unit.
        UsageError: an argument is outside of what the table can hold.
        DatabaseBusy: a deadlock or your lock time-out; repeat your whole transaction.
    """
    stay = _stay(starts_at, ends_at)
    with _joined(connection, rule) as (tx, known):
        new = NewHold(
            tenant=tenant,
            unit_id=_unit_id(tx, tenant, unit),
            hold_until=_until(tx, window, until),
            token=_new_token(),
            stay=stay,
            reference=reference,
        )
        return granting.grant(tx, known, new, Onwards())


def renew(
    connection: object,
    token: UUID | str,
    *,
    window: timedelta | None = None,
    until: datetime | None = None,
    rule: Rule | None = None,
) -> Hold:
    """Give a hold more time; the hold returned has a new token, and the old one is worth nothing.

    Raises:
        HoldLapsed: its time is over, or it was confirmed or cancelled.
        UnknownHold: no hold has this token.
    """
    with _joined(connection, rule) as (tx, known):
        renewal = Renewal(read_token(token), _new_token(), _until(tx, window, until))
        return granting.renew(tx, known, renewal)


def confirm(connection: object, token: UUID | str, *, rule: Rule | None = None) -> Hold:
    """Confirm a hold before its time is over; it is never released after that.

    Again: the same hold, and no second event.

    Raises:
        HoldLapsed: its time is over, or it was cancelled.
        UnknownHold: no hold has this token.
    """
    with _joined(connection, rule) as (tx, known):
        return granting.confirm(tx, known, read_token(token))


def cancel(connection: object, token: UUID | str, *, rule: Rule | None = None) -> Hold:
    """Cancel a held or confirmed hold.

    Again: the same hold, and no second event.

    Raises:
        HoldLapsed: it expired.
        UnknownHold: no hold has this token.
    """
    with _joined(connection, rule) as (tx, known):
        return granting.cancel(tx, known, read_token(token))


def still_held(connection: object, token: UUID | str) -> bool:
    """Tell whether a hold is held and not due, by the clock of the database; takes no lock.

    The answer is true for the moment of the question only: to act on it, `confirm`.
    """
    wanted = read_token(token)
    with join(connection).glance() as tx:
        return wanted in tx.own_holds.still_held([wanted])


def read(connection: object, token: UUID | str) -> Hold | None:
    """Return the hold that has this token now; takes no lock."""
    with join(connection).glance() as tx:
        return next(iter(tx.own_holds.granted([read_token(token)])), None)


def read_token(token: UUID | str) -> UUID:
    """Read a hold token.

    Raises:
        UnknownHold: it is none.
    """
    try:
        return token if isinstance(token, UUID) else UUID(token)
    except (ValueError, AttributeError, TypeError) as error:
        raise UnknownHold("This is no hold token; a token is a UUID.") from error


@contextmanager
def _joined(connection: object, rule: Rule | None) -> Iterator[tuple[Transaction, Rule]]:
    """Join the caller's transaction for one call."""
    ledger = join(connection)
    try:
        with ledger.transaction() as tx:
            yield tx, rule or built_in_rule(ledger.session.dialect)
    except RuleRefused as error:
        raise RuleRefused(
            f"{error}; are the built-in holds there? Run `freehold db upgrade`.", error.code
        ) from error


def _stay(starts_at: datetime | None, ends_at: datetime | None) -> Stay | None:
    if starts_at is None and ends_at is None:
        return None
    if starts_at is None or ends_at is None:
        raise UsageError("A stay needs both starts_at and ends_at.")
    return Stay(starts_at, ends_at)


def _until(tx: Transaction, window: timedelta | None, until: datetime | None) -> datetime:
    if (window is None) == (until is None):
        raise UsageError("Say how long: give either window or until.")
    try:
        return until if until is not None else tx.now + (window or timedelta())
    except OverflowError:
        raise UsageError("The window leads beyond the year 9999; give a shorter one.") from None


def _unit_id(tx: Transaction, tenant: str, unit: int | str) -> int:
    if isinstance(unit, int):
        return unit
    check_text("tenant id", tenant)
    check_text("unit name", unit)
    found = next(iter(tx.units.named(tenant, [unit])), None)
    if found is None:
        raise UnknownUnit(f"Tenant {tenant} has no unit of that name; see `freehold unit list`.")
    return found.id


def _new_token() -> UUID:
    return UUID(SystemDice().name())
