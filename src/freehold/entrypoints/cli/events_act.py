"""`freehold events pause | resume | retry | discard | replay`: what people do about targets."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from freehold.domain.errors import RefusedByState, UsageError
from freehold.domain.inventory import ID_MAX
from freehold.entrypoints.cli.audit import instant_of
from freehold.entrypoints.cli.context import Invocation, invocation
from freehold.entrypoints.cli.pause import ends_at

if TYPE_CHECKING:
    from datetime import datetime

    from freehold.application.events import Chosen, EventActs

CONFIRM_ABOVE = 100  # events of a replay

Target = Annotated[str, typer.Argument(help="The target, as `events targets` shows it.")]
TargetName = Annotated[str, typer.Option("--target", help="The target.")]
Ids = Annotated[
    list[int] | None,
    typer.Option("--id", min=1, max=ID_MAX, help="An event, as a list numbers it; again for more."),
]
All = Annotated[bool, typer.Option("--all", help="Instead of --id: all that is dead there.")]
Confirm = Annotated[int | None, typer.Option("--confirm", help="How many you expect.")]
By = Annotated[str, typer.Option("--by", help="Who you are; kept in the action log.")]
Reason = Annotated[str, typer.Option("--reason", help="Why; kept in the action log.")]


@contextmanager
def _opened(context: typer.Context) -> Iterator[tuple[Invocation, EventActs, datetime]]:
    from freehold.application.events import EventActs

    call = invocation(context)
    settings = call.settings()
    with call.ledger(settings) as ledger:
        with ledger.reading() as reading:
            now = reading.now
        yield call, EventActs(ledger, ledger, [one.policy for one in settings.targets]), now


def pause(
    context: typer.Context,
    target: Target,
    by: By,
    reason: Reason,
    until: Annotated[
        str | None, typer.Option("--until", help="End by itself then: an instant with an offset.")
    ] = None,
    span: Annotated[
        str | None, typer.Option("--for", help="End by itself after so long, as in 2h.")
    ] = None,
) -> None:
    """Pause one target: its events wait, for ever if need be; other targets are told as before.

    What a relay has in hand is still handed over. Exits 6 when it is paused already.

    Examples: freehold events pause shop --by ann --reason "their upgrade" --for 2h ·
    freehold events pause bus --by ann --reason "new broker"
    """
    from freehold.application.review import Person

    person = Person(by, reason)
    with _opened(context) as (call, acts, now):
        ends = ends_at(until, span, now)
        acts.pause(target, person, ends)
    words = "" if ends is None else f" until {ends:%Y-%m-%d %H:%M:%S} UTC"
    data = {"target": target, "by": by, "reason": reason, "until": ends}
    call.show(data, lambda: typer.echo(f"target {target} is paused{words}; its events wait"))


def resume(context: typer.Context, target: Target, by: By, reason: Reason) -> None:
    """End the pause of one target, whoever began it; its failures are forgotten.

    Exits 6 when it is not paused.

    Example: freehold events resume shop --by ann --reason "their upgrade is done"
    """
    from freehold.application.review import Person

    person = Person(by, reason)
    with _opened(context) as (call, acts, _):
        before = acts.resume(target, person)
    data = {"target": target, "by": by, "reason": reason, "paused_at": before.paused_at}
    call.show(data, lambda: typer.echo(f"target {target} goes on"))


def retry(
    context: typer.Context,
    target: TargetName,
    by: By,
    reason: Reason,
    ids: Ids = None,
    everything: All = False,
    confirm: Confirm = None,
) -> None:
    """Give what is dead at a target a fresh set of attempts; the old attempts stay on record.

    Exits 2 where an event is not dead there, 6 where --confirm is not the right count.

    Examples: freehold events retry --target shop --id 17 --by ann --reason "endpoint mended" ·
    freehold events retry --target shop --all --confirm 12 --by ann --reason "endpoint mended"
    """
    _act(context, "retry", target, (by, reason), ids, confirm, everything=everything)


def discard(
    context: typer.Context,
    target: TargetName,
    by: By,
    reason: Reason,
    ids: Ids = None,
    everything: All = False,
    confirm: Confirm = None,
) -> None:
    """Set aside what is dead at a target; of one that is not configured any more, what waits too.

    It stays visible until its event is pruned, and can be replayed until then.

    Example: freehold events discard --target shop --id 17 --by ann --reason "test data"
    """
    _act(context, "discard", target, (by, reason), ids, confirm, everything=everything)


def _act(
    context: typer.Context,
    verb: str,
    target: str,
    who: tuple[str, str],
    ids: list[int] | None,
    confirm: int | None,
    *,
    everything: bool,
) -> None:
    from freehold.application.review import Person

    person = Person(*who)
    if bool(ids) == everything:
        raise UsageError("Name either events by --id, or --all.")
    with _opened(context) as (call, acts, _):
        chosen = acts.require_stuck(target, ids) if ids else acts.stuck(target)
        if not ids:
            _require_count(target, verb, chosen, confirm)
        count = getattr(acts, verb)(target, chosen, person)
    _said(call, {"retry": "retried", "discard": "discarded"}[verb], target, chosen, count)


def _require_count(target: str, verb: str, chosen: Chosen, confirm: int | None) -> None:
    if not chosen.count:
        raise RefusedByState(
            f"Nothing is dead at {target}; `freehold events targets` shows what waits where."
        )
    if confirm != chosen.count:
        some, them = (
            ("1 event is", "it") if chosen.count == 1 else (f"{chosen.count} events are", "them")
        )
        if chosen.full:
            some, them = f"More than {chosen.count} events are", "as many, the oldest,"
        raise RefusedByState(
            f"{some} stuck at {target}; look at `freehold events list --target {target} --state "
            f"dead`, then {verb} {them} with --confirm {chosen.count}."
        )


def replay(
    context: typer.Context,
    target: TargetName,
    by: By = "",
    reason: Reason = "",
    key: Annotated[str | None, typer.Option("--key", help="About one hold only.")] = None,
    since: Annotated[
        str | None, typer.Option("--since", help="Made since: 7d, 12h, or an instant.")
    ] = None,
    until: Annotated[
        str | None, typer.Option("--until", help="Made before: 1d, 2h, or an instant.")
    ] = None,
    rule: Annotated[str | None, typer.Option("--rule", "-r", help="One rule only.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say how many there are, and change nothing.")
    ] = False,
    confirm: Confirm = None,
) -> None:
    """Tell a target once more of events that it has, or never got: all that it wants, and no other.

    Events that were kept, or left before the target was added, are told as well. What is owed to
    it already is left out, and so is what is dead: that is retried. An event's key and bytes are
    the same again, so that a consumer's inbox passes over what it has. Above 100 events --confirm
    has to say how many. Name --key or --since.

    Examples: freehold events replay --target shop --since 2d --dry-run ·
    freehold events replay --target shop --key 4711 --by ann --reason "lost their database"
    """
    from freehold.application.review import Person
    from freehold.ports.forwards import ReplayAsked

    person = None if dry_run else Person(by, reason)
    if key is None and since is None:
        raise UsageError("Say which events: --key, or --since and perhaps --until.")
    with _opened(context) as (call, acts, now):
        start = None if since is None else instant_of(since, now)
        end = None if until is None else instant_of(until, now, "--until")
        asked = ReplayAsked(target, start, end, rule, key)
        chosen = acts.replayable(asked)
        if person is None:
            _preview(call, target, chosen)
            return
        _require_replay(target, chosen, confirm)
        count = acts.replay(asked, chosen, person)
    _said(call, "replayed", target, chosen, count)


def _preview(call: Invocation, target: str, chosen: Chosen) -> None:
    more = "more than " if chosen.full else ""
    what = "event" if chosen.count == 1 else "events"
    data = {"target": target, "count": chosen.count, "more": chosen.full}
    call.show(
        data, lambda: typer.echo(f"{more}{chosen.count:,} {what} would be told to {target} again")
    )


def _require_replay(target: str, chosen: Chosen, confirm: int | None) -> None:
    if chosen.full:
        raise RefusedByState(
            f"More than {chosen.count:,} events would be told to {target} again; take them in "
            "parts, with --since and --until."
        )
    if not chosen.count:
        raise RefusedByState(
            f"There is nothing to replay: {target} wants no such event, or is owed it already."
        )
    if confirm != chosen.count and (confirm is not None or chosen.count > CONFIRM_ABOVE):
        raise RefusedByState(
            f"{chosen.count} events would be told to {target} again; if that is right, add "
            f"--confirm {chosen.count}."
        )


def _said(call: Invocation, word: str, target: str, chosen: Chosen, count: int) -> None:
    """Say what was done; another person may have been quicker with the rest."""
    left = chosen.count - count
    data: dict[str, Any] = {"target": target, f"{word}_count": count, "left_count": left}
    rest = f"; {left:,} were changed by others meanwhile" if left else ""
    call.show(data, lambda: typer.echo(f"{word} {count:,} for {target}{rest}"))
