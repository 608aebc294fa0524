"""One conversation with an SMTP server, step by step, so that each failure knows its phase.

*Invariants*: with `starttls` and `tls` nothing but EHLO and STARTTLS goes in clear; the end of data
is written by itself, so that a body that broke off is surely not accepted.
*Source*: RFC 5321, 3207 (STARTTLS), 4954 (AUTH), 3463 (enhanced codes), 6531 (SMTPUTF8). `smtplib`
reads the replies; its `sendmail` hides phase and queue id, so it is not used.
"""

from __future__ import annotations

import re
import smtplib
import socket
import ssl
from base64 import b64encode
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal

from freehold.adapters.mail.answers import (
    REFERENCE_LENGTH_MAX,
    Ended,
    accepted,
    in_words,
    plain,
    refused,
    transient,
    unknown,
)
from freehold.adapters.mail.limit import TimeLimit
from freehold.domain.sending import SendOutcome
from freehold.ports.mail import Answer, Mail

Security = Literal["starttls", "tls", "none"]
_SERVICE_CLOSING = 421
_START_MAIL_INPUT = 354
_GO_ON = 334
_DONE, _LATER, _NEVER = 2, 4, 5  # first digits: RFC 5321 4.2.1
_TOO_LARGE = 552
# Whatever the phase: authentication wanted, too weak, failed, or not possible now.
_OF_THE_ACCOUNT = frozenset({_SERVICE_CLOSING, 454, 530, 534, 535, 538})
_BEFORE_MAILS = frozenset({"the greeting", "EHLO", "STARTTLS", "AUTH", "MAIL", "NOOP"})
_ENHANCED = re.compile(r"([245]\.\d{1,3}\.\d{1,3})(?:\s|$)")
_QUEUE_ID = re.compile(r"(?:queued as|queue id|\bid[= ])\s*([\w.\-]+)", re.IGNORECASE)
_QUIT_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Server:
    """An SMTP server and how to talk to it."""

    host: str
    port: int
    security: Security
    user: str | None
    password: str | None = field(repr=False)
    seconds: float
    final_seconds: float
    tls: ssl.SSLContext = field(repr=False)


@dataclass(frozen=True, slots=True)
class Reply:
    """What the server answered; code -1 is not SMTP."""

    code: int
    text: str

    @property
    def kind(self) -> int:
        """The first digit: 2 done, 3 go on, 4 later, 5 never."""
        return self.code // 100

    @property
    def enhanced(self) -> str | None:
        """The code of RFC 3463, if there is one."""
        found = _ENHANCED.match(self.text)
        return found[1] if found else None

    @property
    def codes(self) -> str:
        """The reply code, with the enhanced one behind it."""
        return f"{self.code} {self.enhanced}" if self.enhanced else str(self.code)

    @property
    def queue_id(self) -> str:
        """The server's own name of a mail, or all that it said."""
        said = self.text.removeprefix(self.enhanced or "").strip()
        found = _QUEUE_ID.search(said)
        return found[1] if found else plain(said, length_max=REFERENCE_LENGTH_MAX)


def reply_of(code: int, text: bytes) -> Reply:
    """Read a reply."""
    return Reply(code, text.decode("utf-8", "replace"))


