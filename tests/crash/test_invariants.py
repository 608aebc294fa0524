"""The check of the invariants finds what is planted: each break is made by hand and named."""

from __future__ import annotations

from datetime import timedelta

import pytest

from freehold.testing.backdoor import BackDoor
from freehold.testing.invariants import INVARIANTS, check_invariants, find_violations
from freehold.testing.pipeline import Pipeline
from freehold.testing.tables import Refusal
from tests.crash.acts import NOW, Acts

AT = 40
_COPY_RECORD = (
    "insert into {s}record (operation_id, rule, tenant, hold_key, digest, generation, due_at,"
    " outcome, reason, attempt, before_image, tick_id, tally_id, found_at, finished_at)"
    " select operation_id, rule, tenant, hold_key, digest, generation, due_at, outcome, reason,"
    " attempt, before_image, tick_id, tally_id, found_at, finished_at from {s}record"
    " where hold_key = '1'"
)
_EXPIRE_AGAIN = (
    "insert into history (reservation_id, tenant, old_status, new_status, old_token, new_token,"
    " old_hold_until, new_hold_until, released_at) select reservation_id, tenant, old_status,"
    " new_status, old_token, new_token, old_hold_until, new_hold_until, released_at"
    " from history where new_status = 'expired' and reservation_id = 1"
)
_REPORT_ALONE = (
    "insert into {s}report (tenant, report_date, start_at, end_at, zone, tz_version,"
    " watermark_at, due_at, state, assigned_at) values ('a', '2026-01-01', '2026-01-01',"
    " '2026-01-02', 'UTC', '2026a', '2026-01-02', '2026-01-02', 'assigned', '2026-01-02')"
)
PLANTS = {
    "I1": ("update {s}record set finished_at = '2026-01-01'",),
    "I2": ("update history set old_token = 'another' where new_status = 'expired'",),
    "I3": ("update reservation set status = 'held' where id = 1",),
    "I4": ("delete from {s}outbox where hold_key = '1'",),
    "I5": ("delete from {s}record where hold_key = '1'",),
    "I6": ("update {s}record set operation_id = (select max(id) from {s}operation)",),
    "I7": (_COPY_RECORD,),
    "I8": ("update history set old_status = 'confirmed' where new_status = 'expired'",),
    "I9": (_EXPIRE_AGAIN,),
    "I10": ("update history set new_status = 'cancelled' where old_status is null",),
    "I11": ("update {s}operation set attempt = 9",),
    "I12": (
        "update {s}operation set lease_token = 1",
        "update {s}attempt set lease_token = 2",
    ),
    "I13": ("update {s}operation set state = 'leased', leased_until = found_at",),
    "I14": ("update {s}operation set state = 'ready', attempt = 0, available_at = '2026-01-01'",),
    "I15": ("update {s}outbox set state = 'published' where hold_key = '1'",),
    "I16": (
        (
            "insert into {s}forward_attempt (event_id, target, replay_count, attempt, ended_at,"
            " failure_class, code, reason) values (1, 'shop', 0, 1, '2026-01-01', 'transient', '', '')"
        ),
    ),
    "I17": ("update {s}tally set report_id = 7",),
    "I18": (_REPORT_ALONE,),
    "I25": ("update {s}tick set finished_at = null, started_at = '2026-01-01'",),
    "I26": ("update {s}tally set expired_count = expired_count + 1",),
    "I27": ("update {s}record set tenant = 'b' where hold_key = '1'",),
    "counters": ("update stock set free = free + 1 where id = 1",),
}


@pytest.fixture
def acts(shop: str) -> Acts:
    """Two holds released, one in review."""
    acts = Acts(shop)
    for number in (1, 2):
        acts.hold(number, due=-30)
    acts.hold(3, due=-30, refusal=Refusal.RAISE)
    acts.do(Pipeline.fire)
    for at in (0, 10, 40):
        acts.do(Pipeline.work, at=at)
    return acts


def test_each_planted_break_is_named(acts: Acts) -> None:
    now = NOW + timedelta(seconds=AT + 60)
    assert {*PLANTS} == {one.number for one in INVARIANTS}
    with BackDoor(acts.url) as door:
        check_invariants(door, acts.rule, now)
        for number, plant in PLANTS.items():
            found = planted(door, acts, plant)
            assert any(line.startswith(f"{number} ") for line in found), (number, found)
        check_invariants(door, acts.rule, now)


def planted(door: BackDoor, acts: Acts, statements: tuple[str, ...]) -> list[str]:
    """Break something in a transaction, look, and take it back."""
    door.execute("begin")
    try:
        for statement in statements:
            door.execute(statement)
        return find_violations(door, acts.rule, NOW + timedelta(seconds=AT + 60))
    finally:
        door.execute("rollback")


def test_a_failure_names_the_invariant_and_the_rows(shop: str) -> None:
    acts = Acts(shop)
    acts.hold(7, due=-120)
    with BackDoor(shop) as door, pytest.raises(AssertionError) as caught:
        check_invariants(door, acts.rule, NOW)
    assert "I3 never lost: reservation 7 is held, was due at" in str(caught.value)
