-- name: facts_open_work
-- Purpose: read once what is open for the tenants of reports that come next.
-- Caller: adapters.sql.facts, once for many pages of reports
-- Index: the primary key of report; reads all open operations, which is why no page does it, and by
-- no index, where an old snapshot keeps those that ended
select o.tenant, o.rule, count(*) filter (where o.state = 'dead'),
       min(o.due_at) filter (where o.state not in ('dead', 'discarded'))
from (
    select coalesce(n.tenant, '') as tenant, n.rule, n.state, n.due_at from {s}operation n
    where n.window_until is null offset 0) o
where o.tenant in (select p.tenant from {s}report p where p.id = any (:ids::bigint[]))
group by o.tenant, o.rule

-- name: facts_assigned
-- Purpose: lock reports that have no facts yet, with their tenant's name and their neighbours' count.
-- Caller: adapters.sql.facts, once a page; what another transaction has in hand is left to it
-- Index: the primary keys of report and tenant, report_once; a state would let a plan read all that
-- are assigned, a page at a time
select p.id, p.tenant,
       coalesce((select n.name from {s}tenant n where n.id = p.tenant), p.tenant), p.report_date,
       p.start_at, p.end_at, p.zone, p.tz_version, p.watermark_at, p.reason,
       (select b.expired_count from {s}report b
        where b.tenant = p.tenant and b.report_date = p.report_date - 1),
       (select b.expired_count from {s}report b
        where b.tenant = p.tenant and b.report_date = p.report_date - 7)
from {s}report p
where p.id = any (:ids::bigint[]) and p.facts is null and p.expired_count is not null
order by p.id for update of p skip locked

-- name: facts_counts
-- Purpose: add up the tallies of a page of reports within their windows, by report and rule.
-- Caller: adapters.sql.facts, once a page
-- Index: tally_reported, the primary key of report; the offset keeps each text from being read 16
-- times
select t.report_id, t.rule, sum(t.expired_count), sum(t.redelivery_count), max(t.lag_max_seconds),
       bool_or(t.expired_count > 0 and t.lag_max_seconds is null),
       json_build_array(
           sum(l.c[1]), sum(l.c[2]), sum(l.c[3]), sum(l.c[4]), sum(l.c[5]), sum(l.c[6]),
           sum(l.c[7]), sum(l.c[8]), sum(l.c[9]), sum(l.c[10]), sum(l.c[11]), sum(l.c[12]),
           sum(l.c[13]), sum(l.c[14]), sum(l.c[15]), sum(l.c[16]))::text
from {s}tally t
join {s}report p on p.id = t.report_id
cross join lateral (
    select translate(t.lag_counts::text, '[]', '{}')::bigint[] as c offset 0) l
where t.report_id = any (:ids::bigint[]) and t.at >= p.start_at
group by t.report_id, t.rule

-- name: facts_skips
-- Purpose: add up the skips of a page of reports within their windows, by report, rule and reason.
-- Caller: adapters.sql.facts, once a page
-- Index: tally_reported, the primary key of report
select t.report_id, t.rule, s.reason, sum(s.count::bigint)
from {s}tally t
join {s}report p on p.id = t.report_id
cross join lateral json_each_text(t.skipped) as s (reason, count)
where t.report_id = any (:ids::bigint[]) and t.at >= p.start_at and t.skipped::text <> '{}'
group by t.report_id, t.rule, s.reason

-- name: facts_late
-- Purpose: add up the tallies of a page of reports before their windows, by the day that they
-- belong to.
-- Caller: adapters.sql.facts, once a page
-- Index: tally_reported, the primary key of report, report_start
select l.report_id, l.report_date, sum(l.expired_count), sum(l.skipped_count)
from (
    select t.report_id, d.report_date, t.expired_count, (
               select coalesce(sum(s.count::bigint), 0) from json_each_text(t.skipped)
                   as s (reason, count)) as skipped_count
    from {s}tally t
    join {s}report p on p.id = t.report_id
    left join lateral (
        select case when q.end_at > t.at then q.report_date end as report_date from {s}report q
        where q.tenant = p.tenant and q.start_at <= t.at order by q.start_at desc limit 1) d on true
    where t.report_id = any (:ids::bigint[]) and t.at < p.start_at) l
group by l.report_id, l.report_date

