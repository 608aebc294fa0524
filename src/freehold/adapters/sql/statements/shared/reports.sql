-- name: facts_waiting
-- Purpose: name the reports that have no facts yet, in the order of ids.
-- Caller: adapters.sql.facts, once for many pages of reports
-- Index: report_assigned
select p.id, p.expired_count from {s}report p where p.state = 'assigned' order by p.id limit :limit
