-- name: applied_migrations
-- Purpose: read which migrations were applied.
-- Caller: adapters.sql.migrations
-- Index: the primary key
select version, name, checksum from {s}migration order by version

-- name: find_migration
-- Purpose: see whether another process applied it meanwhile.
-- Caller: adapters.sql.migrations
-- Index: the primary key
select 1 from {s}migration where version = :version

-- name: note_migration
-- Purpose: note an applied migration, in its own transaction.
-- Caller: adapters.sql.migrations
-- Index: none
insert into {s}migration (version, name, checksum, applied_at)
values (:version, :name, :checksum, :now)
