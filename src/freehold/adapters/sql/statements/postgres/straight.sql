-- name: find_named
-- Purpose: read those of the named rows that are held and due, with a mark on those that are open.
-- Caller: adapters.sql.straight, before a grant that releases what is in its way
-- Index: the customer's primary key; operation_identity for the mark
select {key_text} as hold_key, {due_text} as due, {identity} as identity, {guard} as guard,
       {tenant} as tenant,
       exists (select 1 from {s}operation p
               where p.rule = :rule and p.hold_key = {key_text}
                 and p.identity = any (array[{identity}])) as is_open
from unnest(:keys::text[]) as o (hold_key) join {table} h on {key_match}
where {is_held} and coalesce({overdue}, false)

-- name: lock_found
-- Purpose: lock found rows in key order and compare the whole fence; what matches draws an id.
-- Caller: adapters.sql.straight, once a batch
-- Index: the customer's primary key; rows locked by the host are passed over, never waited for
select o.place - 1, h.matches, case when h.matches then nextval('{s}operation_id_seq') end
from (select * from unnest(:c0::text[], :c1::text[], :c2::text[]) with ordinality
          as f (hold_key, identity, guard, place)
      order by {key_order_of_operation}) o
cross join lateral (
    select {is_held} and {identity} = o.identity and {guard} = o.guard as matches
    from {table} h where {key_match} for {lock_strength} of h skip locked) h

-- name: named_there
-- Purpose: tell rows that the host has locked from rows that are gone.
-- Caller: adapters.sql.straight, for the rows that lock_found left out
-- Index: the customer's primary key
select o.hold_key from unnest(:keys::text[]) as o (hold_key)
where exists (select 1 from {table} h where {key_match})

-- name: release_found
-- Purpose: the compare-and-set with its event and its record, without an operation row.
-- Caller: adapters.sql.straight, once a batch, on rows that lock_found matched in this transaction
-- Index: the customer's primary key
with chosen as materialized (
    select o.*, {before_image} as before_image, {tokens} as tokens, {carry} as carry
    from unnest(:c0::bigint[], :c1::bigint[], :c2::text[], :c3::text[], :c4::text[], :c5::uuid[],
                :c6::timestamptz[], :c7::text[])
         as o (id, tally_id, hold_key, identity, guard, digest, due_at, tenant)
    join {table} h on {key_match}),
changed as ({change} returning o.*),
noted as (
    insert into {s}record (
        operation_id, rule, tenant, hold_key, digest, generation, due_at, outcome, reason, attempt,
        before_image, tick_id, tally_id, found_at, finished_at)
    select c.id, :rule, c.tenant, c.hold_key, c.digest, 1, c.due_at, 'expired', :reason, 1,
           c.before_image, :tick_id, c.tally_id, :now, :now
    from changed c),
told as (
    insert into {s}outbox (
        type, operation_id, rule, tenant, hold_key, digest, generation, due_at, at, tokens, carry,
        state)
    select 'hold.expired.v1', c.id, :rule, c.tenant, c.hold_key, c.digest, 1, c.due_at, :now,
           c.tokens, c.carry,
           case when exists (select 1 from {s}target where active)
                then 'pending' else 'kept' end
    from changed c)
select count(*) from changed

-- name: release_bulk
-- Purpose: take a stretch of due rows in one statement: find, lock, change, and write tallies,
-- records and events. A row is taken by its place, and only if the version that is locked is the one
-- that this statement's snapshot sees. So nobody changed it in between, and whoever released it
-- before has committed a record that the snapshot sees as well.
-- Caller: adapters.sql.straight, for a page of mode direct or of a window, after one that was plain
-- Index: the customer's (partial) index on the due column, operation_identity, record_hold; the
-- offsets keep the look-ups row by row, and the comparison of places behind the lock. Rows and
-- tallies meet in a full join, though each has its match, since no nested loop can serve that.
with page as materialized (
    select h.ctid as place, h.tableoid as part, row_number() over (order by {scan_order}) as number,
           {key_text} as hold_key, {due_text} as due, {due_instant} as due_at,
           {identity} as identity, {tenant} as tenant, {before_image} as before_image,
           {tokens} as tokens, {carry} as carry
    from {table} h
    where {held} and {due_range} and {after_cursor}
    order by {scan_order} limit :limit),
