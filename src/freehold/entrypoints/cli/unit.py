"""`freehold unit ...`: what can be held."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from freehold.domain.errors import UsageError
from freehold.domain.inventory import ID_MAX
from freehold.entrypoints.cli.context import invocation, people
from freehold.entrypoints.cli.importing import DryRun, File, RejectsFile, import_file

if TYPE_CHECKING:
    from collections.abc import Sequence

    from freehold.domain.inventory import Unit

unit = typer.Typer(help="What can be held: rooms, seats, pitches.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(unit, name="unit")


@unit.command()
def add(
    context: typer.Context,
    names: Annotated[list[str], typer.Argument(help="The units' names, new in their tenant.")],
    tenant: Annotated[str, typer.Option("--tenant", "-t", help="Whose units they are.")],
) -> None:
    """Add units; those that are there already stay as they are.

    Examples: freehold unit add --tenant harbour "Room 12" · freehold unit add -t harbour 1A 1B 1C
    """
    from freehold.domain.inventory import NewUnit
    from freehold.ports.inventory import Written

    call = invocation(context)
    new = [NewUnit(tenant, name) for name in names]
    with call.ledger() as ledger, ledger.transaction() as tx:
        written = tx.units.add(new)
        found = {one.name: one for one in tx.units.named(tenant, names)}
    if Written.MISSING in written:
        raise UsageError(
            f"There is no tenant {tenant!r}; add it with `freehold tenant add`, or see "
            "`freehold tenant list`."
        )
    answers = dict(zip(names, written, strict=True))
    data = [{**_data(found[name]), "result": answer} for name, answer in answers.items()]

    def text() -> None:
        for name, answer in answers.items():
            typer.echo(f"{name}: {'added' if answer is Written.NEW else 'is there already'}")

    call.show(data, text)


def _data(one: Unit) -> dict[str, object]:
    return {**asdict(one), "id": str(one.id)}


@unit.command("list")
def list_(
    context: typer.Context,
    tenant: Annotated[
        str | None, typer.Option("--tenant", "-t", help="Of one tenant only.")
    ] = None,
    after: Annotated[
        int, typer.Option("--after", min=0, max=ID_MAX, help="Go on behind this id.")
    ] = 0,
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000, help="How many.")] = 100,
) -> None:
    """List units in the order of their ids.

    Example: freehold unit list --tenant harbour
    """
    call = invocation(context)
    with call.ledger() as ledger, ledger.transaction() as tx:
        if tenant is not None and not tx.tenants.read([tenant]):
            raise UsageError(f"There is no tenant {tenant!r}; see `freehold tenant list`.")
        found = list(tx.units.find(tenant, after, limit))
    call.show([_data(one) for one in found], lambda: _print(found, limit))


def _print(found: Sequence[Unit], limit: int) -> None:
    from rich.markup import escape
    from rich.table import Table

    if not found:
        typer.echo("there is no unit here; add one with `freehold unit add`")
        return
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("id", justify="right")
    for name in ("tenant", "unit", ""):
        table.add_column(name)
    for one in found:
        state = "" if one.active else "[yellow]inactive[/]"
        table.add_row(str(one.id), escape(one.tenant), f"[bold]{escape(one.name)}[/]", state)
    people().print(table)
    if len(found) == limit:
        typer.echo(f"there may be more: --after {found[-1].id}", err=True)


@unit.command("import")
def import_(
    context: typer.Context,
    file: File,
    rejects: RejectsFile = None,
    dry_run: DryRun = False,
) -> None:
    """Import units from CSV: tenant, name, and active if there.

    A rerun imports nothing twice. Rejected lines go to a file of their own (exit 4); the rest is in.

    Example: freehold unit import units.csv
    """
    from freehold.application.takeover import UnitLines

    call = invocation(context)
    with call.ledger() as ledger:
        import_file(call, ledger, file, "unit", UnitLines(), rejects, dry_run=dry_run)
