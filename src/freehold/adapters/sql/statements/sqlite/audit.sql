-- name: released_early
-- Purpose: find records of releases before due and grace were over.
-- Differs: instants are text; the grace is added to whole seconds, so that no digit is lost.
-- Caller: adapters.sql.audit
-- Index: record_hold
select r.rule, r.hold_key, r.operation_id,
       'released at ' || r.finished_at || ', due at ' || coalesce(r.due_at, 'no known instant')
from {s}record r
where r.rule = :rule and r.outcome = 'expired' and r.finished_at >= :since
  and (r.due_at is null
       or r.finished_at < strftime('%Y-%m-%dT%H:%M:%S', substr(r.due_at, 1, 19),
                                   cast(:grace_seconds as integer) || ' seconds')
                          || substr(r.due_at, 20))
limit :limit

-- name: tally_differs
-- Purpose: find tallies whose counts are not those of their records.
-- Differs: the JSON functions.
-- Caller: adapters.sql.audit
-- Index: none; groups the whole table
select (select t.rule from {s}tally t where t.id = c.id), null, null,
       'tally ' || c.id || ' counts ' || sum(c.told) || ' ' || c.name || ', the records ' || sum(c.found)
from (
    select t.id, 'expired' as name, t.expired_count as told, 0 as found
    from {s}tally t where t.at >= :since
    union all
    select t.id, k.key, k.value, 0 from {s}tally t cross join json_each(t.skipped) k
    where t.at >= :since
    union all
    select r.tally_id, case r.outcome when 'expired' then 'expired' else r.reason end, 0, 1
    from {s}record r where r.tally_id is not null and r.finished_at >= :since) c
group by c.id, c.name having sum(c.told) <> sum(c.found)
limit :limit

-- name: unique_index_missing
-- Purpose: find the unique indexes that the guarantees rest on and the catalogue does not have.
-- Differs: the catalogue is a set of pragmas.
-- Caller: adapters.sql.audit
-- Index: system catalogue
with wanted (place, names) as (
    values ('operation', 'rule,hold_key,digest'), ('outbox', 'operation_id,type'),
           ('tick', 'schedule,logical_time'), ('action', 'hash'),
           ('report', 'tenant,report_date'), ('send', 'report_id,recipient'),
           ('send', 'message_key'), ('forward', 'event_id,target'),
             ('stray', 'queue,digest'))
select null, null, null, 'no unique index on ' || w.place || ' (' || w.names || ')'
from wanted w
where not exists (
    select 1 from pragma_index_list('{s}' || w.place) l
    where l."unique" = 1 and l.partial = 0
      and (select group_concat(i.name, ',')
           from (select name from pragma_index_info(l.name) order by seqno) i) = w.names)
limit :limit
