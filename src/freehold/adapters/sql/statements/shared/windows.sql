-- name: has_window
-- Purpose: see whether a window of a rule waits, or is worked on.
-- Caller: adapters.sql.windows, once a tick of mode window
-- Index: operation_window
select exists (select 1 from {s}operation
               where rule = :rule and window_until is not null
                 and state in ('ready', 'leased', 'retrying', 'deferred'))

-- name: open_window
-- Purpose: write a window; the same one is left as it is.
-- Caller: adapters.sql.windows, once a tick of mode window that finds something due
-- Index: operation_identity
insert into {s}operation (
    rule, tenant, hold_key, digest, identity, guard, due_at, generation, after_expired, state,
    available_at, found_at, changed_at, tick_id, window_from, window_until)
values (:rule, null, :hold_key, :digest, :identity, :identity, :begins_at, 1, false, 'ready',
        :now, :now, :now, :tick_id, :begins_at, :until)
on conflict (rule, hold_key, digest) do nothing
