"""The statements of modes direct and window go by their index, whatever the statistics say."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from freehold.adapters.sql.ledger import SqlLedger
from freehold.adapters.system import Onwards, StopRequest, SystemDice
from freehold.application.scan import Scanner
from freehold.application.straight import release_straight
from freehold.application.work import Worker
from freehold.domain.due import read_due
from freehold.domain.rules import Companion, Mode
from tests.behaviour.plans import Plans, analyse, assert_by_index, explained, fill
from tests.behaviour.test_plans import HOLDS
from tests.behaviour.till import cart, open_table

if TYPE_CHECKING:
    from tests.behaviour.place import Place

POSTGRES = {
    "find_named": {"hold_pkey", "operation_identity"},
    "lock_found": {"hold_pkey"},
    "named_there": {"hold_pkey"},
    "companion_values_of": {"hold_pkey"},
    "past_records": {"record_default_rule_hold_key_idx"},
    "release_found": {"hold_pkey"},
    "release_bulk": {"hold_due", "operation_identity", "record_default_rule_hold_key_idx"},
    "still_held": {"hold_pkey"},
    "has_window": {"operation_window"},
    "open_window": {"operation_identity"},
    "claim_window": {"operation_window"},
    "close_window": {"operation_pkey"},
    "rebuild": {"operation_pkey"},
}
SQLITE = {
    "find_named": {"rowid of h", "freehold_operation_identity"},
    "lock_found": {"rowid of h"},
    "named_there": {"rowid of h"},
    "companion_values_of": {"rowid of h"},
    "past_records": {"freehold_record_hold"},
    "note_found": {"rowid of h"},
    "tell_found": {"rowid of h"},
    "change_found_by_update": {"rowid of h"},
    "still_held": {"rowid of h"},
    "has_window": {"freehold_operation_window"},
    "claim_window": {"freehold_operation_window"},
    "close_window": {"rowid of o"},
    "rebuild": {"rowid of freehold_operation"},
}
OWN = ("hold", "operation", "record", "h", "o", "p", "freehold_operation")


def _plans(place: Place) -> Plans:
    """Release straight, by a window, by name, and after a change of the mapping."""
    session = explained(place)
    ledger = SqlLedger(session, Onwards())
    rule = cart(
        place,
        mode=Mode.DIRECT,
        companions=(Companion("delete from spare where id = :id", 0, None),),
    )
    worker = Worker(ledger, Onwards(), SystemDice(), StopRequest())
    scanner = Scanner(ledger, Onwards(), straight=worker.straight)
    place.host.run("update hold set status = 'paid' where id > 3000")
    scanner.scan(rule, pages_most=4)
    place.host.run("update hold set status = 'held' where id > 3000")
    with ledger.transaction() as tx:
        found = tx.straight(rule).find_named([str(key) for key in range(5_000, 5_100)])
        place_of = [(row, read_due(rule.due, row.due)) for row in found]
        release_straight(tx, rule, place_of, Onwards())
        tx.straight(rule).lock_found([replace(found[0], hold_key="7000000")])
    plain = replace(rule, companions=())
    scanner.scan(plain, pages_most=2)
    windowed = replace(rule, mode=Mode.WINDOW)
    Scanner(ledger, Onwards()).scan(windowed)
    worker.work(windowed)
    place.host.run("update hold set status = 'held', token = 'again' where id < 100")
    Scanner(ledger, Onwards()).scan(replace(rule, mode=Mode.RESERVATION))
    worker.work(replace(rule, carry=("qty",)))
    return session.plans


@pytest.mark.parametrize("statistics", ["stale", "fresh"])
def test_statements_of_the_modes_go_by_their_index(place: Place, statistics: str) -> None:
    open_table(place)
    place.host.run("create table spare (id integer primary key)")
    if statistics == "stale":
        analyse(place)
    fill(place, HOLDS)
    if statistics == "fresh":
        analyse(place)
    plans = _plans(place)
    wanted = POSTGRES if place.dialect == "postgres" else SQLITE
    assert_by_index(plans, wanted)
    read_whole = {n: p for n, p in plans.items() if any(f"all of {table}" in p for table in OWN)}
    assert set(read_whole) <= {"sample_due"}, read_whole
