-- name: add_tenants
-- Purpose: write tenants that are not there yet; return which.
-- Caller: adapters.sql.inventory, once a batch
-- Index: the primary key
insert into {s}tenant (
    id, name, zone, report_hour, recipients, locale, active, created_at, changed_at)
select n.id, n.name, n.zone, n.report_hour, n.recipients, n.locale, n.active, :now, :now
from unnest(:c0::text[], :c1::text[], :c2::text[], :c3::int[], :c4::json[], :c5::text[],
            :c6::boolean[]) with ordinality
     as n (id, name, zone, report_hour, recipients, locale, active, place)
order by n.place
on conflict (id) do nothing
returning id

-- name: change_tenants
-- Purpose: write tenants that are there with other values; return which.
-- Caller: adapters.sql.inventory, once a batch
-- Index: the primary key
update {s}tenant t
set name = n.name, zone = n.zone, report_hour = n.report_hour, recipients = n.recipients,
    locale = n.locale, active = n.active, changed_at = :now
from unnest(:c0::text[], :c1::text[], :c2::text[], :c3::int[], :c4::json[], :c5::text[],
            :c6::boolean[])
     as n (id, name, zone, report_hour, recipients, locale, active)
where t.id = n.id
  and (t.name, t.zone, t.report_hour, t.recipients::text, t.locale, t.active)
      is distinct from (n.name, n.zone, n.report_hour, n.recipients::text, n.locale, n.active)
returning t.id

-- name: read_tenants
-- Purpose: read named tenants.
-- Caller: adapters.sql.inventory
-- Index: the primary key
select {tenant} from {s}tenant where id = any (:ids::text[]) order by id

-- name: lock_tenants
-- Purpose: read named tenants, and keep others from changing them; in id order, against deadlocks.
-- Caller: adapters.sql.inventory, before a person changes some fields of one
-- Index: the primary key
select {tenant} from {s}tenant where id = any (:ids::text[]) order by id for no key update

-- name: add_units
-- Purpose: write units that are not there yet, of tenants that are; return which.
-- Caller: adapters.sql.inventory, once a batch
-- Index: unit_named
insert into {s}unit (tenant, name, active, created_at, changed_at)
select t.id, n.name, n.active, :now, :now
from unnest(:c0::text[], :c1::text[], :c2::boolean[]) with ordinality
     as n (tenant, name, active, place)
join {s}tenant t on t.id = n.tenant
order by n.place
on conflict (tenant, name) do nothing
returning tenant, name

-- name: change_units
-- Purpose: write units that are there with other values; return which.
-- Caller: adapters.sql.inventory, once a batch
-- Index: the primary key
update {s}unit u set name = n.name, active = n.active, changed_at = :now
from unnest(:c0::bigint[], :c1::text[], :c2::text[], :c3::boolean[])
     as n (id, tenant, name, active)
where u.id = n.id and u.tenant = n.tenant and (u.name, u.active) <> (n.name, n.active)
returning u.id

-- name: read_units
-- Purpose: read units by id.
-- Caller: adapters.sql.inventory
-- Index: the primary key
select {unit} from {s}unit where id = any (:ids::bigint[]) order by id

-- name: read_units_named
-- Purpose: read a tenant's units by name.
-- Differs: name by name, or a plan of old statistics reads all of his units for a few names.
-- Caller: adapters.sql.inventory
-- Index: unit_named
select u.*
from (select distinct unnest(:names::text[])) n (called)
cross join lateral (
    select {unit} from {s}unit where tenant = :tenant and name = n.called offset 0) u
order by u.id

-- name: place_own_hold
-- Purpose: write a held hold, unless something is in its way; never an error of the transaction.
-- Caller: adapters.sql.own_holds, once a granting
-- Index: hold_overlap, hold_reference; the primary keys of unit and tenant
insert into {s}hold (
    tenant, unit_id, status, starts_at, ends_at, hold_until, hold_token, reference, created_at,
    changed_at)
select u.tenant, u.id, 'held', :starts_at::timestamptz, :ends_at::timestamptz,
       :hold_until::timestamptz, :token::uuid, :reference::text, :now, :now
