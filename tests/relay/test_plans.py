"""Relaying costs what it relays: a paused target's waiting events and dead ones slow nobody."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from freehold.adapters.sql.ledger import SqlLedger
from freehold.adapters.system import Onwards
from freehold.domain.forwards import ForwardState
from freehold.domain.retries import FailureClass
from freehold.ports.relay import Handed
from tests.behaviour.plans import analyse, explained

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from tests.behaviour.place import Place
    from tests.behaviour.plans import Plans

WAITING, UNROUTED, READY, LEASED = 6_000, 300, 600, 20
LEASE = timedelta(minutes=1)
POSTGRES = {
    "claim_unrouted": {"outbox_unrouted"},
    "add_forwards": {"forward_pkey"},
    "mark_routed": {"outbox_pkey"},
    "claim_forwards": {"forward_claim", "outbox_pkey"},
    "lease_forwards": {"forward_pkey"},
    "lock_events": {"outbox_pkey"},
    "settle_delivered": {"forward_pkey"},
    "add_forward_attempts": {"forward_attempt_pkey"},
    "renew_forwards": {"forward_pkey"},
    "ended_forward_leases": {"forward_leased_until"},
    "take_back_forwards": {"forward_pkey"},
    "waiting_page": {"outbox_pending"},
    "publish_ended": {"forward_pkey"},
}
# What relays have in hand is little, so its index serves as well as the key; and that of waiting
# events is by their ids, too.
ONE_OF = {
    "settle_forward": {"forward_pkey", "forward_leased_until"},
    "publish_ended": {"outbox_pkey", "outbox_pending"},
}
SQLITE = {
    "claim_unrouted": {"freehold_outbox_unrouted"},
    "mark_routed": {"rowid of freehold_outbox"},
    "claim_forwards": {"freehold_forward_claim", "rowid of e"},
    "lease_forwards": {"sqlite_autoindex_freehold_forward_1"},
    "lock_events": {"rowid of e"},
    "settle_delivered": {"sqlite_autoindex_freehold_forward_1"},
    "settle_forward": {"sqlite_autoindex_freehold_forward_1"},
    "renew_forwards": {"sqlite_autoindex_freehold_forward_1"},
    "ended_forward_leases": {"freehold_forward_leased_until"},
    "take_back_forwards": {"sqlite_autoindex_freehold_forward_1"},
    "waiting_page": {"freehold_outbox_pending"},
    "publish_ended": {"rowid of e", "sqlite_autoindex_freehold_forward_1"},
}
IN_ORDER = ("claim_unrouted", "claim_forwards", "ended_forward_leases", "waiting_page")
KINDS = {"nested loops": "nestloop", "hash": "hashjoin", "merge": "mergejoin"}


@pytest.mark.parametrize("statistics", ["stale", "fresh"])
def test_statements_go_by_their_index(place: Place, statistics: str) -> None:
    if statistics == "stale":
        analyse(place)
    fill(place)
    if statistics == "fresh":
        analyse(place)
    assert_by_index(place, relayed(place))


@pytest.mark.parametrize("joins", list(KINDS))
def test_no_kind_of_join_reads_a_table_whole(pg: Place, joins: str) -> None:
    force(pg, joins)
    analyse(pg)
    fill(pg)
    assert_by_index(pg, relayed(pg))


def assert_by_index(place: Place, plans: Plans) -> None:
    """Check that each statement uses its indexes, and reads none of what grows from end to end."""
    wanted = POSTGRES if place.dialect == "postgres" else SQLITE
    assert not {n: (want, plans[n]) for n, want in wanted.items() if not want <= plans[n]}
    if place.dialect == "postgres":
        assert not {n: plans[n] for n, names in ONE_OF.items() if not plans[n] & names}
    # A page in order, not one out of all that waits.
    bitmaps = {f"a bitmap of {name}" for name in (*grown_names(place), "forward_leased_until")}
    assert not {n: plans[n] & bitmaps for n in IN_ORDER if plans[n] & bitmaps}
    grown = {f"all of {name}" for name in grown_names(place)}
    # A page of unrouted events begins at the first entry of its index, and ends at its limit.
    begins = {"claim_unrouted"}
    assert not {n: p & grown for n, p in plans.items() if p & grown and n not in begins}


def force(place: Place, joins: str) -> None:
    """Let the planner join in one way only."""
    name = place.target.rpartition("/")[2]
    for kind in KINDS.values():
        allowed = "on" if KINDS[joins] == kind else "off"
        place.host.run(f"alter database {name} set enable_{kind} = {allowed}")


def relayed(place: Place) -> Plans:
    """Do once whatever a relay does; no claim takes more than it may."""
    session = explained(place)

    def run_each(sql: str, each: Sequence[Mapping[str, Any]]) -> list[int]:
        return [session.run(sql, parameters)[1] for parameters in each]

    session.run_each = run_each  # type: ignore[method-assign]
    ledger = SqlLedger(session, Onwards())
    with ledger.transaction() as tx:
        heads = tx.relay.claim_unrouted(50)
        assert [one.id for one in heads] == list(range(WAITING + 1, WAITING + 51))
        assert tx.relay.route(heads, [(one.id, "shop") for one in heads[:40]]) == 40
        found = tx.relay.claim("shop", 30, LEASE)
        assert len(found) == 30
        assert tx.relay.renew(found, LEASE) == 30
        arrived = [Handed(one, ForwardState.DELIVERED) for one in found[:20]]
        failed = (ForwardState.RETRYING, tx.now, FailureClass.TRANSIENT, "503", "busy")
        assert tx.relay.settle([*arrived, *(Handed(one, *failed) for one in found[20:])]) == 30
        assert tx.relay.take_back(99) == LEASED
        assert tx.relay.publish_finished(0, 100).after_id == 100
    return session.plans


def grown_names(place: Place) -> list[str]:
    """Name the tables that grow, their keys, and their short names in statements."""
    names = [f"{place.prefix}{name}" for name in ("outbox", "forward", "forward_attempt")]
    bare = [name.rpartition(".")[2] for name in names]
    indexes = ("outbox_pending", "outbox_unrouted", "forward_claim", "forward_dead")
    return [*bare, *(f"{name}_pkey" for name in bare), *indexes, "e", "f", "c", "a"]


def fill(place: Place) -> None:
    """Write events that wait for a paused target and are dead at another, and a few for a third."""
    p, count = place.prefix, WAITING + UNROUTED
    many = {
        "postgres": f"generate_series(1, {count}) s(n)",
        "sqlite": f"(with recursive s(n) as (select 1 union all select n + 1 from s"
        f" where n < {count}) select n from s) s",
    }[place.dialect]
    at = "2026-03-10T11:00:00.000000Z"
    active = "true" if place.dialect == "postgres" else "1"
    over = "overriding system value" if place.dialect == "postgres" else ""
    instant = "::timestamptz" if place.dialect == "postgres" else ""
    run = place.host.run
    for name in ("away", "grave", "shop"):
        run(
            f"insert into {p}target (name, kind, active, changed_at)"
            f" values ('{name}', 'webhook', {active}, '{at}')"
        )
    uuid = "gen_random_uuid()" if place.dialect == "postgres" else "lower(hex(randomblob(16)))"
    run(
        f"insert into {p}outbox (id, type, operation_id, rule, hold_key, digest, generation, due_at,"
        f" at, tokens, carry, state, routed_at) {over} select n, 'hold.expired.v1', n, 'cart', 'k',"
        f" {uuid}, 1, '{at}', '{at}', '{{}}', '{{}}', 'pending',"
        f" case when n <= {WAITING} then '{at}'{instant} end from {many}"
    )
    columns = "event_id, target, state, owed_at, available_at, changed_at, leased_until, ended_at"
    leased = f"id between {READY + 1} and {READY + LEASED}"
    shop = f"case when {leased} then 'leased' when id <= {READY} then 'ready' else 'delivered' end"
    then_at = f"then '{at}'{instant} end"
    none = f"null{instant}, null{instant}"
    for target, state, ends in (
        ("away", "'ready'", none),
        ("grave", "'dead'", f"null{instant}, '{at}'{instant}"),
        ("shop", shop, f"case when {leased} {then_at}, case when id > {READY + LEASED} {then_at}"),
    ):
        run(
            f"insert into {p}forward ({columns}) select id, '{target}', {state}, '{at}'{instant},"
            f" '{at}'{instant}, '{at}'{instant}, {ends} from {p}outbox where id <= {WAITING}"
        )
