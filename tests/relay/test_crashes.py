"""A relay killed at any of its boundaries: every event reaches every target, and repeats are known."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from freehold.ports.system import Boundary
from freehold.testing.crash import KillAt
from freehold.testing.forking import fork
from tests.conftest import DATABASES
from tests.relay.hall import LEASE, Hall, migrate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from freehold.ports.system import Checkpoint
    from freehold.testing.forking import Wire
    from tests.servers import Servers

EVENTS = 4  # with batches of three: a full one and a rest
REACHES_MOST = 200
OF_THE_RELAY = (
    Boundary.EVENTS_ROUTED,
    Boundary.FORWARDS_CLAIMED,
    Boundary.PARCELS_DELIVERED,
    Boundary.FORWARDS_SETTLED,
)


@pytest.fixture(scope="module", params=DATABASES[:2])
def url(
    request: pytest.FixtureRequest, servers: Servers, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """A migrated database of each kind; shared."""
    if request.param == "sqlite":
        yield migrate(f"sqlite:///{tmp_path_factory.mktemp('relay') / 'freehold.db'}")
        return
    server = servers.read(request.param)
    url = migrate(server.create_database())
    yield url
    server.drop_database(url)


@pytest.fixture
def hall(url: str, tmp_path: Path) -> Hall:
    return Hall(url, tmp_path).empty()


def killer(nth: int, boundary: Boundary | None = None) -> Callable[[Wire], Checkpoint]:
    return lambda wire: KillAt(nth, boundary, wire.tell)


def assert_recovered(hall: Hall) -> None:
    """Recover, check what arrived, and that going on changes nothing."""
    assert not hall.run(lambda process: process.recover(), after=LEASE).was_killed
    hall.assert_all_arrived(EVENTS)
    before, arrived = hall.rows(), hall.box("shop").arrived()
    hall.run(lambda process: process.recover(), after=9 * LEASE)
    assert hall.rows() == before
    assert hall.box("shop").arrived() == arrived


@pytest.mark.parametrize("boundary", OF_THE_RELAY)
def test_a_kill_at_each_boundary_loses_nothing(hall: Hall, boundary: Boundary) -> None:
    hall.add(EVENTS)
    ending = hall.run(lambda process: process.relay(), killer(1, boundary))
    assert ending.was_killed
    assert_recovered(hall)


def test_what_was_not_lost_is_told_once(hall: Hall) -> None:
    hall.add(EVENTS)
    assert not hall.run(lambda process: process.relay()).was_killed
    assert_recovered(hall)
    for name in ("bus", "shop"):
        assert set(hall.box(name).arrived().values()) == {1}


def test_a_kill_with_parcels_delivered_tells_them_again_under_the_same_key(hall: Hall) -> None:
    """What a consumer's inbox is for."""
    hall.add(EVENTS)
    assert hall.run(
        lambda process: process.relay(), killer(1, Boundary.PARCELS_DELIVERED)
    ).was_killed
    assert_recovered(hall)
    counts = hall.box("bus").arrived() + hall.box("shop").arrived()
    assert 2 in set(hall.box("bus").arrived().values())
    assert counts.total() > 2 * EVENTS


@pytest.mark.proof
def test_a_kill_at_every_reach_and_again_in_recovery(hall: Hall) -> None:
    for nth in range(1, REACHES_MOST):
        hall.empty()
        for name in ("bus", "shop"):
            hall.box(name).path.unlink(missing_ok=True)
        hall.add(EVENTS)
        if not hall.run(lambda process: process.relay(), killer(nth)).was_killed:
            assert nth > len(OF_THE_RELAY) * 2
            return
        hall.run(lambda process: process.recover(), killer(1 + nth % 7), after=LEASE)
        assert not hall.run(lambda process: process.recover(), after=4 * LEASE).was_killed
        hall.assert_all_arrived(EVENTS)
    raise AssertionError(f"still killed at reach {REACHES_MOST}")


@pytest.mark.proof
@pytest.mark.parametrize("seed", range(6))
def test_two_relays_at_once_and_their_kills_lose_nothing(hall: Hall, seed: int) -> None:
    """Both claim from both targets; each is killed somewhere; what is left is found by a third."""
    hall.add(EVENTS * 5)

    def child(nth: int) -> Callable[[Wire], object]:
        def work(wire: Wire) -> None:
            process = hall.process(KillAt(nth, None, wire.tell))
            wire.tell("ready")
            wire.wait()
            process.relay()

        return work

    with fork(child(3 + 2 * seed)) as one, fork(child(9 + 3 * seed)) as two:
        for relay in (one, two):
            relay.wait_for("ready")
        for relay in (one, two):
            relay.go_on()
        assert any([one.end().was_killed, two.end().was_killed])  # the other may have had no work
    hall.run(lambda process: process.recover(), after=LEASE)
    hall.assert_all_arrived(EVENTS * 5)
