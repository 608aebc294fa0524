"""`freehold config` and `freehold init` as a person runs them: real processes, real files."""

from __future__ import annotations

import json
import re
import sqlite3
import tomllib
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from tests.e2e.command import freehold
from tests.unit.test_settings import LEAST

SECRET_URL = "postgresql://app:s3cret@localhost:1/shop"
TABLE = """create table "Cart Items" (
    id integer primary key, tenant_id integer not null, status varchar(20) not null,
    hold_token text, hold_until {instant}, "odd
name" integer)"""


def write(folder: Path, text: str) -> None:
    (folder / "freehold.toml").write_text(text, encoding="utf-8")


BAD_FILES = {
    "unknown key": ('[databse]\nurl = "{url}"', "did you mean 'database'?"),
    "bad url": ('[database]\nurl = "mysql://app:s3cret@h/d"', "must begin with sqlite:///"),
    "bad toml": ('[database\nurl = "{url}"', "is no valid TOML"),
    "wrong type": ("[loops]\nlease = 30", "must be a duration in quotes"),
    "second of two urls": ('[database]\nurl = "{url}"\nurl = "{url}"', "is no valid TOML"),
}


@pytest.mark.parametrize(
    ("mistake", "command"),
    [*((mistake, "config check") for mistake in BAD_FILES), ("bad url", "run --until-idle")],
)
def test_a_bad_file_ends_in_a_sentence(tmp_path: Path, mistake: str, command: str) -> None:
    text, says = BAD_FILES[mistake]
    write(tmp_path, text.replace("{url}", SECRET_URL))
    ended = freehold(*command.split(), cwd=tmp_path)
    assert ended.code == 2
    assert ended.out == ""
    assert ended.err.startswith("freehold: freehold.toml")
    assert says in ended.err
    assert ended.err.count("\n") == 1
    assert "s3cret" not in ended.err
    assert "Traceback" not in ended.err
    assert [path.name for path in tmp_path.iterdir()] == ["freehold.toml"]


def test_a_missing_file_and_a_bad_variable(tmp_path: Path) -> None:
    missing = freehold("--config", "none.toml", "config", "check", cwd=tmp_path)
    assert missing.code == 2
    assert missing.err == ("freehold: none.toml does not exist; write it with freehold init.\n")
    variable = freehold("config", "check", FREEHOLD_DATABASE_URL=SECRET_URL, cwd=tmp_path)
    assert variable.code == 2
    assert "did you mean FREEHOLD_DATABASE__URL?" in variable.err
    assert "s3cret" not in variable.err


def test_check_says_what_it_read(tmp_path: Path) -> None:
    write(tmp_path, LEAST)
    text = freehold("config", "check", cwd=tmp_path)
    assert (text.code, text.err) == (0, "")
    right, away = text.out.splitlines()
    assert right == "the settings are right (freehold.toml; rules: cart)"
    assert away.startswith("the database does not answer (")
    data = freehold("--json", "config", "check", cwd=tmp_path).data
    assert (data["right"], data["findings"]) == (True, [])
    assert (data["file"], data["rules"]) == ("freehold.toml", ["cart"])
    assert data["database"] != "answers"
    assert [path.name for path in tmp_path.iterdir()] == ["freehold.toml"]


def test_check_points_to_doctor_where_the_database_answers(
    tmp_path: Path, database_url: str
) -> None:
    make_table(database_url)
    write(tmp_path, LEAST)
    environ = {"FREEHOLD_DATABASE__URL": database_url}
    text = freehold("config", "check", cwd=tmp_path, **environ)
    assert text.out.splitlines()[1] == "the database answers; next: freehold doctor"
    assert (
        freehold("--json", "config", "check", cwd=tmp_path, **environ).data["database"] == "answers"
    )


