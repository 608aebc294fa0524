"""What every command is given: its settings, a ledger, and how to print."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from freehold.adapters.sql.ledger import SqlLedger
    from freehold.settings import Settings


@dataclass(slots=True)
class Invocation:
    """One call of the command line.

    Attributes:
        json: print data as JSON instead of text for people.
    """

    config: Path | None = None
    json: bool = False

    def settings(self) -> Settings:
        """Read the settings of this call.

        Raises:
            UsageError: the file or a variable is wrong.
        """
        from freehold.settings import load_settings

        return load_settings(self.config, os.environ)

    @contextmanager
    def ledger(self, settings: Settings | None = None) -> Iterator[SqlLedger]:
        """Open a ledger for the call, checked to have the schema that this program knows.

        Raises:
            RefusedByState: the schema is missing, older, newer or changed.
            DatabaseAway: the database cannot be reached.
        """
        from freehold.bootstrap import open_ledger, require_schema

        ledger = open_ledger(settings or self.settings(), create=False)
        try:
            require_schema(ledger)
            yield ledger
        finally:
            ledger.close()

    def show(self, data: Any, text: Callable[[], None]) -> None:
        """Print data: as JSON if that was asked for, else the way `text` prints it."""
        if self.json:
            typer.echo(
                json.dumps(data, ensure_ascii=False, default=_plain, indent=2, allow_nan=False)
            )
        else:
            text()


def _plain(value: object) -> str:
    """Write what JSON has no type for: instants as RFC 3339 wants them, the rest as text."""
    return value.isoformat() if isinstance(value, datetime) else str(value)


PIPE_COLUMNS = 160  # where there is no terminal whose width could be asked


def people() -> Console:
    """Return the console for people; a pipe gets whole lines instead of 80 columns."""
    from freehold.entrypoints.cli.screen import Screen

    console = Screen(highlight=False, emoji=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = PIPE_COLUMNS
    return console


def invocation(context: typer.Context) -> Invocation:
    """Return what the top command put there."""
    found = context.find_object(Invocation)
    return found or Invocation()
