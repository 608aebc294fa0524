"""A listener that answers a byte at a time, for as long as the other side bears it."""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_BYTE_SECONDS = 0.02


@contextmanager
def dripping(first: bytes, byte: bytes) -> Iterator[int]:
    """Listen on a private port; say `first` at once, then `byte` over and over."""
    stop = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=_drip, args=(listener, first, byte, stop))
        thread.start()
        try:
            yield int(listener.getsockname()[1])
        finally:
            stop.set()
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def _drip(listener: socket.socket, first: bytes, byte: bytes, stop: threading.Event) -> None:
    with suppress(OSError):
        while not stop.is_set():
            with listener.accept()[0] as client, suppress(OSError):
                client.sendall(first)
                while not stop.wait(_BYTE_SECONDS):
                    client.sendall(byte)
