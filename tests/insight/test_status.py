"""Status: the right figures, a sentence for each trouble, and nobody kept waiting."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from io import StringIO
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from freehold.adapters.system import SystemClock
from freehold.application.findings import counted, judged
from freehold.application.spans import span
from freehold.application.status import COUNT_MOST, Status, status
from freehold.domain.errors import DatabaseError
from freehold.domain.operations import OperationState
from freehold.domain.pauses import Pause, Role
from freehold.domain.rules import TableName
from freehold.entrypoints.cli.status import as_data
from freehold.entrypoints.cli.status_view import number, show
from freehold.ports.ledger import GuardKind
from tests.insight.shop import CART, Shop, file_of

if TYPE_CHECKING:
    from freehold.domain.rules import Rule


def seen(shop: Shop, *rules: Rule) -> Status:
    """Read the status of the shop's rule, or of others."""
    with shop.ledger() as ledger:
        return judged(status(ledger, rules or (shop.rule,), SystemClock()))


def findings(shop: Shop, *rules: Rule) -> str:
    """Return all findings as one text."""
    return "\n".join(seen(shop, *rules).findings)


def alive(shop: Shop) -> None:
    """Let a process beat and its schedule run, as if one were there."""
    with shop.ledger() as ledger, ledger.transaction() as tx:
        tx.workers.beat("w", "scan,work", "here", 1, tx.now, None)
        tick = tx.ticks.start("cart", tx.now, "w", tx.now)
        assert tick is not None
        tx.ticks.finish(tick, 2, 1, "done")


def test_the_figures_are_those_of_the_database(every_shop: Shop) -> None:
    row = seen(every_shop).rules[0]
    assert row.count(OperationState.READY) == 1
    assert row.ended is not None
    assert (row.ended.expired_count, row.ended.skipped) == (3, {"renewed": 1})
    assert sum(row.ended.lag_counts) == 3
    assert row.holds.missed_due_at is None
    assert row.holds.oldest_due_at == row.depth.oldest_due_at
    assert row.holds.empty_count == 0


def test_all_is_well_while_somebody_works_within_the_promise(shop: Shop) -> None:
    alive(shop)
    patient = replace(CART, promise=timedelta(hours=3))
    assert findings(shop, patient) == ""


def test_a_due_hold_without_operation_is_missed_even_behind_dead_ones(shop: Shop) -> None:
    for key in range(100, 210):
        shop.hold(key, timedelta(hours=-20))
    shop.scan()
    shop.run("update {s}operation set state = 'dead', reason = 'broken'")
    shop.hold(7, timedelta(minutes=-90))
    row = seen(shop).rules[0]
    assert row.count(OperationState.DEAD) == 111
    assert row.holds.missed_due_at is not None
    text = findings(shop)
    assert "Work waits in cart, and no worker is alive" in text
    assert "waits for 1 h 30 min; the promise is 1 h" in text
    assert "111 operations of cart wait in review" in text


@pytest.mark.parametrize(
    ("statement", "sentence"),
    [
        ("update {s}rule_state set condition = 'paused', reason = 'why'", "cart is paused: why."),
        (
            "update {s}rule_state set condition = 'waiting', reason = 'so'",
            "waits to be attached: so.",
        ),
        ("update {s}rule_state set scan_paused = 'ann: lunch'", "is paused: ann: lunch."),
        ("update {s}worker set beat_at = '2020-01-01T00:00:00.000000Z'", "has been silent for"),
        ("update {s}tick set started_at = '2020-01-01T00:00:00.000000Z'", "scan of cart is late"),
        ("drop table res", "The table of cart cannot be read"),
    ],
)
def test_a_trouble_is_one_sentence(shop: Shop, statement: str, sentence: str) -> None:
    alive(shop)
    shop.run(statement)
    assert sentence in findings(shop)


def test_holds_without_a_due_are_counted(shop: Shop) -> None:
    shop.run("insert into res values (50, 't', 'held', 'k', null)")
    shop.run("insert into res values (51, 't', 'held', 'k', '1970-01-01 00:00:00')")
    assert seen(shop).rules[0].holds.empty_count == 2


def test_one_unreadable_table_hides_no_other_rule(shop: Shop) -> None:
    missing = replace(CART, name="rooms", table=TableName("rooms"))
    rows = seen(shop, missing, CART).rules
    assert rows[0].holds.trouble
    assert rows[1].count(OperationState.READY) == 1


def test_a_reading_cannot_write(every_shop: Shop) -> None:
    with (
        every_shop.ledger() as ledger,
        pytest.raises(DatabaseError, match=r"read-?only"),
        ledger.reading(),
    ):
        ledger.session.run(f"delete from {every_shop.prefix}record", {})


