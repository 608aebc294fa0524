-- name: read_readings
-- Purpose: read what was read and pruned of each subject.
-- Caller: adapters.sql.retention
-- Index: none; a handful of rows
select subject, read_at, read_before, pruned_before from {s}retention

-- name: write_readings
-- Purpose: write the readings of one subject.
-- Caller: adapters.sql.retention
-- Index: the primary key
insert into {s}retention (subject, read_at, read_before, pruned_before)
values (:subject, :read_at, :read_before, :pruned_before)
on conflict (subject) do update set
    read_at = excluded.read_at, read_before = excluded.read_before,
    pruned_before = excluded.pruned_before

-- name: begin_round
-- Purpose: begin a round in its time, or take over one that nobody goes on with; a clock that was
--          set back stops neither.
-- Caller: adapters.sql.retention, the sweep
-- Index: the primary key; one row
insert into {s}prune_round as r (only_one, touched_at, finished_at) values (1, :now, null)
on conflict (only_one) do update set touched_at = excluded.touched_at, finished_at = null
where (r.finished_at is not null and (r.finished_at <= :due_before or r.finished_at > :now))
   or (r.finished_at is null and (r.touched_at <= :stale_before or r.touched_at > :now))

-- name: keep_round
-- Purpose: say that the round goes on.
-- Caller: adapters.sql.retention, the sweep
-- Index: the primary key; one row
update {s}prune_round set touched_at = :now where finished_at is null

-- name: end_round
-- Purpose: close the round.
-- Caller: adapters.sql.retention
-- Index: the primary key; one row
insert into {s}prune_round (only_one, touched_at, finished_at) values (1, :now, :now)
on conflict (only_one) do update set
    touched_at = excluded.touched_at, finished_at = excluded.finished_at

-- name: note_forgotten
-- Purpose: remember that records of a rule are gone.
-- Caller: adapters.sql.retention, with the step that removes them
-- Index: the primary key
insert into {s}forgotten as f (rule, before) values (:rule, :before)
on conflict (rule) do update set before = excluded.before where f.before < excluded.before

-- name: read_forgotten
-- Purpose: read before when records of a rule may be gone.
-- Caller: adapters.sql.retention
-- Index: the primary key
select before from {s}forgotten where rule = :rule

-- name: last_of_tallies
-- Purpose: find the end of a page of tallies, in the order of writing.
-- Caller: adapters.sql.retention
-- Index: the primary key
select p.id, p.at from (
    select t.id, t.at from {s}tally t where t.id > :after order by t.id limit :limit) p
order by p.id desc limit 1

-- name: prune_tallies
-- Purpose: remove a page of tallies that are old enough and that no report still has to count.
-- Caller: adapters.sql.retention
-- Index: the primary key
delete from {s}tally as t
where t.id > :after and t.id <= :last and t.at < :before
  and not exists (select 1 from {s}unreported_tally u where u.id = t.id)

-- name: count_tallies
-- Purpose: count what would go among the oldest tallies.
-- Caller: adapters.sql.retention
-- Index: the primary key
select count(*) from (select t.id, t.at from {s}tally t order by t.id limit :limit) p
where p.at < :before and not exists (select 1 from {s}unreported_tally u where u.id = p.id)

-- name: last_of_events
-- Purpose: find the end of a page of events, in the order of writing.
-- Caller: adapters.sql.retention
-- Index: the primary key
select p.id, p.at from (
    select e.id, e.at from {s}outbox e where e.id > :after order by e.id limit :limit) p
order by p.id desc limit 1

-- name: prune_events
-- Purpose: remove a page of events that left long ago, or were kept; never one that waits, or that
--          some target is owed, or told again.
-- Caller: adapters.sql.retention
-- Index: the primary keys
delete from {s}outbox
where id > :after and id <= :last and state <> 'pending' and coalesce(published_at, at) < :before
  and not exists (select 1 from {s}forward f
                  where f.event_id = {s}outbox.id
                    and f.state in ('ready', 'leased', 'retrying', 'dead'))

-- name: count_events
-- Purpose: count what would go among the oldest events.
-- Caller: adapters.sql.retention
-- Index: the primary keys
select count(*) from (
    select e.id, e.state, coalesce(e.published_at, e.at) as left_at from {s}outbox e
    order by e.id limit :limit) p
where p.state <> 'pending' and p.left_at < :before
  and not exists (select 1 from {s}forward f
                  where f.event_id = p.id and f.state in ('ready', 'leased', 'retrying', 'dead'))

