"""What fails of one rule, or of one batch, holds up nothing else."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from freehold.adapters.sql.session import Limits
from freehold.adapters.system import Onwards
from freehold.application.rulestate import batch_size
from freehold.application.sweep import Sweeper
from freehold.application.work import PassEnd
from freehold.domain.due import EmptyDue
from freehold.domain.rules import TableName
from tests.behaviour.till import Till, cart, dead, due_spec, open_table, put_holds, refuse, statuses

if TYPE_CHECKING:
    import pytest

    from tests.behaviour.place import Place


def test_a_broken_rule_keeps_no_sweep_from_the_others(place: Place) -> None:
    open_table(place)
    place.host.run("create table other as select * from hold")
    place.host.run("create unique index other_id on other (id)")
    put_holds(place, range(1, 21))
    refuse(place, "new.id = 3", "never")
    broken = cart(
        place,
        name="broken",
        table=TableName("other"),
        due=due_spec(place, on_empty=EmptyDue.REVIEW),
    )
    till = Till.open(place, cart(place))
    Till.open(place, broken).run()
    till.run()
    till.run_again(6)
    assert list(dead(place)) == ["3"]
    place.host.run("delete from hold")
    place.host.run("drop table other")

    result = Sweeper(till.ledger, Onwards(), till.scanner).sweep([broken, till.rule])
    assert result.closed_count == 1
    assert [error.code for _, error in result.troubles]


def test_a_worker_takes_no_larger_batch_than_the_host_has_room_for(lite: Place) -> None:
    open_table(lite)
    put_holds(lite, range(1, 301))
    till = Till.open(lite, cart(lite))
    till.scanner.scan(till.rule)
    assert till.worker.work(till.rule).batch.released_count == batch_size(till.ledger, till.rule)


def test_a_busy_table_strands_no_lease_and_spends_no_attempt(pg: Place) -> None:
    open_table(pg)
    put_holds(pg, range(1, 101))
    till = Till.open(pg, cart(pg), limits=Limits(lock_timeout_ms=20))
    till.scanner.scan(till.rule)
    pg.host.run("update freehold.rule_state set leased = true, batch_limit = 22")
    other = pg.door()
    other.run("begin")
    other.run("lock table hold in access exclusive mode")

    assert till.worker.work(till.rule).end is PassEnd.WORKED
    assert dict(pg.table("operation", "state, attempt")) == {"ready": 0, "deferred": 0}
    other.run("rollback")
    till.run_again(1)
    assert statuses(pg) == {"expired": 100}


def test_a_busy_table_is_tried_a_few_times_not_row_by_row(
    pg: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_table(pg)
    put_holds(pg, range(1, 101))
    till = Till.open(pg, cart(pg), limits=Limits(lock_timeout_ms=20))
    till.scanner.scan(till.rule)
    begun = count()
    begin = till.ledger.session.begin
    monkeypatch.setattr(till.ledger.session, "begin", lambda: [next(begun), begin()][1])
    other = pg.door()
    other.run("begin")
    other.run("lock table hold in access exclusive mode")

    done = till.worker.work(till.rule)
    assert done.batch.deferred.total() == 100
    assert next(begun) < 30
    assert pg.table("attempt", "attempt") == []
    other.run("rollback")
    till.run_again(1)
    assert statuses(pg) == {"expired": 100}
