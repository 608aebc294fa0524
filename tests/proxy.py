"""A TCP proxy that cuts a connection at a chosen byte, to lose a request or only its answer.

Invariants:
    - Bytes pass unchanged and in order until a cut; a cut closes both sides with a reset.
    - A cut that was armed happens once; `wait_until_cut` says that it did.
"""

from __future__ import annotations

import contextlib
import enum
import select
import socket
import struct
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit, urlunsplit

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    Predicate = Callable[[bytes], bool]

_CHUNK_BYTES = 65_536
# Bytes of the previous chunk that a predicate sees again, so that a split word is still found.
_OVERLAP_BYTES = 256
_WAIT_SECONDS = 20.0
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)

_COMMIT = b"COMMIT\x00"
_READY_IDLE = b"Z\x00\x00\x00\x05I"


class Cut(enum.Enum):
    """Where the connection is cut, seen from the request that matches."""

    BEFORE_FORWARD = "the server never sees the request"
    AFTER_REPLY = "the server did it, and its answer is swallowed"


def contains(word: bytes) -> Predicate:
    """Return a predicate that is true when the bytes contain the word."""
    return lambda data: word in data


def is_commit(data: bytes) -> bool:
    """Tell whether the bytes hold a COMMIT of any case, and not only a setting named for it."""
    return _COMMIT in data.upper()


def is_committed(data: bytes) -> bool:
    """Tell whether this is the whole answer to a COMMIT that took effect.

    Between its tag and "ready, idle" the server reports settings that were local to it.
    """
    return _COMMIT in data and data.endswith(_READY_IDLE)


@dataclass
class _Plan:
    cut: Cut
    request: Predicate
    reply: Predicate
    remaining: int


@dataclass(eq=False)
class _Link:
    """One client connection and its own connection to the server."""

    client: socket.socket
    server: socket.socket
    seen: bytes = b""
    swallowed: bytes = b""
    swallowing: _Plan | None = None

    def cut(self) -> None:
        for side in (self.client, self.server):
            with contextlib.suppress(OSError):
                side.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
            side.close()


@dataclass
class CuttingProxy:
    """Listens on a free loopback port and forwards to host and port; use it in a `with`."""

    host: str
    port: int
    _listener: socket.socket = field(init=False)
    _links: set[_Link] = field(default_factory=set)
    _plan: _Plan | None = None
    _is_down: bool = False
    _has_cut: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)
    _guard: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def for_url(cls, url: str) -> CuttingProxy:
        """Return a proxy in front of the server of a database URL."""
        parts = urlsplit(url)
        return cls(parts.hostname or "127.0.0.1", parts.port or 5432)

    def url(self, url: str) -> str:
        """Return the URL with this proxy's address in place of the server's."""
        parts = urlsplit(url)
        login, at, _ = parts.netloc.rpartition("@")
        host, port = self._listener.getsockname()
        return urlunsplit(parts._replace(netloc=f"{login}{at}{host}:{port}"))

    # ------------------------------------------------------------------------------------- modes

    def cut_at(
        self, request: Predicate, cut: Cut, *, reply: Predicate = bool, occurrence: int = 1
    ) -> None:
        """Arm one cut.

        Args:
            request: is shown what a client sends, with a little of what it sent before.
            cut: where to cut.
            reply: for AFTER_REPLY, true once the swallowed answer is complete; any byte by default.
            occurrence: which matching chunk, from 1, over all connections.
        """
        self._has_cut.clear()
        self._plan = _Plan(cut, request, reply, occurrence)

    def lose_commit(self, *, occurrence: int = 1) -> None:
        """Arm a cut that keeps a COMMIT from the server."""
        self.cut_at(is_commit, Cut.BEFORE_FORWARD, occurrence=occurrence)

    def lose_commit_answer(self, *, occurrence: int = 1) -> None:
        """Arm a cut after the server committed and before the client hears of it."""
        self.cut_at(is_commit, Cut.AFTER_REPLY, reply=is_committed, occurrence=occurrence)

    def wait_until_cut(self, seconds: float = _WAIT_SECONDS) -> None:
        """Wait for the armed cut.

        Raises:
            AssertionError: the cut did not happen in time.
        """
        assert self._has_cut.wait(seconds), "the armed cut did not happen"

    def go_down(self) -> None:
        """Cut every connection and refuse new ones, until `come_up`."""
        self._is_down = True
        self._cut_all()

    def come_up(self) -> None:
        """Let connections pass again."""
        self._is_down = False

    # -------------------------------------------------------------------------------- life cycle

    def __enter__(self) -> Self:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._spawn(self._accept)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._is_down = True
        # Closing alone would not wake the thread that accepts.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._cut_all()
        for thread in self._threads:
            thread.join(_WAIT_SECONDS)

    # ------------------------------------------------------------------------------------ inside

    def _spawn(self, target: Callable[[], None]) -> None:
        thread = threading.Thread(target=target, name="cutting-proxy", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _cut_all(self) -> None:
        """Wake each pump; it is the pump that closes its sockets."""
        with self._guard:
            for link in self._links:
                for side in (link.client, link.server):
                    with contextlib.suppress(OSError):
                        side.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if (link := self._connect(client)) is None:
                continue
            with self._guard:
                self._links.add(link)
            if self._is_down:
                self._cut_all()
            self._spawn(lambda link=link: self._pump(link))  # type: ignore[misc]

    def _connect(self, client: socket.socket) -> _Link | None:
        if not self._is_down:
            with contextlib.suppress(OSError):
                return _Link(client, socket.create_connection((self.host, self.port)))
        client.close()
        return None

    def _pump(self, link: _Link) -> None:
        try:
            while self._step(link):
                pass
        except OSError:
            pass
        finally:
            with self._guard:
                self._links.discard(link)
            link.cut()

    def _step(self, link: _Link) -> bool:
        """Move one chunk each way; False ends the connection."""
        ready, _, _ = select.select([link.client, link.server], [], [])
        if link.server in ready and not self._move_reply(link, link.server.recv(_CHUNK_BYTES)):
            return False
        return link.client not in ready or self._move_request(link, link.client.recv(_CHUNK_BYTES))

    def _move_request(self, link: _Link, data: bytes) -> bool:
        plan = self._match(link, data)
        if plan is not None and plan.cut is Cut.BEFORE_FORWARD:
            self._has_cut.set()
            return False
        link.swallowing = link.swallowing or plan
        link.server.sendall(data)
        return bool(data)

    def _match(self, link: _Link, data: bytes) -> _Plan | None:
        """Return the plan if these bytes are the request that it waits for, and disarm it."""
        window = link.seen + data
        link.seen = window[-_OVERLAP_BYTES:]
        with self._guard:
            plan = self._plan
            if plan is None or not data or not plan.request(window):
                return None
            link.seen = b""
            plan.remaining -= 1
            if plan.remaining > 0:
                return None
            self._plan = None
            return plan

    def _move_reply(self, link: _Link, data: bytes) -> bool:
        if link.swallowing is None:
            link.client.sendall(data)
            return bool(data)
        link.swallowed += data
        if link.swallowing.reply(link.swallowed):
            self._has_cut.set()
            return False
        return bool(data)
