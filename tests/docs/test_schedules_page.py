"""What the page on schedules says of a line is what the program does with it."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path

import pytest

from freehold.application.schedule import next_firings
from freehold.domain.schedule import Cron, ScheduleError, parse_schedule

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "schedules.md").read_text()
ROWS = re.findall(r"^\| `([^`]+)` \| [^|]+ \| ([^|]+) \|$", PAGE, re.MULTILINE)
REFUSED = [(line, said) for line, said in ROWS if said.startswith("refused")]


def test_the_table_is_there() -> None:
    assert (len(ROWS), len(REFUSED)) == (34, 21)


@pytest.mark.parametrize("line", [line for line, said in ROWS if said == "the same"])
def test_what_the_page_takes_is_taken(line: str) -> None:
    assert isinstance(parse_schedule(line), Cron)


@pytest.mark.parametrize(("line", "said"), REFUSED)
def test_what_the_page_refuses_is_refused_with_its_cure(line: str, said: str) -> None:
    with pytest.raises(ScheduleError) as refusal:
        parse_schedule(line)
    _, _, cure = said.partition(": ")
    assert cure.strip("`") in str(refusal.value)


def test_the_page_shows_what_the_command_prints() -> None:
    after = datetime.fromisoformat("2026-03-28T12:00Z")
    (firing,) = next_firings(Cron("30 2 * * *", "Europe/Berlin"), after, 1)
    assert f"{firing.utc:%Y-%m-%d %H:%M:%S}Z   {firing.local:%a %Y-%m-%d %H:%M:%S %Z}" in PAGE
    assert firing.note in PAGE
