"""`freehold report build | send | run`: make and send reports now."""

from __future__ import annotations

from contextlib import contextmanager
from datetime import date
from typing import TYPE_CHECKING, Annotated, Any

import typer

from freehold.domain.errors import RefusedByState, UsageError, WorkLeft
from freehold.domain.reports import ReportState
from freehold.domain.sending import CLAIMABLE, SendState
from freehold.entrypoints.cli.context import Invocation, invocation
from freehold.entrypoints.cli.one_shot import deadline_seconds
from freehold.entrypoints.cli.report_asked import Day, Tenant, no_report, read_day
from freehold.entrypoints.cli.sentences import sentence
from freehold.entrypoints.signals import on_signals

if TYPE_CHECKING:
    from collections.abc import Iterator

    from freehold.adapters.sql.ledger import SqlLedger
    from freehold.application.reporting.reporter import Reporter
    from freehold.entrypoints.reporting_once import Reported
    from freehold.ports.report_insight import SeenReport
    from freehold.settings import Settings

By = Annotated[str, typer.Option("--by", help="Who you are; kept in the action log.")]
Reason = Annotated[str, typer.Option("--reason", help="Why; kept in the action log.")]
UNENDED = (*CLAIMABLE, SendState.LEASED)  # the lease may be over, and its sender lost
PASSES_MAX = 50  # of 100 sends each; what waits in front of one's own mails goes with them


@contextmanager
def _opened(call: Invocation) -> Iterator[tuple[Settings, SqlLedger, Reporter]]:
    """Open what makes reports.

    Raises:
        UsageError: reports are off.
    """
    from freehold.adapters.system import Onwards, StopRequest
    from freehold.entrypoints.reporting import reporter_of
    from freehold.ports.telemetry import UNHEARD

    settings = call.settings()
    with call.ledger(settings) as ledger:
        yield settings, ledger, reporter_of(ledger, settings, Onwards(), UNHEARD, StopRequest())


def build(context: typer.Context, tenant: Tenant, day: Day) -> None:
    """Close a tenant's day if it is over, and freeze the facts; send nothing.

    Exits 6 while the day is not over, or may still get releases.

    Example: freehold report build harbour 2026-05-01
    """
    from freehold.entrypoints.cli.report_view import report_data

    call = invocation(context)
    asked = read_day(day)
    with _opened(call) as (_, ledger, reporter):
        before = _seen(ledger, tenant, asked)
        seen = _built(ledger, reporter, tenant, asked)
    said = "built" if before is None else "is there already"
    call.show(report_data(seen), lambda: typer.echo(f"{_called(seen)} {said}: {_standing(seen)}"))


def _seen(ledger: SqlLedger, tenant: str, day: date) -> SeenReport | None:
    with ledger.reading() as reading:
        return reading.reports.look(tenant, day)


def _built(ledger: SqlLedger, reporter: Reporter, tenant: str, day: date) -> SeenReport:
    """Return the report with its facts; close the day and freeze them where that is to be done.

    Raises:
        RefusedByState: the day is not over, or may still get releases.
        UsageError: nobody knows the tenant, or its days began later.
    """
    seen = _seen(ledger, tenant, day)
    if seen is None:
        reporter.closer.build(tenant, day)
    if seen is None or seen.state is ReportState.ASSIGNED:
        reporter.freezer.freeze()
        seen = _seen(ledger, tenant, day)
    if seen is None:
        raise UsageError(no_report(tenant, day))
    return seen


def _called(seen: SeenReport) -> str:
    from freehold.entrypoints.cli.report_view import whose

    return f"the report of {whose(seen.tenant_id)} for {seen.window.report_date}"


def _standing(seen: SeenReport) -> str:
    """Say where a report stands."""
    from freehold.entrypoints.cli.report_view import instant

    reason = f" ({seen.reason})" if seen.reason else ""
    if seen.state is ReportState.FROZEN:
        released = 0 if seen.facts is None else seen.facts.released_count
        return f"{released:,} released, its mail leaves at {instant(seen.due_at)}"
    return f"{seen.state}{reason}"


