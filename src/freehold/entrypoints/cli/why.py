"""`freehold why KEY`: everything about one hold, ending in one sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from freehold.entrypoints.cli.context import invocation, people

if TYPE_CHECKING:
    from freehold.application.why import Why


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(why)


def why(
    context: typer.Context,
    key: Annotated[
        str,
        typer.Argument(
            help="The hold's key; `a,b` where it has two columns, or a JSON list if a value has a comma."
        ),
    ],
    rule: Annotated[str | None, typer.Option(help="Look under this rule only.")] = None,
) -> None:
    """Say what happened to one hold, or why it is not released.

    Examples: freehold why 4711 · freehold why 12,A7 --rule seats · freehold why 4711 --json
    """
    from freehold.application.why import why as explain

    call = invocation(context)
    settings = call.settings()
    rules = settings.rules if rule is None else (settings.rule(rule),)
    with call.ledger(settings) as ledger:
        found = explain(ledger, rules, key)

    def text() -> None:
        for one in found:
            _print(one)

    call.show([as_data(one) for one in found], text)


def as_data(one: Why) -> dict[str, Any]:
    """Return an explanation as plain data."""
    return {
        "rule": one.rule,
        "key": one.hold_key,
        "answer": one.answer,
        "due_at": one.due_at,
        "held": None if one.row is None else one.row.row.held,
        "row": None if one.row is None else dict(one.row.image),
        "condition": None if one.state is None else one.state.condition.value,
        "operation": _operation(one),
        "happened": [{"at": at.at, "what": at.what} for at in one.happened],
    }


def _operation(one: Why) -> dict[str, Any] | None:
    if one.open is None:
        return None
    return {
        "id": one.open.id,
        "state": one.open.state.value,
        "reason": one.open.reason,
        "attempt": one.open.attempt,
        "generation": one.open.generation,
        "available_at": one.open.available_at,
        "leased_until": one.open.leased_until,
    }


def _print(one: Why) -> None:
    from rich.markup import escape
    from rich.table import Table

    console = people()
    console.print(f"[bold]{escape(one.hold_key)}[/] [dim]under[/] [bold]{escape(one.rule)}[/]")
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    if one.row is not None:
        for name, value in one.row.image.items():
            grid.add_row(escape(name), "[dim]null[/]" if value is None else escape(value))
        console.print(grid)
    if one.happened:
        console.print()
        lines = Table.grid(padding=(0, 2))
        lines.add_column(style="dim", no_wrap=True)
        lines.add_column(overflow="fold")
        for happened in one.happened:
            lines.add_row(f"{happened.at:%Y-%m-%d %H:%M:%S}", escape(happened.what))
        console.print(lines)
    console.print()
    console.print(escape(one.answer), soft_wrap=not console.is_terminal)
