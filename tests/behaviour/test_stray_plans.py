"""Strays and counts of deliveries go by their index, however many there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from freehold.adapters.sql.ledger import SqlLedger
from freehold.adapters.system import Onwards
from freehold.domain.messages import Unreadable
from freehold.ports.strays import DeliveryCounts
from tests.behaviour.plans import analyse, assert_by_index, explained

if TYPE_CHECKING:
    from tests.behaviour.place import Place

MANY = 3_000
POSTGRES = {
    "known_strays": {"stray_once"},
    "add_strays": {"stray_once"},
    "open_strays": {"stray_dead"},
    "count_open_strays": {"stray_dead"},
    "delivery_counts": {"delivery_count_pkey"},
}
SQLITE = {
    "known_strays": {"sqlite_autoindex_freehold_stray_1"},
    "count_open_strays": {"freehold_stray_dead"},
    "find_stray": {"rowid of freehold_stray"},
    "discard_strays": {"rowid of freehold_stray"},
    "delivery_counts": {"sqlite_autoindex_freehold_delivery_count_1"},
}


def test_strays_go_by_their_index(place: Place) -> None:
    session = explained(place)
    ledger = SqlLedger(session, Onwards())
    many = [Unreadable(b"", 0, f"{number:064x}", "not JSON") for number in range(MANY)]
    with ledger.transaction() as tx:
        tx.strays.record("q", many)
        for number in range(1_000):
            tx.strays.count(f"process {number}", DeliveryCounts(1))
    analyse(place)
    session.plans.clear()
    with ledger.transaction() as tx:
        tx.strays.record("q", many[:5])
        first = tx.strays.open(0, 10)
        assert len(tx.strays.open(first[-1].id, 10)) == 10
        assert tx.strays.find(first[0].id) is not None
        assert tx.strays.discard([one.id for one in first]) == 10
        assert tx.strays.count_open(100) == 100
        tx.strays.counts_since(tx.now)
    wanted = POSTGRES if place.dialect == "postgres" else SQLITE
    assert_by_index(session.plans, wanted)
    tables = {"all of stray", "all of freehold_stray", "all of delivery_count"}
    assert not {name: plan for name, plan in session.plans.items() if plan & tables}
