"""Due values as odd as real columns hold: each is due at its own instant, by policy, or never."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from freehold.adapters.system import Onwards
from freehold.application.sweep import Sweeper
from freehold.domain.due import DueKind, DueSpec, EmptyDue
from freehold.domain.expiry import SkipReason
from freehold.domain.rules import Now, Rule, SetColumns, TableName
from tests.behaviour.till import EXPIRE, HELD, Till, cart, hold, open_table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.behaviour.place import Place

# name -> (SQL value, what it is at noon on 10 March 2026)
DUE, LATER, EMPTY, NEVER = "due", "later", "empty", "never"
INSTANTS = {
    "just due": ("'2026-03-10 12:00:00+00'", DUE),
    "a zone away": ("'2026-03-10 17:45:00+05:45'", DUE),
    "not yet": ("'2026-03-10 12:00:00.000001+00'", LATER),
    "infinity": ("'infinity'", NEVER),
    "year 12026": ("'12026-03-10 12:00:00+00'", NEVER),
    "minus infinity": ("'-infinity'", EMPTY),
    "before Christ": ("'0044-03-15 12:00:00+00 BC'", EMPTY),
    "1970": ("'1970-01-01 00:00:00+00'", EMPTY),
    "null": ("null", EMPTY),
}
NAIVE = {
    "just due": ("'2026-03-10 13:00:00'", DUE),  # Berlin is an hour ahead
    "not yet": ("'2026-03-10 13:00:00.000001'", LATER),
    "null": ("null", EMPTY),
}
PG_NAIVE = {
    **NAIVE,
    "infinity": ("'infinity'", NEVER),
    "year 12026": ("'12026-03-10 12:00:00'", NEVER),
    "minus infinity": ("'-infinity'", EMPTY),
}
DAYS = {
    "yesterday": ("'2026-03-09'", DUE),
    "today": ("'2026-03-10'", LATER),
    "1970": ("'1970-01-01'", EMPTY),
    "null": ("null", EMPTY),
}
PG_DAYS = {
    **DAYS,
    "infinity": ("'infinity'", NEVER),
    "before Christ": ("'0044-03-15 BC'", EMPTY),
    "year 12026": ("'12026-03-10'", NEVER),
}
SECONDS = {
    "just due": ("1773144000", DUE),
    "not yet": ("1773144001", LATER),
    "one": ("1", DUE),
    "largest": ("9223372036854775807", NEVER),
    "zero": ("0", EMPTY),
    "negative": ("-5", EMPTY),
    "smallest": ("-9223372036854775808", EMPTY),
    "null": ("null", EMPTY),
}
MILLIS = {
    "just due": ("1773144000000", DUE),
    "not yet": ("1773144000001", LATER),
    "zero": ("0", EMPTY),
    "negative": ("-5000", EMPTY),
    "null": ("null", EMPTY),
}
SPELLINGS = {
    "Z": ("'2026-03-10T12:00:00Z'", DUE),
    "offset": ("'2026-03-10T14:00:00+02:00'", DUE),
    "millis": ("'2026-03-10T12:00:00.000+0000'", DUE),
    "micros": ("'2026-03-10T12:00:00.000000Z'", DUE),
    "later": ("'2026-03-10T12:00:01Z'", LATER),
    "blank": ("''", EMPTY),
    "tomorrow": ("'tomorrow'", EMPTY),
    "null": ("null", EMPTY),
}
BERLIN = "Europe/Berlin"
POSTGRES = {
    "timestamptz": (DueSpec("due", DueKind.INSTANT), "timestamptz", INSTANTS),
    "timestamp": (DueSpec("due", DueKind.NAIVE, BERLIN), "timestamp", PG_NAIVE),
    "date": (DueSpec("due", DueKind.DATE, BERLIN), "date", PG_DAYS),
    "epoch seconds": (DueSpec("due", DueKind.EPOCH_SECONDS), "bigint", SECONDS),
    "epoch millis": (DueSpec("due", DueKind.EPOCH_MILLIS), "bigint", MILLIS),
    "iso text": (DueSpec("due", DueKind.ISO), "text", SPELLINGS),
}
LITE = {
    "naive": (DueSpec("due", DueKind.NAIVE, BERLIN), "text", NAIVE),
    "date": (DueSpec("due", DueKind.DATE, BERLIN), "text", DAYS),
    "epoch seconds": (DueSpec("due", DueKind.EPOCH_SECONDS), "integer", SECONDS),
    "epoch millis": (DueSpec("due", DueKind.EPOCH_MILLIS), "integer", MILLIS),
    "iso text": (DueSpec("due", DueKind.ISO), "text", SPELLINGS),
}


def _expected(values: Mapping[str, tuple[str, str]], policy: EmptyDue) -> dict[str, str]:
    """Return what becomes of each row by noon."""
    empty = {EmptyDue.NEVER: "held", EmptyDue.NOW: "expired", EmptyDue.REVIEW: "review"}[policy]
    ends = {DUE: "expired", LATER: "held", NEVER: "held", EMPTY: empty}
    return {name: ends[kind] for name, (_, kind) in values.items()}


def _found(place: Place, table: str) -> dict[str, str]:
    found = dict(place.host.run(f"select id, status from {table}"))
    rows = place.host.run(
        f"select hold_key, reason from {place.prefix}operation where rule = :rule", rule=table
    )
    for key, reason in rows:
        assert reason.startswith("malformed due: "), (table, key, reason)
        found[key] = "review"
    return found


@pytest.mark.parametrize("policy", list(EmptyDue))
def test_every_kind_of_due(place: Place, policy: EmptyDue) -> None:
    kinds = POSTGRES if place.dialect == "postgres" else LITE
    for number, (kind, (spec, column, values)) in enumerate(kinds.items()):
        table = f"kind_{number}"
        place.host.run(f"create table {table} (id text primary key, status text, due {column})")
        for name, (value, _) in values.items():
            cast = f"cast({value} as {column})" if place.dialect == "postgres" else value
            place.host.run(f"insert into {table} values ('{name}', 'held', {cast})")
        due = DueSpec(spec.column, spec.kind, spec.zone, on_empty=policy)
        till = Till.open(place, Rule(table, TableName(table), ("id",), HELD, due, EXPIRE))
        sweeper = Sweeper(till.ledger, Onwards(), till.scanner)
        for _ in range(2):
            sweeper.sweep([till.rule])
            till.run()
        assert _found(place, table) == _expected(values, policy), kind
        place.advance(timedelta(seconds=1))
        till.run()
        later = {name: "expired" for name, (_, what) in values.items() if what == LATER}
        if spec.kind is not DueKind.DATE:
            assert _found(place, table) == {**_expected(values, policy), **later}, kind
        place.advance(timedelta(seconds=-1))


def test_one_instant_in_six_spellings(place: Place) -> None:
    """Scenario N10: none a second before, four a second after, two for a person."""
    place.host.run("create table spelt (id integer primary key, status text, due text)")
    spellings = [
        "2026-03-10T10:00:00Z",
        "2026-03-10T12:00:00+02:00",
        "2026-03-10T10:00:00.000+0000",
        "2026-03-10T10:00:00.000000Z",
        "",
        "tomorrow",
    ]
    rows = [{"id": n, "status": "held", "due": due} for n, due in enumerate(spellings)]
    place.host.insert("spelt", rows)
    due = DueSpec("due", DueKind.ISO, on_empty=EmptyDue.REVIEW)
    till = Till.open(place, Rule("spelt", TableName("spelt"), ("id",), HELD, due, EXPIRE))

    place.clock.at = datetime(2026, 3, 10, 9, 59, 59, tzinfo=UTC)
    assert till.run().released_count == 0
    place.clock.at = datetime(2026, 3, 10, 10, 0, 1, tzinfo=UTC)
    assert till.run().released_count == 4
    assert place.table("operation", "hold_key, state, reason") == [
        ("4", "dead", "malformed due: zero"),
        ("5", "dead", "malformed due: unreadable"),
    ]


def test_an_empty_due_that_expired_long_ago_is_not_released_again(place: Place) -> None:
    """Its identity names no instant, so that every record of it counts, however old."""
    kind = "timestamptz" if place.dialect == "postgres" else "text"
    place.host.run(f"create table bare (id integer primary key, status text, due {kind})")
    place.host.run("insert into bare values (1, 'held', null)")
    spec = DueSpec("due", DueKind.INSTANT, on_empty=EmptyDue.NOW)
    if place.dialect == "sqlite":
        spec = DueSpec("due", DueKind.NAIVE, "UTC", on_empty=EmptyDue.NOW)
    till = Till.open(place, Rule("bare", TableName("bare"), ("id",), HELD, spec, EXPIRE))
    sweeper = Sweeper(till.ledger, Onwards(), till.scanner)
    sweeper.sweep([till.rule])
    assert till.run().released_count == 1
    place.host.run("update bare set status = 'held'")
    place.advance(timedelta(days=40))
    sweeper.sweep([till.rule])
    till.run()
    assert place.table("record", "generation, outcome") == [(1, "expired")]
    assert place.table("operation", "generation, state") == [(2, "dead")]


def test_a_table_that_was_empty_at_first_tells_its_separator_later(lite: Place) -> None:
    """Python and JavaScript write `2026-03-10T11:00:00`; a space would find it a day late."""
    open_table(lite)
    till = Till.open(lite, cart(lite))
    assert till.run().released_count == 0

    row = hold(1)
    lite.host.insert("hold", [row | {"due": str(row["due"]).replace(" ", "T")}])
    assert till.run_again(1, after=timedelta(seconds=20)).released_count == 1


@pytest.mark.parametrize(
    ("kind", "zone", "types", "due", "released"),
    [
        (DueKind.EPOCH_MILLIS, None, ("bigint", "integer"), "1773143999999", "1773144000000"),
        (DueKind.EPOCH_SECONDS, None, ("numeric", "numeric"), "1773143999", "1773144000"),
        (
            DueKind.NAIVE,
            "Europe/Berlin",
            ("timestamp", "text"),
            "'2026-03-10 12:59:59'",
            "2026-03-10 13:00:00",
        ),
        (DueKind.DATE, "Europe/Berlin", ("date", "date"), "'2026-03-09'", "2026-03-10"),
    ],
)
def test_the_instant_of_release_is_written_in_the_columns_own_kind(
    place: Place, kind: DueKind, zone: str | None, types: tuple[str, str], due: str, released: str
) -> None:
    named = types[place.dialect == "sqlite"]
    place.host.run(
        f"create table moment (id int primary key, status text, due {named}, at {named})"
    )
    place.host.run(f"insert into moment values (1, 'held', {due}, null)")
    rule = Rule(
        "cart",
        TableName("moment"),
        ("id",),
        HELD,
        DueSpec("due", kind, zone),
        SetColumns((("status", "expired"), ("at", Now()))),
    )
    assert Till.open(place, rule).run().released_count == 1
    ((text,),) = place.host.run("select cast(at as text) from moment")
    assert text.removesuffix(".000") == released


def test_a_zone_that_changed_under_open_work_releases_nothing_early(place: Place) -> None:
    place.host.run(
        "create table hold (id int primary key, tenant text, status text, token text, due text)"
    )
    place.host.insert("hold", [hold(1) | {"due": "2026-03-10T11:30:00"}])
    till = Till.open(place, cart(place, due=DueSpec("due", DueKind.ISO, "UTC")))
    till.scanner.scan(till.rule)

    # Half past eleven in New York is half past three in the afternoon, UTC.
    moved = Till.open(place, cart(place, due=DueSpec("due", DueKind.ISO, "America/New_York")))
    assert moved.worker.work(moved.rule).batch.skipped == {SkipReason.MAPPING_CHANGED: 1}
    assert moved.run_again(1, after=timedelta(hours=3)).released_count == 0
    assert moved.run_again(1, after=timedelta(minutes=30)).released_count == 1
