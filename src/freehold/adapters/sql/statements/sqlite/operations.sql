-- name: enqueue
-- Purpose: write open operations for due holds; an identity that is open already stays as it is.
-- Differs: one row an execution (executemany), since SQLite has no arrays.
-- Caller: adapters.sql.operations, once a scanned batch
-- Index: operation_identity
insert into {s}operation (
    rule, tenant, hold_key, digest, identity, guard, due_at, generation, after_expired,
    state, reason, available_at, found_at, changed_at, tick_id, fingerprint)
values (:rule, :c0, :c1, :c2, :c3, :c4, :c5, :c6, :c7,
        case when :c8 is null then 'ready' else 'dead' end, :c8, :now, :now, :now, :tick_id, :fingerprint)
on conflict (rule, hold_key, digest) do nothing

-- name: rebuild
-- Purpose: give claimed operations the identity, fence and due that another mapping reads.
-- Differs: one row an execution (executemany).
-- Caller: adapters.sql.operations, once a batch with operations of another mapping
-- Index: the primary key
update {s}operation
set tenant = :c1, digest = :c2, identity = :c3, guard = :c4, due_at = :c5,
    fingerprint = :fingerprint, changed_at = :now
where id = :c0

-- name: renumber
-- Purpose: give operations just written the generation that their predecessors leave them.
-- Differs: one row an execution (executemany).
-- Caller: adapters.sql.operations, once a scanned batch with holds that are due again
-- Index: operation_identity
update {s}operation
set generation = :c2, after_expired = :c3,
    state = case when :c4 is null then state else 'dead' end, reason = coalesce(:c4, reason)
where rule = :rule and hold_key = :c0 and digest = :c1 and generation < :c2
  and state in ('ready', 'dead')

-- name: past_records
-- Purpose: count earlier generations of the identities that a scan found.
-- Differs: the batch arrives as JSON.
-- Caller: adapters.sql.operations, once a scanned batch
-- Index: record_hold
select r.hold_key, r.digest, max(r.generation), max(r.outcome = 'expired')
from json_each(:keys) f cross join {s}record r
where r.rule = :rule and r.hold_key = f.value and r.finished_at >= :since
  and r.digest = json_extract(:digests, '$[' || f.key || ']')
group by r.hold_key, r.digest

-- name: claim
-- Purpose: read claimable operations of holds, oldest first.
-- Differs: no row locks; the transaction is the only writer.
-- Caller: adapters.sql.operations, once a batch
-- Index: operation_claim
select o.id, o.rule, o.tenant, o.hold_key, o.digest, o.due_at, o.generation, o.after_expired,
       o.attempt, o.deferrals, o.lease_token, o.available_at, o.fingerprint
from {s}operation o
where o.rule = :rule and o.window_until is null and o.state in ('ready', 'retrying', 'deferred')
  and o.available_at >= :floor and o.available_at <= :now
order by o.available_at, o.id limit :limit

-- name: still_ready
-- Purpose: read named operations as far as they are claimable, to name them again.
-- Differs: the batch arrives as JSON.
-- Caller: adapters.sql.operations, the dispatcher
-- Index: the primary key; the plus keeps the instant from choosing another
select o.id, o.rule, o.digest, o.hold_key, o.due_at, o.available_at, o.attempt + 1
from {s}operation o
where o.id in (select value from json_each(:ids)) and o.window_until is null
  and +o.state in ('ready', 'retrying', 'deferred') and +o.available_at <= :now
order by o.available_at, o.id

-- name: claim_these
-- Purpose: read named operations as far as they are still claimable, or leased under the token.
-- Differs: no row locks; the transaction is the only writer.
-- Caller: adapters.sql.operations, while a batch is bisected and under a lease
-- Index: the primary key
select o.id, o.rule, o.tenant, o.hold_key, o.digest, o.due_at, o.generation, o.after_expired,
       o.attempt, o.deferrals, o.lease_token, o.available_at, o.fingerprint
from {s}operation o
where o.id in (select value from json_each(:ids))
  and ((o.state in ('ready', 'retrying', 'deferred') and o.available_at <= :now
        and (o.window_until is null or :with_windows))
       or (o.state = 'leased' and o.lease_token = :lease_token))

