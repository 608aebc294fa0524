"""`freehold report preview`: what the next report says so far."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from freehold.entrypoints.cli.context import invocation
from freehold.entrypoints.cli.report_asked import Output, Tenant

if TYPE_CHECKING:
    from freehold.application.reporting.previewing import Preview


def preview(
    context: typer.Context,
    tenant: Tenant,
    html: Annotated[bool, typer.Option("--html", help="Open it in the browser.")] = False,
    output: Output = None,
) -> None:
    """Show what a tenant's next report says so far; its day stays open, and nothing is sent.

    Without --html it is the mail's plain text; with --json, the facts.

    Examples: freehold report preview harbour · freehold report preview harbour --html
    """
    from freehold.application.reporting.freezing import notes_of
    from freehold.application.reporting.previewing import preview as count
    from freehold.bootstrap import report_settings
    from freehold.domain.facts_text import canonical
    from freehold.entrypoints.cli.report_mail import hand_over, page_of

    call = invocation(context)
    settings = call.settings()
    policy = report_settings(settings).policy
    with call.ledger(settings) as ledger:
        found = count(ledger, policy, notes_of(settings.rules), tenant)
    typer.echo(f"freehold: {_standing(found)}", err=True)
    facts, kind = found.facts, "html" if html else "text"
    if call.json and not html and output is None:
        call.show(json.loads(canonical(facts)), lambda: None)
        return
    hand_over(page_of(settings, facts, found.tenant, kind), kind, facts.report_date, output)


def _standing(found: Preview) -> str:
    from freehold.entrypoints.cli.report_view import instant, whose

    facts = found.facts
    day = f"preview: {facts.report_date} of {whose(facts.tenant)}"
    if found.is_over:
        return f"{day} is over and not closed yet; `freehold run` or `freehold report run` does it"
    return f"{day} goes on until {instant(facts.end_at)}"
