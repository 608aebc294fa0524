"""The place where the relay works here: a fresh database of each kind, under a clock that tests set."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.behaviour.conftest import place_of
from tests.conftest import DATABASES, POSTGRES
from tests.relay.desk import desk_at

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.behaviour.place import Place
    from tests.relay.desk import Desk
    from tests.servers import Servers


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let time limits come by a signal: the other kind is a thread, and forks want one."""
    for item in items:
        if item.path.is_relative_to(__file__.rpartition("/")[0]):
            item.add_marker(pytest.mark.timeout(method="signal"), append=False)


@pytest.fixture(params=DATABASES)
def place(request: pytest.FixtureRequest, servers: Servers, tmp_path: Path) -> Iterator[Place]:
    """A place on every database in turn."""
    yield from place_of(request.param, servers, tmp_path)


@pytest.fixture
def lite(servers: Servers, tmp_path: Path) -> Iterator[Place]:
    """A place on SQLite, for decisions that no database makes."""
    yield from place_of("sqlite", servers, tmp_path)


@pytest.fixture(params=POSTGRES[:1])
def pg(request: pytest.FixtureRequest, servers: Servers, tmp_path: Path) -> Iterator[Place]:
    """A place on the machine's PostgreSQL."""
    yield from place_of(request.param, servers, tmp_path)


@pytest.fixture(params=DATABASES[:2])
def one_place(request: pytest.FixtureRequest, servers: Servers, tmp_path: Path) -> Iterator[Place]:
    """A place on SQLite, and on the machine's PostgreSQL."""
    yield from place_of(request.param, servers, tmp_path)


@pytest.fixture
def desk(
    one_place: Place,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Desk:
    """A room with the command line beside it, on SQLite and on the machine's PostgreSQL."""
    return desk_at(one_place, tmp_path, monkeypatch, capsys)


@pytest.fixture
def lite_desk(
    lite: Place,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Desk:
    """The same on SQLite, for what depends on no database."""
    return desk_at(lite, tmp_path, monkeypatch, capsys)
