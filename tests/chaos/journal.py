"""What host processes committed, by their own account, in files outside of the database.

*Invariants*: a transaction's acts are on file before its commit is asked for, and its end after
that was answered. A host that was killed in between leaves it in doubt; only then its mark, a row
that the transaction itself wrote, decides. What is on file survives the kill of its writer.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Container, Iterator
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

RENEWED, CONFIRMED, CANCELLED, DELETED = "renewed", "confirmed", "cancelled", "deleted"
REPLACED = "replaced"  # the row of a granting that had ended was granted to somebody else
HELD, EXPIRED = "held", "expired"


@dataclass(frozen=True, slots=True)
class Granting:
    """A host held something: the row's id and the hold token name the granting."""

    id: int
    token: str
    tenant: str
    until: str
    stock_id: int
    quantity: int = 1


@dataclass(frozen=True, slots=True)
class End:
    """A host brought a granting to an end of its own."""

    id: int
    token: str
    how: str


Act = Granting | End
Name = tuple[int, str]


class Journal:
    """One host process's file; each note is one write, which outlives the process."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def note(self, word: str, number: str, value: object = None) -> None:
        """Write one line."""
        os.write(self._file, json.dumps([word, number, value]).encode() + b"\n")

    def intend(self, number: str, acts: list[Act]) -> None:
        """Note what a transaction did, just before it is to end."""
        self.note("intend", number, [[type(one).__name__, asdict(one)] for one in acts])


@dataclass
class Truth:
    """What all hosts did, read from their journals.

    Attributes:
        grantings: every granting that was committed.
        ends: how the hosts ended them.
        counts: how often each word was noted.
        lies: transactions whose end on file their mark contradicts.
        ends_told: how often each end stands in the ledger's records, for whoever reads the output.
    """

    grantings: dict[Name, Granting] = field(default_factory=dict)
    ends: dict[Name, set[str]] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    lies: list[str] = field(default_factory=list)
    ends_told: dict[str, int] = field(default_factory=dict)

    def owed(self) -> dict[Name, Granting]:
        """Return the grantings that no host ended: exactly those must be released, once."""
        ours = {RENEWED, CONFIRMED, CANCELLED, DELETED}
        return {
            name: one
            for name, one in self.grantings.items()
            if not self.ends.get(name, set()) & ours
        }

    def rows(self) -> dict[Name, str]:
        """Return the status of every row that must stand in the end, when nothing is held."""
        there = {}
        for name in self.grantings:
            how = self.ends.get(name, set())
            if not how & {RENEWED, DELETED, REPLACED}:
                ended = [one for one in (CANCELLED, CONFIRMED) if one in how]
                there[name] = (*ended, EXPIRED)[0]
        return there

    def balance(self, tenant: str) -> tuple[int, Counter[str]]:
        """Return how many grantings a tenant had, and how they ended; a cancelled one only so."""
        ends: Counter[str] = Counter()
        mine = [name for name, one in self.grantings.items() if one.tenant == tenant]
        for name in mine:
            how = self.ends.get(name, set())
            order = (RENEWED, DELETED, CANCELLED, CONFIRMED)
            ends[next((one for one in order if one in how), EXPIRED)] += 1
        return len(mine), ends


def read_truth(folder: Path, marks: Container[str]) -> Truth:
    """Read all journals of a folder.

    Args:
        marks: the transactions whose own row says that they were committed.
    """
    truth = Truth()
    for path in sorted(folder.glob("host-*.jsonl")):
        for number, acts, end in _transactions(path, truth.counts):
            committed = number in marks
            if end is not None and committed != (end == "committed"):
                truth.lies.append(f"{number}: the host says {end}")
            for act in acts if committed else ():
                _take(truth, act)
    return truth


def _take(truth: Truth, act: Act) -> None:
    name = (act.id, act.token)
    if isinstance(act, Granting):
        assert name not in truth.grantings, f"granted twice: {act}"
        truth.grantings[name] = act
    else:
        truth.ends.setdefault(name, set()).add(act.how)


def _transactions(path: Path, counts: Counter[str]) -> Iterator[tuple[str, list[Act], str | None]]:
    acts: dict[str, list[Act]] = {}
    ends: dict[str, str] = {}
    for line in path.read_text().splitlines():
        word, number, value = json.loads(line)
        counts[word] += 1
        if word == "intend":
            acts[number] = [_act(*one) for one in value]
        elif word in ("committed", "rolled back"):
            ends[number] = word
    for number, done in acts.items():
        yield number, done, ends.get(number)


def _act(kind: str, fields: dict[str, Any]) -> Act:
    return Granting(**fields) if kind == Granting.__name__ else End(**fields)


def instant(text: str) -> datetime:
    """Read what a granting has as its `until`."""
    return datetime.fromisoformat(text)
