"""`freehold tenant ...`: whom units and reports belong to."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from freehold.domain.errors import RefusedByState, UsageError
from freehold.entrypoints.cli.context import invocation, people
from freehold.entrypoints.cli.importing import DryRun, File, RejectsFile, import_file
from freehold.entrypoints.cli.tenant_people import (
    Subscriptions,
    read_subscriptions,
    resubscribe,
    show,
    unsubscribe,
)
from freehold.entrypoints.cli.tenant_sync import sync

if TYPE_CHECKING:
    from collections.abc import Sequence


tenant = typer.Typer(help="Whom units and reports belong to.", no_args_is_help=True)

Id = Annotated[str, typer.Argument(help="The tenant's id, as the holds name it.")]
Name = Annotated[str | None, typer.Option("--name", help="What people call it; the id by default.")]
Zone = Annotated[
    str | None,
    typer.Option("--zone", help="Its time zone, such as Europe/Berlin; else the installation's."),
]
ReportHour = Annotated[
    int | None,
    typer.Option("--report-hour", min=0, max=23, help="Local hour of its daily report."),
]
Recipients = Annotated[
    list[str] | None, typer.Option("--recipient", help="Mail address for the report; repeatable.")
]
Locale = Annotated[str | None, typer.Option("--locale", help="Language, such as en or de-AT.")]
Limit = Annotated[int, typer.Option("--limit", min=1, max=10_000, help="How many to show.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (show, unsubscribe, resubscribe, sync):
        tenant.command()(command)
    app.add_typer(tenant, name="tenant")


@tenant.command()
def add(
    context: typer.Context,
    tenant_id: Id,
    name: Name = None,
    zone: Zone = None,
    report_hour: ReportHour = None,
    recipient: Recipients = None,
    locale: Locale = None,
) -> None:
    """Add a tenant; exit 6 when it is there with other values.

    Example: freehold tenant add harbour --name "Harbour Hotel" --zone Europe/Berlin
    """
    from freehold.domain.inventory import Tenant
    from freehold.ports.inventory import Written

    given = _given(name, zone, report_hour, recipient, locale)
    new = Tenant(**{"id": tenant_id, "name": tenant_id, **given})
    call = invocation(context)
    with call.ledger() as ledger, ledger.transaction() as tx:
        (written,) = tx.tenants.add([new])
    if written is Written.DIFFERS:
        raise RefusedByState(
            f"Tenant {tenant_id!r} is there with other values; change it with "
            f"`freehold tenant set {tenant_id} ... --by YOU`."
        )
    said = "added" if written is Written.NEW else "is there already, just so"
    call.show({**asdict(new), "result": written}, lambda: typer.echo(f"{tenant_id}: {said}"))


@tenant.command("set")
def set_(
    context: typer.Context,
    tenant_id: Id,
    by: Annotated[str, typer.Option("--by", help="Who you are; kept in the action log.")],
    reason: Annotated[str, typer.Option("--reason", help="Why; kept in the action log.")] = "",
    name: Name = None,
    zone: Zone = None,
    report_hour: ReportHour = None,
    recipient: Recipients = None,
    locale: Locale = None,
    active: Annotated[
        bool | None, typer.Option("--active/--inactive", help="Whether it is in business.")
    ] = None,
) -> None:
    """Change a tenant; what is not named stays, and recipients are replaced together.

    Example: freehold tenant set harbour --recipient desk@harbour.example --by ann
    """
    from freehold.application.tenants import change_tenant
    from freehold.ports.inventory import Written

    changes = _given(name, zone, report_hour, recipient, locale)
    if active is not None:
        changes["active"] = active
    if not changes:
        raise UsageError("Nothing to change: name a value, such as --zone Europe/Berlin.")
    if not by.strip():
        raise UsageError("--by is empty: say who you are.")
    call = invocation(context)
    with call.ledger() as ledger:
        after, written = change_tenant(ledger, tenant_id, changes, by, reason)
    said = "changed" if written is Written.CHANGED else "was just so already"
    call.show({**asdict(after), "result": written}, lambda: typer.echo(f"{tenant_id}: {said}"))


def _given(
    name: str | None,
    zone: str | None,
    report_hour: int | None,
    recipients: list[str] | None,
    locale: str | None,
) -> dict[str, Any]:
    """Return the fields that were named, checked."""
    from freehold.domain.inventory_text import read_locale, read_recipients, read_zone

    try:
        fields = {
            "name": name,
            "zone": read_zone(zone),
            "report_hour": report_hour,
            "recipients": None if recipients is None else read_recipients(" ".join(recipients)),
            "locale": read_locale(locale),
        }
    except ValueError as error:
        said = str(error)
        raise UsageError(f"{said[0].upper()}{said[1:]}.") from None
    return {field: value for field, value in fields.items() if value is not None}


@tenant.command("list")
def list_(
    context: typer.Context,
    after: Annotated[str, typer.Option("--after", help="Go on behind this id.")] = "",
    limit: Limit = 100,
) -> None:
    """List tenants in the order of their ids.

    Examples: freehold tenant list · freehold tenant list --after harbour --json
    """
    call = invocation(context)
    with call.ledger() as ledger:
        with ledger.transaction() as tx:
            tenants = list(tx.tenants.find(after, limit))
        found = read_subscriptions(ledger, tenants)
    call.show([one.data() for one in found], lambda: _print(found, limit))


def _print(found: Sequence[Subscriptions], limit: int) -> None:
    from rich.markup import escape
    from rich.table import Table

    if not found:
        typer.echo("there is no tenant here; add one with `freehold tenant add`")
        return
    columns = {
        "id": [f"[bold]{escape(one.tenant.id)}[/]" for one in found],
        "name": [escape(one.tenant.name) for one in found],
        "zone": [one.tenant.zone or "" for one in found],
        "report at": [_hour(one.tenant.report_hour) for one in found],
        "recipients": [one.recipients("\n") for one in found],
        "locale": [one.tenant.locale or "" for one in found],
        "state": ["" if one.tenant.active else "[yellow]inactive[/]" for one in found],
    }
    shown = {name: cells for name, cells in columns.items() if any(cells)}
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for name in shown:  # an address that is cut is of no use
        table.add_column(name, overflow="fold", no_wrap=name == "recipients")
    for row in zip(*shown.values(), strict=True):
        table.add_row(*(cell or "[dim]·[/]" for cell in row))
    people().print(table)
    if len(found) == limit:
        typer.echo(f"there may be more: --after {found[-1].tenant.id}", err=True)


def _hour(hour: int | None) -> str:
    return "" if hour is None else f"{hour:02}:00"


@tenant.command("import")
def import_(
    context: typer.Context,
    file: File,
    rejects: RejectsFile = None,
    dry_run: DryRun = False,
) -> None:
    """Import tenants from CSV: id, and name, zone, report_hour, recipients, locale, active if there.

    A rerun imports nothing twice. Rejected lines go to a file of their own (exit 4); the rest is in.

    Example: freehold tenant import tenants.csv
    """
    from freehold.application.takeover import TenantLines

    call = invocation(context)
    with call.ledger() as ledger:
        import_file(call, ledger, file, "tenant", TenantLines(), rejects, dry_run=dry_run)
