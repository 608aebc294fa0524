-- name: beating_workers
-- Purpose: see which processes live, before the ledger is dropped.
-- Caller: adapters.sql.dropping
-- Index: none; the table has one row for each process
select worker, host, pid from {s}worker where beat_at > :alive_after order by worker

-- name: some_operations
-- Purpose: count open operations, up to a limit.
-- Caller: adapters.sql.dropping
-- Index: the primary key, at most the limit's rows
select count(*) from (select 1 as one from {s}operation limit :most) as counted

-- name: some_pending_events
-- Purpose: count events that some target is still to be told of, up to a limit.
-- Caller: adapters.sql.dropping
-- Index: outbox_pending, at most the limit's rows
select count(*) from (select 1 as one from {s}outbox where state = 'pending' limit :most) as counted

-- name: some_sends
-- Purpose: count mails that some recipient has not been sent yet, up to a limit.
-- Caller: adapters.sql.dropping
-- Index: send_open, at most the limit's rows
select count(*) from (
    select 1 as one from {s}send where state in ('ready', 'leased', 'retrying', 'unknown')
    limit :most) as counted

-- name: some_holds
-- Purpose: count rows of the built-in table, up to a limit.
-- Caller: adapters.sql.dropping
-- Index: the primary key, at most the limit's rows
select count(*) from (select 1 as one from {s}hold limit :most) as counted

-- name: drop_relation
-- Purpose: drop one table, view or sequence of the ledger, and nothing that depends on it.
-- Caller: adapters.sql.dropping
-- Index: none
drop {kind} {s}{relation}
