"""How reports look: as data, as a list, and one with its whole trail.

*Invariants*: data and text say the same; instants of the trail are in UTC, as those of `why` are.
*Not here*: the mail itself (`adapters/rendering`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from rich.markup import escape
from rich.table import Table

from freehold.application.spans import span
from freehold.domain.reports import ReportReason, ReportState
from freehold.domain.sending import SendState
from freehold.entrypoints.cli.context import people

if TYPE_CHECKING:
    from rich.console import Console

    from freehold.domain.facts import Facts, RuleFacts
    from freehold.ports.report_insight import (
        Listed,
        ReportLine,
        SeenAttempt,
        SeenReport,
        SeenSend,
        SeenSummary,
    )

NOTHING = "[dim]·[/]"
NONE_YET = (
    "there is no report yet; the first one comes when a day is over, and `freehold report preview "
    "TENANT` shows it before"
)
NO_RECIPIENT = (
    "no recipient: `freehold tenant add ID --recipient ADDRESS` says who gets a tenant's reports, "
    "`freehold tenant set ID --recipient ADDRESS --by NAME` where it is there"
)
FIGURES = ("released", "units", "on time", "skipped", "retried", "review", "p50", "longest")
SELDOM = ("skipped", "retried", "review")  # columns that are left out where they are empty
RULE_WIDTH = 16  # of 80 columns, where the name is as long
DIGEST_CHARS = 12  # of 64, in text for people; data has all of it
_MICROS = 1_000_000
_STATES = {
    ReportState.ASSIGNED: "cyan",
    ReportState.FROZEN: "cyan",
    ReportState.SENDING: "cyan",
    ReportState.IN_REVIEW: "bold red",
    ReportState.SENT: "green",
    ReportState.PARTLY_SENT: "yellow",
    ReportState.NOT_SENT: "red",
    ReportState.SKIPPED: "dim",
}
_SENDS = {
    SendState.ACCEPTED: "green",
    SendState.REVIEW: "bold red",
    SendState.REFUSED: "red",
    SendState.UNKNOWN: "yellow",
    SendState.RETRYING: "yellow",
}


def whose(tenant: str) -> str:
    """Name a tenant, also the one of holds that belong to nobody."""
    return tenant or "nobody"


# ------------------------------------------------------------------------------------------- lists


def line_data(line: ReportLine) -> dict[str, Any]:
    """Return one line of a list as data."""
    return {**asdict(line), "report_date": line.report_date.isoformat()}


def print_list(listed: Listed, *, filtered: bool = False) -> None:
    """Print a list, and how to go on."""
    if not listed.lines:
        nothing = "there is no such report" if filtered else NONE_YET
        people().print(nothing if listed.after is None else _none_among(listed), soft_wrap=True)
        return
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for name in ("date", "tenant", "released", "mails", "state", "why"):
        table.add_column(name, justify="right" if name in ("released", "mails") else "left")
    for line in listed.lines:
        table.add_row(
            str(line.report_date),
            f"[bold]{escape(line.tenant)}[/]" if line.tenant else "[dim]nobody[/]",
            NOTHING if line.released_count is None else f"{line.released_count:,}",
            f"{line.accepted_count}/{line.send_count}" if line.send_count else NOTHING,
            f"[{_STATES[line.state]}]{line.state}[/]",
            escape(_line_reason(line)),
        )
    people().print(table)
    if any(one.reason == ReportReason.NO_RECIPIENT and one.tenant for one in listed.lines):
        people().print(f"[dim]{escape(NO_RECIPIENT)}[/]", soft_wrap=True)
    if listed.after is not None:
        people().print(f"[dim]{escape(_more(listed))}[/]", soft_wrap=True)


def _line_reason(line: ReportLine) -> str:
    if line.state is ReportState.FROZEN:
        return f"leaves at {instant(line.due_at)}"
    return line.reason or ""


def after_text(listed: Listed) -> str | None:
    """Write where a list goes on, as --after takes it."""
    return None if listed.after is None else f"{listed.after[0]}/{listed.after[1]}"


def _more(listed: Listed) -> str:
    return f"there may be more: go on with --after '{after_text(listed)}'"


def _none_among(listed: Listed) -> str:
    return escape(f"none among the newest reports that were looked at; {_more(listed)}")


# -------------------------------------------------------------------------------------- one report


def report_data(seen: SeenReport) -> dict[str, Any]:
    """Return one report with its trail as data."""
    from freehold.domain.facts_text import canonical

    window = seen.window
    return {
        "tenant": seen.tenant_id,
        "report_date": window.report_date.isoformat(),
        "state": seen.state,
        "reason": seen.reason,
        "start_at": window.start_at,
        "end_at": window.end_at,
        "zone": window.zone,
        "tz_version": window.tz_version,
        "due_at": seen.due_at,
        "watermark_at": seen.watermark_at,
        "assigned_at": seen.assigned_at,
        "frozen_at": seen.frozen_at,
        "ended_at": seen.ended_at,
        "facts_digest": seen.facts_digest,
        "facts": None if seen.facts is None else json.loads(canonical(seen.facts)),
        "mail": None if seen.mail is None else asdict(seen.mail),
        "sends": [asdict(one) for one in seen.sends],
        "summaries": [asdict(one) for one in seen.summaries],
        "acts": [asdict(one) for one in seen.acts],
    }


def print_report(seen: SeenReport) -> None:
    """Print one report: what it says, to whom it went, and everything that happened."""
    console = people()
    title = escape(whose(seen.tenant_id) if seen.facts is None else _name(seen.facts))
    state = f"[{_STATES[seen.state]}]{seen.state}[/]"
    reason = f" [dim]({escape(seen.reason)})[/]" if seen.reason else ""
    console.print(
        f"[bold]{title}[/] [dim]on[/] [bold]{seen.window.report_date}[/]  {state}{reason}"
    )
    console.print(_head(seen))
    if seen.facts is not None:
        _print_facts(console, seen.facts)
    _print_sends(console, seen.sends)
    _print_trail(console, seen)


def _name(facts: Facts) -> str:
    if not facts.tenant:
        return "holds of nobody"
    return facts.tenant_name if facts.tenant_name == facts.tenant else (
        f"{facts.tenant_name} ({facts.tenant})"
    )  # fmt: skip


def _head(seen: SeenReport) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    window = seen.window
    grid.add_row(
        "window",
        f"{instant(window.start_at)} to {instant(window.end_at)}, {hours(window.span)} "
        f"[dim]({window.zone}, tz {window.tz_version})[/]",
    )
    grid.add_row("mail due", instant(seen.due_at))
    if seen.mail is not None:
        kept = "" if seen.mail.kept else " [dim](bytes pruned)[/]"
        grid.add_row("subject", escape(seen.mail.subject))
        grid.add_row(
            "mail",
            f"{seen.mail.byte_count:,} bytes in {escape(seen.mail.locale)}, "
            f"digest {seen.mail.digest[:DIGEST_CHARS]}{kept}",
        )
    if seen.facts_digest is not None:
        grid.add_row("facts", f"digest {seen.facts_digest[:DIGEST_CHARS]}")
    return grid


def hours(length: timedelta) -> str:
    """Write a day's true length."""
    return f"{length.total_seconds() / 3600:g} h"


