"""Events to subjects of JetStream, SUBJECT.RULE.TYPE, in a stream that keeps them.

*Invariants*: an event is accepted only when a stream confirmed it; a subject that no stream keeps
swallows nothing. An event's key is its `Nats-Msg-Id`: a repeat within the stream's window is
confirmed, and not kept twice.
"""

from __future__ import annotations

from collections.abc import Sequence

from nats.js.api import Header

from freehold.adapters.nats.address import read_addresses, trust
from freehold.adapters.nats.link import (
    CONNECT_SECONDS,
    NOBODY,
    REQUEST_SECONDS,
    Link,
    LinkLost,
    LinkRefused,
    Post,
    Said,
)
from freehold.adapters.nats.loop import LoopThread
from freehold.adapters.nats.topology import declare_stream, events_stream
from freehold.domain.errors import TargetAway
from freehold.ports.target import Answer, Parcel, Reception

CONTENT_TYPE = "application/cloudevents+json"
NO_RULE = "freehold"  # stands where an event is about no hold
BATCH_MOST = 500
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
        self._addresses = read_addresses(url)
        self._trusted = trust(ca_file)
        self._subject = subject
        self._stream = stream
        self._must_declare = declare
        self._replicas = replicas
        self._confirm_seconds = confirm_seconds
        self._loop = LoopThread("nats-target")
        self._link: Link | None = None
        self._is_declared = False

    @property
    def batch_most(self) -> int:
        """Return how many parcels one call takes at most."""
        return BATCH_MOST

    @property
    def seconds_most(self) -> float:
        """Return the bound of connecting, declaring and one round of confirms."""
        opening = len(self._addresses) * CONNECT_SECONDS + 2 * REQUEST_SECONDS
        return opening + self._confirm_seconds + GRACE_SECONDS

    def deliver(self, parcels: Sequence[Parcel]) -> Sequence[Answer]:
        """Publish parcels and wait for JetStream's confirms."""
        try:
            return self._loop.run(self._deliver(parcels), self.seconds_most)
        except (LinkLost, LinkRefused) as error:
            raise TargetAway(str(error)) from None
        except TimeoutError:
            raise TargetAway("NATS did not answer in time") from None

    async def _deliver(self, parcels: Sequence[Parcel]) -> list[Answer]:
        link = await self._ready()
        said = await link.publish([self._post(one) for one in parcels], self._confirm_seconds)
        if any(one.code == NOBODY for one in said):
            self._is_declared = False  # the stream is gone; the next call makes it again
        return [_answer(one) for one in said]

    async def _ready(self) -> Link:
        if self._link is None or self._link.is_lost:
            await self._drop()
            self._link = await Link.open(self._addresses, self._trusted)
        if self._must_declare and not self._is_declared:
            wanted = events_stream(self._stream, self._subject, self._replicas)
            await declare_stream(self._link, wanted, ())  # one that exists is its owner's affair
            self._is_declared = True
        return self._link

    def _post(self, parcel: Parcel) -> Post:
        headers = {Header.MSG_ID.value: parcel.event_key, "Content-Type": CONTENT_TYPE}
        subject = f"{self._subject}.{parcel.rule or NO_RULE}.{parcel.type}"
        return Post(subject, parcel.body, headers)

    async def _drop(self) -> None:
        link, self._link = self._link, None
        self._is_declared = False
        if link is not None:
            await link.close()

    def close(self) -> None:
        """End the connection."""
        try:
            if self._link is not None:
                self._loop.run(self._drop(), CONNECT_SECONDS)
        except TimeoutError:
            self._link = None
        finally:
            self._loop.stop()


def _answer(said: Said) -> Answer:
    if said.is_confirmed:
        return Answer(Reception.ACCEPTED)
    if said.code == "too large":
        return Answer(Reception.REFUSED, said.code, said.text)
    return Answer(Reception.TRANSIENT, said.code, said.text or "no confirm in time")
