"""The blocks of docs/how-to/your-application.md do what the page says, beside a running worker."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from freehold.adapters.sql.statements import to_psycopg
from tests.e2e.command import freehold
from tests.e2e.running import Running

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.servers import PostgresServer, Servers

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "your-application.md").read_text()
NODE = Path(__file__).parent / "node"
BLOCKS: list[tuple[str, str]] = re.findall(r"^```(\w+)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
SHORT = "50 milliseconds"


def block(language: str, first_line: str = "") -> str:
    (found,) = (
        [text for kind, text in BLOCKS if kind == language and text.startswith(first_line)]
        if first_line
        else [next(text for kind, text in BLOCKS if kind == language)]
    )
    return found


class Application:
    """One program that follows the page; each function answers with what it returned."""

    def __init__(self, folder: Path, call: Callable[..., Any], short: str = SHORT) -> None:
        self.folder = folder
        self.call = call
        self.short = short


def test_every_block_is_run() -> None:
    kinds = [f"{kind} {text.splitlines()[0]}" for kind, text in BLOCKS]
    assert kinds == [
        "sql create table seats (",
        "toml [[rules]]",
        "sql -- grant",
        "sql -- confirm",
        "sql -- renew",
        "sql -- cancel",
        "sql -- late",
        "python # psycopg",
        "sql -- sqlite",
        "python # sqlite3",
        "js // seats.mjs",
    ]


@pytest.fixture
def postgres_shop(servers: Servers, tmp_path: Path) -> Iterator[str]:
    server: PostgresServer = servers.read("postgres18")
    url = server.create_database()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(block("sql", "create table seats"))
        connection.execute(
            "insert into seats (id, venue) select n, 'hall' from generate_series(1, 9) n"
        )
    attach(tmp_path, url, block("toml"))
    yield url
    server.drop_database(url)


def attach(folder: Path, url: str, rule: str) -> None:
    (folder / "freehold.toml").write_text(f'[database]\nurl = "{url}"\n\n{rule}')
    for words in (("config", "check"), ("doctor",), ("db", "upgrade")):
        ended = freehold(*words, cwd=folder)
        assert ended.code == 0, ended.out + ended.err


def test_the_statements(postgres_shop: str, tmp_path: Path) -> None:
    names = {
        "grant": ["seat", "window"],
        "confirm": ["seat", "token", "payment"],
        "renew": ["seat", "token", "window"],
        "cancel": ["seat", "token"],
        "late": ["seat", "payment"],
    }
    with psycopg.connect(postgres_shop, autocommit=True) as connection:

        def call(name: str, *values: object) -> object:
            sent = dict(zip(names[name], values, strict=False))
            sent.setdefault("window", "15 minutes")
            text = to_psycopg(block("sql", f"-- {name}").rstrip().rstrip(";"))
            row = connection.execute(text, sent).fetchone()
            return None if row is None else row[0]

        play(Application(tmp_path, call))


def test_python_on_postgres(postgres_shop: str, tmp_path: Path) -> None:
    names: dict[str, Any] = {}
    exec(block("python", "# psycopg"), names)  # noqa: S102 - the page's own text
    with psycopg.connect(postgres_shop) as connection:
        play(Application(tmp_path, lambda name, *values: names[name](connection, *values)))


def test_python_on_sqlite(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    names: dict[str, Any] = {}
    exec(block("python", "# sqlite3"), names)  # noqa: S102 - the page's own text
    connection: sqlite3.Connection = names["connect"](path)
    connection.executescript(block("sql", "-- sqlite"))
    connection.executemany(
        "insert into seats (id, venue) values (?, 'hall')", [(n,) for n in range(1, 10)]
    )
    said = re.findall(r"`((?:due|table) = [^`]+)`", PAGE)
    rule = block("toml")
    for line in said:
        name = line.partition(" ")[0]
        rule = re.sub(rf"^{name} = .*$", line, rule, flags=re.MULTILINE)
    assert len(said) == 2
    attach(tmp_path, f"sqlite:///{path}", rule)
    play(
        Application(
            tmp_path, lambda name, *values: names[name](connection, *values), "0.05 seconds"
        )
    )
    connection.close()


def test_node_on_postgres(postgres_shop: str, tmp_path: Path) -> None:
    assert shutil.which("node"), "make setup says how to get Node.js"
    (tmp_path / "node_modules").symlink_to(NODE / "node_modules")
    for name, text in (
        ("seats.mjs", block("js")),
        ("drive.mjs", (NODE / "drive.mjs").read_text()),
    ):
        (tmp_path / name).write_text(text)
    with subprocess.Popen(
        ["node", "drive.mjs", "seats.mjs", postgres_shop],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as driver:
        assert driver.stdin is not None
        assert driver.stdout is not None
        stdin, stdout = driver.stdin, driver.stdout

        def call(name: str, *values: object) -> object:
            stdin.write(json.dumps([name, *values], default=str) + "\n")
            stdin.flush()
            line = stdout.readline()
            assert line, f"the driver ended with {driver.wait(30)} and left its reason on stderr"
            return json.loads(line)["answer"]

        play(Application(tmp_path, call))
        stdin.close()
        assert driver.wait(30) == 0


def play(shop: Application) -> None:
    """Go through a guest's possible ways while a worker runs, and compare with the page."""
    call = shop.call
    with Running(shop.folder) as worker:
        worker.wait_for("started")
        token = call("grant", 1)
        assert token
        assert not call("grant", 1)
        assert not call("confirm", 1, "0b5f1a52-8f0c-4a47-9d57-5cbb1c7f7a11", "p0")
        assert call("confirm", 1, token, "p1")
        assert not call("confirm", 1, token, "p1")
        assert not call("cancel", 1, token)

        old = call("grant", 2)
        new = call("renew", 2, old)
        assert new != old
        assert not call("confirm", 2, old, "p2")
        assert call("cancel", 2, new)

        lapsed = call("grant", 3, shop.short)
        released = worker.wait_for("batch")
        assert released["released"] == 1
        assert not call("confirm", 3, lapsed, "p3")
        assert not call("renew", 3, lapsed)
        assert call("late", 3, "p3")
        assert not call("late", 3, "p4")
        assert worker.stop() == 0
    told = freehold("why", "3", "--json", cwd=shop.folder)
    assert told.code == 0, told.err
    seats = {row["key"]: row for row in told.data}
    assert seats["3"]["row"]["status"] == "sold"
    assert freehold("audit", cwd=shop.folder).code == 0
