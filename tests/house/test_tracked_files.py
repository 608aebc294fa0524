"""What is committed names no registry and no machine's folders."""

from __future__ import annotations

import subprocess

import pytest

from tests.house import source

# In two parts, so that this file does not hold what it looks for.
FORBIDDEN = [
    left + right
    for left, right in [
        ("pypi", ".org"),
        ("files.python", "hosted"),
        ("--index", "-url"),
        ("registry.npm", "js"),
        ("/wo", "rk/"),
        ("/ro", "ot/"),
    ]
]


def tracked_files() -> list[str]:
    if not (source.ROOT / ".git").exists():
        pytest.skip("no git checkout: an unpacked source distribution tracks nothing")
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=source.ROOT, check=True, capture_output=True, text=True
    )
    return [name for name in listed.stdout.split("\0") if name]


def test_no_tracked_file_holds_a_registry_or_a_machine_path() -> None:
    findings = []
    for name in tracked_files():
        path = source.ROOT / name
        text = path.read_text(errors="replace") if path.is_file() else ""
        findings += [f"{name}: {word}" for word in FORBIDDEN if word in text]
    assert not findings


def test_no_uv_lock_is_tracked() -> None:
    assert not [name for name in tracked_files() if name.rpartition("/")[2] == "uv.lock"]
