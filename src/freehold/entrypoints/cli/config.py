"""`freehold config ...`: what the settings are, where they came from, and whether they are right."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Annotated

import typer

from freehold.entrypoints.cli.context import Invocation, invocation

if TYPE_CHECKING:
    from freehold.settings.effective import Setting
    from freehold.settings.shape_file import FileShape
    from freehold.settings.sources import Document

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
    """Check file and environment without a database; exit 2 with a sentence for each mistake.

    Examples: freehold config check · freehold --config shop.toml config check
    """
    call = invocation(context)
    document, shape = _read(call)
    names = [rule.name for rule in shape.rules]
    if shape.holds is not None:
        names.append(shape.holds.name)
    data = {"file": document.file or None, "rules": names}

    def text() -> None:
        source = document.file or "no file, so defaults and environment"
        rules = ", ".join(names) or "none"
        typer.echo(f"the settings are right ({source}; rules: {rules})")

    call.show(data, text)


@config.command()
def schema() -> None:
    """Print the JSON Schema of freehold.toml, for editors.

    Example: freehold config schema > freehold.schema.json
    """
    from freehold.settings.schema import json_schema

    typer.echo(json.dumps(json_schema(), ensure_ascii=False, indent=2))


def _read(call: Invocation) -> tuple[Document, FileShape]:
    from freehold.settings.sources import read_document, read_shape

    document = read_document(call.config, os.environ)
    return document, read_shape(document)


def _print(found: list[Setting], origin: bool) -> None:
    from freehold.settings.sentences import toml_text

    for one in found:
        if one.value is None:
            continue
        line = f"{one.name} = {toml_text(one.value)}"
        typer.echo(f"{line:<60}  # {one.origin}" if origin else line)
