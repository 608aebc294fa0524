"""`freehold prune`: remove what is older than its age in `[retention]`."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from freehold.entrypoints.cli.context import invocation, people

if TYPE_CHECKING:
    from collections.abc import Mapping

    from freehold.application.prune import PruneResult
    from freehold.ports.retention import Subject


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(prune)


def prune(
    context: typer.Context,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Count what would go; remove nothing.")
    ] = False,
) -> None:
    """Remove old records, attempts, events, mails and runs, as `freehold run` does once a day.

    Only what two readings of the clock, an hour apart, call old enough; open work never.

    Examples: freehold prune --dry-run · freehold prune
    """
    from freehold.adapters.system import SystemClock
    from freehold.application.prune import Pruner
    from freehold.domain.errors import RefusedByState, WorkLeft

    call = invocation(context)
    settings = call.settings()
    ages = settings.retention.ages()
    with call.ledger(settings) as ledger:
        pruner = Pruner(ledger, ages, SystemClock())
        result = pruner.rehearse() if dry_run else pruner.run()
    call.show(_data(result, ages, dry_run=dry_run), lambda: _show(result, ages, dry_run=dry_run))
    if result.frozen is not None:
        raise RefusedByState(
            f"Nothing is removed while the clock is in doubt: {result.frozen.rstrip('.')}; "
            "see `freehold guard show`."
        )
    for subject, error in result.troubles.items():
        raise WorkLeft(
            f"Some {subject.value} could not be removed now ({error}); the rest was, and the next "
            "round tries again."
        )


def _data(
    result: PruneResult, ages: Mapping[Subject, timedelta], *, dry_run: bool
) -> dict[str, Any]:
    from freehold.application.prune import COUNT_MOST

    return {
        "dry_run": dry_run,
        "frozen": result.frozen,
        "counts_stop_at": COUNT_MOST + 1 if dry_run else None,
        "subjects": [
            {
                "subject": subject.value,
                "age_seconds": ages[subject].total_seconds(),
                "before": result.before.get(subject),
                "removed_count": count,
                "left": subject in result.troubles,
            }
            for subject, count in result.counts.items()
        ],
    }


def _show(result: PruneResult, ages: Mapping[Subject, timedelta], *, dry_run: bool) -> None:
    from rich.table import Table

    from freehold.application.spans import span

    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("")
    table.add_column("kept for", justify="right")
    table.add_column("older than")
    table.add_column("would go" if dry_run else "removed", justify="right")
    for subject, count in result.counts.items():
        before = result.before.get(subject)
        left = " [yellow]some left[/]" if subject in result.troubles else ""
        table.add_row(
            f"[bold]{subject.value}[/]", span(ages[subject]), _instant(before), _count(count) + left
        )
    console = people()
    console.print(table)
    if result.frozen is None and None in result.before.values():
        console.print(
            "[dim]Nothing goes by one reading of the clock: the next one counts, an hour from "
            "now at the earliest.[/]"
        )


def _instant(at: datetime | None) -> str:
    return "[dim]first reading[/]" if at is None else f"{at:%Y-%m-%d %H:%M} UTC"


def _count(count: int) -> str:
    return f"{count:,}" if count else "[dim]·[/]"
