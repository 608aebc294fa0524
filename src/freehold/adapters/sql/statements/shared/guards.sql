-- name: trip_guard
-- Purpose: freeze a rule, or all; a guard that stands already stays as it is.
-- Caller: adapters.sql.guards
-- Index: guard_standing
insert into {s}guard (kind, rule, tripped_at, reason, figures)
values (:kind, :rule, :now, :reason, :figures)
on conflict do nothing

-- name: standing_guards
-- Purpose: read the guards that stand, in any order: sorting must not lead through the old ones.
-- Caller: adapters.sql.guards; of a rule's state only where there is one
-- Index: guard_standing, a handful of rows
select id, kind, rule, tripped_at, reason, figures, released_at, released_by, released_reason
from {s}guard where released_at is null

-- name: newest_guard
-- Purpose: read the guard of a kind that tripped last.
-- Caller: adapters.sql.guards
-- Index: the primary key, read backwards
select id, kind, rule, tripped_at, reason, figures, released_at, released_by, released_reason
from {s}guard where kind = :kind order by id desc limit 1

-- name: release_guard
-- Purpose: let rules work again.
-- Caller: adapters.sql.guards
-- Index: the primary key
update {s}guard set released_at = :now, released_by = :released_by, released_reason = :reason
where id = :id and released_at is null

-- name: renew_pause
-- Purpose: give a pause that stands another reason and end.
-- Caller: adapters.sql.guards
-- Index: pause_standing
update {s}pause set paused_by = :paused_by, reason = :reason, paused_until = :paused_until
where ended_at is null and role = :role and coalesce(rule, '') = :rule_key
  and coalesce(tenant, '') = :tenant_key

-- name: begin_pause
-- Purpose: begin a pause, unless somebody else began it at this moment.
-- Caller: adapters.sql.guards
-- Index: pause_standing
insert into {s}pause (role, rule, tenant, paused_by, reason, paused_at, paused_until)
values (:role, :rule, :tenant, :paused_by, :reason, :now, :paused_until)
on conflict do nothing

-- name: end_pause
-- Purpose: end a pause.
-- Caller: adapters.sql.guards
-- Index: pause_standing
update {s}pause set ended_at = :now
where ended_at is null and role = :role and coalesce(rule, '') = :rule_key
  and coalesce(tenant, '') = :tenant_key

-- name: open_pauses
-- Purpose: read the pauses that nobody ended, in any order, as with guards.
-- Caller: adapters.sql.guards; of a rule's state only where there is one
-- Index: pause_standing
select role, rule, tenant, paused_by, reason, paused_at, paused_until, id
from {s}pause where ended_at is null

-- name: noted_clocks
-- Purpose: read what this host noted last, then the newest note of any other.
-- Caller: adapters.sql.guards, at the first transaction of a connection
-- Index: the primary key; host_clock_newest, read backwards
select host, database_at, host_at from {s}host_clock where host = :host
union all
select * from (
    select host, database_at, host_at from {s}host_clock where host <> :host
    order by database_at desc limit 1) o

-- name: note_clock
-- Purpose: note what the clocks said.
-- Caller: adapters.sql.guards, at ticks and heartbeats
-- Index: the primary key
insert into {s}host_clock (host, database_at, host_at) values (:host, :database_at, :host_at)
on conflict (host) do update set database_at = excluded.database_at, host_at = excluded.host_at

-- name: forget_old_clocks
-- Purpose: take out notes of hosts that are gone: containers have a new name each time.
-- Caller: adapters.sql.guards, at ticks and heartbeats
-- Index: host_clock_newest
delete from {s}host_clock where database_at < :since

-- name: forget_clocks
-- Purpose: take every note back, after a person accepted the clock as it is.
-- Caller: adapters.sql.guards
-- Index: none; a row a host
delete from {s}host_clock

-- name: note_pass
-- Purpose: note that a reading of the due rows ended; a whole one settles what was left unsettled.
-- Caller: adapters.sql.rules, at most once a pass
-- Index: the primary key
update {s}rule_state set scanned_at = :began_at, unsettled_at = null
where rule = :rule
  and case when :whole then unsettled_at is null or unsettled_at <= :began_at
           else unsettled_at is null and scanned_at is not null and scanned_at < :began_at end

-- name: unsettle
-- Purpose: let overdue rows turn up without alarm until they were all read.
-- Caller: adapters.sql.rules, after what a person did
-- Index: the primary key, or a row a rule
update {s}rule_state set unsettled_at = :now where :rule = '' or rule = :rule
