"""`tenant`, `unit` and `hold` as a person types them.

What asks the stores differently runs on every database; what is words only, on SQLite.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from freehold.testing.backdoor import BackDoor
from tests.e2e.inprocess import Program

STAY = ("--from", "2099-07-01T15:00", "--to", "2099-07-03T11:00")
HEADER = "tenant,unit,starts_at,ends_at,hold_until,reference,guest"


@pytest.fixture
def alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Program:
    """The program in an empty folder."""
    return Program(tmp_path, monkeypatch, capsys)


@pytest.fixture
def freehold(alone: Program, database_url: str) -> Program:
    """The program with built-in holds, one tenant and two rooms, on every database."""
    return prepared(alone, database_url)


@pytest.fixture
def lite(alone: Program, sqlite_url: str) -> Program:
    """The same on SQLite only."""
    return prepared(alone, sqlite_url)


def prepared(program: Program, url: str) -> Program:
    program.write("freehold.toml", "[database]", f'url = "{url}"', "[holds]")
    assert program("db", "upgrade").code == 0
    assert program("tenant", "add", "harbour", "--zone", "Europe/Berlin").code == 0
    assert program("unit", "add", "-t", "harbour", "Room 1", "Room 2").code == 0
    return program


def create(freehold: Program, *more: str, unit: str = "Room 1") -> dict[str, Any]:
    words = ("hold", "create", "-t", "harbour", "-u", unit, *more)
    ended = freehold("--json", *words)
    assert ended.code == 0, ended.err
    found: dict[str, Any] = ended.data
    return found


def test_a_hold_is_granted_renewed_confirmed_and_cancelled(freehold: Program) -> None:
    made = create(freehold, *STAY, "--for", "15m", "--reference", "o-1")
    assert (made["status"], made["unit"], made["new"]) == ("held", "Room 1", True)
    assert made["starts_at"] == "2099-07-01T13:00:00+00:00"
    again = create(freehold, *STAY, "--reference", "o-1")
    assert (again["id"], again["token"], again["new"]) == (made["id"], made["token"], False)
    renewed = freehold("hold", "renew", made["token"], "--until", "2099-01-01 00:00", "--json").data
    assert renewed["hold_until"] == "2098-12-31T23:00:00+00:00"
    old = freehold("hold", "confirm", made["token"])
    assert (old.code, old.out) == (2, "")
    assert old.sentence.startswith("freehold: No hold has this token")
    confirmed = freehold("hold", "confirm", renewed["token"])
    assert (confirmed.code, confirmed.err) == (0, "")
    assert "confirmed" in confirmed.out
    assert renewed["token"] not in confirmed.out
    assert freehold("hold", "renew", renewed["token"]).code == 6
    assert freehold("hold", "cancel", renewed["token"]).code == 0
    assert freehold("hold", "show", made["id"], "--json").data["status"] == "cancelled"
    create(freehold, *STAY)


def test_what_is_in_the_way_is_told_with_its_end(lite: Program) -> None:
    made = create(lite, *STAY, "--until", "2099-01-01")
    refused = lite(
        *("hold", "create", "-t", "harbour", "-u", "Room 1"),
        *("--from", "2099-07-02", "--to", "2099-07-05"),
    )
    assert refused.code == 6
    assert f"by hold {made['id']} until 2098-12-31 23:00:00 UTC" in refused.sentence
    create(lite, "--from", "2099-07-03T11:00", "--to", "2099-07-05")
    lite("hold", "confirm", made["token"])
    taken = lite("hold", "create", "-t", "harbour", "-u", "Room 1", *STAY)
    assert taken.code == 6
    assert "which is confirmed" in taken.sentence


def test_a_list_of_two_zones_cuts_nothing_at_80_columns(lite: Program) -> None:
    assert lite("tenant", "add", "lagoon").code == 0
    assert lite("unit", "add", "-t", "lagoon", "Pitch 3").code == 0
    made = create(lite, *STAY, "--reference", "order-4711")
    assert lite("hold", "create", "-t", "lagoon", "-u", "Pitch 3").code == 0
    text = lite("hold", "list").out
    assert "order-4711" in text
    assert "…" not in text
    assert made["token"] in lite("hold", "list", "--tokens").out


def test_a_list_shows_tokens_only_when_asked(freehold: Program) -> None:
    made = create(freehold, "--reference", "o-1")
    create(freehold, unit="Room 2")
    for words in ((), ("-t", "harbour"), ("-t", "harbour", "-u", "Room 1", "--status", "held")):
        text = freehold("hold", "list", *words)
        assert "o-1" in text.out
        assert made["token"] not in text.out
        assert "token" not in freehold("hold", "list", *words, "--json").data[0]
        assert made["token"] in freehold("hold", "list", *words, "--tokens").out
    shown = freehold("hold", "show", "--tenant", "harbour", "--reference", "o-1", "--json").data
    assert shown["id"] == made["id"]
    assert freehold("hold", "show", made["token"], "--json").data == shown
    page = freehold("hold", "list", "--limit", "1")
    assert page.err == f"there may be more: --after {made['id']}\n"
    (rest,) = freehold("hold", "list", "--after", made["id"], "--json").data
    assert rest["unit"] == "Room 2"


MISTAKES = {
    "hold create -t harbour -u Attic": "Tenant 'harbour' has no unit 'Attic'",
    "hold create -t nobody -u Attic": "There is no tenant 'nobody'",
    "hold create -t harbour -u Room --from 2099-01-01": "has no unit 'Room'",
    "hold create -t harbour -u 1 --for soon": "--for is no duration: write 250ms",
    "hold create -t harbour -u 1 --for 1m --until 2099-01-01": "Give --for or --until, not both.",
    "hold create -t harbour -u 1 --until 2020-01-01": "A hold must end in the future",
    "hold create -t harbour -u 1 --from 2099-01-01": "A stay has two ends",
    "hold create -t harbour -u 1 --from 2099-01-02 --to 2099-01-01": "must end after it starts",
    "hold create -t harbour -u 1 --from 2027-03-28T02:30 --to 2099-01-01": "--from is a local time "
    "that is skipped in Europe/Berlin",
    "hold create -t harbour -u 1 --until 2027-10-31T02:30": "--until is a local time that comes "
    "twice in Europe/Berlin",
    "hold confirm secret": "That is no hold token",
    "hold cancel 12345678-1234-1234-1234-123456789abc": "No hold has this token",
    "hold show 99": "There is no such hold",
    "hold show 99999999999999999999": "There is no such hold",
    "hold show": "Name either an id or a token",
    "hold list --status held": "within a tenant or a unit",
    "hold list --unit 1": "--unit needs --tenant",
    "hold import none.csv": "none.csv does not exist",
    "unit add -t nobody 1": "There is no tenant 'nobody'",
    "tenant add x --zone Mars/Base": "Zone must be a name such as Europe/Berlin",
    "tenant add x --locale german!": "Locale must be a name such as en",
    "tenant add x --recipient somebody": "Recipients must be a plain mail address",
    "tenant set harbour --by ann": "Nothing to change",
    "tenant set nobody --name x --by ann": "There is no tenant 'nobody'",
}


def test_mistakes_are_sentences(lite: Program) -> None:
    lite("unit", "add", "-t", "harbour", "1")
    for words, says in MISTAKES.items():
        ended = lite(*words.split())
        assert (ended.code, ended.out) == (2, ""), words
        assert says in ended.sentence, words
        assert "secret" not in ended.err
    for kind in ("hold", "unit"):
        assert lite(kind, "list", "--after", "9" * 20).code == 2, kind


def test_holds_are_refused_while_they_are_off(lite: Program) -> None:
    (lite.folder / "freehold.toml").write_text("")
    for words in ("list", "create -u 1 -t 1"):
        ended = lite("hold", *words.split())
        assert ended.code == 2
        assert "The built-in holds are off; add a table [holds]" in ended.sentence


def test_a_changed_tenant_is_in_the_action_log(lite: Program, sqlite_url: str) -> None:
    assert lite("tenant", "add", "harbour", "--zone", "Europe/Berlin").code == 0
    other = lite("tenant", "add", "harbour")
    assert other.code == 6
    assert "change it with `freehold tenant set harbour" in other.sentence
    words = ("--report-hour", "7", "--recipient", "desk@harbour.example", "--by", "ann")
    for said in ("changed", "was just so already"):
        assert lite("tenant", "set", "harbour", *words, "--reason", "new desk").out == (
            f"harbour: {said}\n"
        )
    (tenant,) = lite("tenant", "list", "--json").data
    assert (tenant["zone"], tenant["report_hour"]) == ("Europe/Berlin", 7)
    assert tenant["recipients"] == ["desk@harbour.example"]
    assert "desk@harbour.example" in lite("tenant", "list").out
    with BackDoor(sqlite_url) as door:
        log = door.rows("select actor, action, subject, reason, before, after from {s}action")
    assert [tuple(row) for row in log] == [
        (
            *("ann", "tenant set", "harbour", "new desk"),
            "report_hour none; recipients none",
            "report_hour 7; recipients desk@harbour.example",
        )
    ]
    assert lite("unit", "list", "-t", "harbour", "--json").data[1]["name"] == "Room 2"


def test_lapsed_holds_are_released_by_the_service(freehold: Program) -> None:
    lines = [f"harbour,Room 1,2020-01-0{n},2020-01-0{n + 1},2020-01-01,o-{n}," for n in (1, 2)]
    assert freehold("hold", "import", freehold.write("h.csv", HEADER, *lines)).code == 0
    assert "held, lapsed" in freehold("hold", "list").out
    create(freehold, "--from", "2020-01-01", "--to", "2020-01-02")
    assert freehold("run", "--until-idle").code == 0
    assert freehold("audit").code == 0
    found = freehold("hold", "list", "--json").data
    assert [one["status"] for one in found] == ["expired", "expired", "held"]


def test_an_import_takes_what_is_right_and_keeps_the_rest(freehold: Program) -> None:
    until = (datetime.now(UTC) + timedelta(days=1)).isoformat(timespec="seconds")
    secret = "Ann-Kathrin Canary"
    name = freehold.write(
        "h.csv",
        HEADER,
        f"harbour,Room 1,2099-01-01,2099-01-03,{until},a,{secret}",
        f"harbour,Room 1,2099-01-02,2099-01-04,{until},b,{secret}",
        f"harbour,Attic,2099-01-02,2099-01-04,{until},c,{secret}",
        f"harbour,Room 2,2027-03-28 02:30,2099-01-04,{until},d,{secret}",
        f'harbour,Room 2,2099-01-02,2099-01-04,{until},e,"{secret}',
        f"harbour,Room 2,,,{until},,{secret}",
    )
    ended = freehold("hold", "import", name)
    assert ended.code == 4
    assert "2 new, 0 there already, 4 rejected" in ended.out
    assert "not read: 1 other column\n" in ended.out
    assert "Canary" not in ended.out + ended.err
    rejects = (freehold.folder / "h.rejects.csv").read_text()
    assert [line.split(",")[0] for line in rejects.splitlines()] == ["line", "3", "4", "5", "6"]
    assert "3,its stay overlaps another of the same unit," in rejects
    assert rejects.count(secret) == 4
    assert (freehold.folder / "h.rejects.csv").stat().st_mode & 0o077 == 0
    again = freehold("--json", "hold", "import", name, "--create-units")
    assert (again.code, again.data["new"], again.data["there_already"]) == (4, 1, 2)
    assert (again.data["rejected"], again.data["created_tenants_and_units"]) == (3, 1)
    holds = freehold("hold", "list", "--json", "--tokens").out
    assert "Canary" not in holds
    assert holds.count('"reference": "line:') == 1


def test_a_dry_run_says_the_same_and_writes_nothing(lite: Program) -> None:
    name = lite.write("h.csv", HEADER, "new,1,,,2099-01-01,a,", "new,2,,,soon,b,")
    dry = lite("--json", "hold", "import", name, "--create-units", "--dry-run")
    assert (dry.code, dry.data["new"], dry.data["rejected"]) == (3, 1, 1)
    assert lite("hold", "list", "--json").data == []
    assert [one["id"] for one in lite("tenant", "list", "--json").data] == ["harbour"]


def test_tenants_and_units_are_imported_from_stdin(freehold: Program) -> None:
    tenants = b"\xef\xbb\xbfid,name,zone,recipients,active\r\n" + b"".join(
        b"t%d,Tenant %d,Asia/Tokyo,a@x.example; b@x.example,yes\r\n" % (n, n) for n in range(3)
    )
    bad = b"harbour,other,UTC,,\nt9,x,Mars/Base,,\n"
    ended = freehold("tenant", "import", "-", stdin=tenants + bad)
    assert ended.code == 4
    assert "3 new, 0 there already, 2 rejected" in ended.out
    assert "it is there with other values" in ended.out
    assert (freehold.folder / "stdin.rejects.csv").exists()
    units = b"name,tenant,active\n1,t1,\n2,t1,no\n1,nobody,\n"
    ended = freehold("unit", "import", "-", "--rejects", "u.csv", stdin=units)
    assert (ended.code, "2 new" in ended.out) == (4, True)
    (left, inactive) = freehold("unit", "list", "-t", "t1", "--json").data
    assert (left["active"], inactive["active"]) == (True, False)
    assert freehold("tenant", "import", "-", stdin=tenants).code == 0
    assert not (freehold.folder / "stdin.rejects.csv").exists()


def test_a_file_of_somebody_else_is_not_written_over(lite: Program) -> None:
    name = lite.write("h.csv", HEADER, "x")
    lite.write("h.rejects.csv", "mine")
    ended = lite("hold", "import", name)
    assert ended.code == 6
    assert "is no file of rejected lines; name another with --rejects" in ended.sentence
    assert (lite.folder / "h.rejects.csv").read_text() == "mine\n"


def test_a_line_that_the_database_refuses_keeps_no_other_out(
    lite: Program, sqlite_url: str
) -> None:
    with BackDoor(sqlite_url) as door:
        door.script(
            "create trigger refuse before insert on {s}hold when new.reference like 'bad%'"
            " begin select raise(abort, 'Ann Canary is not wanted'); end;"
        )
    lines = [
        f"harbour,Room {n % 9},,,2099-01-01,{'bad' if n in (3, 7) else 'r'}{n}," for n in range(9)
    ]
    lite.write("h.csv", HEADER, *lines)
    ended = lite("--json", "hold", "import", "h.csv", "--create-units")
    assert (ended.code, ended.data["new"], ended.data["rejected"]) == (4, 7, 2)
    rejects = (lite.folder / "h.rejects.csv").read_text()
    assert rejects.count("the database refused the line") == 2
    assert "Canary" not in rejects + ended.out + ended.err
    text = lite("hold", "import", "h.csv", "--create-units").out
    assert "line 5  the database refused the line" in text
    assert "Canary" not in text


def test_two_lines_with_one_token_are_one_and_a_rejected_one(lite: Program) -> None:
    token = "12345678-1234-1234-1234-123456789abc"
    lite.write(
        "h.csv",
        "tenant,unit,hold_until,token",
        *(f"harbour,Room {n},2099-01-01,{token}" for n in (1, 2)),
    )
    ended = lite("hold", "import", "h.csv")
    assert ended.code == 4
    assert "line 3  its token is that of another hold" in ended.out
    assert token not in ended.out
