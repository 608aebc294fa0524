"""Events to subjects of JetStream, SUBJECT.RULE.TYPE, in a stream that keeps them.

*Invariants*: an event is accepted only when a stream confirmed it; a subject that no stream keeps
swallows nothing. An event's key is its `Nats-Msg-Id`: a repeat within the stream's window is
confirmed, and not kept twice.
"""

from __future__ import annotations

from collections.abc import Sequence

from nats.js.api import Header

from freehold.adapters.nats.client import LinkLost, LinkRefused
from freehold.adapters.nats.line import ROUNDS, Line
from freehold.adapters.nats.link import CONNECT_SECONDS, Link, Post, Said
from freehold.adapters.nats.topology import declare_stream, events_stream
from freehold.domain.errors import TargetAway
from freehold.looping import LoopThread
from freehold.ports.target import Answer, Parcel, Reception

CONTENT_TYPE = "application/cloudevents+json"
NO_RULE = "freehold"  # stands where an event is about no hold
BATCH_MOST = 500
REQUESTS_MOST = 2  # to look a stream up and make it
GRACE_SECONDS = 1.0


class NatsTarget:
    """One connection; implements `ports.target.Target`."""

    def __init__(
        self,
        *,
        url: str,
        subject: str,
        stream: str,
        declare: bool = True,
        replicas: int = 1,
        ca_file: str | None = None,
        confirm_seconds: float = 10.0,
    ) -> None:
        self._subject = subject
        self._stream = stream
        self._must_declare = declare
        self._replicas = replicas
        self._confirm_seconds = confirm_seconds
        self._loop = LoopThread("nats-target")
        self._line = Line(url, ca_file, self._declare, REQUESTS_MOST, lambda: None)

    @property
    def batch_most(self) -> int:
        """Return how many parcels one call takes at most."""
        return BATCH_MOST

    @property
    def seconds_most(self) -> float:
        """Return the bound of connecting, declaring and confirms, all of it twice."""
        return ROUNDS * (self._line.opening_seconds + self._confirm_seconds) + GRACE_SECONDS

    def deliver(self, parcels: Sequence[Parcel]) -> Sequence[Answer]:
        """Publish parcels and wait for JetStream's confirms."""
        try:
            return self._loop.run(self._deliver(parcels), self.seconds_most)
        except (LinkLost, LinkRefused) as error:
            raise TargetAway(str(error)) from None
        except TimeoutError:
            raise TargetAway("NATS did not answer in time") from None

    async def _deliver(self, parcels: Sequence[Parcel]) -> list[Answer]:
        posts = [self._post(one) for one in parcels]
        return [_answer(one) for one in await self._line.publish(posts, self._confirm_seconds)]

    async def _declare(self, link: Link) -> None:
        if self._must_declare:
            wanted = events_stream(self._stream, self._subject, self._replicas)
            await declare_stream(link, wanted, ())  # one that exists is its owner's affair

    def _post(self, parcel: Parcel) -> Post:
        headers = {Header.MSG_ID.value: parcel.event_key, "Content-Type": CONTENT_TYPE}
        subject = f"{self._subject}.{parcel.rule or NO_RULE}.{parcel.type}"
        return Post(subject, parcel.body, headers)

    def close(self) -> None:
        """End the connection."""
        try:
            if self._line.link is not None:
                self._loop.run(self._line.drop(), CONNECT_SECONDS)
        except TimeoutError:
            self._line.link = None
        finally:
            self._loop.stop()


def _answer(said: Said) -> Answer:
    if said.is_confirmed:
        return Answer(Reception.ACCEPTED)
    if said.code == "too large":
        return Answer(Reception.REFUSED, said.code, said.text)
    return Answer(Reception.TRANSIENT, said.code, said.text or "no confirm in time")
