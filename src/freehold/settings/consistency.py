"""What must fit together inside the settings, as far as it can be known without a database.

*Invariants*: a rule that passes can be built; it can never release the same row for ever, because
its action leaves its own held predicate false.
*Not here*: columns, types and rights (`freehold.application.doctor`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta

from freehold.adapters.sql.statements import parameters
from freehold.domain.due import DueKind, check_zone
from freehold.domain.rules import Literal, Mode, Now, Test
from freehold.domain.schedule import Cron, ScheduleError, parse_schedule
from freehold.settings.consistency_brokers import broker_findings
from freehold.settings.consistency_report import report_findings
from freehold.settings.notation import Comparison, Finding, duration_text
from freehold.settings.shape import (
    Alternative,
    CompanionShape,
    DueShape,
    ExpireShape,
    LoopsShape,
    RuleShape,
    TenantShape,
)
from freehold.settings.shape_file import FileShape, HoldsShape
from freehold.settings.shape_tenants import tenants_findings
from freehold.settings.shape_upkeep import RetentionShape

RECORDS_LEAST = timedelta(days=7)  # a week of holds can still come due again
OTHERS_LEAST = timedelta(days=1)
_NEED_ZONE = (DueKind.NAIVE, DueKind.DATE)
_PASSED_OVER = re.compile(
    r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|/\*.*?\*/|\$(?P<tag>\w*)\$.*?\$(?P=tag)\$""",
    re.DOTALL,
)
_FUNCTION = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")
_ENDS_TRANSACTION = ("begin", "start", "commit", "end", "rollback", "abort", "savepoint", "release")


def findings(shape: FileShape) -> list[Finding]:
    """Return all that does not fit together, in the order of the file."""
    return [
        *_loops(shape.loops),
        *_retention(shape.retention),
        *_built_in(shape.holds, shape.loops),
        *report_findings(shape.report, shape.summary),
        *tenants_findings(shape.tenants),
        *broker_findings(shape.queue, shape.targets, _known_rules(shape)),
        *_names(shape),
        *_rules(shape),
    ]


def _known_rules(shape: FileShape) -> list[str]:
    built_in = [] if shape.holds is None else [shape.holds.name]
    return [*(rule.name for rule in shape.rules), *built_in]


def _retention(retention: RetentionShape) -> Iterator[Finding]:
    for name in RetentionShape.model_fields:
        least = RECORDS_LEAST if name == "records" else OTHERS_LEAST
        if getattr(retention, name) < least:
            yield Finding(
                f"retention.{name}",
                f"must be at least {duration_text(least)}: what is younger is still needed to "
                "explain and to check the work.",
            )


def _loops(loops: LoopsShape) -> Iterator[Finding]:
    if loops.heartbeat >= loops.lease:
        yield Finding("loops.heartbeat", "must be shorter than loops.lease, or every lease ends.")


def _built_in(holds: HoldsShape | None, loops: LoopsShape) -> Iterator[Finding]:
    if holds is not None:
        found = (*_schedule(holds), *_companions(holds), *_handler(holds, loops))
        for place, text in found:
            yield Finding(f"holds.{place}", f"{text}.")


def _names(shape: FileShape) -> Iterator[Finding]:
    first: dict[str, int] = {}
    for index, rule in enumerate(shape.rules):
        if shape.holds is not None and rule.name == shape.holds.name:
            yield Finding(
                f"rules[{index}].name",
                f"{rule.name!r} is the name of the built-in holds too; rename this rule, or write "
                f'name = "..." in [holds].',
            )
        if first.setdefault(rule.name, index) != index:
            yield Finding(
                f"rules[{index}].name",
                f"{rule.name!r} is the name of rules[{first[rule.name]}] too; rename one of them.",
            )


def _rules(shape: FileShape) -> Iterator[Finding]:
    for index, rule in enumerate(shape.rules):
        for place, text in (*_rule(rule), *_handler(rule, shape.loops)):
            yield Finding(f"rules[{index}].{place}", f"{text} (rule {rule.name!r}).")


def _rule(rule: RuleShape) -> Iterator[Finding]:
    yield from _tenant(rule.tenant)
    yield from _due(rule.due)
    yield from _twice(rule)
    yield from _expire(rule)
    yield from _schedule(rule)
    yield from _companions(rule)


def _handler(rule: RuleShape | HoldsShape, loops: LoopsShape) -> Iterator[Finding]:
    if rule.handler is None:
        if rule.handler_timeout is not None:
            yield Finding("handler_timeout", "limits a handler, and there is none; remove it")
        return
    if not _FUNCTION.fullmatch(rule.handler):
        yield Finding("handler", "must name a function as package.module:function")
    if rule.mode != Mode.RESERVATION.value:
        yield Finding("handler", 'needs mode = "reservation", so that its failures are counted')
    if rule.handler_timeout is not None and rule.handler_timeout >= loops.lease:
        yield Finding("handler_timeout", "must be shorter than loops.lease")


