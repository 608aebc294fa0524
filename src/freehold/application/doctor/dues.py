"""Checks of the values in the due column, on a bounded count or sample of held rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from freehold.application.doctor.findings import Code, Finding, fine, refuse, warn
from freehold.domain.due import DueKind, DueSpec, EmptyDue, check_zone, read_due
from freehold.domain.due_text import DueProblem
from freehold.domain.rules import Rule
from freehold.ports.inspection import Inspection, ServerFacts

COUNT_MOST = 10_000
FIRST_LIKELY, LAST_LIKELY = 1990, 2200  # years; what a due of a real hold lies between
_OTHER_UNIT = {
    DueKind.EPOCH_SECONDS: DueKind.EPOCH_MILLIS,
    DueKind.EPOCH_MILLIS: DueKind.EPOCH_SECONDS,
}
SEPARATOR_PLACE = 10  # behind YYYY-MM-DD
_UTC = ("UTC", "Etc/UTC", "GMT", "Etc/GMT", "Universal", "Etc/Universal", "Zulu", "Etc/UCT", "UCT")
_POLICY = {
    EmptyDue.NEVER: "is never due",
    EmptyDue.NOW: "is due at once",
    EmptyDue.REVIEW: "goes to review",
}


def due_values(rule: Rule, server: ServerFacts, inspection: Inspection) -> Iterator[Finding]:
    """Find due values that are empty, unreadable, mixed in spelling, or in another zone."""
    sample = inspection.sample_due(rule, COUNT_MOST)
    yield from _empty(rule, inspection.count_empty(rule, COUNT_MOST))
    yield from _unreadable(rule, sample)
    if rule.due.kind in _OTHER_UNIT:
        yield from _unit(rule, sample)
    if server.file is not None and rule.due.kind is DueKind.NAIVE:
        yield from _spelling(rule, sample, inspection)
    if rule.due.kind is DueKind.NAIVE:
        yield from _zone(rule, server, inspection)


def _unit(rule: Rule, sample: Sequence[str]) -> Iterator[Finding]:
    """Refuse a column that holds the other unit: its holds would all be due, or never."""
    other = replace(rule.due, kind=_OTHER_UNIT[rule.due.kind])
    likelier = [t for t in sample if not _likely(rule.due, t) and _likely(other, t)]
    if len(likelier) * 2 > len(sample):
        yield refuse(
            Code.DUE_UNIT,
            rule,
            rule.due.column,
            f"Column {rule.due.column} of rule {rule.name} holds values such as {likelier[0][:40]!r},"
            f" which make sense as {other.kind} and not as {rule.due.kind}: say kind = {other.kind}.",
        )


def _likely(due: DueSpec, text: str) -> bool:
    instant = read_due(due, text)
    return isinstance(instant, datetime) and FIRST_LIKELY <= instant.year <= LAST_LIKELY


def counted(number: int) -> str:
    """Write a count that may have stopped at the cap."""
    return f"at least {number:,}" if number >= COUNT_MOST else f"{number:,}"


def _empty(rule: Rule, number: int) -> Iterator[Finding]:
    if not number:
        return
    say = warn if rule.due.on_empty is EmptyDue.NEVER else fine
    yield say(
        Code.EMPTY_DUE,
        rule,
        rule.due.column,
        f"{counted(number)} held rows have no due in column {rule.due.column}; by rule {rule.name} "
        f"such a row {_POLICY[rule.due.on_empty]}: set on_empty if that is not meant.",
    )


def _unreadable(rule: Rule, sample: Sequence[str]) -> Iterator[Finding]:
    bad = [text for text in sample if read_due(rule.due, text) is DueProblem.UNREADABLE]
    if not bad:
        return
    say = fine if rule.due.on_empty is EmptyDue.REVIEW else warn
    yield say(
        Code.UNREADABLE_DUE,
        rule,
        rule.due.column,
        f"{counted(len(bad))} of {len(sample):,} held rows looked at have a due in column "
        f"{rule.due.column} that cannot be read, spelled like {_shape(bad[0][:40])}; by rule {rule.name} such "
        f"a row {_POLICY[rule.due.on_empty]}: mend the values or set on_empty.",
    )


def _shape(text: str) -> str:
    """Write how a value is spelled without saying it: in a column of text it may be a guest's."""
    spelled = (
        mark if mark in "TZ" else "9" if mark.isdigit() else "x" if mark.isalnum() else mark
        for mark in text
    )
    return repr("".join(spelled))


def _spelling(rule: Rule, sample: Sequence[str], inspection: Inspection) -> Iterator[Finding]:
    column = rule.due.column
    offsets = [text for text in sample if _names_offset(text)]
    if offsets:
        yield warn(
            Code.DUE_SPELLING,
            rule,
            column,
            f"Column {column} of rule {rule.name} has values that name their offset, such as "
            f"{offsets[0][:40]!r}, which kind naive compares as local time: say kind = iso.",
        )
        return
    marks = Counter(text[SEPARATOR_PLACE : SEPARATOR_PLACE + 1] for text in sample)
    if marks["T"] and marks[" "]:
        yield warn(
            Code.DUE_SPELLING,
            rule,
            column,
            f"Column {column} of rule {rule.name} separates date and time by 'T' in "
            f"{marks['T']:,} rows and by a blank in {marks[' ']:,}, so that text order is not time "
            "order and some holds end late: write one of them.",
            inspection.mends.one_separator(rule),
        )


def _names_offset(text: str) -> bool:
    clock = text[SEPARATOR_PLACE + 1 :]
    return clock.endswith(("Z", "z")) or "+" in clock or "-" in clock


def _zone(rule: Rule, server: ServerFacts, inspection: Inspection) -> Iterator[Finding]:
    """Count under another zone; where that differs, only a person knows which one is meant."""
    here = inspection.count_due(rule, COUNT_MOST)
    for zone in _other_zones(rule.due.zone, server.zone):
        there = inspection.count_due(replace(rule, due=replace(rule.due, zone=zone)), COUNT_MOST)
        if here != there:
            yield warn(
                Code.ZONE_GUESS,
                rule,
                rule.due.column,
                f"Read in {rule.due.zone}, as rule {rule.name} says, {counted(here)} holds are due "
                f"now; read in {zone} it would be {counted(there)}: check in which zone the "
                f"application writes column {rule.due.column}.",
            )


def _other_zones(own: str | None, local: str | None) -> Iterator[str]:
    if own not in _UTC:
        yield "UTC"
    if local is None or local in _UTC or local == own:
        return
    try:
        check_zone(local)
    except ValueError:
        return
    yield local
