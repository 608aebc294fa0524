"""`freehold doctor`: what is wrong with the rules on the live table, and the SQL that mends it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated

import typer

from freehold.domain.errors import CheckFailed, RefusedByState, UsageError
from freehold.entrypoints.cli.context import Invocation, invocation
from freehold.entrypoints.cli.sentences import harmless

if TYPE_CHECKING:
    from rich.console import Console

    from freehold.application.doctor import Finding
    from freehold.application.doctor.reports import ReportSetting
    from freehold.domain.inventory import Tenant
    from freehold.settings import Settings
    from freehold.settings.values_report import ReportSettings

STYLES = {"refuse": "bold red", "warn": "yellow", "ok": "green"}


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(doctor)


def doctor(
    context: typer.Context,
    rule: Annotated[str | None, typer.Option("--rule", "-r", help="One rule only.")] = None,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Refuse a superuser and a role that bypasses row security."),
    ] = False,
) -> None:
    """Check rules, rights, indexes and clocks against the live database; write nothing.

    Exits 0 when nothing is refused, 3 otherwise. Every code is explained in the reference.

    Examples: freehold doctor · freehold doctor --rule cart --strict · freehold --json doctor
    """
    from freehold.adapters.system import SystemClock
    from freehold.application.doctor import Severity, examine
    from freehold.application.doctor.reports import report_findings
    from freehold.bootstrap import handler_problems, open_inspection
    from freehold.entrypoints.cli.pause import read_states

    call = invocation(context)
    settings = call.settings()
    rules = settings.rules if rule is None else (settings.rule(rule),)
    inspection = open_inspection(settings)
    try:
        unusable = handler_problems(rules)
        _, stopped = read_states(call, settings, [one.name for one in rules])
        found = examine(
            inspection,
            rules,
            SystemClock(),
            strict=strict,
            unusable=unusable,
            stopped=stopped,
            tenants=settings.tenants if rule is None else None,
        )
    finally:
        inspection.close()
    if rule is None and settings.report is not None:
        found += report_findings(_report_setting(call, settings, settings.report), rules)
    if rule is None:
        found += [*_broker_findings(settings), *_target_findings(call, settings)]
    call.show([asdict(one) for one in found], lambda: _print(found))
    refused = sum(one.severity is Severity.REFUSE for one in found)
    if refused:
        raise CheckFailed(f"doctor refused {refused} of {len(found)} findings.")


def _broker_findings(settings: Settings) -> list[Finding]:
    """Look at the broker of hints; nothing where there is none."""
    from freehold.application.doctor.brokers import broker_findings
    from freehold.bootstrap import open_queue_facts

    inspection = open_queue_facts(settings)
    return [] if inspection is None else list(broker_findings(inspection))


def _target_findings(call: Invocation, settings: Settings) -> list[Finding]:
    """Look at the targets of events; nothing where there is no ledger to ask yet."""
    from freehold.application.doctor.events import target_findings

    try:
        with call.ledger(settings) as ledger:
            return list(target_findings(ledger, [one.policy.name for one in settings.targets]))
    except RefusedByState:
        return []


def _report_setting(call: Invocation, settings: Settings, chosen: ReportSettings) -> ReportSetting:
    """Try the transport, without sending, and read the first tenants."""
    from freehold.application.doctor.reports import ReportSetting
    from freehold.settings.values_report import SmtpSettings

    transport = chosen.transport
    return ReportSetting(
        policy=chosen.policy,
        transport=transport.name,
        trouble=_transport_trouble(settings),
        in_clear=isinstance(transport, SmtpSettings) and transport.security == "none",
        asks_model=chosen.summary is not None,
        key_in_clear=chosen.summary is not None and chosen.summary.key_in_clear,
        tenants=_first_tenants(call, settings),
    )


def _transport_trouble(settings: Settings) -> str | None:
    from freehold.bootstrap import open_transport

    try:
        transport = open_transport(settings)
    except UsageError as error:
        return str(error)
    try:
        return transport.check()
    finally:
        transport.close()


def _first_tenants(call: Invocation, settings: Settings) -> Sequence[Tenant] | None:
    """Return the first tenants, or None where there is no ledger to ask yet."""
    from freehold.application.doctor.reports import TENANTS_LOOKED_AT

    try:
        with call.ledger(settings) as ledger, ledger.glance() as tx:
            return tx.tenants.find("", TENANTS_LOOKED_AT)
    except RefusedByState:
        return None


def _print(found: Sequence[Finding]) -> None:
    """Print a table on a terminal, else one finding a line; then the SQL, ready to be copied."""
    from rich.console import Console

    console = Console(highlight=False, emoji=False)
    safe = [replace(one, sentence=harmless(one.sentence)) for one in found]
    ordered = sorted(safe, key=lambda one: list(STYLES).index(one.severity))
    if console.is_terminal:
        _print_table(console, ordered)
    else:
        _print_lines(ordered)
    _print_details(ordered)
    counts = Counter(str(one.severity) for one in found)
    refused, warned = counts["refuse"], counts["warn"]
    typer.echo(f"\n{refused} refused, {warned} warned, {counts['ok']} fine")


def _print_table(console: Console, found: Sequence[Finding]) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("")
    table.add_column("rule")
    table.add_column("where", overflow="fold")
    table.add_column("what", ratio=1)
    for one in found:
        what = Text(f"{one.sentence} ").append(f"[{one.code}]", style="dim")
        mark = Text(one.severity, style=STYLES[one.severity])
        table.add_row(mark, Text(one.rule or "-"), Text(one.place), what)
    console.print(table)


def _print_lines(found: Sequence[Finding]) -> None:
    for one in found:
        typer.echo(f"{one.severity}\t{one.code}\t{one.rule or '-'}\t{one.place}\t{one.sentence}")


def _print_details(found: Sequence[Finding]) -> None:
    for one in found:
        if one.detail:
            typer.echo(f"\n-- {one.rule}: {one.code}, the plan today")
            typer.echo("\n".join(f"--   {line}" for line in one.detail.splitlines()))
        if one.mend:
            typer.echo(f"\n-- {one.rule or 'database'}: mends {one.code}")
            typer.echo(one.mend)
