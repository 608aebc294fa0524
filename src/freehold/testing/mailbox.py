"""A provider of mail as a file: what it promises is declared, what it accepted can be looked at.

`Mailbox` is the provider's own side and the test's back door; `DeclaredProvider` is a transport that
hands mails to it. *Invariants*: what the provider accepted is on the disk before it answers, so that
a process killed a moment later changes nothing about it; processes may share the file.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path

from freehold.adapters.system import SystemClock
from freehold.domain.sending import Repeat, SendOutcome, TransportPromise
from freehold.ports.mail import Answer, Mail

_TABLES = """
create table if not exists accepted (
    id integer primary key autoincrement, key text, recipient text, sender text, digest text,
    at text, message blob);
create index if not exists accepted_key on accepted (key);
create table if not exists asked (
    id integer primary key autoincrement, key text, recipient text, what text, at text);
create table if not exists fault (
    id integer primary key autoincrement, recipient text, what text, kind text);
"""
_PATIENCE_SECONDS = 10.0  # with another process that writes to the file


class Fault(StrEnum):
    """What goes wrong with one request; the first three leave its end unknown."""

    ACCEPT_THEN_CUT = "accept then cut"
    CUT = "cut before accepting"
    SILENT = "silent"  # like a cut that nobody notices before the time-out
    TRANSIENT = "transient"
    REFUSE = "refuse"
    TRANSIENT_FOR_EVERYONE = "transient for everyone"
    REFUSE_EVERYONE = "refuse everyone"


@dataclass(frozen=True, slots=True)
class AcceptedMail:
    """One mail that the provider took upon itself.

    Attributes:
        digest: SHA-256 in hex over its bytes.
    """

    reference: str
    key: str
    recipient: str
    sender: str
    digest: str
    at: datetime
    message: bytes


class Mailbox:
    """The provider's file; opened anew at each call, so that forked processes may share it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._open() as file:
            file.executescript(_TABLES)

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        file = sqlite3.connect(self.path, timeout=_PATIENCE_SECONDS, isolation_level=None)
        try:
            file.execute("pragma synchronous = off")  # a killed process loses nothing by it
            yield file
        finally:
            file.close()

    # -------------------------------------------------------------------------- the back door

    def accepted(self) -> Sequence[AcceptedMail]:
        """Return what was accepted, in order; a mail that was accepted twice is there twice."""
        with self._open() as file:
            rows = file.execute(
                "select id, key, recipient, sender, digest, at, message from accepted order by id"
            ).fetchall()
        return [_accepted(row) for row in rows]

    def asked(self, what: str = "send") -> Sequence[str]:
        """Return the recipients of all requests of a kind, `send` or `look-up`, in order."""
        with self._open() as file:
            rows = file.execute("select recipient from asked where what = ? order by id", [what])
            return [row[0] for row in rows]

    def play(self, *faults: Fault, recipient: str | None = None, what: str = "send") -> None:
        """Let the next requests go wrong, one fault each; only of one recipient if one is named."""
        rows = [(recipient, what, fault.value) for fault in faults]
        with self._open() as file:
            file.executemany("insert into fault (recipient, what, kind) values (?, ?, ?)", rows)

    def calm(self) -> None:
        """Let nothing go wrong any more."""
        with self._open() as file:
            file.execute("delete from fault")

    # ------------------------------------------------------------------------ the provider's side

    @contextmanager
    def request(self, mail: Mail, what: str, now: datetime) -> Iterator[Request]:
        """Take one request in; what it wrote is on the disk when the block ends."""
        with self._open() as file:
            file.execute("begin immediate")
            row = [mail.key, mail.recipient, what, now.isoformat()]
            file.execute("insert into asked (key, recipient, what, at) values (?, ?, ?, ?)", row)
            yield Request(file, mail, now, _next_fault(file, mail.recipient, what))
            file.execute("commit")


@dataclass(frozen=True, slots=True)
class Request:
    """One request as the provider sees it."""

    file: sqlite3.Connection
    mail: Mail
    now: datetime
    fault: Fault | None

    def accept(self) -> str:
        """Take the mail; return the provider's reference."""
        mail = self.mail
        row = [mail.key, mail.recipient, mail.sender, digest_of(mail), self.now.isoformat()]
        cursor = self.file.execute(
            "insert into accepted (key, recipient, sender, digest, at, message)"
            " values (?, ?, ?, ?, ?, ?)",
            [*row, mail.message],
        )
        return _reference(cursor.lastrowid or 0)

    def known(self) -> AcceptedMail | None:
        """Return the mail that was accepted last under this key."""
        row = self.file.execute(
            "select id, key, recipient, sender, digest, at, message from accepted"
            " where key = ? order by id desc limit 1",
            [self.mail.key],
        ).fetchone()
        return None if row is None else _accepted(row)


