"""A bound on a whole conversation, however slowly the other side drips."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from types import TracebackType
from typing import Self


class TimeLimit:
    """Shuts a socket after so many seconds, so that whoever reads from it comes back.

    A time-out of a socket bounds one read; a server that sends a byte now and then passes it for
    ever. Use as a context manager around the conversation.
    """

    def __init__(self, seconds: float) -> None:
        self._timer = threading.Timer(seconds, self._end)
        self._timer.daemon = True
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self.over = False

    def __enter__(self) -> Self:
        """Start the clock."""
        self._timer.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop it; the socket is left alone from here on."""
        self._timer.cancel()
        with self._lock:
            self._socket = None

    def watch(self, sock: socket.socket | None) -> None:
        """Name the socket to shut; at once, if the time is over."""
        with self._lock:
            self._socket = sock
            if self.over:
                self._shut()

    def _end(self) -> None:
        with self._lock:
            self.over = True
            self._shut()

    def _shut(self) -> None:
        if self._socket is not None:
            with suppress(OSError):
                # Below TLS: the TLS layer belongs to the thread that talks.
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)
