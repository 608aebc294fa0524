"""`freehold guard show | release`: what froze releases, and a person's word that they may go on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from freehold.entrypoints.cli.context import invocation

if TYPE_CHECKING:
    from freehold.ports.ledger import Guard

guard = typer.Typer(
    help="What froze releases: a clock that jumped, or too many holds overdue at once.",
    no_args_is_help=True,
)


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(guard, name="guard")


@guard.command()
def show(context: typer.Context) -> None:
    """Show the guards that stand, with what they were judged by.

    Example: freehold guard show
    """
    call = invocation(context)
    with call.ledger() as ledger, ledger.transaction() as tx:
        standing = tx.guards.standing()

    def text() -> None:
        for one in standing:
            whom = one.rule or "all rules"
            typer.echo(
                f"{one.kind} guard over {whom}, since {one.tripped_at:%Y-%m-%d %H:%M:%S} UTC"
            )
            typer.echo(f"  {one.reason}")
            for name, value in one.figures.items():
                typer.echo(f"  {name.replace('_', ' '):<16} {value}")
        if not standing:
            typer.echo("no guard stands; nothing is frozen")

    call.show([guard_data(one) for one in standing], text)


@guard.command()
def release(
    context: typer.Context,
    by: Annotated[str, typer.Option("--by", help="Who you are; kept in the action log.")],
    reason: Annotated[str, typer.Option("--reason", help="Why; kept in the action log.")],
    rule: Annotated[str | None, typer.Argument(help="The rule whose guard is released.")] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Release every guard, also the clock's.")
    ] = False,
) -> None:
    """Let frozen rules work again: what turned up overdue is released, a clock taken as it is.

    Exits 6 when no such guard stands.

    Examples: freehold guard release cart --by ann --reason "the new dues are right" ·
    freehold guard release --all --by ann --reason "the server's clock was set right"
    """
    from freehold.application.guards import release_guards
    from freehold.application.review import Person
    from freehold.domain.errors import UsageError

    if everything == (rule is not None):
        raise UsageError("Name one rule, or say --all.")
    person = Person(by, reason)
    call = invocation(context)
    with call.ledger() as ledger:
        with ledger.transaction() as tx:
            known = {one.rule for one in tx.guards.standing()}
        if rule is not None and rule not in known:
            call.settings().rule(rule)  # a rule that was removed may still be frozen
        released = release_guards(ledger, rule, person.name, person.reason)

    def text() -> None:
        for one in released:
            typer.echo(f"the {one.kind} guard over {one.rule or 'all rules'} is released")

    call.show([guard_data(one) for one in released], text)


def guard_data(one: Guard) -> dict[str, Any]:
    """Return a guard as plain data."""
    return {
        "kind": one.kind.value,
        "rule": one.rule,
        "tripped_at": one.tripped_at,
        "reason": one.reason,
        "figures": dict(one.figures),
    }