def send(
    context: typer.Context,
    tenant: Tenant,
    day: Day,
    recipient: Annotated[
        str | None,
        typer.Option(help="Send again to this one, who refused or of whom nobody knows."),
    ] = None,
    by: By = "",
    reason: Reason = "",
) -> None:
    """Send one report now, whatever its hour; what was accepted is never sent again.

    One that ended as not sent because nobody could get it is sent after all with --by and --reason.
    Other mails that are due leave on the way. Exits 4 while mails wait for another attempt, 6 when
    a person must say how one ended.

    Examples: freehold report send harbour 2026-05-01 · freehold report send harbour 2026-05-01
    --recipient desk@harbour.example --by ann --reason "their mail server is back"
    """
    from freehold.application.reporting.reopening import reopen
    from freehold.application.reporting.resolving import Verdict
    from freehold.application.reporting.resolving import resolve as say
    from freehold.bootstrap import report_settings
    from freehold.entrypoints.cli.report_view import report_data

    call = invocation(context)
    asked = read_day(day)
    with _opened(call) as (settings, ledger, reporter):
        if recipient is not None:
            say(ledger, tenant, asked, recipient, Verdict.RESEND, by, reason)
        elif by or reason:
            reopen(ledger, report_settings(settings).policy, tenant, asked, by, reason)
        before = _built(ledger, reporter, tenant, asked)
        if before.state is ReportState.FROZEN:
            reporter.mailer.prepare_one(tenant, asked)
        _send_all(ledger, settings, tenant, asked)
        seen = _built(ledger, reporter, tenant, asked)
    nothing = before.state not in (ReportState.FROZEN, ReportState.SENDING)
    said = f"{_called(seen)} {'was' if nothing else 'is'} {_ends(seen)}"
    if nothing:
        said += f"; nothing was sent{_after_all(seen)}"
    call.show(report_data(seen), lambda: typer.echo(said))
    _require_ended(seen)


def _after_all(seen: SeenReport) -> str:
    """Say how a report that nobody got is sent, now that the tenant has recipients."""
    ended = seen.state is ReportState.NOT_SENT and seen.mail is None
    if not (ended and seen.tenant is not None and seen.tenant.recipients):
        return ""
    return "; add --by and --reason to send it after all"


def _ends(seen: SeenReport) -> str:
    accepted = sum(one.state is SendState.ACCEPTED for one in seen.sends)
    of = f", {accepted} of {len(seen.sends)} mails accepted" if seen.sends else ""
    return f"{_standing(seen)}{of}"


def _send_all(ledger: SqlLedger, settings: Settings, tenant: str, day: date) -> None:
    """Send until no mail of the report can be tried now."""
    from freehold.adapters.system import Onwards, StopRequest
    from freehold.entrypoints.reporting import SENDS_A_PASS, sender_of
    from freehold.ports.telemetry import UNHEARD

    sender = sender_of(ledger, settings, Onwards(), UNHEARD, StopRequest())
    try:
        for _ in range(PASSES_MAX):
            seen = _seen(ledger, tenant, day)
            if seen is None or not any(one.state in UNENDED for one in seen.sends):
                return
            sent = sender.send(SENDS_A_PASS)
            if sent.is_paused:
                raise RefusedByState(PAUSED)
            if not sent.counts:
                return
    finally:
        sender.transport.close()


PAUSED = (
    "The sending of reports is paused; `freehold pause list` says by whom, and `freehold resume "
    "report --by NAME --reason TEXT` ends that."
)


def _require_ended(seen: SeenReport) -> None:
    """Say what is left to do.

    Raises:
        WorkLeft: a mail waits for another attempt.
        RefusedByState: a mail waits for a person.
    """
    from freehold.entrypoints.cli.report_view import instant

    waiting = [one for one in seen.sends if one.state in UNENDED]
    if waiting:
        next_at = min((one.available_at for one in waiting if one.state in CLAIMABLE), default=None)
        when = (
            "and in the hands of a sender" if next_at is None else f"the next at {instant(next_at)}"
        )
        raise WorkLeft(
            f"Mails of {_called(seen)} are still to be sent, {when}; `freehold report show` says why."
        )
    if seen.state is ReportState.IN_REVIEW:
        raise RefusedByState(
            f"A mail of {_called(seen)} waits for a person; `freehold report show` says why, and "
            "`freehold report resolve` takes the answer."
        )


