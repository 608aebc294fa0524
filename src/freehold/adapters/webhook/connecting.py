"""Connect to a customer's endpoint, and to nothing behind our own walls.

*Invariants*: a name is looked up by us, every address that it has is judged, and the connection
goes to a judged address, never to the name again: a name server that changes its mind between the
look and the connect is asked once. TLS and `Host` keep the name.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Collection
from contextlib import suppress
from ipaddress import ip_address
from typing import Any

import httpcore

from freehold.domain.public_addresses import Address, Network, is_allowed, is_public

ADDRESSES_MOST = 4  # tried for one connection
CONNECT_SECONDS = 5.0  # for one address

LookUp = Callable[[str, int], Collection[Address]]


class AddressForbidden(Exception):
    """The host has an address that may not be reached."""


class NameUnknown(Exception):
    """The host's name has no address, or none that came in time."""


def look_up(host: str, port: int) -> Collection[Address]:
    """Ask the system for the addresses of a name; blocks.

    Raises:
        OSError: there is none, or nobody to ask.
        UnicodeError: it cannot be asked for.
    """
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    return tuple(dict.fromkeys(ip_address(str(where[0]).partition("%")[0]) for *_, where in found))


class GuardedNetwork(httpcore.AsyncNetworkBackend):
    """Opens connections to one host; belongs to one loop."""

    def __init__(
        self, allow: Collection[Network], *, insecure: bool, look_up: LookUp = look_up
    ) -> None:
        """Say what may be reached.

        Args:
            allow: networks that may be reached although they are not public.
            insecure: the connection will not be encrypted, so only `allow` may be reached.
        """
        self._allow = allow
        self._insecure = insecure
        self._look_up = look_up
        self._plain = httpcore.AnyIOBackend()
        self._asked: asyncio.Future[Collection[Address]] | None = None

    async def connect_tcp(
        self, host: str, port: int, *_: Any, **__: Any
    ) -> httpcore.AsyncNetworkStream:
        """Connect to the first address that answers; what else httpcore may ask for is not given.

        Raises:
            AddressForbidden: some address may not be reached.
            NameUnknown: there is no address.
            httpcore.NetworkError, httpcore.TimeoutException: none of them answered.
        """
        addresses = await self._addresses(host, port)
        if not addresses:
            raise NameUnknown
        if not all(self._may_reach(address) for address in addresses):
            raise AddressForbidden
        *others, last = list(addresses)[:ADDRESSES_MOST]
        for address in others:
            with suppress(httpcore.NetworkError, httpcore.TimeoutException):
                return await self._open(address, port)
        return await self._open(last, port)

    async def _open(self, address: Address, port: int) -> httpcore.AsyncNetworkStream:
        return await self._plain.connect_tcp(str(address), port, timeout=CONNECT_SECONDS)

    def _may_reach(self, address: Address) -> bool:
        if is_allowed(address, self._allow):
            return True
        return not self._insecure and is_public(address)

    async def _addresses(self, host: str, port: int) -> Collection[Address]:
        """Look a name up, once for all connections that are opened at the same time.

        A look-up cannot be ended; whoever waits no longer leaves it behind, and so there is at most
        one under way however long a name server takes.
        """
        with suppress(ValueError):
            return (ip_address(host),)
        if self._asked is None:
            loop = asyncio.get_running_loop()
            self._asked = loop.create_future()
            self._asked.add_done_callback(self._forget)
            threading.Thread(
                target=self._ask, args=(loop, self._asked, host, port), daemon=True
            ).start()
        try:
            return await asyncio.shield(self._asked)
        except (OSError, UnicodeError):
            raise NameUnknown from None

    def _forget(self, asked: asyncio.Future[Collection[Address]]) -> None:
        self._asked = None
        if not asked.cancelled():
            asked.exception()  # seen, even where nobody waits any more

    def _ask(
        self,
        loop: asyncio.AbstractEventLoop,
        asked: asyncio.Future[Collection[Address]],
        host: str,
        port: int,
    ) -> None:
        try:
            found, error = self._look_up(host, port), None
        except (OSError, UnicodeError, ValueError) as raised:
            found, error = (), raised
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(_answer, asked, found, error)


def _answer(
    asked: asyncio.Future[Collection[Address]],
    found: Collection[Address],
    error: Exception | None,
) -> None:
    if asked.done():
        return
    if error is None:
        asked.set_result(found)
    else:
        asked.set_exception(OSError(str(error)))
