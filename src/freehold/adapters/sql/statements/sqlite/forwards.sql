-- name: retry_forwards
-- Purpose: make dead forwards ready, with their attempts on record under the old count of replays.
-- Differs: the batch arrives as JSON.
-- Caller: adapters.sql.forwards, on a person's word
-- Index: the primary key
update {s}forward
set state = 'ready', attempt = 0, replay_count = replay_count + 1, available_at = :now,
    ended_at = null, changed_at = :now
where event_id in (select value from json_each(:ids)) and target = :target and +state = 'dead'
returning event_id

-- name: discard_forwards
-- Purpose: set dead forwards aside, and those that wait where that was asked for.
-- Differs: the batch arrives as JSON.
-- Caller: adapters.sql.forwards, on a person's word
-- Index: the primary key
update {s}forward
set state = 'discarded', reason = :reason, ended_at = :now, changed_at = :now
where event_id in (select value from json_each(:ids)) and target = :target
  and (+state = 'dead' or (:waiting and +state in ('ready', 'retrying')))
returning event_id

-- name: replay_forwards
-- Purpose: owe events to a target again, or for the first time; what it is owed now stays.
-- Differs: the batch arrives as JSON.
-- Caller: adapters.sql.forwards, on a person's word
-- Index: the primary keys
insert into {s}forward (
    event_id, target, state, replay_count, owed_at, available_at, changed_at)
select e.id, :target, 'ready', 1, :now, :now, :now
from {s}outbox e
where e.id in (select value from json_each(:ids))
  and (+e.state <> 'pending' or e.routed_at is not null)
on conflict (event_id, target) do update set
    state = 'ready', attempt = 0, replay_count = replay_count + 1, owed_at = :now,
    available_at = :now, first_tried_at = null, failure_class = null, reason = null,
    ended_at = null, changed_at = :now
where state in ('delivered', 'discarded')
returning event_id

-- name: reopen_events
-- Purpose: let events wait again; one that had no route gets none but what it is owed.
-- Differs: the batch arrives as JSON.
-- Caller: adapters.sql.forwards, after forwards of theirs were made ready
-- Index: the primary key
update {s}outbox
set state = 'pending', published_at = null, routed_at = coalesce(routed_at, :now)
where id in (select value from json_each(:ids)) and +state <> 'pending'
