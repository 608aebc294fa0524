"""Mails over SMTP: one recipient in a transaction, and a failure that knows its phase.

*Limits*: SMTP has no idempotency. When the connection breaks between the end of data and the
server's answer nobody can know whether the mail is under way (RFC 1047); such an end is UNKNOWN.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from freehold.adapters.mail.answers import Ended, fault_of, is_bare, refused, transient
from freehold.adapters.mail.limit import TimeLimit
from freehold.adapters.mail.smtp_conversation import Conversation, Security, Server
from freehold.domain.errors import UsageError
from freehold.domain.sending import SendOutcome, TransportPromise
from freehold.ports.mail import Answer, Mail

# All that comes before the end of data, in time-outs of one step.
_STEPS = 3
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


class SmtpTransport:
    """Implements `ports.mail.Transport`; keeps its connection from one mail to the next."""

    def __init__(
        self,
        host: str,
        port: int,
        *,
        security: Security = "starttls",
        user: str | None = None,
        password: str | None = None,
        seconds: float = 60.0,
        final_seconds: float = 600.0,
        tls_context: ssl.SSLContext | None = None,
    ) -> None:
        """Name a server; nothing is opened before it is needed.

        Args:
            seconds: for one step; all steps before the end of data have three times as long.
            final_seconds: for the answer to the end of data. RFC 5321 4.5.3.2.6 asks for ten
                minutes, because servers have often accepted when an impatient client leaves.
            tls_context: None for the host's authorities.

        Raises:
            UsageError: the password would travel in clear.
        """
        if security == "none" and user is not None and host not in _LOOPBACK:
            raise UsageError(
                f"The password for the mail server {host} would be sent in clear:"
                ' set security = "starttls" or "tls".'
            )
        self._server = Server(
            host=host,
            port=port,
            security=security,
            user=user,
            password=password,
            seconds=seconds,
            final_seconds=final_seconds,
            tls=tls_context or ssl.create_default_context(),
        )
        self._kept: Conversation | None = None

    def __repr__(self) -> str:
        """Show no secret."""
        return f"SmtpTransport({self._server.host!r}, {self._server.port})"

    @property
    def promise(self) -> TransportPromise:
        """Promise nothing about repeats."""
        server = self._server
        longest = (_STEPS + 1) * server.seconds + server.final_seconds  # 1 for what comes after
        return TransportPromise("smtp", attempt_seconds_max=longest)

    def send(self, mails: Iterable[Mail]) -> Iterator[Answer]:
        """Send mails one after the other over one connection."""
        for mail in mails:
            yield self._attempt(mail)

    def _attempt(self, mail: Mail) -> Answer:
        if not (is_bare(mail.sender) and is_bare(mail.recipient)):
            return refused("an address cannot stand in an envelope as it is")
        if fault := fault_of(mail.message):
            return refused(f"{fault}; a mistake of ours, nothing was sent")
        with TimeLimit(_STEPS * self._server.seconds) as limit:
            try:
                answer = self._begun(mail, limit).finish(mail)
            except Ended as ended:
                answer = ended.answer
        self._keep(answer)
        return answer

    def _begun(self, mail: Mail, limit: TimeLimit) -> Conversation:
        """Return a conversation that has said MAIL.

        A kept connection may have died, or the server ended it with 421. It had nothing of this
        mail yet, so a new connection is no second attempt.
        """
        kept = self._kept
        if kept is not None:
            kept.watched_by(limit)
            try:
                kept.begin(mail)
            except Ended:
                if not kept.broken:
                    raise
                self._drop()
            else:
                return kept
        self._kept = Conversation(self._server, limit)
        self._kept.begin(mail)
        return self._kept

    def _keep(self, answer: Answer) -> None:
        """Make the connection ready for the next mail, or give it up."""
        if self._kept is not None and answer.outcome is not SendOutcome.ACCEPTED:
            if not self._kept.broken:
                with TimeLimit(self._server.seconds) as limit:
                    self._kept.watched_by(limit)
                    self._kept.reset()
            if self._kept.broken:
                self._drop()

    def _drop(self) -> None:
        if self._kept is not None:
            self._kept.hang_up()
        self._kept = None

    def look_up(self, mails: Sequence[tuple[Mail, datetime]]) -> Sequence[Answer]:
        """Find nothing: SMTP cannot be asked."""
        return [transient("an SMTP server cannot be asked what it accepted") for _ in mails]

    def check(self) -> str | None:
        """Connect, encrypt, log in and say NOOP."""
        with TimeLimit(_STEPS * self._server.seconds) as limit:
            try:
                conversation = Conversation(self._server, limit)
                try:
                    conversation.greet_again()
                finally:
                    conversation.quit()
            except Ended as ended:
                return ended.answer.text
        return None

    def close(self) -> None:
        """Take leave of the server."""
        if self._kept is not None:
            self._kept.quit()
        self._kept = None