-- name: still_leased
-- Purpose: read named operations as far as they are still leased under the token.
-- Differs: no row locks; the transaction is the only writer.
-- Caller: adapters.sql.operations, before customer code runs under a lease
-- Index: the primary key
select o.id from {s}operation o
where o.id in (select value from json_each(:ids)) and o.state = 'leased'
  and o.lease_token = :lease_token

-- name: next_lease_token
-- Purpose: draw a fencing token, larger than any drawn before.
-- Differs: a counter row, since SQLite has no sequences.
-- Caller: adapters.sql.operations, once a lease
-- Index: none
update {s}lease_token set last = last + 1 returning last

-- name: lease_these
-- Purpose: claim beyond this transaction; an attempt is counted before customer code runs.
-- Differs: the batch arrives as JSON.
-- Caller: adapters.sql.operations, once a leased batch
-- Index: the primary key
update {s}operation
set state = 'leased', attempt = attempt + 1, leased_until = :until, lease_token = :lease_token,
    changed_at = :now
where id in (select value from json_each(:ids)) and state in ('ready', 'retrying', 'deferred')

-- name: put_off
-- Purpose: defer an operation without spending an attempt; one that a lease counted is given back.
-- Differs: one row an execution (executemany).
-- Caller: adapters.sql.operations, once a batch with deferred rows
-- Index: the primary key
update {s}operation
set state = 'deferred', reason = :c1, available_at = :c2, deferrals = :c3,
    attempt = attempt - (state = 'leased'), leased_until = null, changed_at = :now
where id = :c0

-- name: add_tallies
-- Purpose: write the counts of one releasing transaction.
-- Differs: the rows arrive as JSON, and RETURNING has no order: ids rise in the order of writing.
-- Caller: adapters.sql.operations, once a batch
-- Index: none
insert into {s}tally (
    rule, tenant, at, expired_count, skipped, lag_counts, lag_max_seconds, redelivery_count)
select json_extract(t.value, '$[0]'), json_extract(t.value, '$[1]'), :now,
       json_extract(t.value, '$[2]'), json_extract(t.value, '$[3]'), json_extract(t.value, '$[4]'),
       json_extract(t.value, '$[5]'), json_extract(t.value, '$[6]')
from json_each(:rows) t order by t.key
returning id

-- name: record_skipped
-- Purpose: write the record of a skipped operation.
-- Differs: one row an execution, and the operation goes in a statement of its own (no DML in CTE).
-- Caller: adapters.sql.operations, once a batch with skips
-- Index: the primary key
insert into {s}record (
    operation_id, rule, tenant, hold_key, digest, generation, due_at, outcome, reason, attempt,
    tick_id, tally_id, found_at, finished_at)
select o.id, o.rule, o.tenant, o.hold_key, o.digest, o.generation, o.due_at, 'skipped', :c2,
       o.attempt + (o.state <> 'leased'), o.tick_id, :c1, o.found_at, :now
from {s}operation o where o.id = :c0

-- name: tell_skipped
-- Purpose: write the event of an operation that is about to end as skipped.
-- Differs: one row an execution.
-- Caller: adapters.sql.operations, once a batch with skips, where the rule asks for it
-- Index: the primary key
insert into {s}outbox (
    type, operation_id, rule, tenant, hold_key, digest, generation, due_at, at, tokens, carry, state)
select 'hold.skipped.v1', o.id, o.rule, o.tenant, o.hold_key, o.digest, o.generation, o.due_at,
       :now, '{}', json_object('reason', :c1),
       case when exists (select 1 from {s}target where active = 1)
            then 'pending' else 'kept' end
from {s}operation o where o.id = :c0

-- name: lapsed
-- Purpose: read leases that ended, oldest first.
-- Differs: no row locks; the transaction is the only writer.
-- Caller: adapters.sql.operations, once a sweep
-- Index: operation_leased_until
select o.id, o.rule, o.tenant, o.hold_key, o.digest, o.due_at, o.generation, o.after_expired,
       o.attempt, o.deferrals, o.lease_token, o.available_at, o.fingerprint
