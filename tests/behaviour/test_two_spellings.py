"""The decision in Python and the predicate in SQL are one rule in two spellings."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from freehold.adapters.sql.sqlite import write_instant
from freehold.domain.due import DueKind, DueSpec
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
from freehold.domain.rules import Condition, Predicate, Rule, Test
from tests.behaviour.place import NOON
from tests.behaviour.till import Till, cart, wall

if TYPE_CHECKING:
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


def test_decision_and_predicate_agree(place: Place) -> None:
    kind = "timestamptz" if place.dialect == "postgres" else "text"
    place.host.run(
        "create table hold (id integer primary key, status text, token text, "
        f"due {kind}, paid integer, qty integer)"
    )
    spec = DueSpec("due", DueKind.INSTANT)
    if place.dialect == "sqlite":
        spec = DueSpec("due", DueKind.NAIVE, "UTC")
    base = cart(place).tenant.__class__()

    @settings(
        max_examples=12,
        deadline=None,
        derandomize=True,
        database=None,
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
        clock_goes_back: timedelta,
    ) -> None:
        _clear(place)
        due = DueSpec(spec.column, spec.kind, spec.zone, grace=grace, inclusive=inclusive)
        rule = cart(
            place, held=HELD_WHEN, due=due, confirmed=CONFIRMED, cancelled=CANCELLED, tenant=base
        )
        till = tills.setdefault((inclusive, grace), Till.open(place, rule))
        befores = {number: before for number, (before, _) in enumerate(drawn, start=1)}
        place.host.insert("hold", _rows(place, befores))
        place.clock.at = NOON + grace + timedelta(microseconds=0 if inclusive else 1)
        till.ledger._compiled.clear()
        till.scanner._places.clear()
        scan = till.scanner.scan(rule)
        assert scan.new_count == len(drawn)

        place.host.run("delete from hold")
        afters = {n: after for n, (_, after) in enumerate(drawn, start=1) if after is not None}
        if afters:
            place.host.insert("hold", _rows(place, afters))
        place.clock.at -= clock_goes_back
        place.host.run(f"update {place.prefix}operation set available_at = :at", at=_at(place))
        till.worker.forget_floors()
        till.worker.work(rule)
        wanted = {
            number: spelt(decided(before, after, rule, place.clock.at))
            for number, (before, after) in enumerate(drawn, start=1)
        }
        assert _ends(place) == wanted

    tills: dict[tuple[bool, timedelta], Till] = {}
    agree()
