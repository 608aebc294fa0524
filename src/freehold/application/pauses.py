"""Pauses that people begin and end, by role, rule and tenant.

A pause of `scan` writes no operation; one of `work` releases nothing. For a single tenant either one
keeps the scan from writing its operations, and one of `work` puts off those that are there. A pause
of `report` sends no mail; days are closed and facts frozen all the same. One of `dispatch` names
nothing to a broker, and workers ask the ledger; one of `relay` tells no target of events.

*Invariants*: beginning and end of a pause are in the action log, unless it ended by its own `until`.
*Not here*: a rule's schedule (`rulestate.switch_schedule`), a rule that pauses itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from freehold.domain.errors import RefusedByState
from freehold.domain.expiry import DeferReason
from freehold.domain.operations import Claim
from freehold.domain.pauses import Pause, Role
from freehold.domain.rules import Mode, Rule
from freehold.ports.ledger import Act, Ledger, Put, RuleState, Transaction

PAGE = 500  # operations brought back in one transaction
PUT_OFF = timedelta(hours=1)  # then a worker looks again, should a resume have been cut short
Scope = tuple[Role, str | None, str | None]


def begin_pause(ledger: Ledger, pause: Pause) -> None:
    """Pause, on a person's word.

    Again: what is paused already takes reason and end from here.
    """
    with ledger.transaction() as tx:
        before = next((one for one in tx.pauses.open() if scope_of(one) == scope_of(pause)), None)
        tx.pauses.begin(pause)
        tx.actions.record(
            Act(
                actor=pause.by,
                action=f"pause {pause.role}",
                subject=subject(scope_of(pause)),
                reason=pause.reason,
                before="running" if before is None else str(before),
                after=str(pause),
            )
        )


def end_pause(ledger: Ledger, scope: Scope, rules: Sequence[str], actor: str, reason: str) -> int:
    """End a pause, and bring back what it had put off.

    Args:
        rules: names of every configured rule.

    Returns:
        How many operations were brought back.

    Raises:
        RefusedByState: nothing is paused so.
    Crash: the pause is over; what was not brought back is looked at again within the hour.
    """
    role, rule, tenant = scope
    with ledger.transaction() as tx:
        before = next((one for one in tx.pauses.open() if scope_of(one) == scope), None)
        if before is None or not tx.pauses.end(role, rule, tenant):
            raise RefusedByState(
                f"The {role} of {subject(scope)} is not paused; `freehold pause list` shows what is."
            )
        tx.rules.unsettle(rule)
        tx.actions.record(
            Act(actor, f"resume {role}", subject(scope), reason, str(before), "running")
        )
    if tenant is None or role is Role.REPORT:  # a sender looks again within a minute
        return 0
    return sum(_bring_back(ledger, one, tenant) for one in rules if rule in (None, one))


def _bring_back(ledger: Ledger, rule: str, tenant: str) -> int:
    total = 0
    while True:
        with ledger.transaction() as tx:
            count = tx.operations.bring_back(rule, tenant, PAGE)
        total += count
        if count < PAGE:
            return total


def scope_of(pause: Pause) -> Scope:
    """Name a pause."""
    return pause.role, pause.rule, pause.tenant


def subject(scope: Scope) -> str:
    """Name what a pause is about."""
    role, rule, tenant = scope
    if role is Role.RELAY:
        return "all targets"
    if role is Role.REPORT:
        return "all tenants" if tenant is None else f"tenant {tenant}"
    whose = "" if tenant is None else f", tenant {tenant}"
    return (rule or "all rules") + whose


def end_lapsed(tx: Transaction, state: RuleState) -> RuleState:
    """End the pauses of a rule that are over by their `until`; return its state."""
    over = [one for one in state.pauses if not one.stands(tx.now)]
    for one in over:
        tx.pauses.end(*scope_of(one))
        tx.rules.unsettle(one.rule)
    return (tx.rules.read(state.rule) or state) if over else state


def scan_pause(rule: Rule, state: RuleState, now: datetime) -> Pause | None:
    """Return the pause that keeps the whole rule from being scanned, if one stands.

    In mode `direct` a scan is all the work there is.
    """
    paused = state.pause_of(Role.SCAN, now)
    if paused is None and rule.mode is Mode.DIRECT:
        return state.pause_of(Role.WORK, now)
    return paused


def set_aside(
    tx: Transaction, state: RuleState, claims: Sequence[Claim]
) -> tuple[Sequence[Claim], int]:
    """Put off claimed operations of paused tenants; return the others, and how many those were."""
    paused = state.paused_tenants(tx.now, Role.WORK) if state.pauses else frozenset()
    aside = [claim for claim in claims if claim.tenant in paused]
    if not aside:
        return claims, 0
    ends = {one.tenant: one.until for one in state.pauses if one.role is Role.WORK}
    latest = tx.now + PUT_OFF
    reason = DeferReason.PAUSED.value
    tx.operations.put_off(
        [Put(one.id, reason, min(ends.get(one.tenant) or latest, latest), 0) for one in aside]
    )
    kept = {one.id for one in aside}
    return [claim for claim in claims if claim.id not in kept], len(aside)
