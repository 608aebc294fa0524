# ruff: noqa: N802 -- aiosmtpd names its methods after the commands
"""A real SMTP server (aiosmtpd) that goes wrong where a test says so.

    with MailServer.started() as server:
        server.play(Phase.DOT, "451 4.3.0 later")
        transport = SmtpTransport(server.host, server.port, tls_context=server.client_tls)

*Invariants*: a mail is in `accepted` before the client hears of it.
"""

from __future__ import annotations

import asyncio
import ssl
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Any

import trustme
from aiosmtpd.smtp import SMTP, AuthResult, LoginPassword

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aiosmtpd.smtp import Envelope, Session

HOST = "localhost"
_NOTHING = b""  # the answer was given, or nobody will read one
_AUTH_OFFER = "250-AUTH LOGIN PLAIN"
CUT = "cut"  # the connection breaks instead of the answer
SLOW = "slow"  # the usual answer, a while later
SILENCE = "silence"  # no answer, for as long as the client waits
SLOW_SECONDS = 0.05


class Phase(StrEnum):
    """Where a conversation can go wrong; each before the server's own answer."""

    GREETING = "greeting"
    EHLO = "EHLO"
    STARTTLS = "STARTTLS"
    AUTH = "AUTH"
    MAIL = "MAIL"
    RCPT = "RCPT"
    DATA = "DATA"
    DOT = "dot"  # the body came whole, and is not accepted
    ACCEPTED = "accepted"  # the mail is accepted, and the client has not heard of it
    RSET = "RSET"
    NOOP = "NOOP"


@dataclass(frozen=True)
class AcceptedMail:
    """One mail that the server took."""

    sender: str
    recipient: str
    message: bytes
    queue_id: str


@dataclass
class Fault:
    """What happens at a phase instead of the usual: a reply, CUT, SILENCE or SLOW."""

    phase: Phase
    what: str
    recipient: str | None
    times: int
    hang_up: bool


@dataclass
class MailServer:
    """The server's back door; `play` and `accepted` may be used from any thread."""

    tls: str = "starttls"
    user: str | None = None
    password: str | None = None
    offers_tls: bool = True
    offers: str = "LOGIN PLAIN"  # ways to log in
    smtputf8: bool = True
    size_max: int | None = 33_554_432
    accepted: list[AcceptedMail] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)  # verbs, of all connections
    lines: list[str] = field(default_factory=list)  # MAIL and RCPT with their arguments
    connection_count: int = 0
    port: int = 0
    host: str = HOST

    def __post_init__(self) -> None:
        """Start nothing."""
        self._faults: list[Fault] = []
        self.conversations: list[_Conversation] = []
        self._changed = threading.Condition()
        self.server_tls, self.client_tls = _tls()

    @classmethod
    @contextmanager
    def started(cls, **options: Any) -> Iterator[MailServer]:
        """Run a server on a private port."""
        server = cls(**options)
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever)
        thread.start()
        try:
            asyncio.run_coroutine_threadsafe(server.listen(), loop).result()
            yield server
        finally:
            asyncio.run_coroutine_threadsafe(server.shut(), loop).result()
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()

    async def listen(self) -> None:
        """Open the port."""
        loop = asyncio.get_running_loop()
        tls = self.server_tls if self.tls == "tls" else None
        self._listener = await loop.create_server(self._converse, HOST, 0, ssl=tls)
        self.port = self._listener.sockets[0].getsockname()[1]

    async def shut(self) -> None:
        """Close the port and end every conversation."""
        self._listener.close()
        talking = [one for one in self.conversations if not one.lost.is_set()]
        for one in talking:
            one.cut()
        await asyncio.gather(*(one.lost.wait() for one in talking))
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _converse(self) -> _Conversation:
        starttls = self.tls == "starttls" and self.offers_tls
        return _Conversation(
            self,
            _Handler(self),
            hostname="mx.example",
            enable_SMTPUTF8=self.smtputf8,
            data_size_limit=self.size_max,
            tls_context=self.server_tls if starttls else None,
            auth_require_tls=self.tls == "starttls",
            auth_required=bool(self.user) and starttls,
            authenticator=self._authenticate,
        )

    def _authenticate(self, *args: Any) -> AuthResult:
        data = args[-1]
        assert isinstance(data, LoginPassword)
        user, password = (self.user or "").encode(), (self.password or "").encode()
        ok = (data.login, data.password) == (user, password)
        return AuthResult(success=ok, handled=False)

    def play(
        self,
        phase: Phase,
        what: str,
        *,
        recipient: str | None = None,
        times: int = 1,
        hang_up: bool = False,
    ) -> None:
        """Answer so at the next reaches of a phase; of one recipient only where one is named.

        Args:
            hang_up: close the connection after the reply, as after a 421.
        """
        self._faults.append(Fault(phase, what, recipient, times, hang_up))

    def calm(self) -> None:
        """Let nothing go wrong any more."""
        self._faults.clear()

    def cut_connections(self) -> None:
        """Break every open connection now."""
        for one in self.conversations:
            if not one.lost.is_set():
                one.loop.call_soon_threadsafe(one.cut)

    def wait_for_accepted(self, count: int, seconds: float = 10.0) -> list[AcceptedMail]:
        """Wait until so many mails were accepted; return them."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.accepted) >= count, seconds)
        return list(self.accepted)

    def take(self, envelope: Envelope) -> str:
        """Accept a mail; return its queue id."""
        content = envelope.original_content
        assert content is not None
        (recipient,) = envelope.rcpt_tos
        with self._changed:
            queue_id = f"Q{len(self.accepted) + 1:05d}"
            mail = AcceptedMail(envelope.mail_from or "", recipient, content, queue_id)
            self.accepted.append(mail)
            self._changed.notify_all()
        return queue_id

    def fault_at(self, phase: Phase, recipient: str | None = None) -> Fault | None:
        """Take the next fault of a phase out."""
        for fault in self._faults:
            if fault.phase is phase and fault.recipient in {None, recipient}:
                fault.times -= 1
                if fault.times <= 0:
                    self._faults.remove(fault)
                return fault
        return None


@cache  # drawing keys takes longer than a test
def _tls() -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Return a server's side and that of a client that trusts it, and nobody else."""
    authority = trustme.CA()
    server, client = (
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER),
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
    )
    authority.issue_cert(HOST, "127.0.0.1").configure_cert(server)
    authority.configure_trust(client)
    return server, client


