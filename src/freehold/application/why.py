"""Why: everything about one hold in order, and one plain sentence that answers for it.

*Invariants*: one snapshot a rule; only mapped columns are shown. *Not here*: printing
(`entrypoints.cli`), acting on what is found (`application.review`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from freehold.application.spans import span
from freehold.application.why_events import told
from freehold.domain.due import DueProblem, EmptyDue, is_due, read_due, released_from
from freehold.domain.errors import DatabaseAway, DatabaseError, UsageError
from freehold.domain.names import digest, key_text, operation_key
from freehold.domain.operations import OperationState, Outcome
from freehold.domain.pauses import Role
from freehold.domain.rules import Rule
from freehold.ports.insight import (
    EndedOperation,
    OpenOperation,
    Readable,
    Reading,
    SeenHold,
)
from freehold.ports.ledger import RuleCondition, RuleState
from freehold.ports.report_insight import CountedBy
from freehold.ports.straight import STRAIGHT

RECORDS_MOST = 20
ACTS_MOST = 50


@dataclass(frozen=True, slots=True)
class Happened:
    """One thing that happened to a hold."""

    at: datetime
    what: str


@dataclass(frozen=True, slots=True)
class Why:
    """What is known about one hold under one rule.

    Attributes:
        row: the mapped columns as they are now; None where there is no row.
        happened: in the order of time.
        answer: one sentence: what happened, or why it is not released.
        window: the open window of its rule, which releases it if it is due.
    """

    rule: str
    hold_key: str
    row: SeenHold | None
    due_at: datetime | None
    state: RuleState | None
    open: OpenOperation | None
    last: EndedOperation | None
    happened: Sequence[Happened] = field(default=())
    answer: str = ""
    window: OpenOperation | None = None


def hold_key_of(rule: Rule, text: str) -> str | None:
    """Turn what a person typed into key text: `a,b` or a JSON array for a key of two columns.

    Returns:
        None when it cannot be a key of this rule.
    """
    if len(rule.key) == 1:
        return text
    try:
        values = json.loads(text)
    except ValueError:
        values = [part.strip() for part in text.split(",")]
    if not isinstance(values, list) or len(values) != len(rule.key):
        return None
    return key_text([str(value) for value in values])


def why(source: Readable, rules: Sequence[Rule], text: str) -> list[Why]:
    """Explain a hold under every rule that knows it.

    Raises:
        UsageError: no rule knows it.
        DatabaseAway: the database cannot be reached.
    """
    found = [known for rule in rules if (known := _under(source, rule, text)) is not None]
    if not found:
        raise UsageError(_unknown(rules, text))
    return found


def _unknown(rules: Sequence[Rule], text: str) -> str:
    """Say that no rule knows the key, and how a key of several columns is written if it is not."""
    misread = [rule for rule in rules if hold_key_of(rule, text) is None]
    asked = ", ".join(rule.name for rule in rules if rule not in misread)
    spelled = [
        f"A key of {rule.name} has {len(rule.key)} columns: write {','.join(rule.key)} with their "
        "values, or a JSON list if a value has a comma."
        for rule in misread
    ]
    if asked or not misread:
        known = asked or "no rule is configured"
        spelled = [
            f"There is no hold with the key {text!r}, now or in the records ({known}).",
            *spelled,
        ]
    return " ".join(spelled)


def _under(source: Readable, rule: Rule, text: str) -> Why | None:
    hold_key = hold_key_of(rule, text)
    if hold_key is None:
        return None
    row, trouble = _row(source, rule, hold_key)
    with source.reading() as reading:
        known = _known(reading, rule, hold_key if row is None else row.hold_key, row)
        if row is None and known.open is None and known.last is None:
            return None
        return _answered(known, rule, reading.now, trouble)


def _row(source: Readable, rule: Rule, hold_key: str) -> tuple[SeenHold | None, str | None]:
    """Read the row in a snapshot of its own: the key may be none, the table may be missing."""
    try:
        with source.reading() as reading:
            return reading.holds(rule).look(hold_key), None
    except DatabaseAway:
        raise
    except DatabaseError as error:
        return None, str(error)


def _known(reading: Reading, rule: Rule, hold_key: str, row: SeenHold | None) -> Why:
    history = reading.history
    opened = history.open_operations(rule.name, hold_key)
    if row is not None and not opened:
        name = digest(rule.name, row.hold_key, row.identity)
        opened = history.open_operations(rule.name, f"digest {name}")
    records = history.records(rule.name, hold_key, RECORDS_MOST)
    due = None if row is None else read_due(rule.due, row.due)
    windows = history.open_windows(rule.name)
    return Why(
        rule=rule.name,
        hold_key=hold_key,
        row=row,
        due_at=due if isinstance(due, datetime) else None,
        state=reading.figures.states([rule.name]).get(rule.name),
        open=opened[-1] if opened else None,
        last=records[-1] if records else None,
        happened=sorted(
            _happened(reading, rule, hold_key, opened, records), key=lambda one: one.at
        ),
        window=windows[0] if windows else None,
    )


def _happened(
    reading: Reading,
    rule: Rule,
    hold_key: str,
    opened: Sequence[OpenOperation],
    records: Sequence[EndedOperation],
) -> Iterator[Happened]:
    """Yield what happened, what comes of one instant in the order of its cause."""
    for record in records:
        number = record.operation_id
        yield Happened(record.found_at, _found(number, record.generation))
        yield from _attempts(reading, number)
        yield Happened(record.finished_at, _ended(record))
        for event in reading.history.events([number]):
            yield from (Happened(at, what) for at, what in told(reading, event))
        counted = reading.reports.counted_by(rule.name, hold_key, number)
        if counted is not None:
            yield Happened(record.finished_at, _counted(counted))
    for one in opened:
        yield Happened(one.found_at, _found(one.id, one.generation))
        yield from _attempts(reading, one.id)
        yield Happened(one.changed_at, _stands(one))
    digests = [record.digest for record in records] + [one.digest for one in opened]
    names = list(dict.fromkeys(operation_key(rule.name, one) for one in digests))
    for act in reading.history.acts(names, ACTS_MOST):
        yield Happened(act.at, f"{act.actor}: {act.action}, because {act.reason}")


def _found(operation_id: int, generation: int) -> str:
    again = "" if generation == 1 else f" again, generation {generation}"
    return f"found due{again}, operation {operation_id}"


def _attempts(reading: Reading, operation_id: int) -> Iterator[Happened]:
    for one in reading.history.attempts(operation_id):
        code = f" [{one.failure.code}]" if one.failure.code else ""
        what = f"attempt {one.attempt} failed, {one.failure.failure_class}: {one.failure.message}"
        yield Happened(one.failed_at, what + code)


def _counted(by: CountedBy) -> str:
    day = f"the report of {by.tenant or 'nobody'} for {by.report_date}"
    return f"counted by {day}, which is {by.state}"


def _ended(record: EndedOperation) -> str:
    if record.reason == STRAIGHT:
        return f"{record.outcome.value} at once, without an open operation"
    reason = f": {record.reason}" if record.reason else ""
    return f"{record.outcome.value}{reason}, at attempt {record.attempt}"


def _stands(one: OpenOperation) -> str:
    """Say where an open operation stands."""
    reason = f", {one.reason}" if one.reason else ""
    until = ""
    if one.state is OperationState.LEASED and one.leased_until:
        until = f" until {instant(one.leased_until)}"
    if one.state in (OperationState.DEFERRED, OperationState.RETRYING):
        until = f" until {instant(one.available_at)}"
    return f"now {one.state.value}{until}{reason}, after attempt {one.attempt}"


def instant(at: datetime) -> str:
    """Write an instant for a person, in UTC."""
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"


def _answered(known: Why, rule: Rule, now: datetime, trouble: str | None) -> Why:
    answer = _of_open(known, now) if known.open else _of_row(known, rule, now, trouble)
    return replace(known, answer=answer)


def _of_open(known: Why, now: datetime) -> str:
    """Answer for a hold whose operation is open."""
    one = known.open
    assert one is not None
    if one.state is OperationState.DEAD:
        look = f"`freehold review show {one.id}` says what can be done"
        return f"It is not released: {_why_dead(one)}, and it waits in review; {look}."
    if one.state is OperationState.DISCARDED:
        return f"It is not released: a person set it aside ({one.reason})."
    if stopped := _stopped(known.state, now, one.tenant):
        return f"It is not released: {stopped}"
    return _of_working(one, now)


def _of_working(one: OpenOperation, now: datetime) -> str:
    if one.state is OperationState.LEASED:
        return "It is being released: a worker has it in hand."
    if one.state is OperationState.READY or one.available_at <= now:
        return f"It is ready since {span(now - one.available_at)}, and the next worker takes it."
    when = span(one.available_at - now)
    if one.state is OperationState.DEFERRED:
        busy = "the host has its row locked" if one.reason == "busy" else one.reason
        return f"It is put off, {busy}; it is looked at again in {when}."
    return f"Attempt {one.attempt} failed ({_reason(one)}); it is tried again in {when}."


def _why_dead(one: OpenOperation) -> str:
    if one.failure is None:
        return (one.reason or "no reason was noted").rstrip(".")
    times = "1 attempt" if one.attempt == 1 else f"all {one.attempt} attempts"
    return f"{times} failed ({_reason(one)})"


def _reason(one: OpenOperation) -> str:
    return (one.failure.message if one.failure else one.reason or "no reason was noted").rstrip(".")


def _stopped(state: RuleState | None, now: datetime, tenant: str | None) -> str | None:
    """Say why the whole rule does not work, or nothing of the tenant."""
    if state is None:
        return "the rule was never attached; `freehold run` or `freehold scan` does that."
    if state.condition is RuleCondition.WAITING:
        return f"the rule waits to be attached ({state.reason})."
    if state.condition is RuleCondition.PAUSED:
        return f"the rule is paused ({state.reason})."
    if state.guard is not None:
        return f"a guard stands: {state.guard.rstrip('.')}."
    paused = state.pause_of(Role.WORK, now)
    if paused is not None:
        return f"the work of the rule is paused {paused}."
    ours = [one for one in state.pauses if one.tenant == tenant and one.stands(now)]
    whose = [one for one in ours if tenant is not None and one.role is Role.WORK]
    return f"its tenant is paused {whose[0]}." if whose else None


def _of_row(known: Why, rule: Rule, now: datetime, trouble: str | None) -> str:
    """Answer for a hold without an open operation."""
    if known.row is None:
        return _of_missing_row(known, trouble)
    if not known.row.row.held:
        return f"{_what_was(known)} it is not held ({_held_columns(known.row, rule)})."
    due = read_due(rule.due, known.row.due)
    if isinstance(due, DueProblem):
        return _of_problem(due, rule)
    if not is_due(rule.due, due, now):
        again = f"It was {_ended(known.last)} before, and is held again. " if known.last else ""
        due_from = released_from(rule.due, due)
        return f"{again}It is not due yet: it is released from {instant(due_from)} on, in {span(due_from - now)}."
    return _of_due(known, rule, now)


def _of_missing_row(known: Why, trouble: str | None) -> str:
    if trouble is not None:
        return f"Its row cannot be read: {trouble}"
    assert known.last is not None
    return f"It was {_ended(known.last)} on {instant(known.last.finished_at)}, and its row is gone."


def _what_was(known: Why) -> str:
    if known.last is None:
        return "There is nothing to release:"
    if known.last.outcome is Outcome.EXPIRED:
        return f"It was released on {instant(known.last.finished_at)}, and now"
    return f"It was {_ended(known.last)} on {instant(known.last.finished_at)}, and now"


def _held_columns(row: SeenHold, rule: Rule) -> str:
    values = [f"{name} is {row.image.get(name) or 'null'}" for name in rule.held.columns]
    return ", ".join(values) or "the rule holds every row"


def _of_problem(problem: DueProblem, rule: Rule) -> str:
    what = f"its due column {rule.due.column} is {problem.value}"
    match rule.due.on_empty:
        case EmptyDue.NEVER:
            return f"It is never released: {what}, and the rule's on_empty says never."
        case EmptyDue.REVIEW:
            return f"It is not released: {what}; the next sweep brings it to review."
    return f"It counts as due now, since {what}; the next sweep finds it."


def _of_due(known: Why, rule: Rule, now: datetime) -> str:
    """Answer for a hold that is due and that no scan has written down."""
    assert known.due_at is not None
    late = span(now - released_from(rule.due, known.due_at))
    head = f"It is due since {late} and not released:"
    tenant = None if known.row is None else known.row.tenant
    if stopped := _stopped(known.state, now, tenant):
        return f"{head} {stopped}"
    assert known.state is not None
    paused = [one for one in known.state.pauses if one.stands(now) and one.role is Role.SCAN]
    for one in paused:
        if one.tenant in (None, tenant):
            return f"{head} the scan of its {'rule' if one.tenant is None else 'tenant'} is paused {one}."
    if known.state.scan_paused:
        return f"{head} the rule's schedule is paused ({known.state.scan_paused})."
    if known.window is not None:
        return f"{head} the open window of its rule releases it ({_stands(known.window)})."
    return f"{head} no scan has reached it yet; `freehold status` says when the last one ran, and how far workers are behind."
