-- name: next_day
-- Purpose: read the day whose window ends first, with its tenant's own report hour.
-- Differs: truth is 1, as the index has it.
-- Caller: adapters.sql.report_insight, for status
-- Index: report_calendar_end
select c.tenant, c.next_date, c.start_at, c.end_at, c.zone, c.tz_version, t.report_hour
from {s}report_calendar c left join {s}tenant t on t.id = c.tenant
where c.active = 1 order by c.end_at, c.tenant limit 1
