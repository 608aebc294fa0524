-- name: add_tenants
-- Purpose: write tenants that are not there yet; return which.
-- Differs: the batch arrives as JSON.
-- Caller: adapters.sql.inventory, once a batch
-- Index: the primary key
insert into {s}tenant (
    id, name, zone, report_hour, recipients, locale, active, created_at, changed_at)
select value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6,
       :now, :now
from json_each(:rows) where true
on conflict (id) do nothing
returning id

-- name: change_tenants
-- Purpose: write tenants that are there with other values; return which.
-- Differs: the batch arrives as JSON.
-- Caller: adapters.sql.inventory, once a batch
-- Index: the primary key
update {s}tenant
set name = n.name, zone = n.zone, report_hour = n.report_hour, recipients = n.recipients,
    locale = n.locale, active = n.active, changed_at = :now
from (select value ->> 0 as id, value ->> 1 as name, value ->> 2 as zone, value ->> 3 as report_hour,
             value ->> 4 as recipients, value ->> 5 as locale, value ->> 6 as active
      from json_each(:rows)) n
where {s}tenant.id = n.id
  and ({s}tenant.name, {s}tenant.zone, {s}tenant.report_hour, {s}tenant.recipients,
       {s}tenant.locale, {s}tenant.active)
      is not (n.name, n.zone, n.report_hour, n.recipients, n.locale, n.active)
returning id

-- name: read_tenants
-- Purpose: read named tenants.
-- Differs: the batch arrives as JSON.
-- Caller: adapters.sql.inventory
-- Index: the primary key
select {tenant} from {s}tenant where id in (select value from json_each(:ids)) order by id

-- name: lock_tenants
-- Purpose: read named tenants.
-- Differs: no row locks; the transaction is the only writer.
-- Caller: adapters.sql.inventory, before a person changes some fields of one
-- Index: the primary key
select {tenant} from {s}tenant where id in (select value from json_each(:ids)) order by id

-- name: add_units
-- Purpose: write units that are not there yet, of tenants that are; return which.
-- Differs: the batch arrives as JSON.
-- Caller: adapters.sql.inventory, once a batch
-- Index: unit_named
insert into {s}unit (tenant, name, active, created_at, changed_at)
select t.id, n.value ->> 1, n.value ->> 2, :now, :now
from json_each(:rows) n cross join {s}tenant t on t.id = n.value ->> 0 where true
on conflict (tenant, name) do nothing
returning tenant, name

-- name: change_units
-- Purpose: write units that are there with other values; return which.
-- Differs: the batch arrives as JSON.
-- Caller: adapters.sql.inventory, once a batch
-- Index: the primary key
update {s}unit set name = n.name, active = n.active, changed_at = :now
from (select value ->> 0 as id, value ->> 1 as tenant, value ->> 2 as name, value ->> 3 as active
      from json_each(:rows)) n
where {s}unit.id = n.id and {s}unit.tenant = n.tenant
  and ({s}unit.name, {s}unit.active) is not (n.name, n.active)
returning id

-- name: read_units
-- Purpose: read units by id.
-- Differs: the batch arrives as JSON.
-- Caller: adapters.sql.inventory
-- Index: the primary key
select {unit} from {s}unit where id in (select value from json_each(:ids)) order by id

-- name: read_units_named
-- Purpose: read a tenant's units by name.
-- Differs: the batch arrives as JSON; the + keeps from an order that would read all of his units.
-- Caller: adapters.sql.inventory
-- Index: unit_named
select {unit} from {s}unit
where tenant = :tenant and name in (select value from json_each(:names)) order by +id

-- name: place_own_hold
-- Purpose: write a held hold, unless something is in its way; never an error of the transaction.
-- Differs: looks for an overlap first, as the trigger does, which would refuse it with an error.
-- Caller: adapters.sql.own_holds, once a granting
-- Index: hold_stays, hold_reference; the primary keys of unit and tenant
insert into {s}hold (
    tenant, unit_id, status, starts_at, ends_at, hold_until, hold_token, reference, created_at,
    changed_at)
select u.tenant, u.id, 'held', :starts_at, :ends_at, :hold_until, :token, :reference, :now, :now
from {s}unit u cross join {s}tenant t on t.id = u.tenant
where u.id = :unit_id and u.tenant = :tenant and u.active and t.active
  and not exists (
    select 1 from (
        select o.starts_at from {s}hold o
        where o.unit_id = u.id and o.status in ('held', 'confirmed')
          and ifnull(o.ends_at, '~') > ifnull(:starts_at, '')
        order by ifnull(o.ends_at, '~') limit 1) f
    where ifnull(f.starts_at, '') < ifnull(:ends_at, '~'))
on conflict do nothing
returning {hold}

