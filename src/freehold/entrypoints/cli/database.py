"""`freehold db ...`: the ledger's own schema."""

from __future__ import annotations

from typing import Annotated

import typer

from freehold.domain.errors import CheckFailed
from freehold.entrypoints.cli.context import invocation
from freehold.entrypoints.cli.drop import drop
from freehold.entrypoints.cli.restored import restored

db = typer.Typer(help="The ledger's own tables.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add the commands."""
    db.command()(drop)
    db.command()(restored)
    app.add_typer(db, name="db")


@db.command()
def upgrade(context: typer.Context) -> None:
    """Make or upgrade the ledger's tables; does nothing when they are current.

    Example: freehold db upgrade
    """
    from freehold.adapters.sql.housekeeping import keep_house
    from freehold.adapters.sql.migrations import upgrade as apply
    from freehold.bootstrap import open_session

    call = invocation(context)
    session = open_session(call.settings())
    try:
        done = [{"version": one.version, "name": one.name} for one in apply(session)]
        keep_house(session)
    finally:
        session.close()

    def text() -> None:
        for one in done:
            typer.echo(f"applied {one['version']:04} {one['name']}")
        if not done:
            typer.echo("the ledger is current")

    call.show(done, text)


@db.command()
def status(context: typer.Context) -> None:
    """Show which migrations are applied and which are missing.

    Example: freehold db status
    """
    from freehold.adapters.sql.migrations import applied, migrations
    from freehold.bootstrap import open_session

    call = invocation(context)
    session = open_session(call.settings(), create=False)
    try:
        done = {one.version for one in applied(session)}
    finally:
        session.close()
    rows = [
        {"version": one.version, "name": one.name, "applied": one.version in done}
        for one in migrations(session.dialect)
    ]

    def text() -> None:
        for row in rows:
            mark = "applied" if row["applied"] else "missing"
            typer.echo(f"{row['version']:04} {row['name']:<24} {mark}")

    call.show(rows, text)


@db.command()
def check(context: typer.Context) -> None:
    """Check that tables and program agree; exit 3 when they do not.

    Example: freehold db check
    """
    from freehold.adapters.sql.migrations import problems
    from freehold.bootstrap import open_session

    call = invocation(context)
    session = open_session(call.settings(), create=False)
    try:
        found = list(problems(session))
    finally:
        session.close()
    call.show(found, lambda: None if found else typer.echo("the ledger is current"))
    if found:
        raise CheckFailed(" ".join(found))


@db.command()
def sql(
    dialect: Annotated[str, typer.Option(help="postgres or sqlite.")] = "postgres",
) -> None:
    """Print the ledger's tables as SQL, without a connection.

    Example: freehold db sql --dialect postgres | less
    """
    from freehold.adapters.sql.migrations import script

    typer.echo(script(dialect))
