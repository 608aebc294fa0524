-- name: accepted_twice
-- Purpose: find sends of which two attempts to send were accepted, and no person wanted the second.
-- Caller: adapters.sql.audit
-- Index: none; of the attempts their primary key
select null, null, null,
       'send ' || s.id || ' of report ' || s.report_id || ' was accepted twice, by attempts '
       || a.attempt || ' and ' || b.attempt
from {s}send s
join {s}send_attempt a on a.send_id = s.id and a.kind = 'send' and a.outcome = 'accepted'
join {s}send_attempt b on b.send_id = s.id and b.kind = 'send' and b.outcome = 'accepted'
                       and b.attempt > a.attempt
where s.changed_at >= :since
  and not exists (select 1 from {s}send_attempt p
                  where p.send_id = s.id and p.kind = 'resolve' and p.outcome = 'send again'
                    and p.attempt > a.attempt and p.attempt < b.attempt)
limit :limit

-- name: accepted_by_nobody
-- Purpose: find accepted sends of which no attempt was accepted or found.
-- Caller: adapters.sql.audit
-- Index: none; of the attempts their primary key
select null, null, null,
       'send ' || s.id || ' of report ' || s.report_id || ' is accepted, and no attempt of it was'
from {s}send s
where s.state = 'accepted' and s.changed_at >= :since
  and not exists (select 1 from {s}send_attempt a
                  where a.send_id = s.id and a.outcome in ('accepted', 'found'))
limit :limit

-- name: acceptance_overlooked
-- Purpose: find sends that ended otherwise though an attempt was accepted or found, unless a person
-- spoke after that attempt: its acceptance was heard later, and the word stands.
-- Caller: adapters.sql.audit
-- Index: none; of the attempts their primary key
select null, null, null,
       'send ' || s.id || ' of report ' || s.report_id || ' is ' || s.state
       || ', and an attempt of it was accepted'
from {s}send s
where s.state in ('refused', 'abandoned', 'unsubscribed') and s.changed_at >= :since
  and exists (select 1 from {s}send_attempt a
              where a.send_id = s.id and a.outcome in ('accepted', 'found')
                and not exists (select 1 from {s}send_attempt p
                                where p.send_id = s.id and p.kind = 'resolve'
                                  and p.attempt > a.attempt))
limit :limit

-- name: report_without_its_sends
-- Purpose: find reports that are not where their sends are.
-- Caller: adapters.sql.audit
-- Index: none; of the sends send_once and send_open
select null, null, null, 'report ' || r.id || ' is ' || r.state || ', and its sends are not'
from {s}report r
where r.assigned_at >= :since
  and ((r.state = 'sent'
        and exists (select 1 from {s}send s
                    where s.report_id = r.id and s.state not in ('accepted', 'unsubscribed')))
    or (r.state = 'sending'
        and not exists (select 1 from {s}send s
                        where s.report_id = r.id
                          and s.state in ('ready', 'leased', 'retrying', 'unknown')))
    or (r.state in ('in review', 'sent', 'partly sent', 'not sent', 'skipped')
        and exists (select 1 from {s}send s
                    where s.report_id = r.id
                      and s.state in ('ready', 'leased', 'retrying', 'unknown'))))
limit :limit

-- name: send_lease_not_returned
-- Purpose: find sends whose lease ended long ago.
-- Caller: adapters.sql.audit
-- Index: send_leased_until
select null, null, null,
       'the lease of send ' || s.id || ' of report ' || s.report_id || ' ended at ' || s.leased_until
from {s}send s
where s.state = 'leased' and s.leased_until < :asked_before
limit :limit

-- name: send_rests
-- Purpose: find sends that could be tried for long, and nobody paused them.
-- Caller: adapters.sql.audit
-- Index: send_claim
select null, null, null,
       'send ' || s.id || ' of report ' || s.report_id || ' is ' || s.state
       || ', and could be tried since ' || s.available_at
from {s}send s
join {s}report r on r.id = s.report_id
where s.state in ('ready', 'retrying', 'unknown') and s.available_at < :asked_before
  and not exists (select 1 from {s}pause p
                  where p.role = 'report' and p.ended_at is null
                    and (p.tenant is null or p.tenant = r.tenant))
limit :limit

-- name: send_attempt_left_open
-- Purpose: find open attempts whose send is in nobody's hands.
-- Caller: adapters.sql.audit
-- Index: send_attempt_open
select null, null, null,
       'attempt ' || a.attempt || ' of send ' || a.send_id || ' is open, and the send is ' || s.state
from {s}send_attempt a
join {s}send s on s.id = a.send_id
where a.outcome is null and s.state <> 'leased'
limit :limit

-- name: kept_mails
-- Purpose: page through the mails whose bytes are kept.
-- Caller: adapters.sql.audit_mails
-- Index: the primary key
select report_id, body, body_digest from {s}mail
where report_id > :after_id and body is not null and frozen_at >= :since
order by report_id limit :limit

-- name: heads_of_mail
-- Purpose: read what each recipient's copy of a mail adds, with the digest of the whole.
-- Caller: adapters.sql.audit_mails
-- Index: send_once
select id, head, mail_digest from {s}send where report_id = :report_id
