"""The target over NATS JetStream keeps the target's contract, and what it says of subjects."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from freehold.adapters.nats import NatsTarget
from freehold.ports.target import Reception
from freehold.testing.contracts.targets import DeliverContract, Wrong, WrongContract, parcel
from tests.brokers.nats_door import NatsDoor
from tests.proxy import Cut, CuttingProxy, contains

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from freehold.ports.target import Target
    from tests.brokers.nats_server import NatsServer


class NatsGround:
    """One stream of a running server."""

    def __init__(self, server: NatsServer, stream: str, stack: ExitStack) -> None:
        self.server, self.stream, self.subject = server, stream, f"to.{stream}"
        self.door = NatsDoor(server.url)
        self.proxy = stack.enter_context(CuttingProxy.for_url(server.url))
        self._stack = stack

    def connect(self, *, impatient: bool = False) -> Target:
        return self.target(confirm_seconds=0.3 if impatient else 10.0)

    def target(self, *, confirm_seconds: float = 10.0, declare: bool = True) -> NatsTarget:
        target = NatsTarget(
            url=self.proxy.url(self.server.url),
            subject=self.subject,
            stream=self.stream,
            confirm_seconds=confirm_seconds,
            declare=declare,
        )
        self._stack.callback(target.close)
        return target

    def connect_unreachable(self) -> Target:
        with CuttingProxy.for_url(self.server.url) as gone:
            url = gone.url(self.server.url)
        return NatsTarget(url=url, subject=self.subject, stream=self.stream)

    def arrived(self) -> Sequence[tuple[str, bytes]]:
        return [(heads["Nats-Msg-Id"], body) for _, heads, body in self.door.read(self.stream)]

    def plays(self, wrong: Wrong) -> bool:
        return True

    def go(self, wrong: Wrong | None) -> None:
        match wrong:
            case Wrong.REFUSE:
                self._configure(max_msgs=1, discard="new")
            case Wrong.SILENT:
                self._configure(no_ack=True)
            case Wrong.TAKE_THEN_CUT:
                self.proxy.cut_at(contains(b"HPUB "), Cut.AFTER_REPLY)
            case None:
                self._configure(max_msgs=-1, discard="old", no_ack=False)

    def _configure(self, **changes: object) -> None:
        found = self.door.ask(f"STREAM.INFO.{self.stream}")["config"]
        answer = self.door.ask(f"STREAM.UPDATE.{self.stream}", found | changes)
        assert "error" not in answer, answer


@pytest.fixture
def ground(nats_server: NatsServer, stream: str) -> Iterator[NatsGround]:
    with ExitStack() as stack:
        yield NatsGround(nats_server, stream, stack)


class TestDeliver(DeliverContract):
    pass


class TestWrong(WrongContract):
    pass


def test_the_subject_names_rule_and_type(ground: NatsGround) -> None:
    ground.connect().deliver([parcel(1), parcel(2, rule="")])
    subjects = [subject for subject, _, _ in ground.door.read(ground.stream)]
    assert subjects == [
        f"{ground.subject}.cart.hold.expired.v1",
        f"{ground.subject}.freehold.hold.expired.v1",
    ]


def test_the_content_type_is_said(ground: NatsGround) -> None:
    ground.connect().deliver([parcel(1)])
    ((_, heads, _),) = ground.door.read(ground.stream)
    assert heads["Content-Type"] == "application/cloudevents+json"


def test_a_repeat_is_kept_once(ground: NatsGround) -> None:
    target = ground.connect()
    for _ in range(3):
        target.deliver([parcel(1)])
    assert len(ground.arrived()) == 1


def test_a_subject_that_no_stream_keeps_swallows_nothing(ground: NatsGround) -> None:
    target = ground.target(declare=False)
    (answer,) = target.deliver([parcel(1)])
    assert answer.reception is Reception.TRANSIENT
    assert answer.reason == "no stream keeps this subject"


def test_a_stream_that_was_deleted_is_made_again(ground: NatsGround) -> None:
    target = ground.connect()
    target.deliver([parcel(1)])
    ground.door.ask(f"STREAM.DELETE.{ground.stream}")
    assert [one.reception for one in target.deliver([parcel(2)])] == [Reception.ACCEPTED]


def test_a_stream_of_other_settings_is_its_owners_affair(ground: NatsGround) -> None:
    ground.door.ask(
        f"STREAM.CREATE.{ground.stream}",
        {"name": ground.stream, "subjects": [f"{ground.subject}.cart.>"], "storage": "memory"},
    )
    answers = ground.connect().deliver([parcel(1), parcel(2, rule="other")])
    assert [one.reception for one in answers] == [Reception.ACCEPTED, Reception.TRANSIENT]


def test_an_event_larger_than_nats_takes_is_refused_alone(ground: NatsGround) -> None:
    answers = ground.connect().deliver([parcel(1, body=b"x" * 2_000_000), parcel(2)])
    assert [one.reception for one in answers] == [Reception.REFUSED, Reception.ACCEPTED]
