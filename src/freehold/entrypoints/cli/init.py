"""`freehold init`: a commented freehold.toml, with a draft of a rule from the live catalogue.

*Invariants*: no file is overwritten; a password is never written; a drafted rule is a comment
until a person has checked it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from freehold.domain.errors import DatabaseAway, RefusedByState, UsageError
from freehold.entrypoints.cli.context import invocation

if TYPE_CHECKING:
    from freehold.adapters.sql.catalogue import Column
    from freehold.domain.rules import TableName
    from freehold.settings import Settings


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(init)


def init(
    context: typer.Context,
    url: Annotated[str | None, typer.Option(help="The database of your holds.")] = None,
    table: Annotated[
        str | None, typer.Option(help="The table of your holds, to draft a rule for.")
    ] = None,
    holds: Annotated[
        bool, typer.Option("--holds", help="Turn the built-in holds on: you need no table.")
    ] = False,
) -> None:
    """Write a commented freehold.toml to start from; never overwrites one.

    Examples: freehold init · freehold init --url postgresql://app@localhost/shop --table public.carts ·
    freehold init --holds
    """
    from freehold.entrypoints.cli.init_draft import page

    call = invocation(context)
    path = call.config or Path("freehold.toml")
    _refuse_overwrite(path)
    settings = _settings(url)
    name = None if table is None else _table(table)
    columns = None if name is None else _columns(settings, name)
    _write(path, page(url, name, columns, _variable(settings, url), holds=holds))
    call.show(
        {"file": str(path), "drafted": bool(columns)},
        lambda: typer.echo(
            f"wrote {path}; check it, then run: freehold config check · freehold doctor · "
            "freehold db upgrade · freehold plan"
        ),
    )


def _refuse_overwrite(path: Path) -> None:
    if path.exists():
        raise RefusedByState(f"{path} exists and is not overwritten; name another with --config.")


def _settings(url: str | None) -> Settings:
    """Return settings of the named database, or of the environment's."""
    from freehold.settings.sources import load_settings
    from freehold.settings.url import check_url

    settings = load_settings(Path(os.devnull), os.environ)
    if url is None:
        return settings
    try:
        return replace(settings, database=replace(settings.database, url=check_url(url)))
    except ValueError as error:
        raise UsageError(f"--url {error}.") from None


def _variable(settings: Settings, url: str | None) -> str:
    """Return the environment variable that the URL comes from, if it does."""
    origin = settings.origins["database.url"]
    return origin if url is None and origin.startswith("FREEHOLD_") else ""


def _table(text: str) -> TableName:
    from freehold.settings.notation import read_table

    try:
        return read_table(text)
    except ValueError as error:
        raise UsageError(f"--table {error}.") from None


def _columns(settings: Settings, table: TableName) -> Mapping[str, Column]:
    """Read the table's columns.

    Raises:
        DatabaseError: the database is away; writing a file without the rule that was asked for
            would only stand in the way of the next try.
        UsageError: there is no such table.
    """
    found = _read(settings, table)
    if not found:
        raise UsageError(
            f"There is no table {table} in that database, or it may not be seen; check the exact "
            "name (it is taken as it stands, with its capitals) and the schema."
        )
    return found


def _read(settings: Settings, table: TableName) -> Mapping[str, Column]:
    from freehold.adapters.sql.catalogue import read_columns
    from freehold.bootstrap import open_session, sqlite_path

    url = settings.database.url
    if url.startswith("sqlite:") and not sqlite_path(url).exists():
        raise DatabaseAway(f"no file {sqlite_path(url)}")  # opening it would make it
    session: Any = open_session(settings)
    try:
        session.begin()
        return read_columns(session, table)
    finally:
        session.rollback()
        session.close()


def _write(path: Path, text: str) -> None:
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        _refuse_overwrite(path)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}.") from None
