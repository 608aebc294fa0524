-- What is kept for how long; and in tallies the longest lag exactly, and attempts beyond the first.

create index attempt_failed_at on {s}attempt (failed_at, operation_id);
create index record_default_finished_at on {s}record_default (finished_at);

create table {s}retention (
    subject text primary key,
    read_at timestamptz,
    read_before timestamptz,
    pruned_before timestamptz
);

create table {s}forgotten (
    rule text primary key,
    before timestamptz not null
);

create table {s}prune_round (
    only_one integer primary key check (only_one = 1),
    touched_at timestamptz not null,
    finished_at timestamptz
);

-- Last: every release writes to this table, and would wait while an index is made.
alter table {s}tally
    add column lag_max_seconds double precision,
    add column redelivery_count integer not null default 0;

create view {s}unreported_tally as select id from {s}tally where false;
