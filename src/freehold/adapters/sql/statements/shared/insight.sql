-- name: claimable_depth
-- Purpose: count the claimable operations of a rule by state, oldest first, up to a limit.
-- Caller: adapters.sql.insight, for status
-- Index: operation_claim
select c.state, count(*), min(c.available_at), min(c.due_at),
       sum(case when c.state = 'deferred' and c.reason = 'busy' then 1 else 0 end)
from (
    select o.state, o.available_at, o.due_at, o.reason from {s}operation o
    where o.rule = :rule and o.state in ('ready', 'retrying', 'deferred')
    order by o.available_at, o.id limit :limit) c
group by c.state

-- name: leased_depth
-- Purpose: count leased operations by rule, up to a limit for all rules.
-- Caller: adapters.sql.insight, for status
-- Index: operation_leased_until
select l.rule, count(*), min(l.due_at)
from (
    select o.rule, o.due_at from {s}operation o
    where o.state = 'leased' order by o.leased_until limit :limit) l
group by l.rule

-- name: review_depth
-- Purpose: count the operations in review of a rule by state, up to a limit.
-- Caller: adapters.sql.insight, for status
-- Index: operation_review
select c.state, count(*)
from (
    select o.state from {s}operation o
    where o.rule = :rule and o.state in ('dead', 'discarded') order by o.id limit :limit) c
group by c.state

-- name: newest_tick
-- Purpose: read the newest run of a schedule.
-- Caller: adapters.sql.insight, for status
-- Index: tick_once, read backwards
select logical_time, started_at, finished_at, host_at, runner, found_count, new_count, outcome
from {s}tick where schedule = :rule order by logical_time desc limit 1

-- name: recent_tallies
-- Purpose: read the newest tallies back to an instant, up to a limit.
-- Caller: adapters.sql.insight, for status
-- Index: tally_at, read backwards
select rule, at, expired_count, skipped, lag_counts, tenant, lag_max_seconds, redelivery_count
from {s}tally where at >= :since order by at desc limit :limit

-- name: failed_lately
-- Purpose: count the newest failed attempts by class, back to an instant, up to a limit.
-- Caller: adapters.sql.insight, for status
-- Index: attempt_failed_at, read backwards
select c.failure_class, count(*)
from (
    select a.failure_class from {s}attempt a
    where a.failed_at >= :since order by a.failed_at desc limit :limit) c
group by c.failure_class

-- name: outbox_depth
-- Purpose: count the events that wait, and find the oldest, up to a limit.
-- Caller: adapters.sql.insight, for status
-- Index: outbox_pending
select count(*), min(w.at)
from (select e.at from {s}outbox e where e.state = 'pending' order by e.id limit :limit) w

-- name: heartbeats
-- Purpose: read who said that it lives.
-- Caller: adapters.sql.insight, for status
-- Index: the primary key
select worker, roles, host, pid, in_hand, host_at, started_at, beat_at
from {s}worker order by worker limit :limit

-- name: open_of_hold
-- Purpose: read the open operations of one hold.
-- Caller: adapters.sql.insight, for why
-- Index: operation_identity
select id, rule, tenant, hold_key, digest, due_at, generation, state, reason, attempt, deferrals,
       available_at, leased_until, failure_class, failure_code, failure_message, found_at, changed_at
from {s}operation where rule = :rule and hold_key = :hold_key order by id

-- name: open_windows
-- Purpose: read the windows of a rule that wait, or are worked on.
-- Caller: adapters.sql.insight, for why
-- Index: operation_window
select id, rule, tenant, hold_key, digest, due_at, generation, state, reason, attempt, deferrals,
       available_at, leased_until, failure_class, failure_code, failure_message, found_at, changed_at
from {s}operation where rule = :rule and window_until is not null
  and state in ('ready', 'leased', 'retrying', 'deferred')
order by id

-- name: records_of_hold
-- Purpose: read the newest records of one hold.
-- Caller: adapters.sql.insight, for why
-- Index: record_hold, in every partition
select operation_id, digest, generation, due_at, outcome, reason, attempt, found_at, finished_at
from {s}record where rule = :rule and hold_key = :hold_key
order by finished_at desc, operation_id desc limit :limit

-- name: events_of_operation
-- Purpose: read the events that one operation left behind.
-- Caller: adapters.sql.insight, for why
-- Index: outbox_event
select id, operation_id, type, generation, at, state, published_at
from {s}outbox where operation_id = :id order by id

-- name: acts_on
-- Purpose: read the newest acts on one subject.
-- Caller: adapters.sql.insight, for why
-- Index: none; people write few rows
select at, actor, action, reason from {s}action
where subject = :subject order by id desc limit :limit

-- name: oldest_due_rows
-- Purpose: read the first due rows; unlike a scan, rows due at one instant come in any order, since
--          sorting many of them by key would read them all.
-- Caller: adapters.sql.insight_holds, for status
-- Index: the customer's (partial) index on the due column; operation_identity for the mark
select {key_text}, {due_text}, {identity}, {guard}, {tenant},
       exists (select 1 from {s}operation o
               where o.rule = :rule and o.hold_key = {key_text} and o.identity = {identity})
from {table} h
where {held} and {due_range}
order by {first_order} limit :limit
