"""`freehold status`: how things stand, as a table for people or as JSON."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime, timedelta
from math import inf
from typing import TYPE_CHECKING, Annotated, Any

import typer

from freehold.domain.errors import CheckFailed
from freehold.domain.tallies import LAG_BOUNDS_SECONDS, lags
from freehold.entrypoints.cli.context import invocation

if TYPE_CHECKING:
    from freehold.application.status import RuleStatus, Status
    from freehold.ports.insight import Ended, Heartbeat
    from freehold.ports.report_insight import ReportFigures


_BUCKETS = (*(f"{bound:g}" for bound in LAG_BOUNDS_SECONDS), "more")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(status)


def status(
    context: typer.Context,
    check: Annotated[
        bool, typer.Option("--check", help="Exit 3 when something should not be so.")
    ] = False,
) -> None:
    """Show what waits, how late it is and what failed, by rule; reads only.

    Examples: freehold status · freehold status --check · watch freehold status
    """
    from freehold.adapters.system import SystemClock
    from freehold.application.findings import judged
    from freehold.application.status import status as read
    from freehold.entrypoints.cli.status_view import show

    call = invocation(context)
    settings = call.settings()
    with call.ledger(settings) as ledger:
        policy = None if settings.report is None else settings.report.policy
        names = [one.policy.name for one in settings.targets]
        read_now = read(ledger, settings.rules, SystemClock(), policy, names)
        seen = judged(read_now, has_queue=settings.queue is not None)
    call.show(as_data(seen), lambda: show(seen))
    if check and seen.findings:
        first, *more = seen.findings
        raise CheckFailed(first + (f" (and {len(more)} more)" if more else ""))


def as_data(seen: Status) -> dict[str, Any]:
    """Return the status as plain data: the same numbers that the table shows."""
    from freehold.application.status import COUNT_MOST
    from freehold.entrypoints.cli.targets_view import target_data

    return {
        "now": seen.now,
        "host_skew_seconds": seen.host_skew.total_seconds(),
        "counts_stop_at": COUNT_MOST + 1,
        "findings": list(seen.findings),
        "rules": [_rule_data(row, seen.now) for row in seen.rules],
        "outbox": {
            "pending_count": seen.outbox.pending_count,
            "unrouted_count": seen.events.unrouted_count,
            "oldest_age_seconds": age_seconds(seen.outbox.oldest_at, seen.now),
        },
        "queue": {
            "stray_count": seen.queue.stray_count,
            "last_hour": asdict(seen.queue.counts),
        },
        "targets": [target_data(one, seen.now) for one in seen.events.targets],
        "processes": [
            _process_data(beat, seen.now, alive=beat in seen.alive)
            for beat in (*seen.alive, *seen.silent)
        ],
        "failed_attempts_last_hour": dict(seen.failed),
        "reports": None if seen.reports is None else _reports_data(seen.reports, seen.now),
        "guards": [
            {"guard": one.kind.value, "rule": one.rule, "tripped_at": one.tripped_at}
            | {"reason": one.reason}
            for one in seen.guards
        ],
        "pauses": [
            {"role": one.role.value, "rule": one.rule, "tenant": one.tenant, "by": one.by}
            | {"reason": one.reason, "paused_at": one.paused_at, "until": one.until}
            for one in seen.pauses
        ],
    }


def age_seconds(at: datetime | None, now: datetime) -> float | None:
    """Return how long ago an instant was, never less than zero."""
    return None if at is None else max(0.0, (now - at).total_seconds())


def _reports_data(reports: ReportFigures, now: datetime) -> dict[str, Any]:
    return {
        "last_days": {state.value: count for state, count in reports.states.items()},
        "owed_count": reports.owed_count,
        "oldest_owed_seconds": age_seconds(reports.oldest_owed_at, now),
        "review_count": reports.review_count,
        "unknown_send_count": reports.unknown_count,
        "next_day_ends_at": None if reports.next_day is None else reports.next_day.window.end_at,
    }


def _rule_data(row: RuleStatus, now: datetime) -> dict[str, Any]:
    from freehold.application.status import overdue
    from freehold.domain.operations import OperationState
    from freehold.entrypoints.cli.guard import guard_data
    from freehold.entrypoints.cli.pause import pause_data

    state = row.state
    late = overdue(row, now)
    return {
        "rule": row.rule.name,
        "condition": None if state is None else state.condition.value,
        "reason": None if state is None else state.reason,
        "probe_at": None if state is None else state.probe_at,
        "scan_paused": None if state is None else state.scan_paused,
        "guards": [] if state is None else [guard_data(one) for one in state.guards],
        "pauses": [] if state is None else [pause_data(one, now) for one in state.pauses],
        "depth": {one.value: row.count(one) for one in OperationState},
        "busy_count": row.depth.busy_count,
        "oldest_claimable_age_seconds": age_seconds(row.depth.oldest_available_at, now),
        "oldest_overdue_seconds": None if late is None else late.total_seconds(),
        "promise_seconds": row.rule.promise.total_seconds(),
        "oldest_due_at": row.holds.oldest_due_at,
        "missed_due_at": row.holds.missed_due_at,
        "empty_due_count": row.holds.empty_count,
        "unreadable_due_count": row.holds.unreadable_count,
        "table_trouble": row.holds.trouble,
        "last_hour": None if row.ended is None else _ended_data(row.ended),
        "tenants_last_hour": [
            {"tenant": tenant, **_ended_data(ended)} for tenant, ended in row.tenants
        ],
        "tenant_count": row.tenant_count,
        "tick": _tick_data(row),
    }


def _ended_data(ended: Ended) -> dict[str, Any]:
    return {
        "since": ended.since,
        "released_count": ended.expired_count,
        "skipped": dict(ended.skipped),
        "attempt_count": ended.attempt_count,
        "redelivery_count": ended.redelivery_count,
        "lag_seconds": _lag_data(ended),
        "lag_counts": dict(zip(_BUCKETS, ended.lag_counts, strict=True)),
    }


def _lag_data(ended: Ended) -> dict[str, float | str | None]:
    """Return the quantiles' upper bounds; JSON has no infinity, so the open bucket is said."""
    return {
        name: f"more than {LAG_BOUNDS_SECONDS[-1]:.0f}" if seconds == inf else seconds
        for name, seconds in lags(ended.lag_counts, ended.lag_max_seconds).items()
    }


def _tick_data(row: RuleStatus) -> dict[str, Any] | None:
    if row.tick is None:
        return None
    return {
        "logical_time": row.tick.logical_time,
        "started_at": row.tick.started_at,
        "finished_at": row.tick.finished_at,
        "late": row.tick_late,
        "found_count": row.tick.found_count,
        "new_count": row.tick.new_count,
        "outcome": row.tick.outcome,
    }


def _process_data(beat: Heartbeat, now: datetime, *, alive: bool) -> dict[str, Any]:
    skew: timedelta = beat.host_at - beat.beat_at
    return {
        "worker": beat.worker,
        "host": beat.host,
        "pid": beat.pid,
        "roles": beat.roles,
        "alive": alive,
        "silent_seconds": age_seconds(beat.beat_at, now),
        "host_skew_seconds": skew.total_seconds(),
        "in_hand": beat.in_hand,
        "started_at": beat.started_at,
    }