def instant(at: datetime) -> str:
    """Write an instant for a person, in UTC."""
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"


def _print_facts(console: Console, facts: Facts) -> None:
    console.print()
    if facts.is_empty:
        console.print("nothing came due")
        return
    if facts.rules:
        console.print(rules_table(facts.rules))
    for rule in facts.rules:
        for reason, count in sorted(rule.skipped.items()):
            console.print(
                f"  [dim]{escape(rule.rule)} skipped[/] {count:,} [dim]{escape(reason)}[/]"
            )
    for late in facts.late:
        day = "before the first report" if late.report_date is None else str(late.report_date)
        skipped = f", {late.skipped_count:,} skipped" if late.skipped_count else ""
        console.print(f"  [dim]late from[/] {day}: {late.released_count:,} released{skipped}")


def rules_table(rules: Sequence[RuleFacts]) -> Table:
    """Return what each rule did; a column that is empty throughout is left out."""
    columns = zip(FIGURES, zip(*(_figures(rule) for rule in rules), strict=True), strict=True)
    shown = {
        name: cells for name, cells in columns if name not in SELDOM or set(cells) != {NOTHING}
    }
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    longest = max(len(rule.rule) for rule in rules)
    table.add_column("rule", overflow="fold", min_width=min(longest, RULE_WIDTH))
    for name in shown:
        table.add_column(name, justify="right")
    for rule, cells in zip(rules, zip(*shown.values(), strict=True), strict=True):
        table.add_row(escape(rule.rule), *cells)
    return table


