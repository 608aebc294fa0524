-- name: walk_owners
-- Purpose: step from owner to owner of unreported tallies; return those that the calendar lacks, and
--          the page's last.
-- Caller: adapters.sql.report_calendar, a few times a minute
-- Index: tally_unreported; the order by both keeps any other from serving
with recursive o (tenant, place) as (
    (select coalesce(t.tenant, ''), 1 from {s}tally t
     where t.report_id is null and coalesce(t.tenant, '') > :after
     order by coalesce(t.tenant, ''), t.at limit 1)
    union all
    select (select coalesce(t.tenant, '') from {s}tally t
            where t.report_id is null and coalesce(t.tenant, '') > o.tenant
            order by coalesce(t.tenant, ''), t.at limit 1), o.place + 1
    from o where o.tenant is not null and o.place < :limit)
select f.tenant, f.place, f.is_new from (
    select o.tenant, o.place,
           (select c.tenant from {s}report_calendar c where c.tenant = o.tenant) is null as is_new
    from o where o.tenant is not null offset 0) f
where f.is_new or f.place = :limit
order by f.place

-- name: read_newcomers
-- Purpose: read what decides the first window of tenants that the calendar lacks.
-- Caller: adapters.sql.report_calendar, when there are any
-- Index: the primary keys, tally_unreported, report_start
select n.tenant, t.zone, f.at, r.report_date, r.start_at, r.end_at, r.zone, r.tz_version
from unnest(:tenants::text[]) as n (tenant)
left join {s}tenant t on t.id = n.tenant
left join lateral (
    select y.at from {s}tally y where coalesce(y.tenant, '') = n.tenant and y.report_id is null
    order by coalesce(y.tenant, ''), y.at limit 1) f on true
left join lateral (
    select * from {s}report x where x.tenant = n.tenant order by x.start_at desc limit 1) r on true
where coalesce(t.active, f.at is not null)
  and not exists (select 1 from {s}report_calendar c where c.tenant = n.tenant)

-- name: enrol
-- Purpose: write first windows; those that are there stay.
-- Caller: adapters.sql.report_calendar
-- Index: the primary key
insert into {s}report_calendar (tenant, start_at, next_date, end_at, zone, tz_version)
select * from unnest(:c0::text[], :c1::timestamptz[], :c2::date[], :c3::timestamptz[], :c4::text[],
                     :c5::text[])
on conflict (tenant) do nothing

-- name: reckon
-- Purpose: write windows anew, of rows that still begin where they did.
-- Caller: adapters.sql.report_calendar, after a tenant or the tz database changed
-- Index: the primary key
update {s}report_calendar c
set next_date = n.next_date, end_at = n.end_at, zone = n.zone, tz_version = n.tz_version,
    active = coalesce(n.active, c.active)
from unnest(:c0::text[], :c1::timestamptz[], :c2::date[], :c3::timestamptz[], :c4::text[],
            :c5::text[], :c6::boolean[])
    as n (tenant, start_at, next_date, end_at, zone, tz_version, active)
where c.tenant = n.tenant and c.start_at = n.start_at

-- name: oldest_transaction
-- Purpose: tell for how many seconds the oldest open transaction of ours is older than this one.
-- Caller: adapters.sql.report_calendar, before windows are closed
-- Index: none; the server's list of sessions
select coalesce(max(extract(epoch from me.xact_start - a.xact_start)), 0)::float8
from pg_stat_activity me
join pg_stat_activity a on a.datname = me.datname and a.application_name = 'freehold'
                       and a.xact_start < me.xact_start
where me.pid = pg_backend_pid()

-- name: take_group
-- Purpose: lock rows of one group, passing over those that others have in hand, and those whose last
--          report has not got all its tallies.
-- Caller: adapters.sql.report_calendar, where order is kept
-- Index: report_calendar_end, report_in_parts, the primary key of tenant
select c.tenant from {s}report_calendar c
left join lateral (select * from {s}tenant t where t.id = c.tenant offset 0) t on true
where c.active and c.end_at = :end_at and c.start_at = :start_at and c.next_date = :report_date
  and c.zone = :zone and c.tz_version = :tz_version
  and t.zone is not distinct from :tenant_zone::text
  and t.report_hour is not distinct from :hour::integer
  and coalesce(t.active, true) = :is_active
  and (:only::text is null or c.tenant = :only)
  and (select r.id from {s}report r where r.tenant = c.tenant and r.expired_count is null) is null
order by c.end_at, c.tenant limit :limit for update of c skip locked

