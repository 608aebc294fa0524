-- name: unsubscribed_of
-- Purpose: read the notes of some tenants.
-- Caller: adapters.sql.unsubscribed
-- Index: the primary key
select tenant, recipient, at, actor, reason from {s}unsubscribed
where tenant = any (:tenants::text[]) order by tenant, recipient

-- name: stop_unsubscribed
-- Purpose: end a recipient's sends that wait and surely were not accepted.
-- Caller: adapters.sql.unsubscribed, once an unsubscription
-- Index: report_once or report_open, send_once
update {s}send n
set state = 'unsubscribed', reason = :reason, changed_at = :now
from {s}report r
where r.tenant = :tenant and r.state in ('sending', 'in review')
  and n.report_id = r.id and n.recipient = :recipient and n.state in ('ready', 'retrying')
returning n.report_id

-- name: keep_links
-- Purpose: write what the tokens of links name.
-- Caller: adapters.sql.unsubscribed, once a page of mails
-- Index: the primary key
insert into {s}unsubscribe_token (token, tenant, recipient)
select n.token, n.tenant, n.recipient
from unnest(:c0::text[], :c1::text[], :c2::text[]) as n (token, tenant, recipient)
order by n.token
on conflict (token) do nothing
