"""Fixtures: an authority for the session, and an endpoint for each test."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from tests.webhooks.receiver import NAME, Certificates, Receiver, target_for

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterator

    from freehold.adapters.webhook import WebhookTarget


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="session")
def tls(certificates: Certificates) -> ssl.SSLContext:
    return certificates.context(NAME)


@pytest.fixture
def unused_port() -> int:
    """A port at which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@pytest.fixture
def receiver(tls: ssl.SSLContext) -> Iterator[Receiver]:
    with Receiver(tls).serving() as receiver:
        yield receiver


@pytest.fixture
def connect(
    receiver: Receiver, certificates: Certificates
) -> Iterator[Callable[..., WebhookTarget]]:
    """Open a target at the receiver, with what differs; the end of the test closes it."""
    with ExitStack() as opened:

        def open_one(**how: Any) -> WebhookTarget:
            target = target_for(receiver, certificates, **how)
            opened.callback(target.close)
            return target

        yield open_one
