"""`freehold hold ...`: holds of our own, for those without a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from freehold.domain.errors import UnknownHold, UsageError
from freehold.domain.inventory import ID_MAX, HoldStatus
from freehold.entrypoints.cli.context import Invocation, invocation
from freehold.entrypoints.cli.hold_asked import (
    by_key,
    granted,
    held_until,
    new_token,
    owner_and_unit,
    read_token,
    stay_of,
    within,
)
from freehold.entrypoints.cli.importing import DryRun, File, RejectsFile, import_file

if TYPE_CHECKING:
    from uuid import UUID

    from freehold.adapters.sql.ledger import SqlLedger
    from freehold.domain.inventory import Hold
    from freehold.domain.rules import Rule
    from freehold.entrypoints.cli.hold_view import SeenHold
    from freehold.ports.ledger import Transaction

hold = typer.Typer(
    help="Built-in holds: grant, renew, confirm, cancel, look, import.", no_args_is_help=True
)

Token = Annotated[str, typer.Argument(help="The hold token, as create or renew printed it.")]
For = Annotated[
    str | None,
    typer.Option("--for", help="How long from now, such as 15m; [holds] hold_window by default."),
]
Until = Annotated[
    str | None,
    typer.Option(
        "--until",
        help="Until when instead: RFC 3339, or without offset in the tenant's zone.",
    ),
]
TenantName = Annotated[str, typer.Option("--tenant", "-t", help="Whose unit it is.")]
Tokens = Annotated[bool, typer.Option("--tokens", help="Show hold tokens too.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(hold, name="hold")


@contextmanager
def _opened(context: typer.Context) -> Iterator[tuple[Invocation, Rule, SqlLedger]]:
    """Open the ledger, if the built-in holds are on.

    Raises:
        UsageError: they are off.
    """
    call = invocation(context)
    settings = call.settings()
    if settings.built_in is None:
        raise UsageError(
            "The built-in holds are off; add a table [holds] to freehold.toml (an empty one will "
            "do), so that lapsed holds are released too."
        )
    with call.ledger(settings) as ledger:
        yield call, settings.built_in, ledger


@hold.command()
def create(
    context: typer.Context,
    unit: Annotated[str, typer.Option("--unit", "-u", help="The unit's name.")],
    tenant: TenantName,
    start: Annotated[
        str | None, typer.Option("--from", help="Begin of the stay; a date is its first moment.")
    ] = None,
    end: Annotated[
        str | None, typer.Option("--to", help="End of the stay, which is no longer part of it.")
    ] = None,
    length: For = None,
    until: Until = None,
    reference: Annotated[
        str | None,
        typer.Option("--reference", help="Your own key: asked again, the same hold is returned."),
    ] = None,
) -> None:
    """Grant a hold; exit 6 with what is in the way, and until when.

    Without --from and --to the unit itself is held. Prints the hold token, which renew, confirm and
    cancel need.

    Examples: freehold hold create --tenant harbour --unit "Room 12" --from 2026-07-01T15:00
    --to 2026-07-03T11:00 --for 15m · freehold hold create -t harbour -u 1A --reference order-4711
    """
    from freehold.adapters.system import Onwards
    from freehold.application.granting import grant
    from freehold.domain.inventory import NewHold
    from freehold.entrypoints.cli.hold_view import data, print_one, seen

    with _opened(context) as (call, rule, ledger):

        def step(tx: Transaction) -> tuple[SeenHold, bool]:
            owner, thing = owner_and_unit(tx, tenant, unit)
            new = NewHold(
                tenant=tenant,
                unit_id=thing.id,
                hold_until=held_until(tx, rule, length, until, owner),
                token=new_token(),
                stay=stay_of(start, end, owner),
                reference=reference,
            )
            done = grant(tx, rule, new, Onwards())
            return seen(tx, [done.hold])[0], done.is_new

        one, is_new = within(ledger, step)
    said = "held" if is_new else "was granted before under this reference"
    call.show({**data(one, tokens=True), "new": is_new}, lambda: print_one(one, said, tokens=True))


@hold.command()
def renew(context: typer.Context, token: Token, length: For = None, until: Until = None) -> None:
    """Give a held hold more time, counted from now; the old token is worth nothing from then on.

    Examples: freehold hold renew TOKEN · freehold hold renew TOKEN --for 30m
    """
    from freehold.application.granting import renew as renew_hold
    from freehold.domain.inventory import Renewal

    def act(tx: Transaction, rule: Rule, given: UUID) -> Hold:
        found = granted(tx, given)
        (owner,) = tx.tenants.read([found.tenant])
        ends = held_until(tx, rule, length, until, owner)
        return renew_hold(tx, rule, Renewal(given, new_token(), ends))

    _act(context, token, act, "renewed, with a new token", tokens=True)


@hold.command()
def confirm(context: typer.Context, token: Token) -> None:
    """Confirm a held hold before its time is over; exit 6 when it is over.

    Example: freehold hold confirm TOKEN
    """
    from freehold.application.granting import confirm as confirm_hold

    _act(context, token, confirm_hold, "confirmed", tokens=False)


@hold.command()
def cancel(context: typer.Context, token: Token) -> None:
    """Cancel a held or confirmed hold, so that its unit is free at once.

    Example: freehold hold cancel TOKEN
    """
    from freehold.application.granting import cancel as cancel_hold

    _act(context, token, cancel_hold, "cancelled", tokens=False)


def _act(
    context: typer.Context,
    token: str,
    act: Callable[[Transaction, Rule, UUID], Hold],
    said: str,
    *,
    tokens: bool,
) -> None:
    from freehold.entrypoints.cli.hold_view import data, print_one, seen

    given = read_token(token)
    with _opened(context) as (call, rule, ledger):
        one = within(ledger, lambda tx: seen(tx, [act(tx, rule, given)])[0])
    call.show(data(one, tokens=tokens), lambda: print_one(one, said, tokens=tokens))


@hold.command()
def show(
    context: typer.Context,
    key: Annotated[str | None, typer.Argument(help="The hold's id or token.")] = None,
    tenant: Annotated[
        str | None, typer.Option("--tenant", "-t", help="With --reference: whose hold it is.")
    ] = None,
    reference: Annotated[
        str | None, typer.Option("--reference", help="Instead of id or token: your own key.")
    ] = None,
    tokens: Tokens = False,
) -> None:
    """Show one hold; exit 2 when there is none.

    Examples: freehold hold show 17 · freehold hold show --tenant harbour --reference order-4711
    """
    from freehold.entrypoints.cli.hold_view import data, print_one, seen

    if (key is None) == (tenant is None or reference is None):
        raise UsageError("Name either an id or a token, or both --tenant and --reference.")
    with _opened(context) as (call, _, ledger), ledger.transaction() as tx:
        if key is None:
            found = next(iter(tx.own_holds.referenced(tenant or "", [reference or ""])), None)
        else:
            found = by_key(tx, key)
        if found is None:
            raise UnknownHold("There is no such hold; `freehold hold list` shows those there are.")
        one = seen(tx, [found])[0]
    call.show(data(one, tokens=tokens), lambda: print_one(one, "", tokens=tokens))


@hold.command("list")
def list_(
    context: typer.Context,
    tenant: Annotated[str | None, typer.Option("--tenant", "-t", help="Of one tenant.")] = None,
    unit: Annotated[
        str | None, typer.Option("--unit", "-u", help="Of one unit; needs --tenant.")
    ] = None,
    status: Annotated[
        list[HoldStatus] | None, typer.Option("--status", help="With this status; repeatable.")
    ] = None,
    after: Annotated[
        int, typer.Option("--after", min=0, max=ID_MAX, help="Go on behind this id.")
    ] = 0,
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000, help="How many.")] = 50,
    tokens: Tokens = False,
) -> None:
    """List holds in the order of their ids; tokens only when asked for.

    Examples: freehold hold list --tenant harbour --status held ·
    freehold hold list -t harbour -u "Room 12"
    """
    from freehold.entrypoints.cli.hold_view import data, print_many, seen

    if unit is not None and tenant is None:
        raise UsageError("--unit needs --tenant: two tenants may have units of one name.")
    with _opened(context) as (call, _, ledger), ledger.transaction() as tx:
        unit_id = None if unit is None else owner_and_unit(tx, tenant or "", unit)[1].id
        page = tx.own_holds.find(
            after, limit, tenant=tenant, unit_id=unit_id, statuses=status or ()
        )
        found = seen(tx, page)

    def text() -> None:
        if not found:
            typer.echo("there is no such hold")
            return
        print_many(found, tokens=tokens)
        if len(found) == limit:
            typer.echo(f"there may be more: --after {found[-1].hold.id}", err=True)

    call.show([data(one, tokens=tokens) for one in found], text)


@hold.command("import")
def import_(
    context: typer.Context,
    file: File,
    rejects: RejectsFile = None,
    create_units: Annotated[
        bool, typer.Option("--create-units", help="Make tenants and units that are missing.")
    ] = False,
    dry_run: DryRun = False,
) -> None:
    """Import holds from CSV; a rerun imports nothing twice, also after a kill.

    Columns: tenant, unit, hold_until, and starts_at, ends_at, reference, status, token if there; all
    others are not read. Without a reference the line's content is its key. Rejected lines go to a
    file of their own with number and reason (exit 4); the rest is in. See docs/reference/import.md.

    Examples: freehold hold import bookings.csv --create-units ·
    zcat bookings.csv.gz | freehold hold import - --rejects bad.csv
    """
    from freehold.adapters.system import SystemDice
    from freehold.application.takeover import HoldLines

    with _opened(context) as (call, _, ledger):
        lines = HoldLines(SystemDice(), create=create_units)
        import_file(call, ledger, file, "hold", lines, rejects, dry_run=dry_run)
