"""A link that is opened again when it is lost, with what must be declared behind it.

*Invariants*: nothing is tried more than twice, so that who calls is told at once. Belongs to one
loop and one caller.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import TypeVar

from freehold.adapters.rabbitmq.address import Address
from freehold.adapters.rabbitmq.link import (
    CLOSE_SECONDS,
    CONNECT_SECONDS,
    REQUEST_SECONDS,
    SILENCE,
    Link,
    LinkBlocked,
    LinkLost,
    LinkRefused,
    Post,
    Said,
)

T = TypeVar("T")

ROUNDS = 2
SILENT_SECONDS = 0.1  # given to a peer that has said nothing for longer
REQUESTS_MOST = 12  # of one declaration: two queues, each perhaps asked for twice on a channel


class Line:
    """What a queue and a target share.

    Args:
        declare: makes sure that queues or an exchange are there; called behind each new connection,
            and when `is_declared` was taken back.
        forget: is called when a connection is given up.
        may_be_gone: what the server says when something that was declared is there no more.
    """

    def __init__(
        self,
        address: Address,
        declare: Callable[[Link], Awaitable[None]],
        forget: Callable[[], None],
        *,
        may_be_gone: Collection[str],
    ) -> None:
        self._address = address
        self._may_be_gone = may_be_gone
        self._declare = declare
        self._forget = forget
        self.link: Link | None = None
        self.is_declared = False

    @property
    def opening_seconds(self) -> float:
        """Return how long `ready` takes at most."""
        return CLOSE_SECONDS + CONNECT_SECONDS + REQUESTS_MOST * REQUEST_SECONDS

    async def ready(self) -> Link:
        """Return a living link with what it needs behind it.

        Raises:
            LinkLost: the server cannot be reached.
            LinkRefused: it can, and is not as it must be.
        """
        if self.link is None or self.link.is_lost:
            await self.drop()
            self.link = await Link.open(self._address)
        if not self.is_declared:
            await self._declare(self.link)
            self.is_declared = True
        return self.link

    async def drop(self, seconds: float = CLOSE_SECONDS) -> None:
        """Give the link up, waiting so long for the other side."""
        link, self.link = self.link, None
        self.is_declared = False
        self._forget()
        if link is not None:
            await link.close(seconds)

    async def twice(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do work, and once more over a new link where the old one proved lost.

        A link that failed is given up in any case: the client closes a channel that was late.
        """
        had_link = self.link is not None
        try:
            return await self._once(work)
        except LinkLost:
            if not had_link:
                raise
        return await self._once(work)

    async def _once(self, work: Callable[[], Awaitable[T]]) -> T:
        try:
            return await work()
        except LinkLost:
            await self.drop(SILENT_SECONDS)
            raise

    async def publish(self, posts: Sequence[Post], seconds: float) -> list[Said]:
        """Publish all; what a lost connection or a missing queue kept back, once more.

        So a message may arrive twice, which consumers bear.

        Raises:
            LinkLost, LinkRefused: nothing was confirmed, and there is no link any more, or the
                server takes no messages.
        """
        link = await self.ready()
        said = await link.publish(posts, seconds)
        again = [place for place, one in enumerate(said) if self._may_pass(link, one)]
        if again:
            await self._publish_again(link, posts, said, again, seconds)
        elif posts and all(one is SILENCE for one in said) and not await link.is_blocked():
            await self.drop(SILENT_SECONDS)  # a peer that says nothing is better met anew
        return said

    async def _publish_again(
        self, old: Link, posts: Sequence[Post], said: list[Said], again: list[int], seconds: float
    ) -> None:
        self.is_declared = False
        try:
            if old.is_lost and isinstance(error := old.lost(), LinkRefused):
                raise error
            link = await self.ready()
            answers = await link.publish([posts[place] for place in again], seconds)
        except LinkBlocked:
            return
        except (LinkLost, LinkRefused):
            if not any(one.is_confirmed for one in said):
                raise
            return
        for place, answer in zip(again, answers, strict=True):
            said[place] = answer

    def _may_pass(self, link: Link, said: Said) -> bool:
        """Tell whether the same message may get through over a new connection or queue."""
        return said.code in self._may_be_gone or (said is SILENCE and link.is_lost)