def test_a_reading_sees_one_snapshot(every_shop: Shop) -> None:
    with every_shop.ledger() as ledger, ledger.reading() as reading:
        before = reading.figures.depths(["cart"], 10)
        every_shop.run("delete from {s}operation")
        assert reading.figures.depths(["cart"], 10) == before


def test_a_reading_on_sqlite_waits_for_no_writer(sqlite_shop: Shop) -> None:
    path = file_of(sqlite_shop.url)
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("begin immediate")
        writer.execute("delete from freehold_operation")
        assert seen(sqlite_shop).rules[0].count(OperationState.READY) == 1
        writer.execute("rollback")


def test_json_and_table_say_the_same(shop: Shop) -> None:
    found = seen(shop)
    data = as_data(found)["rules"][0]
    page = Console(file=StringIO(), width=140)
    show(found, page)
    assert isinstance(page.file, StringIO)
    text = page.file.getvalue()
    assert data["depth"]["ready"] == 1
    assert data["last_hour"]["released_count"] == 3
    assert "1 renewed" in text
    lag_seconds = data["last_hour"]["lag_seconds"]
    assert 7_200 <= lag_seconds["p50"] == lag_seconds["max"] < 10_800
    assert "≤ 2 h" in text


def test_a_narrow_screen_loses_columns_and_cuts_none(shop: Shop) -> None:
    found = seen(shop)
    page = Console(file=StringIO(), width=48)
    show(found, page)
    assert isinstance(page.file, StringIO)
    (head,) = [line for line in page.file.getvalue().splitlines() if line.startswith("rule ")]
    assert head.split() == ["rule", "released", "p99", "longest", "skipped"]


def test_the_longest_lag_is_exact_and_every_tenant_has_its_own(shop: Shop) -> None:
    late = timedelta(hours=5)
    shop.hold(20, -late)
    shop.scan()
    shop.work()
    row = seen(shop).rules[0]
    assert row.ended is not None
    assert row.ended.lag_max_seconds is not None
    assert late.total_seconds() <= row.ended.lag_max_seconds < late.total_seconds() + 60
    (tenant, worst), *others = row.tenants
    assert (tenant, worst.lag_max_seconds) == ("t0", row.ended.lag_max_seconds)
    assert sum(one.expired_count for _, one in row.tenants) == row.ended.expired_count == 5
    assert all((one.lag_max_seconds or 0) < late.total_seconds() for _, one in others)
    data = as_data(seen(shop))["rules"][0]
    assert data["tenant_count"] == len(data["tenants_last_hour"]) == 2
    assert sum(data["last_hour"]["lag_counts"].values()) == 5


def test_a_tally_of_an_older_schema_says_its_bucket(shop: Shop) -> None:
    shop.run("update {s}tally set lag_max_seconds = null")
    data = as_data(seen(shop))["rules"][0]["last_hour"]
    assert data["lag_seconds"]["max"] == 10_800.0


def test_attempts_beyond_the_first_are_counted(shop: Shop) -> None:
    shop.run("update {s}operation set attempt = 2, state = 'retrying' where hold_key = '8'")
    at = "'2999-01-01T00:00:00.000000Z'"
    columns = "operation_id, attempt, failure_class, failure_code, failure_message, failed_at"
    shop.run(f"insert into {{s}}attempt ({columns}) values (1, 1, 'broken', '', '', {at})")
    shop.work()
    found = seen(shop)
    data = as_data(found)["rules"][0]["last_hour"]
    assert (data["redelivery_count"], data["attempt_count"]) == (2, 4 + 1 + 2)
    assert found.failed == {"broken": 1}


def test_guards_and_pauses_are_shown(shop: Shop) -> None:
    with shop.ledger() as ledger, ledger.transaction() as tx:
        tx.guards.trip(GuardKind.CLOCK, None, "the clock jumped", {})
        tx.pauses.begin(Pause(Role.WORK, "cart", "t1", "ann", "stock take", tx.now))
        over = tx.now - timedelta(days=1)
        tx.pauses.begin(Pause(Role.SCAN, "cart", None, "ann", "lunch", over, over))
    data = as_data(seen(shop))
    assert [one["reason"] for one in data["guards"]] == ["the clock jumped"]
    assert [one["tenant"] for one in data["pauses"]] == ["t1"]
    told = findings(shop)
    assert told.count("the clock jumped") == told.count("stock take") == 1, "each is told once"
    assert "All releases are frozen: the clock jumped." in told
    assert "The work of cart for tenant t1 is paused by ann: stock take." in told


def test_counts_and_spans_read_well() -> None:
    assert number(COUNT_MOST + 1) == "10,000+"
    assert counted(COUNT_MOST + 1) == "More than 10,000 operations"
    assert counted(1) == "1 operation"
    assert span(timedelta(seconds=2)) == "2 s"
    assert span(timedelta(seconds=2.4)) == "2.4 s"
    assert span(timedelta(days=1, hours=2, minutes=3)) == "1 d 2 h"
