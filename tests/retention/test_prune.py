"""Pruning: what goes, what stays, and what keeps a clock from taking everything along."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from freehold.adapters.system import Onwards
from freehold.application import prune as pruning
from freehold.application.prune import Pruner, PruneResult
from freehold.domain.errors import DatabaseBusy
from freehold.ports.ledger import Act, GuardKind
from freehold.ports.retention import Subject
from freehold.settings.values import RetentionSettings
from freehold.testing.crash import Crashed, KillAt, RaiseAt
from freehold.testing.forking import run
from tests.scenarios.shop import CART, add, held, open_shop
from tests.stage import NOON

if TYPE_CHECKING:
    from collections.abc import Callable

    from freehold.ports.system import Checkpoint
    from freehold.testing.clock import SetClock
    from freehold.testing.forking import Wire
    from tests.stage import Stage

AGES = RetentionSettings().ages()
HOUR = timedelta(hours=1)
YEARS = timedelta(days=800)


@dataclass
class Wall:
    """The host's clock: goes with the database's, unless it was parted from it."""

    database: SetClock
    behind: timedelta = timedelta(0)

    def wall(self) -> datetime:
        return self.database.instant - self.behind

    def monotonic(self) -> float:
        return 0.0

    def sleep(self, seconds: float) -> None:
        raise AssertionError


def pruner(
    stage: Stage, checkpoint: Checkpoint | None = None, *, behind: timedelta = timedelta(0)
) -> Pruner:
    """Make a pruner as a fresh process has it."""
    return Pruner(stage.ledger(checkpoint or Onwards()), AGES, Wall(stage.clock, behind))


def prune(stage: Stage, behind: timedelta = timedelta(0)) -> PruneResult:
    return pruner(stage, behind=behind).run()


def prune_twice(stage: Stage) -> dict[Subject, int]:
    """Take two readings, an hour apart."""
    prune(stage)
    stage.advance(hours=1)
    return gone(prune(stage))


def gone(result: PruneResult) -> dict[Subject, int]:
    """Return what went, without zeros."""
    return {subject: count for subject, count in result.counts.items() if count}


def played(stage: Stage) -> None:
    """Let a day pass: 5 released, 1 skipped, 1 refused and in review, 1 retried and released."""
    open_shop(stage, CART + '[rules.retry]\ndelays = ["10s"]\n')
    stage.own().keep_house()
    add(stage, *(held(number) for number in range(1, 7)), held(7, stock_id=None), held(8))
    stage.host.script("create table refusal (id integer);\ninsert into refusal values (7), (8);")
    trigger(stage)
    stage.scan()
    stage.host.run("update hold set due_at = '2999-01-01 00:00:00' where id = 6")
    stage.drain()
    stage.host.run("delete from refusal where id = 8")
    for _ in range(2):
        stage.advance(seconds=30)
        stage.drain()
    with stage.own().transaction() as tx:
        tx.actions.record(Act("ann", "pause", "cart", "because"))
        for minute in range(3):
            at = tx.now + timedelta(minutes=minute)
            tick = tx.ticks.start("cart", at, "w", at)
            assert tick is not None
            tx.ticks.finish(tick, 0, 0, "done")
    assert stage.ends() == {"expired": 6, "renewed": 1}
    assert stage.open() == {"dead": 1}


def trigger(stage: Stage) -> None:
    """Refuse the rows that `refusal` names."""
    if stage.dialect == "sqlite":
        stage.host.run(
            "create trigger refuse before update on hold when new.status = 'expired' and exists "
            "(select 1 from refusal r where r.id = new.id) begin select raise(abort, 'no'); end"
        )
        return
    stage.host.run(
        "create function refuse() returns trigger language plpgsql as $$ begin"
        " if new.status = 'expired' and exists (select 1 from refusal r where r.id = new.id)"
        " then raise exception 'no'; end if; return new; end $$"
    )
    stage.host.run(
        "create trigger refuse before update on hold for each row execute function refuse()"
    )


def rows(stage: Stage) -> dict[str, int]:
    """Count the ledger's tables."""
    names = ("record", "tally", "attempt", "outbox", "tick", "operation", "action")
    return {
        name: stage.host.run(f"select count(*) from {stage.prefix}{name}")[0][0] for name in names
    }


