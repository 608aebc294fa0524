"""Local doubles of Resend, Postmark and Mailgun: real HTTP servers that keep each one's rules.

They keep keys for their window by a clock that tests set, index what they accepted with a delay,
check a request as the real ones do, and go wrong when asked to. *Source*: as in the adapters.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from json import dumps, loads
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import parse_qsl, urlsplit

from freehold.testing.contracts.transports import SECRET, START
from freehold.testing.mailbox import Fault

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Self

    from freehold.testing.contracts.transports import Arrived

Said = tuple[int, dict[str, Any]]
REDIRECTS = (302, 307)
CUTS = (Fault.ACCEPT_THEN_CUT, Fault.CUT, Fault.SILENT)


@dataclass(frozen=True)
class Asked:
    """One request."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Accepted:
    """One mail that a provider took."""

    reference: str
    key: str
    at: datetime
    arrived: Arrived


@dataclass
class ApiDouble(ABC):
    """What the three have in common; `play`, `now` and `accepted` are the back door."""

    refusals: ClassVar[Mapping[Fault, Said]] = {}

    now: datetime = START
    accepted: list[Accepted] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    retry_after: str | None = None
    connection_count: int = 0
    url: str = ""

    def __post_init__(self) -> None:
        """Start nothing."""
        self._faults: list[tuple[Fault, str | None]] = []
        self._scripted: list[tuple[Said, bool]] = []
        self._lock = threading.Lock()
        self._was_asked = threading.Event()

    @classmethod
    @contextmanager
    def started(cls) -> Iterator[Self]:
        """Serve on a private port."""
        double = cls()
        server = ThreadingHTTPServer(("127.0.0.1", 0), _handler_of(double))
        double.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield double
        finally:
            server.shutdown()
            thread.join()
            server.server_close()

    def play(self, fault: Fault, recipient: str | None = None) -> None:
        """Let the next mail go wrong, or the next to one recipient."""
        self._faults.append((fault, recipient))

    def answer_next(self, status: int, said: Any, *, accept: bool = False) -> None:
        """Answer the next request so, after taking its mail or not."""
        self._scripted.append(((status, said), accept))

    def wait_for_asked(self) -> None:
        """Wait for the first request."""
        assert self._was_asked.wait(30)

    def answer(self, asked: Asked) -> Said | Fault:
        """Answer a request, or break the connection."""
        with self._lock:
            self.asked.append(asked)
            said, accept = self._scripted.pop(0) if self._scripted else (None, True)
            usual = self.sending(asked) if accept and asked.method == "POST" else None
            self._was_asked.set()  # by now it is taken, or not
            return said or usual or self.looking(asked)

    def sending(self, asked: Asked) -> Said | Fault:
        """Take a mail, unless a fault is due."""
        if not self.is_authorized(asked):
            return self.refusals[Fault.REFUSE_EVERYONE]
        key, arrived = self.read(asked)
        fault = self._fault_of(arrived.recipient)
        if fault is Fault.CUT:
            return fault
        if fault is not None and fault not in CUTS:
            return self.refusals[fault]
        said = self.take(key, arrived, asked)
        return said if fault is None else fault

    def take(self, key: str, arrived: Arrived, asked: Asked) -> Said:
        """Accept a mail."""
        reference = f"<id-{len(self.accepted) + 1}@provider.example>"
        self.accepted.append(Accepted(reference, key, self.now, arrived))
        return 200, self.receipt(reference)

    def _fault_of(self, recipient: str) -> Fault | None:
        for one in self._faults:
            if one[1] in {None, recipient}:
                self._faults.remove(one)
                return one[0]
        return None

    def extra_headers(self, status: int) -> Mapping[str, str]:
        """Return what an answer carries beside its content."""
        headers = {} if self.retry_after is None else {"Retry-After": self.retry_after}
        return headers | ({"Location": f"{self.url}/elsewhere"} if status in REDIRECTS else {})

    def indexed(self, delay: timedelta) -> Sequence[Accepted]:
        """Return what the index has by now, the newest first."""
        return [one for one in reversed(self.accepted) if self.now - one.at >= delay]

    # What each does in its own way.

    @abstractmethod
    def is_authorized(self, asked: Asked) -> bool:
        """Look at the key."""

    @abstractmethod
    def read(self, asked: Asked) -> tuple[str, Arrived]:
        """Read a mail and its key; refuse what the real one would not read."""

    @abstractmethod
    def receipt(self, reference: str) -> dict[str, Any]:
        """Say that it was taken."""

    @abstractmethod
    def looking(self, asked: Asked) -> Said:
        """Answer a request that changes nothing."""


def _handler_of(double: ApiDouble) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # one write an answer, or the second waits for an acknowledgement

        def setup(self) -> None:
            super().setup()
            double.connection_count += 1

        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            self._serve(self.rfile.read(length))

        def do_GET(self) -> None:
            self._serve(b"")

        def _serve(self, body: bytes) -> None:
            parts = urlsplit(self.path)
            headers = {name.lower(): value for name, value in self.headers.items()}
            query = dict(parse_qsl(parts.query))
            said = double.answer(Asked(self.command, parts.path, query, headers, body))
            if isinstance(said, Fault):
                self.close_connection = True
                if said is Fault.SILENT:
                    self.rfile.read(1)  # until the client hangs up
                return
            self._say(*said)

        def _say(self, status: int, said: dict[str, Any] | bytes) -> None:
            content = said if isinstance(said, bytes) else dumps(said).encode()
            self.send_response_only(status)
            self.send_header("Date", format_datetime(double.now, usegmt=True))
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            for name, value in double.extra_headers(status).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 -- the base names it so
            """Say nothing."""

    return Handler


def json_of(asked: Asked) -> dict[str, Any]:
    """Read a JSON request."""
    assert asked.headers["content-type"] == "application/json"
    read: dict[str, Any] = loads(asked.body)
    return read


def is_key(value: str | None, prefix: str = "") -> bool:
    """Compare with the one key that every double knows."""
    return value == prefix + SECRET
