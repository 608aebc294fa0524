-- name: walk_owners
-- Purpose: step from owner to owner of unreported tallies; return those that the calendar lacks, and
--          the page's last.
-- Differs: the first step is wrapped for its order.
-- Caller: adapters.sql.report_calendar, a few times a minute
-- Index: tally_unreported
with recursive o (tenant, place) as (
    select * from (
        select coalesce(t.tenant, ''), 1 from {s}tally t
        where t.report_id is null and coalesce(t.tenant, '') > :after
        order by coalesce(t.tenant, ''), t.at limit 1)
    union all
    select (select coalesce(t.tenant, '') from {s}tally t
            where t.report_id is null and coalesce(t.tenant, '') > o.tenant
            order by coalesce(t.tenant, ''), t.at limit 1), o.place + 1
    from o where o.tenant is not null and o.place < :limit)
select f.tenant, f.place, f.is_new from (
    select o.tenant, o.place,
           not exists (select 1 from {s}report_calendar c where c.tenant = o.tenant) as is_new
    from o where o.tenant is not null) f
where f.is_new or f.place = :limit
order by f.place

-- name: read_newcomers
-- Purpose: read what decides the first window of tenants that the calendar lacks.
-- Differs: the batch arrives as JSON; there is no lateral join.
-- Caller: adapters.sql.report_calendar, when there are any
-- Index: the primary keys, tally_unreported, report_start
select n.tenant, t.zone, n.first_at, r.report_date, r.start_at, r.end_at, r.zone, r.tz_version
from (select j.value as tenant,
             (select y.at from {s}tally y
              where coalesce(y.tenant, '') = j.value and y.report_id is null
              order by y.at limit 1) as first_at
      from json_each(:tenants) j) n
left join {s}tenant t on t.id = n.tenant
left join {s}report r on r.tenant = n.tenant
    and r.start_at = (select max(x.start_at) from {s}report x where x.tenant = n.tenant)
where coalesce(t.active, n.first_at is not null)
  and not exists (select 1 from {s}report_calendar c where c.tenant = n.tenant)

-- name: enrol
-- Purpose: write a first window; one that is there stays.
-- Differs: once a row.
-- Caller: adapters.sql.report_calendar
-- Index: the primary key
insert into {s}report_calendar (tenant, start_at, next_date, end_at, zone, tz_version)
values (:c0, :c1, :c2, :c3, :c4, :c5)
on conflict (tenant) do nothing

-- name: reckon
-- Purpose: write a window anew, of a row that still begins where it did.
-- Differs: once a row.
-- Caller: adapters.sql.report_calendar, after a tenant or the tz database changed
-- Index: the primary key
update {s}report_calendar
set next_date = :c2, end_at = :c3, zone = :c4, tz_version = :c5, active = coalesce(:c6, active)
where tenant = :c0 and start_at = :c1

-- name: take_group
-- Purpose: read rows of one group, without those whose last report has not got all its tallies.
-- Differs: no row locks; the transaction is the only writer.
-- Caller: adapters.sql.report_calendar
-- Index: report_calendar_end, report_in_parts, the primary key of tenant
select c.tenant from {s}report_calendar c left join {s}tenant t on t.id = c.tenant
where c.active = 1 and c.end_at = :end_at and c.start_at = :start_at and c.next_date = :report_date
  and c.zone = :zone and c.tz_version = :tz_version
  and t.zone is :tenant_zone and t.report_hour is :hour
  and coalesce(t.active, true) = :is_active
  and (:only is null or c.tenant = :only)
  and not exists (select 1 from {s}report r where r.tenant = c.tenant and r.expired_count is null)
order by c.end_at, c.tenant limit :limit

-- name: weigh_page
-- Purpose: count the tallies of tenants whose window closes, as far as the limit; and tell at which
--          of the tenants it ended.
-- Differs: the batch arrives as JSON.
-- Caller: adapters.sql.report_calendar
-- Index: tally_unreported
select count(*), max(w.place) from (
    select n.key + 1 as place from json_each(:tenants) n
    cross join {s}tally y on coalesce(y.tenant, '') = n.value
    where y.report_id is null and y.at < :end_at limit :limit) w

-- name: make_reports
-- Purpose: write the reports of tenants whose window closes, without a count.
-- Differs: the batch arrives as JSON.
-- Caller: adapters.sql.report_calendar
-- Index: report_once, report_start, report_in_parts
insert into {s}report (
    tenant, report_date, start_at, end_at, zone, tz_version, watermark_at, due_at, state, reason,
    assigned_at)
select n.value, :report_date, :start_at, :end_at, :zone, :tz_version, :watermark_at, :due_at,
       'assigned', :reason, :now
from json_each(:tenants) n where true
returning id, tenant

-- name: assign_tallies
-- Purpose: give unreported tallies before the end to the reports of their tenants that have no count
--          yet.
-- Differs: rows are found by their ids, of a tenant in the order of its index; ordered in words, all
--          of them would be sorted.
-- Caller: adapters.sql.report_calendar
-- Index: tally_unreported, the primary key, report_in_parts
update {s}tally
set report_id = (select r.id from {s}report r
                 where r.tenant = coalesce({s}tally.tenant, '') and r.expired_count is null)
where id in (
    select y.id from json_each(:tenants) n
    cross join {s}tally y on coalesce(y.tenant, '') = n.value
    where y.report_id is null and y.at < :end_at limit :limit)

-- name: count_reports
-- Purpose: count what lies inside of reports that have all their tallies.
-- Differs: the batch arrives as JSON.
-- Caller: adapters.sql.report_calendar
-- Index: the primary key of report, tally_reported
update {s}report as r
set expired_count = (select coalesce(sum(t.expired_count), 0) from {s}tally t
                     where t.report_id = r.id and t.at >= r.start_at)
where r.id in (select value from json_each(:ids))

-- name: take_report_in_parts
-- Purpose: read a report that has not got all its tallies.
-- Differs: no row locks; the transaction is the only writer.
-- Caller: adapters.sql.report_calendar
-- Index: report_in_parts
select r.id, r.tenant, r.end_at from {s}report r where r.expired_count is null
order by r.tenant limit 1

-- name: move_calendar
-- Purpose: write another window for rows in hand.
-- Differs: the batch arrives as JSON.
-- Caller: adapters.sql.report_calendar
-- Index: the primary key
update {s}report_calendar
set next_date = :report_date, start_at = :start_at, end_at = :end_at, zone = :zone,
    tz_version = :tz_version, active = :is_active
where tenant in (select value from json_each(:tenants))

-- name: moved_tenants
-- Purpose: find tenants that were changed and are no longer as the calendar has them.
-- Differs: there is no lateral join, and no other kind of join to choose
-- Caller: adapters.sql.report_calendar, a few times a minute
-- Index: tenant_changed, the primary key of the calendar
select t.id, t.zone, t.active, t.changed_at, {window}, c.active
from {s}tenant t join {s}report_calendar c on c.tenant = t.id
where t.changed_at >= :since and (t.changed_at, t.id) > (:since, :after)
  and (t.active <> c.active or (t.active and coalesce(t.zone, :zone) <> c.zone))
order by t.changed_at, t.id limit :limit

-- name: due_windows
-- Purpose: gather the tenants whose window is over into groups that share everything.
-- Differs: there is no lateral join, and no other kind of join to choose
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
