"""`freehold schedule ...`: when rules are scanned."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from freehold.domain.errors import UsageError
from freehold.entrypoints.cli.context import invocation

if TYPE_CHECKING:
    from freehold.domain.rules import Rule
    from freehold.ports.ledger import Transaction

schedule = typer.Typer(help="When rules are scanned.", no_args_is_help=True)

By = Annotated[str, typer.Option("--by", help="Who you are; kept in the action log.")]
Reason = Annotated[str, typer.Option("--reason", help="Why; kept in the action log.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(schedule, name="schedule")


@schedule.command("list")
def list_(context: typer.Context) -> None:
    """List the rules' schedules with their last run and the next one, in UTC.

    Example: freehold schedule list
    """
    call = invocation(context)
    settings = call.settings()
    with call.ledger(settings) as ledger, ledger.transaction() as tx:
        rows = [_row(tx, rule) for rule in settings.rules]

    def text() -> None:
        for row in rows:
            paused = f"  paused: {row['paused']}" if row["paused"] else ""
            last, following = _minute(row["last"], "never"), _minute(row["next"], "when due")
            typer.echo(
                f"{row['rule']:<20} {row['schedule']:<34} last {last:<21} next {following}{paused}"
            )

    call.show(rows, text)


def _row(tx: Transaction, rule: Rule) -> dict[str, Any]:
    from freehold.application.schedule import next_firings
    from freehold.domain.schedule import describe

    state, following = tx.rules.read(rule.name), next_firings(rule.schedule, tx.now, 1)
    return {
        "rule": rule.name,
        "schedule": describe(rule.schedule),
        "last": tx.ticks.last(rule.name),
        "next": following[0].utc if following else None,
        "paused": None if state is None else state.scan_paused,
    }


def _minute(at: datetime | None, otherwise: str) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S}Z" if at else otherwise


@schedule.command()
def next(  # noqa: A001 - the command's own name
    context: typer.Context,
    rule: Annotated[str, typer.Argument(help="The rule.")],
    count: Annotated[int, typer.Option(min=1, max=100, help="How many firings.")] = 5,
    after: Annotated[
        str, typer.Option("--after", help="Begin after this instant: 2026-03-28T12:00Z.")
    ] = "",
) -> None:
    """Show the next firings of a rule's schedule in UTC and in its zone, and what is odd about any.

    A clock that is set forward or back makes a firing odd: the page on schedules says what happens.

    Examples: freehold schedule next cart --count 3 ·
    freehold schedule next cart --after 2026-10-24T22:00Z
    """
    from freehold.adapters.system import SystemClock
    from freehold.application.schedule import next_firings

    call = invocation(context)
    start = _instant(after) if after else SystemClock().wall()
    firings = next_firings(call.settings().rule(rule).schedule, start, count)

    def text() -> None:
        for one in firings:
            line = f"{one.utc:%Y-%m-%d %H:%M:%S}Z   {one.local:%a %Y-%m-%d %H:%M:%S %Z}"
            typer.echo(f"{line}   {one.note}" if one.note else line)
        if not firings:
            typer.echo("precise: at each due instant")

    call.show(
        [{"utc": one.utc, "local": one.local, "note": one.note or None} for one in firings], text
    )


def _instant(text: str) -> datetime:
    """Read an instant; without an offset it is UTC."""
    try:
        found = datetime.fromisoformat(text)
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise UsageError(f"--after {text!r} is no instant: write 2026-03-28T12:00Z.") from None


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
