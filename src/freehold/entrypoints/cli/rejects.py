"""The file of rejected lines: number, reason, and the line as it stood, byte for byte.

*Invariants*: it is for its owner alone, since lines may hold guest data; a file that is not one of
ours is never written over; where nothing is rejected, no file remains.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from freehold.domain.errors import RefusedByState, UsageError

if TYPE_CHECKING:
    from io import TextIOWrapper

SHOWN = 5  # rejected lines that are named on the screen too
HEADER = ("line", "reason", "original")
_FIRST = ",".join(HEADER).encode() + b"\n"


class Rejects:
    """Lines that were not taken; the file is made at the first one.

    Attributes:
        count: how many there are.
        first: number and reason of the first few.
    """

    def __init__(self, path: Path) -> None:
        """Name the file, and remove what an earlier run left there.

        Raises:
            RefusedByState: a file of somebody else stands there.
        """
        self.path = path
        self.count = 0
        self.first: list[tuple[int, str]] = []
        self._file: TextIOWrapper | None = None
        try:
            if path.exists():
                self._remove_old()
        except OSError as error:
            raise UsageError(f"{path} cannot be written: {error.strerror}.") from None

    def _remove_old(self) -> None:
        with self.path.open("rb") as file:
            begins = file.readline(len(_FIRST))
        is_left_by_kill = not begins and self.path.is_file()
        if begins != _FIRST and not is_left_by_kill:
            raise RefusedByState(
                f"{self.path} exists and is no file of rejected lines; name another with --rejects."
            )
        self.path.unlink()

    def add(self, line: int, reason: str, raw: bytes) -> None:
        """Keep one line."""
        self.count += 1
        if self.count <= SHOWN:
            self.first.append((line, reason))
        original = raw.decode(errors="surrogateescape").rstrip("\r\n")
        with self._told():
            csv.writer(self._opened(), lineterminator="\n").writerow((line, reason, original))

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Say in a sentence why the file cannot be written, and what to do."""
        try:
            yield
        except FileExistsError:
            raise RefusedByState(
                f"Somebody else made {self.path} meanwhile; import again with another --rejects."
            ) from None
        except OSError as error:
            raise UsageError(
                f"{self.path} cannot be written: {error.strerror}; import again with room for "
                "it, or with another --rejects: what is in stays, and comes in once."
            ) from None

    def _opened(self) -> TextIOWrapper:
        if self._file is None:
            self._file = open(  # noqa: SIM115 -- closed at exit; only this takes an opener
                self.path,
                "x",
                encoding="utf-8",
                errors="surrogateescape",
                newline="",
                opener=_private,
            )
            self._file.write(_FIRST.decode())
            self._file.flush()  # so that what a kill leaves is known as ours
        return self._file

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if self._file is None:
            return
        with self._told(), self._file:
            self._file.flush()


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
