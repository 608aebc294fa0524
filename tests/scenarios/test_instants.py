"""Group two: the wrong instant."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from freehold.adapters.sql.session import DatabaseClock
from freehold.adapters.system import Onwards
from freehold.application.scan import Scanner
from freehold.application.schedule import Scheduler
from freehold.domain.due_walls import zone_info
from tests.scenarios.shop import CART, add, held, open_shop, statuses
from tests.stage import NOON, utc, wall

if TYPE_CHECKING:
    from tests.stage import Stage

HOUR = timedelta(hours=1)
MICROSECOND = timedelta(microseconds=1)

# How each kind of column writes an instant: type on PostgreSQL, kind and zone, and the spelling.
KINDS: dict[str, tuple[str, str, Any]] = {
    "timestamptz": ("timestamptz", 'kind = "timestamptz"', lambda at: at.isoformat(" ")),
    "naive UTC": ("timestamp", 'kind = "naive", zone = "UTC"', wall),
    "epoch s": ("bigint", 'kind = "epoch_s"', lambda at: int(at.timestamp())),
    "epoch ms": ("bigint", 'kind = "epoch_ms"', lambda at: int(at.timestamp() * 1000)),
    "ISO text": ("text", 'kind = "iso"', lambda at: at.isoformat()),
}


def open_moments(stage: Stage, sql_type: str, due: str, more: str = "") -> None:
    """Make a table of holds whose due column is of one kind."""
    stage.host.script(
        f"create table moment (id integer primary key, state varchar(9) not null, due {sql_type});"
    )
    stage.attach(
        '[[rules]]\nname = "moment"\ntable = "moment"\nkey = ["id"]\nheld = [{ state = "held" }]\n'
        f'due = {{ column = "due", {due}{more} }}\nexpire = {{ set = {{ state = "over" }} }}\n'
    )


def add_moments(stage: Stage, *dues: Any) -> None:
    rows = [{"id": n, "state": "held", "due": due} for n, due in enumerate(dues, 1)]
    stage.host.insert("moment", rows)


def over(stage: Stage) -> list[int]:
    """Drain, and return the moments that are over, checked against the records."""
    stage.drain()
    found = [
        row[0] for row in stage.host.run("select id from moment where state = 'over' order by id")
    ]
    assert stage.ended() == [str(one) for one in found]
    return found


@pytest.mark.parametrize("zone", ["Pacific/Apia", "America/Los_Angeles"])
def test_b13_a_server_east_or_west_of_utc_changes_nothing(stage: Stage, zone: str) -> None:
    """The database's own zone is not the column's: a naive UTC due stays one."""
    name = stage.url.rpartition("/")[2]
    if stage.dialect == "postgres":
        stage.host.script(f"alter database {name} set timezone = '{zone}'")
    open_moments(stage, "timestamp", 'kind = "naive", zone = "UTC"')
    add_moments(stage, wall(NOON + HOUR), wall(NOON - HOUR))
    assert over(stage) == [2]
    stage.clock.instant = NOON + HOUR - MICROSECOND
    assert over(stage) == [2]
    stage.clock.instant = NOON + HOUR
    assert over(stage) == [1, 2]
    if stage.dialect == "postgres":
        stage.host.script(f"alter database {name} reset timezone")


@pytest.mark.parametrize("zone", ["Pacific/Apia", "America/Los_Angeles"])
def test_b13_a_local_due_is_read_in_the_zone_of_its_rule(stage: Stage, zone: str) -> None:
    open_moments(stage, "timestamp", f'kind = "naive", zone = "{zone}"')
    local = (NOON + HOUR).astimezone(zone_info(zone)).replace(tzinfo=None)
    add_moments(stage, local.isoformat(" "))
    stage.clock.instant = NOON + HOUR - MICROSECOND
    assert over(stage) == []
    stage.clock.instant = NOON + HOUR
    assert over(stage) == [1]


@pytest.mark.parametrize(
    ("kind", "bound"),
    [
        *((kind, "inclusive") for kind in KINDS),
        ("naive UTC", "exclusive"),
        ("epoch s", "exclusive"),
    ],
)
def test_b14_only_what_is_past_is_due(stage: Stage, kind: str, bound: str) -> None:
    sql_type, due, spell = KINDS[kind]
    if stage.dialect == "sqlite" and kind == "timestamptz":
        spell = lambda at: at.strftime("%Y-%m-%d %H:%M:%S.%f+00")  # noqa: E731
    open_moments(stage, sql_type, due, f', bound = "{bound}"')
    add_moments(stage, *(spell(NOON + hours * HOUR) for hours in (-1, 0, 1)))
    assert over(stage) == ([1, 2] if bound == "inclusive" else [1])
    stage.clock.instant = NOON + HOUR
    assert over(stage) == ([1, 2, 3] if bound == "inclusive" else [1, 2])


@pytest.mark.parametrize("zone", ["America/New_York", "Pacific/Auckland"])
def test_b16_a_date_is_over_when_that_local_day_is(stage: Stage, zone: str) -> None:
    """A hold taken at 20:00 local, when UTC may be a day ahead, ends by the local calendar."""
    open_moments(stage, "date", f'kind = "date", zone = "{zone}"')
    made_at = datetime(2026, 3, 10, 20, tzinfo=zone_info(zone))
    add_moments(stage, made_at.date().isoformat(), (made_at.date() - timedelta(days=1)).isoformat())
    midnight = made_at.replace(day=11, hour=0).astimezone(UTC)
    stage.clock.instant = midnight - MICROSECOND
    assert over(stage) == [2]
    stage.clock.instant = midnight
    assert over(stage) == [1, 2]


SHELF = """
[[rules]]
name = "shelf"
table = "request"
key = ["id"]
held = [{ status = "on shelf" }]
due = { column = "shelf_until", kind = "naive", zone = "UTC" }
expire = { set = { status = "shelf expired" } }
[[rules]]
name = "waiting"
table = "request"
key = ["id"]
held = [{ status = "waiting" }]
due = { column = "request_until", kind = "naive", zone = "UTC" }
expire = { set = { status = "request expired" } }
"""


def open_library(stage: Stage) -> None:
    stage.host.script(
        "create table request (id integer primary key, status varchar(20) not null,"
        " shelf_until timestamp, request_until timestamp);"
    )
    stage.attach(SHELF)
    past, future = wall(NOON - HOUR), wall(NOON + HOUR)
    rows = [
        (1, "on shelf", future, past),
        (2, "on shelf", past, future),
        (3, "waiting", future, past),
        (4, "waiting", past, future),
        (5, "waiting", None, past),
        (6, "on shelf", past, None),
        (7, "on shelf", None, past),
    ]
    names = ("id", "status", "shelf_until", "request_until")
    stage.host.insert("request", [dict(zip(names, row, strict=True)) for row in rows])
    stage.drain()


def request_statuses(stage: Stage) -> dict[int, str]:
    return {row[0]: row[1] for row in stage.host.run("select id, status from request")}


def test_b18_a_status_does_not_end_by_the_date_of_another(stage: Stage) -> None:
    open_library(stage)
    found = request_statuses(stage)
    assert [found[n] for n in (1, 4, 7)] == ["on shelf", "waiting", "on shelf"]


def test_b19_a_status_ends_by_its_own_date(stage: Stage) -> None:
    open_library(stage)
    found = request_statuses(stage)
    assert [found[n] for n in (2, 6)] == ["shelf expired", "shelf expired"]
    assert [found[n] for n in (3, 5)] == ["request expired", "request expired"]


SPELLINGS = [
    "2026-03-10T10:00:00+00:00",
    "2026-03-10T10:00:00Z",
    "2026-03-10T12:00:00+02:00",
    "2026-03-10T10:00:00.000+0000",
    "2026-03-10T10:00:00.000000Z",
    "2026-03-10 05:30:00-04:30",
    "20260310T100000Z",
]


def test_b20_one_instant_in_many_spellings_is_one_instant(stage: Stage) -> None:
    open_moments(stage, "text", 'kind = "iso"', ', on_empty = "review"')
    add_moments(stage, *SPELLINGS, "tomorrow", "2026-02-30T10:00:00Z")
    stage.clock.instant = utc("2026-03-10 10:00:00") - MICROSECOND
    assert over(stage) == []
    stage.clock.instant = utc("2026-03-10 10:00:00")
    assert over(stage) == list(range(1, len(SPELLINGS) + 1))
    assert stage.open() == {"dead": 2}


def test_n10_what_names_no_instant_is_neither_expired_nor_forgotten(stage: Stage) -> None:
    open_moments(stage, "text", 'kind = "iso"', ', on_empty = "review"')
    spelled = ["10:00:00Z", "12:00:00+02:00", "10:00:00.000+0000", "10:00:00.000000Z"]
    add_moments(stage, *(f"2026-03-10T{one}" for one in spelled), "", "tomorrow")
    stage.clock.instant = utc("2026-03-10 09:59:59")
    assert over(stage) == []
    stage.clock.instant = utc("2026-03-10 10:00:01")
    assert over(stage) == [1, 2, 3, 4]
    reasons = stage.host.run(f"select hold_key, reason from {stage.prefix}operation order by 1")
    assert [key for key, _ in reasons] == ["5", "6"]
    assert all("malformed due" in reason for _, reason in reasons)
    stage.advance(days=1)
    assert over(stage) == [1, 2, 3, 4]
    assert stage.open() == {"dead": 2}


def test_b22_a_due_before_the_hold_was_made_is_due(stage: Stage) -> None:
    """Freehold reads the due column only; what lies before the making of the row is past."""
    open_moments(stage, "timestamp", 'kind = "naive", zone = "UTC"')
    add_moments(stage, wall(NOON - 400 * 24 * HOUR), "1970-01-02 00:00:00")
    assert over(stage) == [1, 2]


@dataclass
class WrongClock:
    """A host whose clock is off."""

    off: timedelta

    def wall(self) -> datetime:
        """Return its idea of the time."""
        return datetime.now(UTC) + self.off

    def monotonic(self) -> float:
        """Return seconds."""
        return 0.0

    def sleep(self, seconds: float) -> None:
        """Wait for nothing."""


@pytest.mark.parametrize("off", [timedelta(minutes=10), timedelta(minutes=-10)])
def test_b23_the_database_judges_what_is_due(postgres_stage: Stage, off: timedelta) -> None:
    """A scheduler's own clock is noted beside the tick and decides nothing."""
    skewed(postgres_stage, off)
    hosts = postgres_stage.host.run("select started_at, host_at from freehold.tick")
    assert hosts[0][1] - hosts[0][0] == pytest.approx(off, abs=timedelta(seconds=60))