named as materialized (
    select p.*, {digest} as digest from page p
    where p.due_at > :later_than and p.due_at <= :until
      and octet_length(convert_to(p.hold_key, 'UTF8')) <= :key_bytes_max),
free as materialized (
    select n.*, nextval('{s}operation_id_seq') as id,
           extract(epoch from :now::timestamptz - n.due_at)::float8 as lag
    from named n cross join lateral (
        select h.ctid as place from {table} h where h.ctid = n.place and h.tableoid = n.part
        offset 0 for {lock_strength} of h skip locked) l
    where l.place = n.place
      and not exists (
          select 1 from {s}operation p
          where p.rule = :rule and p.hold_key = n.hold_key and p.digest = n.digest offset 0)
      and not exists (
          select 1 from {s}record r
          where r.rule = :rule and r.hold_key = n.hold_key and r.digest = n.digest
            and r.finished_at >= :since and r.finished_at < :now + interval '1 day' offset 0)),
changed as ({change_in_place} returning o.*),
tallied as (
    insert into {s}tally (
        rule, tenant, at, expired_count, skipped, lag_counts, lag_max_seconds, redelivery_count)
    select :rule, c.tenant, :now, count(*), '{}', json_build_array({lag_counts}), max(c.lag), 0
    from changed c group by c.tenant
    returning id, tenant),
noted as (
    insert into {s}record (
        operation_id, rule, tenant, hold_key, digest, generation, due_at, outcome, reason, attempt,
        before_image, tick_id, tally_id, found_at, finished_at)
    select c.id, :rule, c.tenant, c.hold_key, c.digest, 1, c.due_at, 'expired', :reason, 1,
           c.before_image, :tick_id, t.id, :now, :now
    from changed c full join tallied t
         on coalesce(t.tenant, '') = coalesce(c.tenant, '')
        and (t.tenant is null) = (c.tenant is null)),
told as (
    insert into {s}outbox (
        type, operation_id, rule, tenant, hold_key, digest, generation, due_at, at, tokens, carry,
        state)
    select 'hold.expired.v1', c.id, :rule, c.tenant, c.hold_key, c.digest, 1, c.due_at, :now,
           c.tokens, c.carry,
           case when exists (select 1 from {s}target where active)
                then 'pending' else 'kept' end
    from changed c)
select c.id, c.tenant, c.hold_key, c.digest, c.due_at,
       case when c.number = :limit then c.due end, (
           select relhastriggers or relhasrules from pg_class where oid = to_regclass(:quoted))
from changed c

-- name: digest_expression
-- Purpose: the part of release_bulk that names a granting, as domain.names.digest does.
-- Caller: adapters.sql.straight, set into release_bulk
-- Index: none
encode(substring(sha256(convert_to(array_to_json(
    array[:rule, p.hold_key, p.identity]::text[])::text, 'UTF8')) for 16), 'hex')::uuid

-- name: change_in_place_by_update
-- Purpose: the part of release_bulk that writes the customer's columns.
-- Caller: adapters.sql.straight, set into release_bulk
-- Index: none; by the place of a row that release_bulk has locked
update {table} h set {assignments} from free o
where h.ctid = o.place and h.tableoid = o.part and {is_held}

-- name: change_in_place_by_delete
-- Purpose: the part of release_bulk that deletes the customer's row.
-- Caller: adapters.sql.straight, set into release_bulk
-- Index: none; by the place of a row that release_bulk has locked
delete from {table} h using free o
where h.ctid = o.place and h.tableoid = o.part and {is_held}

-- name: companion_values_of
-- Purpose: read the columns that a companion is given, before the change.
-- Caller: adapters.sql.straight, once a batch of a rule with companions
-- Index: the customer's primary key
select o.hold_key, {companion_image} from unnest(:keys::text[]) as o (hold_key)
join {table} h on {key_match}
