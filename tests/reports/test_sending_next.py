"""What follows an attempt to send: the table by hand, and a provider with a memory of its own.

The provider of the property keeps its promise and nothing more; whatever goes wrong, it takes a mail
at most once, and every mail comes to rest.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freehold.domain.retries import RetryPolicy
from freehold.domain.sending import (
    CLAIMABLE,
    AttemptKind,
    Repeat,
    SendOutcome,
    SendState,
    TransportPromise,
)
from freehold.domain.sending_next import (
    EVERYONE_PAUSE,
    NOBODY_KNOWS,
    RESENT,
    USED_UP,
    Heard,
    Rest,
    Standing,
    Terms,
    planned,
    settled,
)

if TYPE_CHECKING:
    from collections.abc import Callable

NOW = datetime(2031, 5, 6, 7, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
NONE = TransportPromise("none", attempt_seconds_max=60)
REPLAYS = TransportPromise("replays", Repeat.REPLAYS, 24 * HOUR, attempt_seconds_max=60)
SHORT = TransportPromise("short", Repeat.CONFLICTS, 5 * MINUTE, attempt_seconds_max=60)
LOOKS = TransportPromise("looks", looks_up=True, indexing=10 * MINUTE, attempt_seconds_max=60)
BOTH = TransportPromise("both", Repeat.REPLAYS, HOUR, True, 10 * MINUTE, 60)
PROMISES = (NONE, REPLAYS, SHORT, LOOKS, BOTH)
MIDDLE = 0.5  # luck that leaves a delay as it is
UNKNOWN = Heard(SendOutcome.UNKNOWN)
LATER = Heard(SendOutcome.TRANSIENT, "451 later")
REFUSED = Heard(SendOutcome.REFUSED, "550 no such mailbox")
NOT_FOUND = Heard(SendOutcome.NOT_FOUND)
QUOTA = Heard(SendOutcome.TRANSIENT, "429 quota", everyone=True)


def tried(
    promise: TransportPromise,
    kind: AttemptKind = AttemptKind.SEND,
    state: SendState = SendState.READY,
    **known: object,
) -> tuple[Standing, AttemptKind, Terms]:
    """Return a send with one attempt in hand."""
    standing = replace(Standing(state, NOW), **known)  # type: ignore[arg-type]
    return standing.begun(kind, promise.name, NOW), kind, Terms(promise)


def after(heard: Heard, case: tuple[Standing, AttemptKind, Terms], now: datetime = NOW) -> Rest:
    """Return where an answer leads."""
    standing, kind, terms = case
    return settled(standing, kind, heard, terms, now, MIDDLE)


@pytest.mark.parametrize("outcome", [SendOutcome.ACCEPTED, SendOutcome.FOUND])
def test_accepted_is_the_end(outcome: SendOutcome) -> None:
    assert after(Heard(outcome), tried(NONE)) == Rest(SendState.ACCEPTED)


def test_refused_is_an_end_with_the_providers_reason() -> None:
    assert after(REFUSED, tried(NONE)) == Rest(SendState.REFUSED, "refused: 550 no such mailbox")


def test_transient_trouble_waits_by_the_delays_or_as_long_as_asked() -> None:
    waits = [after(LATER, tried(NONE, spent_count=n)).available_at for n in range(5)]
    assert waits == [NOW + timedelta(seconds=s) for s in (10, 30, 90, 270, 810)]
    asked = Heard(SendOutcome.TRANSIENT, retry_after=HOUR)
    assert after(asked, tried(NONE)).available_at == NOW + HOUR
    assert after(replace(asked, retry_after=MINUTE), tried(NONE, spent_count=3)) == Rest(
        SendState.RETRYING, "not now: ", NOW + timedelta(seconds=270)
    )


def test_attempts_are_used_up_once() -> None:
    assert after(LATER, tried(NONE, spent_count=5)).state is SendState.REVIEW
    standing = Standing(SendState.RETRYING, NOW, spent_count=6)
    assert planned(standing, Terms(NONE), NOW) == Rest(SendState.REVIEW, USED_UP)


def test_trouble_of_everyone_parks_without_an_attempt_until_a_day_is_over() -> None:
    for heard in (QUOTA, replace(REFUSED, everyone=True)):
        rest = after(heard, tried(NONE, spent_count=5))
        assert (rest.state, rest.counts) == (SendState.RETRYING, False)
        assert rest.available_at == NOW + EVERYONE_PAUSE
    late = NOW + 24 * HOUR
    assert after(QUOTA, tried(NONE), late).state is SendState.REVIEW
    in_doubt = tried(REPLAYS, AttemptKind.REPLAY, SendState.UNKNOWN)
    assert after(QUOTA, in_doubt).state is SendState.UNKNOWN
    assert NOBODY_KNOWS in str(after(QUOTA, in_doubt, late).reason)
    asked = replace(QUOTA, retry_after=5 * HOUR)
    assert after(asked, tried(NONE)).available_at == NOW + 5 * HOUR


def test_a_rate_limit_says_itself_how_long_and_is_believed_less_each_time() -> None:
    limited = replace(QUOTA, retry_after=timedelta(seconds=2))
    pauses = [
        after(replace(limited, parked_count=count), tried(NONE)).available_at
        for count in (0, 1, 2, 9, 10, 10_000)
    ]
    assert pauses == [NOW + timedelta(seconds=s) for s in (2, 2, 4, 512, 900, 900)]
    at_once = after(replace(limited, retry_after=timedelta(0)), tried(NONE))
    assert at_once.available_at == NOW + timedelta(seconds=1)


def test_unknown_is_a_persons_where_nothing_is_promised() -> None:
    rest = after(UNKNOWN, tried(NONE))
    assert (rest.state, rest.available_at) == (SendState.REVIEW, None)
    assert rest.reason == f"{NOBODY_KNOWS}, and none cannot tell"


@pytest.mark.parametrize(
    ("promise", "kind"),
    [(REPLAYS, AttemptKind.REPLAY), (SHORT, AttemptKind.REPLAY), (LOOKS, AttemptKind.LOOK_UP)],
)
def test_unknown_is_followed_by_what_is_promised(
    promise: TransportPromise, kind: AttemptKind
) -> None:
    case = tried(promise)
    rest = after(UNKNOWN, case)
    assert (rest.state, rest.available_at) == (SendState.UNKNOWN, NOW + timedelta(seconds=10))
    standing = replace(case[0], state=SendState.UNKNOWN)
    assert planned(standing, case[2], rest.available_at or NOW) is kind


def test_a_window_counts_from_the_first_attempt_with_room_for_one() -> None:
    standing = Standing(SendState.UNKNOWN, NOW, 2, 0, NOW, NOW + 3 * MINUTE, transport=SHORT.name)
    last = NOW + 4 * MINUTE - timedelta(seconds=1)
    assert planned(standing, Terms(SHORT), last) is AttemptKind.REPLAY
    over = planned(standing, Terms(SHORT), NOW + 4 * MINUTE)
    assert isinstance(over, Rest)
    assert (over.state, over.reason) == (
        SendState.REVIEW,
        f"{NOBODY_KNOWS}: its key may be forgotten by now",
    )


def test_a_window_counts_from_the_first_attempt_by_the_same_transport() -> None:
    standing = Standing(SendState.RETRYING, NOW, 2, 0, NOW, NOW, transport=NONE.name)
    for then, follows in ((REPLAYS, SendState.UNKNOWN), (NONE, SendState.REVIEW)):
        begun = standing.begun(AttemptKind.SEND, then.name, NOW + 30 * HOUR)
        rest = after(UNKNOWN, (begun, AttemptKind.SEND, Terms(then)), NOW + 30 * HOUR)
        assert rest.state is follows


def test_a_resend_by_another_transport_is_replayed_under_its_own_key() -> None:
    standing = Standing(SendState.UNKNOWN, NOW, 1, 0, NOW, NOW, transport=NONE.name)
    terms = Terms(REPLAYS, "resend")
    assert planned(standing, terms, NOW + 30 * HOUR) is AttemptKind.SEND
    begun = standing.begun(AttemptKind.SEND, REPLAYS.name, NOW + 30 * HOUR)
    again = replace(begun, state=SendState.UNKNOWN)
    assert planned(again, terms, NOW + 31 * HOUR) is AttemptKind.REPLAY


def test_a_replay_comes_at_once_where_its_window_ends_before_the_delay() -> None:
    case = tried(SHORT, AttemptKind.REPLAY, SendState.UNKNOWN, spent_count=3, first_tried_at=NOW)
    assert after(UNKNOWN, case, NOW + 3 * MINUTE).available_at == NOW + 3 * MINUTE


def test_a_window_that_is_over_is_followed_by_a_look_up_where_there_is_one() -> None:
    standing = Standing(SendState.UNKNOWN, NOW, 1, 0, NOW, NOW, transport=BOTH.name)
    assert planned(standing, Terms(BOTH), NOW) is AttemptKind.REPLAY
    assert planned(standing, Terms(BOTH), NOW + HOUR) is AttemptKind.LOOK_UP


@pytest.mark.parametrize("heard", [LATER, replace(LATER, everyone=True)])
def test_a_repeat_says_nothing_about_an_unknown_end(heard: Heard) -> None:
    case = tried(REPLAYS, AttemptKind.REPLAY, SendState.UNKNOWN, first_tried_at=NOW)
    assert after(heard, case).state is SendState.UNKNOWN
    refused = after(REFUSED, case)
    assert refused.state is SendState.REVIEW
    assert NOBODY_KNOWS in str(refused.reason)


def test_not_found_proves_nothing_before_the_index_is_sure() -> None:
    case = tried(LOOKS, AttemptKind.LOOK_UP, SendState.UNKNOWN, spent_count=1, last_tried_at=NOW)
    standing, kind, terms = replace(case[0], transport=LOOKS.name), *case[1:]
    sure_at = NOW + MINUTE + LOOKS.indexing
    early = after(NOT_FOUND, (standing, kind, terms), NOW + MINUTE)
    assert (early.state, early.available_at) == (SendState.UNKNOWN, sure_at)
    asked_early = replace(standing, begun_at=sure_at - timedelta(seconds=1))
    assert after(NOT_FOUND, (asked_early, kind, terms), sure_at).state is SendState.UNKNOWN
    rest = after(NOT_FOUND, (replace(standing, begun_at=sure_at), kind, terms), sure_at)
    assert (rest.state, rest.available_at) == (SendState.RETRYING, sure_at)


def test_look_ups_end() -> None:
    case = tried(LOOKS, AttemptKind.LOOK_UP, SendState.UNKNOWN, spent_count=1, look_count=4)
    standing, kind, terms = replace(case[0], transport=LOOKS.name), *case[1:]
    rest = after(LATER, (standing, kind, terms))
    assert (rest.state, rest.available_at) == (SendState.UNKNOWN, NOW + timedelta(seconds=810))
    rest = after(LATER, (replace(standing, look_count=6), kind, terms))
    assert (rest.state, rest.reason) == (
        SendState.REVIEW,
        f"{NOBODY_KNOWS}: the look-ups are used up",
    )


def test_what_another_transport_promised_is_of_no_use() -> None:
    standing = Standing(SendState.UNKNOWN, NOW, 1, 0, NOW, NOW, transport=REPLAYS.name)
    for promise in (BOTH, LOOKS, SHORT):
        rest = planned(standing, Terms(promise), NOW)
        assert isinstance(rest, Rest)
        assert rest.state is SendState.REVIEW
        assert "replays, which is not used any more" in str(rest.reason)
        assert planned(standing, Terms(promise, "resend"), NOW) is AttemptKind.SEND


def test_a_resend_is_bounded_and_leaves_its_mark() -> None:
    standing = Standing(SendState.UNKNOWN, NOW, 5, 0, NOW, NOW, transport=NONE.name)
    terms = Terms(NONE, "resend")
    assert planned(standing, terms, NOW) is AttemptKind.SEND
    begun = standing.begun(AttemptKind.SEND, NONE.name, NOW)
    rest = settled(begun, AttemptKind.SEND, UNKNOWN, terms, NOW, MIDDLE)
    assert rest.state is SendState.REVIEW
    rest = settled(begun, AttemptKind.SEND, Heard(SendOutcome.ACCEPTED), terms, NOW, MIDDLE)
    assert rest == Rest(SendState.ACCEPTED, RESENT)


# --------------------------------------------------------------------------------- the property


@dataclass
class Provider:
    """One provider, which keeps its promise and nothing more."""

    promise: TransportPromise
    accepted_at: list[datetime] = field(default_factory=list)

    def take(self, at: datetime) -> bool:
        """Take the mail, or know its key; tell whether a copy came into being."""
        knows = [one for one in self.accepted_at if at < one + self.promise.window]
        if self.promise.repeat is not Repeat.SENDS and knows:
            return False
        self.accepted_at.append(at)
        return True

    def find(self, at: datetime, lag: float) -> SendOutcome:
        """Look the mail up; the index lags by a share of what was promised at most."""
        indexed = any(one + lag * self.promise.indexing <= at for one in self.accepted_at)
        return SendOutcome.FOUND if indexed else SendOutcome.NOT_FOUND


@dataclass
class World:
    """One mail, its providers, and everything that can go wrong, as drawn."""

    draw: Callable[[st.SearchStrategy[object]], object]
    terms: Terms
    now: datetime = NOW
    standing: Standing = Standing(SendState.READY, NOW)  # noqa: RUF009 -- it is frozen
    handed_count: int = 0
    providers: dict[str, Provider] = field(
        default_factory=lambda: {one.name: Provider(one) for one in PROMISES}
    )

    def chance(self, most: int) -> int:
        number = self.draw(st.integers(0, most))
        assert isinstance(number, int)
        return number

    def step(self) -> Rest:
        """Live through one claim; return where it left the send."""
        if self.chance(9) == 0:
            self.terms = replace(self.terms, promise=PROMISES[self.chance(4)])
        plan = planned(self.standing, self.terms, self.now)
        if isinstance(plan, Rest):
            return plan
        begun = self.standing.begun(plan, self.terms.promise.name, self.now)
        provider = self.providers[self.terms.promise.name]
        heard = self.look(provider) if plan is AttemptKind.LOOK_UP else self.hand_over(provider)
        self.standing = begun
        if heard is None:  # the process was lost; its lease ends later
            self.now += 2 * self.terms.attempt_max
            return Rest(SendState.UNKNOWN, "lost", self.now)
        return settled(begun, plan, heard, self.terms, self.now, self.chance(10) / 10.1)

    def hand_over(self, provider: Provider) -> Heard | None:
        self.handed_count += 1
        share = self.chance(10) / 10
        at, self.now = self.now + share * self.terms.attempt_max, self.now + self.terms.attempt_max
        what = self.chance(8)
        if what <= 2:
            provider.take(at)
        return (
            Heard(SendOutcome.ACCEPTED),
            UNKNOWN,
            None,
            UNKNOWN,
            None,
            LATER,
            REFUSED,
            QUOTA,
            replace(LATER, retry_after=HOUR),
        )[what]

    def look(self, provider: Provider) -> Heard | None:
        found = Heard(provider.find(self.now, self.chance(10) / 10))
        self.now += self.chance(10) / 10 * self.terms.attempt_max
        return (found, found, found, LATER, QUOTA, None)[self.chance(5)]

    def rest(self, rest: Rest) -> None:
        """Wait until the send is claimed again."""
        standing = replace(self.standing, state=rest.state)
        if not rest.counts and standing.look_count:
            standing = replace(standing, look_count=standing.look_count - 1)
        elif not rest.counts:
            standing = replace(standing, spent_count=standing.spent_count - 1)
        self.standing = standing
        assert rest.available_at is not None, "an open send rests"
        assert rest.available_at <= self.now + 24 * HOUR
        late = (0, 0, 0, 1, 7, 30, 600, 3600, 40_000)[self.chance(8)]
        self.now = max(self.now, rest.available_at) + timedelta(seconds=late)
        if self.chance(2) == 0:
            self.now = max(self.now, self.edge())

    def edge(self) -> datetime:
        """Return an instant just before a promise begins or ends to hold."""
        promise, standing = self.terms.promise, self.standing
        forgets_at = (standing.first_tried_at or self.now) + promise.window
        sure_at = (standing.last_tried_at or self.now) + self.terms.attempt_max + promise.indexing
        return (forgets_at, sure_at)[self.chance(1)] - timedelta(seconds=self.chance(30))


MANY = 10_000 if os.environ.get("FREEHOLD_PROOF") == "long" else 3_000
CASES = given(st.data(), st.sampled_from(PROMISES), st.sampled_from(["review", "resend"]))


@settings(max_examples=300, deadline=None)
@CASES
def test_whatever_happens_a_mail_is_taken_once_and_comes_to_rest(
    data: st.DataObject, promise: TransportPromise, on_unknown: str
) -> None:
    live(data, promise, on_unknown)


@pytest.mark.proof
@settings(max_examples=MANY, deadline=None)
@CASES
def test_the_same_many_times_over(
    data: st.DataObject, promise: TransportPromise, on_unknown: str
) -> None:
    live(data, promise, on_unknown)


def live(data: st.DataObject, promise: TransportPromise, on_unknown: str) -> None:
    """Live through one mail to its rest."""
    terms = Terms(promise, on_unknown, RetryPolicy())  # type: ignore[arg-type]
    world = World(data.draw, terms)
    for _ in range(300):
        rest = world.step()
        if rest.state not in CLAIMABLE:
            break
        world.rest(rest)
    else:
        pytest.fail("it never came to rest")
    taken = [one for provider in world.providers.values() for one in provider.accepted_at]
    if rest.state is SendState.ACCEPTED:
        assert taken
    if on_unknown == "review":  # resend gives up on what an earlier transport may have done
        assert len(taken) <= 1
        assert not taken or rest.state in (SendState.ACCEPTED, SendState.REVIEW)
    assert world.standing.spent_count <= 6 or not rest.counts
