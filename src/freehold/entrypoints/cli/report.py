"""`freehold report ...`: see, build, send and resolve daily reports."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Annotated

import typer

from freehold.domain.errors import UsageError
from freehold.entrypoints.cli.context import invocation
from freehold.entrypoints.cli.report_act import build, resolve, run, send
from freehold.entrypoints.cli.report_asked import Day, Output, Tenant, look, read_day
from freehold.entrypoints.cli.report_preview import preview

if TYPE_CHECKING:
    from freehold.domain.reports import ReportState

report = typer.Typer(help="The daily report of each tenant.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (preview, build, send, resolve, run):
        report.command()(command)
    app.add_typer(report, name="report")


@report.command("list")
def list_(
    context: typer.Context,
    tenant: Annotated[str | None, typer.Option("--tenant", help="One tenant only.")] = None,
    day: Annotated[
        str | None, typer.Option("--date", metavar="DATE", help="One local day only.")
    ] = None,
    state: Annotated[
        str | None, typer.Option("--state", help="One state only, such as 'in review'.")
    ] = None,
    after: Annotated[
        str | None, typer.Option("--after", help="Go on behind this, as a list ends with it.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000, help="How many.")] = 50,
) -> None:
    """List reports, the newest day first.

    Examples: freehold report list · freehold report list --state "in review" ·
    freehold report list --tenant harbour --limit 400
    """
    from freehold.entrypoints.cli.report_view import after_text, line_data, print_list

    call = invocation(context)
    asked = (tenant, None if day is None else read_day(day), _state(state), _after(after))
    with call.ledger() as ledger, ledger.reading() as reading:
        found = reading.reports.find(*asked, limit)
    data = {"reports": [line_data(one) for one in found.lines], "after": after_text(found)}
    call.show(data, lambda: print_list(found, filtered=any(one is not None for one in asked)))


def _state(text: str | None) -> ReportState | None:
    from freehold.domain.reports import ReportState

    if text is None:
        return None
    try:
        return ReportState(text)
    except ValueError as error:
        known = ", ".join(ReportState)
        raise UsageError(f"There is no state {text!r}; known states: {known}.") from error


def _after(text: str | None) -> tuple[date, str] | None:
    if text is None:
        return None
    day, slash, tenant = text.partition("/")
    if not slash:
        raise UsageError("--after takes what a list ends with: a day, a slash, and a tenant.")
    return read_day(day), tenant


@report.command()
def show(
    context: typer.Context,
    tenant: Tenant,
    day: Day,
    html: Annotated[bool, typer.Option("--html", help="Open the mail in the browser.")] = False,
    text: Annotated[bool, typer.Option("--text", help="Print the mail's plain text.")] = False,
    eml: Annotated[
        str | None,
        typer.Option("--eml", metavar="RECIPIENT", help="Print one recipient's whole mail."),
    ] = None,
    output: Output = None,
) -> None:
    """Show one report: its facts, every attempt to send it, and what people did about it.

    Before its mail is frozen, --html and --text show a preview made from the facts.

    Examples: freehold report show harbour 2026-05-01 · freehold report show harbour 2026-05-01
    --html · freehold report show harbour 2026-05-01 --eml desk@harbour.example -o mail.eml
    """
    from freehold.entrypoints.cli.report_mail import show_mail
    from freehold.entrypoints.cli.report_view import print_report, report_data

    call = invocation(context)
    wanted = [name for name, on in (("html", html), ("text", text), ("eml", eml)) if on]
    if len(wanted) > 1:
        raise UsageError("Choose one of --html, --text and --eml.")
    if output is not None and not wanted:
        raise UsageError("--output writes a mail into a file: add --html, --text or --eml.")
    day_ = read_day(day)
    if wanted:
        show_mail(call, tenant, day_, wanted[0], eml, output)
        return
    seen = look(call, tenant, day_)
    call.show(report_data(seen), lambda: print_report(seen))
