-- name: claim_sends
-- Purpose: read sends that are available, the oldest first.
-- Differs: no row locks; the transaction is the only writer.
-- Caller: adapters.sql.sends, once a batch
-- Index: send_claim; of the others the primary keys
select s.id, s.report_id, r.tenant, r.report_date, s.recipient, s.attempt, s.state,
       max(r.due_at, r.frozen_at), s.spent_count, s.look_count, s.first_tried_at, s.last_tried_at, s.transport,
       a.outcome, a.reference, a.code, a.answer
from {s}send s
join {s}report r on r.id = s.report_id
left join {s}send_attempt a on a.send_id = s.id and a.attempt = (
    select min(n.attempt) from {s}send_attempt n
    where n.send_id = s.id and n.outcome in ('accepted', 'found'))
where s.state in ('ready', 'retrying', 'unknown') and s.available_at <= :now
order by s.available_at, s.id limit :limit

-- name: ended_send_leases
-- Purpose: read sends whose lease ended.
-- Differs: no row locks; the transaction is the only writer.
-- Caller: adapters.sql.sends, before each batch
-- Index: send_leased_until
select s.id from {s}send s
where s.state = 'leased' and s.leased_until <= :now
order by s.leased_until limit :limit

-- name: lock_report
-- Purpose: read a report's state before it is brought to where its sends are.
-- Differs: no row locks; the transaction is the only writer.
-- Caller: adapters.sql.sends, after sends ended
-- Index: the primary key
select state, reason from {s}report where id = :id

-- name: sends_of_report
-- Purpose: read the sends of one report.
-- Differs: no row locks; the transaction is the only writer.
-- Caller: adapters.sql.sends, before a person's words are written
-- Index: report_once and send_once
select s.id, s.report_id, s.recipient, s.state, s.reason, s.attempt,
       case when m.body is null then 0 else 1 end
from {s}report r
join {s}mail m on m.report_id = r.id
join {s}send s on s.report_id = r.id
where r.tenant = :tenant and r.report_date = :report_date
order by s.id
