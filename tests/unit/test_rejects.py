"""The file of rejected lines, where it cannot be written or was left behind."""

from __future__ import annotations

import resource
from typing import TYPE_CHECKING

import pytest

from freehold.domain.errors import RefusedByState, UsageError
from freehold.entrypoints.cli.rejects import Rejects

if TYPE_CHECKING:
    from pathlib import Path


def test_what_a_killed_run_left_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    for left in ("", "line,reason,original\n2,wro"):
        path.write_text(left)
        with Rejects(path) as rejects:
            rejects.add(3, "why", b"x\n")
        assert path.read_text() == "line,reason,original\n3,why,x\n"


def test_what_is_there_before_the_first_line_is_known_as_ours(tmp_path: Path) -> None:
    first = Rejects(tmp_path / "r.csv")
    first.add(3, "why", b"x\n")  # and killed, with the line still in its buffer
    Rejects(tmp_path / "r.csv")
    assert list(tmp_path.iterdir()) == []
    first.__exit__(None, None, None)


def test_two_runs_do_not_share_a_file(tmp_path: Path) -> None:
    one, other = Rejects(tmp_path / "r.csv"), Rejects(tmp_path / "r.csv")
    with one:
        one.add(1, "why", b"x\n")
        with pytest.raises(RefusedByState, match="another --rejects"):
            other.add(1, "why", b"x\n")


def test_a_full_disk_is_told_in_a_sentence(tmp_path: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    rejects = Rejects(tmp_path / "r.csv")
    rejects.add(1, "why", b"x" * 100)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50, limits[1]))
    try:
        with pytest.raises(UsageError, match="cannot be written: File too large; import again"):
            rejects.__exit__(None, None, None)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