class Conversation:
    """An open connection that was greeted, encrypted and logged in."""

    def __init__(self, server: Server, limit: TimeLimit) -> None:
        """Open one.

        Raises:
            Ended: it could not be opened; nothing was sent.
        """
        self._server = server
        self._smtp = smtplib.SMTP(timeout=server.seconds, local_hostname="localhost")
        self._limit = limit
        self.broken = False
        try:
            self._connect()
            self._log_in()
        except Ended:
            self.hang_up()
            raise

    # ---------------------------------------------------------------------------------- opening

    def _connect(self) -> None:
        server, smtp = self._server, self._smtp
        try:
            smtp.sock = socket.create_connection((server.host, server.port), server.seconds)
            # The end of data is a small write behind a large one; it shall not wait for an answer.
            smtp.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except (OSError, UnicodeError) as error:  # UnicodeError: no name server could be asked that
            text = f"{self._where} cannot be reached: {self._why(error)}"
            raise Ended(transient(text, everyone=True)) from error
        self._limit.watch(smtp.sock)
        smtp.local_hostname = _own_name(smtp.sock)
        if server.security == "tls":
            self._encrypt()
        self._done("the greeting", self._ask("the greeting"))
        self._hello()
        if server.security == "starttls":
            self._start_tls()

    def _hello(self) -> None:
        self._done("EHLO", self._ask("EHLO", self._smtp.local_hostname))
        self._smtp.does_esmtp = True
        self._smtp.esmtp_features = _features(self._last.text)

    def _start_tls(self) -> None:
        if not self._smtp.has_extn("starttls"):
            text = (
                f"{self._where} does not offer STARTTLS, so nothing was sent in clear; set the port"
                " that it encrypts, or ask who runs it, since somebody in between can strip the offer"
            )
            raise Ended(refused(text, everyone=True))
        self._done("STARTTLS", self._ask("STARTTLS"))
        self._encrypt()
        self._hello()

    def _encrypt(self) -> None:
        smtp = self._smtp
        assert smtp.sock is not None
        try:
            smtp.sock = self._server.tls.wrap_socket(smtp.sock, server_hostname=self._server.host)
        except (OSError, ValueError) as error:  # ValueError: the peer is gone, or an odd host name
            text = f"TLS with {self._where} failed: {self._why(error)}"
            raise Ended(transient(text, everyone=True)) from error
        self._limit.watch(smtp.sock)
        # What was read ahead in clear is thrown away: it may be an attacker's (CVE-2011-0411).
        if smtp.file is not None:
            smtp.file.close()
        smtp.file = None

    def _log_in(self) -> None:
        server = self._server
        if server.user is None:
            return
        offered = self._smtp.esmtp_features.get("auth", "").upper().split()
        # One mechanism, once: `smtplib.login` would try a wrong password with each that is offered,
        # which locks accounts. CRAM-MD5 is left out: inside TLS it only weakens.
        if "PLAIN" in offered:
            self._done("AUTH", self._ask("AUTH", f"PLAIN {_secret(server, plain_text=True)}"))
        elif "LOGIN" in offered:
            user = b64encode(server.user.encode()).decode()
            self._done("AUTH", self._ask("AUTH", f"LOGIN {user}"), wanted=_GO_ON)
            self._done("AUTH", self._tell("AUTH", _secret(server, plain_text=False)))
        else:
            text = f"{self._where} offers neither AUTH PLAIN nor AUTH LOGIN, so nobody can log in"
            raise Ended(refused(text, everyone=True))

    def watched_by(self, limit: TimeLimit) -> None:
        """Let this limit end what is said from now on."""
        self._limit = limit
        limit.watch(self._smtp.sock)

    # ----------------------------------------------------------------------------------- mailing

    def begin(self, mail: Mail) -> None:
        """Say MAIL: nothing of the mail is with the server before it has answered.

        Raises:
            Ended: the server does not want it, or is gone.
        """
        options = self._options(mail)
        self._smtp.command_encoding = "utf-8"  # of ASCII it makes no difference
        self._done("MAIL", self._ask("MAIL", f"FROM:<{mail.sender}>{options}"))

    def _options(self, mail: Mail) -> str:
        smtp, options = self._smtp, ""
        head = mail.message.partition(b"\r\n\r\n")[0]
        if not (mail.sender.isascii() and mail.recipient.isascii() and head.isascii()):
            if not smtp.has_extn("smtputf8"):
                text = f"{self._where} takes no addresses or headers outside ASCII (SMTPUTF8)"
                raise Ended(refused(text))
            options += " SMTPUTF8"
        if not mail.message.isascii():
            if not smtp.has_extn("8bitmime"):
                raise Ended(refused(f"{self._where} takes no 8-bit mails (8BITMIME)"))
            options += " BODY=8BITMIME"
        if smtp.has_extn("size"):
            options += f" SIZE={len(mail.message)}"
        return options

    def finish(self, mail: Mail) -> Answer:
        """Name the recipient, send the message, and return what the server says in the end.

        Raises:
            Ended: the server surely did not accept it.
        """
        self._done("RCPT", self._ask("RCPT", f"TO:<{mail.recipient}>"))
        self._done("DATA", self._ask("DATA"), wanted=_START_MAIL_INPUT)
        self._write_body(mail.message)
        # From here on the server has it all.
        self._limit.watch(None)
        with TimeLimit(self._server.final_seconds) as final:
            self.watched_by(final)
            return self._end_of_data()

    def _write_body(self, message: bytes) -> None:
        try:
            self._smtp.send(re.sub(rb"(?m)^\.", b"..", message))
        except (smtplib.SMTPException, OSError) as error:
            raise Ended(self._lost("the body", error)) from error

    def _end_of_data(self) -> Answer:
        """Write the dot and read the answer; whatever goes wrong here, the mail may be accepted."""
        smtp, server = self._smtp, self._server
        assert smtp.sock is not None
        try:
            smtp.sock.settimeout(server.final_seconds)
            smtp.send(b".\r\n")
            reply = reply_of(*smtp.getreply())
            if smtp.sock is not None:
                smtp.sock.settimeout(server.seconds)
        except (smtplib.SMTPException, OSError) as error:
            self.broken = True
            text = (
                f"{self._where} had the whole mail, and its answer did not come: {self._why(error)}"
            )
            return unknown(text)
        if reply.kind == _DONE:
            return accepted(reply.queue_id, reply.codes, self._words("the mail", reply))
        answer = self._answer("the mail", reply)
        if reply.kind not in {_LATER, _NEVER}:
            self.broken = True
            return unknown(answer.text, answer.code)
        return answer

    def reset(self) -> None:
        """Give up a transaction, so that the next one can begin; `broken` where that failed."""
        try:
            self._done("RSET", self._ask("RSET"))
        except Ended:
            self.broken = True

    def greet_again(self) -> None:
        """Say NOOP.

        Raises:
            Ended: the server is not well.
        """
        self._done("NOOP", self._ask("NOOP"))

    def quit(self) -> None:
        """Take leave, in a moment or not at all."""
        with suppress(smtplib.SMTPException, OSError):
            if self._smtp.sock is not None and not self.broken:
                self._smtp.sock.settimeout(min(_QUIT_SECONDS, self._server.seconds))
                self._smtp.docmd("QUIT")
        self.hang_up()

    def hang_up(self) -> None:
        """Close the connection."""
        self.broken = True
        with suppress(OSError):
            self._smtp.close()

    # ----------------------------------------------------------------------------------- replies

    def _ask(self, phase: str, argument: str = "") -> Reply:
        """Say a command (nothing at the greeting), and read the reply."""
        return self._tell(phase, "" if phase == "the greeting" else f"{phase} {argument}".strip())

    def _tell(self, phase: str, line: str) -> Reply:
        try:
            if line:
                self._smtp.putcmd(line)
            self._last = reply_of(*self._smtp.getreply())
        except (smtplib.SMTPException, OSError) as error:
            raise Ended(self._lost(phase, error)) from error
        return self._last

    def _done(self, phase: str, reply: Reply, wanted: int | None = None) -> None:
        if reply.code == wanted or (wanted is None and reply.kind == _DONE):
            return
        raise Ended(self._answer(phase, reply))

    def _answer(self, phase: str, reply: Reply) -> Answer:
        """Read a reply that is not the wanted one."""
        if reply.code == _SERVICE_CLOSING or reply.kind not in {_LATER, _NEVER}:
            self.broken = True
        everyone = reply.code in _OF_THE_ACCOUNT or (
            phase in _BEFORE_MAILS and not (phase == "MAIL" and reply.code == _TOO_LARGE)
        )
        outcome = SendOutcome.REFUSED if reply.kind == _NEVER else SendOutcome.TRANSIENT
        return Answer(outcome, code=reply.codes, text=self._words(phase, reply), everyone=everyone)

    def _words(self, phase: str, reply: Reply) -> str:
        said = f"{self._where} answered {phase} with {reply.code} {reply.text}"
        server = self._server
        if server.password is None:
            return plain(said)
        # Also as it was sent: some servers say back the line that they did not like.
        sent = [_secret(server, plain_text=which) for which in (True, False)]
        return plain(said, *sent, server.password)

    def _lost(self, phase: str, error: Exception) -> Answer:
        self.broken = True
        text = (
            f"{self._where} was lost at {phase}, before it had the whole mail: {self._why(error)}"
        )
        return transient(text, everyone=phase in _BEFORE_MAILS)

    def _why(self, error: Exception) -> str:
        """Name an error in a few words."""
        if isinstance(error, ssl.SSLCertVerificationError):
            return plain(f"its certificate is not valid ({error.verify_message})")
        # smtplib turns a time-out into a disconnection, and so does our own limit.
        if self._limit.over or isinstance(error.__context__ or error, TimeoutError):
            return "it did not answer in time"
        return plain(in_words(error))

    @property
    def _where(self) -> str:
        return f"the mail server {self._server.host}:{self._server.port}"


def _own_name(sock: socket.socket) -> str:
    """Name this host for EHLO: its full name, or else its address (RFC 5321 4.1.3).

    No look-up: `getfqdn`, which smtplib would ask, may wait for a name server for a minute.
    """
    name = socket.gethostname()
    if re.fullmatch(r"[A-Za-z0-9\-]+(\.[A-Za-z0-9\-]+)+", name):
        return name
    address = str(sock.getsockname()[0])
    return f"[IPv6:{address}]" if ":" in address else f"[{address}]"


def _features(text: str) -> dict[str, str]:
    """Read what EHLO offers: the lines after the first."""
    lines = (line.strip().partition(" ") for line in text.splitlines()[1:])
    return {name.lower(): parameters for name, _, parameters in lines}


def _secret(server: Server, *, plain_text: bool) -> str:
    """Write the password as AUTH PLAIN (RFC 4616, with the user) or AUTH LOGIN wants it."""
    password = (server.password or "").encode()
    user = (server.user or "").encode()
    return b64encode(b"\0" + user + b"\0" + password if plain_text else password).decode()
