"""`freehold attach`: let a waiting rule work, or end the open operations of one."""

from __future__ import annotations

import re
from dataclasses import asdict
from typing import Annotated

import typer

from freehold.domain.errors import ExitCode, UsageError
from freehold.entrypoints.cli.context import Invocation, invocation

RATE = re.compile(r"([0-9]{1,9})/([sm])")


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
        str | None,
        typer.Option(
            "--rate",
            help="Take up at most so many of the overdue holds a second, as in 100/s; what falls "
            "due since goes first.",
        ),
    ] = None,
) -> None:
    """Confirm what a rule's first scan found overdue, so that the rule may release it.

    Exits 6 with the right count when the confirmed one is wrong, 4 when a detach left operations
    that a worker has in hand.

    Examples: freehold attach cart --confirm 12345 --by ann ·
    freehold attach cart --confirm 12345 --rate 100/s --by ann ·
    freehold attach cart --detach --by ann --reason "moved to another table"
    """
    check(by, confirm, rate, reason, detach=detach)
    per_second = None if rate is None else read_rate(rate)
    call = invocation(context)
    if detach:
        _detach(call, rule, by, reason)
        return
    assert confirm is not None
    _attach(call, rule, confirm, by, reason, per_second)


def check(by: str, confirm: int | None, rate: str | None, reason: str, *, detach: bool) -> None:
    """Refuse options that contradict each other, or that we cannot keep."""
    if rate is not None and detach:
        raise UsageError("--rate goes with --confirm; a detach releases nothing.")
    if not by.strip():
        raise UsageError("--by is empty: say who you are.")
    if detach == (confirm is not None):
        raise UsageError("Give either --confirm COUNT or --detach.")
    if detach and not reason.strip():
        raise UsageError("--detach ends operations for good: say why with --reason.")


def read_rate(text: str) -> float:
    """Read a rate such as `100/s` or `30/m` as holds a second.

    Raises:
        UsageError: it is none, or not above zero.
    """
    found = RATE.fullmatch(text.strip())
    per_second = int(found[1]) / (1 if found[2] == "s" else 60) if found else 0.0
    if per_second <= 0:
        raise UsageError(f"--rate {text!r} is no rate: write 100/s, or 30/m.")
    return per_second


def _attach(
    call: Invocation, name: str, confirm: int, by: str, reason: str, per_second: float | None
) -> None:
    from freehold.application.attach import attach as attach_rule

    settings = call.settings()
    with call.ledger(settings) as ledger:
        done = attach_rule(ledger, settings.rule(name), confirm, by, reason, per_second)
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