-- name: last_of_ticks
-- Purpose: find the end of a page of runs, in the order of writing.
-- Caller: adapters.sql.retention
-- Index: the primary key
select p.id, p.started_at from (
    select t.id, t.started_at from {s}tick t where t.id > :after order by t.id limit :limit) p
order by p.id desc limit 1

-- name: prune_ticks
-- Purpose: remove a page of old runs; one that never finished, and the newest of a schedule, stay.
-- Caller: adapters.sql.retention
-- Index: the primary key, tick_once
delete from {s}tick as t
where t.id > :after and t.id <= :last and t.finished_at < :before
  and exists (select 1 from {s}tick n
              where n.schedule = t.schedule and n.logical_time > t.logical_time
                and n.finished_at is not null)

-- name: count_ticks
-- Purpose: count what would go among the oldest runs.
-- Caller: adapters.sql.retention
-- Index: the primary key, tick_once
select count(*) from (
    select t.schedule, t.logical_time, t.finished_at from {s}tick t order by t.id limit :limit) p
where p.finished_at < :before
  and exists (select 1 from {s}tick n
              where n.schedule = p.schedule and n.logical_time > p.logical_time
                and n.finished_at is not null)

-- name: page_of_attempts
-- Purpose: read a page of attempts that are old enough, oldest first.
-- Caller: adapters.sql.retention
-- Index: attempt_failed_at
select a.failed_at, a.operation_id from {s}attempt a
where a.failed_at >= :after_at and (a.failed_at, a.operation_id) > (:after_at, :after)
  and a.failed_at < :before
order by a.failed_at, a.operation_id limit :limit

-- name: prune_attempts
-- Purpose: remove a page of attempts of operations that ended.
-- Caller: adapters.sql.retention
-- Index: attempt_failed_at, the primary key of operation
delete from {s}attempt as a
where a.failed_at >= :after_at and (a.failed_at, a.operation_id) > (:after_at, :after)
  and a.failed_at <= :last_at and (a.failed_at, a.operation_id) <= (:last_at, :last)
  and not exists (select 1 from {s}operation o where o.id = a.operation_id)

-- name: count_attempts
-- Purpose: count what would go among the oldest attempts.
-- Caller: adapters.sql.retention
-- Index: attempt_failed_at, the primary key of operation
select count(*) from (
    select a.operation_id from {s}attempt a
    where a.failed_at < :before order by a.failed_at limit :limit) p
where not exists (select 1 from {s}operation o where o.id = p.operation_id)

-- name: page_of_mails
-- Purpose: read a page of mails that are old enough and still have their bytes, oldest first.
-- Caller: adapters.sql.retention
-- Index: mail_frozen_at
select m.frozen_at, m.report_id from {s}mail m
where m.body is not null and m.frozen_at >= :after_at
  and (m.frozen_at, m.report_id) > (:after_at, :after) and m.frozen_at < :before
order by m.frozen_at, m.report_id limit :limit

-- name: prune_mails
-- Purpose: remove the bytes of a page of mails that no recipient may still be sent.
-- Caller: adapters.sql.retention
-- Index: mail_frozen_at, send_once
update {s}mail as m set body = null
where m.body is not null and m.frozen_at >= :after_at
  and (m.frozen_at, m.report_id) > (:after_at, :after)
  and m.frozen_at <= :last_at and (m.frozen_at, m.report_id) <= (:last_at, :last)
  and not exists (select 1 from {s}send n
                  where n.report_id = m.report_id
                    and n.state in ('ready', 'leased', 'retrying', 'unknown', 'review'))

-- name: count_mails
-- Purpose: count what would go among the oldest mails.
-- Caller: adapters.sql.retention
-- Index: mail_frozen_at, send_once
select count(*) from (
    select m.report_id from {s}mail m
    where m.body is not null and m.frozen_at < :before order by m.frozen_at limit :limit) p
where not exists (select 1 from {s}send n
                  where n.report_id = p.report_id
                    and n.state in ('ready', 'leased', 'retrying', 'unknown', 'review'))

-- name: last_of_guards
-- Purpose: find the end of a page of guards, in the order of writing.
-- Caller: adapters.sql.retention
-- Index: the primary key
select p.id, p.tripped_at from (
    select g.id, g.tripped_at from {s}guard g where g.id > :after order by g.id limit :limit) p
order by p.id desc limit 1

-- name: prune_guards
-- Purpose: remove a page of guards released long ago; the newest of each kind stays.
-- Caller: adapters.sql.retention
-- Index: the primary key; few rows
delete from {s}guard as g
where g.id > :after and g.id <= :last and g.released_at < :before
  and exists (select 1 from {s}guard n where n.id > g.id and n.kind = g.kind)

