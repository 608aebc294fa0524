"""The three commands as an operator types them: exit codes, one sentence, the same data as JSON."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.insight.shop import Shop

FILE = """
[database]
url = "{url}"
[[rules]]
name = "cart"
table = "res"
key = ["id"]
tenant = {{ column = "tenant" }}
held = [{{ status = "held" }}]
due = {{ column = "hold_until", kind = "naive", zone = "UTC" }}
fence = ["token"]
expire = {{ set = {{ status = "expired" }} }}
promise = "1h"
"""


@pytest.fixture
def folder(sqlite_shop: Shop, tmp_path: Path) -> Path:
    """A folder with the shop's configuration file."""
    (tmp_path / "freehold.toml").write_text(FILE.format(url=sqlite_shop.url))
    return tmp_path


def freehold(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the command in the folder."""
    return subprocess.run(
        [sys.executable, "-c", "from freehold.entrypoints.cli import main; main()", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={"COLUMNS": "140", "PATH": ""},
    )


def test_status_shows_and_checks(folder: Path) -> None:
    shown = freehold(folder, "status")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "cart" in shown.stdout
    checked = freehold(folder, "status", "--check", "--json")
    assert checked.returncode == 3
    assert checked.stderr.startswith("freehold: Work waits in cart, and no worker is alive")
    assert json.loads(checked.stdout)["rules"][0]["depth"]["ready"] == 1


def test_why_answers_and_refuses_an_unknown_key(folder: Path) -> None:
    shown = freehold(folder, "why", "1")
    assert shown.returncode == 0
    assert shown.stdout.strip().endswith("(status is expired).")
    assert (
        json.loads(freehold(folder, "why", "1", "--json").stdout)[0]["row"]["status"] == "expired"
    )
    unknown = freehold(folder, "why", "4711")
    assert (unknown.returncode, unknown.stdout) == (2, "")
    assert unknown.stderr == (
        "freehold: There is no hold with the key '4711', now or in the records (cart).\n"
    )


def test_audit_is_clean_and_then_is_not(folder: Path, sqlite_shop: Shop) -> None:
    clean = freehold(folder, "audit")
    assert (clean.returncode, clean.stderr) == (0, "")
    assert "never-early" in clean.stdout
    sqlite_shop.run("delete from {s}outbox where hold_key = '1'")
    broken = freehold(folder, "audit", "--json", "--since", "1d")
    assert broken.returncode == 3
    assert broken.stderr.strip() == "freehold: 1 of 28 checks failed: expired-has-event."
    assert [one["check"] for one in json.loads(broken.stdout) if not one["clean"]] == [
        "expired-has-event"
    ]
    assert freehold(folder, "audit", "--since", "yesterday").returncode == 2
