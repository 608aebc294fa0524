-- Differs from PostgreSQL: instants are UTC text of one width.
-- Rates: how fast a rule may take up what was overdue when it was attached.

create table {s}attach_rate (
    rule text primary key not null,
    per_second real not null,
    attached_at text not null,
    credited_at text not null,
    constraint attach_rate_moves check (per_second > 0)
) strict;
