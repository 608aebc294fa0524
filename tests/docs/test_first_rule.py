"""The tutorial's blocks work in the order in which they stand, on a real server."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from psycopg import sql

from tests.e2e.command import environment

if TYPE_CHECKING:
    from tests.servers import Servers

PAGE = (Path(__file__).parents[2] / "docs" / "tutorial" / "first-rule.md").read_text()
BLOCKS: list[tuple[str, str]] = re.findall(r"^```(\w+)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_the_tutorial_works_from_the_first_block_to_the_last(
    servers: Servers, tmp_path: Path
) -> None:
    server = servers.read("postgres18")
    server.start()
    server.execute(sql.SQL("create database shop").format())
    parts = urlsplit(server.url("shop", "postgres"))
    environ = environment(
        PGHOST=str(parts.hostname),
        PGPORT=str(parts.port),
        PGUSER="postgres",
        PGPASSWORD=str(parts.password),
    )
    outs: list[str] = []
    variables = ""
    for kind, text in BLOCKS:
        here = text.replace("@localhost/", f"@{parts.hostname}:{parts.port}/")
        if kind == "toml":
            (tmp_path / "freehold.toml").write_text(here)
            continue
        script = here if kind == "sh" else f"psql -v ON_ERROR_STOP=1 -q shop <<'SQL'\n{here}SQL\n"
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", variables + script],
            cwd=tmp_path,
            env=environ,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"
        variables += "".join(
            f"{line}\n" for line in here.splitlines() if line.startswith("export ")
        )
        outs.append(done.stdout)
    said = "\n".join(outs)
    assert "0 refused, 1 warned, 1 fine" in said
    assert "released 20 holds" in said
    assert "All is well." in said
    assert re.search(r"free *\| *20", said)
    assert re.search(r"taken *\| *1", said)
    server.execute(sql.SQL("drop database shop with (force)").format())
    server.execute(sql.SQL("drop role releaser").format())


def test_the_blocks_are_those_that_were_counted() -> None:
    assert [kind for kind, _ in BLOCKS] == ["sql", "sql", "sh", "toml", "sh", "sql", "sh", "sh"]