def digest_of(mail: Mail) -> str:
    """Return the SHA-256 in hex over a mail's bytes."""
    return hashlib.sha256(mail.message).hexdigest()


def _reference(number: int) -> str:
    return f"mail-{number}"


def _accepted(row: Sequence[object]) -> AcceptedMail:
    number, key, recipient, sender, digest, at, message = row
    assert isinstance(number, int)
    assert isinstance(message, bytes)
    accepted_at = datetime.fromisoformat(str(at))
    texts = (str(key), str(recipient), str(sender), str(digest))
    return AcceptedMail(_reference(number), *texts, accepted_at, message)


def _next_fault(file: sqlite3.Connection, recipient: str, what: str) -> Fault | None:
    row = file.execute(
        "select id, kind from fault where what = ? and (recipient is null or recipient = ?)"
        " order by id limit 1",
        [what, recipient],
    ).fetchone()
    if row is None:
        return None
    file.execute("delete from fault where id = ?", [row[0]])
    return Fault(row[1])


_UNKNOWN = {
    Fault.ACCEPT_THEN_CUT: "the connection broke after the mail was handed over",
    Fault.CUT: "the connection broke after the mail was handed over",
    Fault.SILENT: "no answer came in time",
}
_TROUBLE = {
    Fault.TRANSIENT: Answer(SendOutcome.TRANSIENT, code="451", text="try again later"),
    Fault.TRANSIENT_FOR_EVERYONE: Answer(
        SendOutcome.TRANSIENT, code="429", text="the quota is used up", everyone=True
    ),
    Fault.REFUSE: Answer(SendOutcome.REFUSED, code="550", text="no such mailbox"),
    Fault.REFUSE_EVERYONE: Answer(
        SendOutcome.REFUSED, code="401", text="the key is not valid", everyone=True
    ),
}


class DeclaredProvider:
    """Implements `ports.mail.Transport` over a mailbox, and keeps what its promise says."""

    def __init__(
        self,
        mailbox: Mailbox,
        promise: TransportPromise,
        clock: Callable[[], datetime] | None = None,
    ) -> None:
        """Hand mails to this mailbox.

        Args:
            clock: the provider's own, by which windows and delays are counted; None for the host's.
        """
        self._mailbox = mailbox
        self._promise = promise
        self._clock = clock or SystemClock().wall
        self.trouble: str | None = None

    @property
    def promise(self) -> TransportPromise:
        """Return what was declared."""
        return self._promise

    def send(self, mails: Iterable[Mail]) -> Iterator[Answer]:
        """Send mails one after the other."""
        for mail in mails:
            with self._mailbox.request(mail, "send", self._clock()) as request:
                answer = self._answer(request)
            yield answer

    def _answer(self, request: Request) -> Answer:
        fault = request.fault
        if fault in _TROUBLE:
            return _TROUBLE[fault]
        if fault is Fault.ACCEPT_THEN_CUT:
            self._take(request)
        if fault is not None:
            return Answer(SendOutcome.UNKNOWN, text=_UNKNOWN[fault])
        return self._take(request)

    def _take(self, request: Request) -> Answer:
        """Accept the mail, or tell that its key was there before."""
        known = request.known()
        repeat = self._promise.repeat
        if known is None or repeat is Repeat.SENDS or self._forgot(request, known):
            return Answer(SendOutcome.ACCEPTED, reference=request.accept(), code="250")
        if repeat is Repeat.CONFLICTS:
            return Answer(SendOutcome.ACCEPTED, code="409", text="was accepted before")
        if known.digest != digest_of(request.mail):
            text = "the key was used for another mail"
            return Answer(SendOutcome.REFUSED, code="409", text=text)
        return Answer(SendOutcome.ACCEPTED, reference=known.reference, code="250")

    def _forgot(self, request: Request, known: AcceptedMail) -> bool:
        return request.now - known.at >= self._promise.window

    def look_up(self, mails: Sequence[tuple[Mail, datetime]]) -> Sequence[Answer]:
        """Look for mails by their keys, among those that are indexed by now."""
        return [self._look_up(mail) for mail, _ in mails]

    def _look_up(self, mail: Mail) -> Answer:
        with self._mailbox.request(mail, "look-up", self._clock()) as request:
            known = request.known()
            if request.fault is not None:
                return Answer(SendOutcome.TRANSIENT, code="503", text="the index does not answer")
        if known is None or request.now - known.at < self._promise.indexing:
            return Answer(SendOutcome.NOT_FOUND, code="404", text="there is no such mail")
        return Answer(SendOutcome.FOUND, reference=known.reference, code="200")

    def check(self) -> str | None:
        """Return what a test says is wrong."""
        return self.trouble

    def close(self) -> None:
        """Keep nothing."""
