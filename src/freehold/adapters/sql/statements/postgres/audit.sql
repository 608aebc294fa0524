-- name: released_early
-- Purpose: find records of releases before due and grace were over.
-- Caller: adapters.sql.audit
-- Index: record_hold
select r.rule, r.hold_key, r.operation_id,
       'released at ' || r.finished_at || ', due at ' || coalesce(r.due_at::text, 'no known instant')
from {s}record r
where r.rule = :rule and r.outcome = 'expired' and r.finished_at >= :since
  and (r.due_at is null
       or r.finished_at < r.due_at + make_interval(secs => :grace_seconds::float8))
limit :limit

-- name: tally_differs
-- Purpose: find tallies whose counts are not those of their records.
-- Caller: adapters.sql.audit
-- Index: none; groups the whole table
select (select t.rule from {s}tally t where t.id = c.id), null, null,
       'tally ' || c.id || ' counts ' || sum(c.told) || ' ' || c.name || ', the records ' || sum(c.found)
from (
    select t.id, 'expired' as name, t.expired_count as told, 0 as found
    from {s}tally t where t.at >= :since
    union all
    select t.id, k.key, k.value::int, 0
    from {s}tally t cross join lateral json_each_text(t.skipped) k where t.at >= :since
    union all
    select r.tally_id, case r.outcome when 'expired' then 'expired' else r.reason end, 0, 1
    from {s}record r where r.tally_id is not null and r.finished_at >= :since) c
group by c.id, c.name having sum(c.told) <> sum(c.found)
limit :limit

-- name: unique_index_missing
-- Purpose: find the unique indexes that the guarantees rest on and the catalogue does not have.
-- Caller: adapters.sql.audit
-- Index: system catalogue
select null, null, null, 'no unique index on ' || w.place || ' (' || w.names || ')'
from (values ('operation', 'rule,hold_key,digest'), ('outbox', 'operation_id,type'),
             ('tick', 'schedule,logical_time'), ('action', 'hash'),
             ('report', 'tenant,report_date'), ('send', 'report_id,recipient'),
             ('send', 'message_key'), ('forward', 'event_id,target'),
             ('stray', 'queue,digest')) w (place, names)
where not exists (
    select 1 from pg_index i
    where i.indrelid = to_regclass('{s}' || w.place) and i.indisunique and i.indisvalid
      and i.indpred is null
      and (select string_agg(a.attname, ',' order by k.place)
           from unnest(i.indkey) with ordinality k (attnum, place)
           join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.attnum) = w.names)
limit :limit
