"""`freehold pause | resume`: stop a role, for all or for one rule or tenant, and let it go on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from freehold.domain.errors import UsageError
from freehold.entrypoints.cli.context import Invocation, invocation

if TYPE_CHECKING:
    from freehold.application.pauses import Scope
    from freehold.domain.pauses import Pause, Role
    from freehold.ports.ledger import RuleState
    from freehold.settings import Settings

LIST = "list"

By = Annotated[str, typer.Option("--by", help="Who you are; kept in the action log.")]
Reason = Annotated[str, typer.Option("--reason", help="Why; kept in the action log.")]
RoleName = Annotated[
    str, typer.Argument(metavar="ROLE", help="scan, dispatch, work, relay or report.")
]
RuleName = Annotated[str | None, typer.Option("--rule", help="One rule only.")]
Tenant = Annotated[str | None, typer.Option("--tenant", help="One tenant only.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(pause)
    app.command()(resume)


def pause(
    context: typer.Context,
    role: Annotated[
        str, typer.Argument(metavar="ROLE|list", help="A role as in run --role, or list.")
    ],
    by: By = "",
    reason: Reason = "",
    rule: RuleName = None,
    tenant: Tenant = None,
    until: Annotated[
        str | None, typer.Option("--until", help="End by itself then: an instant with an offset.")
    ] = None,
    span: Annotated[
        str | None, typer.Option("--for", help="End by itself after so long, as in 2h.")
    ] = None,
) -> None:
    """Pause a role: scan writes no operation, work releases nothing, report sends no mail.

    Dispatch names nothing to the broker, so that workers ask the ledger; relay tells no target, and
    events wait.

    Of one tenant, scan and work keep new work from being written, and work also puts off what is
    there. Reports are paused for all tenants or one; their days are closed all the same. A batch
    in hand is finished.

    Examples: freehold pause work --by ann --reason "price update" --for 2h ·
    freehold pause scan --rule cart --tenant harbour --by ann --reason "dispute" · freehold pause list
    """
    call = invocation(context)
    if role == LIST:
        if any((by, reason, rule, tenant, until, span)):
            raise UsageError("`freehold pause list` shows every pause and takes no other option.")
        _list(call)
        return
    from freehold.application.pauses import begin_pause, subject
    from freehold.application.review import Person
    from freehold.domain.pauses import Pause

    person, scope = Person(by, reason), _scope(call, role, rule, tenant)
    with call.ledger() as ledger:
        with ledger.transaction() as tx:
            now = tx.now
        begun = Pause(*scope, person.name, person.reason, now, ends_at(until, span, now))
        begin_pause(ledger, begun)
    call.show(
        pause_data(begun, now),
        lambda: typer.echo(f"{begun.role} of {subject(scope)} is paused {begun}"),
    )


def resume(
    context: typer.Context,
    role: RoleName,
    by: By,
    reason: Reason,
    rule: RuleName = None,
    tenant: Tenant = None,
) -> None:
    """End a pause of exactly that role, rule and tenant; what fell due meanwhile is caught up.

    Exits 6 when nothing is paused so.

    Example: freehold resume work --rule cart --by ann --reason "update done"
    """
    from freehold.application.pauses import end_pause, subject
    from freehold.application.review import Person

    call = invocation(context)
    person, scope = Person(by, reason), _scope(call, role, rule, tenant)
    names = [one.name for one in call.settings().rules]
    with call.ledger() as ledger:
        count = end_pause(ledger, scope, names, person.name, person.reason)
    data = {"role": role, "rule": rule, "tenant": tenant, "brought_back_count": count}
    back = f"; {count:,} operations were brought back" if count else ""
    call.show(data, lambda: typer.echo(f"{role} of {subject(scope)} goes on{back}"))


def _list(call: Invocation) -> None:
    from freehold.application.pauses import scope_of, subject

    with call.ledger() as ledger, ledger.transaction() as tx:
        now = tx.now
        standing = [one for one in tx.pauses.open() if one.stands(now)]

    def text() -> None:
        for one in standing:
            typer.echo(f"{one.role:<8} {subject(scope_of(one)):<32} {one}")
        if not standing:
            typer.echo("nothing is paused")

    call.show([pause_data(one, now) for one in standing], text)


def _scope(call: Invocation, role: str, rule: str | None, tenant: str | None) -> Scope:
    """Check what is named: a role that can be paused, a rule that is configured, some tenant."""
    if rule is not None:
        call.settings().rule(rule)
    if tenant is not None and not tenant.strip():
        raise UsageError("--tenant is empty: name a tenant, or leave it out to mean all.")
    known = _role(role)
    if known == "report" and rule is not None:
        raise UsageError("A report is about all rules of a tenant: leave --rule out.")
    if known == "dispatch" and tenant is not None:
        raise UsageError("A broker knows no tenants: leave --tenant out, or pause work.")
    if known == "relay" and (rule is not None or tenant is not None):
        raise UsageError(
            "The relay is paused as a whole: leave --rule and --tenant out; "
            "`freehold events pause TARGET` pauses one target."
        )
    return known, rule, tenant


def _role(text: str) -> Role:
    from freehold.domain.pauses import Role

    try:
        return Role(text)
    except ValueError as error:
        raise UsageError(
            f"The role {text!r} cannot be paused; choose one of {', '.join(Role)}."
        ) from error


def ends_at(until: str | None, span: str | None, now: datetime) -> datetime | None:
    """Return when a pause ends by itself."""
    from freehold.domain.schedule import ScheduleError, parse_duration

    if until is not None and span is not None:
        raise UsageError("Give either --until or --for.")
    if span is not None:
        try:
            length = parse_duration(span)
        except ScheduleError as error:
            raise UsageError(f"--for {span!r}: {error}.") from error
        if not length:
            raise UsageError(f"--for {span!r} is over at once; say how long.")
        return now + length
    return None if until is None else _instant(until, now)


def _instant(text: str, now: datetime) -> datetime:
    try:
        at = datetime.fromisoformat(text)
        if at.tzinfo is not None:
            at = at.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise UsageError(
            f"--until {text!r} is no instant; write it as in 2026-05-01T18:00+02:00."
        ) from error
    if at.tzinfo is None:
        raise UsageError(f"--until {text!r} has no offset; add Z, or one as in +02:00.")
    if at <= now:
        raise UsageError(f"--until {text!r} is over already.")
    return at


def read_states(
    call: Invocation, settings: Settings, names: Sequence[str]
) -> tuple[Mapping[str, RuleState], dict[str, str]]:
    """Read the rules' states, and what stops each, if something does.

    Returns:
        Nothing of either where there is no ledger to ask yet.
    """
    from freehold.application.stopped import held_back
    from freehold.domain.errors import RefusedByState

    try:
        with call.ledger(settings) as ledger, ledger.reading() as reading:
            states = reading.figures.states(names)
            reasons = {name: held_back(state, reading.now) for name, state in states.items()}
    except RefusedByState:
        return {}, {}
    return states, {name: reason for name, reason in reasons.items() if reason is not None}


def pause_data(one: Pause, now: datetime) -> dict[str, Any]:
    """Return a pause as plain data."""
    return {
        "role": one.role.value,
        "rule": one.rule,
        "tenant": one.tenant,
        "by": one.by,
        "reason": one.reason,
        "paused_at": one.paused_at,
        "until": one.until,
        "stands": one.stands(now),
    }
