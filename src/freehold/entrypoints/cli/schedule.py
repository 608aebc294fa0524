"""`freehold schedule ...`: when rules are scanned."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from freehold.entrypoints.cli.context import invocation

schedule = typer.Typer(help="When rules are scanned.", no_args_is_help=True)

By = Annotated[str, typer.Option("--by", help="Who you are; kept in the action log.")]
Reason = Annotated[str, typer.Option("--reason", help="Why; kept in the action log.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(schedule, name="schedule")


@schedule.command("list")
def list_(context: typer.Context) -> None:
    """List the rules' schedules with their last run.

    Example: freehold schedule list
    """
    from freehold.domain.schedule import describe

    call = invocation(context)
    settings = call.settings()
    rows: list[dict[str, Any]] = []
    with call.ledger(settings) as ledger, ledger.transaction() as tx:
        for rule in settings.rules:
            last, state = tx.ticks.last(rule.name), tx.rules.read(rule.name)
            rows.append(
                {
                    "rule": rule.name,
                    "schedule": describe(rule.schedule),
                    "last": None if last is None else last.isoformat(),
                    "paused": None if state is None else state.scan_paused,
                }
            )

    def text() -> None:
        for row in rows:
            paused = f"  paused: {row['paused']}" if row["paused"] else ""
            last = (row["last"] or "never")[:19].replace("T", " ")
            typer.echo(f"{row['rule']:<20} {row['schedule']:<28} last (UTC) {last}{paused}")

    call.show(rows, text)


@schedule.command()
def next(  # noqa: A001 - the command's own name
    context: typer.Context,
    rule: str,
    count: Annotated[int, typer.Option(min=1, max=100)] = 5,
) -> None:
    """Show the next firings of a rule's schedule, in UTC and in its zone.

    Example: freehold schedule next cart --count 3
    """
    from freehold.adapters.system import SystemClock
    from freehold.application.schedule import next_firings

    call = invocation(context)
    firings = next_firings(call.settings().rule(rule).schedule, SystemClock().wall(), count)
    data = [{"utc": utc.isoformat(), "local": local.isoformat()} for utc, local in firings]

    def text() -> None:
        for utc, local in firings:
            typer.echo(f"{utc:%Y-%m-%d %H:%M:%S}Z   {local:%Y-%m-%d %H:%M:%S %Z}")
        if not firings:
            typer.echo("precise: at each due instant")

    call.show(data, text)


@schedule.command()
def pause(context: typer.Context, rule: str, by: By, reason: Reason) -> None:
    """Stop scanning for a rule; operations that exist are still worked off.

    Example: freehold schedule pause cart --by ann --reason "price update runs"
    """
    _switch(context, rule, by, reason, paused=True)


@schedule.command()
def resume(context: typer.Context, rule: str, by: By, reason: Reason) -> None:
    """Scan for a rule again; what fell due meanwhile is caught up.

    Example: freehold schedule resume cart --by ann --reason "update done"
    """
    _switch(context, rule, by, reason, paused=False)


def _switch(context: typer.Context, name: str, by: str, reason: str, *, paused: bool) -> None:
    from freehold.application.review import Person
    from freehold.application.rulestate import switch_schedule

    call = invocation(context)
    settings = call.settings()
    rule, person = settings.rule(name), Person(by, reason)
    with call.ledger(settings) as ledger, ledger.transaction() as tx:
        changed = switch_schedule(tx, rule, person.name, person.reason, paused=paused)
    word = "paused" if paused else "running"
    note = "" if changed else " already"
    call.show({"rule": name, "state": word}, lambda: typer.echo(f"{name} is{note} {word}"))
