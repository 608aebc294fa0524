"""Group five: poison rows, batches and locks."""

from __future__ import annotations

import random
import threading
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING

import psycopg
import pytest

from freehold.adapters.system import StopRequest
from freehold.application.scan import LEAD_BATCHES
from freehold.application.work import PassEnd, Worker
from freehold.domain.errors import DatabaseBusy
from freehold.testing.clock import SteadyDice
from tests.scenarios.shop import CART, GIVE_BACK, add, free, held, open_shop, statuses

if TYPE_CHECKING:
    from freehold.adapters.sql.ledger import SqlLedger
    from freehold.domain.rules import Rule
    from tests.stage import Door, Stage

SEATS = """
create table seat (id integer primary key references hold (id));
insert into seat values (57);
"""
DELETED = CART.replace('{ set = { status = "expired" } }', "{ delete = true }")

# What each kind of poison does to a row of `hold` on release, and what the database then says.
POSTGRES_TRAPS = """
alter table hold alter column status type varchar(7);
alter table hold alter column created_via type varchar(20);
alter table hold add column label varchar(12);
alter table hold add constraint no_120 check (id <> 120 or status = 'held');
create table known (status varchar(20) primary key);
insert into known values ('held');
alter table hold add column known_as varchar(20) references known (status);
create function trap() returns trigger language plpgsql as $$
begin
    if new.status = 'expired' and new.id = 57 then new.known_as := 'unknown'; end if;
    if new.status = 'expired' and new.id = 91 then raise exception 'the seat map says no'; end if;
    if new.status = 'expired' and new.id = 166 then new.label := repeat('x', 13); end if;
    return new;
end $$;
create trigger trap before update on hold for each row execute function trap();
"""
SQLITE_TRAPS = """
create table known (status text primary key);
create table use (status text references known (status));
create table label (text text check (length(text) <= 12));
create table low (id integer constraint no_120 check (id <> 120));
create trigger t57 after update on hold when new.id = 57 begin
    insert into use values ('unknown'); end;
create trigger t91 after update on hold when new.id = 91 begin
    select raise(abort, 'the seat map says no'); end;
create trigger t120 after update on hold when new.id = 120 begin insert into low values (120); end;
create trigger t166 after update on hold when new.id = 166 begin
    insert into label values ('xxxxxxxxxxxxx'); end;
"""
MESSAGES = {
    "postgres": {57: "foreign key", 91: "the seat map says no", 120: "no_120", 166: "too long"},
    "sqlite": {57: "FOREIGN KEY", 91: "the seat map says no", 120: "no_120", 166: "length(text)"},
}
POISON = {57, 91, 120, 166}


def set_traps(stage: Stage) -> None:
    if stage.dialect == "postgres":
        stage.host.connection.execute(POSTGRES_TRAPS)
    else:
        stage.host.connection.executescript(SQLITE_TRAPS)


def test_n5_poison_in_a_batch_stops_only_itself(stage: Stage) -> None:
    rule = open_shop(stage)
    set_traps(stage)
    add(stage, *[held(n) for n in range(1, 201)])
    stage.scan()
    stage.worker().work(rule)
    found = statuses(stage)
    assert {n for n, status in found.items() if status == "held"} == POISON
    assert stage.open() == {"retrying": 4}
    for _ in range(6):
        stage.advance(hours=1)
        stage.drain()
    assert stage.open() == {"dead": 4}
    said: dict[str, str] = dict(
        stage.host.run(f"select hold_key, failure_message from {stage.prefix}operation")
    )
    for number, part in MESSAGES[stage.dialect].items():
        assert part in said[str(number)]
    attempts = stage.host.run(f"select count(*) from {stage.prefix}attempt group by operation_id")
    assert attempts == [(6,)] * 4
    assert stage.audit() == {}


def test_b56_one_row_that_others_need_does_not_keep_the_rest(stage: Stage) -> None:
    """A delete that a foreign key refuses: 199 go, one asks a person."""
    open_shop(stage, DELETED)
    add(stage, *[held(n) for n in range(1, 201)])
    stage.host.script(SEATS)
    stage.drain()
    assert stage.host.run("select id from hold") == [(57,)]
    assert len(stage.ended()) == 199
    for _ in range(6):
        stage.advance(hours=1)
        stage.drain()
    assert stage.open() == {"dead": 1}
    stage.host.script("delete from seat")
    stage.host.run("delete from hold")
    stage.drain()
    assert stage.open() == {}
    assert stage.ends() == {"expired": 199, "closed": 1}
    assert stage.audit() == {}


@pytest.mark.parametrize("place", [1, 30, 60])
def test_b57_the_others_are_written_whether_the_bad_one_is_first_or_last(
    stage: Stage, place: int
) -> None:
    rule = open_shop(stage, DELETED.replace("[[rules]]", "[[rules]]\nbatch = 25"))
    add(stage, *[held(n) for n in range(1, 61)])
    stage.host.script(SEATS.replace("57", str(place)))
    stage.scan()
    worker = stage.worker()
    while worker.work(rule).end is PassEnd.WORKED:
        pass
    assert stage.host.run("select id from hold") == [(place,)]


