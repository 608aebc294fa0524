"""`freehold tenant sync`: read the customer's own table of tenants now."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from freehold.domain.errors import RefusedByState, UsageError, WorkLeft
from freehold.entrypoints.cli.context import invocation
from freehold.entrypoints.cli.sentences import harmless

if TYPE_CHECKING:
    from freehold.application.tenants_sync import Synced

SHOWN = 5  # rejected rows that are named on the screen


def sync(
    context: typer.Context,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be done; change nothing.")
    ] = False,
    confirm: Annotated[
        bool,
        typer.Option("--confirm", help="The table is right, though half of the tenants are gone."),
    ] = False,
) -> None:
    """Read your own table of tenants from end to end, as the role report does now and then.

    New rows are added, changed ones written; tenants whose row is gone become inactive, never
    deleted. Rows that cannot be used are left out (exit 4). Where more than half is gone, nothing
    is changed (exit 6).

    Examples: freehold tenant sync --dry-run · freehold tenant sync
    """
    from freehold.application.tenants_sync import sync_tenants

    call = invocation(context)
    settings = call.settings()
    mapping = settings.tenants
    if mapping is None:
        raise UsageError(
            "There is no table of tenants to read; map it in [tenants] of freehold.toml, or add "
            "tenants with `freehold tenant add`."
        )
    with call.ledger(settings) as ledger:
        synced = sync_tenants(ledger, mapping, confirmed=confirm, trial=dry_run)
    call.show(asdict(synced), lambda: _print(synced, dry_run=dry_run))
    if synced.refusal is not None:
        raise RefusedByState(synced.refusal)
    if synced.rejected_count:
        raise WorkLeft(
            f"{synced.rejected_count} of {synced.seen_count} rows of table {mapping.table} cannot "
            "be used and were left out; mend them there, the next reading takes them."
        )


def _print(synced: Synced, *, dry_run: bool) -> None:
    if synced.refusal is not None:
        return
    counts = {
        "new": synced.new_count,
        "changed": synced.changed_count,
        "inactive, since their row is gone": synced.retired_count,
    }
    said = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
    would = "would be " if dry_run and said else ""
    rows = "row" if synced.seen_count == 1 else "rows"
    typer.echo(f"{synced.seen_count} {rows} read: {would}{said or 'all as before'}")
    for one in synced.taken_over[:SHOWN]:
        typer.echo(f"{one}: was added here; from now on the table is right about what it maps")
    for rejected in synced.rejected[:SHOWN]:
        typer.echo(f"{harmless(rejected.id)}: left out, since {rejected.reason}", err=True)
