"""What a right file and environment become."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from freehold.domain.due import DueKind, DueSpec, EmptyDue
from freehold.domain.inventory import built_in_rule
from freehold.domain.retries import RetryPolicy
from freehold.domain.rules import (
    Again,
    Companion,
    Condition,
    DeleteRow,
    HandlerSpec,
    Now,
    Predicate,
    Rule,
    SetColumns,
    TableName,
    TenantSource,
    Test,
)
from freehold.domain.schedule import Cron, Every, Precise
from freehold.settings import DatabaseSettings, LoopSettings, Settings, load_settings
from freehold.settings.notation import duration_text, read_duration
from freehold.settings.url import masked

LEAST = """
[[rules]]
name = "cart"
table = "carts"
key = ["id"]
held = [{ status = "held" }]
due = { column = "hold_until", kind = "timestamptz" }
expire = { set = { status = "expired" } }
"""
DESIGN = """
[database]
url = "postgresql://app@localhost/app"
[[rules]]
name = "cart"
table = 'public."SelectedSlots"'
key = ["id"]
tenant = { column = "userId" }
held = [{ isSeat = true, paidAt = { is = "null" } }]
due = { column = "releaseAt", kind = "naive", zone = "UTC", grace = "30s" }
fence = ["uid"]
expire = { delete = true }
also = [{ sql = "update stock set free = free + :qty where id = :stock_id;", rows = "1", lock_by = ":stock_id" }]
carry = ["eventTypeId"]
when = "precise"
mode = "reservation"
promise = "60s"
hold_window = "15m"
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def read(text: str, **environ: str) -> Settings:
    Path("freehold.toml").write_text(text, encoding="utf-8")
    return load_settings(None, environ)


def rule_with(lines: str, without: str = "") -> Rule:
    kept = [line for line in LEAST.splitlines() if not without or not line.startswith(without)]
    return read("\n".join([*kept, lines])).rules[0]


def test_nothing_gives_the_defaults() -> None:
    settings = load_settings(None, {})
    assert settings.database == DatabaseSettings()
    assert settings.loops == LoopSettings()
    assert settings.rules == ()
    assert set(settings.origins.values()) == {"default"}


def test_the_least_rule_has_the_defaults_of_the_domain() -> None:
    assert read(LEAST).rules == (
        Rule(
            name="cart",
            table=TableName("carts"),
            key=("id",),
            held=Predicate(((Condition("status", Test.EQUALS, ("held",)),),)),
            due=DueSpec("hold_until", DueKind.INSTANT),
            action=SetColumns((("status", "expired"),)),
        ),
    )


def test_the_design_s_example_is_read() -> None:
    settings = read(DESIGN)
    assert settings.database.url == "postgresql://app@localhost/app"
    assert settings.rules == (
        Rule(
            name="cart",
            table=TableName("SelectedSlots", "public"),
            key=("id",),
            tenant=TenantSource(column="userId"),
            held=Predicate(
                (
                    (
                        Condition("isSeat", Test.EQUALS, (True,)),
                        Condition("paidAt", Test.IS_NULL),
                    ),
                )
            ),
            due=DueSpec("releaseAt", DueKind.NAIVE, "UTC", timedelta(seconds=30)),
            fence=("uid",),
            action=DeleteRow(),
            companions=(
                Companion(
                    "update stock set free = free + :qty where id = :stock_id",
                    rows_min=1,
                    rows_max=1,
                    lock_by="stock_id",
                ),
            ),
            carry=("eventTypeId",),
            promise=timedelta(seconds=60),
            hold_window=timedelta(minutes=15),
        ),
    )


