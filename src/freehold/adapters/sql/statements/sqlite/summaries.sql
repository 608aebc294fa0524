-- name: accepted_summaries
-- Purpose: read the accepted texts of reports, the first of each last.
-- Differs: the batch arrives as JSON.
-- Caller: adapters.sql.summaries, before mails are frozen
-- Index: the primary key of report, summary_attempt_once
select r.id, a.id, a.summary
from {s}report r
join {s}summary_attempt a on a.report_id = r.id and a.facts_digest = r.facts_digest
where r.id in (select value from json_each(:ids)) and a.outcome = 'accepted'
order by a.id desc
