"""`freehold attach`: let a waiting rule work, or end the open operations of one."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from freehold.domain.errors import ExitCode, UsageError
from freehold.entrypoints.cli.context import Invocation, invocation


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(attach)


def attach(
    context: typer.Context,
    rule: Annotated[str, typer.Argument(help="The rule.")],
    by: Annotated[str, typer.Option("--by", help="Who you are; kept in the action log.")],
    confirm: Annotated[
        int | None,
        typer.Option(
            "--confirm",
            min=0,
            help="How many holds are overdue, as `freehold plan` says; exact up to 1000, within "
            "1 % above.",
        ),
    ] = None,
    detach: Annotated[
        bool,
        typer.Option(
            "--detach",
            help="End the rule's open operations instead; works for a rule that is no longer "
            "configured. Needs --reason.",
        ),
    ] = False,
    reason: Annotated[str, typer.Option("--reason", help="Why; kept in the action log.")] = "",
    rate: Annotated[
        str | None, typer.Option("--rate", help="Not available yet, and refused (exit 2).")
    ] = None,
) -> None:
    """Confirm what a rule's first scan found overdue, so that the rule may release it.

    Exits 6 with the right count when the confirmed one is wrong, 4 when a detach left operations
    that a worker has in hand.

    Examples: freehold attach cart --confirm 12345 --by ann ·
    freehold attach cart --detach --by ann --reason "moved to another table"
    """
    check(by, confirm, rate, reason, detach=detach)
    call = invocation(context)
    if detach:
        _detach(call, rule, by, reason)
        return
    assert confirm is not None
    _attach(call, rule, confirm, by, reason)


def check(by: str, confirm: int | None, rate: str | None, reason: str, *, detach: bool) -> None:
    """Refuse options that contradict each other, or that we cannot keep."""
    if rate is not None:
        raise UsageError("--rate is not available yet: leave it out, or keep the rule waiting.")
    if not by.strip():
        raise UsageError("--by is empty: say who you are.")
    if detach == (confirm is not None):
        raise UsageError("Give either --confirm COUNT or --detach.")
    if detach and not reason.strip():
        raise UsageError("--detach ends operations for good: say why with --reason.")


def _attach(call: Invocation, name: str, confirm: int, by: str, reason: str) -> None:
    from freehold.application.attach import attach as attach_rule

    settings = call.settings()
    with call.ledger(settings) as ledger:
        done = attach_rule(ledger, settings.rule(name), confirm, by, reason)
    call.show(
        asdict(done),
        lambda: typer.echo(
            f"{name} is attached; {done.overdue_count:,} overdue holds will be released"
            if done.changed
            else f"{name} is active already; nothing was changed"
        ),
    )


def _detach(call: Invocation, name: str, by: str, reason: str) -> None:
    from freehold.application.attach import detach as detach_rule

    with call.ledger() as ledger:
        done = detach_rule(ledger, name, by, reason)

    def text() -> None:
        typer.echo(f"{name} is detached; {done.closed_count:,} open operations were closed")
        if done.left_count:
            typer.echo(f"{done.left_count:,} are in a worker's hand: run this again", err=True)

    call.show(asdict(done), text)
    if done.left_count:
        raise typer.Exit(ExitCode.WORK_LEFT)
