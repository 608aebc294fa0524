"""`freehold review ...`: what a person does with what Freehold gave up on.

*Not here*: how strays are read and shown (`review_strays`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from freehold.entrypoints.cli.context import Invocation, invocation, people
from freehold.entrypoints.cli.review_strays import (
    ReviewId,
    data_of,
    print_list,
    print_one,
    review_id,
)

if TYPE_CHECKING:
    from freehold.application.review import Preview, Review
    from freehold.application.stray_review import StrayReview
    from freehold.domain.rules import Rule
    from freehold.ports.ledger import FailedAttempt, InReview
    from freehold.ports.strays import Stray
    from freehold.settings import Settings

review = typer.Typer(help="What waits for a person: operations and strays.", no_args_is_help=True)

RuleName = Annotated[str, typer.Option("--rule", "-r", help="The rule.")]
AnyRule = Annotated[str | None, typer.Option("--rule", "-r", help="The rule; not for strays.")]
Ids = Annotated[
    list[ReviewId] | None,
    typer.Argument(parser=review_id, metavar="ID", help="Ids, as `review list` shows them."),
]
Matching = Annotated[
    str | None,
    typer.Option("--matching", help="Instead of ids: all whose reason or error has this text."),
]
Confirm = Annotated[
    int | None, typer.Option("--confirm", help="With --matching: how many you expect.")
]
By = Annotated[str, typer.Option("--by", help="Who you are; kept in the action log.")]
Reason = Annotated[str, typer.Option("--reason", help="Why; kept in the action log.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(review, name="review")


@contextmanager
def _opened(context: typer.Context) -> Iterator[tuple[Invocation, Settings, Review]]:
    from freehold.adapters.system import Onwards
    from freehold.application.review import Review

    call = invocation(context)
    settings = call.settings()
    with call.ledger(settings) as ledger:
        yield call, settings, Review(ledger, Onwards())


@review.command("list")
def list_(
    context: typer.Context,
    rule: Annotated[str | None, typer.Option("--rule", "-r", help="One rule only.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000)] = 50,
) -> None:
    """List what waits for a person, oldest first: operations, then strays.

    A stray is a payload of the queue that nobody can read.

    Example: freehold review list --rule cart
    """
    with _opened(context) as (call, settings, reviews):
        rules = settings.rules if rule is None else (settings.rule(rule),)
        found = [one for each in rules for one in reviews.listed(each, limit)]
        strays = [] if rule is not None else _strays(reviews).listed(limit)
    data = [*(_data(one) for one in found), *(data_of(one) for one in strays)]
    call.show(data, lambda: _print_all(found, strays))


def _strays(reviews: Review) -> StrayReview:
    from freehold.application.stray_review import StrayReview

    return StrayReview(reviews.ledger)


def _print_all(found: list[InReview], strays: list[Stray]) -> None:
    if not found and not strays:
        typer.echo("nothing waits in review")
    if found:
        _print_list(found)
    if found and strays:
        typer.echo()
    if strays:
        print_list(strays)


def _print_list(found: list[InReview]) -> None:
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("id", "rule", "tenant", "key", "state", "attempts", "what happened"):
        table.add_column(name, justify="right" if name in ("id", "attempts") else "left")
    for one in found:
        table.add_row(
            str(one.id),
            one.rule,
            one.tenant or "-",
            one.hold_key,
            one.state,
            str(one.attempt),
            one.failure.message if one.failure else one.reason or "",
        )
    people().print(table)


def _data(one: InReview) -> dict[str, Any]:
    return {
        "id": str(one.id),
        "kind": "operation",
        "operation_key": f"{one.rule}:{one.digest}",
        "rule": one.rule,
        "tenant": one.tenant,
        "key": one.hold_key,
        "due_at": None if one.due_at is None else one.due_at.isoformat(),
        "generation": one.generation,
        "state": one.state,
        "reason": one.reason,
        "attempt": one.attempt,
        "class": None if one.failure is None else one.failure.failure_class.value,
        "code": None if one.failure is None else one.failure.code,
        "message": None if one.failure is None else one.failure.message,
        "found_at": one.found_at.isoformat(),
        "changed_at": one.changed_at.isoformat(),
    }


@review.command()
def show(
    context: typer.Context,
    one_id: Annotated[
        ReviewId, typer.Argument(parser=review_id, metavar="ID", help="As `review list` shows it.")
    ],
) -> None:
    """Show one operation in review with every attempt, or one stray with its bytes.

    Examples: freehold review show 17 · freehold review show stray-12
    """
    with _opened(context) as (call, _, reviews):
        if one_id.is_stray:
            stray = _strays(reviews).show(one_id.number)
            call.show(data_of(stray), lambda: print_one(stray))
            return
        one, attempts = reviews.show(one_id.number)
    data = {**_data(one), "attempts": [_attempt(each) for each in attempts]}

    def text() -> None:
        for name, value in _data(one).items():
            typer.echo(f"{name:<14} {'-' if value is None else value}")
        for each in attempts:
            at = f"{each.failed_at:%Y-%m-%d %H:%M:%S}Z"
            typer.echo(f"attempt {each.attempt:<6} {at}  {each.failure.message}")

    call.show(data, text)


def _attempt(each: FailedAttempt) -> dict[str, Any]:
    return {
        "attempt": each.attempt,
        "class": each.failure.failure_class.value,
        "code": each.failure.code,
        "message": each.failure.message,
        "failed_at": each.failed_at.isoformat(),
    }


@review.command()
def preview(
    context: typer.Context, rule: RuleName, ids: Ids = None, matching: Matching = None
) -> None:
    """Tell what requeuing would lead to if it ran now; changes nothing.

    Example: freehold review preview --rule cart 17 18
    """
    with _opened(context) as (call, settings, reviews):
        one = settings.rule(rule)
        outlooks = reviews.preview(one, _chosen(reviews, one, ids, matching))
    data = [{"id": str(each.operation.id), "outlook": each.outlook} for each in outlooks]
    call.show(data, lambda: _print_outlooks(outlooks))


def _print_outlooks(outlooks: list[Preview]) -> None:
    for each in outlooks:
        typer.echo(f"{each.operation.id:>8}  {each.operation.hold_key:<24} {each.outlook}")
    typer.echo(f"{len(outlooks)} in review would be requeued")


@review.command()
def requeue(
    context: typer.Context,
    rule: RuleName,
    by: By,
    reason: Reason,
    ids: Ids = None,
    matching: Matching = None,
    confirm: Confirm = None,
) -> None:
    """Give operations a fresh set of attempts; the old attempts stay on record.

    Examples: freehold review requeue --rule cart 17 --by ann --reason "index mended" ·
    freehold review requeue --rule cart --matching "foreign key" --confirm 12 --by ann --reason ...
    """
    _act(context, "requeue", rule, by, reason, ids, matching, confirm)


@review.command()
def discard(
    context: typer.Context,
    by: By,
    reason: Reason,
    rule: AnyRule = None,
    ids: Ids = None,
    matching: Matching = None,
    strays: Annotated[
        bool, typer.Option("--strays", help="With --matching: strays, by reason or queue.")
    ] = False,
    confirm: Confirm = None,
) -> None:
    """Set dead operations or strays aside.

    Operations stay visible until their hold needs nothing any more. The bytes of a stray stay out
    of review however often they come again.

    Examples: freehold review discard --rule cart 17 --by ann --reason "test data" ·
    freehold review discard stray-12 --by ann --reason "a misled publisher" ·
    freehold review discard --strays --matching "not JSON" --confirm 40 --by ann --reason ...
    """
    from freehold.domain.errors import UsageError

    named = [one.number for one in ids or () if one.is_stray]
    if strays or named:
        if rule is not None or len(named) != len(ids or ()):
            raise UsageError(
                "Strays belong to no rule; discard them without --rule and operations."
            )
        _discard_strays(context, named, by, reason, matching, confirm)
        return
    if rule is None:
        raise UsageError("Say --rule NAME for operations, or name strays, as `review list` shows.")
    _act(context, "discard", rule, by, reason, ids, matching, confirm)


def _discard_strays(
    context: typer.Context,
    ids: list[int],
    by: str,
    reason: str,
    matching: str | None,
    confirm: int | None,
) -> None:
    from freehold.application.review import Person

    person = Person(by, reason)
    with _opened(context) as (call, _, reviews):
        all_strays = _strays(reviews)
        _require_one_way(ids, matching)
        if ids:
            all_strays.require(ids)
        chosen = ids or all_strays.chosen(matching or "")
        _require_count(matching, confirm, len(chosen), "discard", "stray")
        count = all_strays.discard(chosen, person)
    _show_count(call, "discarded", count, len(set(chosen)) - count)


def _act(
    context: typer.Context,
    verb: str,
    rule: str,
    by: str,
    reason: str,
    ids: list[ReviewId] | None,
    matching: str | None,
    confirm: int | None,
) -> None:
    from freehold.application.review import Person

    person = Person(by, reason)
    with _opened(context) as (call, settings, reviews):
        one = settings.rule(rule)
        chosen = _chosen(reviews, one, ids, matching)
        _require_count(matching, confirm, len(chosen), verb)
        act = reviews.requeue if verb == "requeue" else reviews.discard
        count = act(one, chosen, person)
    _show_count(call, "requeued" if verb == "requeue" else "discarded", count, len(chosen) - count)


def _show_count(call: Invocation, word: str, count: int, left: int) -> None:
    call.show(
        {word: count, "left": left},
        lambda: typer.echo(f"{word} {count}" + (f"; {left} not in review" if left else "")),
    )


def _chosen(
    reviews: Review, rule: Rule, ids: list[ReviewId] | None, matching: str | None
) -> list[int]:
    from freehold.domain.errors import UsageError

    _require_one_way(ids, matching)
    if not ids:
        return reviews.chosen(rule, matching or "")
    if any(one.is_stray for one in ids):
        raise UsageError("A stray names no operation; it can only be shown and discarded.")
    numbers = [one.number for one in ids]
    reviews.require(rule, numbers)
    return numbers


def _require_one_way(ids: Sequence[object] | None, matching: str | None) -> None:
    from freehold.domain.errors import UsageError

    if bool(ids) == (matching is not None):
        raise UsageError("Name either ids or --matching TEXT, as `review list` shows.")


def _require_count(
    matching: str | None, confirm: int | None, count: int, verb: str, what: str = "operation"
) -> None:
    from freehold.domain.errors import RefusedByState

    if matching is None or confirm == count:
        return
    if not count:
        raise RefusedByState(
            "Nothing in review matches; `freehold review list` shows what is there."
        )
    some, them = (f"1 {what} matches", "it") if count == 1 else (f"{count} {what}s match", "them")
    look = "preview" if what == "operation" else "list"
    raise RefusedByState(
        f"{some}; look at `freehold review {look}`, then {verb} {them} with --confirm {count}."
    )
