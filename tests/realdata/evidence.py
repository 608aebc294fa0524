"""What must be true after all lapsed holds were released; every query is raw SQL of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.e2e.command import freehold
from tests.realdata.bookings import Booking, count_lapsed
from tests.realdata.customers import customers_of, load, rows, write_settings

DISPLACEMENT = """
select max(finished - due) from (
    select row_number() over (order by due_at, operation_id) as due,
           row_number() over (order by finished_at, due_at, operation_id) as finished, tenant
    from {s}record where rule = '%s') r
where tenant <> '%s'
"""


def attach(url: str, folder: Path, bookings: Sequence[Booking]) -> None:
    """Load the tables and attach them by configuration and commands alone.

    The count that is confirmed comes from a raw query, which the file itself must bear out.
    """
    load(url, bookings)
    write_settings(url, folder)
    assert freehold("db", "upgrade", cwd=folder).code == 0
    for customer in customers_of(url):
        lapsed = Counter(dict(rows(url, customer.lapsed_by_tenant)))
        assert lapsed == count_lapsed(bookings)
        confirm = ("--confirm", str(lapsed.total()), "--by", "the test")
        assert freehold("attach", customer.rule, *confirm, cwd=folder).code == 0


def check_released(url: str, folder: Path, bookings: Sequence[Booking]) -> None:
    """Check counts by tenant, the rows that were to stay, the carried dirt, and the audit."""
    wanted = count_lapsed(bookings)
    for customer in customers_of(url):
        by_rule = f"where rule = '{customer.rule}' group by tenant"
        records = f"select tenant, count(*) from {{s}}record {by_rule}"
        expired = f"select tenant, sum(expired_count) from {{s}}tally {by_rule}"
        events = f"select tenant, count(*) from {{s}}outbox {by_rule}"
        for sql in (records, expired, events):
            assert Counter(dict(rows(url, sql))) == wanted, sql
        assert rows(url, customer.lapsed_by_tenant) == []
        _check_dirt(url, customer.rule, bookings)
    assert rows(url, "select count(*) from {s}operation") == [(0,)]
    assert freehold("audit", cwd=folder).code == 0


def _check_dirt(url: str, rule: str, bookings: Sequence[Booking]) -> None:
    """Compare what the events carry of the dirty values with the file."""
    lapsed = [one for one in bookings if one.lapsed]
    for name, value in (("adults", "0"), ("children", "NA"), ("rate", "-6.38")):
        text = (
            f"json_extract(carry, '$.{name}')" if url.startswith("sqlite") else f"carry->>'{name}'"
        )
        carried = rows(url, f"select {text} from {{s}}outbox where rule = '{rule}'")
        found = sum(_same(one, value) for (one,) in carried)
        assert found == sum(_same(str(getattr(one, name)), value) for one in lapsed), name


def _same(text: str, value: str) -> bool:
    """Compare a value as the databases print it: a float has more digits than the file."""
    if value != "-6.38":
        return text == value
    return abs(float(text) - float(value)) < 0.001


def furthest_displaced(url: str, rule: str, big_tenant: str) -> int:
    """Return by how many places a hold of a small tenant was released after its turn by due."""
    return int(rows(url, DISPLACEMENT % (rule, big_tenant))[0][0])
