"""The client of NATS as it is used here, and in which words its failures are told.

*Invariants*: no word about who we are is sent before TLS where TLS is demanded; an end is told
before anything that may hold it up; no error holds a password.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable, Sequence

from nats.aio.client import Client
from nats.errors import Error, NoServersError


class LinkLost(Exception):
    """There is no connection, or it ended. The message says why, and may be shown."""


class LinkRefused(Exception):
    """The server is there and says no; again says no. The message may be shown."""


class NatsClient(Client):
    """The client, which sends no word about who we are before TLS where TLS is demanded."""

    demands_tls = False
    when_ending: Callable[[], None] | None = None

    def told(self, word: str) -> str:
        """Return what the server said of itself when it was connected to."""
        return str(self._server_info.get(word, ""))

    def _connect_command(self) -> bytes:
        if self.demands_tls and not self._server_info.get("tls_required"):
            raise Error("the server offers no TLS")
        return bytes(super()._connect_command())

    async def _close(self, status: int, do_cbs: bool = True) -> None:
        """Tell of the end first: on a broken socket the original may fail before it does."""
        if self.when_ending is not None:
            self.when_ending()
        try:
            await super()._close(status, do_cbs)
        except OSError:
            self.abort()

    def abort(self) -> None:
        """End the connection without a farewell, which a peer or a failed handshake may hold up."""
        writer = getattr(self._transport, "_bare_io_writer", None)
        if writer is not None:
            writer.transport.abort()


def why(place: str, errors: Sequence[Exception]) -> LinkLost | LinkRefused:
    """Say why no connection was made; the client itself only says that there is none."""
    known = [one for one in errors if word_for(one)] or list(errors)
    text = " ".join(str(one) for one in errors)
    if any(isinstance(one, ssl.SSLCertVerificationError) for one in errors):
        return LinkRefused(f"the certificate of NATS at {place} is not trusted: see ca_file")
    if "Authorization" in text or "Authentication" in text:
        return LinkRefused(f"NATS at {place} refuses this user, password, token or key")
    if "offers no TLS" in text:
        return LinkRefused(f"NATS at {place} offers no TLS, and the URL demands it")
    return LinkLost(f"NATS at {place} cannot be reached ({word_for(known[0]) or 'no answer'})")


def word_for(error: BaseException) -> str:
    """Return a cause in a few words that quote no URL."""
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, OSError):
        return os.strerror(error.errno) if error.errno else type(error).__name__
    if isinstance(error, NoServersError):
        return ""
    return "it ended the connection, or does not speak NATS"
