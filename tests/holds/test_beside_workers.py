"""Hosts that hold, renew, confirm and cancel at random beside running workers."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any

from freehold import holds
from freehold.domain.inventory import Stay, built_in_rule
from freehold.domain.schedule import Every
from freehold.testing.backdoor import BackDoor
from freehold.testing.clock import SetClock
from freehold.testing.forking import fork
from freehold.testing.invariants import check_invariants
from freehold.testing.own_table import disguise
from freehold.testing.pipeline import Pipeline
from tests.holds.hotel import NIGHT, UNITS, dialect_of, empty, host_of, prepare

if TYPE_CHECKING:
    from freehold.domain.rules import Rule
    from freehold.testing.forking import Wire

SECONDS = 1.0
HOSTS = 3
WORKERS = 2


class RunningClock(SetClock):
    """The database's own clock."""

    def read(self, database_now: datetime) -> datetime:
        return database_now


def _rule(url: str) -> Rule:
    return replace(built_in_rule(dialect_of(url)), schedule=Every(60), attach_limit=10**6)


def _host(url: str, seed: int, wire: Wire) -> dict[str, int]:
    """Act at random until the time is over; return how often each act was committed."""
    dice = random.Random(seed)
    tokens: list[Any] = []
    counts = dict.fromkeys(("hold", "confirm", "taken"), 0)
    end = monotonic() + SECONDS
    with host_of(url) as connection:
        while monotonic() < end:
            try:
                _act(connection, dice, tokens, counts)
            except (holds.RefusedByState, holds.UnknownHold):
                counts["taken"] += 1
            except holds.DatabaseBusy:
                connection.rollback()
                continue
            connection.commit() if dice.random() < 0.9 else connection.rollback()
    return counts


def _act(connection: Any, dice: random.Random, tokens: list[Any], counts: dict[str, int]) -> None:
    window = timedelta(milliseconds=dice.choice((5, 50, 200)))
    if not tokens or dice.random() < 0.5:
        days = timedelta(days=dice.randrange(3))
        stay = Stay(NIGHT.starts_at + days, NIGHT.ends_at + days)
        granted = holds.hold(
            connection,
            tenant="anna",
            unit=dice.choice(UNITS),
            window=window,
            starts_at=stay.starts_at,
            ends_at=stay.ends_at + days,
        )
        tokens.append(granted.hold.token)
        counts["hold"] += 1
        return
    token = tokens.pop(dice.randrange(len(tokens)))
    act = dice.choice(("renew", "confirm", "cancel"))
    if act == "renew":
        tokens.append(holds.renew(connection, token, window=window).token)
    elif act == "confirm":
        holds.confirm(connection, token)
        tokens.append(token)
        counts["confirm"] += 1
    else:
        holds.cancel(connection, token)


def _work(url: str, wire: Wire) -> int:
    """Scan and work until the time is over; return how many holds were released."""
    pipeline = Pipeline(url, _rule(url), RunningClock(NIGHT.starts_at))
    end, count = monotonic() + SECONDS, 0
    while monotonic() < end:
        pipeline.scan()
        count += pipeline.work().released_count
    pipeline.close()
    return count


def _told(door: BackDoor) -> dict[str, int]:
    return dict(door.rows("select type, count(*) from {s}outbox group by type"))


def _happened(door: BackDoor) -> dict[str, int]:
    """Count what the history says that happened, by the event that tells it."""
    what = (
        "select case when old_status is null then 'held' when old_status <> new_status"
        " then new_status else 'renewed' end as what from history"
    )
    rows = door.rows(f"select what, count(*) from ({what}) w group by what")
    return {f"hold.{name}.v1": count for name, count in rows}


def test_random_hosts_and_workers_leave_every_promise_kept(database_url: str) -> None:
    prepare(database_url)
    empty(database_url)
    with BackDoor(database_url) as door:
        disguise(door)
    children = [
        *(fork(partial(_host, database_url, n)) for n in range(HOSTS)),
        *(fork(partial(_work, database_url)) for _ in range(WORKERS)),
    ]
    values = [child.end().value for child in children]
    for child in children:
        child.__exit__(None, None, None)
    later = SetClock(datetime.now(UTC) + timedelta(hours=1))
    pipeline = Pipeline(database_url, _rule(database_url), later)
    pipeline.drain()
    with BackDoor(database_url) as door:
        check_invariants(door, pipeline.rule, later.instant)
        assert _told(door) == _happened(door)
        assert door.one("select count(*) from {s}hold where status = 'held'") == 0
        assert door.one("select count(*) from {s}hold where status = 'expired'") > 0
    assert pipeline.audit() == []
    pipeline.close()
    assert sum(value["hold"] for value in values[:HOSTS]) > 0
