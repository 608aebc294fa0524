-- name: sees_rows
-- Purpose: see whether this role is shown any row.
-- Caller: adapters.sql.inspection, doctor
-- Index: none; stops at the first row
select exists (select 1 from {table} h)

-- name: count_empty
-- Purpose: count held rows whose due is NULL or zero, but never more than a limit.
-- Caller: adapters.sql.inspection, doctor and plan
-- Index: the customer's (partial) index on the due column
select count(*) from (select 1 from {table} h where {held} and {due_empty} limit :limit) c

-- name: sample_dues
-- Purpose: read due values of held rows, to judge their spelling row by row.
-- Caller: adapters.sql.inspection, doctor
-- Index: none; bounded by the limit
select {due_text} from {table} h where {held} and {due} is not null limit :limit

-- name: first_due
-- Purpose: read the oldest due value that is due.
-- Caller: adapters.sql.inspection, plan
-- Index: the customer's (partial) index on the due column
select {due_text} from {table} h where {held} and {due_range} and {is_asked}
order by {due} limit 1

-- name: due_by_tenant
-- Purpose: count due rows by tenant, oldest first and never more than a limit; the largest ones.
-- Caller: adapters.sql.inspection, plan
-- Index: the customer's (partial) index on the due column
select t.tenant, t.due_count, count(*) over (), sum(t.due_count) over ()
from (
    select d.tenant, count(*) as due_count
    from (
        select {tenant} as tenant from {table} h
        where {held} and {due_range} and {is_asked} order by {due} limit :limit) d
    group by d.tenant) t
order by t.due_count desc, t.tenant limit :top

-- name: page_of_dues
-- Purpose: read tenant and due of held rows in key order, where due cannot be compared bare.
-- Caller: adapters.sql.inspection, plan
-- Index: the customer's primary key
select {key_text}, {tenant}, {due_text} from {table} h
where {held} and {due} is not null and {after_page} order by {key_order} limit :limit
