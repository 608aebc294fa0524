-- name: summary_left_open
-- Purpose: find calls of a model that nobody closed.
-- Caller: adapters.sql.audit
-- Index: summary_open
select null, null, null,
       'attempt ' || a.attempt || ' at a text for the report of ' || r.report_date || ' of tenant "'
       || a.tenant || '" began at ' || a.started_at || ' and was never closed'
from {s}summary_attempt a join {s}report r on r.id = a.report_id
where a.ended_at is null and a.started_at < :asked_before
limit :limit

-- name: summary_of_nothing
-- Purpose: find mails whose text is not that of an accepted attempt on the facts of their report.
-- Caller: adapters.sql.audit
-- Index: the primary keys; reads the mails
select null, null, null,
       'the mail of the report of ' || r.report_date || ' of tenant "' || r.tenant
       || '" holds text ' || m.summary_id || ', which was not accepted for these facts'
from {s}mail m join {s}report r on r.id = m.report_id
where m.summary_id is not null and m.frozen_at >= :since
  and not exists (select 1 from {s}summary_attempt a
                  where a.id = m.summary_id and a.report_id = m.report_id
                    and a.tenant = r.tenant and a.facts_digest = r.facts_digest
                    and a.outcome = 'accepted' and a.summary is not null)
limit :limit
