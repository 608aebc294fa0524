-- Rates: how fast a rule may take up what was overdue when it was attached.

create table {s}attach_rate (
    rule text primary key,
    per_second double precision not null,
    attached_at timestamptz not null,
    credited_at timestamptz not null,
    constraint attach_rate_moves check (per_second > 0)
);
