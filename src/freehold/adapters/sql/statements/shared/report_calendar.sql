-- name: walk_tenants
-- Purpose: look at a page of tenants; return those that the calendar lacks, and the page's last.
-- Caller: adapters.sql.report_calendar, a few times a minute
-- Index: the primary keys
select p.id, p.place, p.is_new from (
    select t.id, row_number() over (order by t.id) as place,
           t.active and not exists (select 1 from {s}report_calendar c where c.tenant = t.id) as is_new
    from (select id, active from {s}tenant where id > :after order by id limit :limit) t) p
where p.is_new or p.place = :limit
order by p.place

-- name: moved_tenants
-- Purpose: find tenants that were changed and are no longer as the calendar has them.
-- Caller: adapters.sql.report_calendar, a few times a minute
-- Index: tenant_changed, the primary key of the calendar
select t.id, t.zone, t.active, t.changed_at, {window}, c.active
from {s}tenant t join {s}report_calendar c on c.tenant = t.id
where t.changed_at >= :since and (t.changed_at, t.id) > (:since, :after)
  and (t.active <> c.active or (t.active and coalesce(t.zone, :zone) <> c.zone))
order by t.changed_at, t.id limit :limit

-- name: outdated_windows
-- Purpose: find active rows that another tz database computed.
-- Caller: adapters.sql.report_calendar, once a process
-- Index: the primary key
select c.tenant, {window} from {s}report_calendar c
where {is_active} and c.tenant > :after and c.tz_version <> :tz_version
order by c.tenant limit :limit

-- name: next_report_end
-- Purpose: find the earliest end of a window.
-- Caller: adapters.sql.report_calendar
-- Index: report_calendar_end
select c.end_at from {s}report_calendar c where {is_active} order by c.end_at, c.tenant limit 1

-- name: due_windows
-- Purpose: gather the tenants whose window is over into groups that share everything.
-- Caller: adapters.sql.report_calendar, once a pass
-- Index: report_calendar_end, the primary key of tenant
select d.next_date, d.start_at, d.end_at, d.zone, d.tz_version,
       t.zone, t.report_hour, coalesce(t.active, true), count(*)
from (select c.tenant, {window} from {s}report_calendar c
      where {is_active} and c.end_at <= :until order by c.end_at, c.tenant limit :limit) d
left join {s}tenant t on t.id = d.tenant
group by d.next_date, d.start_at, d.end_at, d.zone, d.tz_version, t.zone, t.report_hour,
         coalesce(t.active, true)
order by d.end_at, d.start_at, d.next_date

-- name: window_of_tenant
-- Purpose: read the group of one tenant.
-- Caller: adapters.sql.report_calendar, for a person's command
-- Index: the primary keys
select {window}, t.zone, t.report_hour, coalesce(t.active, true), 1
from {s}report_calendar c left join {s}tenant t on t.id = c.tenant
where {is_active} and c.tenant = :tenant
