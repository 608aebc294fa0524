-- name: write_rate
-- Purpose: keep how fast the backlog of an attach may be taken up.
-- Caller: adapters.sql.rates, attach
-- Index: the primary key
insert into {s}attach_rate (rule, per_second, attached_at, credited_at)
values (:rule, :per_second, :now, :now)
on conflict (rule) do update set
    per_second = excluded.per_second, attached_at = excluded.attached_at, credited_at = excluded.credited_at

-- name: spend_rate
-- Purpose: note what of the rate is used up.
-- Caller: adapters.sql.rates, the scan
-- Index: the primary key
update {s}attach_rate set credited_at = :credited_at where rule = :rule

-- name: end_rate
-- Purpose: let a rule go at full speed.
-- Caller: adapters.sql.rates, the scan and attach
-- Index: the primary key
delete from {s}attach_rate where rule = :rule
