"""Tenants that come from a table of the customer's own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from freehold.adapters.sql.ledger import SqlLedger
from freehold.adapters.system import Onwards, StopRequest, SystemClock
from freehold.application import tenants_sync
from freehold.application.tenants_sync import Synced, sync_in_turn, sync_tenants
from freehold.bootstrap import open_ledger
from freehold.domain.errors import RuleRefused
from freehold.domain.inventory import Tenant
from freehold.domain.rules import Condition, Predicate, TableName, Test
from freehold.domain.tenant_mapping import TenantMapping, TenantRow, read_row
from freehold.entrypoints.reporting import Reporting
from freehold.ports.telemetry import UNHEARD
from freehold.settings import DatabaseSettings, Settings, load_settings
from freehold.testing.backdoor import BackDoor
from freehold.testing.clock import SetClock
from tests.contract.grounds import ground_at
from tests.e2e.inprocess import Program

TABLE = "create table property (code text primary key, title text, zone text, hour {any}, mails {many}, state text)"
MAPPING = TenantMapping(
    TableName("property"),
    "code",
    name="title",
    zone="zone",
    report_hour="hour",
    recipients="mails",
    active=Predicate(((Condition("state", Test.EQUALS, ("live",)),),)),
)
INSERT = "insert into property values (:code, :title, :zone, :hour, :mails, :state)"


class Properties:
    """The customer's table, seen by its owner."""

    def __init__(self, door: BackDoor) -> None:
        self.door = door
        postgres = door.dialect == "postgres"
        kinds = {"any": "text", "many": "text[]"} if postgres else {"any": "any", "many": "text"}
        door.script(TABLE.format(**kinds))

    def put(
        self, code: str, *mails: str, title: str = "T", zone: str | None = None, **more: str
    ) -> None:
        """Write one row."""
        self.door.execute("delete from property where code = :code", code=code)
        written = list(mails) if self.door.dialect == "postgres" else "; ".join(mails)
        values = {"hour": None, "state": "live", **more}
        self.door.execute(INSERT, code=code, title=title, zone=zone, mails=written, **values)

    def remove(self, *codes: str) -> None:
        """Take rows out."""
        for code in codes:
            assert self.door.execute("delete from property where code = :code", code=code) == 1


@pytest.fixture
def ledger(migrated_url: str) -> Iterator[SqlLedger]:
    """An empty ledger."""
    with (
        ground_at(migrated_url),
        closing(open_ledger(Settings(DatabaseSettings(migrated_url)), considerate=False)) as ledger,
    ):
        yield ledger


@pytest.fixture
def properties(ledger: SqlLedger, migrated_url: str) -> Iterator[Properties]:
    """The customer's table, empty."""
    with BackDoor(migrated_url) as door:
        yield Properties(door)
        ledger.close()
        door.execute("drop table if exists property")


def tenants(ledger: SqlLedger) -> dict[str, Tenant]:
    with ledger.transaction() as tx:
        return {one.id: one for one in tx.tenants.find("", 1000)}


def test_the_table_is_followed(
    ledger: SqlLedger, properties: Properties, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tenants_sync, "PAGE", 2)
    for code in "abcde":
        properties.put(code, f"{code}@x.example", zone="Europe/Berlin", hour="07:00")
    assert sync_tenants(ledger, MAPPING) == Synced(seen_count=5, new_count=5)
    assert tenants(ledger)["c"] == Tenant("c", "T", "Europe/Berlin", 7, ("c@x.example",))
    again = sync_tenants(ledger, MAPPING)
    assert again == Synced(seen_count=5, known_count=5)
    properties.put("a", "new@x.example", "a@x.example", title="Harbour")
    properties.put("b", state="sold")
    properties.remove("d")
    third = sync_tenants(ledger, MAPPING)
    assert third == Synced(4, changed_count=2, retired_count=1, known_count=5, lost_count=2)
    found = tenants(ledger)
    assert found["a"] == Tenant("a", "Harbour", recipients=("new@x.example", "a@x.example"))
    assert {one.id: one.active for one in found.values()} == {
        "a": True, "b": False, "c": True, "d": False, "e": True,
    }  # fmt: skip
    properties.put("d", "d@x.example")
    back = sync_tenants(ledger, MAPPING)
    assert (back.changed_count, back.new_count) == (1, 0)
    assert tenants(ledger)["d"].active