def test_n12_nothing_is_early_under_any_skew(postgres_stage: Stage) -> None:
    for off in (timedelta(minutes=10), timedelta(minutes=-10), timedelta(days=400)):
        skewed(postgres_stage, off)
        postgres_stage.host.script("drop table moment;\ndelete from freehold.record;\n")
        postgres_stage.host.script("delete from freehold.tally")


def skewed(stage: Stage, off: timedelta) -> None:
    """Run a scheduler whose host is off, under the database's own clock."""
    open_moments(stage, "timestamptz", 'kind = "timestamptz"')
    stage.host.script(
        "insert into moment select n, 'held', now() + n * interval '5 minutes'"
        " from generate_series(-2, 2) n where n <> 0"
    )
    stage.clock = DatabaseClock()  # type: ignore[assignment]
    ledger = stage.ledger()
    scheduler = Scheduler(ledger, Scanner(ledger, Onwards()), WrongClock(off), str(off), Onwards())
    assert scheduler.scan_now(stage.rules[0]).new_count == 2
    stage.work()
    assert stage.ended() == ["-2", "-1"]
    lags = stage.host.run("select finished_at - due_at from freehold.record")
    assert all(timedelta(0) <= lag < timedelta(minutes=11) for (lag,) in lags)


def test_b25_one_column_says_when_whatever_another_formula_says(stage: Stage) -> None:
    """The host extended the hold in the due column; creation plus window has long passed."""
    open_shop(stage)
    add(stage, held(1, timedelta(minutes=5)), held(2, timedelta(minutes=-5)))
    stage.host.script("alter table hold add column made_at timestamp")
    stage.host.run("update hold set made_at = :at", at=wall(NOON - 24 * HOUR))
    stage.drain()
    assert statuses(stage) == {1: "held", 2: "expired"}


