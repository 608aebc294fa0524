"""A customer's HTTPS endpoint on the loopback, which answers as it is told to and goes wrong on request."""

from __future__ import annotations

import contextlib
import ssl
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING, Any

import trustme

from freehold.adapters.system import SystemClock
from freehold.adapters.webhook import WebhookTarget
from freehold.ports.target import Parcel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

NAME = "hooks.customer.example"
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"  # of the standard's own example
LOOPBACK = (ip_network("127.0.0.1/32"),)
PATIENCE_SECONDS = 0.3  # of a target that is to give up


@dataclass(frozen=True)
class Got:
    """One request as it came."""

    path: str
    headers: dict[str, str]
    body: bytes
    peer: tuple[str, int]


class Receiver:
    """One endpoint; `play` answers a request, given its handler."""

    def __init__(self, tls: ssl.SSLContext | None) -> None:
        self.got: list[Got] = []
        self.play: Callable[[Any], None] = answering(204)
        self.connected_count = 0
        self.freed = threading.Event()  # ends what hangs
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.is_secure = tls is not None
        if tls is not None:
            # Shaken in the handler's thread, as its first reading does.
            self._server.socket = tls.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
        self._server.handle_error = lambda *_: None  # type: ignore[method-assign]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self) -> None:
                receiver.connected_count += 1
                super().setup()

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                receiver.got.append(Got(self.path, headers, body, self.client_address))
                receiver.play(self)

            def log_message(self, *_: object) -> None:
                pass

        return Handler

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._server.server_address[1])

    def url(self, path: str = "/hook", host: str = NAME) -> str:
        """Return its URL under a name."""
        return f"http{'s' * self.is_secure}://{host}:{self.port}{path}"

    def hang(self) -> None:
        """Say nothing until the end of the test."""
        self.freed.wait(60)

    def stop_listening(self) -> None:
        """Take no new connections; those that are open go on."""
        self._server.socket.close()

    @contextlib.contextmanager
    def serving(self) -> Iterator[Receiver]:
        """Serve; what hangs is let go at the end."""
        self._thread.start()
        try:
            yield self
        finally:
            self.freed.set()
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()


class Certificates:
    """An authority of the tests' own."""

    def __init__(self, folder: Path) -> None:
        self._authority = trustme.CA()
        self.file = str(folder / "ca.pem")
        self._authority.cert_pem.write_to_path(self.file)

    def context(self, *names: str, **how: Any) -> ssl.SSLContext:
        """Return a server's context with a certificate for some names."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._authority.issue_cert(*names, **how).configure_cert(context)
        return context


def answering(status: int, body: bytes = b"", **headers: str) -> Callable[[Any], None]:
    """Play one whole answer; `_` in names of headers is `-`."""

    def play(handler: Any) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        if status >= 200 and status != 204:
            handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return play


def target_for(receiver: Receiver, certificates: Certificates, **how: Any) -> WebhookTarget:
    """Return a target whose customer is the receiver, under its name."""
    chosen: dict[str, Any] = {
        "url": receiver.url(),
        "secret": SECRET,
        "clock": SystemClock(),
        "ports": (receiver.port,),
        "allow": LOOPBACK,
        "ca_file": certificates.file,
        "seconds": 5.0,
        "look_up": lambda *_: (ip_address("127.0.0.1"),),
    }
    return WebhookTarget(**(chosen | how))


def parcel(number: int = 1, body: bytes | None = None) -> Parcel:
    """Return one event on its way."""
    key = f"cart:0f0e0d0c-0b0a-0908-0706-050403020100:{number}:hold.expired.v1"
    text = f'{{"specversion":"1.0","id":"{key}","data":{{"unit":"Zimmer 7 ü"}}}}'
    return Parcel(key, "hold.expired.v1", "cart", None, text.encode() if body is None else body)