def test_the_row_may_be_the_hold() -> None:
    for held in ("", "held = []"):
        lines = f"{held}\nexpire = {{ delete = true }}"
        text = LEAST.replace('held = [{ status = "held" }]', "")
        text = text.replace('expire = { set = { status = "expired" } }', lines)
        assert read(text).rules[0].held == Predicate()


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("carts", TableName("carts")),
        ("Shop.Carts", TableName("Carts", "Shop")),
        ('public."SelectedSlots"', TableName("SelectedSlots", "public")),
        ('"my shop"."a.b""c"', TableName('a.b"c', "my shop")),
        ("größe", TableName("größe")),
    ],
)
def test_table_names_are_exact(written: str, expected: TableName) -> None:
    assert rule_with(f"table = '{written}'", without="table").table == expected


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("3", Condition("c", Test.EQUALS, (3,))),
        ("true", Condition("c", Test.EQUALS, (True,))),
        ('["a", "b"]', Condition("c", Test.IN, ("a", "b"))),
        ("{ lt = 1.5 }", Condition("c", Test.LESS, (1.5,))),
        ('{ is = "not null" }', Condition("c", Test.IS_NOT_NULL)),
    ],
)
def test_conditions(written: str, expected: Condition) -> None:
    rule = rule_with(f"confirmed = [{{ c = {written} }}]\ncancelled = [{{ d = 1 }}, {{ e = 2 }}]")
    assert rule.confirmed == Predicate(((expected,),))
    assert rule.cancelled is not None
    assert rule.cancelled.columns == ("d", "e")


def test_assignments_may_be_now_and_null() -> None:
    lines = 'expire = { set = { status = "x", at = { now = true }, token = { null = true } } }'
    rule = rule_with(lines, without="expire")
    assert rule.action == SetColumns((("status", "x"), ("at", Now()), ("token", None)))


@pytest.mark.parametrize(
    ("written", "least", "most"),
    [("1", 1, 1), ("0-1", 0, 1), ("1-", 1, None), ("any", 0, None), ("2-10", 2, 10)],
)
def test_row_ranges(written: str, least: int, most: int | None) -> None:
    companion = rule_with(f'also = [{{ sql = "select 1", rows = "{written}" }}]').companions[0]
    assert (companion.rows_min, companion.rows_max) == (least, most)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ('when = "every 10s"', Every(10)),
        ('when = "30s"', Every(30)),
        ('when = "0 3 * * *"\nzone = "Europe/Berlin"', Cron("0 3 * * *", "Europe/Berlin")),
        ('[loops]\npoll = "3s"', Precise(3.0)),
    ],
)
def test_schedules(lines: str, expected: object) -> None:
    assert rule_with(lines).schedule == expected


def test_the_other_settings_of_a_rule() -> None:
    rule = rule_with(
        """
        again = "release"
        attach_limit = 0
        batch = 10000
        retry = { delays = ["1s", "250ms"], jitter = 0 }
        handler = "shop.hooks:released"
        tenant = { constant = "me" }
        due.bound = "exclusive"
        due.on_empty = "review"
        due.column = "d"
        due.kind = "epoch_ms"
        """,
        without="due",
    )
    assert rule.again is Again.RELEASE
    assert (rule.attach_limit, rule.batch_size) == (0, 10_000)
    assert rule.retry == RetryPolicy((timedelta(seconds=1), timedelta(milliseconds=250)), 0.0)
    assert rule.handler == HandlerSpec("shop.hooks:released", timedelta(seconds=15))
    assert rule.tenant == TenantSource(constant="me")
    assert rule.due == DueSpec("d", DueKind.EPOCH_MILLIS, inclusive=False, on_empty=EmptyDue.REVIEW)


def test_the_environment_wins_and_origins_say_so() -> None:
    settings = read(
        '[database]\nurl = "sqlite:///a.db"\nlock_timeout = "1s"',
        FREEHOLD_DATABASE__URL="sqlite:///b.db",
        FREEHOLD_LOOPS__LEASE="1m",
        FREEHOLD_TRACEBACK="1",
        OTHER__URL="x",
    )
    assert settings.database.url == "sqlite:///b.db"
    assert settings.loops.lease == timedelta(minutes=1)
    origins = settings.origins
    assert origins["database.url"] == "FREEHOLD_DATABASE__URL"
    assert origins["database.lock_timeout"] == "freehold.toml"
    assert origins["loops.lease"] == "FREEHOLD_LOOPS__LEASE"
    assert origins["loops.sweep"] == "default"