ZEROS: dict[str, list[Any]] = {
    "naive UTC": ["0001-01-01 00:00:00", "1970-01-01 00:00:00"],
    "epoch s": [0, -1],
    "epoch ms": [0, -1],
    "ISO text": ["", "0000-00-00 00:00:00", "0", "1970-01-01T00:00:00Z"],
}


@pytest.mark.parametrize("kind", ZEROS)
@pytest.mark.parametrize("on_empty", ["now", "review"])
def test_b27_null_and_zero_mean_what_the_rule_says(stage: Stage, kind: str, on_empty: str) -> None:
    sql_type, due, spell = KINDS[kind]
    open_moments(stage, sql_type, due, f', on_empty = "{on_empty}"')
    empty: list[Any] = [None, *ZEROS[kind]]
    add_moments(stage, spell(NOON + HOUR), *empty)
    count = len(empty)
    numbers = list(range(2, count + 2))
    assert over(stage) == (numbers if on_empty == "now" else [])
    assert stage.open() == ({"dead": count} if on_empty == "review" else {})
    assert stage.host.run("select state from moment where id = 1") == [("held",)]


def test_b27_a_rule_without_a_policy_never_ends_an_empty_due(stage: Stage) -> None:
    open_shop(stage)
    add(stage, held(1, None), held(2), held(3, None, due_at="1970-01-01 00:00:00"))
    for _ in range(3):
        stage.drain()
        stage.advance(days=365)
    assert statuses(stage) == {1: "held", 2: "expired", 3: "held"}


