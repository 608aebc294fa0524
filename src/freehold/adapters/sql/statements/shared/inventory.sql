-- name: find_own_tenants
-- Purpose: page through tenants in id order.
-- Caller: adapters.sql.inventory
-- Index: the primary key
select {tenant} from {s}tenant where id > :after_id order by id limit :limit

-- name: find_units
-- Purpose: page through all units in id order.
-- Caller: adapters.sql.inventory
-- Index: the primary key
select {unit} from {s}unit where id > :after_id order by id limit :limit

-- name: find_units_of_tenant
-- Purpose: page through a tenant's units in id order.
-- Caller: adapters.sql.inventory
-- Index: unit_of_tenant
select {unit} from {s}unit where tenant = :tenant and id > :after_id order by id limit :limit

-- name: renew_own_hold
-- Purpose: give a held hold that is not due a new end and a new token.
-- Caller: adapters.sql.own_holds
-- Index: hold_granting
update {s}hold set hold_until = :hold_until, hold_token = :new_token, changed_at = :now
where hold_token = :token and status = 'held' and hold_until > :now
returning {hold}

-- name: confirm_own_hold
-- Purpose: confirm a held hold that is not due; what expired is never flipped back.
-- Caller: adapters.sql.own_holds
-- Index: hold_granting
update {s}hold set status = 'confirmed', changed_at = :now
where hold_token = :token and status = 'held' and hold_until > :now
returning {hold}

-- name: cancel_own_hold
-- Purpose: cancel a held or confirmed hold.
-- Caller: adapters.sql.own_holds
-- Index: hold_granting
update {s}hold set status = 'cancelled', changed_at = :now
where hold_token = :token and status in ('held', 'confirmed')
returning {hold}

-- name: find_own_holds
-- Purpose: page through all holds in id order.
-- Caller: adapters.sql.own_holds
-- Index: the primary key
select {hold} from {s}hold where id > :after_id order by id limit :limit

-- name: find_own_holds_of_tenant
-- Purpose: page through a tenant's holds of one status in id order.
-- Caller: adapters.sql.own_holds, once a status
-- Index: hold_of_tenant
select {hold} from {s}hold
where tenant = :tenant and status = :status and id > :after_id order by id limit :limit

-- name: find_own_holds_of_unit
-- Purpose: page through a unit's holds of one status in id order.
-- Caller: adapters.sql.own_holds, once a status
-- Index: hold_of_unit
select {hold} from {s}hold
where unit_id = :unit_id and status = :status and id > :after_id order by id limit :limit
