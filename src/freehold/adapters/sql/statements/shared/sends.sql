-- name: add_mail
-- Purpose: freeze the mail of a frozen report; one that has its mail already is left alone.
-- Caller: adapters.sql.sends, once a report
-- Index: the primary keys
insert into {s}mail (
    report_id, locale, subject, body, body_digest, byte_count, summary_id, frozen_at)
select r.id, :locale, :subject, :body, :body_digest, :byte_count, cast(:summary_id as bigint), :now
from {s}report r where r.id = :report_id and r.state = 'frozen'
on conflict (report_id) do nothing

-- name: add_send
-- Purpose: write the sending of one mail to one recipient.
-- Caller: adapters.sql.sends, once a recipient
-- Index: none
insert into {s}send (
    report_id, recipient, message_key, head, mail_digest, state, reason, available_at, changed_at)
values (:report_id, :recipient, :message_key, :head, :mail_digest, :state, :reason, :now, :now)

-- name: lease_send
-- Purpose: take a send beyond this transaction; the state that it had stays known.
-- Caller: adapters.sql.sends, on rows locked just before
-- Index: the primary key
update {s}send
set state_before = state, state = 'leased', leased_until = :until, lease_token = :lease_token,
    changed_at = :now
where id = :id and state in ('ready', 'retrying', 'unknown')

-- name: next_send
-- Purpose: find when the next send can be claimed, or taken back.
-- Caller: adapters.sql.sends, before waiting
-- Index: send_claim and send_leased_until, their first entries
select (select s.available_at from {s}send s where s.state in ('ready', 'retrying', 'unknown')
        order by s.available_at, s.id limit 1),
       (select l.leased_until from {s}send l where l.state = 'leased'
        order by l.leased_until limit 1)

-- name: send_head
-- Purpose: read what is a recipient's own of a mail.
-- Caller: adapters.sql.sends, once a claimed send
-- Index: the primary key
select message_key, recipient, head from {s}send where id = :id

-- name: mail_body
-- Purpose: read the frozen body of a report's mail.
-- Caller: adapters.sql.sends, once a report among claimed sends; adapters.sql.report_insight
-- Index: the primary key
select body from {s}mail where report_id = :report_id

-- name: begin_try
-- Purpose: count an attempt to send, fenced by the lease, and lease the send for as long as it may take.
-- Caller: adapters.sql.sends, before the provider is asked
-- Index: the primary key
update {s}send
set attempt = attempt + 1, spent_count = spent_count + 1, look_count = 0, transport = :transport,
    first_tried_at = case when transport = :transport then coalesce(first_tried_at, :now) else :now end,
    last_tried_at = :now, leased_until = :until, changed_at = :now
where id = :id and state = 'leased' and lease_token = :lease_token and attempt = :attempt
  and leased_until > :now

-- name: begin_look_up
-- Purpose: count a look-up, fenced by the lease, and lease the send for as long as it may take.
-- Caller: adapters.sql.sends, before the provider is asked
-- Index: the primary key
update {s}send
set attempt = attempt + 1, look_count = look_count + 1, leased_until = :until,
    changed_at = :now
where id = :id and state = 'leased' and lease_token = :lease_token and attempt = :attempt
  and leased_until > :now

-- name: begin_attempt
-- Purpose: write the row of an attempt that begins.
-- Caller: adapters.sql.sends, before the provider is asked
-- Index: send_attempt_open refuses a second open one
insert into {s}send_attempt (send_id, attempt, kind, transport, lease_token, started_at)
values (:id, :attempt, :kind, :transport, :lease_token, :now)

-- name: settle_send
-- Purpose: give a send back where its attempt left it, fenced by lease and attempt.
-- Caller: adapters.sql.sends
-- Index: the primary key
update {s}send
set state = :state, reason = :reason, available_at = coalesce(:available_at, available_at),
    reference = coalesce(:reference, reference), spent_count = spent_count - :spent_back,
    look_count = look_count - :looks_back, state_before = null, leased_until = null,
    changed_at = :now
where id = :id and state = 'leased' and lease_token = :lease_token and attempt = :attempt

-- name: end_attempt
-- Purpose: close the open attempt of a send.
-- Caller: adapters.sql.sends, after its send was given back
-- Index: the primary key
update {s}send_attempt
set ended_at = :now, outcome = :outcome, reference = :reference, code = :code, answer = :answer
where send_id = :id and attempt = :attempt and outcome is null

