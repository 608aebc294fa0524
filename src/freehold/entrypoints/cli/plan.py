"""`freehold plan`: what the rules would release now, without releasing it."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated

import typer

from freehold.entrypoints.cli.context import invocation

if TYPE_CHECKING:
    from freehold.application.plan import RulePlan
    from freehold.ports.ledger import RuleState


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(plan)


def plan(
    context: typer.Context,
    rule: Annotated[str | None, typer.Argument(help="One rule only.")] = None,
    exact: Annotated[
        bool, typer.Option("--exact", help="Count all, not only up to 100,000 a rule.")
    ] = False,
    tenant: Annotated[str | None, typer.Option("--tenant", help="One tenant only.")] = None,
) -> None:
    """Show what is due now, by tenant, and how long its release would take; write nothing.

    Says also what stops a rule: a guard, or a person's pause.

    Examples: freehold plan · freehold plan cart --exact · freehold plan cart --tenant harbour
    """
    from freehold.application.plan import plan as plan_rules
    from freehold.bootstrap import open_inspection
    from freehold.entrypoints.cli.pause import read_states

    call = invocation(context)
    settings = call.settings()
    rules = settings.rules if rule is None else (settings.rule(rule),)
    inspection = open_inspection(settings)
    try:
        plans = plan_rules(inspection, rules, inspection.server().now, exact=exact, tenant=tenant)
    finally:
        inspection.close()
    states, stopped = read_states(call, settings, [one.rule for one in plans])
    plans = [replace(one, waits=one.waits and _unattached(states.get(one.rule))) for one in plans]
    data = [
        {**asdict(one), "estimate": one.estimate.total_seconds(), "stopped": stopped.get(one.rule)}
        for one in plans
    ]
    call.show(data, lambda: _print(plans, stopped, tenant))


def _unattached(state: RuleState | None) -> bool:
    return state is None or state.condition.value == "waiting"


def _print(plans: list[RulePlan], stopped: dict[str, str], tenant: str | None) -> None:
    for one in plans:
        if tenant is not None and not one.due_count:
            typer.echo(f"{one.rule}: no hold of tenant {tenant!r} is due")
            continue
        _print_rule(one)
        if one.rule in stopped:
            typer.echo(f"  stopped      {stopped[one.rule]}")
    if not plans:
        typer.echo("no rule is configured")


def _print_rule(one: RulePlan) -> None:
    from freehold.application.spans import span

    number = f"at least {one.due_count:,}" if one.capped else f"{one.due_count:,}"
    holds = "1 hold is" if one.due_count == 1 and not one.capped else f"{number} holds are"
    typer.echo(f"{one.rule}: {holds} due; each would {one.action}")
    if one.oldest_due is not None:
        late = span(one.now - one.oldest_due)
        typer.echo(f"  oldest due   {one.oldest_due:%Y-%m-%d %H:%M:%S} UTC, {late} ago")
    if one.empty_count:
        typer.echo(f"  without due  {one.empty_count:,} (by the rule: {one.empty_policy})")
    if one.due_count:
        seconds = one.estimate.total_seconds()
        batches = "1 batch" if one.batch_count == 1 else f"{one.batch_count:,} batches"
        about = f"about {seconds:,.0f} s" if seconds >= 1 else "less than a second"
        typer.echo(f"  work         {batches}, {about}")
    for tenant in one.tenants:
        typer.echo(f"  {tenant.due_count:>12,}  {tenant.tenant or '(no tenant)'}")
    if one.tenant_count > len(one.tenants):
        typer.echo(f"  and {one.tenant_count - len(one.tenants):,} tenants more")
    if one.waits:
        count = "COUNT" if one.capped else str(one.due_count)
        typer.echo(
            f"  at its first scan it waits for: freehold attach {one.rule} --confirm {count}"
        )