def test_what_is_old_goes_and_open_work_stays(stage: Stage) -> None:
    played(stage)
    stage.host.run(f"update {stage.prefix}outbox set state = 'pending' where hold_key = '1'")
    stage.clock.instant += YEARS
    assert gone(prune(stage)) == {}
    stage.advance(minutes=59)
    assert gone(prune(stage)) == {}
    stage.advance(minutes=1)
    found = gone(prune(stage))
    assert found.pop(Subject.TALLIES) > 1
    assert found == {
        Subject.RECORDS: 7, Subject.ATTEMPTS: 1, Subject.EVENTS: 5, Subject.TICKS: 2,
    }  # fmt: skip
    left = rows(stage)
    assert left == {
        "record": 0, "tally": 0, "attempt": 2, "outbox": 1, "tick": 1, "operation": 1, "action": 1,
    }  # fmt: skip
    stage.host.run(f"delete from {stage.prefix}outbox")  # which waits, against the promise
    assert stage.audit() == {}


def test_the_audit_is_clean_between_the_ages(stage: Stage) -> None:
    """Events go long before their records, and the audit knows."""
    played(stage)
    stage.advance(days=35)
    found = prune_twice(stage)
    assert found.keys() == {Subject.ATTEMPTS, Subject.EVENTS, Subject.TICKS}
    assert stage.audit() == {}
    add(stage, held(20))
    stage.drain()
    assert stage.audit() == {}
    stage.host.run(f"delete from {stage.prefix}outbox where hold_key = '20'")
    assert "expired-has-event" in stage.audit()


def test_a_clock_that_jumps_alone_takes_nothing_along(stage: Stage) -> None:
    played(stage)
    before = rows(stage)
    stage.clock.instant += YEARS
    for _ in range(3):
        stage.advance(hours=2)
        assert gone(prune(stage, behind=YEARS)) == {}
    assert rows(stage) == before


def test_both_clocks_for_a_moment_take_nothing_along(stage: Stage) -> None:
    played(stage)
    prune(stage)
    before = rows(stage)
    stage.clock.instant += YEARS
    prune(stage)
    stage.clock.instant -= YEARS
    for _ in range(3):
        stage.advance(hours=2)
        assert gone(prune(stage)) == {}
    assert rows(stage) == before


def test_nothing_goes_while_a_guard_of_the_clock_stands(stage: Stage) -> None:
    played(stage)
    stage.clock.instant += YEARS
    prune(stage)
    stage.advance(hours=2)
    with stage.own().transaction() as tx:
        tx.guards.trip(GuardKind.CLOCK, None, "the clock jumped", {})
    for result in (pruner(stage).rehearse(), prune(stage)):
        assert (result.frozen, gone(result)) == ("the clock jumped", {})
    with stage.own().transaction() as tx:
        tx.guards.release(tx.guards.standing()[0].id, "ann", "it was a test")
    assert gone(prune(stage))[Subject.RECORDS] == 7


def test_a_rehearsal_says_what_would_go_and_writes_nothing(stage: Stage) -> None:
    played(stage)
    stage.clock.instant += YEARS
    prune(stage)
    stage.advance(hours=1)
    before = stage.digest()
    said = gone(pruner(stage).rehearse())
    assert stage.digest() == before
    assert gone(prune(stage)) == said


def test_a_kill_at_any_commit_leaves_whole_steps(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruning, "PAGE", 2)
    played(stage)
    stage.clock.instant += YEARS
    prune(stage)
    stage.advance(hours=1)
    killed, nth = 0, 0
    while True:
        nth += 1
        try:
            pruner(stage, RaiseAt(nth)).run()
        except Crashed:
            killed += 1
            assert stage.audit() == {}
            continue
        break
    assert killed > 5
    left = rows(stage)
    assert (left["record"], left["tally"], left["outbox"], left["attempt"]) == (0, 0, 0, 2)
    assert stage.audit() == {}


