"""An installation of the first migration, with work in every state, goes on under all later ones."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import reduce
from typing import TYPE_CHECKING

import psycopg
import pytest

from freehold.adapters.sql import migrations
from freehold.adapters.sql.postgres import PostgresSession
from freehold.adapters.sql.session import Limits
from freehold.bootstrap import open_session
from freehold.domain.errors import RefusedByState
from freehold.domain.names import digest
from freehold.settings import DatabaseSettings, Settings
from freehold.testing.backdoor import BackDoor
from freehold.testing.clock import SetClock
from freehold.testing.pipeline import Pipeline
from tests.growth.grounds import RULE, TABLE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from freehold.adapters.sql.session import Session

NOON = datetime(2026, 3, 10, 12, tzinfo=UTC)
AT = "'2026-03-10T11:00:00.000000Z'"
DUE = int(NOON.timestamp()) - 3_600  # an hour ago, which is AT
HOLD = "insert into hold values ({id}, 'harbour', '{status}', 'k{id}', {due})"
OPERATION = """
insert into {{s}}operation (
    rule, tenant, hold_key, digest, identity, guard, due_at, generation, after_expired, state,
    reason, attempt, available_at, leased_until, lease_token, found_at, changed_at)
values ('hold', 'harbour', '{id}', '{digest}', '{identity}', '["held"]', {at}, 1, false, '{state}',
        {reason}, {attempt}, {at}, {leased_until}, {lease_token}, {at}, {at})
"""
ATTEMPT = """
insert into {{s}}attempt (
    operation_id, attempt, failure_class, failure_code, failure_message, failed_at)
select id, {attempt}, 'broken', '23514', 'no', {at} from {{s}}operation where hold_key = '{id}'
"""
# Hold 9 was released before; the rule was handled with care since a backend was lost.
PAST = (
    (
        "insert into {s}tally (rule, tenant, at, expired_count, skipped, lag_counts) "
        "values ('hold', 'harbour', {at}, 1, '{}', '[0,0,1,0,0,0,0,0,0,0,0,0,0,0,0,0]')"
    ),
    (
        "insert into {s}record (operation_id, rule, tenant, hold_key, digest, generation, due_at, outcome, "
        "attempt, before_image, tally_id, found_at, finished_at) "
        "select 900, 'hold', 'harbour', '9', '{digest}', 1, {at}, 'expired', 1, '{image}', id, {at}, {at} "
        "from {s}tally"
    ),
    (
        "insert into {s}outbox (type, operation_id, rule, tenant, hold_key, digest, generation, due_at, at, "
        "tokens, carry, state) values ('hold.expired.v1', 900, 'hold', 'harbour', '9', '{digest}', 1, {at}, "
        "{at}, '{}', '{}', 'kept')"
    ),
    (
        "insert into {s}rule_state (rule, fingerprint, condition, batch_limit, leased, changed_at) "
        "values ('hold', '{fingerprint}', 'active', 22, true, {at})"
    ),
)
IMAGE = f'{{"id":"9","tenant":"harbour","status":"held","token":"k9","due":"{DUE}"}}'
OPEN = ((1, "ready", 0), (2, "leased", 1), (3, "retrying", 1), (4, "dead", 6))


def _identity(number: int) -> str:
    return f'["{DUE}","k{number}"]'


def _digest(number: int) -> str:
    return str(digest(RULE.name, str(number), _identity(number)))


def _statements() -> Sequence[str]:
    found = [*filter(str.strip, TABLE.split(";"))]
    for number, state, attempt in OPEN:
        leased = state == "leased"
        found += [
            HOLD.format(id=number, status="held", due=DUE),
            OPERATION.format(
                id=number,
                digest=_digest(number),
                identity=_identity(number),
                state=state,
                reason="'broken'" if state == "dead" else "null",
                attempt=attempt,
                at=AT,
                leased_until=AT if leased else "null",
                lease_token=1 if leased else "null",
            ),
        ]
        found += [
            ATTEMPT.format(id=number, attempt=one, at=AT)
            for one in range(1, attempt + 1)
            if not leased
        ]
    # Two that no operation knows: due, and not yet due.
    found += [HOLD.format(id=n, status="held", due=due) for n, due in ((5, DUE), (6, DUE + 7_200))]
    found.append(HOLD.format(id=9, status="expired", due=DUE))
    given = {
        "{at}": AT,
        "{digest}": _digest(9),
        "{image}": IMAGE,
        "{fingerprint}": RULE.fingerprint,
    }
    return [
        *found,
        *(reduce(lambda text, one: text.replace(*one), given.items(), past) for past in PAST),
    ]


def _install_first(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    every = migrations.migrations
    with monkeypatch.context() as then:
        then.setattr(migrations, "migrations", lambda dialect: every(dialect)[:1])
        assert [one.version for one in migrations.upgrade(session)] == [1]


def test_the_first_installation_goes_on(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    session = open_session(Settings(DatabaseSettings(database_url)), considerate=False)
    every = migrations.migrations
    _install_first(session, monkeypatch)
    with BackDoor(database_url) as door:
        for statement in _statements():
            door.execute(statement)
    assert migrations.upgrade(session) == every(session.dialect)[1:]
    assert migrations.problems(session) == []
    session.close()
    pipeline = Pipeline(database_url, RULE, SetClock(NOON))
    pipeline.round()
    pipeline.work()
    assert pipeline.audit() == []
    pipeline.close()
    with BackDoor(database_url) as door:
        held = door.rows("select id from hold where status = 'held' order by id")
        records = door.rows("select hold_key, outcome, attempt from {s}record order by hold_key")
        open_now = door.rows("select hold_key, state from {s}operation")
    assert [row[0] for row in held] == [4, 6]
    assert records == [
        ("1", "expired", 1),
        ("2", "expired", 2),
        ("3", "expired", 2),
        ("5", "expired", 1),
        ("9", "expired", 1),
    ]
    assert open_now == [("4", "dead")]


@pytest.mark.postgres
def test_a_migration_that_takes_too_long_says_what_to_do(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = PostgresSession(
        postgres_url, limits=Limits(lock_timeout_ms=60_000, statement_timeout_ms=1_000)
    )
    _install_first(session, monkeypatch)
    with psycopg.connect(postgres_url) as host:
        host.execute("select 1 from freehold.operation")  # a large table takes no longer than this
        with pytest.raises(RefusedByState, match=r"Migration 2 .* statement_timeout allows"):
            migrations.upgrade(session)
    assert len(migrations.upgrade(session)) == len(migrations.migrations("postgres")) - 1
    session.close()
