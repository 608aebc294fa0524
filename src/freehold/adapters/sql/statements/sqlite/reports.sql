-- name: facts_open_work
-- Purpose: read once what is open for the tenants of reports that come next.
-- Differs: the batch arrives as JSON.
-- Caller: adapters.sql.facts, once for many pages of reports
-- Index: the primary key of report; reads all open operations, which is why no page does it
select coalesce(o.tenant, '') as tenant, o.rule, sum(o.state = 'dead'),
       min(case when o.state not in ('dead', 'discarded') then o.due_at end)
from {s}operation o
where o.window_until is null
  and coalesce(o.tenant, '') in (
      select p.tenant from json_each(:ids) i cross join {s}report p on p.id = i.value)
group by 1, 2

-- name: facts_assigned
-- Purpose: read reports that have no facts yet, with their tenant's name and their neighbours' count.
-- Differs: no row locks: the facts of one report are written once, whoever counted them.
-- Caller: adapters.sql.facts, once a page
-- Index: the primary keys of report and tenant, report_once
select p.id, p.tenant,
       coalesce((select n.name from {s}tenant n where n.id = p.tenant), p.tenant), p.report_date,
       p.start_at, p.end_at, p.zone, p.tz_version, p.watermark_at, p.reason,
       (select b.expired_count from {s}report b
        where b.tenant = p.tenant and b.report_date = date(p.report_date, '-1 day')),
       (select b.expired_count from {s}report b
        where b.tenant = p.tenant and b.report_date = date(p.report_date, '-7 days'))
from json_each(:ids) i
cross join {s}report p on p.id = i.value
where p.facts is null and p.expired_count is not null order by p.id

-- name: facts_counts
-- Purpose: add up the tallies of a page of reports within their windows, by report and rule.
-- Differs: the batch arrives as JSON; a text is parsed once a row whatever is taken from it.
-- Caller: adapters.sql.facts, once a page
-- Index: the primary key of report, tally_reported
select t.report_id, t.rule, sum(t.expired_count), sum(t.redelivery_count), max(t.lag_max_seconds),
       max(t.expired_count > 0 and t.lag_max_seconds is null),
       json_array(
           sum(json_extract(t.lag_counts, '$[0]')), sum(json_extract(t.lag_counts, '$[1]')),
           sum(json_extract(t.lag_counts, '$[2]')), sum(json_extract(t.lag_counts, '$[3]')),
           sum(json_extract(t.lag_counts, '$[4]')), sum(json_extract(t.lag_counts, '$[5]')),
           sum(json_extract(t.lag_counts, '$[6]')), sum(json_extract(t.lag_counts, '$[7]')),
           sum(json_extract(t.lag_counts, '$[8]')), sum(json_extract(t.lag_counts, '$[9]')),
           sum(json_extract(t.lag_counts, '$[10]')), sum(json_extract(t.lag_counts, '$[11]')),
           sum(json_extract(t.lag_counts, '$[12]')), sum(json_extract(t.lag_counts, '$[13]')),
           sum(json_extract(t.lag_counts, '$[14]')), sum(json_extract(t.lag_counts, '$[15]')))
from json_each(:ids) i
cross join {s}report p on p.id = i.value
cross join {s}tally t on t.report_id = p.id
where t.at >= p.start_at
group by t.report_id, t.rule

-- name: facts_skips
-- Purpose: add up the skips of a page of reports within their windows, by report, rule and reason.
-- Differs: the batch arrives as JSON.
-- Caller: adapters.sql.facts, once a page
-- Index: the primary key of report, tally_reported
select t.report_id, t.rule, s.key, sum(s.value)
from json_each(:ids) i
cross join {s}report p on p.id = i.value
cross join {s}tally t on t.report_id = p.id
cross join json_each(t.skipped) s
where t.at >= p.start_at and t.skipped <> '{}'
group by t.report_id, t.rule, s.key

-- name: facts_late
-- Purpose: add up the tallies of a page of reports before their windows, by the day that they
-- belong to.
-- Differs: the batch arrives as JSON.
-- Caller: adapters.sql.facts, once a page
-- Index: the primary key of report, tally_reported, report_start
select l.report_id, l.report_date, sum(l.expired_count), sum(l.skipped_count)
from (
    select t.report_id, t.expired_count, (
               select case when q.end_at > t.at then q.report_date end from {s}report q
               where q.tenant = p.tenant and q.start_at <= t.at
               order by q.start_at desc limit 1) as report_date, (
               select coalesce(sum(s.value), 0) from json_each(t.skipped) s) as skipped_count
    from json_each(:ids) i
    cross join {s}report p on p.id = i.value
    cross join {s}tally t on t.report_id = p.id
    where t.at < p.start_at) l
