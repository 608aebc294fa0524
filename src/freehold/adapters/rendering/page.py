"""What a report says, as texts that only have to be laid out: HTML and plain text share it.

*Invariants*: everything in a page is a text that may be shown; its lists are bounded.
*Not here*: how it is laid out (`templates`), the rules, the lists and the footer (`page_*`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from freehold.adapters.rendering.kept import Kept
from freehold.adapters.rendering.page_footer import Footer, footer
from freehold.adapters.rendering.page_lists import Items, LateLine, items_of, late_lines
from freehold.adapters.rendering.page_rules import RuleBlock, person_lines, rule_blocks
from freehold.adapters.rendering.shown import clean, cut, is_blank, shown
from freehold.adapters.rendering.texts import Wording
from freehold.domain.facts import Facts
from freehold.domain.reports import ReportPolicy

NAME_LENGTH_MAX = 60  # characters of a tenant's name in a subject
SUMMARY_LENGTH_MAX = 1_000  # characters; what is accepted is shorter
NOTHING = "\N{EN DASH}"


@dataclass(frozen=True, slots=True)
class Figure:
    """One big number, what it counts, and what has to be said beside it."""

    value: str
    label: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar of the comparison; its width is in per cent of the longest."""

    label: str
    value: str
    width: int


@dataclass(frozen=True, slots=True)
class Page:
    """A whole report.

    Attributes:
        tone: `calm`, `good`, `late` or `person`; the colour of the headline's mark.
        more: what stands below the headline, in one paragraph.
    """

    language: str
    direction: str
    subject: str
    title: str
    tenant: str
    day: str
    tone: str
    headline: str
    more: str
    figures: tuple[Figure, ...]
    bars: tuple[Bar, ...]
    compared: str
    person: tuple[str, ...]
    rules: tuple[RuleBlock, ...]
    more_rules: str
    late: tuple[LateLine, ...]
    items: Items
    summary: str
    footer: Footer


def compose(facts: Facts, wording: Wording, policy: ReportPolicy, summary: str | None) -> Page:
    """Say everything that a report says."""
    kept = Kept.of(facts.rules)
    blocks, more_rules = rule_blocks(facts, wording)
    return Page(
        language=wording.tag,
        direction=wording.direction,
        subject=_subject(facts, wording),
        title=wording.say("title"),
        tenant=_tenant(facts, wording),
        day=wording.day(facts.report_date),
        tone=_tone(facts, kept),
        headline=" ".join(_headline(facts, kept, wording)),
        more=" ".join(_more(facts, wording)),
        figures=_figures(facts, kept, wording),
        bars=_bars(facts, wording),
        compared=_compared(facts, wording),
        person=person_lines(facts, wording),
        rules=blocks,
        more_rules=more_rules,
        late=late_lines(facts, wording),
        items=items_of(facts, wording, policy.link),
        summary=cut(clean(summary or ""), SUMMARY_LENGTH_MAX),
        footer=footer(facts, wording, policy, _tenant(facts, wording)),
    )


def _tenant(facts: Facts, wording: Wording) -> str:
    return shown(_name(facts)) or wording.say("nobody")


def _name(facts: Facts) -> str:
    """Return what a tenant is called; its id where the name looks blank, and quoted where that does too."""
    seen = [one for one in (facts.tenant_name, facts.tenant) if not is_blank(one)]
    return seen[0] if seen else (facts.tenant and ascii(facts.tenant))


def _subject(facts: Facts, wording: Wording) -> str:
    """Name the day, the number and the tenant; a header is one line, so the name stays short."""
    name = cut(clean(_name(facts)), NAME_LENGTH_MAX) or wording.say("nobody")
    told = {"date": wording.short_day(facts.report_date), "tenant": name}
    if facts.released_count:
        subject = wording.count("subject_released", facts.released_count, **told)
    else:
        subject = wording.say("subject_quiet", **told)
    needs = _dead_count(facts) or _is_overdue(facts)
    return wording.say("subject_person", subject=subject) if needs else subject


# ---------------------------------------------------------------------------------------- headline


