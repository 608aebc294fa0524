"""The contract of `ports.inventory.OwnHolds`."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from freehold.domain.errors import UsageError
from freehold.domain.events import EventType
from freehold.domain.inventory import (
    Hold,
    HoldStatus,
    ImportedHold,
    NewHold,
    NewUnit,
    Renewal,
    Stay,
    Tenant,
    Unit,
)
from freehold.domain.names import digest
from freehold.ports.inventory import Imported, ImportRefusal, Written
from freehold.ports.ledger import Ledger
from freehold.testing.contracts.ground import NOW, SECOND, Ground, only, raised
from freehold.testing.contracts.inventory import with_units

DAY = timedelta(days=1)
UNTIL = NOW + timedelta(minutes=15)
OTHER_TOKEN = UUID(int=99)


def token(number: int) -> UUID:
    """Return some token."""
    return UUID(int=number)


def stay(first_day: float, last_day: float) -> Stay:
    """Return a stay, counted in days from now."""
    return Stay(NOW + first_day * DAY, NOW + last_day * DAY)


def new_hold(unit: Unit, number: int, taken: Stay | None = None, **changes: Any) -> NewHold:
    """Return a hold about to be granted; its number makes its token."""
    fields = {"tenant": unit.tenant, "unit_id": unit.id, "hold_until": UNTIL, "stay": taken}
    return NewHold(**{**fields, "token": token(number), **changes})


def placed(ledger: Ledger, *new: NewHold) -> list[Hold]:
    """Place holds and commit."""
    with ledger.transaction() as tx:
        found = [tx.own_holds.place(one) for one in new]
    return [one for one in found if one is not None]


class PlacingContract:
    """Give the fixture `ground`."""

    def test_what_was_placed_is_read(self, ground: Ground) -> None:
        ledger = ground.open()
        (unit,) = with_units(ledger, "1")
        with ledger.transaction() as tx:
            hold = tx.own_holds.place(new_hold(unit, 1, stay(1, 2), reference="r1"))
            assert hold is not None
            assert (hold.tenant, hold.unit_id, hold.reference) == ("anna", unit.id, "r1")
            assert (hold.status, hold.stay) == (HoldStatus.HELD, stay(1, 2))
            assert (hold.hold_until, hold.token) == (UNTIL, token(1))
            assert (hold.created_at, hold.changed_at, hold.expired_at) == (NOW, NOW, None)
            assert list(tx.own_holds.read([hold.id, 10**9])) == [hold]
            assert list(tx.own_holds.granted([token(1), token(2)])) == [hold]
            assert list(tx.own_holds.referenced("anna", ["r1", "r2"])) == [hold]
            assert list(tx.own_holds.referenced("bert", ["r1"])) == []
        row = only(ground.back.rows("hold"))
        assert (row["status"], row["hold_until"], row["starts_at"]) == ("held", UNTIL, NOW + DAY)

    def test_stays_touch_but_never_overlap(self, ground: Ground) -> None:
        ledger = ground.open()
        one, two = with_units(ledger, "1", "2")
        first, *_ = placed(ledger, new_hold(one, 1, stay(2, 4)), new_hold(two, 2, stay(2, 4)))
        with ledger.transaction() as tx:
            for taken in (stay(1, 2.5), stay(2, 4), stay(2.5, 3), stay(3.5, 9), stay(1, 9), None):
                assert tx.own_holds.place(new_hold(one, 3, taken)) is None, taken
                assert list(tx.own_holds.in_way(one.id, taken, 9)) == [first], taken
            for number, taken in enumerate((stay(1, 2), stay(4, 5)), 4):
                assert list(tx.own_holds.in_way(one.id, taken, 9)) == []
                assert tx.own_holds.place(new_hold(one, number, taken)) is not None
        assert len(ground.back.rows("hold")) == 4

    def test_a_hold_without_a_stay_takes_the_unit_for_ever(self, ground: Ground) -> None:
        ledger = ground.open()
        (unit,) = with_units(ledger, "1")
        (whole,) = placed(ledger, new_hold(unit, 1))
        with ledger.transaction() as tx:
            for taken in (None, stay(1, 2), stay(-9999, 9999)):
                assert tx.own_holds.place(new_hold(unit, 2, taken)) is None
                assert list(tx.own_holds.in_way(unit.id, taken, 9)) == [whole]

    def test_what_is_in_the_way_comes_in_the_order_of_its_ends(self, ground: Ground) -> None:
        ledger = ground.open()
        (unit,) = with_units(ledger, "1")
        days = (5, 1, 3, 9)
        found = placed(ledger, *(new_hold(unit, n, stay(n, n + 2)) for n in days))
        by_day = dict(zip(days, found, strict=True))
        with ledger.transaction() as tx:
            in_way = tx.own_holds.in_way(unit.id, stay(2, 6), 9)
            assert list(in_way) == [by_day[1], by_day[3], by_day[5]]
            assert list(tx.own_holds.in_way(unit.id, stay(2, 6), 2)) == [by_day[1], by_day[3]]
            assert list(tx.own_holds.in_way(unit.id, None, 9)) == [by_day[n] for n in sorted(days)]

    def test_what_ended_is_in_nobodys_way(self, ground: Ground) -> None:
        ledger = ground.open()
        (unit,) = with_units(ledger, "1")
        placed(ledger, new_hold(unit, 1, stay(1, 2)))
        with ledger.transaction() as tx:
            assert tx.own_holds.cancel(token(1)) is not None
            assert list(tx.own_holds.in_way(unit.id, stay(1, 2), 9)) == []
            assert tx.own_holds.place(new_hold(unit, 2, stay(1, 2))) is not None

    def test_a_reference_stands_once_in_its_tenant(self, ground: Ground) -> None:
        ledger = ground.open()
        one, two = with_units(ledger, "1", "2")
        (foreign,) = with_units(ledger, "1", tenant="bert")
        placed(ledger, new_hold(one, 1, reference="r"))
        with ledger.transaction() as tx:
            assert tx.own_holds.place(new_hold(two, 2, reference="r")) is None
            assert tx.own_holds.place(new_hold(foreign, 3, reference="r")) is not None

    def test_only_units_in_use_are_granted(self, ground: Ground) -> None:
        ledger = ground.open()
        (unit,) = with_units(ledger, "1")
        with_units(ledger, "1", tenant="bert")
        with ledger.transaction() as tx:
            tx.units.add([NewUnit("anna", "shut", active=False)])
            (shut,) = tx.units.named("anna", ["shut"])
            assert tx.own_holds.place(new_hold(shut, 1)) is None
            assert tx.own_holds.place(new_hold(unit, 1, unit_id=10**9)) is None
            assert tx.own_holds.place(new_hold(unit, 1, tenant="bert")) is None
            tx.tenants.set([Tenant("anna", "anna", active=False)])
            assert tx.own_holds.place(new_hold(unit, 1)) is None
        assert ground.back.rows("hold") == []

    def test_locked_holds_are_read_in_id_order(self, ground: Ground) -> None:
        ledger = ground.open()
        (unit,) = with_units(ledger, "1")
        found = placed(ledger, *(new_hold(unit, n, stay(n, n + 1)) for n in (1, 2)))
        with ledger.transaction() as tx:
            assert list(tx.own_holds.lock([found[1].id, 10**9, found[0].id])) == found

    def test_find_pages_in_id_order(self, ground: Ground) -> None:
        ledger = ground.open()
        one, two = with_units(ledger, "1", "2")
        (foreign,) = with_units(ledger, "1", tenant="bert")
        places = ((one, 1), (two, 1), (one, 2), (one, 3), (foreign, 1))
        new = [new_hold(unit, n, stay(day, day + 1)) for n, (unit, day) in enumerate(places, 1)]
        ids = [hold.id for hold in placed(ledger, *new)]
        with ledger.transaction() as tx:
            tx.own_holds.confirm(token(3))
            find = tx.own_holds.find
            held, confirmed = [HoldStatus.HELD], [HoldStatus.CONFIRMED]
            assert [h.id for h in find(0, 3)] == ids[:3]
            assert [h.id for h in find(ids[2], 9)] == ids[3:]
            assert [h.id for h in find(0, 3, tenant="anna")] == ids[:3]
            assert [h.id for h in find(ids[2], 3, tenant="anna")] == [ids[3]]
            assert [h.id for h in find(0, 9, tenant="anna", statuses=held)] == [
                ids[n] for n in (0, 1, 3)
            ]
            assert [h.id for h in find(0, 9, unit_id=one.id)] == [ids[n] for n in (0, 2, 3)]
            assert [h.id for h in find(0, 9, unit_id=one.id, statuses=confirmed)] == [ids[2]]
            with raised(UsageError):
                find(0, 9, statuses=held)


class ChangingContract:
    """Give the fixture `ground`."""

    def test_renew_gives_a_new_end_and_a_new_token(self, ground: Ground) -> None:
        ledger = ground.open()
        (unit,) = with_units(ledger, "1")
        placed(ledger, new_hold(unit, 1))
        ground.set_now(NOW + SECOND)
        renewal = Renewal(token(1), token(2), UNTIL + DAY)
        with ledger.transaction() as tx:
            hold = tx.own_holds.renew(renewal)
            assert hold is not None
            assert (hold.token, hold.hold_until) == (token(2), UNTIL + DAY)
            assert hold.changed_at == NOW + SECOND
            assert tx.own_holds.renew(renewal) is None
            assert tx.own_holds.still_held([token(1), token(2)]) == {token(2)}

    def test_confirm_needs_time_left(self, ground: Ground) -> None:
        ledger = ground.open()
        (unit,) = with_units(ledger, "1")
        placed(ledger, *(new_hold(unit, n, stay(n, n + 1)) for n in (1, 2)))
        ground.set_now(UNTIL - timedelta(microseconds=1))
        with ledger.transaction() as tx:
            hold = tx.own_holds.confirm(token(1))
            assert hold is not None
            assert hold.status is HoldStatus.CONFIRMED
            assert tx.own_holds.confirm(token(1)) is None
            assert tx.own_holds.still_held([token(1), token(2)]) == {token(2)}
        for now in (UNTIL, UNTIL + SECOND):
            ground.set_now(now)
            with ledger.transaction() as tx:
                assert tx.own_holds.confirm(token(2)) is None
                assert tx.own_holds.renew(Renewal(token(2), OTHER_TOKEN, now + DAY)) is None
                assert tx.own_holds.still_held([token(2)]) == set()

    def test_cancel_takes_held_lapsed_and_confirmed(self, ground: Ground) -> None:
        ledger = ground.open()
        (unit,) = with_units(ledger, "1")
        placed(ledger, *(new_hold(unit, n, stay(n, n + 1)) for n in (1, 2)))
        with ledger.transaction() as tx:
            tx.own_holds.confirm(token(1))
        ground.set_now(UNTIL + SECOND)
        with ledger.transaction() as tx:
            for number in (1, 2):
                hold = tx.own_holds.cancel(token(number))
                assert hold is not None
                assert hold.status is HoldStatus.CANCELLED
                assert tx.own_holds.cancel(token(number)) is None
            assert tx.own_holds.cancel(OTHER_TOKEN) is None

    def test_an_event_tells_the_change(self, ground: Ground) -> None:
        ledger = ground.open()
        (unit,) = with_units(ledger, "1")
        with ledger.transaction() as tx:
            hold = tx.own_holds.place(new_hold(unit, 1, stay(1, 2)))
            assert hold is not None
            tx.own_holds.tell(EventType.HOLD_HELD, "holds", hold)
            tx.own_holds.tell(EventType.HOLD_CONFIRMED, "holds", hold)
        first, second = ground.back.rows("outbox")
        assert (first["type"], second["type"]) == ("hold.held.v1", "hold.confirmed.v1")
        assert first["operation_id"] != second["operation_id"]
        assert (first["rule"], first["tenant"], first["hold_key"]) == (
            "holds",
            "anna",
            str(hold.id),
        )
        assert first["digest"] == digest("holds", str(hold.id), hold.identity)
        assert (first["generation"], first["due_at"], first["at"]) == (1, UNTIL, NOW)
        assert (first["state"], first["tokens"]) == ("kept", {"hold_token": str(token(1))})
        assert first["carry"].keys() == {"unit_id", "reference", "starts_at", "ends_at"}
        assert (first["carry"]["unit_id"], first["carry"]["reference"]) == (str(unit.id), None)

    def test_an_import_takes_over_each_row_on_its_own_merits(self, ground: Ground) -> None:
        ledger = ground.open()
        with_units(ledger, "1", "2")
        rows = [
            _imported(1, "1", stay(1, 3)),
            _imported(2, "1", stay(2, 4)),
            _imported(3, "none", stay(1, 2)),
            _imported(4, "1", stay(2, 4), status=HoldStatus.CANCELLED),
            _imported(5, "1", stay(3, 4), status=HoldStatus.CONFIRMED, hold_until=NOW - DAY),
            _imported(6, "2", None),
            _imported(7, "2", stay(5, 6)),
            _imported(8, "1", stay(1, 3), reference="r1"),
            _imported(9, "2", stay(1, 3), reference="r1"),
        ]
        new, exists = Imported(Written.NEW), Imported(Written.EXISTS)
        missing = Imported(Written.MISSING, ImportRefusal.UNKNOWN_UNIT)
        overlap = Imported(Written.MISSING, ImportRefusal.OVERLAP)
        other = Imported(Written.DIFFERS, ImportRefusal.OTHER_HOLD)
        with ledger.transaction() as tx:
            answers = list(tx.own_holds.take_over(rows))
            assert answers == [new, overlap, missing, new, new, new, overlap, exists, other]
            assert list(tx.own_holds.take_over([])) == []
        with ledger.transaction() as tx:
            answers = list(tx.own_holds.take_over(rows))
            assert answers == [
                exists,
                overlap,
                missing,
                exists,
                exists,
                exists,
                overlap,
                exists,
                other,
            ]
        statuses = [row["status"] for row in ground.back.rows("hold")]
        assert statuses == ["held", "cancelled", "confirmed", "held"]
        assert ground.back.rows("outbox") == []

    def test_an_import_takes_a_row_or_a_token_once(self, ground: Ground) -> None:
        ledger = ground.open()
        with_units(ledger, "1", "2")
        twice = _imported(1, "1", stay(1, 3))
        same_token = _imported(1, "2", stay(1, 3), reference="other")
        with ledger.transaction() as tx:
            answers = list(tx.own_holds.take_over([twice, twice, same_token]))
        assert [one.written for one in answers] == [Written.NEW, Written.EXISTS, Written.MISSING]
        assert [row["reference"] for row in ground.back.rows("hold")] == ["r1"]


def _imported(
    number: int,
    unit: str,
    taken: Stay | None,
    *,
    reference: str | None = None,
    status: HoldStatus = HoldStatus.HELD,
    hold_until: datetime = UNTIL,
) -> ImportedHold:
    return ImportedHold(
        tenant="anna",
        unit=unit,
        hold_until=hold_until,
        token=token(number),
        reference=reference or f"r{number}",
        stay=taken,
        status=status,
    )
