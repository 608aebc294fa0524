-- name: retry_forwards
-- Purpose: make dead forwards ready, with their attempts on record under the old count of replays.
-- Caller: adapters.sql.forwards, on a person's word
-- Index: forward_dead, or the primary key
update {s}forward f
set state = 'ready', attempt = 0, replay_count = f.replay_count + 1, available_at = :now,
    ended_at = null, changed_at = :now
where f.event_id = any (:ids::bigint[]) and f.target = :target and f.state = 'dead'
returning f.event_id

-- name: discard_forwards
-- Purpose: set dead forwards aside, and those that wait where that was asked for.
-- Caller: adapters.sql.forwards, on a person's word
-- Index: the primary key; states are named so that forward_claim cannot be proven to serve
update {s}forward f
set state = 'discarded', reason = :reason, ended_at = :now, changed_at = :now
where f.event_id = any (:ids::bigint[]) and f.target = :target
  and (f.state = 'dead' or (:waiting and f.state not in ('leased', 'dead', 'discarded', 'delivered')))
returning f.event_id

-- name: replay_forwards
-- Purpose: owe events to a target again, or for the first time; what it is owed now stays.
-- Caller: adapters.sql.forwards, on a person's word, on events locked just before
-- Index: the primary keys
insert into {s}forward as f (
    event_id, target, state, replay_count, owed_at, available_at, changed_at)
select e.id, :target, 'ready', 1, :now, :now, :now
from {s}outbox e
where e.id = any (:ids::bigint[]) and (e.state <> 'pending' or e.routed_at is not null)
on conflict (event_id, target) do update set
    state = 'ready', attempt = 0, replay_count = f.replay_count + 1, owed_at = :now,
    available_at = :now, first_tried_at = null, failure_class = null, reason = null,
    ended_at = null, changed_at = :now
where f.state in ('delivered', 'discarded')
returning f.event_id

-- name: reopen_events
-- Purpose: let events wait again; one that had no route gets none but what it is owed.
-- Caller: adapters.sql.forwards, after forwards of theirs were made ready
-- Index: the primary key
update {s}outbox e
set state = 'pending', published_at = null, routed_at = coalesce(e.routed_at, :now)
where e.id = any (:ids::bigint[]) and e.state <> 'pending'
