"""`freehold run | scan | work | sweep`: the service and its one-shots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from freehold.entrypoints.cli.context import invocation
from freehold.entrypoints.cli.one_shot import deadline_seconds, refuse, require_rules
from freehold.entrypoints.cli.sentences import sentence
from freehold.entrypoints.signals import on_signals

if TYPE_CHECKING:
    from freehold.application.release import BatchResult
    from freehold.application.stopped import Stopped
    from freehold.domain.pauses import Role
    from freehold.domain.rules import Rule
    from freehold.entrypoints.relaying import Relayed
    from freehold.entrypoints.reporting_once import Reported
    from freehold.settings import Settings


def register(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (run, scan, work, sweep):
        app.command()(command)


def run(
    context: typer.Context,
    role: Annotated[
        str | None,
        typer.Option(help="Roles, separated by commas; by default all that are configured."),
    ] = None,
    until_idle: Annotated[
        bool, typer.Option("--until-idle", help="End as soon as nothing is due.")
    ] = False,
    limit: Annotated[
        int | None,
        typer.Option(min=1, help="With --until-idle: end after the batch that reaches so many."),
    ] = None,
    deadline: Annotated[
        str | None,
        typer.Option(help="With --until-idle: begin no batch after so long, as in 50s."),
    ] = None,
) -> None:
    """Run the service until SIGTERM, or until nothing is due.

    A SIGTERM lets the batch in hand finish; a second one ends at once.

    Examples: freehold run · freehold run --role work · freehold run --until-idle --deadline 50s
    """
    from freehold.adapters.system import Onwards
    from freehold.bootstrap import open_telemetry
    from freehold.entrypoints.service import Service

    call = invocation(context)
    settings = call.settings()
    roles = _roles(role, settings)
    _require_until_idle(until_idle=until_idle, limit=limit, deadline=deadline)
    _require_all(roles, settings, until_idle=until_idle)
    _require_work(roles, settings)
    with call.ledger(settings):
        pass
    if until_idle:
        _run_until_idle(context, settings, limit, deadline)
        return
    service = Service(settings, Onwards(), open_telemetry(settings))
    context.with_resource(on_signals(service.ask_to_stop))
    service.run(roles)


def _run_until_idle(
    context: typer.Context, settings: Settings, limit: int | None, deadline: str | None
) -> None:
    from freehold.adapters.system import Onwards, StopRequest, SystemClock
    from freehold.domain.errors import WorkLeft
    from freehold.entrypoints.cli.brokers import relayed_data
    from freehold.entrypoints.cli.report_act import reported_data
    from freehold.entrypoints.draining import Budget, drain_once
    from freehold.entrypoints.relaying import relay_once
    from freehold.entrypoints.reporting_once import MailBudget, report_once
    from freehold.ports.telemetry import UNHEARD

    call, stop = invocation(context), StopRequest()
    context.with_resource(on_signals(stop.stop))
    seconds = None if deadline is None else deadline_seconds(deadline)
    clock = SystemClock()
    began = clock.monotonic()
    drain = drain_once(settings, Onwards(), UNHEARD, Budget(limit, seconds), stop)

    def seconds_left() -> float | None:
        return None if seconds is None else max(0.0, seconds - (clock.monotonic() - began))

    relayed = reported = None
    if settings.targets and not stop.stopping:
        relayed = relay_once(settings, Onwards(), UNHEARD, stop, seconds=seconds_left())
    if settings.report is not None and not stop.stopping:
        mails = MailBudget(None, seconds_left())
        reported = report_once(settings, Onwards(), UNHEARD, mails, stop, considerate=False)
    stopped = drain.stopped
    data = {**_counts(drain.total), "left": drain.left, **_standing(stopped)}
    if relayed is not None:
        data["relay"] = relayed_data(relayed)
    if reported is not None:
        data["reports"] = reported_data(reported)
    released = _ended(drain.total, stopped)
    call.show(data, lambda: typer.echo(_and_reported(released, relayed, reported)))
    more = [trouble for one in (relayed, reported) if one for trouble in one.troubles]
    for name, error in (*drain.troubles, *more):
        typer.echo(f"freehold: {name}: {sentence(error)}", err=True)
    refuse(stopped)
    left = drain.left or (relayed is not None and relayed.is_left)
    if left and not stop.stopping:
        raise WorkLeft("Work is left over: the limit or the time was used up; run it again.")


def _and_reported(released: str, relayed: Relayed | None, reported: Reported | None) -> str:
    """Add what became of events and reports; what waits for another attempt is not left over."""
    from freehold.entrypoints.cli.brokers import relayed_text
    from freehold.entrypoints.cli.report_act import reported_text

    parts = [released]
    if relayed is not None:
        parts.append(relayed_text(relayed))
    if reported is not None:
        waiting = "" if reported.next_at is None else "; some mails are tried again later"
        parts.append(f"{reported_text(reported)}{waiting}")
    return "; ".join(parts)


def _counts(total: BatchResult) -> dict[str, Any]:
    return {
        "released": total.released_count,
        "skipped": dict(total.skipped),
        "failed": total.failed_count,
        "dead": total.buried_count,
    }


def _standing(stopped: Stopped) -> dict[str, Any]:
    return {"held_up": stopped.rules, "paused_tenants": sorted(stopped.tenants)}


def _ended(total: BatchResult, stopped: Stopped) -> str:
    """Say what a one-shot did, and what did not go well in it."""
    parts = [_released(total.released_count)]
    if total.failed_count:
        parts.append(f"{total.failed_count} failed, to be tried again later")
    if total.buried_count:
        parts.append(f"{total.buried_count} to `freehold review list`")
    return "; ".join([*parts, *_paused(stopped)])


def _paused(stopped: Stopped) -> list[str]:
    count = len(stopped.tenants)
    if not count:
        return []
    return [f"{count} tenant{' is' if count == 1 else 's are'} paused, see `freehold pause list`"]


def _released(count: int) -> str:
    return f"released {count} hold{'' if count == 1 else 's'}"


def _require_until_idle(*, until_idle: bool, limit: int | None, deadline: str | None) -> None:
    from freehold.domain.errors import UsageError

    if not until_idle and (limit is not None or deadline is not None):
        raise UsageError("--limit and --deadline end a one-shot only: add --until-idle.")


def _require_all(roles: Sequence[Role], settings: Settings, *, until_idle: bool) -> None:
    from freehold.domain.errors import UsageError

    if until_idle and set(roles) != set(_configured(settings)):
        raise UsageError(
            "--until-idle scans, works, relays and reports: leave --role out, or run "
            "`freehold scan`, `freehold work`, `freehold relay` or `freehold report run` alone."
        )


def _require_work(roles: Sequence[Role], settings: Settings) -> None:
    """Refuse roles that have nothing to do."""
    from freehold.bootstrap import report_settings, require_queue, require_targets
    from freehold.domain.pauses import RULE_ROLES, Role

    if Role.REPORT in roles:
        report_settings(settings)
    if Role.DISPATCH in roles:
        require_queue(settings)
    if Role.RELAY in roles:
        require_targets(settings)
    if any(role in roles for role in RULE_ROLES):
        require_rules(settings)


def _configured(settings: Settings) -> list[Role]:
    """Return the roles that the settings ask for."""
    from freehold.domain.pauses import Role

    optional = {
        Role.DISPATCH: settings.queue is not None,
        Role.RELAY: bool(settings.targets),
        Role.REPORT: settings.report is not None,
    }
    return [Role.SCAN, Role.WORK, *(role for role, is_wanted in optional.items() if is_wanted)]


def _roles(text: str | None, settings: Settings) -> list[Role]:
    from freehold.domain.errors import UsageError
    from freehold.domain.pauses import Role

    if text is None:
        return _configured(settings)
    try:
        return [Role(name.strip()) for name in text.split(",")]
    except ValueError as error:
        known = ", ".join(Role)
        raise UsageError(f"There is no such role in {text!r}; known roles: {known}.") from error


def scan(context: typer.Context, rule: Annotated[str | None, typer.Option()] = None) -> None:
    """Scan once for due holds and write operations, whatever the schedule says.

    In mode `direct` the scan itself releases them.

    Example: freehold scan --rule cart
    """
    from freehold.adapters.system import Onwards, StopRequest, SystemClock, SystemDice
    from freehold.application.direct import StraightPages
    from freehold.application.remap import follow_mappings
    from freehold.application.scan import Scanner
    from freehold.application.schedule import Scheduler
    from freehold.application.stopped import find_stopped
    from freehold.application.together import Tools
    from freehold.domain.pauses import Role
    from freehold.entrypoints.relaying import follow_targets

    call = invocation(context)
    settings = call.settings()
    require_rules(settings)
    chosen = _chosen(settings, rule)
    rows: list[dict[str, Any]] = []
    with call.ledger(settings) as ledger:
        follow_mappings(ledger, settings.rules)
        follow_targets(ledger, settings)
        tools = Tools(ledger, Onwards(), SystemDice(), StopRequest())
        scanner = Scanner(ledger, Onwards(), straight=StraightPages(tools))
        scheduler = Scheduler(ledger, scanner, SystemClock(), "one-shot", Onwards())
        for one in chosen:
            result = scheduler.scan_now(one)
            row = {"rule": one.name, "found": result.found_count, "new": result.new_count}
            rows.append({**row, "released": result.released.released_count})
        stopped = find_stopped(ledger, chosen, (Role.SCAN,))
    for row in rows:
        row["held_up"] = stopped.rules.get(str(row["rule"]))

    def text() -> None:
        for row in rows:
            if row["held_up"] is None or row["found"]:
                released = f", {row['released']} released" if row["released"] else ""
                typer.echo(f"{row['rule']}: {row['found']} due, {row['new']} new{released}")
        for line in _paused(stopped):
            typer.echo(line)

    call.show(rows, text)
    refuse(stopped)


def work(context: typer.Context, rule: Annotated[str | None, typer.Option()] = None) -> None:
    """Release what is ready now, then end.

    Example: freehold work --rule cart
    """
    from freehold.adapters.system import Onwards, StopRequest, SystemDice
    from freehold.application.release import BatchResult
    from freehold.application.remap import follow_mappings
    from freehold.application.stopped import find_stopped
    from freehold.application.work import PassEnd, Worker
    from freehold.bootstrap import open_handling
    from freehold.domain.pauses import Role
    from freehold.entrypoints.relaying import follow_targets

    call = invocation(context)
    settings = call.settings()
    require_rules(settings)
    chosen = _chosen(settings, rule)
    lease = settings.loops.lease
    handling = open_handling(settings)
    total = BatchResult()
    with call.ledger(settings) as ledger:
        follow_mappings(ledger, settings.rules)
        follow_targets(ledger, settings)
        worker = Worker(
            ledger, Onwards(), SystemDice(), StopRequest(), lease=lease, handling=handling
        )
        for one in chosen:
            while (done := worker.work(one)).end is PassEnd.WORKED:
                total.add(done.batch)
        stopped = find_stopped(ledger, chosen, (Role.WORK,))
    call.show({**_counts(total), **_standing(stopped)}, lambda: typer.echo(_ended(total, stopped)))
    refuse(stopped)


def sweep(context: typer.Context) -> None:
    """Take back ended leases and close what needs nothing any more, once.

    It does so also while a guard stands, and then exits 6 with what froze releases.

    Example: freehold sweep
    """
    from freehold.adapters.system import Onwards
    from freehold.application.scan import Scanner
    from freehold.application.stopped import find_stopped
    from freehold.application.sweep import Sweeper

    call = invocation(context)
    settings = call.settings()
    require_rules(settings)
    with call.ledger(settings) as ledger:
        result = Sweeper(ledger, Onwards(), Scanner(ledger, Onwards())).sweep(settings.rules)
        stopped = find_stopped(ledger, settings.rules, ())  # nobody pauses a sweep
    call.show(
        {
            "returned": result.returned_count,
            "closed": result.closed_count,
            "held_up": stopped.rules,
        },
        lambda: typer.echo(f"returned {result.returned_count}, closed {result.closed_count}"),
    )
    for _, error in result.troubles:
        raise error
    refuse(stopped)


def _chosen(settings: Settings, name: str | None) -> Sequence[Rule]:
    return settings.rules if name is None else (settings.rule(name),)
