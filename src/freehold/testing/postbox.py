"""A target of events that writes what arrives to a file, where it outlives the process.

*Invariants*: what was answered as accepted stands in the file; a line is written whole.
*Not here*: refusing and being away on purpose, which a test does by its own `answers`.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from freehold.ports.target import Answer, Parcel, Reception

ACCEPTED = Answer(Reception.ACCEPTED)


def accepting(parcels: Sequence[Parcel]) -> Sequence[Answer]:
    """Take everything."""
    return [ACCEPTED] * len(parcels)


@dataclass(slots=True)
class Postbox:
    """Implements `ports.target.Target`.

    Attributes:
        answers: what is said to a batch; it may raise `TargetAway`.
    """

    path: Path
    answers: Callable[[Sequence[Parcel]], Sequence[Answer]] = accepting
    batch_most: int = 100
    seconds_most: float = 5.0

    def deliver(self, parcels: Sequence[Parcel]) -> Sequence[Answer]:
        """Write down what is accepted, one line a parcel."""
        answers = self.answers(parcels)
        taken = [
            parcel
            for parcel, answer in zip(parcels, answers, strict=False)
            if answer.reception is Reception.ACCEPTED
        ]
        line = b"".join(b"%s %s\n" % (one.event_key.encode(), one.body) for one in taken)
        box = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(box, line)
        finally:
            os.close(box)
        return answers

    def close(self) -> None:
        """Do nothing."""

    def arrived(self) -> Counter[str]:
        """Count what arrived, by event key."""
        return Counter(key for key, _ in self._lines())

    def bodies(self) -> dict[str, set[bytes]]:
        """Return the bodies that arrived under each event key."""
        found: dict[str, set[bytes]] = {}
        for key, body in self._lines():
            found.setdefault(key, set()).add(body)
        return found

    def _lines(self) -> list[tuple[str, bytes]]:
        text = self.path.read_bytes() if self.path.exists() else b""
        lines = (line.partition(b" ") for line in text.splitlines())
        return [(key.decode(), body) for key, _, body in lines]
