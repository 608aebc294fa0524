"""What is wrong, one plain sentence each: the judgement over the figures of `status`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from freehold.application.event_findings import event_findings
from freehold.application.report_findings import report_findings
from freehold.application.spans import span
from freehold.application.status import (
    COUNT_MOST,
    SKEW_MOST,
    RuleStatus,
    Status,
    overdue,
    waits,
)
from freehold.domain.operations import OperationState
from freehold.domain.pauses import Pause, Role
from freehold.ports.insight import Heartbeat
from freehold.ports.ledger import RuleCondition

PAUSES_SHOWN = 5  # of one rule


def judged(seen: Status, *, has_queue: bool = False) -> Status:
    """Return the status with its findings, the worst first.

    Args:
        has_queue: a broker is configured.
    """
    found = [finding for row in seen.rules for finding in _of_rule(row, seen)]
    if seen.reports is not None and seen.report_policy is not None:
        found += report_findings(seen.reports, seen.report_policy, seen.now, seen.alive)
    found += event_findings(seen.events, seen.now, seen.alive, COUNT_MOST + 1)
    if has_queue:
        found += _of_dispatch(seen.alive)
    return replace(seen, findings=[*_of_all(seen), *found])


def _of_dispatch(alive: Sequence[Heartbeat]) -> Iterator[str]:
    """Find workers that wait for a broker to which nobody names anything."""
    roles = {role for beat in alive for role in beat.roles.split(",")}
    if Role.WORK in roles and Role.DISPATCH not in roles:
        yield (
            "A broker is configured, and no process with the role dispatch is alive, so that workers "
            "ask the ledger, up to a sweep later; start `freehold run --role dispatch`."
        )


def _of_all(seen: Status) -> Iterator[str]:
    states = [row.state for row in seen.rules if row.state is not None]
    everywhere = {one.id: one for state in states for one in state.guards if one.rule is None}
    for guard in everywhere.values():
        yield f"All releases are frozen: {guard.reason.rstrip('.')}."
    told = {one.id for state in states for one in state.guards}
    for guard in (one for one in seen.guards if one.id not in told):
        whose = "all rules" if guard.rule is None else guard.rule
        yield f"Releases of {whose} are frozen: {guard.reason.rstrip('.')}; see `freehold guard show`."
    known = {row.rule.name for row in seen.rules}
    for pause in (one for one in seen.pauses if one.rule not in known):
        yield _unruled(pause)
    working = [beat for beat in seen.alive if "work" in beat.roles]
    if not working and (waiting := [row.rule.name for row in seen.rules if waits(row)]):
        yield f"Work waits in {', '.join(waiting)}, and no worker is alive; start `freehold run`."
    if seen.queue.stray_count:
        yield _strays(seen.queue.stray_count)
    if never := [row.rule.name for row in seen.rules if row.tick is None and not row.holds.trouble]:
        yield f"No scan ever ran for {', '.join(never)}; start `freehold run`."
    for beat in seen.silent:
        silence = span(seen.now - beat.beat_at)
        yield f"The process {beat.pid} on {beat.host} ({beat.roles}) has been silent for {silence}."
    if abs(seen.host_skew) > SKEW_MOST:
        side = "ahead of" if seen.host_skew > timedelta(0) else "behind"
        yield f"This host's clock is {span(abs(seen.host_skew))} {side} the database's; mend its time service."


def _strays(count: int) -> str:
    if count > COUNT_MOST:
        some = f"More than {COUNT_MOST:,} payloads of the queue are"
    else:
        some = "A payload of the queue is" if count == 1 else f"{count:,} payloads of the queue are"
    return f"{some} no message of ours; look at `freehold review list`: who else publishes there?"


def _unruled(pause: Pause) -> str:
    """Say what is paused for every rule, for one that is not configured, or for reports."""
    if pause.role is Role.REPORT:
        whose = "" if pause.tenant is None else f" to tenant {pause.tenant}"
        return f"The sending of reports{whose} is paused {pause}."
    rule = "every rule" if pause.rule is None else pause.rule
    tenant = "" if pause.tenant is None else f", tenant {pause.tenant}"
    return f"{pause.role.capitalize()} of {rule}{tenant} is paused {pause}."


def _of_rule(row: RuleStatus, seen: Status) -> Iterator[str]:
    name = row.rule.name
    yield from _condition(row)
    yield from _pauses(row, seen.now)
    late = overdue(row, seen.now)
    if late is not None and late > row.rule.promise:
        promise = span(row.rule.promise)
        yield f"The oldest hold of {name} that is due waits for {span(late)}; the promise is {promise}."
    if dead := row.count(OperationState.DEAD):
        verb = "waits" if dead == 1 else "wait"
        yield f"{counted(dead)} of {name} {verb} in review; look at `freehold review list --rule {name}`."
    if row.tick is not None and row.tick_late and not (row.state and row.state.scan_paused):
        ago = span(seen.now - row.tick.started_at)
        yield f"The scan of {name} is late: it last began {ago} ago."


def _condition(row: RuleStatus) -> Iterator[str]:
    name, state = row.rule.name, row.state
    if row.holds.trouble:
        yield f"The table of {name} cannot be read: {row.holds.trouble.rstrip('.')}."
    if state is None:
        return
    if state.condition is RuleCondition.WAITING:
        yield f"{name} waits to be attached: {(state.reason or 'no reason was noted').rstrip('.')}."
    if state.condition is RuleCondition.PAUSED:
        probe = (
            ""
            if state.probe_at is None
            else f" It is tried again at {state.probe_at:%H:%M:%S} UTC."
        )
        yield f"{name} is paused: {(state.reason or 'no reason was noted').rstrip('.')}.{probe}"
    if state.scan_paused:
        yield f"The schedule of {name} is paused: {state.scan_paused.rstrip('.')}."
    for guard in state.guards:
        if guard.rule is not None:
            yield f"{name} is frozen: {guard.reason.rstrip('.')}."


def _pauses(row: RuleStatus, now: datetime) -> Iterator[str]:
    """Say what people paused; of many tenants the first few."""
    pauses = row.state.pauses if row.state else ()
    standing = [one for one in pauses if one.rule is not None and one.stands(now)]
    for one in standing[:PAUSES_SHOWN]:
        whose = "" if one.tenant is None else f" for tenant {one.tenant}"
        yield f"The {one.role} of {row.rule.name}{whose} is paused {one}."
    if len(standing) > PAUSES_SHOWN:
        more = len(standing) - PAUSES_SHOWN
        yield f"{more} pauses more touch {row.rule.name}; see `freehold pause list`."


def counted(count: int) -> str:
    """Write a count of operations; one beyond the limit says so."""
    number = f"More than {COUNT_MOST:,}" if count > COUNT_MOST else f"{count:,}"
    return f"{number} operation" + ("" if count == 1 else "s")