class _Conversation(SMTP):
    """aiosmtpd's protocol with the server's faults before its own answers."""

    def __init__(self, server: MailServer, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._server = server
        self._greeted = False
        self.lost = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if self not in self._server.conversations:  # STARTTLS makes it a second time
            self._server.conversations.append(self)
        super().connection_made(transport)

    def connection_lost(self, error: Exception | None) -> None:
        super().connection_lost(error)
        self.lost.set()

    def cut(self) -> None:
        """Break the connection, as a lost network does."""
        if self.transport is not None:
            self.transport.abort()  # type: ignore[attr-defined]

    async def push(self, status: Any) -> None:
        if not self._greeted:
            self._greeted = True
            self._server.connection_count += 1
            if await self.goes_wrong(Phase.GREETING):
                return
        if status == _NOTHING or (status == _AUTH_OFFER and not self._server.user):
            return
        if status == _AUTH_OFFER:
            status = f"250-AUTH {self._server.offers}"
        await super().push(status)

    async def goes_wrong(self, phase: Phase, recipient: str | None = None) -> bool:
        """Play the next fault of a phase; tell whether there was one."""
        fault = self._server.fault_at(phase, recipient)
        if fault is None:
            return False
        if fault.what == SLOW:
            await asyncio.sleep(SLOW_SECONDS)
            return False
        if fault.what == CUT:
            self.cut()
        elif fault.what == SILENCE:
            await asyncio.Event().wait()  # until the client hangs up
        else:
            await super().push(fault.what)
            if fault.hang_up:
                self.cut()
        return True

    async def _command(self, phase: Phase, arg: str, recipient: str | None = None) -> None:
        self._server.commands.append(phase.value)
        if not await self.goes_wrong(phase, recipient):
            await getattr(SMTP, f"smtp_{phase.value}")(self, arg)

    async def smtp_EHLO(self, arg: str) -> None:
        await self._command(Phase.EHLO, arg)

    async def smtp_STARTTLS(self, arg: str) -> None:
        await self._command(Phase.STARTTLS, arg)

    async def smtp_AUTH(self, arg: str) -> None:
        await self._command(Phase.AUTH, arg)

    async def smtp_MAIL(self, arg: str | None) -> None:
        self._server.lines.append(f"MAIL {arg}")
        await self._command(Phase.MAIL, arg or "")

    async def smtp_RCPT(self, arg: str | None) -> None:
        self._server.lines.append(f"RCPT {arg}")
        await self._command(Phase.RCPT, arg or "", (arg or "").partition("<")[2].rstrip(">"))

    async def smtp_DATA(self, arg: str) -> None:
        await self._command(Phase.DATA, arg)

    async def smtp_RSET(self, arg: str) -> None:
        await self._command(Phase.RSET, arg)

    async def smtp_NOOP(self, arg: str) -> None:
        await self._command(Phase.NOOP, arg)


class _Handler:
    """Accepts mails, and goes wrong around it."""

    def __init__(self, server: MailServer) -> None:
        self._server = server

    async def handle_DATA(self, smtp: _Conversation, session: Session, envelope: Envelope) -> Any:
        (recipient,) = envelope.rcpt_tos
        if await smtp.goes_wrong(Phase.DOT, recipient):
            return _NOTHING
        queue_id = self._server.take(envelope)
        if await smtp.goes_wrong(Phase.ACCEPTED, recipient):
            return _NOTHING
        return f"250 2.0.0 Ok: queued as {queue_id}"
