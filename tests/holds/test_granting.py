"""Granting where something lapsed is in the way, and holds between their callers and the workers."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from uuid import UUID

import pytest

from freehold.adapters.sql.ledger import WatchedClock
from freehold.application import granting
from freehold.domain.errors import HoldLapsed, HoldTaken, RefusedByState, UnknownHold
from freehold.domain.inventory import HoldStatus, NewUnit, Renewal
from freehold.domain.rules import Companion, HandlerSpec
from freehold.ports.guards import GuardKind
from freehold.ports.ledger import RuleCondition, RuleState
from tests.behaviour.hosts import HostClock
from tests.holds.hotel import NOON, QUARTER, desk_at, events, night, statuses

if TYPE_CHECKING:
    from freehold.adapters.sql.ledger import SqlTransaction
    from freehold.testing.backdoor import BackDoor
    from freehold.testing.pipeline import Pipeline
    from tests.holds.hotel import Desk

ONE, TWO, THREE = (UUID(int=number) for number in (1, 2, 3))
MOMENT = timedelta(microseconds=1)


def test_the_service_expires_what_nobody_confirms(
    desk: Desk, door: BackDoor, pipeline: Pipeline
) -> None:
    desk.grant(1, ONE, reference="r")
    desk.clock.instant = NOON + QUARTER
    pipeline.drain()
    assert statuses(door) == ["expired"]
    assert events(door) == ["hold.held.v1", "hold.expired.v1"]
    first, second = door.rows("select digest, operation_id from {s}outbox order by id")
    assert first[0] == second[0]
    assert first[1] != second[1]
    held = desk.act(lambda tx: tx.own_holds.granted([ONE])[0])
    assert held.expired_at == NOON + QUARTER
    with pytest.raises(HoldLapsed, match="expired already"):
        desk.confirm(ONE)
    with pytest.raises(HoldLapsed, match="expired already"):
        desk.act(lambda tx: granting.cancel(tx, desk.rule, ONE))
    with pytest.raises(HoldLapsed, match="expired already"):
        desk.grant(1, TWO, reference="r")
    assert statuses(door) == ["expired"]


@pytest.mark.parametrize("late", [timedelta(0), MOMENT, QUARTER])
def test_a_lapsed_hold_is_not_confirmed(desk: Desk, door: BackDoor, late: timedelta) -> None:
    desk.grant(1, ONE)
    desk.clock.instant = NOON + QUARTER + late
    with pytest.raises(HoldLapsed, match="lapsed at 2031"):
        desk.confirm(ONE)
    assert (statuses(door), events(door)) == (["held"], ["hold.held.v1"])
    desk.clock.instant = NOON + QUARTER - MOMENT
    assert desk.confirm(ONE).status is HoldStatus.CONFIRMED


def test_a_lapsed_hold_in_the_way_is_released_with_record_and_event(
    desk: Desk, door: BackDoor, pipeline: Pipeline
) -> None:
    first = desk.grant(1, ONE).hold
    desk.clock.instant = NOON + QUARTER
    second = desk.grant(1, TWO).hold
    assert statuses(door) == ["expired", "held"]
    assert events(door) == ["hold.held.v1", "hold.expired.v1", "hold.held.v1"]
    assert door.rows("select outcome, hold_key from {s}record") == [("expired", str(first.id))]
    with pytest.raises(HoldTaken, match=f"hold {second.id} until"):
        desk.grant(1, THREE)
    pipeline.fire()
    assert statuses(door) == ["expired", "held"]


def test_an_open_operation_of_what_was_in_the_way_ends_as_already_expired(
    desk: Desk, door: BackDoor, pipeline: Pipeline
) -> None:
    desk.grant(1, ONE)
    desk.clock.instant = NOON + QUARTER
    assert pipeline.fire() == 1
    desk.grant(1, TWO)
    assert pipeline.work().skipped == {"already expired": 1}
    assert door.one("select count(*) from {s}operation") == 0
    assert events(door).count("hold.expired.v1") == 1


def test_all_that_lapsed_in_the_way_of_a_long_stay_goes(
    desk: Desk, door: BackDoor, pipeline: Pipeline
) -> None:
    for number in (1, 2, 3):
        desk.grant(1, UUID(int=number), stay=night(number))
    desk.clock.instant = NOON + QUARTER
    desk.grant(1, UUID(int=9), stay=None)
    assert statuses(door) == ["expired"] * 3 + ["held"]
    pipeline.fire()


def test_the_operation_of_a_renewed_hold_is_skipped(
    desk: Desk, door: BackDoor, pipeline: Pipeline
) -> None:
    desk.grant(1, ONE)
    desk.clock.instant = NOON + QUARTER
    pipeline.fire()
    desk.clock.instant = NOON
    desk.act(lambda tx: granting.renew(tx, desk.rule, Renewal(ONE, TWO, NOON + 2 * QUARTER)))
    desk.clock.instant = NOON + QUARTER
    assert pipeline.work().skipped == {"renewed": 1}
    with pytest.raises(UnknownHold, match="renewed"):
        desk.confirm(ONE)
    with pytest.raises(UnknownHold, match="renewed"):
        desk.act(lambda tx: granting.cancel(tx, desk.rule, ONE))
    assert desk.confirm(TWO).status is HoldStatus.CONFIRMED
    assert events(door) == ["hold.held.v1", "hold.renewed.v1", "hold.confirmed.v1"]


@pytest.mark.parametrize("status", ["confirmed", "cancelled"])
def test_the_operation_of_a_hold_that_ended_is_skipped(
    desk: Desk, door: BackDoor, pipeline: Pipeline, status: str
) -> None:
    desk.grant(1, ONE)
    desk.clock.instant = NOON + QUARTER
    pipeline.fire()
    desk.clock.instant = NOON
    end = granting.confirm if status == "confirmed" else granting.cancel
    desk.act(lambda tx: end(tx, desk.rule, ONE))
    desk.clock.instant = NOON + QUARTER
    assert pipeline.work().skipped == {status: 1}
    assert statuses(door) == [status]


def test_companions_run_with_a_release_in_the_way(hotel: str, door: BackDoor) -> None:
    door.execute("drop table if exists freed")
    door.execute("create table freed (unit text, reference text)")
    also = Companion("insert into freed values (:unit_id, :reference)", 1, 1)
    desk = desk_at(hotel, companions=(also,))
    desk.grant(1, ONE, reference="r")
    desk.clock.instant = NOON + QUARTER
    desk.grant(1, TWO)
    assert door.rows("select * from freed") == [("1", "r")]


def test_what_a_handler_is_to_see_is_left_to_the_service(hotel: str) -> None:
    plain = desk_at(hotel)
    plain.grant(1, ONE)
    late = NOON + QUARTER
    desk = desk_at(hotel, late, handler=HandlerSpec("a:b", timedelta(seconds=1)))
    with pytest.raises(HoldTaken, match="not yet released"):
        desk.grant(1, TWO)


def test_nothing_is_released_past_a_guard_or_a_mapping_of_others(
    desk: Desk, door: BackDoor, pipeline: Pipeline
) -> None:
    pipeline.fire()
    desk.grant(1, ONE)
    desk.clock.instant = NOON + QUARTER
    stranger = replace(desk, rule=replace(desk.rule, carry=()))
    with pytest.raises(HoldTaken, match="not yet released"):
        stranger.grant(1, TWO)
    with pipeline.ledger.transaction() as tx:
        tx.guards.trip(GuardKind.MASS, desk.rule.name, "too many", {})
    with pytest.raises(HoldTaken, match="not yet released"):
        desk.grant(1, TWO)
    with pipeline.ledger.transaction() as tx:
        tx.guards.release(tx.guards.standing()[0].id, "tester", "all is well")
    assert desk.grant(1, TWO).is_new
    assert statuses(door) == ["expired", "held"]


def test_nothing_is_released_before_a_person_let_the_rule_go(
    desk: Desk, door: BackDoor, pipeline: Pipeline
) -> None:
    desk.grant(1, ONE)
    desk.clock.instant = NOON + QUARTER
    with pipeline.ledger.transaction() as tx:
        tx.rules.write(RuleState(desk.rule.name, desk.rule.fingerprint, RuleCondition.WAITING))
    with pytest.raises(HoldTaken, match="not yet released"):
        desk.grant(1, TWO)
    assert statuses(door) == ["held"]


def _host(name: str, at: datetime) -> WatchedClock:
    return WatchedClock(name, HostClock(at))


@pytest.mark.parametrize("name", ["alpha", "beta"])
def test_nothing_is_released_by_a_clock_that_jumped(desk: Desk, door: BackDoor, name: str) -> None:
    """No service has seen the jump yet; one on host alpha noted the clocks before."""
    desk.grant(1, ONE)
    replace(desk, watched=_host("alpha", NOON)).act(lambda tx: tx.clocks.note())
    desk.clock.instant = NOON + timedelta(hours=1)
    jumped = replace(desk, watched=_host(name, NOON + 2 * MOMENT))
    with pytest.raises(HoldTaken, match="not yet released"):
        jumped.grant(1, TWO)
    assert statuses(door) == ["held"]
    as_time_goes_by = replace(desk, watched=_host(name, desk.clock.instant))
    assert as_time_goes_by.grant(1, TWO).is_new
    assert statuses(door) == ["expired", "held"]


def test_units_and_tenants_out_of_use_are_refused_in_a_sentence(desk: Desk) -> None:
    def shut(tx: SqlTransaction) -> int:
        tx.units.add([NewUnit("anna", "attic", active=False)])
        return tx.units.named("anna", ["attic"])[0].id

    attic = desk.act(shut)
    with pytest.raises(RefusedByState, match="Unit attic is not active"):
        desk.grant(attic, ONE)
    desk.act(lambda tx: tx.tenants.set([replace(tx.tenants.read(["anna"])[0], active=False)]))
    with pytest.raises(RefusedByState, match="Tenant anna is not active"):
        desk.grant(1, ONE)
