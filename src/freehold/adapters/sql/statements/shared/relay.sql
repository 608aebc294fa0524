-- name: read_targets
-- Purpose: read all targets with the pause that stands.
-- Caller: adapters.sql.relay
-- Index: none; a handful of rows
select t.name, t.kind, t.active, t.failing_since, t.failure_count, t.probe_at,
       p.id, p.reason, p.paused_by, p.paused_at, p.paused_until
from {s}target t left join {s}target_pause p on p.target = t.name and p.ended_at is null
order by t.name

-- name: follow_target
-- Purpose: make a target one that is configured; one that is as it should be stays untouched.
-- Caller: adapters.sql.relay, once a start
-- Index: the primary key
insert into {s}target as t (name, kind, active, changed_at)
values (:name, :kind, :is_active, :now)
on conflict (name) do update set
    kind = excluded.kind, active = excluded.active, changed_at = excluded.changed_at
where t.kind <> excluded.kind or t.active <> excluded.active

-- name: retire_target
-- Purpose: note that a target is not configured any more.
-- Caller: adapters.sql.relay, once a start
-- Index: the primary key
update {s}target set active = :is_active, changed_at = :now where name = :name

-- name: note_target_success
-- Purpose: forget the failures of a target; one without any is not written.
-- Caller: adapters.sql.relay, after a delivery or a resume
-- Index: the primary key
update {s}target set failing_since = null, failure_count = 0, probe_at = null, changed_at = :now
where name = :name and failure_count > 0

-- name: note_target_failure
-- Purpose: count failures of a target, and note when it is tried again.
-- Caller: adapters.sql.relay, after a hand-over that delivered nothing
-- Index: the primary key
update {s}target
set failing_since = coalesce(failing_since, :now), failure_count = failure_count + :failed_count,
    probe_at = :probe_at, changed_at = :now
where name = :name

-- name: begin_target_pause
-- Purpose: begin a pause of a target, unless one stands.
-- Caller: adapters.sql.relay
-- Index: target_pause_standing
insert into {s}target_pause (target, reason, paused_by, paused_at, paused_until)
values (:name, :reason, :by, :now, :until)
on conflict (target) where ended_at is null do nothing
returning id

-- name: end_target_pause
-- Purpose: end the standing pause of a target.
-- Caller: adapters.sql.relay
-- Index: target_pause_standing
update {s}target_pause set ended_at = :now, ended_by = :by where target = :name and ended_at is null

-- name: read_target_pause
-- Purpose: read what the event of a pause tells.
-- Caller: adapters.sql.relay
-- Index: the primary key
select target, reason, paused_at from {s}target_pause where id = :id

-- name: tell_target_paused
-- Purpose: write the event of a pause, once; its operation id is the pause's, below zero.
-- Caller: adapters.sql.relay
-- Index: outbox_event
insert into {s}outbox (
    type, operation_id, rule, tenant, hold_key, digest, generation, due_at, at, tokens, carry, state)
values (:type, :operation_id, '', null, :name, :digest, 1, :paused_at, :now, '{}', :carry,
        case when exists (select 1 from {s}target where active = :is_active)
             then 'pending' else 'kept' end)
on conflict (operation_id, type) do nothing

-- name: settle_forward
-- Purpose: write down what became of one hand-over that did not arrive, fenced by its lease.
-- Caller: adapters.sql.relay
-- Index: the primary key
update {s}forward
set state = :state, attempt = attempt + :spent_count, leased_until = null,
    available_at = coalesce(:available_at, available_at), reason = :reason,
    failure_class = coalesce(:failure_class, failure_class), ended_at = :ended_at, changed_at = :now
where event_id = :event_id and target = :target and state = 'leased' and lease_token = :lease_token
