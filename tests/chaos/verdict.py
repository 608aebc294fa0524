"""What must be true in the end, by the hosts' own account and by every other."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from freehold.testing.backdoor import BackDoor
from freehold.testing.invariants import check_invariants, digest_tables
from tests.chaos.hosts import TENANTS
from tests.chaos.journal import EXPIRED, instant, read_truth

if TYPE_CHECKING:
    from tests.chaos.journal import Truth
    from tests.chaos.scene import Scene

DRAINS_MAX = 400
HELD = "select count(*) from reservation where status = 'held'"
OPEN = "select count(*) from {s}operation"
RELEASES = (
    "select reservation_id, old_token, old_hold_until, released_at from history"
    " where new_status = 'expired'"
)
TOLD = "select hold_key, before_image ->> '{token}' from {s}record where outcome = 'expired'"
TALLIED = "select tenant, sum(expired_count) from {s}tally group by tenant"
REPEATED_FOR_NOTHING = (
    "select operation_id, failure_code from {s}attempt"
    " where failure_code in ('40001', '40P01', '55P03')"
)
ENDS = (
    "select outcome || coalesce(' ' || case when outcome <> 'closed' then reason end, ''), count(*)"
    " from {s}record group by 1"
)
GIVEN_UP = "select hold_key, reason from {s}operation where state in ('dead', 'discarded')"


def judge(scene: Scene) -> Truth:
    """Drain, and hold the database to what the hosts committed; return that."""
    _drain(scene)
    with BackDoor(scene.url) as door:
        truth = read_truth(scene.folder, {row[0] for row in door.rows("select number from mark")})
        _check_host(truth)
        _check_releases(door, truth)
        _check_sums(door, truth)
        _check_told(scene, door, truth)
        # As of the end: a minute's tick of a killed service is for a service to finish, not for us.
        check_invariants(door, scene.rule, scene.ended_at)
        truth.ends_told = dict(door.rows(ENDS))
        before = digest_tables(door)
    assert scene.call("audit") == 0, _tail(scene)
    assert scene.call("run", "--until-idle") == 0, _tail(scene)
    with BackDoor(scene.url) as door:
        assert digest_tables(door) == before, "a second drain changed something"
    return truth


def _drain(scene: Scene) -> None:
    """Run one-shots until nothing is held or open: the last holds lapse within a moment."""
    left: list[int] = []
    for _ in range(DRAINS_MAX):
        assert scene.call("run", "--until-idle") == 0, _tail(scene)
        with BackDoor(scene.url) as door:
            left = [door.one(HELD), door.one(OPEN)]
            given_up = door.rows(GIVEN_UP)
        assert not given_up, f"gave up: {given_up[:5]}"
        if left == [0, 0]:
            return
    raise AssertionError(f"held and open after {DRAINS_MAX} drains: {left}; {_tail(scene)}")


def _tail(scene: Scene) -> str:
    return (scene.folder / "commands.log").read_text()[-1_000:]


def _check_host(truth: Truth) -> None:
    assert not truth.lies, truth.lies[:5]
    assert not truth.counts["locked"], f"{truth.counts}: the host was refused on SQLite"


def _check_releases(door: BackDoor, truth: Truth) -> None:
    """Exactly what no host ended was released: once, under its token, and not before its end."""
    rows = door.rows(RELEASES)
    released = Counter((row[0], row[1]) for row in rows)
    owed = truth.owed()
    wrong = sorted(released - Counter(list(owed)))
    assert not wrong, f"released, and should not be: {[_story(truth, one) for one in wrong[:5]]}"
    lost = sorted(Counter(list(owed)) - released)
    assert not lost, f"never released: {[_story(truth, one) for one in lost[:5]]}"
    for number, token, until, at in rows:
        end = instant(owed[number, token].until)
        assert _instant(until) == end, f"hold {number} was released for another end than {end}"
        # SQLite's column has milliseconds; `check_invariants` compares exactly where that can be.
        whole = end.replace(microsecond=end.microsecond // 1000 * 1000)
        assert _instant(at) >= whole, f"hold {number} was due at {end} and released at {at}"
    there = {
        (row[0], row[1]): row[2] for row in door.rows("select id, token, status from reservation")
    }
    assert there == truth.rows()


def _instant(value: object) -> datetime:
    if isinstance(value, datetime):
        return value
    return datetime.fromisoformat(str(value)).replace(tzinfo=UTC)


def _story(truth: Truth, name: tuple[int, str]) -> str:
    return f"{name}: granted {truth.grantings.get(name)}, ended {truth.ends.get(name)}"


def _check_sums(door: BackDoor, truth: Truth) -> None:
    """By tenant: what was granted is what became of it. By counter: every piece came back."""
    tallied: dict[str, int] = dict(door.rows(TALLIED))
    for tenant in TENANTS:
        granted, ends = truth.balance(tenant)
        assert granted == ends.total()
        assert tallied.get(tenant, 0) == ends[EXPIRED], f"{tenant}: {granted} granted, {ends}"
    pieces: Counter[int] = Counter()
    for one in truth.owed().values():
        pieces[one.stock_id] += one.quantity
    free: dict[int, int] = dict(door.rows("select id, free from stock where free <> 0"))
    assert free == pieces


def _check_told(scene: Scene, door: BackDoor, truth: Truth) -> None:
    """Records, events and the handler's own rows tell the same; no attempt was spent in vain."""
    token = scene.rule.fence[0]
    owed = Counter(list(truth.owed()))
    records = door.rows(TOLD.replace("{token}", token))
    assert Counter((int(key), text) for key, text in records) == owed
    noted = Counter((row[0], row[1]) for row in door.rows("select id, token from noted"))
    assert noted == (owed if scene.mode == "handler" else Counter())
    assert door.rows(REPEATED_FOR_NOTHING) == []
