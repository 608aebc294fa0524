"""The lists of a page: the first released holds, and what came in late."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from urllib.parse import quote, urlsplit

from freehold.adapters.rendering.shown import shown
from freehold.adapters.rendering.texts import Wording
from freehold.domain.facts import Facts, LateFacts, ReleasedItem

ITEMS_SHOWN = 20
LATE_MAX = 10
NAME_LENGTH_MAX = 60  # characters
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Item:
    """One released hold; `rule` is empty where all are of one rule."""

    name: str
    rule: str
    due: str
    released: str
    lag: str


@dataclass(frozen=True, slots=True)
class Items:
    """The first released holds, and where the others are."""

    rows: tuple[Item, ...] = ()
    column: str = ""
    more: str = ""
    link: str | None = None


@dataclass(frozen=True, slots=True)
class LateLine:
    """What came in late from one day."""

    label: str
    value: str


def items_of(facts: Facts, wording: Wording, link: str | None) -> Items:
    """Return the first released holds in the order of release."""
    rows = facts.items[:ITEMS_SHOWN]
    if not rows:
        return Items()
    rules = len({item.rule for item in facts.items}) > 1
    units = any(item.unit is not None for item in facts.items)
    return Items(
        rows=tuple(_item(item, facts, wording, rules=rules) for item in rows),
        column=wording.say("column_unit" if units else "column_hold"),
        more=" ".join(_more(facts, len(rows), wording)),
        link=filled(link, facts),
    )


def _more(facts: Facts, shown_count: int, wording: Wording) -> Sequence[str]:
    in_table_count = len(facts.items) - shown_count
    beyond_count = facts.released_count - len(facts.items)
    said = [wording.count("items_more", in_table_count)] if in_table_count > 0 else []
    return [*said, wording.count("items_beyond", beyond_count)] if beyond_count > 0 else said


def filled(link: str | None, facts: Facts) -> str | None:
    """Return the link to the whole list; what a tenant is called cannot change where it leads."""
    if link is None or urlsplit(link).scheme not in ("http", "https"):
        return None
    tenant = quote(facts.tenant, safe="", errors="replace")
    return link.replace("{tenant}", tenant).replace("{date}", facts.report_date.isoformat())


def _item(item: ReleasedItem, facts: Facts, wording: Wording, *, rules: bool) -> Item:
    return Item(
        name=shown(item.hold_key if item.unit is None else item.unit, NAME_LENGTH_MAX),
        rule=shown(item.rule, NAME_LENGTH_MAX) if rules else "",
        due=_at(item.due_at, facts, wording, seconds=False),
        released=_at(item.released_at, facts, wording, seconds=True),
        lag=wording.span(item.lag_seconds),
    )


def _at(at: datetime, facts: Facts, wording: Wording, *, seconds: bool) -> str:
    """Return a time of the report's day; with its date, or its offset, where that is in doubt."""
    text = wording.clock(at, seconds=seconds)
    local = wording.local(at)
    if local.date() != facts.report_date:
        text = f"{wording.short_day(local.date())}, {text}"
    if facts.end_at.astimezone(UTC) - facts.start_at.astimezone(UTC) != _DAY:
        text = f"{text} {wording.offset(at)}"
    return text


# -------------------------------------------------------------------------------------------- late


def late_lines(facts: Facts, wording: Wording) -> tuple[LateLine, ...]:
    """Return what came in late by its day; the oldest days are one line where there are many."""
    late = list(facts.late)
    if len(late) > LATE_MAX:
        older, late = late[: 1 - LATE_MAX], late[1 - LATE_MAX :]
        first = LateLine(wording.say("late_earlier"), _late_counts(older, wording))
        return (first, *(_late_line(one, wording) for one in late))
    return tuple(_late_line(one, wording) for one in late)


def _late_line(late: LateFacts, wording: Wording) -> LateLine:
    return LateLine(_late_label(late.report_date, wording), _late_counts([late], wording))


def _late_label(day: date | None, wording: Wording) -> str:
    if day is None:
        return wording.say("late_before")
    return wording.say("late_from", date=wording.short_day(day))


def _late_counts(late: Sequence[LateFacts], wording: Wording) -> str:
    released_count = sum(one.released_count for one in late)
    skipped_count = sum(one.skipped_count for one in late)
    said = [wording.count("late_released", released_count)] if released_count else []
    if skipped_count:
        said.append(wording.count("late_skipped", skipped_count))
    return ", ".join(said)