def _figures(rule: RuleFacts) -> list[str]:
    within = rule.within_promise_count
    on_time = NOTHING if within is None or not rule.released_count else f"{within:,}"
    if within is not None and within < rule.released_count:
        on_time = f"[yellow]{on_time}[/]"
    return [
        _count(rule.released_count),
        _count(rule.unit_count),
        on_time,
        _count(sum(rule.skipped.values())),
        _count(rule.retried_count),
        f"[bold red]{rule.dead_count:,}[/]" if rule.dead_count else NOTHING,
        _lag(rule.lag_p50_seconds),
        _lag(rule.lag_max_seconds),
    ]


def _count(count: int) -> str:
    return f"{count:,}" if count else NOTHING


def _lag(seconds: float | None) -> str:
    if seconds is None:
        return NOTHING
    return "> 1 d" if seconds == float("inf") else span(timedelta(seconds=seconds))


def _print_sends(console: Console, sends: Sequence[SeenSend]) -> None:
    if not sends:
        return
    console.print()
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for name in ("recipient", "state", "attempts", "by", "reference"):
        table.add_column(name, overflow="fold", justify="right" if name == "attempts" else "left")
    for one in sends:
        state = _SENDS.get(one.state, "dim")
        table.add_row(
            escape(one.recipient),
            f"[{state}]{one.state}[/]",
            _count(len(one.attempts)),
            escape(one.transport or "") or NOTHING,
            escape(one.reference or "") or NOTHING,
        )
    console.print(table)
    for one in sends:
        if reason := _send_reason(one):
            console.print(f"  [dim]{escape(one.recipient)}:[/] {escape(reason)}")


def _send_reason(one: SeenSend) -> str:
    waits = (SendState.READY, SendState.RETRYING, SendState.UNKNOWN)
    until = f"next at {instant(one.available_at)}" if one.state in waits else ""
    return "; ".join(part for part in (one.reason, until) if part)


def _print_trail(console: Console, seen: SeenReport) -> None:
    console.print()
    lines = Table.grid(padding=(0, 2, 0, 0))
    lines.add_column(style="dim", no_wrap=True)
    lines.add_column(overflow="fold")
    for at, what in sorted(_happened(seen), key=lambda one: one[0]):
        lines.add_row(f"{at:%Y-%m-%d %H:%M:%S}", escape(what))
    console.print(lines)


def _happened(seen: SeenReport) -> Iterator[tuple[datetime, str]]:
    yield (
        seen.assigned_at,
        f"day closed, watermark {instant(seen.watermark_at)}",
    )
    if seen.frozen_at is not None:
        yield seen.frozen_at, "facts frozen"
    if seen.mail is not None:
        yield seen.mail.frozen_at, "mail frozen"
    for summary in seen.summaries:
        yield summary.started_at, _asked(summary)
    for send in seen.sends:
        for attempt in send.attempts:
            yield attempt.ended_at or attempt.started_at, _tried(send, attempt)
    for act in seen.acts:
        yield act.at, f"{act.actor}: {act.action} of {act.subject}, because {act.reason}"
    if seen.ended_at is not None:
        yield seen.ended_at, f"ended: {seen.state}{f', {seen.reason}' if seen.reason else ''}"


def _asked(summary: SeenSummary) -> str:
    tokens = [
        f"{count:,} tokens {way}"
        for way, count in (("in", summary.input_tokens), ("out", summary.output_tokens))
        if count is not None
    ]
    cost = []
    if summary.cost_micros is not None:
        cost = [f"{summary.cost_micros / _MICROS:.4f} {summary.currency or ''}".strip()]
    end = summary.outcome or "open"
    reason = f" ({summary.reason})" if summary.reason else ""
    used = ", ".join([*tokens, *cost]) or "usage unknown"
    return f"asked {summary.model} at {summary.host} for a paragraph: {end}{reason}; {used}"


def _tried(send: SeenSend, attempt: SeenAttempt) -> str:
    outcome = "open" if attempt.outcome is None else str(attempt.outcome)
    words = attempt.answer or ""  # which has the code, where the answer is the server's own
    answer = (
        words if attempt.code and attempt.code in words else f"{attempt.code or ''} {words}".strip()
    )
    said = f": {answer}" if answer else ""
    new = attempt.reference and attempt.reference != send.reference
    reference = f" [{attempt.reference}]" if new else ""
    return (
        f"{send.recipient}: attempt {attempt.attempt}, {attempt.kind} by {attempt.transport}"
        f"{_begun(attempt)}, {outcome}{reference}{said}"
    )


def _begun(attempt: SeenAttempt) -> str:
    """Say when an attempt began that ended later: that is when its provider may have had the mail."""
    if attempt.ended_at is None or attempt.ended_at - attempt.started_at < timedelta(seconds=1):
        return ""
    return f" at {instant(attempt.started_at)}"