def test_n6_a_row_that_never_expires_is_tried_six_times_and_then_rests(stage: Stage) -> None:
    rule = open_shop(stage, DELETED)
    add(stage, held(57))
    stage.host.script(SEATS)
    scanner, worker = stage.scanner(), stage.worker()
    for _ in range(60):
        scanner.scan(rule)
        worker.work(rule)
        stage.advance(minutes=5)
    assert stage.host.run(f"select count(*) from {stage.prefix}attempt") == [(6,)]
    assert stage.open() == {"dead": 1}
    assert worker.work(rule).end is PassEnd.IDLE


def test_b59_a_backlog_is_taken_in_bounded_steps_and_drains(stage: Stage) -> None:
    """The scan never runs more than its lead ahead, so memory and ledger stay flat."""
    rule = open_shop(stage, CART.replace("[[rules]]", "[[rules]]\nattach_limit = 5000\nbatch = 10"))
    add(stage, *[held(n, timedelta(minutes=-n), tenant_id=n % 9) for n in range(1, 281)])
    scanner, worker = stage.scanner(), stage.worker()
    rounds = 0
    while not (scan := scanner.scan(rule)).finished:
        assert scan.admitted
        assert stage.open().total() <= (LEAD_BATCHES + 1) * rule.batch_size
        while (done := worker.work(rule)).end is PassEnd.WORKED:
            assert done.batch.total <= rule.batch_size
        rounds += 1
    while worker.work(rule).end is PassEnd.WORKED:
        pass
    assert stage.ends() == {"expired": 280}
    assert rounds == 1


def test_n14_a_great_backlog_moves_only_after_it_was_confirmed(stage: Stage) -> None:
    """Overdue rows of three tenants; the figures of the tallies are exact afterwards."""
    open_shop(stage, CART.replace("[[rules]]", "[[rules]]\nattach_limit = 100"))
    shares = {1: 290, 2: 9, 3: 1}
    tenants = [tenant for tenant, share in shares.items() for _ in range(share)]
    add(stage, *[held(n, tenant_id=tenant) for n, tenant in enumerate(tenants, 1)])
    stage.drain()
    assert stage.ends() == {}
    stage.confirm(300)
    stage.drain()
    sums = stage.host.run(
        f"select tenant, sum(expired_count) from {stage.prefix}tally group by 1 order by 1"
    )
    assert {int(tenant): int(count) for tenant, count in sums} == shares


def test_b61_workers_and_host_at_the_same_rows_end_without_harm(stage: Stage) -> None:
    """Four workers, and a host that updates the same rows in another order."""
    rule = open_shop(stage, CART.replace("[[rules]]", "[[rules]]\nbatch = 40") + GIVE_BACK)
    count = 400
    add(stage, *[held(n) for n in range(1, count + 1)])
    stage.scan()
    door, errors = stage.door(), list[BaseException]()
    workers = [stage.worker() for _ in range(4)]
    threads = [threading.Thread(target=touch, args=(door, count))]
    threads += [threading.Thread(target=work, args=(one, rule, errors)) for one in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    stage.advance(minutes=1)
    stage.drain()
    assert not errors
    assert len(set(stage.ended())) == len(stage.ended()) == count
    assert free(stage) == count
    assert stage.host.run(f"select count(*) from {stage.prefix}attempt") == [(0,)]
    assert stage.audit() == {}


def touch(door: Door, count: int) -> None:
    """Update rows as a host does, six a transaction, in no order."""
    order = random.Random(1)
    for _ in range(25):
        door.connection.execute("begin" if door.dialect == "postgres" else "begin immediate")
        try:
            for number in order.sample(range(1, count + 1), 6):
                door.run("update hold set created_via = 'seen' where id = :id", id=number)
            door.connection.execute("commit")
        except psycopg.errors.DeadlockDetected:
            door.connection.execute("rollback")


def work(worker: Worker, rule: Rule, errors: list[BaseException]) -> None:
    """Work thirty times; being kept waiting is no error."""
    for _ in range(30):
        try:
            worker.work(rule)
        except DatabaseBusy:
            continue
        except BaseException as error:  # noqa: BLE001
            errors.append(error)


def test_b62_an_error_leaves_the_connection_fit_for_the_next_transaction(stage: Stage) -> None:
    rule = open_shop(stage)
    set_traps(stage)
    add(stage, held(91))
    ledger = stage.ledger()
    worker = Worker(ledger, stage.checkpoint, SteadyDice(), StopRequest())
    stage.scan()
    worker.work(rule)
    add(stage, held(1))
    stage.scan()
    worker.work(rule)
    assert statuses(stage) == {1: "expired", 91: "held"}


def test_b62_a_lost_connection_is_opened_again(postgres_stage: Stage) -> None:
    stage = postgres_stage
    rule = open_shop(stage)
    add(stage, held(1))
    ledger = stage.ledger()
    worker = Worker(ledger, stage.checkpoint, SteadyDice(), StopRequest())
    worker.work(rule)
    end_backend(stage, ledger)
    stage.scan()
    with suppress(Exception):
        worker.work(rule)
    worker.work(rule)
    assert statuses(stage) == {1: "expired"}


def end_backend(stage: Stage, ledger: SqlLedger) -> None:
    with ledger.transaction():
        number = ledger.session.run("select pg_backend_pid()", {})[0][0][0]
    stage.host.run("select pg_terminate_backend(:number, 5000)", number=number)
