"""Each role a process of its own; two of them are killed while the broker loses all it has."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.brokers.test_service import QUEUE, Journal, hold, shop
from tests.e2e.command import freehold
from tests.e2e.running import Running
from tests.e2e.shop import statuses

if TYPE_CHECKING:
    from pathlib import Path

    from tests.brokers.nats_server import NatsServer
    from tests.brokers.rabbit_server import RabbitServer


def test_a_wiped_nats_and_killed_roles_lose_nothing(
    tmp_path: Path, sqlite_url: str, nats_server: NatsServer, stream: str
) -> None:
    _loses_nothing(tmp_path, sqlite_url, nats_server, stream, "nats")


@pytest.mark.proof
def test_a_wiped_rabbitmq_and_killed_roles_lose_nothing(
    tmp_path: Path, sqlite_url: str, rabbit_server: RabbitServer, stream: str
) -> None:
    _loses_nothing(tmp_path, sqlite_url, rabbit_server, stream, "rabbitmq")


def _loses_nothing(
    folder: Path, url: str, server: NatsServer | RabbitServer, name: str, kind: str
) -> None:
    """Let messages wait for a worker that is dead, wipe them, and start one."""
    more = QUEUE.format(url=server.url, name=name).replace('"nats"', f'"{kind}"')
    shop(folder, url, more.replace("[loops]", '[loops]\nsweep = "1s"'))
    with Running(folder, "--role", "scan"):
        with Running(folder, "--role", "work") as worker:
            Journal(worker).until("queue found", loop="deliveries")
        with Running(folder, "--role", "dispatch") as dispatcher:
            named = Journal(dispatcher)
            named.until("queue found", loop="dispatch")
            hold(url, *range(1, 11))
            assert int(named.until("dispatch")["published"]) > 0
        server.restart(wiped=True)
        with (
            Running(folder, "--role", "dispatch"),
            Running(folder, "--role", "work") as worker,
        ):
            Journal(worker).until_released(10)
            assert worker.stop() == 0
    assert statuses(url)["expired"] == 10
    assert freehold("audit", cwd=folder).code == 0
