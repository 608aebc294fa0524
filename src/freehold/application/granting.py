"""Granting holds of our own, renewing, confirming and cancelling them; no step commits.

*Invariants*: a lapsed hold in the way is released by the same compare-and-set as every other, with
its record and its event; what counts as due is decided by the instant of the call, and by nothing
that happens while it waits for a lock.
*Not here*: the statements (`ports.inventory`), expiring on time (`application.work`).
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from freehold.domain.inventory import Hold, NewHold, Renewal
from freehold.domain.rules import Rule
from freehold.ports.ledger import Transaction
from freehold.ports.system import Checkpoint


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
    raise NotImplementedError


def renew(tx: Transaction, rule: Rule, renewal: Renewal) -> Hold:
    """Give a hold more time and a new token; the old token is worth nothing from then on.

    Raises:
        HoldLapsed: it is not held any more, or due by now.
        UnknownHold: no hold has this token.
    """
    raise NotImplementedError


def confirm(tx: Transaction, rule: Rule, token: UUID) -> Hold:
    """Confirm a hold before it is due.

    Again: the same hold, and no second event.

    Raises:
        HoldLapsed: it is due by now, expired or cancelled.
        UnknownHold: no hold has this token.
    """
    raise NotImplementedError


def cancel(tx: Transaction, rule: Rule, token: UUID) -> Hold:
    """Cancel a held or confirmed hold.

    Again: the same hold, and no second event.

    Raises:
        HoldLapsed: it expired.
        UnknownHold: no hold has this token.
    """
    raise NotImplementedError
