-- Differs from PostgreSQL: instants are UTC text of one width without offset, as a due column of kind
-- naive holds them; triggers keep stays apart, since SQLite has no exclusion constraint. A stay
-- without bounds sorts before and behind every instant. Of stays that are apart the order of their
-- ends is the order of their beginnings, so that the first one that ends later tells enough.
-- Tenants, units and holds of our own, for those without a table.

create table {s}tenant (
    id text primary key not null,
    name text not null,
    zone text,
    report_hour integer,
    recipients text not null default '[]',
    locale text,
    active integer not null default 1,
    created_at text not null,
    changed_at text not null,
    constraint tenant_id_said check (id <> ''),
    constraint tenant_active check (active in (0, 1)),
    constraint tenant_report_hour check (report_hour between 0 and 23)
) strict;

create table {s}unit (
    id integer primary key autoincrement,
    tenant text not null references {s}tenant (id),
    name text not null,
    active integer not null default 1,
    created_at text not null,
    changed_at text not null,
    constraint unit_name_said check (name <> ''),
    constraint unit_active check (active in (0, 1)),
    constraint unit_named unique (tenant, name),
    constraint unit_of_tenant unique (tenant, id)
) strict;

create table {s}hold (
    id integer primary key autoincrement,
    tenant text not null,
    unit_id integer not null,
    status text not null,
    starts_at text,
    ends_at text,
    hold_until text not null,
    hold_token text not null,
    reference text,
    created_at text not null,
    changed_at text not null,
    expired_at text,
    constraint hold_unit foreign key (tenant, unit_id) references {s}unit (tenant, id),
    constraint hold_status check (status in ('held', 'confirmed', 'cancelled', 'expired')),
    constraint hold_stay check (
        (starts_at is null and ends_at is null)
        or (starts_at is not null and ends_at is not null and starts_at < ends_at)),
    constraint hold_starts_at_spelled check (
        starts_at glob '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9] [0-9][0-9]:[0-9][0-9]:[0-9][0-9].[0-9][0-9][0-9][0-9][0-9][0-9]'),
    constraint hold_ends_at_spelled check (
        ends_at glob '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9] [0-9][0-9]:[0-9][0-9]:[0-9][0-9].[0-9][0-9][0-9][0-9][0-9][0-9]'),
    constraint hold_until_spelled check (
        hold_until glob '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9] [0-9][0-9]:[0-9][0-9]:[0-9][0-9].[0-9][0-9][0-9][0-9][0-9][0-9]')
) strict;
create index {s}hold_due on {s}hold (hold_until, id) where status = 'held';
create index {s}hold_tenant_due on {s}hold (tenant, hold_until, id) where status = 'held';
create unique index {s}hold_granting on {s}hold (hold_token);
create unique index {s}hold_reference on {s}hold (tenant, reference) where reference is not null;
create index {s}hold_of_tenant on {s}hold (tenant, status, id);
create index {s}hold_of_unit on {s}hold (unit_id, status, id);
create index {s}hold_stays on {s}hold (unit_id, ifnull(ends_at, '~'))
    where status in ('held', 'confirmed');

create trigger {s}hold_overlap_new before insert on {s}hold
when new.status in ('held', 'confirmed')
begin
    select raise(abort, 'the stay overlaps another of its unit')
    from (
        select h.starts_at from {s}hold h
        where h.unit_id = new.unit_id and h.status in ('held', 'confirmed')
          and ifnull(h.ends_at, '~') > ifnull(new.starts_at, '')
        order by ifnull(h.ends_at, '~') limit 1) f
    where ifnull(f.starts_at, '') < ifnull(new.ends_at, '~');
end;

create trigger {s}hold_overlap_changed before update of id, unit_id, status, starts_at, ends_at on {s}hold
when new.status in ('held', 'confirmed')
begin
    select raise(abort, 'the stay overlaps another of its unit')
    from (
        select h.starts_at from {s}hold h
        where h.unit_id = new.unit_id and h.status in ('held', 'confirmed') and h.id <> old.id
          and ifnull(h.ends_at, '~') > ifnull(new.starts_at, '')
        order by ifnull(h.ends_at, '~') limit 1) f
    where ifnull(f.starts_at, '') < ifnull(new.ends_at, '~');
end;
