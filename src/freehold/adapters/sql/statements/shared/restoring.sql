-- name: count_leased_sends
-- Purpose: see whether a sender may still have mails in hand.
-- Caller: adapters.sql.restoring
-- Index: send_leased_until
select count(*) from {s}send where state = 'leased'
