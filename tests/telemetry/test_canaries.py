"""No guest is named where only work is spoken of: real processes over tables full of canaries.

The tables hold canaries in columns that rules map and in columns that no rule maps; rows fail by
triggers and handlers that quote them. Then everything that Freehold wrote is searched.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from freehold.testing.backdoor import BackDoor
from tests.conftest import DATABASES
from tests.e2e.command import PROGRAM, environment, freehold

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.servers import Servers

PROOF = [*DATABASES[1].marks, pytest.mark.proof]
# In columns that no rule maps: these may be nowhere.
NAME, MAIL, CARD = "Canaria Guest-Name", "canary.guest@example.test", "4929 7706 1234 0001"
RAISED = "Canaria Raised-Name"  # what a trigger and a handler quote, out of such a column
UNMAPPED = (NAME, MAIL, CARD)
# In columns that rules map: the ledger must hold these, and nothing may say them of itself.
TOKEN, CARRIED, ODD_DUE = "canary-token", "canary.carried@example.test", "canary due of a guest"
MAPPED = (TOKEN, CARRIED, ODD_DUE)
COLUMNS = (
    "id integer primary key, shop text, status text not null, hold_token text, note text,"
    " guest_name text, guest_mail text, card text, hold_until {due}"
)
FILE = """
[database]
url = "{url}"
[logs]
level = "debug"
[loops]
poll = "100ms"
sweep = "300ms"
"""
RULE = """
[[rules]]
name = "{name}"
table = "{name}"
key = ["id"]
tenant = {{ column = "shop" }}
held = [{{ status = "held" }}]
due = {{ column = "hold_until", kind = "naive", zone = "UTC", on_empty = "review" }}
fence = ["hold_token"]
carry = ["note"]
expire = {{ set = {{ status = "expired" }} }}
retry = {{ delays = [] }}
{more}
"""
RULES = {
    "cart": "",
    "seat": 'mode = "direct"',
    "stay": 'mode = "window"',
    "room": 'handler = "hooks:tell"',
    "broken": "",
}
HOOKS = """
def tell(batch):
    for hold in batch.holds:
        if hold.key == "2":
            raise ValueError("RAISED has a late check-in")
"""
COMMANDS = (
    ("config", "show", "--origin"),
    ("config", "check"),
    ("db", "status"),
    ("doctor",),
    ("plan",),
    ("schedule", "list"),
    ("scan",),
    ("work",),
    ("run", "--until-idle"),
    ("sweep",),
    ("status",),
    ("audit",),
    ("prune", "--dry-run"),
    ("prune",),
    ("review", "list"),
)
MARK = "----- the next command -----"
ONE_AFTER_THE_OTHER = f"""
import json, sys
from freehold.entrypoints.cli import main
for words in json.loads(sys.argv[1]):
    print("{MARK}", flush=True)
    sys.argv = ["freehold", *words]
    try:
        main()
    except SystemExit:
        pass
    sys.stdout.flush()
"""
IN_JSON = ("status", "plan", "why")
# A person who looks at one hold, or at a dead letter, is shown the mapped columns and what the
# database or the handler said: docs/how-to/run-it.md, "What is kept of an error".
LOOKS = (("why", "1", "--rule", "cart"), ("why", "2", "--rule", "cart"))


@pytest.fixture(
    params=[DATABASES[0], pytest.param(*DATABASES[1].values, id="postgres", marks=PROOF)]
)
def url(request: pytest.FixtureRequest, servers: Servers, tmp_path: Path) -> Iterator[str]:
    """A fresh database on SQLite and on the machine's PostgreSQL, whose URL holds a password."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'freehold.db'}"
        return
    server = servers.read(request.param)
    url = server.create_database()
    yield url
    server.drop_database(url)


def stage(folder: Path, url: str) -> None:
    """Make tables, rules and hooks."""
    rules = "".join(RULE.format(name=name, more=more) for name, more in RULES.items())
    (folder / "freehold.toml").write_text(FILE.format(url=url) + rules)
    (folder / "hooks.py").write_text(HOOKS.replace("RAISED", RAISED))
    with BackDoor(url) as door:
        for name in RULES:
            due = "text" if door.dialect == "sqlite" else "timestamp"
            door.script(f"create table {name} ({COLUMNS.format(due=due)})")
            for key in (1, 2, 3):
                add(door, name, key, "2026-01-01 10:00:00")
            refuse(door, name, every=name == "broken")
        if door.dialect == "sqlite":
            add(door, "cart", 4, ODD_DUE)
            add(door, "seat", 4, ODD_DUE)
    assert freehold("db", "upgrade", cwd=folder).code == 0


def add(door: BackDoor, table: str, key: int, due: str) -> None:
    values = {"token": f"{TOKEN}-{key}", "note": CARRIED, "name": NAME, "mail": MAIL, "card": CARD}
    door.execute(
        f"insert into {table} values (:key, 'harbour', 'held', :token, :note, :name, :mail, :card,"
        + (" :due)" if door.dialect == "sqlite" else " cast(:due as timestamp))"),
        key=key,
        due=due,
        **values,
    )