def test_a_bad_row_keeps_its_last_good_state_and_stops_no_other(
    ledger: SqlLedger, properties: Properties
) -> None:
    for code in "abc":
        properties.put(code, f"{code}@x.example")
    sync_tenants(ledger, MAPPING)
    before = tenants(ledger)["b"]
    properties.put("b", "Desk <b@x.example>", title="other")
    properties.put("c", zone="Mars/Olympus")
    properties.put("d", hour="25")
    properties.put("e", "e@x.example", "e@x.example\r\nBcc: all@x.example")
    properties.put("f", title="x" * 201)
    properties.put("g", "g@x.example")
    synced = sync_tenants(ledger, MAPPING)
    assert (synced.rejected_count, synced.new_count, synced.retired_count) == (5, 1, 0)
    reasons = {one.id: one.reason for one in synced.rejected}
    assert list(reasons) == list("bcdef")
    assert reasons["b"].startswith("recipients must be a plain mail address")
    assert reasons["c"] == "zone must be a name such as Europe/Berlin or UTC"
    assert reasons["d"] == "report_hour must be a whole hour from 0 to 23"
    assert "all@x" not in str(reasons)
    assert tenants(ledger)["b"] == before
    assert tenants(ledger)["c"].recipients == ("c@x.example",)
    assert "d" not in tenants(ledger)


def test_where_more_than_half_is_gone_nothing_is_changed_until_it_is_confirmed(
    ledger: SqlLedger, properties: Properties
) -> None:
    for code in "abcd":
        properties.put(code)
    sync_tenants(ledger, MAPPING)
    properties.remove("a", "b")
    properties.put("c", state="sold")
    properties.put("e")
    before = tenants(ledger)
    for trial in (True, False):
        synced = sync_tenants(ledger, MAPPING, trial=trial)
        assert synced.refusal is not None
        assert "has lost 3 of the 4 active tenants" in synced.refusal
        assert tenants(ledger) == before
    properties.remove("c", "d", "e")
    assert sync_tenants(ledger, MAPPING).refusal is not None
    assert tenants(ledger) == before
    assert sync_tenants(ledger, MAPPING, confirmed=True).retired_count == 4
    assert not any(one.active for one in tenants(ledger).values())
    assert sync_tenants(ledger, MAPPING) == Synced()


def test_half_may_go_without_asking(ledger: SqlLedger, properties: Properties) -> None:
    for code in "abcd":
        properties.put(code)
    sync_tenants(ledger, MAPPING)
    properties.remove("a", "d")
    assert sync_tenants(ledger, MAPPING).retired_count == 2


def test_a_tenant_that_a_person_added_is_taken_over_once_and_others_stay(
    ledger: SqlLedger, properties: Properties
) -> None:
    with ledger.transaction() as tx:
        tx.tenants.add([Tenant("a", "by hand", locale="de"), Tenant("z", "by hand")])
    properties.put("a", "a@x.example")
    synced = sync_tenants(ledger, MAPPING)
    assert (synced.taken_over, synced.taken_over_count, synced.new_count) == (["a"], 1, 0)
    assert sync_tenants(ledger, MAPPING).taken_over == []
    assert tenants(ledger)["a"] == Tenant("a", "T", recipients=("a@x.example",), locale="de")
    properties.remove("a")
    sync_tenants(ledger, MAPPING, confirmed=True)
    assert {one.id: one.active for one in tenants(ledger).values()} == {"a": False, "z": True}
    acts = properties.door.rows("select actor, action, subject from {s}action")
    assert acts == [("[tenants]", "tenant taken over", "a")]


def test_a_trial_changes_nothing(ledger: SqlLedger, properties: Properties) -> None:
    properties.put("a")
    assert sync_tenants(ledger, MAPPING, trial=True).new_count == 1
    assert tenants(ledger) == {}


def test_a_table_that_is_not_there_changes_nothing(ledger: SqlLedger) -> None:
    with pytest.raises(RuleRefused, match=r"table property of \[tenants\] is not there"):
        sync_tenants(ledger, MAPPING)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        (None, ()),
        (" ", ()),
        ("[]", ()),
        ('["a@x", null, " b@x "]', ("a@x", "b@x")),
        ("a@x,b@x\nc@x", ("a@x", "b@x", "c@x")),
    ],
)
def test_recipients_come_in_several_shapes(text: str | None, read: tuple[str, ...]) -> None:
    found = read_row(TenantRow("t", {"recipients": text}, active=True))
    assert found == {"id": "t", "active": True, "recipients": read}


@pytest.mark.parametrize("text", ["[1]", "[", '[["a@x"]]', '["a@x;b@x"]', '{"a": 1}', "[" * 9999])
def test_what_is_no_list_of_addresses_is_an_error_of_the_row(text: str) -> None:
    with pytest.raises(ValueError, match="recipients must be"):
        read_row(TenantRow("t", {"recipients": text}, active=True))


@pytest.mark.parametrize("text", ["", "x" * 201, "a\0b"])
def test_an_id_that_no_index_holds_is_an_error_of_the_row(text: str) -> None:
    with pytest.raises(ValueError, match="A tenant id is a text"):
        read_row(TenantRow(text, {}, active=True))


