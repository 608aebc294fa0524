"""Granting holds of our own, renewing, confirming and cancelling them; no step commits.

*Invariants*: a lapsed hold in the way is released by the same compare-and-set as every other, with
its record and its event; what counts as due is decided by the instant of the call, and by nothing
that happens while it waits for a lock.
*Not here*: the statements (`ports.inventory`), expiring on time (`application.work`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from shlex import quote
from uuid import UUID

from freehold.application.guards import clock_agrees
from freehold.application.straight import release_straight
from freehold.application.together import may_run
from freehold.domain.due import read_due
from freehold.domain.errors import (
    HoldLapsed,
    HoldTaken,
    RefusedByState,
    UnknownHold,
    UnknownUnit,
    UsageError,
)
from freehold.domain.events import EventType
from freehold.domain.inventory import Hold, HoldStatus, NewHold, Renewal
from freehold.domain.pauses import Role
from freehold.domain.rules import Rule
from freehold.ports.ledger import RuleCondition, Transaction
from freehold.ports.system import Checkpoint

ROUNDS_MAX = 3  # others may end, or place, a hold between two steps of ours
IN_WAY_MAX = 500  # lapsed holds that one granting releases; the service does the rest


@dataclass(frozen=True, slots=True)
class Granted:
    """A hold that was granted.

    Attributes:
        is_new: False when its reference had been granted before.
    """

    hold: Hold
    is_new: bool


def grant(tx: Transaction, rule: Rule, new: NewHold, checkpoint: Checkpoint) -> Granted:
    """Grant a hold; lapsed holds in its way are released first.

    Again: with the same reference, the same hold, as long as it is held or confirmed.

    Raises:
        HoldTaken: another hold is in the way; says until when.
        HoldLapsed: the reference names a hold that has ended.
        RefusedByState: the reference names a hold of another unit or stay; the unit is not active.
        UnknownUnit: the tenant has no such unit.
        UsageError: `hold_until` is not after now.
    """
    if new.hold_until <= tx.now:
        raise UsageError("A hold must end in the future; give a later hold_until.")
    for _ in range(ROUNDS_MAX):
        hold = tx.own_holds.place(new)
        if hold is not None:
            tx.own_holds.tell(EventType.HOLD_HELD, rule.name, hold)
            return Granted(hold, is_new=True)
        before = _granted_before(tx, new)
        if before is not None:
            return Granted(before, is_new=False)
        _require_unit(tx, new)
        _clear_way(tx, rule, new, checkpoint)
    raise HoldTaken(f"Others took unit {_name(tx, new.unit_id)} meanwhile; ask again.")


def _granted_before(tx: Transaction, new: NewHold) -> Hold | None:
    """Return the hold that this reference was granted before, None where it is a new one."""
    if new.reference is None:
        return None
    before = next(iter(tx.own_holds.referenced(new.tenant, [new.reference])), None)
    if before is None:
        return None
    if (before.unit_id, before.stay) != (new.unit_id, new.stay):
        raise RefusedByState(
            f"The reference names hold {before.id} already, which is of another unit or stay; "
            "use a reference of its own for each hold."
        )
    if not before.is_live(tx.now):
        raise HoldLapsed(f"{_how_it_ended(before)} Use a new reference to hold the unit again.")
    return before


def _require_unit(tx: Transaction, new: NewHold) -> None:
    unit = next(iter(tx.units.read([new.unit_id])), None)
    if unit is None or unit.tenant != new.tenant:
        raise UnknownUnit(
            f"Tenant {new.tenant} has no unit {new.unit_id}; see `freehold unit list`."
        )
    if not unit.active:
        raise RefusedByState(f"Unit {unit.name} is not active; `freehold unit list` shows why not.")
    if not all(tenant.active for tenant in tx.tenants.read([new.tenant])):
        raise RefusedByState(
            f"Tenant {new.tenant} is not active; "
            f"`freehold tenant set {quote(new.tenant)} --active --by NAME` changes it."
        )


def _name(tx: Transaction, unit_id: int) -> str:
    """Return the name that its tenant knows a unit by."""
    return next((unit.name for unit in tx.units.read([unit_id])), str(unit_id))


def _clear_way(tx: Transaction, rule: Rule, new: NewHold, checkpoint: Checkpoint) -> None:
    """Release lapsed holds in the way; does nothing when there are none any more."""
    found = tx.own_holds.in_way(new.unit_id, new.stay, IN_WAY_MAX)
    _refuse_taken(tx, found)
    if not found:
        return
    _require_release(tx, rule, found[0])
    # Wait here, in id order: whoever has them locked is about to end them, or to grant them anew.
    held = [one for one in tx.own_holds.lock([one.id for one in found]) if one.keeps_out]
    _refuse_taken(tx, held)
    _release(tx, rule, held, checkpoint)


def _refuse_taken(tx: Transaction, found: Sequence[Hold]) -> None:
    live = [one for one in found if one.is_live(tx.now)]
    for one in live:
        if one.status is HoldStatus.CONFIRMED:
            raise HoldTaken(
                f"Unit {_name(tx, one.unit_id)} is taken by hold {one.id}, which is confirmed; "
                "choose another unit or stay.",
                hold_id=one.id,
            )
    if live:
        last = max(live, key=lambda one: one.hold_until)
        raise HoldTaken(
            f"Unit {_name(tx, last.unit_id)} is held by hold {last.id} until "
            f"{last.hold_until:%Y-%m-%d %H:%M:%S} UTC; ask again then, or choose another unit or stay.",
            hold_id=last.id,
            hold_until=last.hold_until,
        )


def _require_release(tx: Transaction, rule: Rule, lapsed: Hold) -> None:
    """Refuse where a release within the caller's transaction is not ours to do."""
    state = tx.rules.read(rule.name)
    stopped = state is not None and (
        state.condition is not RuleCondition.ACTIVE
        or state.fingerprint != rule.fingerprint
        or state.guard is not None
        or state.pause_of(Role.WORK, tx.now) is not None
        or lapsed.tenant in state.paused_tenants(tx.now, Role.WORK)
    )
    if stopped or rule.handler is not None or not clock_agrees(tx) or not may_run(tx, rule):
        raise _not_yet_released(lapsed)


