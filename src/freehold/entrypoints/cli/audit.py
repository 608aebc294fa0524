"""`freehold audit`: checks every invariant, read-only."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from freehold.domain.errors import CheckFailed, UsageError
from freehold.entrypoints.cli.context import Invocation, invocation, people

if TYPE_CHECKING:
    from rich.console import Console

    from freehold.adapters.sql.ledger import SqlLedger
    from freehold.application.audit import CheckResult
    from freehold.ports.audit import Violation
    from freehold.settings import Settings

_UNITS = {"d": "days", "h": "hours", "m": "minutes"}


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(audit)


def audit(
    context: typer.Context,
    since: Annotated[
        str | None, typer.Option(help="Leave out what finished before: 7d, 12h, or an instant.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Examples of one check.")] = 20,
) -> None:
    """Check every promise against ledger and tables; exit 3 when one is broken. Changes nothing.

    Examples: freehold audit · freehold audit --since 1d · freehold audit --json
    """
    call = invocation(context)
    settings = call.settings()
    with call.ledger(settings) as ledger:
        results = _results(call, settings, ledger, since, limit)
    call.show([as_data(one) for one in results], lambda: _print(results))
    broken = [one.check.value for one in results if not one.clean]
    if broken:
        raise CheckFailed(f"{len(broken)} of {len(results)} checks failed: {', '.join(broken)}.")


def _results(
    call: Invocation, settings: Settings, ledger: SqlLedger, since: str | None, limit: int
) -> list[CheckResult]:
    from rich.console import Console

    from freehold.application.audit import audit as ask
    from freehold.ports.audit import Terms

    with ledger.reading() as reading:
        start = None if since is None else instant_of(since, reading.now)
    terms = Terms(since=start, limit=limit, sweep=settings.loops.sweep)
    with Console(stderr=True, quiet=call.json).status("checking") as shown:
        return ask(
            ledger, settings.rules, terms, on_check=lambda one: shown.update(f"checking {one}")
        )


def instant_of(text: str, now: datetime, option: str = "--since") -> datetime:
    """Read an instant, or a span back from now such as 7d.

    Raises:
        UsageError: it is neither.
    """
    try:
        if text[-1:] in _UNITS and text[:-1].isdigit():
            return now - timedelta(**{_UNITS[text[-1]]: int(text[:-1])})
        instant = datetime.fromisoformat(text)
    except (ValueError, OverflowError) as error:
        raise UsageError(
            f"{option} {text!r} is neither a span (7d, 12h, 30m) nor an instant."
        ) from error
    return instant if instant.tzinfo else instant.replace(tzinfo=now.tzinfo)


def as_data(one: CheckResult) -> dict[str, Any]:
    """Return a check's result as plain data."""
    return {
        "check": one.check.value,
        "invariant": one.invariant,
        "promise": one.promise,
        "clean": one.clean,
        "not_asked": one.not_asked,
        "violations": [
            {
                "rule": found.rule,
                "key": found.hold_key,
                "operation": found.operation_id,
                "detail": found.detail,
            }
            for found in one.violations
        ],
    }


def _print(results: list[CheckResult]) -> None:
    from rich.table import Table

    console = people()
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(style="dim")
    for one in results:
        mark = "[green]✓[/]" if one.clean else "[bold red]✗[/]"
        name = one.check.value if one.clean else f"[bold red]{one.check.value}[/]"
        table.add_row(mark, name, one.promise)
    console.print(table)
    for one in results:
        _print_broken(console, one)


def _print_broken(console: Console, one: CheckResult) -> None:
    from rich.markup import escape

    if one.clean:
        return
    console.print(f"\n[bold red]{one.check.value}[/] [dim]({one.invariant})[/]")
    if one.not_asked:
        console.print(f"  not asked: {escape(one.not_asked)}")
    for found in one.violations:
        console.print(f"  {escape(_place(found))}: {escape(found.detail)}", soft_wrap=True)


def _place(found: Violation) -> str:
    parts = [found.rule, found.hold_key and f"hold {found.hold_key}"]
    operation = found.operation_id and f"operation {found.operation_id}"
    return ", ".join(str(part) for part in (*parts, operation) if part) or "ledger"
