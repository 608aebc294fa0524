"""The invariants of events and what they owe to targets; `invariants` asks them with all others.

*Not here*: what a target has received, which stands outside the database.
"""

from __future__ import annotations

from freehold.testing.backdoor import BackDoor

_OPEN_FORWARD = "f.state in ('ready', 'leased', 'retrying', 'dead')"

# Number, promise and query of each.
OF_THE_RELAY: tuple[tuple[str, str, str], ...] = (
    (
        "I15",
        "an event leaves with its last forward, and what is owed does not wait",
        (
            "select 'event ' || e.id || ' is ' || e.state || ', published at '"
            " || coalesce(cast(e.published_at as text), 'no time') || ', made at ' || e.at"
            " from {s}outbox e where (e.state = 'published' and (e.published_at is null"
            " or e.published_at < e.at)) or (e.state <> 'published' and e.published_at is not null)"
            " union all select 'event ' || e.id || ' is ' || e.state || ', and owed still'"
            " from {s}outbox e where e.state <> 'pending' and exists (select 1 from {s}forward f"
            f" where f.event_id = e.id and {_OPEN_FORWARD} and f.replay_count = 0)"
            " union all select 'event ' || e.id || ' waits, and nothing is owed of it any more'"
            " from {s}outbox e where e.state = 'pending' and e.routed_at is not null"
            f" and not exists (select 1 from {{s}}forward f where f.event_id = e.id and {_OPEN_FORWARD})"
            " union all select 'event ' || f.event_id || ' is owed to ' || f.target"
            " || ', and is nowhere' from {s}forward f where not exists (select 1 from {s}outbox e"
            " where e.id = f.event_id)"
            " union all select 'event ' || e.id || ' waits since ' || e.at || ' for a route'"
            " from {s}outbox e where e.state = 'pending' and e.routed_at is null and e.at < :promised"
            " union all select 'event ' || f.event_id || ' is ' || f.state || ' for ' || f.target"
            " || ' since ' || f.available_at from {s}forward f join {s}target t on t.name = f.target"
            " where f.state in ('ready', 'retrying') and f.available_at < :promised"
            " and t.active and t.failing_since is null and not exists (select 1 from {s}target_pause p"
            " where p.target = f.target and p.ended_at is null"
            " and (p.paused_until is null or p.paused_until > :promised))"
        ),
    ),
    (
        "I16",
        "what a target was told is written as told, and what failed as failed",
        (
            "select 'event ' || event_id || ' arrived at ' || target || ' after ' || attempt"
            " || ' attempts and ended at ' || coalesce(cast(ended_at as text), 'no time')"
            " from {s}forward where state = 'delivered' and (attempt < 1 or ended_at is null)"
            " union all select 'attempts of event ' || a.event_id || ' at ' || a.target"
            " || ' belong to no forward' from {s}forward_attempt a where not exists (select 1"
            " from {s}forward f where f.event_id = a.event_id and f.target = a.target"
            " and (a.replay_count < f.replay_count or a.attempt <= f.attempt))"
            " union all select 'event ' || event_id || ' is dead for ' || target || ' without a reason'"
            " from {s}forward where state = 'dead' and coalesce(reason, '') = ''"
            " union all select 'event ' || event_id || ' is leased for ' || target || ' until '"
            " || leased_until from {s}forward where state = 'leased' and leased_until < :swept"
        ),
    ),
)


def undelivered(door: BackDoor) -> list[tuple[int, str]]:
    """Return (event id, target) of what has not arrived, where every target wants every event.

    For the end of a drain. Events that were made while no target was active are owed to nobody.
    """
    rows = door.rows(
        "select e.id, t.name from {s}outbox e cross join {s}target t where e.state <> 'kept'"
        " and t.active and not exists (select 1 from {s}forward f where f.event_id = e.id"
        " and f.target = t.name and f.state = 'delivered') order by 1, 2"
    )
    return [(row[0], row[1]) for row in rows]