def _not_yet_released(lapsed: Hold) -> HoldTaken:
    return HoldTaken(
        f"Hold {lapsed.id} is in the way: it lapsed at {lapsed.hold_until:%Y-%m-%d %H:%M:%S} UTC and is not "
        "yet released; ask again in a moment, or see `freehold why`.",
        hold_id=lapsed.id,
        hold_until=lapsed.hold_until,
    )


def _release(tx: Transaction, rule: Rule, lapsed: Sequence[Hold], checkpoint: Checkpoint) -> None:
    if not lapsed:
        return
    found = tx.straight(rule).find_named([str(one.id) for one in lapsed])
    rows = [(one, read_due(rule.due, one.due)) for one in found]
    done = release_straight(tx, rule, rows, checkpoint)
    if done.result.released_count < len(lapsed):
        raise _not_yet_released(lapsed[0])


def renew(tx: Transaction, rule: Rule, renewal: Renewal) -> Hold:
    """Give a hold more time and a new token; the old token is worth nothing from then on.

    Raises:
        HoldLapsed: it is not held any more, or due by now.
        UnknownHold: no hold has this token.
        UsageError: the new end is not after now.
    """
    if renewal.hold_until <= tx.now:
        raise UsageError("A hold must end in the future; give a later hold_until.")
    hold = tx.own_holds.renew(renewal)
    if hold is None:
        raise HoldLapsed(_how_it_ended(_granted(tx, renewal.token)))
    tx.own_holds.tell(EventType.HOLD_RENEWED, rule.name, hold)
    return hold


def confirm(tx: Transaction, rule: Rule, token: UUID) -> Hold:
    """Confirm a hold before it is due.

    Again: the same hold, and no second event.

    Raises:
        HoldLapsed: it is due by now, expired or cancelled.
        UnknownHold: no hold has this token.
    """
    hold = tx.own_holds.confirm(token)
    if hold is None:
        return _already(tx, token, HoldStatus.CONFIRMED)
    tx.own_holds.tell(EventType.HOLD_CONFIRMED, rule.name, hold)
    return hold


def cancel(tx: Transaction, rule: Rule, token: UUID) -> Hold:
    """Cancel a held or confirmed hold.

    Again: the same hold, and no second event.

    Raises:
        HoldLapsed: it expired.
        UnknownHold: no hold has this token.
    """
    hold = tx.own_holds.cancel(token)
    if hold is None:
        return _already(tx, token, HoldStatus.CANCELLED)
    tx.own_holds.tell(EventType.HOLD_CANCELLED, rule.name, hold)
    return hold


def _already(tx: Transaction, token: UUID, status: HoldStatus) -> Hold:
    """Return the hold that was brought into this status before."""
    hold = _granted(tx, token)
    if hold.status is not status:
        raise HoldLapsed(_how_it_ended(hold))
    return hold


def _granted(tx: Transaction, token: UUID) -> Hold:
    hold = next(iter(tx.own_holds.granted([token])), None)
    if hold is None:
        raise UnknownHold(
            "No hold has this token: it was renewed and has another now, or was never granted."
        )
    return hold


def _how_it_ended(hold: Hold) -> str:
    if hold.status is HoldStatus.HELD:
        return (
            f"Hold {hold.id} lapsed at {hold.hold_until:%Y-%m-%d %H:%M:%S} UTC; ask for a new hold, "
            "if the stay is still free."
        )
    return f"Hold {hold.id} is {hold.status} already; look at it with `freehold hold show`."