def _tone(facts: Facts, kept: Kept) -> str:
    if _dead_count(facts) or _is_overdue(facts):
        return "person"
    if kept.late_count or facts.late:
        return "late"
    return "good" if facts.released_count else "calm"


def _headline(facts: Facts, kept: Kept, wording: Wording) -> Iterator[str]:
    if facts.is_empty:
        yield wording.say("lead_quiet")
    elif facts.released_count:
        yield wording.count("lead_released", facts.released_count)
        yield from _punctual(facts, kept, wording)
    else:
        yield wording.say("lead_nothing")
    if dead_count := _dead_count(facts):
        yield wording.count("lead_dead", dead_count)
    elif _is_overdue(facts):
        yield wording.say("lead_overdue")


def _punctual(facts: Facts, kept: Kept, wording: Wording) -> Iterator[str]:
    if kept.late_count:
        key = "lead_late" if kept.is_exact else "lead_perhaps_late"
        yield wording.count(key, kept.late_count)
    elif kept.whole == facts.released_count:
        yield wording.say("lead_on_time")


def _more(facts: Facts, wording: Wording) -> Iterator[str]:
    if unit_count := _unit_count(facts):
        yield wording.count("lead_units", unit_count)
    if skipped_count := sum(sum(rule.skipped.values()) for rule in facts.rules):
        yield wording.count("lead_skipped", skipped_count)
    if facts.late:
        yield wording.say("lead_came_late")


def _dead_count(facts: Facts) -> int:
    return sum(rule.dead_count for rule in facts.rules)


def _unit_count(facts: Facts) -> int:
    return sum(rule.unit_count for rule in facts.rules)


def _is_overdue(facts: Facts) -> bool:
    return any(rule.oldest_due_at for rule in facts.rules)


# ----------------------------------------------------------------------------------------- numbers


def _figures(facts: Facts, kept: Kept, wording: Wording) -> tuple[Figure, ...]:
    """Return the big numbers; a day on which nothing came due has none."""
    if facts.is_empty:
        return ()
    released_count, unit_count = facts.released_count, _unit_count(facts)
    return (
        Figure(wording.number(released_count), wording.count("figure_released", released_count)),
        Figure(wording.number(unit_count), wording.count("figure_units", unit_count)),
        _on_time(kept, wording),
    )


def _on_time(kept: Kept, wording: Wording) -> Figure:
    label = wording.say("figure_on_time")
    if not kept.whole:
        return Figure(NOTHING, label)
    share = wording.share(kept.part, kept.whole)
    part, whole = wording.number(kept.part), wording.number(kept.whole)
    value = share if kept.is_exact else f"≥\N{NO-BREAK SPACE}{share}"
    return Figure(value, label, wording.say("of", part=part, whole=whole))


def _bars(facts: Facts, wording: Wording) -> tuple[Bar, ...]:
    """Return this day's released holds beside those of the other days that have a report."""
    known = [
        (key, count)
        for key, count in (
            ("this_day", facts.released_count),
            ("day_before", facts.day_before_count),
            ("week_before", facts.week_before_count),
        )
        if count is not None
    ]
    most = max(count for _, count in known)
    if len(known) == 1 or not most:
        return ()
    return tuple(
        Bar(wording.say(key), wording.number(count), _width(count, most)) for key, count in known
    )


def _width(count: int, most: int) -> int:
    """Return a width in per cent; what is not nothing can be seen."""
    return max(1, round(100 * count / most)) if count else 0


def _compared(facts: Facts, wording: Wording) -> str:
    said = [*_against("day", facts.day_before_count, facts.released_count, wording)]
    said += _against("week", facts.week_before_count, facts.released_count, wording)
    text = ", ".join(said)
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def _against(than: str, before: int | None, count: int, wording: Wording) -> Sequence[str]:
    if before is None or not (before or count):
        return ()
    if before == count:
        return (wording.say(f"same_as_{than}"),)
    key = "more" if count > before else "fewer"
    return (wording.count(f"{key}_than_{than}", abs(count - before)),)
