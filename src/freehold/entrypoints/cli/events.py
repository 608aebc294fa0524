"""`freehold events ...`: see events and targets, and act on them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from freehold.domain.errors import UsageError
from freehold.domain.inventory import ID_MAX
from freehold.entrypoints.cli.audit import instant_of
from freehold.entrypoints.cli.context import Invocation, invocation
from freehold.entrypoints.cli.events_act import discard, pause, replay, resume, retry

if TYPE_CHECKING:
    from freehold.ports.event_insight import SeenEvent, Standing
    from freehold.ports.insight import Reading

events = typer.Typer(help="Events, and the targets that are told of them.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (pause, resume, retry, discard, replay):
        events.command()(command)
    app.add_typer(events, name="events")


@contextmanager
def _reading(context: typer.Context) -> Iterator[tuple[Invocation, Reading]]:
    call = invocation(context)
    with call.ledger() as ledger, ledger.reading() as reading:
        yield call, reading


@events.command("list")
def list_(
    context: typer.Context,
    target: Annotated[str | None, typer.Option("--target", help="One target only.")] = None,
    state: Annotated[
        str | None,
        typer.Option(
            "--state", help="waiting, retrying, dead, delivered, discarded or kept, and no other."
        ),
    ] = None,
    rule: Annotated[str | None, typer.Option("--rule", "-r", help="One rule only.")] = None,
    tenant: Annotated[str | None, typer.Option("--tenant", help="One tenant only.")] = None,
    key: Annotated[str | None, typer.Option("--key", help="About one hold only.")] = None,
    since: Annotated[
        str | None, typer.Option("--since", help="Made since: 7d, 12h, or an instant.")
    ] = None,
    after: Annotated[
        int | None,
        typer.Option("--after", min=1, max=ID_MAX, help="Go on behind this, as a list ends with."),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000, help="How many events.")] = 50,
) -> None:
    """List events with what each target has of them, the newest first.

    What waits, is tried again or is dead comes oldest first. A list looks at 10,000 events or so,
    and says where to go on.

    Examples: freehold events list · freehold events list --target shop --state dead ·
    freehold events list --rule cart --key 4711
    """
    from freehold.entrypoints.cli.events_view import list_data, print_list
    from freehold.ports.event_insight import EventsAsked

    standing = None if state is None else _standing(state)
    with _reading(context) as (call, reading):
        _require_target(reading, target)
        start = None if since is None else instant_of(since, reading.now)
        asked = EventsAsked(target, standing, rule, tenant, key, start, after, limit)
        found, now = reading.events.find(asked), reading.now
        states = reading.events.states()
    call.show(list_data(found), lambda: print_list(found, states, now, asked))


def _standing(text: str) -> Standing:
    from freehold.ports.event_insight import Standing

    try:
        return Standing(text)
    except ValueError as error:
        known = ", ".join(Standing)
        raise UsageError(f"There is no state {text!r}; known states: {known}.") from error


def _require_target(reading: Reading, name: str | None) -> None:
    known = reading.events.states()
    if name is not None and name not in known:
        some = ", ".join(known) or "there is none yet"
        raise UsageError(f"There is no target {name!r}; known targets: {some}.")


@events.command()
def show(
    context: typer.Context,
    event: Annotated[
        str, typer.Argument(metavar="EVENT", help="Its number in a list, or its event key.")
    ],
) -> None:
    """Show one event: what is sent, what each target has of it, and every hand-over that failed.

    A key is looked for among the newest 100,000 events; a number is found in any case.

    Examples: freehold events show 17 ·
    freehold events show cart:3f2b8c54-0c55-4d3e-9a5b-5a0b6a9d8c11:1:hold.expired.v1
    """
    from freehold.entrypoints.cli.events_view import event_data, print_event

    with _reading(context) as (call, reading):
        seen = _seen(reading, event)
        failures, now = reading.events.failures(seen.id), reading.now
        states = reading.events.states()
    call.show(event_data(seen, failures), lambda: print_event(seen, states, failures, now))


def _seen(reading: Reading, text: str) -> SeenEvent:
    if text.isascii() and text.isdigit():
        found = reading.events.read(int(text)) if int(text) <= ID_MAX else None
    else:
        found = reading.events.look_up(text)
    if found is None:
        raise UsageError(
            f"There is no event {text!r} any more, or among the newest; `freehold events list --key` "
            "and `freehold why` take the key of a hold."
        )
    return found


@events.command()
def targets(context: typer.Context) -> None:
    """Show the targets: how each stands, what waits for it and since when, what is dead.

    Examples: freehold events targets · freehold events targets --json
    """
    from freehold.application.status import COUNT_MOST
    from freehold.entrypoints.cli.targets_view import print_targets, target_data

    with _reading(context) as (call, reading):
        found, now = reading.events.targets(COUNT_MOST + 1), reading.now
    call.show([target_data(one, now) for one in found], lambda: print_targets(found, now))
