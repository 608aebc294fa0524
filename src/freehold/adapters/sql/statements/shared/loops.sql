-- name: read_rule
-- Purpose: read what the ledger knows about a rule, and whether guards or pauses touch it.
-- Caller: adapters.sql.rules
-- Index: the primary key; guard_standing, pause_standing
select r.rule, r.fingerprint, r.condition, r.reason, r.batch_limit, r.leased, r.probe_at,
       r.probe_count, r.crash_count, r.scan_paused, r.scanned_at, r.unsettled_at,
       exists (select 1 from {s}guard g
               where g.released_at is null and (g.rule is null or g.rule = r.rule)),
       exists (select 1 from {s}pause p
               where p.ended_at is null and (p.rule is null or p.rule = r.rule))
from {s}rule_state r where r.rule = :rule

-- name: write_rule
-- Purpose: write the whole state of a rule.
-- Caller: adapters.sql.rules
-- Index: the primary key
insert into {s}rule_state (
    rule, fingerprint, condition, reason, batch_limit, leased, probe_at, probe_count,
    crash_count, scan_paused, changed_at)
values (:rule, :fingerprint, :condition, :reason, :batch_limit, :leased, :probe_at, :probe_count,
        :crash_count, :scan_paused, :now)
on conflict (rule) do update set
    fingerprint = excluded.fingerprint, condition = excluded.condition, reason = excluded.reason,
    batch_limit = excluded.batch_limit, leased = excluded.leased, probe_at = excluded.probe_at,
    probe_count = excluded.probe_count, crash_count = excluded.crash_count,
    scan_paused = excluded.scan_paused, changed_at = excluded.changed_at

-- name: start_tick
-- Purpose: begin a run, or join the row of a rolled-up minute that finished before.
-- Caller: adapters.sql.ticks
-- Index: tick_once
insert into {s}tick (schedule, logical_time, started_at, host_at, runner)
values (:schedule, :logical_time, :now, :host_at, :runner)
on conflict (schedule, logical_time) do nothing
returning id

-- name: rejoin_tick
-- Purpose: open a finished rolled-up row again for one more run in the same minute.
-- Caller: adapters.sql.ticks
-- Index: tick_once
update {s}tick set started_at = :now, finished_at = null, host_at = :host_at, runner = :runner,
    run_count = run_count + 1
where schedule = :schedule and logical_time = :logical_time and finished_at is not null
returning id, run_count

-- name: take_over_tick
-- Purpose: take over a run whose runner began long ago and never finished.
-- Caller: adapters.sql.ticks
-- Index: tick_once
update {s}tick set started_at = :now, host_at = :host_at, runner = :runner,
    run_count = run_count + 1
where schedule = :schedule and logical_time = :logical_time and finished_at is null
  and started_at < :stale_before
returning id, run_count

-- name: keep_tick
-- Purpose: keep a run that goes on from being taken over; fenced as its end is.
-- Caller: adapters.sql.ticks
-- Index: the primary key
update {s}tick set started_at = :now where id = :id and run_count = :run and finished_at is null

-- name: finish_tick
-- Purpose: close a run and add its counts; fenced by the run, whose runner may have been replaced.
-- Caller: adapters.sql.ticks
-- Index: the primary key
update {s}tick set finished_at = :now, found_count = found_count + :found_count,
    new_count = new_count + :new_count, outcome = :outcome
where id = :id and run_count = :run and finished_at is null

-- name: last_tick
-- Purpose: find the newest logical time of a schedule that finished.
-- Caller: adapters.sql.ticks, for catch-up
-- Index: tick_once, read backwards
select logical_time from {s}tick where schedule = :schedule and finished_at is not null
order by logical_time desc limit 1

-- name: unfinished_tick
-- Purpose: find the oldest run that began long ago and never finished.
-- Caller: adapters.sql.ticks, the sweep
-- Index: tick_unfinished
select logical_time from {s}tick
where schedule = :schedule and finished_at is null and started_at < :stale_before
order by logical_time limit 1

-- name: beat
-- Purpose: say that a worker lives, and with what in hand.
-- Caller: adapters.sql.workers
-- Index: the primary key
insert into {s}worker (worker, roles, host, pid, in_hand, host_at, started_at, beat_at)
values (:worker, :roles, :host, :pid, :in_hand, :host_at, :now, :now)
on conflict (worker) do update set
    in_hand = excluded.in_hand, host_at = excluded.host_at, beat_at = excluded.beat_at

-- name: leave
-- Purpose: take a worker's row out after a clean stop.
-- Caller: adapters.sql.workers
-- Index: the primary key
delete from {s}worker where worker = :worker

-- name: count_workers
-- Purpose: count the processes with a role; there are no more rows than processes.
-- Caller: adapters.sql.workers, the scan of a rule with a backlog
-- Index: none
select count(*) from {s}worker where ',' || roles || ',' like '%,' || :role || ',%'

-- name: forget_silent
-- Purpose: take out workers that were silent too long.
-- Caller: adapters.sql.workers, the sweep
-- Index: none; a handful of rows
delete from {s}worker where beat_at < :since returning in_hand

-- name: last_act_hash
-- Purpose: find the end of the action log's chain.
-- Caller: adapters.sql.actions
-- Index: the primary key, read backwards
select hash from {s}action order by id desc limit 1

-- name: record_act
-- Purpose: append an act to the chain.
-- Caller: adapters.sql.actions
-- Index: none
insert into {s}action (at, actor, action, subject, reason, before, after, previous_hash, hash)
values (:now, :actor, :action, :subject, :reason, :before, :after, :previous_hash, :hash)

-- name: find_in_review
-- Purpose: page through operations in review of a rule.
-- Caller: adapters.sql.reviews
-- Index: operation_review
select id, rule, tenant, hold_key, digest, due_at, generation, state, reason, attempt,
       failure_class, failure_code, failure_message, found_at, changed_at, fingerprint,
       window_until is not null
from {s}operation
where rule = :rule and state in ('dead', 'discarded') and id > :after_id
order by id limit :limit

-- name: failed_attempts
-- Purpose: read the failed attempts of one operation.
-- Caller: adapters.sql.reviews
-- Index: attempt_operation
select attempt, failure_class, failure_code, failure_message, failed_at
from {s}attempt where operation_id = :id order by failed_at, attempt