def test_check_says_all_that_is_wrong_at_once(tmp_path: Path) -> None:
    twice = LEAST.replace("[[rules]]", '[loops]\nleese = "30s"\n[[rules]]')
    odd = LEAST.replace('"cart"', '"second"').replace('status = "expired"', "id = 1")
    write(tmp_path, twice + odd + odd)
    environ = {"FREEHOLD_LOOPS__POL": "1s", "FREEHOLD_DATABASE_URL": SECRET_URL}
    ended = freehold("config", "check", cwd=tmp_path, **environ)
    lines = ended.err.removeprefix("freehold: ").splitlines()
    assert ended.code == 2
    assert lines[0] == (
        "FREEHOLD_DATABASE_URL names no setting; did you mean FREEHOLD_DATABASE__URL?"
    )
    assert lines[1].startswith("FREEHOLD_LOOPS__POL names no setting; did you mean")
    assert lines[2] == "freehold.toml: loops.leese is unknown; did you mean 'lease'?"
    assert "rules[2].name 'second' is the name of rules[1] too" in lines[3]
    assert "rules[1].expire.set changes the key column 'id'" in lines[4]
    data = freehold("--json", "config", "check", cwd=tmp_path, **environ)
    assert (data.code, data.err) == (2, "")
    assert data.data == {"right": False, "findings": lines}
    assert SECRET_URL not in ended.err + data.out


def test_a_wrong_rule_hides_no_mistake_of_another(tmp_path: Path) -> None:
    first = LEAST.replace("[[rules]]", "[[rules]]\nmod = 1")
    odd = LEAST.replace('"cart"', '"second"').replace('status = "expired"', "id = 1")
    write(tmp_path, first + odd)
    lines = freehold("config", "check", cwd=tmp_path).err.splitlines()
    assert "rules[0].mod is unknown; did you mean 'mode'? (rule 'cart')." in lines[0]
    assert "rules[1].expire.set changes the key column 'id'" in lines[1]


def test_show_masks_the_password_and_names_origins(tmp_path: Path) -> None:
    write(tmp_path, LEAST)
    (tmp_path / "secret").write_text(SECRET_URL + "\n", encoding="utf-8")
    environ = {"FREEHOLD_DATABASE__URL_FILE": "secret"}
    text = freehold("config", "show", "--origin", cwd=tmp_path, **environ)
    assert text.code == 0
    lines = [[part.strip() for part in line.split("  # ")] for line in text.out.splitlines()]
    assert [
        'database.url = "postgresql://app:***@localhost:1/shop"',
        "FREEHOLD_DATABASE__URL_FILE",
    ] in lines
    assert ['rules.cart.held = [{ status = "held" }]', "freehold.toml"] in lines
    assert ["rules.cart.batch = 500", "default"] in lines
    data = freehold("--json", "config", "show", cwd=tmp_path, **environ)
    found = {one["name"]: one for one in json.loads(data.out)}
    assert found["rules.cart.due.column"]["value"] == "hold_until"
    assert found["loops.lease"] == {"name": "loops.lease", "value": "30s", "origin": "default"}
    assert "s3cret" not in text.out + data.out


def test_the_schema_is_json(tmp_path: Path) -> None:
    schema = json.loads(freehold("config", "schema", cwd=tmp_path).out)
    assert set(schema["properties"]) >= {"database", "loops", "rules"}


def test_init_writes_a_right_file_and_never_over_one(tmp_path: Path) -> None:
    assert freehold("init", cwd=tmp_path).code == 0
    assert freehold("config", "check", cwd=tmp_path).code == 0
    before = (tmp_path / "freehold.toml").read_text(encoding="utf-8")
    again = freehold("init", cwd=tmp_path)
    assert again.code == 6
    assert again.err == (
        "freehold: freehold.toml exists and is not overwritten; name another with --config.\n"
    )
    assert (tmp_path / "freehold.toml").read_text(encoding="utf-8") == before
    write(tmp_path, uncommented(before))
    assert freehold("config", "check", cwd=tmp_path).out.splitlines()[0].endswith("rules: cart)")


def test_init_turns_the_built_in_holds_on(tmp_path: Path) -> None:
    assert freehold("init", "--holds", cwd=tmp_path).code == 0
    checked = freehold("config", "check", cwd=tmp_path)
    assert checked.out.splitlines()[0].endswith("rules: holds)")
    text = (tmp_path / "freehold.toml").read_text(encoding="utf-8")
    every = re.sub(
        r"^# (\w+ = )", r"\1", text.partition("[holds]")[2].partition("\n\n")[0], flags=re.MULTILINE
    )
    write(tmp_path, f"[holds]{every}")
    assert freehold("config", "check", cwd=tmp_path).out == checked.out


def uncommented(text: str) -> str:
    """Take the comment signs off, from the drafted rule on."""
    head, sign, rule = text.partition("# [[rules]]\n")
    return head + sign[2:] + "\n".join(line.removeprefix("# ") for line in rule.splitlines())


