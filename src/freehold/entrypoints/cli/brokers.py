"""`freehold dispatch | relay`: the one-shots of a broker and of targets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from freehold.entrypoints.cli.context import invocation
from freehold.entrypoints.cli.one_shot import deadline_seconds, refuse, require_rules
from freehold.entrypoints.cli.sentences import sentence
from freehold.entrypoints.signals import on_signals

if TYPE_CHECKING:
    from freehold.entrypoints.relaying import Relayed


def register(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (dispatch, relay):
        app.command()(command)


def dispatch(context: typer.Context, rule: Annotated[str | None, typer.Option()] = None) -> None:
    """Name ready operations to the broker once, so that workers take them.

    Exits 4 when the broker holds enough already, or did not confirm all; 5 when it cannot be reached;
    6 when it does not let us in, or its queue is made otherwise.

    Example: freehold dispatch --rule cart
    """
    from freehold.application.stopped import find_stopped
    from freehold.domain.errors import WorkLeft
    from freehold.domain.pauses import Role
    from freehold.entrypoints.dispatching import dispatch_once

    call = invocation(context)
    settings = call.settings()
    require_rules(settings)
    chosen = settings.rules if rule is None else (settings.rule(rule),)
    with call.ledger(settings) as ledger:
        done = dispatch_once(ledger, settings, chosen)
        stopped = find_stopped(ledger, chosen, (Role.DISPATCH,))
    rows = [
        {
            "rule": name,
            "published": one.published_count,
            "unconfirmed": one.unconfirmed_count,
            "left": one.is_full,
        }
        for name, one in done.items()
    ]

    def text() -> None:
        for name, one in done.items():
            full = ", and the broker holds enough" if one.is_full else ""
            typer.echo(f"{name}: {one.published_count} published{full}")

    call.show(rows, text)
    refuse(stopped)
    if any(one.is_full or one.unconfirmed_count for one in done.values()):
        raise WorkLeft("Operations are left that the broker did not take; run it again.")


def relay(
    context: typer.Context,
    limit: Annotated[
        int | None, typer.Option(min=1, help="End after the batch that reaches so many.")
    ] = None,
    deadline: Annotated[
        str | None, typer.Option(help="Begin no batch after so long, as in 50s.")
    ] = None,
) -> None:
    """Tell the targets of what happened, then end.

    What a target did not take is tried again by a later call, when its turn has come. Exits 4 when
    limit or time was used up first, 5 when a target cannot be reached, 6 when one is paused.

    Examples: freehold relay · freehold relay --deadline 50s
    """
    from freehold.adapters.system import Onwards, StopRequest
    from freehold.entrypoints.relaying import relay_once
    from freehold.ports.telemetry import UNHEARD

    call = invocation(context)
    settings = call.settings()
    seconds = None if deadline is None else deadline_seconds(deadline)
    with call.ledger(settings):
        pass
    stop = StopRequest()
    context.with_resource(on_signals(stop.stop))
    done = relay_once(settings, Onwards(), UNHEARD, stop, limit=limit, seconds=seconds)
    call.show(relayed_data(done), lambda: typer.echo(relayed_text(done)))
    for name, error in done.troubles:
        typer.echo(f"freehold: {name}: {sentence(error)}", err=True)
    _end(done, is_stopping=stop.stopping)


def _end(done: Relayed, *, is_stopping: bool) -> None:
    from freehold.domain.errors import RefusedByState, TargetAway, WorkLeft

    if done.is_paused:
        raise RefusedByState(
            "The relay is paused, so that nobody is told; `freehold pause list` says by whom and why."
        )
    for name, why in done.paused.items():
        raise RefusedByState(
            f"Target {name} is not told of its events: {why}; `freehold events targets` shows it."
        )
    for name, why in done.away.items():
        raise TargetAway(
            f"Target {name} is not told of its events: {why}; they wait, and no attempt is spent."
        )
    if done.is_left and not is_stopping:
        raise WorkLeft("Events are left over: the limit or the time was used up; run it again.")


def relayed_data(done: Relayed) -> dict[str, Any]:
    """Return what the relay did as plain data."""
    return {
        "events": done.event_count,
        "delivered": done.delivered_count,
        "failed": done.failed_count,
        "dead": done.dead_count,
        "left": done.is_left,
        "waiting": {**done.away, **done.paused},
    }


def relayed_text(done: Relayed) -> str:
    """Say what the relay did."""
    count = done.delivered_count
    parts = [f"delivered {count} event{'' if count == 1 else 's'}"]
    if done.failed_count:
        parts.append(f"{done.failed_count} failed, to be tried again later")
    if done.dead_count:
        parts.append(f"{done.dead_count} gave up, see `freehold events list --state dead`")
    waiting = (*done.away, *done.paused)
    if waiting:
        parts.append(f"events wait for {', '.join(waiting)}")
    return "; ".join(parts)
