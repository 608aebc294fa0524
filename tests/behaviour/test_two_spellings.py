"""The decision in Python and the predicate in SQL are one rule in two spellings."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from freehold.adapters.sql.sqlite import write_instant
from freehold.domain.expiry import (
    Decision,
    Defer,
    ExpireHold,
    HoldRow,
    Release,
    RowAbsence,
    Skip,
    ToReview,
    decide_expiry,
)
from freehold.domain.rules import Condition, Predicate, Rule, TenantSource, Test
from tests.behaviour.place import NOON
from tests.behaviour.till import Till, cart, due_spec, wall

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.behaviour.place import Place

MOMENTS = [timedelta(seconds=s) for s in (-3_600, -1, 0, 1, 3_600)]
TINY = timedelta(microseconds=1)
STATES = ["held", "kept", "expired", "paid", "gone", "new", None]
TOKENS = ["a", "b", "A", " a", "", None]
HELD_WHEN = Predicate(
    (
        (Condition("status", Test.EQUALS, ("held",)), Condition("paid", Test.IS_NULL)),
        (Condition("status", Test.IN, ("kept", "new")), Condition("qty", Test.LESS, (5,))),
    )
)
CONFIRMED = Predicate(((Condition("paid", Test.IS_NOT_NULL),),))
CANCELLED = Predicate(((Condition("status", Test.EQUALS, ("gone",)),),))


class State(NamedTuple):
    """The columns of one row, due as an offset from noon."""

    status: str | None
    token: str | None
    due: timedelta | None
    paid: int | None
    qty: int | None

    @property
    def is_held(self) -> bool:
        if self.status == "held" and self.paid is None:
            return True
        return self.status in ("kept", "new") and self.qty is not None and self.qty < 5

    def due_text(self) -> str | None:
        return None if self.due is None else wall(NOON + self.due)

    @property
    def identity(self) -> tuple[str | None, ...]:
        return (self.due_text(), self.token)

    @property
    def guard(self) -> tuple[str | None, ...]:
        paid, qty = (None if one is None else str(one) for one in (self.paid, self.qty))
        return (self.status, paid, qty)


dues = st.none() | st.builds(
    lambda moment, step: moment + step * TINY, st.sampled_from(MOMENTS), st.integers(-1, 1)
)
states = st.builds(
    State,
    st.sampled_from(STATES),
    st.sampled_from(TOKENS),
    dues,
    st.none() | st.just(1),
    st.none() | st.integers(3, 6),
)
held_states = st.builds(
    State,
    st.sampled_from(["held", "kept"]),
    st.sampled_from(TOKENS),
    st.sampled_from(MOMENTS[:3]),
    st.none(),
    st.just(3),
)


@st.composite
def changes(draw: st.DrawFn) -> tuple[State, State | None]:
    """Draw a due, held row, and what the host leaves of it: nothing, one other column, or all."""
    before = draw(held_states)
    kind = draw(st.sampled_from(["same", "deleted", "one column", "any"]))
    if kind == "deleted":
        return before, None
    other = draw(states)
    if kind == "one column":
        name = draw(st.sampled_from(State._fields))
        return before, before._replace(**{name: getattr(other, name)})
    return before, before if kind == "same" else other


def decided(before: State, after: State | None, rule: Rule, now: datetime) -> Decision:
    """Decide in Python alone, from the raw values."""
    assert before.due is not None
    command = ExpireHold("1", before.identity, before.guard, NOON + before.due)
    if after is None:
        return decide_expiry(command, RowAbsence.GONE, rule.due, rule.again, now)
    row = HoldRow(
        after.identity,
        after.guard,
        after.is_held,
        confirmed=after.paid is not None,
        cancelled=after.status == "gone",
        expired=after.status == "expired",
    )
    return decide_expiry(command, row, rule.due, rule.again, now)


def spelt(decision: Decision) -> str:
    """Return the decision as the ledger writes it."""
    match decision:
        case Release():
            return "expired"
        case Skip(reason):
            return reason.value
        case Defer(reason):
            return f"deferred {reason.value}"
        case ToReview():
            return "dead"


def _rows(place: Place, numbered: dict[int, State]) -> list[dict[str, object]]:
    zone = "+00" if place.dialect == "postgres" else ""
    return [
        {
            "id": number,
            "status": state.status,
            "token": state.token,
            "due": None if state.due is None else f"{state.due_text()}{zone}",
            "paid": state.paid,
            "qty": state.qty,
        }
        for number, state in numbered.items()
    ]


def _ends(place: Place) -> dict[int, str]:
    records = place.host.run(
        f"select hold_key, coalesce(reason, outcome) from {place.prefix}record"
    )
    open_ones = place.host.run(
        f"select hold_key, state || ' ' || coalesce(reason, '') from {place.prefix}operation"
    )
    return {int(key): end for key, end in [*records, *open_ones]}


def _at(place: Place) -> object:
    """Return the clock's reading as the ledger writes it."""
    at = place.clock.at
    return at if place.dialect == "postgres" else write_instant(at)


