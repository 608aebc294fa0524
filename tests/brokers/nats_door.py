"""The back door to a NATS server: a plain connection that uses nothing of the adapter."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, TypeVar

import nats

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from nats.aio.client import Client

T = TypeVar("T")


class NatsDoor:
    """Opens a connection for each call, on a loop of its own."""

    def __init__(self, url: str) -> None:
        self.url = url

    def call(self, act: Callable[[Client], Coroutine[Any, Any, T]]) -> T:
        """Run an act over a connection."""

        async def run() -> T:
            client = await nats.connect(self.url, allow_reconnect=False)
            try:
                return await act(client)
            finally:
                await client.close()

        return asyncio.run(run())

    def ask(self, subject: str, fields: dict[str, Any] | None = None) -> dict[str, Any]:
        """Ask JetStream's API."""

        async def act(client: Client) -> dict[str, Any]:
            body = json.dumps(fields or {}).encode()
            answer = await client.request(f"$JS.API.{subject}", body, timeout=5)
            found: dict[str, Any] = json.loads(answer.data)
            return found

        return self.call(act)

    def put(self, subject: str, *bodies: bytes) -> None:
        """Publish, and wait until JetStream has it."""

        async def act(client: Client) -> None:
            for body in bodies:
                await client.jetstream().publish(subject, body)

        self.call(act)

    def read(self, stream: str) -> list[tuple[str, dict[str, str], bytes]]:
        """Return subject, headers and body of all that a stream has."""
        state = self.ask(f"STREAM.INFO.{stream}")
        if "error" in state or not state["state"]["messages"]:
            return []
        first, last = state["state"]["first_seq"], state["state"]["last_seq"]

        async def act(client: Client) -> list[tuple[str, dict[str, str], bytes]]:
            js = client.jetstream()
            found = [await js.get_msg(stream, number) for number in range(first, last + 1)]
            return [(one.subject or "", one.headers or {}, one.data or b"") for one in found]

        return self.call(act)

    def waiting(self, stream: str, consumer: str) -> int:
        """Count what waits behind a consumer, handed to nobody."""
        state = self.ask(f"CONSUMER.INFO.{stream}.{consumer}")
        return 0 if "error" in state else int(state["num_pending"])
