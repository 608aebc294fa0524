"""Which report a person asks for: tenant and day, and what is said where there is none."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from freehold.domain.errors import UsageError
from freehold.entrypoints.cli.context import Invocation

if TYPE_CHECKING:
    from freehold.ports.report_insight import SeenReport

Tenant = Annotated[str, typer.Argument(help='The tenant; "" for holds that belong to nobody.')]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", help="Write it into this file instead.")
]
Day = Annotated[str, typer.Argument(metavar="DATE", help="The local day, as in 2026-05-01.")]


def read_day(text: str) -> date:
    """Read a local day.

    Raises:
        UsageError: it is none.
    """
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise UsageError(f"{text!r} is no day; write it as in 2026-05-01.") from error


def look(call: Invocation, tenant: str, day: date) -> SeenReport:
    """Read one report.

    Raises:
        UsageError: there is none.
    """
    with call.ledger() as ledger, ledger.reading() as reading:
        found = reading.reports.look(tenant, day)
    if found is None:
        raise UsageError(no_report(tenant, day))
    return found


def no_report(tenant: str, day: date) -> str:
    """Say that there is no report, and where to look."""
    named = f"tenant {tenant!r}" if tenant else "holds of nobody"
    typed = quote(tenant)
    return (
        f"There is no report of {named} for {day}; `freehold report list --tenant {typed}` shows "
        f"which there are, and `freehold report preview {typed}` what the next one says so far."
    )
