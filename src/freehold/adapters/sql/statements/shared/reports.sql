-- name: facts_waiting
-- Purpose: name the reports that have all tallies and no facts yet, in the order of ids.
-- Caller: adapters.sql.facts, once for many pages of reports
-- Index: report_assigned
select p.id, p.expired_count from {s}report p
where p.state = 'assigned' and p.expired_count is not null order by p.id limit :limit

-- name: fact_waiting
-- Purpose: name one report that has no facts yet.
-- Caller: adapters.sql.facts, for a preview
-- Index: report_once
select p.id, p.expired_count from {s}report p
where p.tenant = :tenant and p.report_date = :report_date and p.state = 'assigned'
  and p.expired_count is not null

-- name: facts_kept
-- Purpose: page through the facts that reports keep.
-- Caller: adapters.sql.facts, for the audit
-- Index: the primary key
select p.id, p.tenant, p.report_date, p.facts, p.facts_digest, p.expired_count
from {s}report p
where p.id > :after_id and p.facts is not null and p.frozen_at >= :since
order by p.id limit :limit

-- name: reopen_report
-- Purpose: let a report that ended without a mail get one, as a person asked.
-- Caller: adapters.sql.facts
-- Index: report_once, the primary key of mail
update {s}report set state = 'frozen', reason = null, ended_at = null
where tenant = :tenant and report_date = :report_date and state = 'not sent'
  and not exists (select 1 from {s}mail m where m.report_id = {s}report.id)
