"""The how-to on handlers: its example runs as it stands."""

from __future__ import annotations

import re
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

from tests.e2e.command import environment, freehold
from tests.e2e.shop import make_shop, statuses

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "handlers.md").read_text()


def block(language: str) -> str:
    (found,) = re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    return str(found)


def test_the_example_runs(tmp_path: Path) -> None:
    file = tmp_path / "freehold.db"
    make_shop(tmp_path, f"sqlite:///{file}", due_count=7, more=block("toml"))
    (tmp_path / "shop_hooks.py").write_text(block("python"))
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("create table notices (operation_key text primary key, shop text)")
    assert freehold("db", "upgrade", cwd=tmp_path).code == 0
    subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block("sh")],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        timeout=60,
        check=True,
    )
    assert statuses(f"sqlite:///{file}") == {"expired": 7, "held": 1, "paid": 1}
    with closing(sqlite3.connect(file)) as connection:
        rows = connection.execute("select shop, count(*) from notices group by shop").fetchall()
    assert rows == [("harbour", 7)]