-- name: own_holds_in_way
-- Purpose: read held and confirmed holds of a unit that overlap a stay.
-- Differs: the stays that end within the asked one, and the first that ends behind it.
-- Caller: adapters.sql.own_holds, after a granting that found something in its way
-- Index: hold_stays
select {hold} from {s}hold
where id in (
    select o.id from {s}hold o
    where o.unit_id = :unit_id and o.status in ('held', 'confirmed')
      and ifnull(o.ends_at, '~') > ifnull(:starts_at, '')
      and ifnull(o.ends_at, '~') <= ifnull(:ends_at, '~')
    union all
    select f.id from (
        select o.id, o.starts_at from {s}hold o
        where o.unit_id = :unit_id and o.status in ('held', 'confirmed')
          and ifnull(o.ends_at, '~') > ifnull(:ends_at, '~')
        order by ifnull(o.ends_at, '~') limit 1) f
    where ifnull(f.starts_at, '') < ifnull(:ends_at, '~'))
order by ifnull(ends_at, '~'), id limit :limit

-- name: lock_own_holds
-- Purpose: read holds in id order.
-- Differs: no row locks; the transaction is the only writer.
-- Caller: adapters.sql.own_holds, before a granting releases what is in its way
-- Index: the primary key
select {hold} from {s}hold where id in (select value from json_each(:ids)) order by id

-- name: tell_own_hold
-- Purpose: write the event of a change that is no release.
-- Differs: the id was drawn before, since there is no sequence, and the ledger's spelling of instants
-- comes as a parameter.
-- Caller: adapters.sql.own_holds, once a change
-- Index: the primary key
insert into {s}outbox (
    type, operation_id, rule, tenant, hold_key, digest, generation, due_at, at, tokens, carry, state)
select :type, :operation_id, :rule, tenant, cast(id as text), :digest, 1, :due_at, :now,
       json_object('hold_token', hold_token),
       json_object('unit_id', cast(unit_id as text), 'reference', reference,
                   'starts_at', starts_at, 'ends_at', ends_at),
       case when exists (select 1 from {s}target where active = 1)
            then 'pending' else 'kept' end
from {s}hold where id = :id

-- name: tokens_held
-- Purpose: tell which tokens still hold.
-- Differs: the batch arrives as JSON.
-- Caller: adapters.sql.own_holds
-- Index: hold_granting
select hold_token || '' from {s}hold
where hold_token in (select value from json_each(:tokens)) and status = 'held' and hold_until > :now

-- name: read_own_holds
-- Purpose: read holds by id.
-- Differs: the batch arrives as JSON.
-- Caller: adapters.sql.own_holds
-- Index: the primary key
select {hold} from {s}hold where id in (select value from json_each(:ids)) order by id

-- name: read_granted
-- Purpose: read holds by token.
-- Differs: the batch arrives as JSON.
-- Caller: adapters.sql.own_holds
-- Index: hold_granting
select {hold} from {s}hold
where hold_token in (select value from json_each(:tokens)) order by id

-- name: read_referenced
-- Purpose: read a tenant's holds by reference.
-- Differs: the batch arrives as JSON.
-- Caller: adapters.sql.own_holds
-- Index: hold_reference
select {hold} from {s}hold
where tenant = :tenant and reference in (select value from json_each(:references)) order by id

-- name: judge_imports
-- Purpose: find the unit of each row of an import, and the hold that its reference names already.
-- Differs: the batch arrives as JSON.
-- Caller: adapters.sql.own_holds, twice a batch
-- Index: unit_named, hold_reference
select n.key, u.id, h.unit_id, h.starts_at, h.ends_at
from json_each(:rows) n
left join {s}unit u on u.tenant = n.value ->> 0 and u.name = n.value ->> 1
left join {s}hold h on h.tenant = n.value ->> 0 and h.reference = n.value ->> 2

-- name: import_own_hold
-- Purpose: write one hold that was granted elsewhere, unless something is in its way.
-- Differs: one row an execution, so that each sees the one before and tells its own fate.
-- Caller: adapters.sql.own_holds, once a batch
-- Index: hold_stays, hold_reference
insert into {s}hold (
    tenant, unit_id, status, starts_at, ends_at, hold_until, hold_token, reference, created_at,
    changed_at)
select :c0, :c1, :c2, :c3, :c4, :c5, :c6, :c7, :now, :now
where :c2 not in ('held', 'confirmed') or not exists (
    select 1 from (
        select o.starts_at from {s}hold o
        where o.unit_id = :c1 and o.status in ('held', 'confirmed')
          and ifnull(o.ends_at, '~') > ifnull(:c3, '')
        order by ifnull(o.ends_at, '~') limit 1) f
    where ifnull(f.starts_at, '') < ifnull(:c4, '~'))
on conflict do nothing
