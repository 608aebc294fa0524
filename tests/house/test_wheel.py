"""What is installed is what is tested: the built wheel carries every file of the package."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from typing import TYPE_CHECKING

import pytest

from tests.house import source

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that is built from the source distribution, without the network."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, source.ROOT],
        check=True,
        capture_output=True,
    )
    (built,) = folder.glob("*.whl")
    return built


@pytest.mark.proof
def test_the_wheel_carries_every_file(wheel: Path) -> None:
    wanted = {
        path.relative_to(source.PACKAGE.parent).as_posix()
        for path in source.PACKAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    with zipfile.ZipFile(wheel) as archive:
        assert wanted <= set(archive.namelist())


@pytest.mark.proof
def test_the_wheel_imports_from_elsewhere(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    code = "import freehold; print(freehold.__file__, freehold.__version__)"
    finished = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path)},
        check=True,
        capture_output=True,
        text=True,
    )
    assert finished.stdout.startswith(str(tmp_path))
