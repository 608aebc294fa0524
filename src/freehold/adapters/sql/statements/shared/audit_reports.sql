-- name: tally_of_wrong_report
-- Purpose: find tallies whose report is nowhere, of another tenant, or over before them.
-- Caller: adapters.sql.audit
-- Index: tally_at, the primary key of report
select t.rule, null, null,
       case when r.id is null
            then 'tally ' || t.id || ' names report ' || t.report_id || ', which is nowhere'
            else 'tally ' || t.id || ' is in the report of ' || r.report_date || ' of tenant "'
                 || r.tenant || '", and is not of that tenant or not of that time' end
from {s}tally t left join {s}report r on r.id = t.report_id
where t.report_id is not null and t.at >= :since
  and (r.id is null or r.tenant <> coalesce(t.tenant, '') or t.at >= r.end_at)
limit :limit

-- name: report_counts_wrongly
-- Purpose: find reports whose count is not that of their tallies within the window; one that gets
--          them in parts has none yet.
-- Caller: adapters.sql.audit
-- Index: tally_reported
select null, null, null,
       'the report of ' || r.report_date || ' of tenant "' || r.tenant || '" counts '
       || r.expired_count || ', its tallies ' || coalesce(sum(t.expired_count), 0)
from {s}report r left join {s}tally t on t.report_id = r.id and t.at >= r.start_at
where r.start_at >= :since and r.expired_count is not null
group by r.id, r.report_date, r.tenant, r.expired_count
having r.expired_count <> coalesce(sum(t.expired_count), 0)
limit :limit

-- name: windows_apart
-- Purpose: find reports of a tenant that do not begin where the one before ended, on a later date.
-- Caller: adapters.sql.audit
-- Index: report_start
select null, null, null,
       'after the report of ' || w.report_date || ' of tenant "' || w.tenant || '" the one of '
       || w.next_date || ' begins at ' || w.next_start_at || ', not at ' || w.end_at
from (select r.tenant, r.report_date, r.end_at,
             lead(r.start_at) over days as next_start_at, lead(r.report_date) over days as next_date
      from {s}report r window days as (partition by r.tenant order by r.start_at)) w
where w.end_at >= :since and (w.next_start_at <> w.end_at or w.next_date <= w.report_date)
limit :limit

-- name: calendar_apart
-- Purpose: find tenants whose window in hand does not begin where their last report ended.
-- Caller: adapters.sql.audit
-- Index: report_start
select null, null, null,
       'the window in hand of tenant "' || c.tenant || '" begins at ' || c.start_at
       || ', and its last report ended at ' || r.end_at
from {s}report_calendar c
join {s}report r on r.tenant = c.tenant
    and r.start_at = (select max(x.start_at) from {s}report x where x.tenant = c.tenant)
where c.start_at <> r.end_at or c.next_date <= r.report_date
limit :limit
