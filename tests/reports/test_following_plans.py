"""Following the table of tenants, unsubscribing and doubting go by indexes, however large all is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from freehold.adapters.sql.ledger import SqlLedger
from freehold.adapters.sql.migrations import upgrade
from freehold.adapters.sql.session import Limits
from freehold.adapters.system import Onwards, SystemClock
from freehold.bootstrap import open_session, sqlite_path
from freehold.domain.rules import Condition, Predicate, TableName, Test
from freehold.domain.tenant_mapping import TenantMapping
from freehold.settings import DatabaseSettings, Settings
from freehold.testing.backdoor import BackDoor
from freehold.testing.clock import SetClock
from freehold.testing.contracts.ground import NOW
from tests.behaviour.plans import ExplainedPostgres, ExplainedSqlite

if TYPE_CHECKING:
    from tests.behaviour.plans import Plans

COUNT = 5_000
STATE = Predicate(((Condition("state", Test.EQUALS, ("live",)),),))
MAPPING = TenantMapping(TableName("property"), "code", "title", active=STATE)
SERIES = {
    "postgres": "generate_series(1, {count}) as n (value)",
    "sqlite": "(with recursive s (value) as (select 1 union all select value + 1 from s"
    " where value < {count}) select value from s) as n",
}
# A tenant each, with a report of one day and one mail that waits for one recipient; all but every
# hundredth of the sends are over.
FILL = """
create table property (code text primary key, title text, state text);
insert into property select 't' || n.value, 'T', 'live' from {series};
insert into {s}tenant (id, name, created_at, changed_at, active, from_source)
select 't' || n.value, 'T', {at}, {at}, {yes}, {yes} from {series};
insert into {s}report (tenant, report_date, start_at, end_at, zone, tz_version, watermark_at, due_at,
    state, facts, assigned_at, expired_count)
select 't' || n.value, {day}, {at}, {later}, 'UTC', '1', {at}, {at},
    case when n.value % 100 = 0 then 'sending' else 'sent' end, '{{}}', {at}, 0 from {series};
insert into {s}mail (report_id, locale, subject, body_digest, byte_count, frozen_at)
select id, 'en', 's', 'd', 1, {at} from {s}report;
insert into {s}send (report_id, recipient, message_key, head, mail_digest, state, available_at,
    changed_at)
select id, 'a@x', tenant, '', 'd', case when id % 100 = 0 then 'ready' else 'accepted' end, {at}, {at}
from {s}report;
analyze;
"""


class Explained:
    """A ledger whose statements say by which indexes they go."""

    def __init__(self, url: str) -> None:
        clock = SetClock(NOW)
        limits = Limits()
        self.session: Any
        if url.startswith("sqlite"):
            self.session = ExplainedSqlite(
                str(sqlite_path(url)), SystemClock(), limits=limits, clock=clock
            )
        else:
            self.session = ExplainedPostgres(url, limits=limits, clock=clock)
        self.session.plans = defaultdict(set)
        self.ledger = SqlLedger(self.session, Onwards())

    @property
    def plans(self) -> Plans:
        found: Plans = self.session.plans
        return found


@pytest.fixture
def explained(database_url: str) -> Iterator[Explained]:
    """A ledger with five thousand tenants."""
    session = open_session(Settings(DatabaseSettings(database_url)), considerate=False)
    upgrade(session)
    session.close()
    with BackDoor(database_url) as door:
        postgres = door.dialect == "postgres"
        values = {
            "s": door.prefix,
            "series": SERIES[door.dialect].format(count=COUNT),
            "at": "'2031-05-06T00:00:00.000000Z'",
            "later": "'2031-05-07T00:00:00.000000Z'",
            "day": "date '2031-05-06'" if postgres else "'2031-05-06'",
            "yes": "true" if postgres else "1",
        }
        door.script(FILL.format(**values))
    explained = Explained(database_url)
    yield explained
    explained.ledger.close()


def test_every_statement_goes_by_an_index(explained: Explained) -> None:
    ids = [f"t{n}" for n in range(1, 100)]
    with explained.ledger.transaction() as tx:
        rows = tx.tenant_rows(MAPPING)
        first = rows.find(None, 100)
        rows.find(first[-1].id, 100)
        rows.standing(ids)
        sourced = tx.sourced_tenants
        sourced.find("t5", 100)
        sourced.among(ids)
        assert sourced.retire(["t7"]) == 1
        tx.unsubscribed.of(ids)
        assert tx.unsubscribed.stop("t100", "a@x") == 1
        tx.unsubscribed.find_link("none")
        assert tx.restoring.doubt(NOW, "post", 20) == 20
        assert tx.restoring.leased_count() == 0
    plans = explained.plans
    wanted = {
        "find_tenant_rows", "standing_tenant_rows", "find_sourced_tenants", "sourced_among",
        "retire_sourced", "unsubscribed_of", "stop_unsubscribed", "find_link", "doubtful_sends",
        "note_doubts", "doubt_sends", "count_leased_sends",
    }  # fmt: skip
    assert wanted <= plans.keys()
    tables = {
        f"all of {prefix}{name}"
        for prefix in ("", "freehold_", "freehold.")
        for name in ("property", "tenant", "report", "mail", "send", "send_attempt")
    }
    tables |= {"all of h", "all of n", "all of r"}  # as SQLite calls them here
    assert not {name: plans[name] for name in wanted if plans[name] & tables}
    by = {name: {one.removeprefix("freehold_") for one in found} for name, found in plans.items()}
    assert "tenant_sourced" in by["find_sourced_tenants"]
    assert by["doubtful_sends"] & {"send_claim", "all of send_open"}  # what is open, and no more
