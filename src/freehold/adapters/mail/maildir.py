"""Mails into a Maildir: for trials, the demo, and whoever wants to see them before they are sent.

*Invariants*: a file is whole when it is in `new/`; one key is one file, however often it is sent.
*Source*: D. J. Bernstein, "Using maildir format": written in tmp/, moved to new/. Not here: cur/,
which a mail reader fills; a file that one has moved there or deleted is written again.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path

from freehold.adapters.mail.answers import accepted, plain, refused, transient
from freehold.domain.sending import Repeat, TransportPromise
from freehold.ports.mail import Answer, Mail

# No clock is asked: it remembers for as long as the files are kept.
_WINDOW = timedelta(days=36_500)
_FOLDERS = ("tmp", "new", "cur")


class MaildirTransport:
    """Implements `ports.mail.Transport` over a folder, which is made where it is missing."""

    def __init__(self, path: Path | str) -> None:
        self._path = Path(path)

    def __repr__(self) -> str:
        """Name the folder."""
        return f"MaildirTransport({str(self._path)!r})"

    @property
    def promise(self) -> TransportPromise:
        """A repeat finds its file and leaves it."""
        return TransportPromise("maildir", Repeat.REPLAYS, _WINDOW)

    def send(self, mails: Iterable[Mail]) -> Iterator[Answer]:
        """Write mails one after the other."""
        for mail in mails:
            try:
                yield self._write(mail)
            except OSError as error:
                yield transient(self._wrong(error), everyone=True)

    def _write(self, mail: Mail) -> Answer:
        content = _envelope(mail) + mail.message
        name = f"{mail.key}.{sha256(mail.recipient.encode()).hexdigest()[:12]}.freehold"
        self._make_folders()
        # Of its own for each process, so that two that write one mail do not mix.
        draft = self._path / "tmp" / f"{name}.{os.getpid()}"
        try:
            _write_out(draft, content)
            # A link, because a rename would overwrite what is there.
            os.link(draft, self._path / "new" / name)
            _sync(self._path / "new")
        except FileExistsError:
            return self._known(name, content)
        finally:
            with suppress(FileNotFoundError):
                draft.unlink()
        return accepted(name, "written")

    def _known(self, name: str, content: bytes) -> Answer:
        if (self._path / "new" / name).read_bytes() != content:
            return refused(f"{self._path}/new has another mail under this key", "exists")
        return accepted(name, "written", "it was written before")

    def _make_folders(self) -> None:
        for folder in _FOLDERS:
            (self._path / folder).mkdir(mode=0o700, parents=True, exist_ok=True)

    def look_up(self, mails: Sequence[tuple[Mail, datetime]]) -> Sequence[Answer]:
        """Find nothing: a repeat is as good."""
        return [transient("a Maildir is not asked; sending again does no harm") for _ in mails]

    def check(self) -> str | None:
        """Make the folders, and see whether files may be written."""
        try:
            self._make_folders()
            for folder in _FOLDERS[:2]:
                if not os.access(self._path / folder, os.W_OK | os.X_OK):
                    return f"The Maildir {self._path} cannot be written to: its {folder} is closed."
        except OSError as error:
            return self._wrong(error)
        return None

    def close(self) -> None:
        """Keep nothing."""

    def _wrong(self, error: OSError) -> str:
        return plain(f"The Maildir {self._path} cannot be written to: {error.strerror}.")


def _envelope(mail: Mail) -> bytes:
    """Write what SMTP would say beside the message (RFC 5321 4.4), as delivering programs do."""
    return f"Return-Path: <{mail.sender}>\r\nDelivered-To: {mail.recipient}\r\n".encode()


def _write_out(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
