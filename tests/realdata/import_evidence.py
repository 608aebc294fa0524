"""What must be true after the import, and after everything that lapsed was released.

Every query is raw SQL of its own, and what is expected comes from the file alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from freehold.domain.inventory import RULE_NAME, built_in_rule
from freehold.domain.rules import Mode
from freehold.testing.backdoor import BackDoor
from freehold.testing.invariants import check_invariants
from tests.realdata.holds_file import FileHold
from tests.realdata.imports import Imported, Run

OVERLAPS = """
select count(*) from (
    select ends_at, lead(starts_at) over (partition by unit_id order by starts_at) as next_at
    from {s}hold where status in ('held', 'confirmed')) h
where next_at < ends_at
"""
LEFT = """
select (select count(*) from {s}hold where status = 'held' and hold_until < '2100-01-01')
     + (select count(*) from {s}operation)
"""
STRANGE_CHANGES = """
select count(*) from history where old_status is not null
and not (old_status = 'held' and new_status = 'expired' and old_token = new_token)
"""
RELEASING = "select min(finished_at), max(finished_at) from {s}record where outcome = 'expired'"
ONE_EACH = (
    "select count(*) from {s}record where outcome = 'expired'",
    "select count(distinct hold_key) from {s}record where outcome = 'expired'",
    "select count(*) from {s}outbox where type = 'hold.expired.v1'",
    "select count(distinct hold_key) from {s}outbox",
    "select count(*) from history where new_status = 'expired' and old_status = 'held'",
)


def check_imported(imported: Imported) -> None:
    """Compare every hold with its line; an import tells and records nothing."""
    with BackDoor(imported.url) as door:
        assert _found(door) == [_row(hold, hold.status) for hold in _sorted(imported.holds)]
        assert door.one(OVERLAPS) == 0
        assert door.one("select count(*) from {s}outbox") == 0


def is_done(url: str) -> bool:
    """Tell whether nothing lapsed is held and no work is open."""
    with BackDoor(url) as door:
        return bool(door.one(LEFT) == 0)


def check_released(run: Run, url: str, mode: Mode, holds: Sequence[FileHold]) -> None:
    """Check each hold against its line, the balance of each tenant twice, and every promise."""
    lapsed = Counter(hold.tenant for hold in holds if hold.lapsed)
    with BackDoor(url) as door:
        assert _found(door) == [_row(hold, hold.ends_as) for hold in _sorted(holds)]
        assert door.one(STRANGE_CHANGES) == 0
        assert [door.one(sql) for sql in ONE_EACH] == [lapsed.total()] * len(ONE_EACH)
        _check_balance(door, holds)
        if door.dialect == "postgres":
            door.execute("analyze")  # its own may be a minute away, and a guess takes for ever
        rule = built_in_rule(door.dialect, mode=mode)
        check_invariants(door, rule, datetime.now(UTC))
        assert _tallied(door) == lapsed
        _check_status(run, door)
    assert run("audit").code == 0


def _check_balance(door: BackDoor, holds: Sequence[FileHold]) -> None:
    """Every tenant: imported = expired + confirmed + cancelled + still held + in review.

    Once by the statuses of the table, and once with what the tallies say was released.
    """
    imported = Counter(hold.tenant for hold in holds)
    review = _by_tenant(door, "{s}operation where state in ('dead', 'discarded')")
    assert review == Counter()
    table = Counter(review)
    for status in ("expired", "confirmed", "cancelled", "held"):
        table += _by_tenant(door, f"{{s}}hold where status = '{status}'")
    assert table == imported
    standing = _by_tenant(door, "{s}hold where status in ('confirmed', 'cancelled', 'held')")
    assert _tallied(door) + standing + review == imported


def _by_tenant(door: BackDoor, where: str) -> Counter[str]:
    return Counter(dict(door.rows(f"select tenant, count(*) from {where} group by tenant")))


def _tallied(door: BackDoor, when: str = "at is not null", **values: Any) -> Counter[str]:
    """Add up by tenant what the tallies of a time say was released."""
    sql = f"select tenant, sum(expired_count) from {{s}}tally where {when} group by tenant"
    return Counter({tenant: int(count) for tenant, count in door.rows(sql, **values) if count})


def _check_status(run: Run, door: BackDoor) -> None:
    """The figures that a person sees are those of the tallies, and nothing is left over.

    Status reads the newest tallies only and says since when; a slow machine writes more than that,
    and then it may have read a part of those of the first instant.
    """
    (rule,) = run("--json", "status").data["rules"]
    assert rule["rule"] == RULE_NAME
    assert not any(rule["depth"].values()), rule["depth"]
    assert rule["oldest_overdue_seconds"] is None
    hour = rule["last_hour"]
    since = door.ledger(datetime.fromisoformat(hour["since"]))
    least = _tallied(door, "at > :since", since=since)
    most = _tallied(door, "at >= :since", since=since)
    assert hour["skipped"] == {}
    assert least.total() <= hour["released_count"] <= most.total()
    for one in rule["tenants_last_hour"]:
        assert least[one["tenant"]] <= one["released_count"] <= most[one["tenant"]]


def releases_a_second(url: str) -> float:
    """Return the rate between the first and the last releasing transaction."""
    with BackDoor(url) as door:
        ((first, last),) = door.rows(RELEASING)
        count = door.one(ONE_EACH[0])
    return float(count / (_instant(last) - _instant(first)).total_seconds())


def _instant(value: Any) -> datetime:
    return value if isinstance(value, datetime) else datetime.fromisoformat(value)


def _found(door: BackDoor) -> list[tuple[str, str, str, str]]:
    rows = door.rows("select reference, tenant, cast(hold_token as text), status from {s}hold")
    return sorted((reference, tenant, token, status) for reference, tenant, token, status in rows)


def _row(hold: FileHold, status: str) -> tuple[str, str, str, str]:
    return (hold.reference, hold.tenant, hold.token, status)


def _sorted(holds: Sequence[FileHold]) -> list[FileHold]:
    return sorted(holds, key=lambda hold: hold.reference)
