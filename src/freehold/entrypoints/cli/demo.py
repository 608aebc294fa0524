"""`freehold demo`: a shop and the service side by side, on SQLite, in a folder of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from freehold.entrypoints.cli.context import invocation


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(demo)


def demo(
    context: typer.Context,
    seconds: Annotated[
        float | None, typer.Option("--for", min=1, help="End after so many seconds.")
    ] = None,
    folder: Annotated[
        Path | None, typer.Option(help="Where its files go; a new temporary folder by default.")
    ] = None,
) -> None:
    """Watch holds lapse in a shop's own table and be released, once and on time.

    Examples: freehold demo · freehold demo --for 30
    """
    from freehold.entrypoints.demo.stage import Stage

    stage = Stage.set_up(folder)
    try:
        stage.run(seconds)
    finally:
        stage.clear_up()
    summary = stage.summary()
    invocation(context).show(summary.data(), lambda: typer.echo(summary.text()))
