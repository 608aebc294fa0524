"""One connection to a NATS server: requests, publishing with confirms, and pulled messages.

*Invariants*: a lost connection stays lost, and is replaced by another link; every wait is bounded
and ends at once when the connection does; no error holds a password. *Not here*: streams and
consumers (`topology`), what is sent (`queue`, `target`).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from nats.aio.msg import Msg
from nats.errors import (
    ConnectionClosedError,
    Error,
    MaxPayloadError,
    NoRespondersError,
)

from freehold.adapters.nats.address import Address
from freehold.adapters.nats.client import LinkLost, LinkRefused, NatsClient, why, word_for

T = TypeVar("T")

CONNECT_SECONDS = 5  # to one server, until it has answered a ping
REQUEST_SECONDS = 5.0  # the default of JetStream clients for its API
CLOSE_SECONDS = 1.0  # for the farewell; one after a failed TLS handshake never ends by itself
PING_SECONDS = 15  # a peer that is silent is given up after twice that
OPENED = "freehold"  # what the server's monitoring calls the connection
# JetStream drops what it is sent beyond 10,000 messages that it has not stored yet.
# Source: nats-server, `max_buffered_msgs`.
PIPELINE_MOST = 2_000


@dataclass(frozen=True, slots=True)
class Post:
    """One message to be published."""

    subject: str
    body: bytes
    headers: dict[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Said:
    """What the server said to one message; `code` is empty where it said nothing."""

    is_confirmed: bool = False
    code: str = ""
    text: str = ""


CONFIRMED = Said(is_confirmed=True)
SILENCE = Said()
NOBODY = "503"  # no stream keeps the subject, or JetStream is off


@dataclass(slots=True)
class _Round:
    """Messages of one call that wait for their answers."""

    answers: list[Said]
    left: int
    done: asyncio.Future[None]


@dataclass(slots=True)
class Pull:
    """One request for messages: `ended` has its status, or None when all came."""

    left: int
    messages: list[Msg] = field(default_factory=list)
    ended: asyncio.Future[str | None] = field(default_factory=lambda: _future())  # noqa: PLW0108 - defined below


class Link:
    """Belongs to one loop and one caller."""

    def __init__(self, client: NatsClient, place: str) -> None:
        self._client = client
        self.place = place
        self.late: list[Msg] = []  # came after their request had been given up
        self._rounds: dict[str, _Round] = {}
        self._pulls: dict[str, Pull] = {}
        self._numbers = 0
        self._trouble: asyncio.Future[LinkLost | LinkRefused] = _future()
        self._answers = client.new_inbox()
        self._pulled = client.new_inbox()

    # -------------------------------------------------------------------------------- the connection

    @classmethod
    async def open(cls, addresses: Sequence[Address], trusted: ssl.SSLContext) -> Link:
        """Connect to the first server that answers.

        Raises:
            LinkLost: none did.
            LinkRefused: one did, and will not have us.
        """
        failures = []
        for address in addresses:
            try:
                return await cls._open(address, trusted)
            except LinkLost as error:
                failures.append(str(error))
        raise LinkLost("; ".join(failures))

    @classmethod
    async def _open(cls, address: Address, trusted: ssl.SSLContext) -> Link:
        client = NatsClient()
        link, failures = cls(client, address.place), list[Exception]()
        client.demands_tls, client.when_ending = address.is_tls, link._end

        async def hear(error: Exception) -> None:
            failures.append(error)
            link._hear(error)

        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                await client.connect(
                    **address.options,
                    error_cb=hear,
                    name=OPENED,
                    allow_reconnect=False,
                    max_reconnect_attempts=1,
                    reconnect_time_wait=0,
                    connect_timeout=CONNECT_SECONDS,
                    ping_interval=PING_SECONDS,
                    max_outstanding_pings=1,
                    tls=trusted,
                )
                await client.subscribe(f"{link._answers}.*.*", cb=link._on_answer)
                await client.subscribe(f"{link._pulled}.*", cb=link._on_pulled)
        except (OSError, Error, TimeoutError) as error:
            await link.close()
            raise why(address.place, [error, *reversed(failures)]) from None
        except BaseException:
            await link.close()
            raise
        return link

    @property
    def is_lost(self) -> bool:
        """Tell whether the connection has ended."""
        return bool(self._client.is_closed or not self._client.is_connected)

    @property
    def identity(self) -> str:
        """Return what no other connection has: the server's start, and our number there."""
        return f"{self._client.told('server_id')[:20]}.{self._client.client_id}"

    @property
    def version(self) -> str:
        """Return the server's version, as it says."""
        return self._client.told("version")

    @property
    def cluster(self) -> str:
        """Return the name of the server's cluster; empty where it is alone."""
        return self._client.told("cluster")

    async def close(self) -> None:
        """End the connection, whatever state it is in."""
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._client.close()
        except (OSError, Error, TimeoutError):
            self._client.abort()

    def _end(self) -> None:
        self._tell(LinkLost(f"NATS at {self.place} closed the connection"))

    def _hear(self, error: Exception) -> None:
        """Note a lack of rights, which the server tells beside the request in hand."""
        text = str(error).removeprefix("nats: ")
        if "permissions violation" in text:
            self._tell(LinkRefused(f"NATS at {self.place} does not let us: {text}"))

    def _tell(self, trouble: LinkLost | LinkRefused) -> None:
        if not self._trouble.done():
            self._trouble.set_result(trouble)

    async def _await(self, future: asyncio.Future[T], seconds: float) -> T:
        """Wait for a future, or for trouble with the connection.

        Raises:
            LinkLost: the connection has ended.
            LinkRefused: a right is missing.
            TimeoutError: neither came in time.
        """
        if self.is_lost:
            raise LinkLost(f"the connection to NATS at {self.place} is lost")
        waited: set[asyncio.Future[Any]] = {future, self._trouble}
        await asyncio.wait(waited, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if future.done():
            return future.result()
        if not self._trouble.done():
            raise TimeoutError
        trouble = self._trouble.result()
        if isinstance(trouble, LinkRefused):
            self._trouble = _future()
        raise trouble

    def _number(self) -> str:
        self._numbers += 1
        return str(self._numbers)

    # ------------------------------------------------------------------------------------ publishing

    async def request(self, subject: str, fields: dict[str, Any]) -> dict[str, Any]:
        """Ask JetStream's API; an error that it answers is in the answer.

        Raises:
            LinkLost: no answer, or no connection.
            LinkRefused: no right to ask, or no JetStream at all.
        """
        body = json.dumps(fields).encode() if fields else b""
        asked = asyncio.ensure_future(
            self._client.request(f"$JS.API.{subject}", body, timeout=REQUEST_SECONDS)
        )
        try:
            answer = await self._await(asked, REQUEST_SECONDS)
        except NoRespondersError:
            raise LinkRefused(
                f"NATS at {self.place} has no JetStream here: turn it on for this account"
            ) from None
        except (Error, OSError, TimeoutError) as error:
            raise LinkLost(f"NATS at {self.place} did not answer ({word_for(error)})") from None
        finally:
            asked.cancel()
        found: dict[str, Any] = json.loads(answer.data)
        return found

    async def publish(self, posts: Sequence[Post], seconds: float) -> list[Said]:
        """Publish all and wait for what is said to each, at most so long for each `PIPELINE_MOST`.

        A connection that is lost meanwhile is told by `is_lost`, and by silence.

        Raises:
            LinkRefused: no right to publish there.
        """
        said: list[Said] = []
        for start in range(0, len(posts), PIPELINE_MOST):
            said += await self._publish(posts[start : start + PIPELINE_MOST], seconds)
        return said

    async def _publish(self, posts: Sequence[Post], seconds: float) -> list[Said]:
        number = self._number()
        waiting = _Round([SILENCE] * len(posts), len(posts), _future())
        self._rounds[number] = waiting
        try:
            await self._send(posts, f"{self._answers}.{number}.", waiting)
            if waiting.left:
                await self._await(waiting.done, seconds)
        except (LinkLost, TimeoutError):
            pass  # what is known is in the answers
        finally:
            del self._rounds[number]
        return waiting.answers

    async def _send(self, posts: Sequence[Post], inbox: str, waiting: _Round) -> None:
        publish = self._client.publish
        for place, post in enumerate(posts):
            try:
                await publish(post.subject, post.body, f"{inbox}{place}", post.headers)
            except MaxPayloadError:
                waiting.answers[place] = Said(code="too large", text="larger than NATS takes")
                waiting.left -= 1
            except (ConnectionClosedError, OSError) as error:
                raise LinkLost(f"the connection to NATS at {self.place} is lost") from error

    async def tell(self, subjects: Sequence[str], word: bytes) -> None:
        """Send one word to subjects, and wait for nothing."""
        publish = self._client.publish
        with contextlib.suppress(ConnectionClosedError, OSError):
            for subject in subjects:
                await publish(subject, word)

    async def _on_answer(self, message: Msg) -> None:
        _, number, place = message.subject.rsplit(".", 2)
        waiting = self._rounds.get(number)
        if waiting is None or waiting.answers[int(place)] is not SILENCE:
            return
        waiting.answers[int(place)] = _said(message)
        waiting.left -= 1
        if not waiting.left and not waiting.done.done():
            waiting.done.set_result(None)

    # --------------------------------------------------------------------------------------- pulling

    async def pull(self, subject: str, fields: dict[str, Any], seconds: float) -> Pull:
        """Ask for a batch and wait for it or its end, at most so long.

        What comes after that is put into `late`.

        Raises:
            LinkLost: the connection is lost, and nothing came.
        """
        number, pull = self._number(), Pull(fields["batch"])
        self._pulls[number] = pull
        try:
            await self._client.publish(
                f"$JS.API.{subject}", json.dumps(fields).encode(), f"{self._pulled}.{number}"
            )
            await self._await(pull.ended, seconds)
        except TimeoutError:
            pass
        except (LinkLost, ConnectionClosedError, OSError):
            if not pull.messages:
                raise LinkLost(f"the connection to NATS at {self.place} is lost") from None
        finally:
            del self._pulls[number]
        return pull

    async def _on_pulled(self, message: Msg) -> None:
        """Take a message, or a status, which alone comes on the request's own subject."""
        if message.reply:
            pull = next(iter(self._pulls.values()), None)
            if pull is None or not pull.left:
                self.late.append(message)
                return
            pull.messages.append(message)
            pull.left -= 1
            if not pull.left and not pull.ended.done():
                pull.ended.set_result(None)
            return
        pull = self._pulls.get(message.subject.rpartition(".")[2])
        if pull is not None and not pull.ended.done():
            pull.ended.set_result((message.headers or {}).get("Status", ""))


# ----------------------------------------------------------------------------------------- reading


def _future() -> asyncio.Future[Any]:
    return asyncio.get_running_loop().create_future()


def _said(message: Msg) -> Said:
    """Read the answer to a published message."""
    if not message.data:
        status = (message.headers or {}).get("Status", "")
        return Said(code=status, text="no stream keeps this subject") if status else CONFIRMED
    if b'"error"' not in message.data:
        return CONFIRMED
    error = json.loads(message.data)["error"]
    return Said(code=str(error.get("err_code", "")), text=str(error.get("description", "")))
