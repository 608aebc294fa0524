"""Keys, states, tokens and names as odd as real tables have them: all exact, none stops a scan."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from freehold.adapters.system import Onwards
from freehold.application.sweep import Sweeper
from freehold.domain.due import DueKind, DueSpec
from freehold.domain.rules import Condition, DeleteRow, Predicate, Rule, SetColumns, TableName, Test
from tests.behaviour.odd import Odd, check
from tests.behaviour.till import Till, cart, open_table, put_holds, statuses

if TYPE_CHECKING:
    from tests.behaviour.place import Place

TEXTS = (
    "'O''Neil'",
    "'a,\"b\"'",
    "'back\\slash'",
    "'ключ 鍵 🔑'",
    "'100 % %s %(x)s'",
    "'{held} {s}'",
    "':now'",
    "' blanks '",
    "''",
    "'[\"a\"]'",
    "'line' || chr(10) || 'feed'",
)
LITE_TEXTS = tuple(text.replace("chr(10)", "char(10)") for text in TEXTS)
UUIDS = ("'0b5f4a1e-9d39-4b39-8f3e-6a2b8c1d2e3f'", "'FFFFFFFF-9d39-4b39-8f3e-6a2b8c1d2e3f'")
TOKEN = "".join(random.Random(7).choices("abcdefghijklmnopqrstuvwxyz0123456789é", k=3_000))


def _is(column: str, *values: str | int | bool) -> Predicate:
    return Predicate(((Condition(column, Test.EQUALS, (values[0],)),),))


KEYS = [
    Odd("bpchar", "id char(36) primary key", (*UUIDS, "'short'", "' x'")),
    Odd("varchar", "id varchar(40) primary key", TEXTS),
    Odd("text", "id text primary key", TEXTS),
    Odd(
        "numeric20",
        "id numeric(20,0) primary key",
        ("12345678901234567890", "-1", "0", "99999999999999999999"),
    ),
    Odd("uuid", "id uuid primary key", tuple(f"{text}::uuid" for text in UUIDS)),
    Odd("smallint", "id smallint primary key", ("1::int2", "-32768", "32767")),
    Odd("bigint", "id bigint primary key", ("9223372036854775807", "-9223372036854775808")),
    Odd(
        "instant",
        "id timestamptz primary key",
        ("'2026-01-02 03:04:05.678901+05:45'::timestamptz",),
    ),
    Odd("bytes", "id bytea primary key", ("'\\x00ff5c27'::bytea", "''::bytea")),
    Odd("float", "id float8 primary key", ("0.1::float8 + 0.2", "1e300", "'-0'")),
    Odd(
        "composite",
        "shop int, code text, primary key (shop, code)",
        tuple(f"{number}, {text}" for number in (1, 2) for text in TEXTS),
        key=("shop", "code"),
    ),
]
STATES = [
    Odd(
        "enum state",
        "id int primary key",
        ("1", "2"),
        setup=["create type hold_state as enum ('expired', 'held')"],
        status="status hold_state default 'held'::hold_state",
    ),
    Odd(
        "boolean state",
        "id int primary key",
        ("1", "2"),
        held=_is("is_held", True),
        action=SetColumns((("is_held", False),)),
        status="is_held boolean default true",
        still_held="is_held",
    ),
    Odd(
        "one letter",
        "id int primary key",
        ("1", "2"),
        held=_is("state", "H"),
        action=SetColumns((("state", "X"),)),
        status='state "char" default \'H\'::"char"',
        still_held="state = 'H'",
    ),
    Odd(
        "padded",
        "id int primary key",
        ("1", "2"),
        held=_is("state", "held"),
        action=SetColumns((("state", "expired"),)),
        status="state char(10) default 'held'::char(10)",
        still_held="state = 'held'",
    ),
    Odd(
        "domain",
        "id int primary key",
        ("1", "2"),
        setup=["create domain state_name as varchar(10) check (value <> '')"],
        status="status state_name default 'held'::state_name",
    ),
    Odd(
        "number state",
        "id int primary key",
        ("1", "2"),
        held=_is("state", 3),
        action=SetColumns((("state", 4),)),
        status="state numeric(3,1) default 3.0",
        still_held="state = 3",
    ),
    Odd(
        "json state",
        "id int primary key",
        ("1",),
        held=_is("state", '{"held": true}'),
        action=SetColumns((("state", None),)),
        status="state json default '{\"held\": true}'::json",
        still_held="state is not null",
    ),
]
FENCES = [
    Odd(f"fence {number}", f"id int primary key, token {kind}", rows, fence=("token",))
    for number, (kind, rows) in enumerate(
        {
            "float8": ("1, 0.1::float8 + 0.2", "2, 'NaN'", "3, '-Infinity'", "4, null"),
            "real": ("1, 0.1::real", "2, 16777217"),
            "json": ('1, \'{"b": 1,  "a": [2]}\'::json', "2, 'null'::json"),
            "jsonb": ('1, \'{"b": 1,  "a": [2]}\'::jsonb',),
            "text[]": ("1, array['a,b', '\"q\"', null, '']", "2, '{}'"),
            "text": (f"1, '{TOKEN}'", *(f"{n}, {text}" for n, text in enumerate(TEXTS, start=2))),
            "timestamptz": ("1, '2026-01-02 03:04:05.678901+05:45'::timestamptz", "2, 'infinity'"),
            "timestamp": ("1, '2026-01-02 03:04:05.6'::timestamp",),
            "date": ("1, '0044-03-15 BC'::date",),
            "interval": ("1, '1 year -2 days +03:04:05.6'::interval",),
            "numeric": ("1, 1.50", "2, 1.5", "3, 'NaN'"),
            "inet": ("1, '10.0.0.1/8'::inet",),
            "bytea": ("1, '\\x00ff'::bytea",),
            "bit(3)": ("1, b'101'",),
            "int4range": ("1, '[1,5)'::int4range",),
            "point": ("1, '(1,2)'::point",),
            "boolean": ("1, true", "2, null"),
            "money": ("1, '12.34'::money",),
        }.items()
    )
]
LITE = [
    Odd("integer", "id integer primary key", ("1", "9223372036854775807", "-5")),
    Odd("text", "id text primary key", LITE_TEXTS),
    Odd("varchar", "id varchar(36) primary key", UUIDS),
    Odd("numeric", "id numeric(20,0) primary key", ("1234567890123456789", "'x'", "0.5")),
    Odd("real", "id real primary key", ("0.1 + 0.2", "1e300")),
    Odd("blob", "id blob primary key", ("x'00ff27'", "x''")),
    Odd("binary", "id binary(16) primary key", ("x'0b5f4a1e9d394b398f3e6a2b8c1d2e3f'",)),
    Odd("mixed", "id integer unique", ("1", "'not a number'")),
    Odd(
        "composite",
        "shop int, code text, primary key (shop, code)",
        tuple(f"{number}, {text}" for number in (1, 2) for text in LITE_TEXTS),
        key=("shop", "code"),
    ),
    Odd("real fence", "id integer primary key, t real", ("1, 0.1 + 0.2", "2, null"), fence=("t",)),
    Odd("blob fence", "id integer primary key, t blob", ("1, x'00ff'", "2, 'text'"), fence=("t",)),
    Odd("any fence", "id integer primary key, t", ("1, 1", "2, '1'", "3, 1.0"), fence=("t",)),
    Odd(
        "long token",
        "id integer primary key, t text",
        (f"1, '{TOKEN}'", *(f"{n}, {text}" for n, text in enumerate(LITE_TEXTS, start=2))),
        fence=("t",),
    ),
    Odd(
        "boolean state",
        "id integer primary key",
        ("1", "2"),
        held=_is("is_held", True),
        action=SetColumns((("is_held", False),)),
        status="is_held boolean default true",
        still_held="is_held",
    ),
]


@pytest.mark.parametrize("odds", [KEYS, STATES, FENCES], ids=["keys", "states", "fences"])
def test_odd_types_on_postgres(pg: Place, odds: list[Odd]) -> None:
    for odd in odds:
        check(pg, odd)


def test_odd_types_on_sqlite(lite: Place) -> None:
    for odd in LITE:
        check(lite, odd)


def test_names_that_look_like_syntax(place: Place) -> None:
    """Quotes, braces, colons, percent signs and blanks are letters of a name like any other."""
    key, due, state, token = 'Id "{key_text}"', "due %s", ":now", "to'ken {s}"
    names = [key, due, state, token]
    id_, due_, state_, token_ = ('"' + name.replace('"', '""') + '"' for name in names)
    kind = "timestamptz" if place.dialect == "postgres" else "text"
    table = 'My "Holds" {table} :limit 100%'
    place.host.run(
        f'create table "My ""Holds"" {{table}} :limit 100%" '
        f"({id_} int primary key, {due_} {kind}, {state_} text, {token_} text)"
    )
    for number in (1, 2):
        place.host.run(
            f'insert into "My ""Holds"" {{table}} :limit 100%" '
            f"values ({number}, '2026-03-10 11:00:00', '%s {{held}}', ':x')"
        )
    spec = DueSpec(due, DueKind.INSTANT)
    if place.dialect == "sqlite":
        spec = DueSpec(due, DueKind.NAIVE, "UTC")
    rule = Rule(
        "odd % {name} :x",
        TableName(table),
        (key,),
        _is(state, "%s {held}"),
        spec,
        SetColumns(((state, ":now %(x)s {true}"),)),
        fence=(token,),
        carry=(state,),
    )
    assert Till.open(place, rule).run().released_count == 2
    assert (
        place.host.run(f'select {state_} from "My ""Holds"" {{table}} :limit 100%"')
        == [(":now %(x)s {true}",)] * 2
    )
    assert len(place.events()) == 2


def test_mixed_case_columns_of_a_schema(pg: Place) -> None:
    pg.host.run('create schema "Shop"')
    pg.host.run(
        'create table "Shop"."SelectedSlots" ("Id" int primary key, "isSeat" boolean, '
        '"paidAt" timestamp, "releaseAt" timestamp, "userId" int)'
    )
    pg.host.run(
        'insert into "Shop"."SelectedSlots" select n, true, null, \'2026-03-10 11:00\', n '
        "from generate_series(1, 5) n"
    )
    held = Predicate(
        ((Condition("isSeat", Test.EQUALS, (True,)), Condition("paidAt", Test.IS_NULL)),)
    )
    rule = Rule(
        "slots",
        TableName("SelectedSlots", "Shop"),
        ("Id",),
        held,
        DueSpec("releaseAt", DueKind.NAIVE, "UTC"),
        DeleteRow(),
    )
    assert Till.open(pg, rule).run().released_count == 5


def test_a_key_too_long_for_an_index_stops_nothing(place: Place) -> None:
    """It is named by a digest, waits in review, and the sweep can live with it."""
    kind = "timestamptz" if place.dialect == "postgres" else "text"
    place.host.run(f"create table hold (id text, status text, due {kind})")
    keys = ["a", TOKEN, "z", *(f"m{n}" for n in range(20))]
    due = "2026-03-10 11:00:00"
    place.host.insert("hold", [{"id": key, "status": "held", "due": due} for key in keys])
    till = Till.open(place, cart(place, fence=(), tenant=cart(place).tenant.__class__()))

    assert till.run().released_count == 22
    for _ in range(2):
        Sweeper(till.ledger, Onwards(), till.scanner).sweep([till.rule])
        till.run_again(1)
    [(key, state, reason)] = place.table("operation", "hold_key, state, reason")
    assert (key[:7], state) == ("digest ", "dead")
    assert reason == "malformed: its key is longer than 2400 bytes"


def test_a_database_with_settings_of_its_own(pg: Place) -> None:
    """The role's own ideas of dates, zones, isolation and durability change nothing."""
    name = pg.target.rpartition("/")[2]
    for setting, value in {
        "datestyle": "German, DMY",
        "timezone": "Asia/Kathmandu",
        "intervalstyle": "iso_8601",
        "bytea_output": "escape",
        "extra_float_digits": "-10",
        "default_transaction_isolation": "repeatable read",
        "default_transaction_read_only": "off",
        "synchronous_commit": "off",
        "search_path": "elsewhere",
        "lock_timeout": "1s",
        "statement_timeout": "1s",
        "standard_conforming_strings": "on",
        "plan_cache_mode": "force_generic_plan",
        "row_security": "on",
    }.items():
        pg.host.run(f"alter database {name} set {setting} to '{value}'")
    odds = {
        "timestamptz": "'2026-01-02 03:04:05.678901+05:45'::timestamptz",
        "date": "'2026-12-02'::date",
        "float8": "0.1::float8 + 0.2",
        "interval": "'1 day 02:00'::interval",
        "bytea": "'\\x00ff'::bytea",
    }
    columns = ", ".join(f"t{n} {kind}" for n, kind in enumerate(odds))
    fence = tuple(f"t{n}" for n in range(len(odds)))
    check(
        pg,
        Odd(
            "own", f"id int primary key, {columns}", ["1, " + ", ".join(odds.values())], fence=fence
        ),
    )
    ledger = pg.ledger()
    with ledger.transaction():
        rows, _ = ledger.session.run(
            "select current_setting('transaction_isolation'), current_setting('search_path'), "
            "current_setting('synchronous_commit'), current_setting('TimeZone')",
            {},
        )
    assert rows == [("read committed", "public, pg_temp", "on", "UTC")]
    assert [row[0].isoformat() for row in pg.table("record", "due_at")] == [
        "2026-03-10T11:00:00+00:00"
    ]


def test_a_literal_that_is_too_long_for_its_column(pg: Place) -> None:
    """Every row fails alike, at once: the rule is paused with the database's own message."""
    open_table(pg)
    put_holds(pg, range(1, 11))
    rule = cart(pg, action=SetColumns((("status", "expired"), ("note", "x" * 21))))
    till = Till.open(pg, rule)
    till.run()
    assert statuses(pg) == {"held": 10}
    assert pg.rule("condition, reason") == (
        "paused",
        "every row tried was refused: value too long for type character varying(20)",
    )
