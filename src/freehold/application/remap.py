"""A changed mapping: operations built by another one are built anew before anything is decided.

So two versions of a program that run at once never run an operation under a meaning that it was not
built by. *Invariants*: an operation that cannot be built anew ends as a skip; its hold, if it is due
under the new mapping, is found by the next scan.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from freehold.application.found import new_operation
from freehold.application.rulestate import UNMET
from freehold.domain.due import DueProblem, is_due, read_due
from freehold.domain.operations import Claim, NewOperation
from freehold.domain.rules import Rule
from freehold.ports.ledger import Act, Ledger, Transaction

OURSELVES = "freehold"  # who acts when nobody does
ACTION = "mapping changed"


def is_foreign(rule: Rule, fingerprint: str | None) -> bool:
    """Tell whether an operation was built by another mapping of the rule."""
    return fingerprint is not None and fingerprint != rule.fingerprint


def rebuilt(
    tx: Transaction, rule: Rule, claims: Sequence[Claim]
) -> tuple[list[Claim], list[Claim]]:
    """Build claimed operations anew where another mapping built them.

    Returns:
        The claims as they are to be decided, and those whose hold is not held and due any more, or
        has an operation of the new mapping already.

    Raises:
        RowRefused: an operation of the same identity was written at this moment; try again.
    """
    foreign = [claim for claim in claims if is_foreign(rule, claim.fingerprint)]
    if not foreign:
        return list(claims), []
    built = built_anew(tx, rule, foreign)
    tx.operations.rebuild(built, rule.fingerprint)
    ended = {claim.id: claim for claim in foreign if claim.id not in built}
    kept = [_as_built(rule, one, built.get(one.id)) for one in claims if one.id not in ended]
    return kept, list(ended.values())


def built_anew(tx: Transaction, rule: Rule, claims: Sequence[Claim]) -> dict[int, NewOperation]:
    """Return what the rule's own mapping makes of operations, by id; writes nothing."""
    named = tx.straight(rule).find_named([claim.hold_key for claim in claims])
    rows = {row.hold_key: row for row in named}
    built: dict[int, NewOperation] = {}
    for claim in claims:
        row = rows.get(claim.hold_key)
        due = None if row is None else read_due(rule.due, row.due)
        if row is None or due is None or not _counts(rule, due, tx.now):
            continue
        new = new_operation(rule, row, due, tx.now)
        is_another_open = new is not None and row.is_open and new.digest != claim.digest
        if new is not None and new.due_at is not None and not is_another_open:
            built[claim.id] = new
    return built


def _counts(rule: Rule, due: datetime | DueProblem, now: datetime) -> bool:
    return isinstance(due, DueProblem) or is_due(rule.due, due, now)


def _as_built(rule: Rule, claim: Claim, new: NewOperation | None) -> Claim:
    if new is None or new.due_at is None:
        return claim
    return replace(
        claim,
        tenant=new.tenant,
        digest=new.digest,
        due_at=new.due_at,
        fingerprint=rule.fingerprint,
    )


def follow_mappings(ledger: Ledger, rules: Sequence[Rule]) -> None:
    """Note the mappings that this process runs by, with an entry in the action log for a change.

    Again: notes nothing. Two versions that run at once each note theirs once, when they begin.
    """
    for rule in rules:
        with ledger.transaction() as tx:
            state = tx.rules.read(rule.name)
            if state is None or state.fingerprint in (UNMET, rule.fingerprint):
                continue
            state = tx.rules.lock(rule.name) or state
            if state.fingerprint == rule.fingerprint:
                continue
            tx.rules.write(replace(state, fingerprint=rule.fingerprint))
            tx.actions.record(
                Act(
                    actor=OURSELVES,
                    action=ACTION,
                    subject=rule.name,
                    reason="the configuration maps the rule otherwise",
                    before=state.fingerprint,
                    after=rule.fingerprint,
                )
            )