def test_what_people_write_is_read() -> None:
    values = {"name": " ", "zone": " UTC ", "report_hour": " 7:00:00", "locale": "de_AT"}
    read = {"name": "t", "zone": "UTC", "report_hour": 7, "locale": "de-AT"}
    assert read_row(TenantRow("t", values, active=False)) == {"id": "t", "active": False, **read}


def test_the_command_says_what_was_done(
    tmp_path: Path,
    sqlite_url: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    freehold = Program(tmp_path, monkeypatch, capsys)
    freehold.write("freehold.toml", "[database]", f'url = "{sqlite_url}"')
    assert freehold("db", "upgrade").code == 0
    ended = freehold("tenant", "sync")
    assert (ended.code, "There is no table of tenants to read" in ended.sentence) == (2, True)
    mapping = ("[tenants]", 'table = "property"', 'id = "code"', 'recipients = "mails"')
    freehold.write("freehold.toml", "[database]", f'url = "{sqlite_url}"', *mapping)
    assert freehold("tenant", "sync").code == 6
    with BackDoor(sqlite_url) as door:
        properties = Properties(door)
        properties.put("a", "a@x.example")
        properties.put("b", "nonsense")
        assert freehold("tenant", "sync", "--dry-run").out.startswith("2 rows read: would be 1 new")
        ended = freehold("tenant", "sync")
        assert (ended.code, ended.out) == (4, "2 rows read: 1 new\n")
        assert "b: left out, since recipients must be" in ended.err
        assert "1 of 2 rows of table property cannot be used" in ended.err
        properties.put("b", "b@x.example")
        assert freehold("tenant", "sync").out == "2 rows read: 1 new\n"
        assert freehold("tenant", "sync").out == "2 rows read: all as before\n"
        properties.remove("a", "b")
        ended = freehold("tenant", "sync")
        assert (ended.code, "has lost 2 of the 2" in ended.sentence) == (6, True)
        assert freehold("tenant", "sync", "--confirm").code == 0
    listed = freehold("tenant", "list", "--json").data
    assert [(one["id"], one["active"], one["from_source"]) for one in listed] == [
        ("a", False, True),
        ("b", False, True),
    ]


REPORT = ("[report]", 'sender = "r@x.example"', "[report.maildir]", 'path = "mails"')


def test_the_service_and_the_one_shot_follow_the_table(
    tmp_path: Path,
    sqlite_url: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    freehold = Program(tmp_path, monkeypatch, capsys)
    mapping = ("[tenants]", 'table = "property"', 'id = "code"', 'every = "7m"')
    freehold.write("freehold.toml", "[database]", f'url = "{sqlite_url}"', *REPORT, *mapping)
    assert freehold("db", "upgrade").code == 0
    monkeypatch.chdir(tmp_path)
    ended = freehold("report", "run")
    assert "table property of [tenants] is not there" in ended.err
    settings = load_settings(None, {})
    loops = Reporting(settings, Onwards(), UNHEARD, StopRequest()).loops()
    (tenants_loop,) = (one for one in loops if one.name == "tenants")
    with BackDoor(sqlite_url) as door:
        properties = Properties(door)
        properties.put("a")
        assert freehold("report", "run").code == 0
        properties.put("b")
        assert tenants_loop.step() == 7 * 60
    for one in loops:
        one.close()
    assert [one["id"] for one in freehold("tenant", "list", "--json").data] == ["a", "b"]


@pytest.mark.usefixtures("ledger")
def test_a_one_shot_reads_the_table_once_in_a_turn(properties: Properties) -> None:
    back = properties.door
    properties.put("a")

    def read_at(instant: datetime) -> int | None:
        settings = Settings(DatabaseSettings(back.url))
        with closing(open_ledger(settings, clock=SetClock(instant), considerate=False)) as ledger:
            synced = sync_in_turn(ledger, MAPPING, "here", SystemClock())
        return None if synced is None else synced.seen_count

    turn = datetime(2031, 5, 6, 7, 20, tzinfo=UTC)
    minute = timedelta(minutes=1)
    back.execute("alter table property rename to away")
    with pytest.raises(RuleRefused):
        read_at(turn)
    back.execute("alter table away rename to property")
    assert [read_at(turn + n * minute) for n in (1, 1, 9, 10, 19, 40)] == [
        1,
        None,
        None,
        1,
        None,
        1,
    ]
    assert read_at(turn - 60 * minute) == 1  # the clock was set back
    ticks = back.rows("select outcome, found_count from {s}tick where schedule = '[tenants]'")
    assert ticks == [("done", 1)] * 4
