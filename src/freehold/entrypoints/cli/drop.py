"""`freehold db drop`: take the ledger out of a database again."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from freehold.domain.errors import RefusedByState, UsageError
from freehold.entrypoints.cli.context import Invocation, invocation

if TYPE_CHECKING:
    from freehold.adapters.sql.dropping import Standing


def drop(
    context: typer.Context,
    yes: Annotated[
        str,
        typer.Option(
            "--yes", help="The name of the database, or of the SQLite file; else you are asked."
        ),
    ] = "",
    force: Annotated[
        bool, typer.Option("--force", help="Lose undone work too. Needs --reason.")
    ] = False,
    reason: Annotated[
        str, typer.Option("--reason", help="Why; it is printed, since the action log goes too.")
    ] = "",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be dropped, and drop nothing.")
    ] = False,
) -> None:
    """Drop the ledger for good: operations, records, events, action log, built-in holds.

    Your own tables stay as they are. Exits 6 while a process works, while something of yours hangs
    onto the ledger, and, without --force, while there is undone work.

    Examples: freehold db drop --dry-run · freehold db drop --yes shop ·
    freehold db drop --yes shop.db --force --reason "trial is over"
    """
    from freehold.adapters.sql.dropping import drop as drop_ledger
    from freehold.adapters.sql.dropping import look, refuse
    from freehold.bootstrap import open_session

    if force and not reason.strip():
        raise UsageError("--force loses undone work for good: say why with --reason.")
    call = invocation(context)
    session = open_session(call.settings(), create=False)
    try:
        standing = look(session)
        if standing.relations and not dry_run:
            refuse(standing, force=force)
            _confirm(standing.database, yes)
            standing = drop_ledger(session, force=force)
    finally:
        session.close()
    _show(call, standing, reason, dropped=not dry_run)


def _confirm(database: str, yes: str) -> None:
    if not yes and sys.stdin.isatty():
        typer.echo(f"This drops the ledger of {database} for good, with every record.", err=True)
        yes = typer.prompt("Type its name to go on", err=True)
    if not yes:
        raise UsageError(f"Say --yes {database} to drop its ledger for good.")
    if yes != database:
        raise RefusedByState(f"The database is {database} and not {yes}. Nothing was dropped.")


def _show(call: Invocation, standing: Standing, reason: str, *, dropped: bool) -> None:
    names = [name for _, name in standing.relations]
    data: dict[str, Any] = {
        "database": standing.database,
        "dropped": names if dropped else [],
        "found": names,
        "work": list(standing.work),
        "hindrances": list(standing.hindrances),
        "reason": reason or None,
    }

    def text() -> None:
        if not names:
            typer.echo(f"{standing.database} has no ledger; there is nothing to drop")
            return
        verb = "dropped" if dropped else "would drop"
        why = f" ({reason})" if reason else ""
        typer.echo(f"{verb} the ledger of {standing.database}{why}: {', '.join(sorted(names))}")
        for one in standing.work:
            typer.echo(f"{'lost' if dropped else 'undone'}: {one}")
        for one in standing.hindrances:
            typer.echo(one)

    call.show(data, text)
