-- name: record_partitions
-- Purpose: name the partitions of the records, oldest month first.
-- Caller: adapters.sql.retention
-- Index: system catalogue
select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid
where i.inhparent = to_regclass('{s}record') order by c.relname

-- name: count_partition
-- Purpose: count a month's records up to a limit, and beyond it as the statistics have it.
-- Caller: adapters.sql.retention; the slot is a name of our own
-- Index: record_hold
select case when p.seen < :limit then p.seen
            else greatest(p.seen, c.reltuples::bigint, pg_stat_get_live_tuples(c.oid)) end
from (select count(*) as seen from (select 1 from {s}{partition} limit :limit) q) p,
     pg_class c where c.oid = to_regclass('{s}{partition}')

-- name: rules_of_partition
-- Purpose: name the rules of a month's records, one look-up a rule.
-- Caller: adapters.sql.retention; the slot is a name of our own
-- Index: record_hold
with recursive named (rule) as (
    (select r.rule from {s}{partition} r order by r.rule limit 1)
    union all
    select (select r.rule from {s}{partition} r where r.rule > n.rule order by r.rule limit 1)
    from named n where n.rule is not null)
select n.rule from named n where n.rule is not null

-- name: hurry
-- Purpose: give up soon where somebody reads the records: all writers would queue up behind us.
-- Caller: adapters.sql.retention
-- Index: none
select set_config('lock_timeout', '100', true)

-- name: drop_partition
-- Purpose: remove a whole month's records; locks the table of all records for a moment.
-- Caller: adapters.sql.retention; the slot is a name of our own
-- Index: none
drop table {s}{partition}

-- name: prune_default
-- Purpose: remove a page of old records that never got a partition, and remember their rules.
-- Caller: adapters.sql.retention
-- Index: record_default_finished_at
with gone as (
    delete from {s}record_default d
    where d.ctid = any (array(
        select r.ctid from {s}record_default r
        where r.finished_at < :before order by r.finished_at limit :limit))
    returning d.rule),
noted as (
    insert into {s}forgotten as f (rule, before) select distinct g.rule, :before from gone g
    on conflict (rule) do update set before = excluded.before where f.before < excluded.before)
select count(*) from gone

-- name: count_default
-- Purpose: count old records that never got a partition.
-- Caller: adapters.sql.retention
-- Index: record_default_finished_at
select count(*) from (
    select 1 from {s}record_default r where r.finished_at < :before limit :limit) p
