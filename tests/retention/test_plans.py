"""Pruning costs what it removes: every statement goes by an index, however large its table."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from freehold.adapters.sql.retention import COUNTS, PAGES, WALKS
from freehold.adapters.sql.session import Runner
from freehold.ports.retention import Subject
from tests.scenarios.shop import open_shop

if TYPE_CHECKING:
    from tests.stage import Stage

NOW = datetime(2026, 3, 10, tzinfo=UTC)
VALUES: dict[str, Any] = {
    "after": 0,
    "last": 1_000,
    "limit": 1_000,
    "before": NOW,
    "after_at": NOW,
    "last_at": NOW,
}
OF_SQLITE = {*PAGES[Subject.RECORDS], COUNTS[Subject.RECORDS], "rules_of_records"}
OF_ALL = {
    *(name for subject, pair in PAGES.items() if subject is not Subject.RECORDS for name in pair),
    *(name for subject, name in COUNTS.items() if subject is not Subject.RECORDS),
    *(name for pair in WALKS.values() for name in pair),
}
OF_POSTGRES = {"prune_default", "count_default"}
# A sequential reading, whatever it is called; SQLite scans what it reads by its key in order, too,
# which is why it must say that it searches, or end at a limit.
WHOLE = re.compile(r"Seq Scan")


def plan(stage: Stage, name: str) -> str:
    """Return the plan of a statement, in a transaction like that of a pruner."""
    ledger = stage.own()
    with ledger.transaction():
        text = Runner(ledger.session).text(name)
        explain = "explain query plan " if stage.dialect == "sqlite" else "explain "
        return "\n".join(str(row[-1]) for row in ledger.session.run(explain + text, VALUES)[0])


@pytest.mark.parametrize("name", sorted(OF_ALL | OF_SQLITE | OF_POSTGRES))
def test_a_statement_goes_by_an_index(stage: Stage, name: str) -> None:
    if name in (OF_SQLITE if stage.dialect == "postgres" else OF_POSTGRES):
        return
    open_shop(stage)
    found = plan(stage, name)
    assert not WHOLE.search(found), found
    text = Runner(stage.own().session).text(name)
    if stage.dialect == "sqlite" and "limit" not in text:
        assert "SEARCH" in found, found
        assert not re.search(r"^SCAN (?!p$|q$)", found, re.MULTILINE), found
