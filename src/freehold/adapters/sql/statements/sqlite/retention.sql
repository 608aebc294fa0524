-- name: last_of_records
-- Purpose: find the end of a page of records, in the order of finishing.
-- Differs: no partitions; rowids rise with the instants of finishing.
-- Caller: adapters.sql.retention
-- Index: the rowid
select p.place, p.finished_at from (
    select r.rowid as place, r.finished_at from {s}record r
    where r.rowid > :after order by r.rowid limit :limit) p
order by p.place desc limit 1

-- name: rules_of_records
-- Purpose: name the rules of a page of records that goes.
-- Differs: no partitions.
-- Caller: adapters.sql.retention
-- Index: the rowid
select distinct r.rule from {s}record r
where r.rowid > :after and r.rowid <= :last and r.finished_at < :before

-- name: prune_records
-- Purpose: remove a page of records that are old enough.
-- Differs: no partitions.
-- Caller: adapters.sql.retention
-- Index: the rowid
delete from {s}record where rowid > :after and rowid <= :last and finished_at < :before

-- name: count_records
-- Purpose: count what would go among the oldest records.
-- Differs: no partitions.
-- Caller: adapters.sql.retention
-- Index: the rowid
select count(*) from (select r.finished_at from {s}record r order by r.rowid limit :limit) p
where p.finished_at < :before
