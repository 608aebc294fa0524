"""Host applications act at random while services and hosts are killed, stopped and restarted."""

from __future__ import annotations

import os
import random
import time
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest

from tests.chaos.scene import MODES, Scene, warm_up
from tests.chaos.verdict import judge

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.chaos.scene import Kind
    from tests.servers import Servers

SECONDS = 30.0 if os.environ.get("FREEHOLD_PROOF") == "long" else 5.0
POLL_SECONDS = 0.01
MEMORY = Path("/dev/shm")  # noqa: S108 -- a folder of its own is made in it
SEED_VARIABLE = "FREEHOLD_CHAOS_SEED"  # a run that failed has its seed in its output


@pytest.fixture
def seed() -> int:
    """What the dice of this run begin with."""
    seed = int(os.environ.get(SEED_VARIABLE) or random.SystemRandom().randrange(10**6))
    print(f"{SEED_VARIABLE}={seed}")  # noqa: T201 -- shown when the test fails
    return seed


@pytest.fixture
def url(servers: Servers) -> Iterator[str]:
    """A fresh database on the newest PostgreSQL."""
    server = servers.read("postgres18")
    url = server.create_database()
    yield url
    server.drop_database(url)


@pytest.fixture
def lite() -> Iterator[str]:
    """A SQLite file in memory where that can be.

    A killed process loses nothing that it wrote, and a disk that others keep busy for a second
    would look like a refusal of ours.
    """
    memory = MEMORY if MEMORY.is_dir() else None
    with TemporaryDirectory(dir=memory, prefix="freehold-") as folder:
        yield f"sqlite:///{folder}/shop.db"


def _run(scenes: Sequence[Scene]) -> None:
    """Run scenes at once, since much of a scene is waiting; then judge each."""
    warm_up()
    for scene in scenes:
        scene.prepare()
    with ExitStack() as stack:
        for scene in scenes:
            stack.enter_context(scene)
        ends = time.monotonic() + SECONDS
        while time.monotonic() < ends:
            for scene in scenes:
                scene.disturb()
            time.sleep(POLL_SECONDS)
        for scene in scenes:
            scene.end()
    for scene in scenes:
        truth = judge(scene)
        story = {**truth.counts, **scene.deaths, **truth.ends_told}
        print(f"{scene}: {story}")  # noqa: T201 -- shown when the test fails
        assert truth.owed()


def test_a_host_and_services_that_are_killed_keep_every_promise(
    tmp_path: Path, url: str, lite: str, seed: int
) -> None:
    _run(
        [
            Scene(lite, tmp_path / "lite", "shop", "direct", seed),
            Scene(url, tmp_path / "server", "hotel", "reservation", seed),
        ]
    )


@pytest.mark.proof
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["shop", "hotel"])
def test_every_mode_keeps_them(
    tmp_path: Path, url: str, lite: str, seed: int, kind: Kind, mode: str
) -> None:
    _run(
        [
            Scene(lite, tmp_path / "lite", kind, mode, seed),
            Scene(url, tmp_path / "server", kind, mode, seed),
        ]
    )
