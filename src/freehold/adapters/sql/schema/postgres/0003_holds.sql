-- Tenants, units and holds of our own, for those without a table.

create table {s}tenant (
    id text primary key,
    name text not null,
    zone text,
    report_hour integer,
    recipients json not null default '[]',
    locale text,
    active boolean not null default true,
    created_at timestamptz not null,
    changed_at timestamptz not null,
    constraint tenant_id_said check (id <> ''),
    constraint tenant_report_hour check (report_hour between 0 and 23)
);

create table {s}unit (
    id bigint generated always as identity primary key,
    tenant text not null references {s}tenant (id),
    name text not null,
    active boolean not null default true,
    created_at timestamptz not null,
    changed_at timestamptz not null,
    constraint unit_name_said check (name <> ''),
    constraint unit_named unique (tenant, name),
    constraint unit_of_tenant unique (tenant, id)
);

create table {s}hold (
    id bigint generated always as identity primary key,
    tenant text not null,
    unit_id bigint not null,
    status text not null,
    starts_at timestamptz,
    ends_at timestamptz,
    hold_until timestamptz not null,
    hold_token uuid not null,
    reference text,
    created_at timestamptz not null,
    changed_at timestamptz not null,
    expired_at timestamptz,
    constraint hold_unit foreign key (tenant, unit_id) references {s}unit (tenant, id),
    constraint hold_status check (status in ('held', 'confirmed', 'cancelled', 'expired')),
    constraint hold_stay check (
        (starts_at is null and ends_at is null)
        or (starts_at is not null and ends_at is not null and starts_at < ends_at
            and isfinite(starts_at) and isfinite(ends_at))),
    constraint hold_until_finite check (isfinite(hold_until)),
    constraint hold_overlap exclude using gist (
        int8range(unit_id, unit_id, '[]') with &&, tstzrange(starts_at, ends_at, '[)') with &&)
        where (status in ('held', 'confirmed'))
);
create index hold_due on {s}hold (hold_until, id) where status = 'held';
create index hold_tenant_due on {s}hold (tenant, hold_until, id) where status = 'held';
create unique index hold_granting on {s}hold (hold_token);
create unique index hold_reference on {s}hold (tenant, reference) where reference is not null;
create index hold_of_tenant on {s}hold (tenant, status, id);
create index hold_of_unit on {s}hold (unit_id, status, id);
