"""Whether a rule may work: first attach, pause with a probe, and care after a lost backend."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from freehold.application.guards import lift_clock_guard, watch_clock
from freehold.domain.pauses import Role
from freehold.domain.rules import Rule
from freehold.ports.ledger import Act, Ledger, RuleCondition, RuleState, Transaction

PROBE_FIRST = timedelta(seconds=5)
PROBE_MOST = timedelta(minutes=5)
CAREFUL_BATCH = 22  # rows; the square root of a full batch bounds the innocents twice over
SERVER_CRASHES_MAX = 2
UNMET = ""  # the fingerprint of a rule that broke before its overdue holds were first counted


def admit(tx: Transaction, rule: Rule) -> RuleState:
    """Return the rule's state; a rule never met is attached, or waits when too much is overdue.

    The clock is looked at first: whoever may release asks here, in the same transaction.

    Again: an admitted rule stays as it is.
    """
    trusted = watch_clock(tx)
    known = tx.rules.read(rule.name) or _met(tx, rule, None)
    if _is_unmet(known):
        known = _met(tx, rule, known)
    if trusted and known.guards and lift_clock_guard(tx, known.guards):
        return tx.rules.read(rule.name) or known
    return known


def _met(tx: Transaction, rule: Rule, known: RuleState | None) -> RuleState:
    """Meet a rule: attach it, or let it wait."""
    overdue = tx.holds(rule).count_overdue(rule.attach_limit + 1)
    state = RuleState(rule.name, rule.fingerprint, RuleCondition.ACTIVE)
    if known is not None:
        state = replace(state, scan_paused=known.scan_paused)
    if overdue > rule.attach_limit:
        reason = (
            f"first attach found more than {rule.attach_limit} overdue holds; look at "
            f"`freehold plan {rule.name}`, then run `freehold attach {rule.name} --confirm COUNT`"
        )
        state = replace(state, condition=RuleCondition.WAITING, reason=reason)
    tx.rules.write(state)
    return tx.rules.read(rule.name) or state


def _is_unmet(state: RuleState) -> bool:
    """Tell whether a rule was paused before anybody could count what is overdue."""
    return state.condition is RuleCondition.PAUSED and state.fingerprint == UNMET


def batch_size(ledger: Ledger, rule: Rule) -> int:
    """Return how many holds of a rule one transaction may take."""
    return min(rule.batch_size, ledger.batch_limit or rule.batch_size)


def pause(
    tx: Transaction, rule: Rule, reason: str, first_probe: timedelta = PROBE_FIRST
) -> RuleState:
    """Pause a rule that fails as a whole; no attempt is spent, and a probe comes by itself.

    A rule that waits for a person goes on waiting: no probe may stand in for the confirmation.

    Again: before the probe nothing changes, so that failing scans do not put it off.
    """
    state = tx.rules.lock(rule.name) or RuleState(rule.name, UNMET, RuleCondition.ACTIVE)
    paused_already = state.condition is RuleCondition.PAUSED and not _may_try(state, tx.now)
    if paused_already or state.condition is RuleCondition.WAITING:
        return state
    paused = replace(
        state,
        condition=RuleCondition.PAUSED,
        reason=reason,
        probe_at=tx.now + min(first_probe * 2 ** min(state.probe_count, 10), PROBE_MOST),
        probe_count=state.probe_count + 1,
    )
    tx.rules.write(paused)
    return paused


def hasten_probe(tx: Transaction, rule: Rule) -> None:
    """Probe a paused rule soon, since new rows came that may fare better than those it met.

    A rule that took the server down twice waits its time.
    """
    state = tx.rules.lock(rule.name)
    if state is None or state.condition is not RuleCondition.PAUSED or state.probe_at is None:
        return
    soon = tx.now + PROBE_FIRST
    if state.probe_at > soon and state.crash_count < SERVER_CRASHES_MAX:
        tx.rules.write(replace(state, probe_at=soon))


def resume(tx: Transaction, rule: Rule) -> None:
    """Let a paused rule work again."""
    state = tx.rules.lock(rule.name)
    if state is not None:
        tx.rules.write(
            replace(
                state,
                condition=RuleCondition.ACTIVE,
                reason=None,
                probe_at=None,
                probe_count=0,
            )
        )


def may_work(state: RuleState, now: datetime) -> bool:
    """Tell whether work is allowed: the rule is active, or its probe is due; nobody stopped it."""
    if state.guards or state.pause_of(Role.WORK, now) is not None:
        return False
    return _may_try(state, now)


def _may_try(state: RuleState, now: datetime) -> bool:
    if state.condition is RuleCondition.PAUSED:
        return state.probe_at is not None and state.probe_at <= now
    return state.condition is RuleCondition.ACTIVE


def be_careful(ledger: Ledger, rule: Rule, server_before: datetime | None) -> RuleState:
    """After a backend was lost with a batch in hand: smaller batches, under a lease.

    The second time that the whole server restarted over this rule, the rule is paused.
    """
    with ledger.transaction() as tx:
        state = tx.rules.lock(rule.name) or RuleState(
            rule.name, rule.fingerprint, RuleCondition.ACTIVE
        )
        restarted = server_before is not None and ledger.server_started_at != server_before
        crashes = state.crash_count + (1 if restarted else 0)
        careful = replace(state, batch_limit=CAREFUL_BATCH, leased=True, crash_count=crashes)
        tx.rules.write(careful)
        if crashes >= SERVER_CRASHES_MAX:
            reason = f"the database server restarted {crashes} times with this rule in hand"
            return pause(tx, rule, reason, PROBE_MOST)
        if careful.condition is RuleCondition.PAUSED:
            return pause(tx, rule, careful.reason or "a probe lost its connection")
        return careful


def trust_again(ledger: Ledger, rule: Rule) -> None:
    """Lift the care after clean batches."""
    with ledger.transaction() as tx:
        state = tx.rules.lock(rule.name)
        if state is not None:
            tx.rules.write(replace(state, batch_limit=None, leased=False, crash_count=0))


def switch_schedule(tx: Transaction, rule: Rule, by: str, reason: str, *, paused: bool) -> bool:
    """Pause or resume a rule's scans, in the action log; False when it was so already."""
    state = tx.rules.lock(rule.name) or admit(tx, rule)
    if (state.scan_paused is not None) == paused:
        return False
    note = f"by {by}: {reason}" if paused else None
    tx.rules.write(replace(state, scan_paused=note))
    if not paused:
        tx.rules.unsettle(rule.name)
    tx.actions.record(
        Act(
            actor=by,
            action="schedule pause" if paused else "schedule resume",
            subject=rule.name,
            reason=reason,
            before=state.scan_paused or "running",
            after=note or "running",
        )
    )
    return True
