"""The contract of `ports.strays.Strays`."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from freehold.domain.messages import RAW_BYTES_KEPT, Unreadable, read_message
from freehold.ports.strays import STRAYS_MOST, DeliveryCounts
from freehold.testing.contracts.ground import NOW, SECOND, Ground, only

NASTY = b"\x00\xff\x1b[2J'\\\"{},\n"


class StraysContract:
    """Give the fixture `ground`."""

    def test_a_payload_is_kept_byte_by_byte(self, ground: Ground) -> None:
        with ground.open().transaction() as tx:
            assert tx.strays.record("q", [unreadable(NASTY)]) == 1
        row = only(ground.back.rows("stray"))
        assert (row["queue"], row["raw"], row["byte_count"]) == ("q", NASTY, len(NASTY))
        with ground.open().transaction() as tx:
            (stray,) = tx.strays.open(0, 10)
            assert tx.strays.find(stray.id) == stray
        assert (stray.raw, stray.digest) == (NASTY, unreadable(NASTY).digest)
        assert (stray.reason, stray.seen_count) == ("not JSON in UTF-8", 1)
        assert (stray.first_seen_at, stray.last_seen_at) == (NOW, NOW)

    def test_the_same_bytes_are_one_row_and_counted(self, ground: Ground) -> None:
        one, other = unreadable(b"one"), unreadable(b"other")
        ledger = ground.open()
        with ledger.transaction() as tx:
            assert tx.strays.record("q", [one, other, one]) == 2
        ground.set_now(NOW + SECOND)
        with ledger.transaction() as tx:
            assert tx.strays.record("q", [one]) == 0
            assert tx.strays.record("elsewhere", [one]) == 1
            assert tx.strays.record("q", []) == 0
            found = {(s.queue, s.raw): s.seen_count for s in tx.strays.open(0, 10)}
            again = next(s for s in tx.strays.open(0, 10) if (s.queue, s.raw) == ("q", b"one"))
        assert found == {("q", b"one"): 3, ("q", b"other"): 1, ("elsewhere", b"one"): 1}
        assert (again.first_seen_at, again.last_seen_at) == (NOW, NOW + SECOND)

    def test_what_differs_behind_the_kept_bytes_is_another(self, ground: Ground) -> None:
        long = b"x" * RAW_BYTES_KEPT
        with ground.open().transaction() as tx:
            assert tx.strays.record("q", [unreadable(long + b"1"), unreadable(long + b"2")]) == 2

    def test_their_number_is_bounded(self, ground: Ground) -> None:
        first = unreadable(b"0")
        with ground.open().transaction() as tx:
            many = [replace(first, digest=f"{n:064x}", raw=b"") for n in range(1, STRAYS_MOST)]
            assert tx.strays.record("q", [first, *many]) == STRAYS_MOST
            assert tx.strays.record("q", [unreadable(b"more"), first]) == 0
            assert tx.strays.count_open(2 * STRAYS_MOST) == STRAYS_MOST
            assert tx.strays.count_open(7) == 7
            (one,) = tx.strays.open(0, 1)
            assert max(s.seen_count for s in tx.strays.open(0, STRAYS_MOST)) == 2
            assert tx.strays.discard([one.id]) == 1
            assert tx.strays.record("q", [unreadable(b"more"), unreadable(b"yet more")]) == 1

    def test_reading_goes_page_by_page(self, ground: Ground) -> None:
        with ground.open().transaction() as tx:
            tx.strays.record("q", [unreadable(b"%d" % n) for n in range(5)])
            first = tx.strays.open(0, 2)
            rest = tx.strays.open(first[-1].id, 10)
        ids = [one.id for one in (*first, *rest)]
        assert (len(ids), ids) == (5, sorted(ids))

    def test_a_discarded_one_is_out_of_review_and_stays_there(self, ground: Ground) -> None:
        payload = unreadable(b"one")
        with ground.open().transaction() as tx:
            tx.strays.record("q", [payload])
            (one,) = tx.strays.open(0, 10)
            assert tx.strays.discard([one.id, one.id + 1]) == 1
            assert tx.strays.discard([one.id]) == 0
            assert tx.strays.discard([]) == 0
            assert tx.strays.record("q", [payload]) == 0
            assert (list(tx.strays.open(0, 10)), tx.strays.find(one.id)) == ([], None)
        row = only(ground.back.rows("stray"))
        assert (row["state"], row["seen_count"]) == ("discarded", 2)

    def test_counts_are_added_by_minute_and_process(self, ground: Ground) -> None:
        ledger = ground.open()
        with ledger.transaction() as tx:
            tx.strays.count("a", DeliveryCounts(1, 2, 3, 4, 5, 6))
        ground.set_now(NOW + 59 * SECOND)
        with ledger.transaction() as tx:
            tx.strays.count("a", DeliveryCounts(1, 1, 1, 1, 1, 1))
            tx.strays.count("b", DeliveryCounts(published_count=10))
        ground.set_now(NOW + 60 * SECOND)
        with ledger.transaction() as tx:
            tx.strays.count("a", DeliveryCounts(unreadable_count=100))
            assert tx.strays.counts_since(NOW) == DeliveryCounts(12, 3, 4, 5, 6, 107)
            assert tx.strays.counts_since(NOW + SECOND) == DeliveryCounts(unreadable_count=100)
            assert tx.strays.counts_since(NOW + timedelta(days=1)) == DeliveryCounts()
        assert len(ground.back.rows("delivery_count")) == 3


def unreadable(payload: bytes) -> Unreadable:
    """Read a payload that is no message."""
    read = read_message(payload)
    assert isinstance(read, Unreadable)
    return read
