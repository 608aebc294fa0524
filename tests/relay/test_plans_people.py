"""Looking at events and acting on them costs what is looked at, whatever waits or is dead beside it."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from freehold.adapters.sql.event_insight import SqlEventsInSight
from freehold.adapters.sql.ledger import SqlLedger
from freehold.adapters.sql.session import Runner
from freehold.adapters.system import Onwards
from freehold.ports.event_insight import EventsAsked, Standing
from freehold.ports.forwards import ReplayAsked
from tests.behaviour.plans import analyse, explained
from tests.relay.test_plans import UNROUTED, WAITING, fill, grown_names

if TYPE_CHECKING:
    from tests.behaviour.place import Place
    from tests.behaviour.plans import Plans

POSTGRES = {
    "event_from": {"outbox_pkey"},
    "walk_events": {"outbox_pkey"},
    "events_by_ids": {"outbox_pkey"},
    "forwards_of_events": {"forward_pkey"},
    "dead_events": {"forward_dead"},
    "owed_depth": {"forward_claim"},
    "dead_depth": {"forward_dead"},
    "leased_forward_depth": {"forward_leased_until"},
    "unrouted_depth": {"outbox_unrouted"},
    "forward_failures": {"forward_attempt_pkey"},
    "find_dead_forwards": {"forward_dead"},
    "find_owed_forwards": {"forward_claim"},
    "replayable_events": {"outbox_pkey", "forward_pkey"},
    "reopen_events": {"outbox_pkey"},
}
SQLITE = {
    "event_from": {"rowid of e"},
    "walk_events": {"rowid of e"},
    "events_by_ids": {"rowid of e"},
    "forwards_of_events": {"sqlite_autoindex_freehold_forward_1"},
    "dead_events": {"freehold_forward_dead"},
    "owed_depth": {"freehold_forward_claim"},
    "dead_depth": {"freehold_forward_dead"},
    "leased_forward_depth": {"freehold_forward_leased_until"},
    "unrouted_depth": {"freehold_outbox_unrouted"},
    "find_dead_forwards": {"freehold_forward_dead"},
    "find_owed_forwards": {"freehold_forward_claim"},
    "replayable_events": {"rowid of e", "sqlite_autoindex_freehold_forward_1"},
    "retry_forwards": {"sqlite_autoindex_freehold_forward_1"},
    "discard_forwards": {"sqlite_autoindex_freehold_forward_1"},
    "reopen_events": {"rowid of freehold_outbox"},
}

IN_ORDER = (
    *("waiting_page", "dead_events", "owed_depth", "dead_depth", "unrouted_depth"),
    *("find_dead_forwards", "find_owed_forwards"),
)
NONE = {Standing.RETRYING, Standing.DISCARDED, Standing.KEPT}  # there are none of these


@pytest.mark.parametrize("statistics", ["stale", "fresh"])
def test_statements_go_by_their_index(place: Place, statistics: str) -> None:
    if statistics == "stale":
        analyse(place)
    fill(place)
    if statistics == "fresh":
        analyse(place)
    plans = looked(place)
    wanted = POSTGRES if place.dialect == "postgres" else SQLITE
    assert not {n: (want, plans[n]) for n, want in wanted.items() if not want <= plans[n]}
    # A page in order, not one out of all that waits or is dead.
    bitmaps = {f"a bitmap of {name}" for name in grown_names(place)}
    assert not {n: plans[n] & bitmaps for n in IN_ORDER if plans[n] & bitmaps}
    grown = {f"all of {name}" for name in grown_names(place)}
    # What is first and last is found at the two ends of the key; unrouted ones begin their index.
    begins = {"event_bounds", "unrouted_depth"}
    assert not {n: p & grown for n, p in plans.items() if p & grown and n not in begins}


def looked(place: Place) -> Plans:
    """Look at all there is, and act once on each thing."""
    session = explained(place)
    now = session.begin()
    sight = SqlEventsInSight(Runner(session), now)
    for standing in (None, *Standing):
        found = sight.find(EventsAsked(standing=standing, since=now - timedelta(days=1), limit=20))
        assert len(found.events) == (0 if standing in NONE else 20)
    found = sight.find(EventsAsked(limit=10_000))
    assert [one.id for one in found.events] == list(range(WAITING + UNROUTED, 0, -1))
    assert found.after is None
    figures = {one.state.name: one for one in sight.targets(1_000)}
    assert (figures["away"].waiting_count, figures["grave"].dead_count) == (1_000, 1_000)
    assert sight.unrouted_count(100) == 100
    assert len(sight.forwards([1, 2])) == 2
    assert sight.failures(1) == []
    session.rollback()
    ledger = SqlLedger(session, Onwards())
    with ledger.transaction() as tx:
        assert len(tx.forwards.find_stuck("away", 50, waiting=True)) == 50
        assert tx.forwards.find_stuck("grave", 2) == [1, 2]
        assert tx.forwards.retry("grave", [1, 2]) == [1, 2]
        assert tx.forwards.discard("grave", [3, 4], "why") == [3, 4]
        page = tx.forwards.replayable(ReplayAsked("shop"), WAITING - 50, 20)
        assert [one.id for one in page.events] == list(range(WAITING - 49, WAITING - 29))
        assert len(tx.forwards.replay("shop", [one.id for one in page.events])) == 20
    return session.plans
