"""A link that is opened again when it is lost, with what must be declared behind it.

*Invariants*: nothing is tried more than twice, so that who calls is told at once. Belongs to one
loop and one caller.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from freehold.adapters.nats.address import read_addresses, trust
from freehold.adapters.nats.client import LinkLost, LinkRefused
from freehold.adapters.nats.link import (
    CONNECT_SECONDS,
    NOBODY,
    REQUEST_SECONDS,
    SILENCE,
    Link,
    Post,
    Said,
)

T = TypeVar("T")

ROUNDS = 2


class Line:
    """What a queue and a target share.

    Args:
        declare: makes sure that streams are there; called behind each new connection, and when
            `is_declared` was taken back.
        requests_most: how often `declare` asks.
        forget: is called when a connection is given up.
    """

    def __init__(
        self,
        url: str,
        ca_file: str | None,
        declare: Callable[[Link], Awaitable[None]],
        requests_most: int,
        forget: Callable[[], None],
    ) -> None:
        self._addresses = read_addresses(url)
        self._trusted = trust(ca_file)
        self._declare = declare
        self._requests_most = requests_most
        self._forget = forget
        self.link: Link | None = None
        self.is_declared = False

    @property
    def opening_seconds(self) -> float:
        """Return how long `ready` takes at most."""
        return len(self._addresses) * CONNECT_SECONDS + self._requests_most * REQUEST_SECONDS

    async def ready(self) -> Link:
        """Return a living link with what it needs behind it.

        Raises:
            LinkLost: no server can be reached.
            LinkRefused: one can, and is not as it must be.
        """
        if self.link is None or self.link.is_lost:
            await self.drop()
            self.link = await Link.open(self._addresses, self._trusted)
        if not self.is_declared:
            await self._declare(self.link)
            self.is_declared = True
        return self.link

    async def drop(self) -> None:
        """Give the link up."""
        link, self.link = self.link, None
        self.is_declared = False
        self._forget()
        if link is not None:
            await link.close()

    async def twice(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do work, and once more over a new link where the old one proved lost."""
        try:
            return await work()
        except LinkLost:
            if self.link is None:  # no server could be reached at all
                raise
            await self.drop()
            return await work()

    async def publish(self, posts: Sequence[Post], seconds: float) -> list[Said]:
        """Publish all; what a lost connection or a missing stream kept back, once more.

        Raises:
            LinkLost, LinkRefused: nothing was confirmed, and there is no link any more.
        """
        link = await self.ready()
        said = await link.publish(posts, seconds)
        if posts and all(one is SILENCE for one in said) and not link.is_lost:
            await self.drop()  # a peer that says nothing at all is better met anew
            return said
        again = [place for place, one in enumerate(said) if _may_pass(link, one)]
        if not again:
            return said
        self.is_declared = False
        try:
            link = await self.ready()
        except (LinkLost, LinkRefused):
            if any(one.is_confirmed for one in said):
                return said
            raise
        answers = await link.publish([posts[place] for place in again], seconds)
        for place, answer in zip(again, answers, strict=True):
            said[place] = answer
        return said


def _may_pass(link: Link, said: Said) -> bool:
    """Tell whether the same message may get through over a new connection or stream."""
    return said.code == NOBODY or (said is SILENCE and link.is_lost)
