"""The pages on the daily report: the how-to runs as it stands, the reference names every field."""

from __future__ import annotations

import re
import shlex
import sqlite3
from contextlib import closing
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from freehold.adapters.rendering import mime
from freehold.adapters.rendering.table import COLUMNS
from freehold.domain.facts import Facts, LateFacts, ReleasedItem, RuleFacts
from tests.e2e.inprocess import Program
from tests.e2e.shop import make_shop

ROOT = Path(__file__).parents[2]
HOW_TO = (ROOT / "docs" / "how-to" / "daily-report.md").read_text()
REFERENCE = (ROOT / "docs" / "reference" / "report.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", HOW_TO, re.MULTILINE | re.DOTALL)


def run(freehold: Program, script: str) -> str:
    """Run a block's commands within this process; a shell and a dozen programs cost 15 s."""
    day = (datetime.now(UTC) - timedelta(days=1)).date().isoformat()
    said = []
    for line in script.replace("$(date -u -d yesterday +%F)", day).splitlines():
        program, *words = shlex.split(line)
        ended = freehold(*words)
        assert (program, ended.code) == ("freehold", 0), f"{line}: {ended.out}{ended.err}"
        said.append(ended.out)
    return "".join(said)


def yesterday(folder: Path) -> None:
    """Let everything have been released a day ago."""
    at = (datetime.now(UTC) - timedelta(days=1)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    with closing(sqlite3.connect(folder / "freehold.db")) as lite:
        lite.execute("update freehold_tally set at = ?", (at,))
        lite.execute("update freehold_record set finished_at = ?", (at,))
        lite.commit()


def test_the_how_to_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    freehold = Program(tmp_path, monkeypatch, capsys)
    (settings,) = blocks("toml")
    settings = settings.replace("hour = 7 ", "hour = 0 ")  # whatever the hour of the test
    make_shop(tmp_path, f"sqlite:///{tmp_path / 'freehold.db'}", due_count=7)
    with (tmp_path / "freehold.toml").open("a") as file:
        file.write(settings)
    first, seeing, sending, looking, leaving = blocks("sh")
    release = "freehold scan\nfreehold work"  # what else the run does would begin with today
    first = first.replace("freehold run --until-idle", release)
    run(freehold, f"freehold db upgrade\n{first}")
    yesterday(tmp_path)
    assert "sent" in run(freehold, sending)
    (mail,) = (tmp_path / "mails" / "new").iterdir()
    assert b"To: desk@harbour.example\r\n" in mail.read_bytes()
    assert "desk@harbour.example" in run(freehold, looking)
    assert "</html>" in (tmp_path / "report.html").read_text()
    assert "Harbour Hotel" in run(freehold, seeing)  # of today, after the days that are over
    assert "</html>" in (tmp_path / "preview.html").read_text()
    said = run(freehold, leaving)
    assert "wants no report since" in said
    assert "subscribed again" in said


def section(title: str) -> set[str]:
    """Return what the first column of a section's table names."""
    found = re.split(rf"^#+ {title}$", REFERENCE, flags=re.MULTILINE)[1]
    rows = re.findall(r"^\| (`.*?) \|", re.split(r"^#", found, flags=re.MULTILINE)[0], re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`([^`]+)`", row)}


@pytest.mark.parametrize(
    ("title", "kind"),
    [
        ("Facts", Facts),
        ("Of a rule", RuleFacts),
        ("Of what came late", LateFacts),
        ("Of a released hold", ReleasedItem),
    ],
)
def test_the_reference_names_every_field_of_the_facts(title: str, kind: type) -> None:
    names = {re.sub(r"_seconds$", "_us", one.name) for one in fields(kind)}
    assert section(title) == names


def test_the_reference_names_every_column_and_header() -> None:
    assert section("The attached table") == set(COLUMNS)
    written = set(re.findall(r'\("([A-Z][\w-]+)",', Path(mime.__file__).read_text()))
    assert section("Headers of a mail") == written