-- name: weigh_page
-- Purpose: count the tallies of tenants whose window closes, as far as the limit; and tell at which
--          of the tenants it ended.
-- Caller: adapters.sql.report_calendar, where order is kept
-- Index: tally_unreported
select count(*), max(w.place) from (
    select n.place from unnest(:tenants::text[]) with ordinality as n (tenant, place)
    cross join lateral (
        select 1 from {s}tally y
        where coalesce(y.tenant, '') = n.tenant and y.report_id is null and y.at < :end_at
        order by coalesce(y.tenant, ''), y.at limit :limit) t
    limit :limit) w

-- name: make_reports
-- Purpose: write the reports of tenants whose window closes, without a count.
-- Caller: adapters.sql.report_calendar
-- Index: report_once, report_start, report_in_parts
insert into {s}report (
    tenant, report_date, start_at, end_at, zone, tz_version, watermark_at, due_at, state, reason,
    assigned_at)
select n.tenant, :report_date, :start_at, :end_at, :zone, :tz_version, :watermark_at, :due_at,
       'assigned', :reason, :now
from unnest(:tenants::text[]) as n (tenant)
returning id, tenant

-- name: assign_tallies
-- Purpose: give unreported tallies before the end to the reports of their tenants that have no count
--          yet, the oldest of a tenant first.
-- Caller: adapters.sql.report_calendar, where order is kept, with reports in hand
-- Index: tally_unreported, report_in_parts. Rows are found by their place whatever the planner
--        guesses: what checks them again is spelled so that no index serves it
update {s}tally t
set report_id = (select r.id from {s}report r
                 where r.tenant = coalesce(t.tenant, '') and r.expired_count is null)
where t.ctid = any (array(
    select y.place from unnest(:tenants::text[]) as n (tenant)
    cross join lateral (
        select o.ctid as place from {s}tally o
        where coalesce(o.tenant, '') = n.tenant and o.report_id is null and o.at < :end_at
        order by coalesce(o.tenant, ''), o.at limit :limit) y
    limit :limit))
  and coalesce(t.report_id, 0) = 0

-- name: count_reports
-- Purpose: count what lies inside of reports that have all their tallies.
-- Caller: adapters.sql.report_calendar
-- Index: the primary key of report, tally_reported
update {s}report r
set expired_count = (select coalesce(sum(t.expired_count), 0) from {s}tally t
                     where t.report_id = r.id and t.at >= r.start_at)
where r.id = any (:ids::bigint[])

-- name: take_report_in_parts
-- Purpose: lock a report that has not got all its tallies, passing over those that others have.
-- Caller: adapters.sql.report_calendar
-- Index: report_in_parts
select r.id, r.tenant, r.end_at from {s}report r where r.expired_count is null
order by r.tenant limit 1 for update skip locked

-- name: move_calendar
-- Purpose: write another window for rows in hand.
-- Caller: adapters.sql.report_calendar
-- Index: the primary key
update {s}report_calendar c
set next_date = :report_date, start_at = :start_at, end_at = :end_at, zone = :zone,
    tz_version = :tz_version, active = :is_active
where c.tenant = any (:tenants::text[])

-- name: moved_tenants
-- Purpose: find tenants that were changed and are no longer as the calendar has them.
-- Caller: adapters.sql.report_calendar, a few times a minute
-- Index: tenant_changed, the primary key of the calendar
select t.id, t.zone, t.active, t.changed_at, {window}, c.active
from {s}tenant t
cross join lateral (select * from {s}report_calendar c where c.tenant = t.id offset 0) c
where t.changed_at >= :since and (t.changed_at, t.id) > (:since, :after)
  and (t.active <> c.active or (t.active and coalesce(t.zone, :zone) <> c.zone))
order by t.changed_at, t.id limit :limit

-- name: due_windows
-- Purpose: gather the tenants whose window is over into groups that share everything.
-- Caller: adapters.sql.report_calendar, once a pass
-- Index: report_calendar_end, the primary key of tenant
select d.next_date, d.start_at, d.end_at, d.zone, d.tz_version,
       t.zone, t.report_hour, coalesce(t.active, true), count(*)
from (select c.tenant, {window} from {s}report_calendar c
      where {is_active} and c.end_at <= :until order by c.end_at, c.tenant limit :limit) d
left join lateral (select * from {s}tenant t where t.id = d.tenant offset 0) t on true
group by d.next_date, d.start_at, d.end_at, d.zone, d.tz_version, t.zone, t.report_hour,
         coalesce(t.active, true)
order by d.end_at, d.start_at, d.next_date
