"""The part of a page that goes rule by rule, and what of it needs a person."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from freehold.adapters.rendering.kept import Kept
from freehold.adapters.rendering.shown import shown
from freehold.adapters.rendering.texts import Wording
from freehold.domain.facts import Facts, RuleFacts

RULES_MAX = 10  # blocks; a mail of more than 100 kB is clipped by its reader
NAME_LENGTH_MAX = 60  # characters
PERSON_LINES_MAX = 10
WARN = "warn"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a rule's block; `look` is empty or `warn`."""

    label: str
    value: str
    look: str = ""


@dataclass(frozen=True, slots=True)
class RuleBlock:
    """One rule.

    Attributes:
        width: of the bar: how much kept the promise, in per cent; None where there is no bar.
    """

    name: str
    released: str
    width: int | None
    lines: tuple[Line, ...]


def rule_blocks(facts: Facts, wording: Wording) -> tuple[tuple[RuleBlock, ...], str]:
    """Return the blocks of the first rules, and a sentence about those that are left out."""
    left_count = len(facts.rules) - RULES_MAX
    more = wording.count("more_rules", left_count) if left_count > 0 else ""
    return tuple(_block(rule, wording) for rule in facts.rules[:RULES_MAX]), more


def person_lines(facts: Facts, wording: Wording) -> tuple[str, ...]:
    """Return what needs a person, rule by rule; empty on most days."""
    lines = [line for rule in facts.rules for line in _needs(rule, wording)]
    if len(lines) > PERSON_LINES_MAX:
        lines = [*lines[:PERSON_LINES_MAX], "…"]
    return (*lines, wording.say("person_how")) if lines else ()


def _needs(rule: RuleFacts, wording: Wording) -> Iterator[str]:
    name = shown(rule.rule, NAME_LENGTH_MAX)
    if rule.dead_count:
        yield wording.count("person_dead", rule.dead_count, rule=name)
    if rule.oldest_due_at:
        since = wording.instant(rule.oldest_due_at)
        yield wording.say("person_overdue", rule=name, since=since)


def _block(rule: RuleFacts, wording: Wording) -> RuleBlock:
    kept = Kept.of([rule])
    return RuleBlock(
        name=shown(rule.rule, NAME_LENGTH_MAX),
        released=wording.number(rule.released_count),
        width=100 * kept.part // kept.whole if kept.whole else None,
        lines=tuple(_lines(rule, kept, wording)),
    )


def _lines(rule: RuleFacts, kept: Kept, wording: Wording) -> Iterator[Line]:
    if rule.unit_count:
        yield Line(wording.say("rule_units"), wording.number(rule.unit_count))
    yield _promise(rule, kept, wording)
    if lag := ", ".join(_lag(rule, wording)):
        yield Line(wording.say("rule_lag"), lag)
    if rule.skipped:
        yield Line(wording.say("rule_skipped"), _skipped(rule, wording))
    if rule.retried_count:
        yield Line(wording.say("rule_retried"), wording.number(rule.retried_count))
    if rule.dead_count:
        yield Line(wording.say("rule_dead"), wording.number(rule.dead_count), WARN)
    if rule.oldest_due_at:
        yield Line(wording.say("rule_overdue"), wording.instant(rule.oldest_due_at), WARN)


def _promise(rule: RuleFacts, kept: Kept, wording: Wording) -> Line:
    if rule.promise_seconds is None:
        return Line(wording.say("rule_promise"), wording.say("rule_no_promise"))
    promise = wording.span(rule.promise_seconds)
    if not kept.whole:
        return Line(wording.say("rule_promise"), promise)
    part, whole = wording.number(kept.part), wording.number(kept.whole)
    share = wording.share(kept.part, kept.whole)
    value = f"{wording.say('of', part=part, whole=whole)} ({share})"
    if not kept.is_exact:
        value = wording.say("at_least", share=value)
    return Line(
        wording.say("rule_on_time", promise=promise), value, WARN if kept.late_count else ""
    )


def _lag(rule: RuleFacts, wording: Wording) -> Iterator[str]:
    for key, seconds in (
        ("lag_half", rule.lag_p50_seconds),
        ("lag_most", rule.lag_p95_seconds),
        ("lag_longest", rule.lag_max_seconds),
    ):
        if seconds is not None:
            yield wording.say(key, span=wording.span(seconds))


def _skipped(rule: RuleFacts, wording: Wording) -> str:
    """Return counts by reason, the most frequent first; unknown reasons are one."""
    counts: Counter[str] = Counter()
    for reason, count in rule.skipped.items():
        counts[wording.reason(reason)] += count
    ordered = sorted(counts.items(), key=lambda one: (-one[1], one[0]))
    return ", ".join(f"{wording.number(count)} {reason}" for reason, count in ordered)