group by l.report_id, l.report_date

-- name: facts_units
-- Purpose: count the different units of the released holds of a page of reports.
-- Differs: the batch and the rules arrive as JSON.
-- Caller: adapters.sql.facts, once a page
-- Index: the primary key of report, tally_reported, record_tally
select w.report_id, w.rule, count(*)
from (
    select distinct t.report_id, o.rule, coalesce(
               'u' || (select j.value from json_each(o.before_image) j where j.key = n.value),
               'k' || o.hold_key) as unit
    from json_each(:ids) i
    cross join {s}report p on p.id = i.value
    cross join {s}tally t on t.report_id = p.id
    cross join {s}record o on o.tally_id = t.id
    left join json_each(:column_by_rule) n on n.key = o.rule
    where t.at >= p.start_at and t.expired_count > 0 and o.outcome = 'expired') w
group by w.report_id, w.rule

-- name: facts_items
-- Purpose: read the first released holds of a page of reports, so many each; only the tallies are
-- ordered that can hold them.
-- Differs: the batch and the rules arrive as JSON.
-- Caller: adapters.sql.facts, once a page
-- Index: the primary key of report, tally_reported, record_tally, the primary key of unit
with ordered as (
    select t.id, t.report_id, p.tenant, coalesce(sum(t.expired_count) over (
               partition by t.report_id order by t.at
               groups between unbounded preceding and 1 preceding), 0) as before_count
    from json_each(:ids) i
    cross join {s}report p on p.id = i.value
    cross join {s}tally t on t.report_id = p.id
    where t.at >= p.start_at and t.expired_count > 0),
listed as (
    select t.report_id, t.tenant, o.rule, o.hold_key, o.due_at, o.finished_at,
           (select j.value from json_each(o.before_image) j where j.key = n.value) as unit,
           row_number() over (
               partition by t.report_id
               order by o.finished_at, o.due_at, o.rule, o.hold_key, o.operation_id) as place
    from ordered t
    cross join {s}record o on o.tally_id = t.id
    left join json_each(:column_by_rule) n on n.key = o.rule
    where t.before_count < :items_max and o.outcome = 'expired')
select l.report_id, l.rule, l.hold_key, coalesce(u.name, l.unit), l.due_at, l.finished_at
from listed l
left join {s}unit u on u.id = cast(l.unit as integer) and u.tenant = l.tenant
     and l.rule in (select value from json_each(:own_rules))
where l.place <= :items_max
order by l.report_id, l.place

-- name: freeze_facts
-- Purpose: write facts once; a report with a reason ends as skipped.
-- Differs: one row an execution (executemany).
-- Caller: adapters.sql.facts, once a page
-- Index: the primary key
update {s}report
set facts = :c1, facts_digest = :c2, frozen_at = :now,
    state = case when reason is null then 'frozen' else 'skipped' end,
    ended_at = case when reason is null then null else :now end
where id = :c0 and facts is null

-- name: frozen_reports
-- Purpose: read frozen reports that are due, the earliest first.
-- Differs: no row locks; the transaction is the only writer.
-- Caller: adapters.sql.facts, before mails are written
-- Index: report_due, the primary key of tenant
select p.id, p.facts, p.facts_digest, p.due_at, p.reason, p.tenant,
       n.id, n.name, n.zone, n.report_hour, n.recipients, n.locale, n.active
from {s}report p left join {s}tenant n on n.id = p.tenant
where p.state = 'frozen' and p.due_at <= :until
order by p.due_at, p.id limit :limit

-- name: read_frozen
-- Purpose: read one report with its facts.
-- Differs: a date is its text; no row locks, the transaction is the only writer.
-- Caller: adapters.sql.facts
-- Index: report_once, the primary key of tenant
select p.id, p.facts, p.facts_digest, p.due_at, p.reason, p.tenant,
       n.id, n.name, n.zone, n.report_hour, n.recipients, n.locale, n.active
from {s}report p left join {s}tenant n on n.id = p.tenant
where p.tenant = :tenant and p.report_date = :report_date and p.facts is not null

-- name: end_reports
-- Purpose: end frozen reports that get no mail.
-- Differs: the batch arrives as JSON.
-- Caller: adapters.sql.facts
-- Index: the primary key
update {s}report set state = :state, reason = :reason, ended_at = :now
where id in (select value from json_each(:ids)) and state = 'frozen'
