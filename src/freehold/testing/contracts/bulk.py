"""The contract of `StraightHolds.release_bulk`: a stretch of due rows released by one statement.

A database that takes no rows in bulk has nothing to show here.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from freehold.domain.errors import ChangeLost, RowRefused
from freehold.domain.names import digest
from freehold.domain.tallies import LAG_BOUNDS_SECONDS, Tally
from freehold.ports.holds import FoundHold, ScanCursor
from freehold.ports.ledger import Transaction
from freehold.ports.straight import STRAIGHT, Bulk, Stretch
from freehold.testing.contracts.ground import (
    NOW,
    SECOND,
    Abandoned,
    Ground,
    enqueue,
    new_operation,
    only,
    raised,
)

BEGINNING = ScanCursor("1970-01-01 00:00:00+00", "0")
WEEK = timedelta(days=7)


class BulkContract:
    """Give the fixture `ground`."""

    def test_a_stretch_is_released_row_by_row_in_the_order_of_due(self, ground: Ground) -> None:
        for key, second in ((1, 3), (2, 2), (3, 1), (4, -1)):
            ground.back.add_hold(key, NOW - second * SECOND)
        first = _release(ground, limit=2)
        if first is None:
            return
        assert first.after is not None
        assert (_keys(first), first.after.hold_key) == (["1", "2"], "2")
        rest = _release(ground, limit=2, after=first.after)
        assert rest is not None
        assert (_keys(rest), rest.after) == (["3"], None)

    def test_it_writes_what_a_straight_release_writes(self, ground: Ground) -> None:
        ground.back.add_hold(1, NOW - SECOND)
        found = _found(ground)
        bulk = _release(ground, tick_id=7)
        if bulk is None:
            return
        record, event = only(ground.back.rows("record")), only(ground.back.rows("outbox"))
        tally = only(ground.back.rows("tally"))
        (claim,) = bulk.released
        assert ground.back.hold(1) == {"status": "expired", "tenant": "t", "token": "a"}
        assert claim.digest == digest(ground.rule.name, "1", found[0].identity)
        assert (claim.rule, claim.tenant, claim.due_at) == (ground.rule.name, "t", NOW - SECOND)
        assert (record["outcome"], record["reason"]) == ("expired", STRAIGHT)
        assert (record["generation"], record["attempt"], record["tick_id"]) == (1, 1, 7)
        assert (record["operation_id"], record["digest"]) == (claim.id, claim.digest)
        assert record["tally_id"] == tally["id"]
        assert record["before_image"]["status"] == "held"
        assert (record["found_at"], record["finished_at"], event["at"]) == (NOW, NOW, NOW)
        assert (event["type"], event["carry"]) == ("hold.expired.v1", {"tenant": "t"})
        for name in ("operation_id", "digest", "due_at", "generation", "hold_key", "tenant"):
            assert record[name] == event[name]

    def test_lags_are_counted_as_a_tally_counts_them(self, ground: Ground) -> None:
        lags = [timedelta(seconds=bound) for bound in LAG_BOUNDS_SECONDS]
        lags += [
            lag + step for lag in lags for step in (timedelta.resolution, -timedelta.resolution)
        ]
        expected = Tally(ground.rule.name, "t")
        for key, lag in enumerate([*lags, timedelta(0)], 1):
            ground.back.add_hold(key, NOW - lag)
            expected.count_expired(lag.total_seconds())
        if _release(ground) is None:
            return
        tally = only(ground.back.rows("tally"))
        assert tally["expired_count"] == expected.expired_count
        assert tally["lag_counts"] == expected.lag_counts
        assert tally["lag_max_seconds"] == expected.lag_max_seconds
        assert (tally["skipped"], tally["redelivery_count"]) == ({}, 0)

    def test_each_tenant_has_a_tally_and_nobody_as_well(self, ground: Ground) -> None:
        for key, tenant in enumerate(("t", "", None, "t"), 1):
            ground.back.add_hold(key, NOW - SECOND)
            ground.back.change_hold(key, "tenant", tenant)
        if _release(ground) is None:
            return
        tallies = {row["id"]: row for row in ground.back.rows("tally")}
        records = ground.back.rows("record")
        counts = {row["tenant"]: row["expired_count"] for row in tallies.values()}
        assert counts == {"t": 2, "": 1, None: 1}
        assert all(row["tenant"] == tallies[row["tally_id"]]["tenant"] for row in records)

    def test_an_open_operation_keeps_its_row(self, ground: Ground) -> None:
        ground.back.add_hold(1, NOW - SECOND)
        (found,) = _found(ground)
        name = digest(ground.rule.name, "1", found.identity)
        enqueue(ground.open(), new_operation(ground.rule.name, 1, digest=name))
        bulk = _release(ground)
        assert bulk is None or bulk == Bulk([], None)

    def test_a_record_of_the_identity_keeps_its_row(self, ground: Ground) -> None:
        ground.back.add_hold(1, NOW - SECOND)
        if _release(ground) is None:
            return
        ground.back.change_hold(1, "status", "held")
        assert _release(ground) == Bulk([], None)
        ground.back.change_hold(1, "token", "other")
        assert _keys(_release(ground)) == ["1"]

    def test_a_row_that_the_host_holds_is_left(self, ground: Ground) -> None:
        for key in (1, 2, 3):
            ground.back.add_hold(key, NOW - key * SECOND)
        if not ground.transactions_overlap():
            return
        with ground.back.lock_hold(2):
            bulk = _release(ground, limit=3)
        assert bulk is None or (sorted(_keys(bulk)), bulk.after) == (["1", "3"], None)

    def test_rows_outside_of_its_instants_are_left(self, ground: Ground) -> None:
        for key in (1, 2, 3, 4):
            ground.back.add_hold(key, NOW - key * SECOND)
        bulk = _release(ground, later_than=NOW - 4 * SECOND, until=NOW - 2 * SECOND)
        assert bulk is None or sorted(_keys(bulk)) == ["2", "3"]

    def test_a_suppressed_change_leaves_its_row(self, ground: Ground) -> None:
        ground.back.add_hold(1, NOW - SECOND)
        ground.back.suppress_changes()
        bulk = _release(ground)
        assert bulk is None or bulk == Bulk([], None)
        assert ground.back.rows("record") == []

    def test_a_bulk_that_is_taken_back_is_lost(self, ground: Ground) -> None:
        self._assert_refused(ground, ground.back.restore_changes, ChangeLost)

    def test_a_bulk_with_a_refused_row_is_lost(self, ground: Ground) -> None:
        self._assert_refused(ground, ground.back.refuse_changes, RowRefused)

    def _assert_refused(
        self, ground: Ground, prepare: Callable[[], None], kind: type[RowRefused]
    ) -> None:
        ground.back.add_hold(1, NOW - SECOND)
        prepare()
        if not _takes_bulk(ground):
            return
        with raised(kind):
            _release(ground)
        assert ground.back.rows("record") == []

    def test_nothing_remains_of_a_bulk_that_is_not_committed(self, ground: Ground) -> None:
        ground.back.add_hold(1, NOW - SECOND)
        with raised(Abandoned), ground.open().transaction() as tx:
            if tx.straight(ground.rule).takes_bulk:
                assert _keys(_bulk(tx, ground, Stretch(BEGINNING, 9, NOW - WEEK, NOW))) == ["1"]
            raise Abandoned
        assert ground.back.rows("record") == []
        assert ground.back.hold(1) == {"status": "held", "tenant": "t", "token": "a"}


def _found(ground: Ground) -> list[FoundHold]:
    with ground.open().transaction() as tx:
        return list(tx.holds(ground.rule).find_due(None, 100))


def _takes_bulk(ground: Ground) -> bool:
    with ground.open().transaction() as tx:
        return tx.straight(ground.rule).takes_bulk


def _release(
    ground: Ground,
    *,
    limit: int = 100,
    after: ScanCursor = BEGINNING,
    later_than: datetime = NOW - WEEK,
    until: datetime = NOW,
    tick_id: int | None = None,
) -> Bulk | None:
    """Release a stretch and commit; None where nothing is taken in bulk."""
    with ground.open().transaction() as tx:
        if not tx.straight(ground.rule).takes_bulk:
            return None
        return _bulk(tx, ground, Stretch(after, limit, later_than, until), tick_id)


def _bulk(tx: Transaction, ground: Ground, stretch: Stretch, tick_id: int | None = None) -> Bulk:
    return tx.straight(ground.rule).release_bulk(stretch, tick_id)


def _keys(bulk: Bulk | None) -> list[str]:
    assert bulk is not None
    return [claim.hold_key for claim in bulk.released]
