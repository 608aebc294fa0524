"""Attach a waiting rule by confirming how much is overdue, and detach one that is to end.

*Invariants*: what a person confirmed, or ended, stands in the action log of the same transaction.
*Not here*: when a rule waits (`rulestate.admit`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from freehold.domain.errors import RefusedByState, UsageError
from freehold.domain.rules import Rule
from freehold.ports.ledger import Act, Ledger, RuleCondition, RuleState, Transaction

EXACT_UPTO = 1_000  # up to here the confirmed count must be exact
TOLERANCE = 0.01  # of a larger count, which moves while a person types
LOOK_BEYOND = 100_000  # counted beyond the confirmed number, so that the answer names the right one
PAGE_ROWS = 500  # operations ended in one transaction


@dataclass(frozen=True, slots=True)
class Attached:
    """How an attach ended.

    Attributes:
        changed: False when the rule was active already.
    """

    rule: str
    overdue_count: int
    changed: bool


@dataclass(frozen=True, slots=True)
class Detached:
    """How a detach ended.

    Attributes:
        left_count: operations that a worker has in hand at this moment.
    """

    rule: str
    closed_count: int
    left_count: int


def attach(
    ledger: Ledger,
    rule: Rule,
    confirmed_count: int,
    actor: str,
    reason: str,
    per_second: float | None = None,
) -> Attached:
    """Let a waiting rule work, if the confirmed count is the true one.

    Args:
        per_second: how many of the overdue holds the scan may take up; None for all at once.

    Raises:
        UsageError: the rule's due column knows no order, so that no rate can be kept.
        RefusedByState: it is not, or the rule is paused; the sentence says what is so.
    Again: does nothing, and says so.
    """
    if per_second is not None and not rule.due.comparable_bare:
        raise UsageError(
            f"The due column of rule {rule.name} has to be read whole at each scan, so that no "
            "--rate can be kept: leave it out."
        )
    with ledger.transaction() as tx:
        state = tx.rules.lock(rule.name)
        if state is not None and state.condition is RuleCondition.PAUSED:
            raise RefusedByState(
                f"Rule {rule.name} is paused, not waiting: {state.reason}; mend that, and it "
                "resumes by itself."
            )
        if state is not None and state.condition is RuleCondition.ACTIVE:
            return Attached(rule.name, 0, changed=False)
        overdue = _confirmed(tx, rule, confirmed_count)
        _activate(tx, rule, state)
        after = f"active, with {overdue} overdue holds confirmed"
        if per_second is None:
            tx.rates.end(rule.name)
        else:
            tx.rates.write(rule.name, per_second)
            after += f", at most {per_second:g} of them a second"
        before = "never met" if state is None else f"waiting: {state.reason}"
        tx.actions.record(Act(actor, "attach", rule.name, reason, before, after))
    return Attached(rule.name, overdue, changed=True)


def _confirmed(tx: Transaction, rule: Rule, confirmed_count: int) -> int:
    most = 2 * confirmed_count + LOOK_BEYOND
    overdue = tx.holds(rule).count_overdue(most)
    if not is_close(confirmed_count, overdue):
        number = f"at least {overdue}" if overdue >= most else str(overdue)
        raise RefusedByState(
            f"Rule {rule.name} has {number} overdue holds now, not {confirmed_count}; look at "
            f"`freehold plan {rule.name}`, then confirm that count."
        )
    return overdue


def is_close(confirmed_count: int, overdue_count: int) -> bool:
    """Tell whether a confirmed count stands for the true one."""
    if overdue_count <= EXACT_UPTO:
        return confirmed_count == overdue_count
    return abs(confirmed_count - overdue_count) <= overdue_count * TOLERANCE


def _activate(tx: Transaction, rule: Rule, state: RuleState | None) -> None:
    known = state or RuleState(rule.name, rule.fingerprint, RuleCondition.ACTIVE)
    tx.rules.write(
        replace(known, fingerprint=rule.fingerprint, condition=RuleCondition.ACTIVE, reason=None)
    )
    tx.rules.unsettle(rule.name)


def detach(ledger: Ledger, name: str, actor: str, reason: str) -> Detached:
    """End every open operation of a rule, also of one that is no longer configured.

    A rule that is still configured waits afterwards, until it is attached again.

    Raises:
        UsageError: the ledger has never met a rule of that name.
    Again: ends what came since, most often nothing.
    Crash: what was ended stays ended, and the rule waits.
    """
    with ledger.transaction() as tx:
        state = tx.rules.lock(name)
        if state is None:
            raise UsageError(
                f"The ledger knows no rule named {name!r}; run `freehold status` to see those that "
                "it knows."
            )
        why = f"detached by {actor}: {reason}"
        waiting = replace(state, condition=RuleCondition.WAITING, reason=why, probe_at=None)
        tx.rules.write(waiting)
        before = f"{state.condition}: {state.reason}" if state.reason else str(state.condition)
        tx.actions.record(Act(actor, "detach", name, reason, before, "waiting"))
    closed = 0
    while ended := _end_page(ledger, name, why):
        closed += ended
    with ledger.transaction() as tx:
        return Detached(name, closed, tx.reviews.count_open(name, LOOK_BEYOND))


def _end_page(ledger: Ledger, name: str, why: str) -> int:
    with ledger.transaction() as tx:
        ids = tx.reviews.withdraw(name, PAGE_ROWS, why)
        return tx.reviews.close(ids, why) if ids else 0