from {s}operation o
where o.state = 'leased' and o.leased_until < :now
order by o.leased_until limit :limit

-- name: return_lapsed
-- Purpose: make operations of ended leases ready again; the attempt stays counted.
-- Differs: the batch arrives as JSON.
-- Caller: adapters.sql.operations, once a sweep
-- Index: the primary key
update {s}operation
set state = 'ready', available_at = :now, leased_until = null, changed_at = :now,
    reason = 'lease ended'
where id in (select value from json_each(:ids)) and state = 'leased' and leased_until < :now

-- name: note_attempts
-- Purpose: keep one row for each failed attempt of a batch.
-- Differs: one row an execution (executemany).
-- Caller: adapters.sql.operations, when attempts end without a release
-- Index: none
insert into {s}attempt (
    operation_id, attempt, failure_class, failure_code, failure_message, failed_at, lease_token)
values (:c0, :c1, :failure_class, :failure_code, :failure_message, :now, :c2)

-- name: bury
-- Purpose: make claimed operations dead letters.
-- Differs: the batch arrives as JSON.
-- Caller: adapters.sql.operations
-- Index: the primary key
update {s}operation
set state = 'dead', reason = :reason, failure_class = :failure_class,
    failure_code = :failure_code, failure_message = :failure_message, leased_until = null,
    changed_at = :now
where id in (select value from json_each(:ids)) and state not in ('dead', 'discarded')

-- name: open_of_rule
-- Purpose: page through operations in review, in id order.
-- Differs: only in the alias that PostgreSQL wants.
-- Caller: adapters.sql.reviews, the sweep and batch reviews
-- Index: operation_review
select o.id from {s}operation o
where o.rule = :rule and o.state in ('dead', 'discarded') and o.id > :after_id
order by o.id limit :limit

-- name: requeue
-- Purpose: give dead or discarded operations a fresh count of attempts; the history stays.
-- Differs: the batch arrives as JSON.
-- Caller: adapters.sql.reviews
-- Index: the primary key
update {s}operation
set state = 'ready', reason = 'requeued', attempt = 0, deferrals = 0, available_at = :now,
    after_expired = 0, changed_at = :now
where id in (select value from json_each(:ids)) and state in ('dead', 'discarded')
  and due_at is not null
returning id

-- name: discard
-- Purpose: set dead operations aside; they stay open, and visible.
-- Differs: the batch arrives as JSON.
-- Caller: adapters.sql.reviews
-- Index: the primary key
update {s}operation set state = 'discarded', reason = :reason, changed_at = :now
where id in (select value from json_each(:ids)) and state = 'dead'
returning id

-- name: close
-- Purpose: write the records of operations in review whose hold needs nothing any more.
-- Differs: the operations go in a statement of their own (no DML in CTE).
-- Caller: adapters.sql.reviews, the sweep
-- Index: the primary key
insert into {s}record (
    operation_id, rule, tenant, hold_key, digest, generation, due_at, outcome, reason, attempt,
    tick_id, tally_id, found_at, finished_at)
select o.id, o.rule, o.tenant, o.hold_key, o.digest, o.generation, o.due_at, 'closed', :reason,
       o.attempt, o.tick_id, null, o.found_at, :now
from {s}operation o
where o.id in (select value from json_each(:ids)) and o.state in ('dead', 'discarded')

-- name: remove_operations
-- Purpose: take operations out of the open ledger, after their records were written.
-- Differs: PostgreSQL does it in the statement that writes the records.
-- Caller: adapters.sql.operations, adapters.sql.holds, adapters.sql.reviews
-- Index: the primary key
delete from {s}operation where id in (select value from json_each(:ids))

-- name: read_in_review
-- Purpose: read named operations as far as they are in review.
-- Differs: the batch arrives as JSON.
-- Caller: adapters.sql.reviews
-- Index: the primary key
select id, rule, tenant, hold_key, digest, due_at, generation, state, reason, attempt,
       failure_class, failure_code, failure_message, found_at, changed_at, fingerprint,
       window_until is not null
from {s}operation
where id in (select value from json_each(:ids)) and state in ('dead', 'discarded')
order by id
