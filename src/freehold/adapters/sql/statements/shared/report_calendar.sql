-- name: walk_tenants
-- Purpose: look at a page of tenants; return those that the calendar lacks, and the page's last.
-- Caller: adapters.sql.report_calendar, a few times a minute
-- Index: the primary keys
select p.id, p.place, p.is_new from (
    select w.id, row_number() over (order by w.id) as place,
           w.active and (select c.tenant from {s}report_calendar c where c.tenant = w.id) is null as is_new
    from (select id, active from {s}tenant where id > :after order by id limit :limit) w) p
where p.is_new or p.place = :limit
order by p.place

-- name: outdated_windows
-- Purpose: find active rows that another tz database computed.
-- Caller: adapters.sql.report_calendar, once a process
-- Index: the primary key
select c.tenant, {window} from {s}report_calendar c
where {is_active} and c.tenant > :after and c.tz_version <> :tz_version
order by c.tenant limit :limit

-- name: any_in_parts
-- Purpose: see whether any report has not got all its tallies.
-- Caller: adapters.sql.report_calendar, once a pass
-- Index: report_in_parts
select 1 from {s}report r where r.expired_count is null limit 1

-- name: next_report_end
-- Purpose: find the earliest end of a window.
-- Caller: adapters.sql.report_calendar
-- Index: report_calendar_end
select c.end_at from {s}report_calendar c where {is_active} order by c.end_at, c.tenant limit 1

-- name: window_of_tenant
-- Purpose: read the group of one tenant.
-- Caller: adapters.sql.report_calendar, for a person's command
-- Index: the primary keys
select {window}, t.zone, t.report_hour, coalesce(t.active, true), 1
from {s}report_calendar c left join {s}tenant t on t.id = c.tenant
where {is_active} and c.tenant = :tenant