def _clear(place: Place) -> None:
    for table in ("operation", "record", "outbox"):
        place.host.run(f"delete from {place.prefix}{table}")
    place.host.run("delete from hold")


@dataclass
class Trial:
    """One database in which drawn rows are found, changed by the host, and worked through."""

    place: Place
    till: Till

    def find(self, rule: Rule, befores: Sequence[State]) -> None:
        _clear(self.place)
        self.place.host.insert("hold", _rows(self.place, dict(enumerate(befores, start=1))))
        self.till.scanner._places.clear()
        self.till.scanner.scan(rule)
        found = self.place.host.run(f"select count(*) from {self.place.prefix}operation")
        assert found == [(len(befores),)]

    def change(self, afters: Sequence[State | None]) -> None:
        self.place.host.run("delete from hold")
        left = {n: after for n, after in enumerate(afters, start=1) if after is not None}
        if left:
            self.place.host.insert("hold", _rows(self.place, left))

    def work(self, rule: Rule, clock_goes_back: timedelta) -> dict[int, str]:
        self.place.clock.at -= clock_goes_back
        sql = f"update {self.place.prefix}operation set available_at = :at"
        self.place.host.run(sql, at=_at(self.place))
        self.till.worker.forget_floors()
        self.till.worker.work(rule)
        return _ends(self.place)


def _open(place: Place) -> Trial:
    kind = "timestamptz" if place.dialect == "postgres" else "text"
    place.host.run(
        "create table hold (id integer primary key, status text, token text, "
        f"due {kind}, paid integer, qty integer)"
    )
    return Trial(place, Till.open(place, cart(place)))


def test_decision_and_predicate_agree(place: Place) -> None:
    trial = _open(place)

    @settings(
        max_examples=12,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],  # shrinking a list of rows through a database takes minutes
        suppress_health_check=list(HealthCheck),
    )
    @given(
        st.lists(changes(), min_size=30, max_size=60),
        st.booleans(),
        st.sampled_from([timedelta(0), timedelta(minutes=5)]),
        st.sampled_from([timedelta(0), TINY, timedelta(seconds=2)]),
    )
    def agree(
        drawn: list[tuple[State, State | None]],
        inclusive: bool,
        grace: timedelta,
        back: timedelta,
    ) -> None:
        rule = cart(
            place,
            held=HELD_WHEN,
            due=due_spec(place, grace=grace, inclusive=inclusive),
            confirmed=CONFIRMED,
            cancelled=CANCELLED,
            tenant=TenantSource(),
        )
        place.clock.at = NOON + grace + (timedelta(0) if inclusive else TINY)
        trial.find(rule, [before for before, _ in drawn])
        trial.change([after for _, after in drawn])
        ends = trial.work(rule, back)
        for number, (before, after) in enumerate(drawn, start=1):
            wanted = spelt(decided(before, after, rule, place.clock.at))
            assert ends[number] == wanted, (before, after)

    agree()