def refuse(door: BackDoor, table: str, *, every: bool) -> None:
    """Let a trigger refuse row 2, or every row, with a guest's name in its mouth."""
    if table == "room":
        return
    which = "true" if every else "new.id = 2"
    if door.dialect == "sqlite":
        door.script(
            f"create trigger {table}_no before update on {table} when {which}"
            f" begin select raise(abort, '{RAISED} has paid'); end"
        )
        return
    door.execute(
        f"update {table} set guest_name = :name where {which.replace('new.', '')}", name=RAISED
    )
    door.script(
        f"create function {table}_no() returns trigger language plpgsql as $$ begin if {which}"
        " then raise exception '% has paid', new.guest_name using detail = new.guest_mail,"
        " hint = new.card; end if; return new; end $$;"
        f" create trigger {table}_no before update on {table} for each row execute function"
        f" {table}_no()"
    )


def command_lines() -> str:
    """Return the command lines of all processes, as `ps` has them."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(path.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue
    return "\n".join(line for line in found if "freehold" in line and "pytest" not in line)


def serve(folder: Path, url: str) -> str:
    """Run the service until everything ended; return what it wrote, and all command lines."""
    log = folder / "service.log"
    with log.open("wb") as stream:
        service = subprocess.Popen(
            [PROGRAM, "run"], cwd=folder, env=environment(), stdout=stream, stderr=stream
        )
        with BackDoor(url) as door:
            limit = time.monotonic() + 30
            while not is_over(door):
                assert service.poll() is None, log.read_text()
                assert time.monotonic() < limit, log.read_text()
        seen = command_lines()
        service.terminate()
        assert service.wait(30) == 0
    return log.read_text() + seen


def is_over(door: BackDoor) -> bool:
    """Tell whether all that can be released is, all else failed, and one rule is paused."""
    released = {
        name: door.one(f"select count(*) from {name} where status = 'expired'") for name in RULES
    }
    paused = door.one("select count(*) from {s}rule_state where condition = 'paused'")
    dead = door.one("select count(*) from {s}operation where state = 'dead'")
    return (
        released == {"cart": 2, "seat": 2, "stay": 2, "room": 2, "broken": 0}
        and paused == 1
        and dead >= 3
    )


def ledger_texts(url: str) -> Iterator[tuple[str, str]]:
    """Yield every value of the ledger as text, with its column; the service's own tables only."""
    with BackDoor(url) as door:
        for table in tables(door):
            names = columns(door, table)
            for row in door.rows(f"select * from {{s}}{table}"):
                values = zip(names, row, strict=True)
                yield from ((f"{table}.{name}", str(value)) for name, value in values)


def tables(door: BackDoor) -> list[str]:
    if door.dialect == "sqlite":
        sql = "select substr(name, 10) from sqlite_schema where type = 'table' and name like 'freehold\\_%' escape '\\'"
    else:
        sql = "select tablename from pg_tables where schemaname = 'freehold' and tablename not like 'record\\_%'"
    return [row[0] for row in door.rows(sql)]


def columns(door: BackDoor, table: str) -> list[str]:
    if door.dialect == "sqlite":
        return [
            row[0] for row in door.rows(f"select name from pragma_table_info('freehold_{table}')")
        ]
    return [
        row[0]
        for row in door.rows(
            "select column_name from information_schema.columns where table_schema = 'freehold'"
            " and table_name = :name order by ordinal_position",
            name=table,
        )
    ]


def said(
    folder: Path, commands: Sequence[tuple[str, ...]]
) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield what each command says, errors included: one process for all, since starting costs."""
    asked = [*commands, *(("--json", *one) for one in commands if one[0] in IN_JSON)]
    answer = subprocess.run(
        [sys.executable, "-c", ONE_AFTER_THE_OTHER, json.dumps(asked)],
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )
    texts = answer.stdout.split(MARK)[1:]
    assert "Traceback" not in answer.stdout
    assert "unexpected" not in answer.stdout
    yield from zip(asked, texts, strict=True)


def hits(text: str, canaries: tuple[str, ...]) -> list[str]:
    """Return the canaries that a text holds, spelled in JSON or not."""
    return [one for one in canaries if one in text or one.encode("unicode_escape").decode() in text]


def test_no_guest_and_no_secret_is_named(tmp_path: Path, url: str) -> None:
    stage(tmp_path, url)
    secrets = tuple(filter(None, [urlsplit(url).password]))
    service = serve(tmp_path, url)
    assert '"dead"' in service
    assert '"released"' in service
    assert hits(service, (*UNMAPPED, *MAPPED, RAISED, *secrets)) == []

    shown = list(said(tmp_path, COMMANDS))
    assert any(RAISED in text for command, text in shown if "status" in command)  # it was raised
    for command, text in shown:
        looks = {"review", "status"} & set(command)
        allowed: tuple[str, ...] = (RAISED, ODD_DUE) if looks else ()
        wanted = [one for one in (*UNMAPPED, *MAPPED, RAISED, *secrets) if one not in allowed]
        assert (command, hits(text, tuple(wanted))) == (command, [])
    for command, text in said(tmp_path, LOOKS):
        assert (command, hits(text, (*UNMAPPED, *secrets))) == (command, [])

    found: dict[str, Any] = {}
    for column, text in ledger_texts(url):
        for canary in hits(text, (*UNMAPPED, RAISED, *secrets)):
            found.setdefault(canary, set()).add(column)
    words = {"operation.failure_message", "attempt.failure_message", "rule_state.reason"}
    assert found.pop(RAISED) <= words
    assert found == {}
