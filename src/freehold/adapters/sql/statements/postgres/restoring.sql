-- name: doubtful_sends
-- Purpose: lock sends that wait, and may have been sent since the backup was taken.
-- Caller: adapters.sql.restoring, once a page
-- Index: send_claim
select id from {s}send
where state in ('ready', 'retrying')
order by available_at, id limit :limit for no key update

-- name: note_doubts
-- Purpose: write the attempt that may have been, into the trail.
-- Caller: adapters.sql.restoring, once a page
-- Index: the primary key
insert into {s}send_attempt (
    send_id, attempt, kind, transport, started_at, ended_at, outcome, code, answer)
select n.id, n.attempt + 1, 'send', :transport, :since, :now, 'unknown', :code, :answer
from {s}send n where n.id = any (:ids::bigint[])

-- name: doubt_sends
-- Purpose: make sends unknown whose mails may have been sent.
-- Caller: adapters.sql.restoring, once a page
-- Index: the primary key
update {s}send
set state = 'unknown', reason = :reason, attempt = attempt + 1, transport = :transport,
    first_tried_at = coalesce(first_tried_at, :since), last_tried_at = :now, available_at = :now,
    changed_at = :now
where id = any (:ids::bigint[])
