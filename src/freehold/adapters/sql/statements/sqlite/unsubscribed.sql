-- name: unsubscribed_of
-- Purpose: read the notes of some tenants.
-- Differs: the ids arrive as JSON.
-- Caller: adapters.sql.unsubscribed
-- Index: the primary key
select tenant, recipient, at, actor, reason from {s}unsubscribed
where tenant in (select value from json_each(:tenants)) order by tenant, recipient

-- name: stop_unsubscribed
-- Purpose: end a recipient's sends that wait and surely were not accepted.
-- Differs: the changed table takes no alias.
-- Caller: adapters.sql.unsubscribed, once an unsubscription
-- Index: report_once, send_once
update {s}send
set state = 'unsubscribed', reason = :reason, changed_at = :now
from {s}report r
where r.tenant = :tenant and r.state in ('sending', 'in review')
  and {s}send.report_id = r.id and {s}send.recipient = :recipient
  and {s}send.state in ('ready', 'retrying')
returning report_id

-- name: keep_links
-- Purpose: write what the tokens of links name.
-- Differs: the batch arrives as JSON.
-- Caller: adapters.sql.unsubscribed, once a page of mails
-- Index: the primary key
insert into {s}unsubscribe_token (token, tenant, recipient)
select value ->> 0, value ->> 1, value ->> 2 from json_each(:rows) where true
on conflict (token) do nothing
