-- name: add_unsubscribed
-- Purpose: note that a recipient wants no more reports of a tenant.
-- Caller: adapters.sql.unsubscribed
-- Index: the primary key
insert into {s}unsubscribed (tenant, recipient, at, actor, reason)
values (:tenant, :recipient, :now, :actor, :reason)
on conflict (tenant, recipient) do nothing

-- name: remove_unsubscribed
-- Purpose: take the note back.
-- Caller: adapters.sql.unsubscribed
-- Index: the primary key
delete from {s}unsubscribed where tenant = :tenant and recipient = :recipient

-- name: find_link
-- Purpose: find whom the token of a link names.
-- Caller: adapters.sql.unsubscribed
-- Index: the primary key
select token, tenant, recipient from {s}unsubscribe_token where token = :token
