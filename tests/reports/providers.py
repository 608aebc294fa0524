"""The grounds of the transports' contract: each provider, running, by name."""

from __future__ import annotations

import socket
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from freehold.adapters.mail.maildir import MaildirTransport
from freehold.adapters.mail.mailgun import MailgunTransport
from freehold.adapters.mail.postmark import PostmarkTransport
from freehold.adapters.mail.resend import ResendTransport
from freehold.adapters.mail.smtp import SmtpTransport
from freehold.domain.sending import Repeat, TransportPromise
from freehold.testing.contracts.transports import SECRET, START
from freehold.testing.mailbox import DeclaredProvider, Fault, Mailbox
from tests.reports.mailed import arrived_of
from tests.reports.mailgun_double import DOMAIN, MailgunDouble
from tests.reports.postmark_double import PostmarkDouble
from tests.reports.resend_double import ResendDouble
from tests.reports.smtp_server import CUT, SILENCE, MailServer, Phase

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from freehold.ports.mail import Transport
    from freehold.testing.contracts.transports import Arrived, Provider
    from tests.reports.http_providers import ApiDouble

PATIENCE_SECONDS = 5.0  # for what comes at once on a quiet machine
SHORT_SECONDS = 0.2  # for an answer that never comes


def closed_port() -> int:
    """Name a port where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@dataclass
class SmtpProvider:
    """A real SMTP server with STARTTLS and AUTH."""

    server: MailServer
    transports: list[Transport] = field(default_factory=list)

    @classmethod
    @contextmanager
    def opened(cls, _folder: Path) -> Iterator[SmtpProvider]:
        with MailServer.started(user="freehold", password=SECRET) as server:
            provider = cls(server)
            yield provider
            for transport in provider.transports:
                transport.close()

    def connect(self, *, impatient: bool = False) -> Transport:
        return self._connect(self.server.port, SHORT_SECONDS if impatient else PATIENCE_SECONDS)

    def connect_unreachable(self) -> Transport | None:
        return self._connect(closed_port())

    def _connect(self, port: int, final_seconds: float = PATIENCE_SECONDS) -> Transport:
        transport = SmtpTransport(
            self.server.host,
            port,
            user="freehold",
            password=SECRET,
            seconds=PATIENCE_SECONDS,
            final_seconds=final_seconds,
            tls_context=self.server.client_tls,
        )
        self.transports.append(transport)
        return transport

    def arrived(self) -> Sequence[Arrived]:
        return [arrived_of(one.recipient, one.sender, one.message) for one in self.server.accepted]

    def plays(self, fault: Fault) -> bool:
        return fault in _SMTP_FAULTS

    def play(self, fault: Fault, recipient: str | None = None) -> None:
        phase, what = _SMTP_FAULTS[fault]
        named = recipient if phase in {Phase.RCPT, Phase.DOT, Phase.ACCEPTED} else None
        what = what.replace("NAME", recipient or "somebody@guests.example")
        self.server.play(phase, what, recipient=named)

    def pass_time(self, span: timedelta) -> None:
        """Change nothing: an SMTP server remembers no key."""


_SMTP_FAULTS = {
    Fault.ACCEPT_THEN_CUT: (Phase.ACCEPTED, CUT),
    Fault.SILENT: (Phase.ACCEPTED, SILENCE),
    Fault.CUT: (Phase.DOT, CUT),
    Fault.TRANSIENT: (Phase.RCPT, "450 4.2.1 <NAME>: Recipient address rejected: greylisted"),
    Fault.REFUSE: (Phase.RCPT, "550 5.1.1 <NAME>: no such user here"),
    Fault.TRANSIENT_FOR_EVERYONE: (Phase.MAIL, "451 4.7.0 NAME sends too much"),
    Fault.REFUSE_EVERYONE: (Phase.MAIL, "550 5.7.1 sender NAME may not send"),
}


@dataclass
class MaildirProvider:
    """A folder."""

    folder: Path

    @classmethod
    @contextmanager
    def opened(cls, folder: Path) -> Iterator[MaildirProvider]:
        yield cls(folder)

    def connect(self, *, impatient: bool = False) -> Transport:
        return MaildirTransport(self.folder / "mails")

    def connect_unreachable(self) -> Transport | None:
        file = self.folder / "file"
        file.write_bytes(b"no folder")
        return MaildirTransport(file)

    def arrived(self) -> Sequence[Arrived]:
        paths = (self.folder / "mails" / "new").glob("*")
        in_order = sorted(paths, key=lambda one: one.stat().st_mtime_ns)
        return [self._read(one.read_bytes()) for one in in_order]

    def _read(self, written: bytes) -> Arrived:
        path, recipient_line, message = written.split(b"\r\n", 2)
        sender = path.decode().removeprefix("Return-Path: ").strip("<>")
        recipient = recipient_line.decode().removeprefix("Delivered-To: ")
        return arrived_of(recipient, sender, message)

    def plays(self, fault: Fault) -> bool:
        return False

    def play(self, fault: Fault, recipient: str | None = None) -> None:
        raise AssertionError(fault)

    def pass_time(self, span: timedelta) -> None:
        """Change nothing: a folder remembers for ever."""


@dataclass
class DeclaredGround:
    """The declared double, of one class of providers."""

    mailbox: Mailbox
    promise: TransportPromise
    now: datetime = START

    @classmethod
    def of(
        cls, promise: TransportPromise
    ) -> Callable[[Path], AbstractContextManager[DeclaredGround]]:
        @contextmanager
        def opened(folder: Path) -> Iterator[DeclaredGround]:
            yield cls(Mailbox(folder / "mailbox.db"), promise)

        return opened

    def connect(self, *, impatient: bool = False) -> Transport:
        return DeclaredProvider(self.mailbox, self.promise, lambda: self.now)

    def connect_unreachable(self) -> Transport | None:
        return None

    def arrived(self) -> Sequence[Arrived]:
        accepted = self.mailbox.accepted()
        return [arrived_of(one.recipient, one.sender, one.message) for one in accepted]

    def plays(self, fault: Fault) -> bool:
        return True

    def play(self, fault: Fault, recipient: str | None = None) -> None:
        self.mailbox.play(fault, recipient=recipient)

    def pass_time(self, span: timedelta) -> None:
        self.now += span


@dataclass
class ApiProvider:
    """A local double of a provider's HTTP interface."""

    double: ApiDouble
    open_at: Callable[[str, float], Transport]
    transports: list[Transport] = field(default_factory=list)

    @classmethod
    def of(
        cls, kind: type[ApiDouble], open_at: Callable[[str, float], Transport]
    ) -> Callable[[Path], AbstractContextManager[ApiProvider]]:
        @contextmanager
        def opened(_folder: Path) -> Iterator[ApiProvider]:
            with kind.started() as double:
                provider = cls(double, open_at)
                yield provider
                for transport in provider.transports:
                    transport.close()

        return opened

    def connect(self, *, impatient: bool = False) -> Transport:
        return self._connect(self.double.url, SHORT_SECONDS if impatient else PATIENCE_SECONDS)

    def connect_unreachable(self) -> Transport | None:
        return self._connect(f"http://127.0.0.1:{closed_port()}", PATIENCE_SECONDS)

    def _connect(self, url: str, seconds: float) -> Transport:
        self.transports.append(self.open_at(url, seconds))
        return self.transports[-1]

    def arrived(self) -> Sequence[Arrived]:
        return [one.arrived for one in self.double.accepted]

    def plays(self, fault: Fault) -> bool:
        return True

    def play(self, fault: Fault, recipient: str | None = None) -> None:
        self.double.play(fault, recipient)

    def pass_time(self, span: timedelta) -> None:
        self.double.now += span