-- name: facts_units
-- Purpose: count the different units of the released holds of a page of reports.
-- Caller: adapters.sql.facts, once a page
-- Index: tally_reported, record_tally in the partitions of the windows; the offset keeps the
-- look-ups row by row
select w.report_id, w.rule, count(*)
from (
    select distinct t.report_id, r.rule, r.unit
    from {s}tally t
    join {s}report p on p.id = t.report_id
    cross join lateral (
        select o.rule, coalesce('u' || (o.before_image ->> n.unit_column), 'k' || o.hold_key) as unit
        from {s}record o
        left join unnest(:rules::text[], :unit_columns::text[]) as n (rule, unit_column)
             on n.rule = o.rule
        where o.tally_id = t.id and o.outcome = 'expired'
          and o.finished_at >= :from_at and o.finished_at < :until_at offset 0) r
    where t.report_id = any (:ids::bigint[]) and t.at >= p.start_at and t.expired_count > 0) w
group by w.report_id, w.rule

-- name: facts_items
-- Purpose: read the first released holds of a page of reports, so many each; only the tallies are
-- ordered that can hold them.
-- Caller: adapters.sql.facts, once a page
-- Index: tally_reported, record_tally in the partitions of the windows, unit_of_tenant; the offset
-- keeps the look-ups row by row
with ordered as (
    select t.id, t.report_id, p.tenant, coalesce(sum(t.expired_count) over (
               partition by t.report_id order by t.at
               groups between unbounded preceding and 1 preceding), 0) as before_count
    from {s}tally t
    join {s}report p on p.id = t.report_id
    where t.report_id = any (:ids::bigint[]) and t.at >= p.start_at and t.expired_count > 0),
listed as (
    select t.report_id, t.tenant, r.*, row_number() over (
               partition by t.report_id order by r.finished_at, r.due_at, r.rule collate "C",
               r.hold_key collate "C", r.operation_id) as place
    from ordered t
    cross join lateral (
        select o.rule, o.hold_key, o.before_image ->> n.unit_column as unit, n.own_units, o.due_at,
               o.finished_at, o.operation_id
        from {s}record o
        left join unnest(:rules::text[], :unit_columns::text[], :own_units::boolean[])
                  as n (rule, unit_column, own_units) on n.rule = o.rule
        where o.tally_id = t.id and o.outcome = 'expired'
          and o.finished_at >= :from_at and o.finished_at < :until_at offset 0) r
    where t.before_count < :items_max)
select l.report_id, l.rule, l.hold_key, coalesce(u.name, l.unit), l.due_at, l.finished_at
from listed l
left join {s}unit u on l.own_units and u.tenant = l.tenant
     and u.id = case when l.unit ~ '^[0-9]{1,18}$' then l.unit::bigint end
where l.place <= :items_max
order by l.report_id, l.place

-- name: freeze_facts
-- Purpose: write facts once; a report with a reason ends as skipped.
-- Caller: adapters.sql.facts, once a page
-- Index: the primary key
update {s}report p
set facts = f.facts, facts_digest = f.digest, frozen_at = :now,
    state = case when p.reason is null then 'frozen' else 'skipped' end,
    ended_at = case when p.reason is null then null else :now end
from unnest(:c0::bigint[], :c1::text[], :c2::text[]) as f (id, facts, digest)
where p.id = any (array[f.id]) and p.facts is null

-- name: frozen_reports
-- Purpose: lock frozen reports that are due, the earliest first.
-- Caller: adapters.sql.facts, before mails are written; others' are left to them
-- Index: report_due, the primary key of tenant
select p.id, p.facts, p.facts_digest, p.due_at, p.reason, p.tenant,
       n.id, n.name, n.zone, n.report_hour, n.recipients::text, n.locale, n.active
from {s}report p
left join lateral (select * from {s}tenant o where o.id = p.tenant offset 0) n on true
where p.state = 'frozen' and p.due_at <= :until
order by p.due_at, p.id limit :limit for update of p skip locked

-- name: read_frozen
-- Purpose: lock one report and read it with its facts, before its mail is written.
-- Caller: adapters.sql.facts
-- Index: report_once, the primary key of tenant
select p.id, p.facts, p.facts_digest, p.due_at, p.reason, p.tenant,
       n.id, n.name, n.zone, n.report_hour, n.recipients::text, n.locale, n.active
from {s}report p
left join lateral (select * from {s}tenant o where o.id = p.tenant offset 0) n on true
where p.tenant = :tenant and p.report_date = :report_date::date and p.facts is not null
for update of p

-- name: end_reports
-- Purpose: end frozen reports that get no mail.
-- Caller: adapters.sql.facts
-- Index: the primary key
update {s}report p set state = :state, reason = :reason, ended_at = :now
where p.id = any (:ids::bigint[]) and p.state = 'frozen'
