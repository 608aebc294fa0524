-- name: list_reports
-- Purpose: read reports backwards from a date and tenant down to a date, with how many recipients
--          each has and how many of them accepted.
-- Caller: adapters.sql.report_insight
-- Index: report_by_date, read backwards; send_once
select r.tenant, r.report_date, r.state, r.reason, r.due_at, r.expired_count,
       (select count(*) from {s}send x where x.report_id = r.id),
       (select count(*) from {s}send x where x.report_id = r.id and x.state = 'accepted')
from {s}report r
where r.report_date >= :least and (r.report_date, r.tenant) < (:report_date, :tenant)
order by r.report_date desc, r.tenant desc limit :limit

-- name: list_reports_of_tenant
-- Purpose: read the reports of one tenant backwards from a date down to a date.
-- Caller: adapters.sql.report_insight
-- Index: report_once, read backwards; send_once
select r.tenant, r.report_date, r.state, r.reason, r.due_at, r.expired_count,
       (select count(*) from {s}send x where x.report_id = r.id),
       (select count(*) from {s}send x where x.report_id = r.id and x.state = 'accepted')
from {s}report r
where r.tenant = :tenant and r.report_date >= :least and r.report_date < :report_date
order by r.report_date desc limit :limit

-- name: look_at_report
-- Purpose: read one report.
-- Caller: adapters.sql.report_insight
-- Index: report_once
select id, start_at, end_at, zone, tz_version, state, reason, due_at, watermark_at, assigned_at,
       frozen_at, ended_at, facts, facts_digest
from {s}report where tenant = :tenant and report_date = :report_date

-- name: look_at_mail
-- Purpose: read what is known of one report's mail, without its bytes.
-- Caller: adapters.sql.report_insight
-- Index: the primary key
select locale, subject, body_digest, byte_count, frozen_at, body is not null, summary_id
from {s}mail where report_id = :report_id

-- name: look_at_sends
-- Purpose: read the sends of one report, by recipient.
-- Caller: adapters.sql.report_insight
-- Index: send_once
select id, recipient, message_key, mail_digest, state, reason, available_at, transport, reference,
       changed_at
from {s}send where report_id = :report_id order by recipient

-- name: look_at_head
-- Purpose: read the head of one recipient's copy.
-- Caller: adapters.sql.report_insight
-- Index: the primary key
select head from {s}send where id = :id

-- name: look_at_attempts
-- Purpose: read the attempts of one send.
-- Caller: adapters.sql.report_insight
-- Index: the primary key
select attempt, kind, transport, started_at, ended_at, outcome, reference, code, answer
from {s}send_attempt where send_id = :id order by attempt

-- name: look_at_summaries
-- Purpose: read how often a model was asked about one report, and what that cost.
-- Caller: adapters.sql.report_insight
-- Index: summary_attempt_once
select attempt, host, coalesce(model_answered, model_asked), started_at, outcome, reason,
       input_tokens, output_tokens, cost_micros, currency
from {s}summary_attempt where report_id = :report_id order by attempt

-- name: newest_reports
-- Purpose: count the newest reports by state, back to a date, up to a limit.
-- Caller: adapters.sql.report_insight, for status
-- Index: report_by_date, read backwards
select n.state, count(*)
from (
    select r.state from {s}report r
    where r.report_date >= :since order by r.report_date desc, r.tenant desc limit :limit) n
group by n.state

-- name: owed_reports
-- Purpose: count the reports that are due and have no mail yet, and find the oldest, up to a limit.
-- Caller: adapters.sql.report_insight, for status
-- Index: report_due
select count(*), min(w.due_at)
from (
    select r.due_at from {s}report r
    where r.state = 'frozen' and r.due_at <= :now order by r.due_at, r.id limit :limit) w

-- name: next_due_report
-- Purpose: find when the next mail is due that is not written yet.
-- Caller: adapters.sql.report_insight, for the reporter's sleep
-- Index: report_due
select min(due_at) from {s}report where state = 'frozen'

-- name: unfrozen_reports
-- Purpose: count the reports without facts that are due, and find the oldest, up to a limit.
-- Caller: adapters.sql.report_insight, for status
-- Index: report_assigned
select count(*), min(w.due_at)
from (
    select r.due_at from {s}report r where r.state = 'assigned' order by r.id limit :limit) w
where w.due_at <= :now

-- name: open_reports
-- Purpose: read the oldest reports that are being sent or wait for a person, up to a limit.
-- Caller: adapters.sql.report_insight, for status
-- Index: report_open
select o.state, count(*), min(o.due_at), min(o.id)
from (
    select r.state, r.due_at, r.id from {s}report r
    where r.state in ('sending', 'in review') order by r.id limit :limit) o
group by o.state

-- name: report_by_id
-- Purpose: name a report.
-- Caller: adapters.sql.report_insight, for status
-- Index: the primary key
select report_date, tenant from {s}report where id = :id

-- name: unknown_sends
-- Purpose: count the sends of which nobody knows the end, among the first that wait, up to a limit.
-- Caller: adapters.sql.report_insight, for status
-- Index: send_claim
select count(*)
from (
    select x.state from {s}send x
    where x.state in ('ready', 'retrying', 'unknown') order by x.available_at, x.id limit :limit) w
where w.state = 'unknown'

-- name: nobody_enrolled
-- Purpose: tell whether nobody's days are known though somebody could get reports.
-- Caller: adapters.sql.report_insight, for status
-- Index: none; it stops at the first row
select not exists (select 1 from {s}report_calendar)
   and (exists (select 1 from {s}tenant t where t.active) or exists (select 1 from {s}tally))

-- name: counted_by_report
-- Purpose: find the report that counts an ended operation.
-- Caller: adapters.sql.report_insight, for why
-- Index: record_hold, in every partition; the primary keys
select r.tenant, r.report_date, r.state
from {s}record e
join {s}tally t on t.id = e.tally_id
join {s}report r on r.id = t.report_id
where e.rule = :rule and e.hold_key = :hold_key and e.operation_id = :operation_id
limit 1
