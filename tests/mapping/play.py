"""How every recreated table is played: a few hundred rows of each kind, and what must become of them.

A row is found due by the scan; then its host goes on (renews, confirms, cancels, takes over,
removes); then the workers come. Every kind of row has one right end.
"""

from __future__ import annotations

import random
from datetime import timedelta
from typing import TYPE_CHECKING

from freehold.application.doctor import Severity
from tests.stage import NOON

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from tests.stage import Stage

COUNTS = {
    "expired": 130,
    "renewed": 25,
    "confirmed": 25,
    "cancelled": 20,
    "taken over": 20,
    "gone": 15,
    "future": 40,
    "no due": 15,
}
UNTOUCHED = ("future", "no due")
LATER = NOON + timedelta(minutes=20)

Cast = dict[int, str]


def cast(*left_out: str) -> Cast:
    """Number rows from 1 and give each the end that it is to meet, mixed but always alike."""
    kinds = [kind for kind, count in COUNTS.items() if kind not in left_out for _ in range(count)]
    random.Random(20).shuffle(kinds)
    return dict(enumerate(kinds, 1))


def of(players: Cast, *kinds: str) -> list[int]:
    """Return the numbers of some kinds."""
    return [number for number, kind in players.items() if kind in kinds]


def due_of(players: Cast, number: int) -> datetime | None:
    """Return when a row is due: at or before noon unless it is one of the future."""
    if players[number] == "no due":
        return None
    if players[number] == "future":
        return NOON + timedelta(seconds=number)
    return NOON - timedelta(seconds=number - 1)


def play(
    stage: Stage, players: Cast, key: Callable[[int], str], meanwhile: Callable[[], None]
) -> None:
    """Scan, let the host go on, work; then check ends, events, open work and audit."""
    findings = stage.doctor().values()
    assert not [one.sentence for one in findings if one.severity is Severity.REFUSE]
    assert stage.scan().new_count == len(players) - len(of(players, *UNTOUCHED))
    meanwhile()
    stage.drain()
    check_ends(stage, {key(number): kind for number, kind in players.items()})
    assert stage.audit() == {}
    rest(stage)


def check_ends(stage: Stage, wanted: Mapping[str, str]) -> None:
    """Compare every record with the end that its row was to meet, and events with releases."""
    rows = stage.host.run(
        "select hold_key, case when outcome = 'skipped' then reason else outcome end "
        f"from {stage.prefix}record"
    )
    assert len(rows) == len(dict(rows))
    assert dict(rows) == {k: end for k, end in wanted.items() if end not in UNTOUCHED}
    assert set(stage.events()) == {k for k, end in wanted.items() if end == "expired"}
    assert len(stage.events()) == len(set(stage.events()))
    assert stage.open() == {}


def rest(stage: Stage) -> None:
    """Run again: nothing in any table changes."""
    before = stage.digest()
    stage.drain()
    assert stage.digest() == before


def marks(numbers: list[int]) -> str:
    """Write numbers for an SQL IN."""
    return ", ".join(map(str, numbers))