def test_b28_grace_is_waited_and_the_shown_date_stays(stage: Stage) -> None:
    """Per tenant by two rules on one table, told apart by what they hold."""
    patient = (
        CART.replace('"cart"', '"patient"')
        .replace('status = "held"', 'status = "held", tenant_id = 1')
        .replace('zone = "UTC"', 'zone = "UTC", grace = "1d"')
    )
    strict = CART.replace('status = "held"', 'status = "held", tenant_id = 2')
    open_shop(stage, patient + strict)
    add(stage, held(1, tenant_id=1), held(2, tenant_id=2))
    shown = stage.host.run("select id, due_at from hold order by id")
    stage.drain()
    assert statuses(stage) == {1: "held", 2: "expired"}
    stage.clock.instant = NOON + timedelta(days=1, minutes=-1) - MICROSECOND
    stage.drain()
    assert statuses(stage) == {1: "held", 2: "expired"}
    stage.clock.instant = NOON + timedelta(days=1, minutes=-1)
    stage.drain()
    assert statuses(stage) == {1: "expired", 2: "expired"}
    assert stage.host.run("select id, due_at from hold order by id") == shown


@pytest.mark.parametrize(
    ("zone", "local", "due_at"),
    [
        ("America/Los_Angeles", "2026-03-10 05:00:00", "2026-03-10 12:00:00"),
        ("UTC", "2026-03-10 12:00:00", "2026-03-10 12:00:00"),
        ("Pacific/Auckland", "2026-03-11 01:00:00", "2026-03-10 12:00:00"),
        ("Europe/Berlin", "2026-03-29 02:30:00", "2026-03-29 01:30:00"),  # skipped: the later one
        ("Europe/Berlin", "2026-10-25 02:30:00", "2026-10-25 01:30:00"),  # repeated: the later one
        ("America/Los_Angeles", "2026-03-08 02:30:00", "2026-03-08 10:30:00"),
        ("America/Los_Angeles", "2026-11-01 01:30:00", "2026-11-01 09:30:00"),
    ],
)
def test_n11_every_local_time_has_one_instant(
    stage: Stage, zone: str, local: str, due_at: str
) -> None:
    open_moments(stage, "timestamp", f'kind = "naive", zone = "{zone}"')
    add_moments(stage, local)
    stage.clock.instant = utc(due_at) - MICROSECOND
    assert over(stage) == []
    stage.clock.instant = utc(due_at)
    assert over(stage) == [1]


@pytest.mark.parametrize(
    ("day", "over_at"),
    [("2026-03-29", "2026-03-29 22:00:00"), ("2026-10-25", "2026-10-25 23:00:00")],
)
def test_n11_a_day_of_23_or_25_hours_is_over_at_its_midnight(
    stage: Stage, day: str, over_at: str
) -> None:
    open_moments(stage, "date", 'kind = "date", zone = "Europe/Berlin"')
    add_moments(stage, day)
    stage.clock.instant = utc(over_at) - MICROSECOND
    assert over(stage) == []
    stage.clock.instant = utc(over_at)
    assert over(stage) == [1]
