"""What the import commands share: read a file in batches, keep rejected lines, say how it went.

*Invariants*: memory is bounded whatever the file's length; a batch is one transaction; no cell of
the file is shown.
*Not here*: what lines of each kind mean (`application.takeover`).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from freehold.domain.errors import ExitCode, UsageError
from freehold.entrypoints.cli.context import Invocation, people
from freehold.entrypoints.cli.csv_records import BadRecord
from freehold.entrypoints.cli.csv_table import Columns, CsvTable, Line
from freehold.entrypoints.cli.rejects import Rejects

if TYPE_CHECKING:
    from rich.console import Console

    from freehold.adapters.sql.ledger import SqlLedger
    from freehold.application.takeover import Lines, Takeover

BATCH = 1_000  # lines in one transaction; the database may ask for fewer
STDIN = "-"

File = Annotated[str, typer.Argument(help="A CSV file in UTF-8 with a header; - for stdin.")]
RejectsFile = Annotated[
    Path | None,
    typer.Option(
        "--rejects",
        help="Where rejected lines go, with number and reason; FILE.rejects.csv by default.",
    ),
]
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run", help="Check only, each batch by itself; exit 3 where lines are rejected."
    ),
]


@dataclass(slots=True)
class Counts:
    """How it went so far."""

    new_count: int = 0
    there_count: int = 0

    @property
    def taken_count(self) -> int:
        """Return how many lines are in."""
        return self.new_count + self.there_count


def columns_of(kind: str) -> Columns:
    """Return the columns of a kind's file."""
    from freehold.domain.inventory_text import OPTIONAL, REQUIRED

    return Columns(REQUIRED[kind], OPTIONAL[kind])


def import_file(
    call: Invocation,
    ledger: SqlLedger,
    file: str,
    kind: str,
    lines: Lines[Any],
    rejects_file: Path | None,
    *,
    dry_run: bool,
) -> None:
    """Import a file, and end with the exit code that says how it went."""
    with _opened(file) as source:
        table = CsvTable(source, "stdin" if file == STDIN else file, columns_of(kind))
        with Rejects(rejects_file or _beside(file)) as rejects:
            counts = _run(ledger, table, lines, rejects, _size(source), dry_run=dry_run)
    data = _data(table, counts, rejects, lines, dry_run=dry_run)
    call.show(data, lambda: _print(data, rejects))
    if rejects.count:
        raise typer.Exit(ExitCode.CHECK_FAILED if dry_run else ExitCode.WORK_LEFT)


@contextmanager
def _opened(file: str) -> Iterator[IO[bytes]]:
    if file == STDIN:
        yield sys.stdin.buffer
        return
    try:
        source = Path(file).open("rb")  # noqa: SIM115 -- closed below; the error is of opening only
    except FileNotFoundError:
        raise UsageError(f"{file} does not exist; name a CSV file, or - for stdin.") from None
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}.") from None
    with source:
        yield source


def _beside(file: str) -> Path:
    if file == STDIN:
        return Path("stdin.rejects.csv")
    return Path(f"{file.removesuffix('.csv')}.rejects.csv")


def _size(source: IO[bytes]) -> int | None:
    """Return the file's length; None for a pipe, whose end nobody knows."""
    try:
        return os.fstat(source.fileno()).st_size if source.seekable() else None
    except OSError:
        return None


def _run(
    ledger: SqlLedger,
    table: CsvTable,
    lines: Lines[Any],
    rejects: Rejects,
    size: int | None,
    *,
    dry_run: bool,
) -> Counts:
    from freehold.adapters.system import StopRequest, SystemDice
    from freehold.application.takeover import Takeover

    takeover = Takeover(ledger, lines, SystemDice(), StopRequest(), trial=dry_run)
    counts = Counts()
    with _progress(size) as advance:
        for batch in _batches(table, min(BATCH, ledger.batch_limit or BATCH)):
            _take(takeover, batch, counts, rejects)
            advance(sum(len(one.raw) for one in batch), counts, rejects.count)
    return counts


def _batches(table: CsvTable, size: int) -> Iterator[Sequence[Line | BadRecord]]:
    batch: list[Line | BadRecord] = []
    for one in table.lines():
        batch.append(one)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


def _take(
    takeover: Takeover[Any], batch: Sequence[Line | BadRecord], counts: Counts, rejects: Rejects
) -> None:
    from freehold.ports.inventory import Written

    answers = iter(takeover.take([one.values for one in batch if isinstance(one, Line)]))
    for one in batch:
        if isinstance(one, BadRecord):
            rejects.add(one.line, one.reason, one.raw)
            continue
        answer = next(answers)
        if answer.refusal is not None:
            rejects.add(one.number, answer.refusal, one.raw)
        elif answer.written is Written.NEW:
            counts.new_count += 1
        else:
            counts.there_count += 1


@contextmanager
def _progress(size: int | None) -> Iterator[Any]:
    """Show progress on a terminal; elsewhere nothing, since the end says all."""
    if not sys.stderr.isatty():
        with nullcontext():
            yield lambda *_: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        BarColumn(),
        TextColumn("{task.fields[taken]:,} in"),
        TextColumn("{task.fields[rejected]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=size, taken=0, rejected="")

        def advance(byte_count: int, counts: Counts, rejected_count: int) -> None:
            said = f"[red]{rejected_count:,} rejected" if rejected_count else ""
            bar.update(task, advance=byte_count, taken=counts.taken_count, rejected=said)

        yield advance


def _data(
    table: CsvTable, counts: Counts, rejects: Rejects, lines: Lines[Any], *, dry_run: bool
) -> dict[str, Any]:
    return {
        "new": counts.new_count,
        "there_already": counts.there_count,
        "rejected": rejects.count,
        "rejects_file": str(rejects.path) if rejects.count else None,
        "created_tenants_and_units": getattr(lines, "created_count", 0),
        "ignored_columns": table.ignored_count,
        "dry_run": dry_run,
    }


def _print(data: dict[str, Any], rejects: Rejects) -> None:
    console = people()
    would = "[yellow]dry run:[/] " if data["dry_run"] else ""
    mark = "[bold red]✗[/]" if rejects.count else "[bold green]✓[/]"
    console.print(
        f"{mark} {would}[bold]{data['new']:,}[/] new, {data['there_already']:,} there already, "
        + (f"[red]{rejects.count:,} rejected[/]" if rejects.count else "0 rejected")
    )
    if made := data["created_tenants_and_units"]:
        console.print(f"  made {made:,} missing tenants and units")
    if ignored := data["ignored_columns"]:
        console.print(f"  [dim]not read: {ignored} other column{'s' * (ignored != 1)}[/]")
    if rejects.count:
        _print_rejects(console, rejects)


def _print_rejects(console: Console, rejects: Rejects) -> None:
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    table.add_column(justify="right", style="dim")
    table.add_column()
    for line, reason in rejects.first:
        table.add_row(f"  line {line:,}", reason)
    if rejects.count > len(rejects.first):
        table.add_row("", f"and {rejects.count - len(rejects.first):,} more")
    console.print(table)
    console.print(f"  all rejected lines: {rejects.path}", markup=False, soft_wrap=True)