def _companions(rule: RuleShape | HoldsShape) -> Iterator[Finding]:
    for index, companion in enumerate(rule.also):
        for place, text in _companion(companion):
            yield Finding(f"also[{index}].{place}", text)


def _tenant(tenant: TenantShape) -> Iterator[Finding]:
    if tenant.column is not None and tenant.constant is not None:
        yield Finding("tenant", "has column and constant; keep one of them")


def _due(due: DueShape) -> Iterator[Finding]:
    if due.zone is None:
        if due.kind in _NEED_ZONE:
            yield Finding(
                "due.zone",
                f'is missing: a {due.kind} column needs one; add zone = "UTC" or its own',
            )
        return
    try:
        check_zone(due.zone)
    except ValueError as error:
        yield Finding("due.zone", f"is wrong: {error}")


def _twice(rule: RuleShape) -> Iterator[Finding]:
    for place, columns in (("key", rule.key), ("fence", rule.fence), ("carry", rule.carry)):
        for column, count in Counter(columns).items():
            if count > 1:
                yield Finding(place, f"names {column!r} twice; once is enough")


def _schedule(rule: RuleShape | HoldsShape) -> Iterator[Finding]:
    try:
        found = parse_schedule(rule.when)
    except ScheduleError as error:
        yield Finding("when", f"is no schedule: {error}")
        return
    if rule.zone is None:
        return
    if not isinstance(found, Cron):
        meant = ", or set due.zone" if isinstance(rule, RuleShape) else ""
        yield Finding("zone", f"is read with a cron line only; remove it{meant}")
        return
    try:
        check_zone(rule.zone)
    except ValueError as error:
        yield Finding("zone", f"is wrong: {error}")


def _expire(rule: RuleShape) -> Iterator[Finding]:
    expire = rule.expire
    if (expire.set is None) == (expire.delete is None):
        yield Finding("expire", "must be { delete = true } or { set = { ... } }, one of the two")
    elif expire.set is not None:
        yield from _set(rule, expire)


def _set(rule: RuleShape, expire: ExpireShape) -> Iterator[Finding]:
    assert expire.set is not None
    for column in rule.key:
        if column in expire.set:
            yield Finding("expire.set", f"changes the key column {column!r}; a key must stay")
    if not rule.held:
        yield Finding(
            "expire.set",
            "leaves the row held, because held is absent and every row is a hold; add held, or "
            "expire = { delete = true }",
        )
    for index, alternative in enumerate(rule.held):
        if _stays_held(alternative, expire.set):
            yield Finding(
                "expire.set",
                f"leaves held[{index}] true, so that the hold would be released again; set one of "
                f"its columns ({', '.join(alternative)}) to another value",
            )


def _stays_held(alternative: Alternative, assigned: dict[str, Literal | Now]) -> bool:
    """Tell whether a row that met all conditions surely meets them after the action."""
    return all(
        _meets(test, assigned[column]) for column, test in alternative.items() if column in assigned
    )


def _meets(test: Comparison, value: Literal | Now) -> bool:
    """Compare like the database; what only a database can tell counts as not met."""
    if test.test is Test.IS_NULL:
        return value is None
    if test.test is Test.IS_NOT_NULL:
        return value is not None
    if value is None or isinstance(value, Now):
        return False
    if test.test is Test.LESS:
        return _less(value, test.values[0])
    return any(_equal(value, one) for one in test.values)


def _less(value: Literal, limit: Literal) -> bool:
    if isinstance(value, int | float) and isinstance(limit, int | float):
        return value < limit
    return False  # texts sort by the column's collation


def _equal(one: Literal, other: Literal) -> bool:
    if isinstance(one, str) or isinstance(other, str):
        return _plain(one) == _plain(other)
    return one == other


def _plain(value: Literal) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _companion(companion: CompanionShape) -> Iterator[Finding]:
    bare = _PASSED_OVER.sub(" ", companion.sql).strip()
    words = bare.split(None, 1)
    if not words:
        yield Finding("sql", "is empty")
    elif ";" in bare.removesuffix(";"):
        yield Finding("sql", "holds several statements; give each its own entry in also")
    elif words[0].lower().rstrip(";") in _ENDS_TRANSACTION:
        yield Finding("sql", f"begins with {words[0]!r}, but it runs inside the release")
    yield from _lock_by(companion)


def _lock_by(companion: CompanionShape) -> Iterator[Finding]:
    if companion.lock_by is None:
        return
    known = parameters(companion.sql)
    if not companion.lock_by.startswith(":") or companion.lock_by[1:] not in known:
        names = ", ".join(f":{name}" for name in known) or "it has none"
        yield Finding("lock_by", f"must name a parameter of the sql ({names})")