from {s}unit u join {s}tenant t on t.id = u.tenant
where u.id = :unit_id and u.tenant = :tenant and u.active and t.active
on conflict do nothing
returning {hold}

-- name: own_holds_in_way
-- Purpose: read held and confirmed holds of a unit that overlap a stay.
-- Caller: adapters.sql.own_holds, after a granting that found something in its way
-- Index: hold_overlap
select {hold} from {s}hold
where status in ('held', 'confirmed')
  and int8range(unit_id, unit_id, '[]') && int8range(:unit_id::bigint, :unit_id::bigint, '[]')
  and tstzrange(starts_at, ends_at, '[)') && tstzrange(:starts_at::timestamptz, :ends_at::timestamptz, '[)')
order by ends_at, id limit :limit

-- name: lock_own_holds
-- Purpose: lock holds in id order, waiting for others.
-- Caller: adapters.sql.own_holds, before a granting releases what is in its way
-- Index: the primary key
select {hold} from {s}hold where id = any (:ids::bigint[]) order by id for no key update

-- name: tell_own_hold
-- Purpose: write the event of a change that is no release; its id is the next of the operations.
-- Caller: adapters.sql.own_holds, once a change
-- Index: the primary key
insert into {s}outbox (
    type, operation_id, rule, tenant, hold_key, digest, generation, due_at, at, tokens, carry, state)
select :type, nextval('{s}operation_id_seq'), :rule, tenant, id::text, :digest, 1, hold_until, :now,
       json_build_object('hold_token', hold_token::text),
       json_object(array['unit_id', 'reference', 'starts_at', 'ends_at'],
                   array[unit_id::text, reference, starts_at::text, ends_at::text]),
       case when exists (select 1 from {s}target where active)
            then 'pending' else 'kept' end
from {s}hold where id = :id

-- name: tokens_held
-- Purpose: tell which tokens still hold.
-- Caller: adapters.sql.own_holds
-- Index: hold_granting
select hold_token from {s}hold
where hold_token = any (:tokens::uuid[]) and status = 'held' and hold_until > :now

-- name: read_own_holds
-- Purpose: read holds by id.
-- Caller: adapters.sql.own_holds
-- Index: the primary key
select {hold} from {s}hold where id = any (:ids::bigint[]) order by id

-- name: read_granted
-- Purpose: read holds by token.
-- Caller: adapters.sql.own_holds
-- Index: hold_granting
select {hold} from {s}hold where hold_token = any (:tokens::uuid[]) order by id

-- name: read_referenced
-- Purpose: read a tenant's holds by reference.
-- Caller: adapters.sql.own_holds
-- Index: hold_reference
select {hold} from {s}hold where tenant = :tenant and reference = any (:references::text[]) order by id

-- name: judge_imports
-- Purpose: find the unit of each row of an import, and the hold that its reference names already.
-- Caller: adapters.sql.own_holds, twice a batch
-- Index: unit_named, hold_reference
select n.place - 1, u.id, h.unit_id, h.starts_at, h.ends_at
from unnest(:c0::text[], :c1::text[], :c2::text[]) with ordinality
     as n (tenant, unit, reference, place)
left join {s}unit u on u.tenant = n.tenant and u.name = n.unit
left join {s}hold h on h.tenant = n.tenant and h.reference = n.reference

-- name: import_own_holds
-- Purpose: write holds that were granted elsewhere, but those with something in their way.
-- Caller: adapters.sql.own_holds, once a batch
-- Index: hold_overlap, hold_reference
insert into {s}hold (
    tenant, unit_id, status, starts_at, ends_at, hold_until, hold_token, reference, created_at,
    changed_at)
select n.tenant, n.unit_id, n.status, n.starts_at, n.ends_at, n.hold_until, n.token, n.reference,
       :now, :now
from unnest(:c0::text[], :c1::bigint[], :c2::text[], :c3::timestamptz[], :c4::timestamptz[],
            :c5::timestamptz[], :c6::uuid[], :c7::text[]) with ordinality
     as n (tenant, unit_id, status, starts_at, ends_at, hold_until, token, reference, place)
order by n.place
on conflict do nothing
returning hold_token, tenant, reference