-- name: count_guards
-- Purpose: count what would go among the oldest guards.
-- Caller: adapters.sql.retention
-- Index: the primary key; few rows
select count(*) from (
    select g.id, g.kind, g.released_at from {s}guard g order by g.id limit :limit) p
where p.released_at < :before
  and exists (select 1 from {s}guard n where n.id > p.id and n.kind = p.kind)

-- name: last_of_pauses
-- Purpose: find the end of a page of pauses, in the order of writing.
-- Caller: adapters.sql.retention
-- Index: the primary key
select q.id, q.paused_at from (
    select p.id, p.paused_at from {s}pause p where p.id > :after order by p.id limit :limit) q
order by q.id desc limit 1

-- name: prune_pauses
-- Purpose: remove a page of pauses that ended long ago.
-- Caller: adapters.sql.retention
-- Index: the primary key
delete from {s}pause where id > :after and id <= :last and ended_at < :before

-- name: count_pauses
-- Purpose: count what would go among the oldest pauses.
-- Caller: adapters.sql.retention
-- Index: the primary key
select count(*) from (select p.ended_at from {s}pause p order by p.id limit :limit) q
where q.ended_at < :before

-- name: prune_forwards
-- Purpose: remove what was owed of a page of events that went.
-- Caller: adapters.sql.retention, after prune_events in its transaction
-- Index: the primary keys
delete from {s}forward
where event_id > :after and event_id <= :last
  and not exists (select 1 from {s}outbox e where e.id = {s}forward.event_id)

-- name: prune_forward_attempts
-- Purpose: remove the failed attempts of a page of events that went.
-- Caller: adapters.sql.retention, after prune_events in its transaction
-- Index: the primary keys
delete from {s}forward_attempt
where event_id > :after and event_id <= :last
  and not exists (select 1 from {s}outbox e where e.id = {s}forward_attempt.event_id)

-- name: last_of_target_pauses
-- Purpose: find the end of a page of pauses of targets, in the order of writing.
-- Caller: adapters.sql.retention
-- Index: the primary key
select q.id, q.paused_at from (
    select p.id, p.paused_at from {s}target_pause p where p.id > :after order by p.id limit :limit) q
order by q.id desc limit 1

-- name: prune_target_pauses
-- Purpose: remove a page of pauses of targets that ended long ago.
-- Caller: adapters.sql.retention
-- Index: the primary key
delete from {s}target_pause where id > :after and id <= :last and ended_at < :before

-- name: count_target_pauses
-- Purpose: count what would go among the oldest pauses of targets.
-- Caller: adapters.sql.retention
-- Index: the primary key
select count(*) from (select p.ended_at from {s}target_pause p order by p.id limit :limit) q
where q.ended_at < :before

-- name: last_of_strays
-- Purpose: find the end of a page of strays, in the order of writing.
-- Caller: adapters.sql.retention
-- Index: the primary key
select p.id, p.first_seen_at from (
    select t.id, t.first_seen_at from {s}stray t where t.id > :after order by t.id limit :limit) p
order by p.id desc limit 1

-- name: prune_strays
-- Purpose: remove a page of strays that a person discarded and that came no more; never one in review.
-- Caller: adapters.sql.retention
-- Index: the primary key
delete from {s}stray
where id > :after and id <= :last and state = 'discarded' and last_seen_at < :before

-- name: count_strays
-- Purpose: count what would go among the oldest strays.
-- Caller: adapters.sql.retention
-- Index: the primary key
select count(*) from (
    select t.state, t.last_seen_at from {s}stray t order by t.id limit :limit) p
where p.state = 'discarded' and p.last_seen_at < :before

-- name: page_of_delivery_counts
-- Purpose: read a page of minutes of counts that are old enough, oldest first.
-- Caller: adapters.sql.retention
-- Index: the primary key
select c.minute_at, 0 from {s}delivery_count c
where c.minute_at >= :after_at and c.minute_at < :before
order by c.minute_at limit :limit

-- name: prune_delivery_counts
-- Purpose: remove a page of counts by whole minutes.
-- Caller: adapters.sql.retention
-- Index: the primary key
delete from {s}delivery_count where minute_at >= :after_at and minute_at <= :last_at

-- name: count_delivery_counts
-- Purpose: count what would go among the oldest counts.
-- Caller: adapters.sql.retention
-- Index: the primary key
select count(*) from (
    select c.minute_at from {s}delivery_count c
    where c.minute_at < :before order by c.minute_at limit :limit) p
