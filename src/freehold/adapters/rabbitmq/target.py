"""Events to a durable topic exchange of RabbitMQ, with RULE.TYPE as their routing key.

*Invariants*: an event is accepted only when every queue that its routing key leads to has confirmed
it; one that leads to no queue is not accepted. A repeat is sent again and has the same message id.
"""

from __future__ import annotations

from collections.abc import Sequence

from freehold.adapters.rabbitmq.address import read_address
from freehold.adapters.rabbitmq.line import ROUNDS, Line
from freehold.adapters.rabbitmq.link import (
    CLOSE_SECONDS,
    NO_EXCHANGE,
    SHORT_MOST,
    Link,
    LinkLost,
    LinkRefused,
    Post,
    Said,
)
from freehold.adapters.rabbitmq.topology import declare_exchange
from freehold.domain.errors import TargetAway
from freehold.looping import LoopThread
from freehold.ports.target import Answer, Parcel, Reception

CONTENT_TYPE = "application/cloudevents+json"
NO_RULE = "freehold"  # stands where an event is about no hold
BATCH_MOST = 500
GRACE_SECONDS = 1.0
TOO_LONG = Answer(Reception.REFUSED, "too long", f"rule or key is over {SHORT_MOST} bytes")


class RabbitTarget:
    """One connection; implements `ports.target.Target`."""

    def __init__(
        self,
        *,
        url: str,
        exchange: str,
        declare: bool = True,
        ca_file: str | None = None,
        confirm_seconds: float = 10.0,
    ) -> None:
        self._exchange = exchange
        self._must_declare = declare
        self._confirm_seconds = confirm_seconds
        self._loop = LoopThread("rabbitmq-target")
        self._line = Line(
            read_address(url, ca_file), self._declare, lambda: None, may_be_gone={NO_EXCHANGE}
        )

    @property
    def batch_most(self) -> int:
        """Return how many parcels one call takes at most."""
        return BATCH_MOST

    @property
    def seconds_most(self) -> float:
        """Return the bound of connecting, declaring and confirms, all of it twice."""
        confirming = self._confirm_seconds + CLOSE_SECONDS
        return ROUNDS * (self._line.opening_seconds + confirming) + GRACE_SECONDS

    def deliver(self, parcels: Sequence[Parcel]) -> Sequence[Answer]:
        """Publish parcels and wait for RabbitMQ's confirms."""
        posts = {place: self._post(one) for place, one in enumerate(parcels) if _fits(one)}
        try:
            work = self._line.publish(list(posts.values()), self._confirm_seconds)
            said = dict(zip(posts, self._loop.run(work, self.seconds_most), strict=True))
        except (LinkLost, LinkRefused) as error:
            raise TargetAway(str(error)) from None
        except TimeoutError:
            raise TargetAway("RabbitMQ did not answer in time") from None
        return [_answer(said.get(place)) for place in range(len(parcels))]

    async def _declare(self, link: Link) -> None:
        if self._must_declare:
            await declare_exchange(link, self._exchange)

    def _post(self, parcel: Parcel) -> Post:
        return Post(
            exchange=self._exchange,
            routing_key=_routing_key(parcel),
            name=parcel.event_key,
            body=parcel.body,
            content_type=CONTENT_TYPE,
            type=parcel.type,
        )

    def close(self) -> None:
        """End the connection."""
        try:
            if self._line.link is not None:
                self._loop.run(self._line.drop(), CLOSE_SECONDS + GRACE_SECONDS)
        except TimeoutError:
            self._line.link = None
        finally:
            self._loop.stop()


def _routing_key(parcel: Parcel) -> str:
    return f"{parcel.rule or NO_RULE}.{parcel.type}"


def _fits(parcel: Parcel) -> bool:
    """Tell whether AMQP can carry what names an event."""
    longest = max(len(_routing_key(parcel).encode()), len(parcel.event_key.encode()))
    return longest <= SHORT_MOST


def _answer(said: Said | None) -> Answer:
    if said is None:
        return TOO_LONG
    if said.is_confirmed:
        return Answer(Reception.ACCEPTED)
    return Answer(Reception.TRANSIENT, said.code, said.text or "no confirm in time")
