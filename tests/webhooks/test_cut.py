"""A connection that is cut before the request left, and after the customer took it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from freehold.adapters.webhook import WebhookTarget
from freehold.ports.target import Reception
from tests.proxy import Cut, CuttingProxy, contains
from tests.webhooks.receiver import NAME, Certificates, Receiver, parcel, target_for


@pytest.fixture
def plain_receiver() -> Iterator[Receiver]:
    """Without TLS, under which the proxy could not find the request."""
    with Receiver(None).serving() as receiver:
        yield receiver


@pytest.fixture
def proxy(plain_receiver: Receiver) -> Iterator[CuttingProxy]:
    with CuttingProxy("127.0.0.1", plain_receiver.port) as proxy:
        yield proxy


@pytest.fixture
def target(
    plain_receiver: Receiver, proxy: CuttingProxy, certificates: Certificates
) -> Iterator[WebhookTarget]:
    port = int(proxy.url("http://h/").rsplit(":", 1)[1].strip("/"))
    target = target_for(
        plain_receiver, certificates, url=f"http://{NAME}:{port}/", ports=(port,), insecure=True
    )
    yield target
    target.close()


@pytest.mark.parametrize(("cut", "arrived_count"), [(Cut.BEFORE_FORWARD, 0), (Cut.AFTER_REPLY, 1)])
def test_a_cut_is_transient_and_the_repeat_is_known(
    target: WebhookTarget,
    proxy: CuttingProxy,
    plain_receiver: Receiver,
    cut: Cut,
    arrived_count: int,
) -> None:
    assert target.deliver([parcel(1)])[0].reception is Reception.ACCEPTED
    proxy.cut_at(contains(b"POST "), cut)
    (answer,) = target.deliver([parcel(2)])
    proxy.wait_until_cut()
    assert (answer.reception, answer.code) == (Reception.TRANSIENT, "broken")
    assert len(plain_receiver.got) == 1 + arrived_count
    (answer,) = target.deliver([parcel(2)])
    assert answer.reception is Reception.ACCEPTED
    repeats = plain_receiver.got[1:]
    assert len(repeats) == arrived_count + 1
    assert len({one.headers["webhook-id"] for one in repeats}) == 1


def test_while_the_network_is_down_the_target_is_away(
    target: WebhookTarget, proxy: CuttingProxy, plain_receiver: Receiver
) -> None:
    proxy.go_down()
    (answer,) = target.deliver([parcel(1)])  # connected, then cut
    assert answer.reception is Reception.TRANSIENT
    proxy.come_up()
    assert target.deliver([parcel(1)])[0].reception is Reception.ACCEPTED