def test_origins_name_every_setting_of_a_rule() -> None:
    origins = read(LEAST).origins
    assert origins["rules.cart.due.kind"] == "freehold.toml"
    assert origins["rules.cart.due.grace"] == "default"
    assert origins["rules.cart.promise"] == "default"


def test_a_value_may_come_from_a_file_of_its_own(folder: Path) -> None:
    secret = folder / "url"
    secret.write_text("sqlite:///c.db\n", encoding="utf-8")
    settings = read("", FREEHOLD_DATABASE__URL_FILE=str(secret))
    assert settings.database.url == "sqlite:///c.db"
    assert settings.origins["database.url"] == "FREEHOLD_DATABASE__URL_FILE"


def test_pyproject_counts_when_there_is_no_file_of_ours() -> None:
    Path("pyproject.toml").write_text('[tool.freehold.loops]\nlease = "9s"', encoding="utf-8")
    assert load_settings(None, {}).loops.lease == timedelta(seconds=9)
    assert load_settings(None, {}).origins["loops.lease"] == "pyproject.toml"
    assert read('[loops]\nsweep = "8s"').loops.lease == LoopSettings().lease


def test_a_pyproject_of_somebody_else_is_passed_over() -> None:
    Path("pyproject.toml").write_text('tool = "none"', encoding="utf-8")
    assert load_settings(None, {}).rules == ()


def test_a_named_file_counts_alone(folder: Path) -> None:
    read('[loops]\nlease = "9s"')
    (folder / "other.toml").write_text('\ufeff[loops]\nsweep = "8s"', encoding="utf-8")
    settings = load_settings(folder / "other.toml", {})
    assert (settings.loops.lease, settings.loops.sweep) == (
        LoopSettings().lease,
        timedelta(seconds=8),
    )


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("sqlite:///a.db", "sqlite:///a.db"),
        ("postgresql://h/db", "postgresql://h/db"),
        ("postgresql://u:s3@h:1/db", "postgresql://u:***@h:1/db"),
        ("postgresql://u@h/db?password=s3&sslmode=a", "postgresql://u@h/db?password=***&sslmode=a"),
        ("postgresql://u:s3#x@h/db", "***"),
        ("host=h password=s3", "***"),
    ],
)
def test_a_url_is_shown_without_its_password(url: str, shown: str) -> None:
    assert masked(url) == shown


def test_settings_do_not_print_the_url() -> None:
    assert "s3cret" not in repr(read('[database]\nurl = "postgresql://u:s3cret@h/db"'))


@pytest.mark.parametrize("text", ["0s", "250ms", "30s", "90s", "15m", "36h", "2d"])
def test_durations_are_written_as_they_are_read(text: str) -> None:
    assert duration_text(read_duration(text)) == text


def test_built_in_holds_are_off_until_their_table_is_there() -> None:
    assert read("").built_in is None
    settings = read("[holds]\n" + LEAST)
    assert settings.built_in == built_in_rule("sqlite", hold_window=timedelta(minutes=15))
    assert [rule.name for rule in settings.rules] == ["cart", "holds"]
    assert settings.rule("holds") == settings.built_in
    assert settings.origins["holds.promise"] == "default"


def test_built_in_holds_take_what_a_rule_takes() -> None:
    settings = read(
        """
        database.url = "postgresql://h/db"
        [holds]
        name = "stays"
        when = "0 3 * * *"
        zone = "Europe/Berlin"
        hold_window = "1h"
        promise = "10s"
        again = "release"
        attach_limit = 5
        batch = 7
        retry = { delays = ["1s"], jitter = 0 }
        also = [{ sql = "select 1", rows = "1" }]
        """
    )
    assert settings.built_in == built_in_rule(
        "postgres",
        name="stays",
        schedule=Cron("0 3 * * *", "Europe/Berlin"),
        hold_window=timedelta(hours=1),
        promise=timedelta(seconds=10),
        again=Again.RELEASE,
        attach_limit=5,
        batch_size=7,
        retry=RetryPolicy((timedelta(seconds=1),), 0.0),
        companions=(Companion("select 1", rows_min=1, rows_max=1),),
    )
    assert settings.origins["holds.name"] == "freehold.toml"
