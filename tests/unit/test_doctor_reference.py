"""The page about doctor explains every code, and nothing else."""

from __future__ import annotations

import re

from freehold.application.doctor import Code
from tests.house.source import ROOT


def test_every_code_has_its_heading_once() -> None:
    page = (ROOT / "docs" / "reference" / "doctor.md").read_text()
    assert sorted(re.findall(r"^### (\S+)$", page, re.MULTILINE)) == sorted(Code)


def test_every_code_says_how_bad_it_is() -> None:
    page = (ROOT / "docs" / "reference" / "doctor.md").read_text()
    parts = re.split(r"^### \S+$", page, flags=re.MULTILINE)[1:]
    assert not [part for part in parts if not re.match(r"\s*\*(refuse|warn|ok)\b", part)]
