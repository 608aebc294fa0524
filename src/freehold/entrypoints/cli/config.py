"""`freehold config ...`: what the settings are, where they came from, and whether they are right."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from freehold.domain.errors import DatabaseError, ExitCode, UsageError
from freehold.entrypoints.cli.context import Invocation, invocation

if TYPE_CHECKING:
    from freehold.settings import Settings
    from freehold.settings.effective import Setting
    from freehold.settings.shape_file import FileShape
    from freehold.settings.sources import Document

REACHED_WITHIN = timedelta(seconds=2)

config = typer.Typer(help="The settings: show, check, schema.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(config, name="config")


@config.command()
def show(
    context: typer.Context,
    origin: Annotated[
        bool, typer.Option("--origin", help="Say where each value came from.")
    ] = False,
) -> None:
    """Show every setting as it stands; passwords are masked.

    Examples: freehold config show · freehold config show --origin
    """
    from freehold.settings.sources import settings_of

    call = invocation(context)
    found = settings_of(*_read(call))
    data = [{"name": one.name, "value": one.value, "origin": one.origin} for one in found]
    call.show(data, lambda: _print(found, origin))


@config.command()
def check(context: typer.Context) -> None:
    """Check file and environment, and say all that is wrong at once; exit 2 if anything is.

    The database need not be there: if it answers, `freehold doctor` is the next step.

    Examples: freehold config check · freehold --config shop.toml config check
    """
    call = invocation(context)
    try:
        document, _ = _read(call)
        settings = call.settings()
        _require_handlers(settings)
        trouble = unreachable(settings)
    except UsageError as error:
        if not call.json:
            raise
        call.show({"right": False, "findings": str(error).splitlines()}, lambda: None)
        raise typer.Exit(ExitCode.USAGE) from None
    names = [rule.name for rule in settings.rules]
    data = {
        "right": True,
        "findings": [],
        "file": document.file or None,
        "rules": names,
        "database": trouble or "answers",
    }
    call.show(data, lambda: _say(document.file, names, trouble))


def _require_handlers(settings: Settings) -> None:
    from freehold.bootstrap import handler_problems

    problems = handler_problems(settings.rules)
    if problems:
        raise UsageError("\n".join(problems.values()))


def _say(file: str, names: list[str], trouble: str | None) -> None:
    source = file or "no file, so defaults and environment"
    typer.echo(f"the settings are right ({source}; rules: {', '.join(names) or 'none'})")
    if trouble is None:
        typer.echo("the database answers; next: freehold doctor")
    else:
        typer.echo(f"the database does not answer ({trouble}); nothing was checked against it")


def unreachable(settings: Settings) -> str | None:
    """Say why the database cannot be reached within two seconds; None if it can."""
    from freehold.bootstrap import open_session

    quick = replace(settings.database, connect_timeout=REACHED_WITHIN)
    session = open_session(replace(settings, database=quick), create=False)
    try:
        session.begin(read_only=True)
        session.rollback()
    except DatabaseError as error:
        return str(error)
    finally:
        session.close()
    return None


@config.command()
def schema() -> None:
    """Print the JSON Schema of freehold.toml, for editors.

    Example: freehold config schema > freehold.schema.json
    """
    from freehold.settings.schema import json_schema

    typer.echo(json.dumps(json_schema(), ensure_ascii=False, indent=2))


def _read(call: Invocation) -> tuple[Document, FileShape]:
    from freehold.settings.sources import read_settings

    return read_settings(call.config, os.environ)


def _print(found: list[Setting], origin: bool) -> None:
    from freehold.settings.sentences import toml_text

    for one in found:
        if one.value is None:
            continue
        line = f"{one.name} = {toml_text(one.value)}"
        typer.echo(f"{line:<60}  # {one.origin}" if origin else line)
