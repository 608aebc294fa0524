-- Differs from PostgreSQL: instants are UTC text; records are removed in the order of their rowids,
-- which is the order of finishing, so that no index need serve it.
-- What is kept for how long; and in tallies the longest lag exactly, and attempts beyond the first.

alter table {s}tally add column lag_max_seconds real;
alter table {s}tally add column redelivery_count integer not null default 0;

create index {s}attempt_failed_at on {s}attempt (failed_at, operation_id);

create table {s}retention (
    subject text primary key,
    read_at text,
    read_before text,
    pruned_before text
) strict;

create table {s}forgotten (
    rule text primary key,
    before text not null
) strict;

create table {s}prune_round (
    only_one integer primary key check (only_one = 1),
    touched_at text not null,
    finished_at text
) strict;

create view {s}unreported_tally as select id from {s}tally where false;
