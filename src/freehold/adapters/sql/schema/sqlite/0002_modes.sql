-- Differs from PostgreSQL: one column a statement.
-- Windows: one operation that releases all that is due in a span; and the mapping that an operation
-- was built by.

alter table {s}operation add column window_from text;
alter table {s}operation add column window_until text;
alter table {s}operation add column fingerprint text;
create index {s}operation_window on {s}operation (rule, available_at) where window_until is not null;
