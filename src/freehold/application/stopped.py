"""What keeps a whole rule from working, in words that end with what to do about it.

*Not here*: whether work is allowed (`rulestate`, `gate`), which decides the same without words.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from freehold.domain.pauses import RULE_ROLES, Pause, Role
from freehold.domain.rules import Mode, Rule
from freehold.ports.ledger import Ledger, RuleCondition, RuleState

BOTH = (Role.SCAN, Role.WORK)  # without them nothing is released; a broker is a hint


@dataclass(slots=True)
class Stopped:
    """What stands in the way of a one-shot.

    Attributes:
        rules: those that cannot work, each with its reason.
        tenants: those whose holds are left as they are until somebody resumes them.
    """

    rules: dict[str, str] = field(default_factory=dict)
    tenants: set[str] = field(default_factory=set)


def find_stopped(ledger: Ledger, rules: Sequence[Rule], roles: Collection[Role] = BOTH) -> Stopped:
    """Look at what keeps rules from being worked on in these roles."""
    found = Stopped()
    with ledger.transaction() as tx:
        for rule in rules:
            state = tx.rules.read(rule.name)
            if state is None:
                continue
            asked = BOTH if rule.mode is Mode.DIRECT else roles  # a direct scan is all the work
            found.tenants |= state.paused_tenants(tx.now, *asked)
            reason = what_stops(state, tx.now, asked)
            if reason is not None:
                found.rules[rule.name] = reason
    return found


def what_stops(state: RuleState, now: datetime, roles: Collection[Role] = BOTH) -> str | None:
    """Say why a rule cannot work; None where it can.

    A pause's reason is in the database's words, or a trigger's, which may name a guest: a crontab
    would mail it, so only a person who asks is shown it.
    """
    if state.condition is RuleCondition.WAITING:
        return state.reason or state.condition.value
    if state.condition is RuleCondition.PAUSED and Role.WORK in roles:
        return (
            "it fails as a whole, in the database or in its handler, so it is paused; "
            "`freehold status` has the reason, `freehold doctor` looks for what to mend"
        )
    return held_back(state, now, roles)


def held_back(state: RuleState, now: datetime, roles: Collection[Role] = BOTH) -> str | None:
    """Say which guard or which person keeps a whole rule from working; None where none does."""
    if state.guard is not None:
        return state.guard
    parts = []
    if state.scan_paused is not None and Role.SCAN in roles:
        parts.append(
            f"its schedule is paused {state.scan_paused} (`freehold schedule resume {state.rule} "
            "--by NAME --reason TEXT` ends that)"
        )
    pauses = [one for role in RULE_ROLES if role in roles and (one := state.pause_of(role, now))]
    parts += [f"its {one.role} is paused {one} ({_resume(one)} ends that)" for one in pauses]
    return "; ".join(parts) or None


def _resume(pause: Pause) -> str:
    rule = "" if pause.rule is None else f" --rule {pause.rule}"
    return f"`freehold resume {pause.role}{rule} --by NAME --reason TEXT`"