def test_init_writes_nothing_where_the_table_cannot_be_read(tmp_path: Path) -> None:
    for url in (SECRET_URL, "sqlite:///none.db"):
        ended = freehold("init", "--url", url, "--table", "carts", cwd=tmp_path)
        assert ended.code == 5
        assert "cannot be reached" in ended.sentence
        assert "s3cret" not in ended.err
        assert list(tmp_path.iterdir()) == []


def test_init_guesses_no_number_of_a_status(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection:
        connection.execute("create table t (id integer primary key, state integer)")
    url = f"sqlite:///{tmp_path / 'shop.db'}"
    assert freehold("init", "--url", url, "--table", "t", cwd=tmp_path).code == 0
    (rule,) = tomllib.loads(uncommented((tmp_path / "freehold.toml").read_text()))["rules"]
    assert rule["held"] == [{"state": "?"}]
    assert rule["expire"] == {"set": {"state": "?"}}


def test_init_writes_no_password(tmp_path: Path) -> None:
    ended = freehold("init", "--url", SECRET_URL, cwd=tmp_path)
    assert (ended.code, ended.err) == (0, "")
    text = (tmp_path / "freehold.toml").read_text(encoding="utf-8")
    assert "s3cret" not in text + ended.out
    assert "FREEHOLD_DATABASE__URL_FILE" in text
    assert "url" not in tomllib.loads(text)["database"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--url", "mysql://app:s3cret@h/d"), "--url must begin with sqlite:/// or postgresql://."),
        (("--table", "a.b.c"), "--table is no table's name"),
    ],
)
def test_init_refuses_what_it_cannot_use(
    tmp_path: Path, arguments: tuple[str, ...], says: str
) -> None:
    ended = freehold("init", *arguments, cwd=tmp_path)
    assert ended.code == 2
    assert says in ended.err
    assert "s3cret" not in ended.err
    assert not list(tmp_path.iterdir())


def make_table(url: str) -> None:
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
            connection.execute(TABLE.format(instant="timestamp"))
        return
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(TABLE.format(instant="timestamptz"))


def test_init_drafts_a_rule_from_the_catalogue(tmp_path: Path, database_url: str) -> None:
    make_table(database_url)
    environ = {"FREEHOLD_DATABASE__URL": database_url}
    ended = freehold("init", "--table", '"Cart Items"', cwd=tmp_path, **environ)
    assert (ended.code, ended.err) == (0, "")
    text = (tmp_path / "freehold.toml").read_text(encoding="utf-8")
    assert "rules" not in tomllib.loads(text)
    (rule,) = tomllib.loads(uncommented(text))["rules"]
    kind = {"kind": "naive", "zone": "UTC"} if "sqlite" in database_url else {"kind": "timestamptz"}
    assert rule == {
        "name": "cart_items",
        "table": '"Cart Items"',
        "key": ["id"],
        "tenant": {"column": "tenant_id"},
        "held": [{"status": "held"}],
        "expire": {"set": {"status": "expired"}},
        "due": {"column": "hold_until", **kind},
        "fence": ["hold_token"],
    }
    assert text.count("CHECK") == 6
    write(tmp_path, uncommented(text))
    assert freehold("config", "check", cwd=tmp_path, **environ).code == 0


def test_init_leaves_open_what_it_cannot_guess(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'shop.db'}"
    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection:
        connection.execute("create table t (a text, b blob, paid_at text)")
    assert freehold("init", "--url", url, "--table", "t", cwd=tmp_path).code == 0
    text = (tmp_path / "freehold.toml").read_text(encoding="utf-8")
    (rule,) = tomllib.loads(uncommented(text))["rules"]
    assert rule["key"] == ["?"]
    assert rule["held"] == [{"paid_at": {"is": "null"}}]
    assert rule["due"] == {"column": "?", "kind": "?"}
    assert rule["expire"] == {"set": {"?": "?"}}


def test_init_names_no_table_that_is_not_there(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection:
        connection.execute("create table t (a text)")
    url = f"sqlite:///{tmp_path / 'shop.db'}"
    ended = freehold("init", "--url", url, "--table", "T2", cwd=tmp_path)
    assert ended.code == 2
    assert ended.err.startswith("freehold: There is no table T2 in that database")
    assert not (tmp_path / "freehold.toml").exists()
