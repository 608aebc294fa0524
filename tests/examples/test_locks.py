"""The Node packages are locked by content, at exact versions, and nothing of them runs at install."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.examples.conftest import EXAMPLES

FOLDERS = [EXAMPLES / "consumer-node", EXAMPLES.parent / "tests" / "docs" / "node"]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_every_package_is_pinned_by_its_content_alone(folder: Path) -> None:
    lock = json.loads((folder / "package-lock.json").read_text())
    wanted = json.loads((folder / "package.json").read_text())["dependencies"]
    packages = {name: one for name, one in lock["packages"].items() if name}
    assert {f"node_modules/{name}" for name in wanted} <= set(packages)
    for name, version in wanted.items():
        assert packages[f"node_modules/{name}"]["version"] == version
    for one in packages.values():
        assert one["integrity"].startswith("sha512-")
        assert "resolved" not in one
        assert "hasInstallScript" not in one


def test_setup_installs_both_folders_without_their_scripts() -> None:
    setup = (EXAMPLES.parent / "scripts" / "setup.sh").read_text()
    for folder in FOLDERS:
        assert folder.relative_to(EXAMPLES.parent).as_posix() in setup
    assert "npm ci" in setup
    assert "--ignore-scripts" in setup
