"""`freehold tenant show|unsubscribe|resubscribe`: who gets a tenant's report, and who wants none."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from freehold.domain.errors import UsageError
from freehold.entrypoints.cli.context import Invocation, invocation, people

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from freehold.application.unsubscribing import Changed
    from freehold.domain.inventory import Tenant
    from freehold.ports.ledger import Ledger
    from freehold.ports.unsubscribed import Unsubscription

Id = Annotated[str, typer.Argument(help="The tenant's id, as the holds name it.")]
OptionalId = Annotated[
    str | None, typer.Argument(metavar="TENANT_ID", help="The tenant's id; not with --token.")
]
Address = Annotated[
    str | None, typer.Argument(metavar="ADDRESS", help="The recipient's mail address.")
]
By = Annotated[str, typer.Option("--by", help="Who you are; kept in the action log.")]
Reason = Annotated[str, typer.Option("--reason", help="Why; kept in the action log.")]


@dataclass(frozen=True, slots=True)
class Subscriptions:
    """A tenant with those who want no reports, and addresses that cannot be sent to."""

    tenant: Tenant
    unsubscribed: Sequence[Unsubscription]
    unusable: Sequence[str]
    is_sourced: bool

    def data(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            **asdict(self.tenant),
            "unsubscribed": [asdict(one) for one in self.unsubscribed],
            "unusable": list(self.unusable),
            "from_source": self.is_sourced,
        }

    def recipients(self, between: str = ", ") -> str:
        """Return the recipients as the screen has them, each with what keeps it from mail."""
        from rich.markup import escape

        left = {one.recipient for one in self.unsubscribed}
        named = []
        for one in self.tenant.recipients:
            why = "unsubscribed" if one in left else "unusable" if one in self.unusable else ""
            named.append(f"{escape(one)} [yellow]({why})[/]" if why else escape(one))
        return between.join(named) or "[dim]none[/]"


def read_subscriptions(ledger: Ledger, tenants: Sequence[Tenant]) -> list[Subscriptions]:
    """Read who has unsubscribed, for each tenant in order."""
    from freehold.domain.addresses import sort_out

    ids = [one.id for one in tenants]
    with ledger.transaction() as tx:
        found = list(tx.unsubscribed.of(ids))
        sourced = tx.sourced_tenants.among(ids)
    return [
        Subscriptions(
            one,
            [left for left in found if left.tenant == one.id],
            sort_out(one.recipients)[1],
            one.id in sourced,
        )
        for one in tenants
    ]


def show(context: typer.Context, tenant_id: Id) -> None:
    """Show a tenant, who gets its report, and who wants none.

    Example: freehold tenant show harbour
    """
    call = invocation(context)
    with call.ledger() as ledger:
        with ledger.transaction() as tx:
            tenants = tx.tenants.read([tenant_id])
        if not tenants:
            raise UsageError(
                f"There is no tenant {tenant_id!r}; `freehold tenant list` shows those there are."
            )
        (found,) = read_subscriptions(ledger, tenants)
    call.show(found.data(), lambda: _print(found))


def _print(found: Subscriptions) -> None:
    from rich.markup import escape
    from rich.table import Table

    tenant = found.tenant
    hour = "" if tenant.report_hour is None else f"{tenant.report_hour:02}:00"
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    rows = {
        "name": escape(tenant.name),
        "zone": tenant.zone or "[dim]the installation's[/]",
        "report at": hour or "[dim]the installation's hour[/]",
        "recipients": found.recipients(),
        "locale": tenant.locale or "[dim]the installation's[/]",
        "state": "in business" if tenant.active else "[yellow]inactive[/]",
        "comes from": "the table of \\[tenants]" if found.is_sourced else "people",
    }
    for name, value in rows.items():
        table.add_row(f"[dim]{name}[/]", value)
    console = people()
    console.print(f"[bold]{escape(tenant.id)}[/]")
    console.print(table)
    for one in found.unsubscribed:
        why = f": {escape(one.reason)}" if one.reason else ""
        console.print(
            f"{escape(one.recipient)} wants no report since {one.at:%Y-%m-%d %H:%M} UTC, says "
            f"{escape(one.actor)}{why}"
        )


def unsubscribe(
    context: typer.Context,
    tenant_id: OptionalId = None,
    address: Address = None,
    by: By = "",
    reason: Reason = "",
    token: Annotated[
        str | None, typer.Option("--token", help="The token of a mail's unsubscribe link.")
    ] = None,
) -> None:
    """Send a recipient no more reports of a tenant; mails that wait are stopped.

    A mail that a sender has in hand just now may still arrive.

    Examples: freehold tenant unsubscribe harbour desk@harbour.example --by ann --reason "asked" ·
    freehold tenant unsubscribe --token 5f0c... --by "web page"
    """
    from freehold.application.unsubscribing import named_by, unsubscribe

    call = invocation(context)
    if (token is None) == (tenant_id is None or address is None) or (
        token is not None and (tenant_id or address)
    ):
        raise UsageError("Name the tenant and the address, or the --token of a link alone.")
    _require_by(by)
    with call.ledger() as ledger:
        if token is not None:
            link = named_by(ledger, token)
            tenant_id, address = link.tenant, link.recipient
        changed = unsubscribe(ledger, str(tenant_id), str(address), by, reason)
    _show(call, changed, "unsubscribed", _stopped)


def resubscribe(
    context: typer.Context,
    tenant_id: Id,
    address: Annotated[str, typer.Argument(help="The recipient's mail address.")],
    by: By = "",
    reason: Reason = "",
) -> None:
    """Send a recipient a tenant's reports again, from the next one on.

    Example: freehold tenant resubscribe harbour desk@harbour.example --by ann --reason "asked"
    """
    from freehold.application.unsubscribing import resubscribe

    call = invocation(context)
    _require_by(by)
    with call.ledger() as ledger:
        changed = resubscribe(ledger, tenant_id, address, by, reason)
    _show(call, changed, "subscribed again", lambda _: "")


def _require_by(by: str) -> None:
    if not by.strip():
        raise UsageError("--by is empty: say who you are.")


def _stopped(changed: Changed) -> str:
    count = changed.stopped_count
    return f"; {count} waiting {'mail' if count == 1 else 'mails'} stopped" if count else ""


def _show(call: Invocation, changed: Changed, done: str, more: Callable[[Changed], str]) -> None:
    said = done if changed.is_new else "was just so already"
    known = "" if changed.is_recipient else f" (no recipient of {changed.tenant} now)"
    call.show(
        asdict(changed),
        lambda: typer.echo(f"{changed.recipient}: {said}{more(changed)}{known}"),
    )