-- name: note_answer
-- Purpose: keep the answer that came after the lease was lost; the attempt was closed as unknown.
-- Caller: adapters.sql.sends
-- Index: the primary key
update {s}send_attempt
set outcome = :outcome, reference = :reference, code = :code, answer = :answer
where send_id = :id and attempt = :attempt and lease_token = :lease_token and outcome = 'unknown'

-- name: accept_late
-- Purpose: end a send in review of which an acceptance was heard late, and no person spoke since.
-- Caller: adapters.sql.sends, after the acceptance was noted
-- Index: the primary keys
update {s}send
set state = 'accepted', reason = :reason, reference = coalesce(:reference, reference),
    changed_at = :now
where id = :id and state = 'review'
  and exists (select 1 from {s}send_attempt a
              where a.send_id = :id and a.attempt = :attempt and a.lease_token = :lease_token
                and a.outcome in ('accepted', 'found'))
  and not exists (select 1 from {s}send_attempt p
                  where p.send_id = :id and p.attempt > :attempt and p.kind = 'resolve')

-- name: give_back_send
-- Purpose: return a claimed send of which no attempt was begun, in the state that it had.
-- Caller: adapters.sql.sends, when a sender stops early
-- Index: the primary key
update {s}send
set state = state_before, state_before = null, leased_until = null, reason = :reason,
    available_at = :available_at, changed_at = :now
where id = :id and state = 'leased' and lease_token = :lease_token and attempt = :attempt

-- name: renew_send
-- Purpose: prolong the lease of a send, fenced by its token.
-- Caller: adapters.sql.sends
-- Index: the primary key
update {s}send set leased_until = :until, changed_at = :now
where id = :id and state = 'leased' and lease_token = :lease_token and leased_until > :now

-- name: end_lost_attempt
-- Purpose: close the attempt that somebody left open; its end is unknown.
-- Caller: adapters.sql.sends, before its send is taken back
-- Index: send_attempt_open
update {s}send_attempt
set ended_at = :now, outcome = 'unknown', answer = :reason
where send_id = :id and outcome is null

-- name: take_back_send
-- Purpose: take a send back whose lease ended.
-- Caller: adapters.sql.sends, on rows locked just before
-- Index: the primary key
update {s}send
set state = case when :was_begun = 1 then 'unknown' else state_before end, state_before = null,
    leased_until = null, available_at = :now, reason = :reason, changed_at = :now
where id = :id and state = 'leased' and leased_until <= :now

-- name: open_send
-- Purpose: see whether a report has a send that is not at its end and waits for no person.
-- Caller: adapters.sql.sends, after a send of the report ended
-- Index: send_open
select 1 from {s}send
where report_id = :report_id and state in ('ready', 'leased', 'retrying', 'unknown') limit 1

-- name: sends_by_state
-- Purpose: count the sends of a report, once none of them is open.
-- Caller: adapters.sql.sends, after the last send of the report ended
-- Index: send_once
select state, count(*) from {s}send where report_id = :report_id group by state

-- name: move_report
-- Purpose: bring a report to where its sends are.
-- Caller: adapters.sql.sends, on a row locked just before
-- Index: the primary key
update {s}report
set state = :state, reason = :reason, ended_at = case when :is_end = 1 then :now else null end
where id = :id

-- name: resolve_send
-- Purpose: write what a person said of a send that waits for one, or was refused.
-- Caller: adapters.sql.sends
-- Index: the primary key
update {s}send
set state = :state, reason = :reason, attempt = attempt + 1, spent_count = 0, look_count = 0,
    available_at = :now, reference = coalesce(:reference, reference), changed_at = :now
where id = :id and state in ('review', 'refused')

-- name: add_resolve
-- Purpose: write a person's words as an attempt of its own.
-- Caller: adapters.sql.sends, after the send was resolved
-- Index: the primary key
insert into {s}send_attempt (
    send_id, attempt, kind, transport, started_at, ended_at, outcome, reference, code, answer)
select s.id, s.attempt, 'resolve', 'a person', :now, :now, :outcome, :reference, :code, :answer
from {s}send s where s.id = :id