@pytest.mark.proof
@pytest.mark.timeout(method="signal")  # no thread may be alive at a fork
def test_a_sigkill_at_any_commit_leaves_whole_steps(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruning, "PAGE", 2)
    played(stage)
    stage.clock.instant += YEARS
    prune(stage)
    stage.advance(hours=1)
    nth, killed = 1, True
    while killed:
        killed = run(_one_round(stage, nth)).was_killed
        assert stage.audit() == {}
        nth += 1
    assert nth > 6
    left = rows(stage)
    assert (left["record"], left["tally"], left["outbox"], left["attempt"]) == (0, 0, 0, 2)


def _one_round(stage: Stage, nth: int) -> Callable[[Wire], None]:
    """Return what a process does that is killed at the n-th boundary of a round."""

    def child(wire: Wire) -> None:
        pruner(stage, KillAt(nth, tell=wire.tell)).run()

    return child


def test_a_round_comes_once_a_day_and_belongs_to_one_process(stage: Stage) -> None:
    played(stage)
    stage.clock.instant += YEARS
    one, other = pruner(stage), pruner(stage)
    one.go_on()
    stage.advance(hours=2)
    other.go_on()
    assert rows(stage)["record"] == 7
    stage.advance(hours=22)
    one.go_on()
    other.go_on()
    assert rows(stage)["record"] == 0


def test_a_backlog_is_removed_a_few_steps_a_sweep(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruning, "PAGE", 1)
    monkeypatch.setattr(pruning, "STEPS_A_SWEEP", 3)
    played(stage)
    stage.clock.instant += YEARS
    one, other = pruner(stage), pruner(stage)
    one.go_on()
    stage.advance(hours=25)
    one.go_on()
    middle = sum(rows(stage).values())
    other.go_on()
    assert sum(rows(stage).values()) == middle
    stage.advance(minutes=6)  # the first process was killed
    for _ in range(30):
        other.go_on()
    assert (rows(stage)["tally"], rows(stage)["outbox"]) == (0, 0)


def test_a_hold_that_comes_due_again_after_its_record_went_is_left_to_a_person(
    stage: Stage,
) -> None:
    played(stage)
    stage.clock.instant += YEARS
    prune_twice(stage)
    stage.host.run("update hold set status = 'held' where id = 1")
    add(stage, held(30, YEARS - timedelta(days=1)))
    stage.drain()
    assert stage.ended() == ["30"]
    reasons = stage.host.run(f"select reason from {stage.prefix}operation where hold_key = '1'")
    assert "due again" in reasons[0][0]


def test_months_wait_for_who_reads_them_and_keep_nothing_else_waiting(
    postgres_stage: Stage,
) -> None:
    stage = postgres_stage
    played(stage)
    stage.clock.instant += YEARS
    prune(stage)
    stage.advance(hours=1)
    dump = stage.door()
    dump.run("begin")
    dump.run("select count(*) from freehold.record")
    result = prune(stage)
    assert isinstance(result.troubles[Subject.RECORDS], DatabaseBusy)
    assert result.counts[Subject.EVENTS] == 6
    assert rows(stage)["record"] == 7
    dump.run("rollback")
    assert gone(prune(stage))[Subject.RECORDS] == 7


def test_a_partition_of_another_name_is_not_ours_to_drop(postgres_stage: Stage) -> None:
    stage = postgres_stage
    played(stage)
    month = f"record_{NOON:%Y_%m}"
    stage.host.run(f"alter table freehold.{month} rename to {month}_archive")
    stage.clock.instant += YEARS
    assert Subject.RECORDS not in prune_twice(stage)
    assert rows(stage)["record"] == 7
    stage.host.run(f"alter table freehold.{month}_archive rename to {month}")