def resend_at(url: str, seconds: float) -> Transport:
    return ResendTransport(SECRET, url=url, seconds=seconds)


def postmark_at(url: str, seconds: float) -> Transport:
    return PostmarkTransport(SECRET, url=url, seconds=seconds)


def mailgun_at(url: str, seconds: float) -> Transport:
    return MailgunTransport(SECRET, DOMAIN, url=url, seconds=seconds)


_CONFLICTS = TransportPromise("declared-c", Repeat.CONFLICTS, timedelta(hours=24))
_SHORT = TransportPromise("declared-s", Repeat.REPLAYS, timedelta(minutes=5))
_LOOKS_UP = TransportPromise("declared-l", looks_up=True, indexing=timedelta(minutes=5))

GROUNDS: dict[str, Callable[[Path], AbstractContextManager[Provider]]] = {
    "smtp": SmtpProvider.opened,
    "maildir": MaildirProvider.opened,
    "resend": ApiProvider.of(ResendDouble, resend_at),
    "postmark": ApiProvider.of(PostmarkDouble, postmark_at),
    "mailgun": ApiProvider.of(MailgunDouble, mailgun_at),
    "conflict means accepted": DeclaredGround.of(_CONFLICTS),
    "short window": DeclaredGround.of(_SHORT),
    "look-up only": DeclaredGround.of(_LOOKS_UP),
}