def resolve(
    context: typer.Context,
    tenant: Tenant,
    day: Day,
    verdict: Annotated[
        str,
        typer.Option("--as", help="accepted: it arrived. resend: send it. abandon: leave it."),
    ],
    by: By,
    reason: Reason,
    recipient: Annotated[
        str | None, typer.Option(help="Whose mail; by default all that wait for a person.")
    ] = None,
) -> None:
    """Say how mails ended of which nobody knows, or what becomes of refused ones.

    Nothing is sent here: `resend` hands the mail to the next sender. Exits 6 when nothing waits.

    Examples: freehold report resolve harbour 2026-05-01 --as accepted --by ann --reason "they have it"
    · freehold report resolve harbour 2026-05-01 --as resend --by ann --reason "not in the log"
    """
    from freehold.application.reporting.resolving import Verdict
    from freehold.application.reporting.resolving import resolve as say

    call = invocation(context)
    asked = read_day(day)
    try:
        said = Verdict(verdict)
    except ValueError as error:
        known = ", ".join(Verdict)
        raise UsageError(f"--as {verdict!r} says nothing; choose one of {known}.") from error
    with call.ledger() as ledger:
        before = say(ledger, tenant, asked, recipient, said, by, reason)
        seen = _seen(ledger, tenant, asked)
    assert seen is not None  # it has mails
    data = {
        "state": seen.state,
        "mails": [{"recipient": one.recipient, "before": one.state} for one in before],
    }
    count = f"{len(before)} mail{'' if len(before) == 1 else 's'}"
    call.show(data, lambda: typer.echo(f"{said}: {count} of {_called(seen)}, now {seen.state}"))


def run(
    context: typer.Context,
    limit: Annotated[
        int | None, typer.Option(min=1, help="End after so many attempts to send.")
    ] = None,
    deadline: Annotated[
        str | None, typer.Option(help="Begin no batch after so long, as in 50s.")
    ] = None,
) -> None:
    """Close days, freeze facts, and write and send the mails that are due, once.

    Exits 4 when mails wait for another attempt or the limit was used up, 6 while sending is paused
    or the clock guard stands.

    Examples: freehold report run · freehold report run --deadline 50s
    """
    from freehold.adapters.system import Onwards, StopRequest
    from freehold.bootstrap import report_settings
    from freehold.entrypoints.reporting_once import MailBudget, report_once
    from freehold.ports.telemetry import UNHEARD

    call = invocation(context)
    settings = call.settings()
    report_settings(settings)
    seconds = None if deadline is None else deadline_seconds(deadline)
    with call.ledger(settings):
        pass
    stop = StopRequest()
    context.with_resource(on_signals(stop.stop))
    done = report_once(settings, Onwards(), UNHEARD, MailBudget(limit, seconds), stop)
    call.show(reported_data(done), lambda: typer.echo(reported_text(done)))
    require_done(done, stopping=stop.stopping)


def reported_data(done: Reported) -> dict[str, Any]:
    """Return what a one-shot did as data."""
    return {
        "closed_count": done.closed_count,
        "frozen_count": done.frozen_count,
        "mail_count": done.mail_count,
        "summary_count": done.summary_count,
        "sends": {state.value: count for state, count in sorted(done.counts.items())},
        "paused": done.paused,
        "parked_until": done.parked_until,
        "next_at": done.next_at,
        "left": done.left,
    }


_ENDS = {SendState.REVIEW: "in review", SendState.UNKNOWN: "of unknown end"}


def reported_text(done: Reported) -> str:
    """Say what a one-shot did."""
    parts = [
        f"{count:,} {thing if count == 1 else thing + 's'} {what}"
        for thing, what, count in (
            ("day", "closed", done.closed_count),
            ("report", "frozen", done.frozen_count),
            ("mail", "written or not needed", done.mail_count),
        )
        if count
    ]
    parts += [
        f"{count:,} {'mail' if count == 1 else 'mails'} {_ENDS.get(state, state)}"
        for state, count in sorted(done.counts.items())
        if count
    ]
    return ", ".join(parts) or ("no day is closed" if done.doubt else "no report is due")


def require_done(done: Reported, *, stopping: bool) -> None:
    """Turn what a one-shot left into its exit code.

    Raises:
        RefusedByState: people paused the sending, or no clock says whether a day is over.
        WorkLeft: there is more to do.
        DatabaseError: the database refused a step; the others were done.
    """
    from freehold.entrypoints.cli.report_view import instant

    for name, error in done.troubles:
        typer.echo(f"freehold: report, {name}: {sentence(error)}", err=True)
    if done.paused:
        raise RefusedByState(PAUSED)
    for _, error in done.troubles:
        raise error
    if done.doubt is not None:
        raise RefusedByState(f"No day is closed: {done.doubt}.")
    if done.left and not stopping:
        next_at = max((at for at in (done.next_at, done.parked_until) if at), default=None)
        when = "" if next_at is None else f", the next at {instant(next_at)}"
        raise WorkLeft(f"Mails are still to be sent{when}; run it again.")
