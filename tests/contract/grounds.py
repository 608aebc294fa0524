"""What the ledger's contract suites stand on, for each database: one file or server database each."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from freehold.adapters.sql.ledger import SqlLedger, WatchedClock
from freehold.adapters.sql.migrations import upgrade
from freehold.adapters.sql.postgres import PostgresSession
from freehold.adapters.sql.session import Limits, Session
from freehold.adapters.sql.sqlite import SqliteSession
from freehold.adapters.system import Onwards, SystemClock
from freehold.bootstrap import sqlite_path
from freehold.domain.due import DueKind, DueSpec
from freehold.domain.rules import (
    Condition,
    Predicate,
    Rule,
    SetColumns,
    TableName,
    TenantSource,
    Test,
)
from freehold.testing.backdoor import BackDoor
from freehold.testing.clock import SetClock
from freehold.testing.contracts.ground import NOW

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

LIMITS = Limits(lock_timeout_ms=50)
LEDGER = ("operation", "record", "attempt", "tally", "outbox", "tick", "worker", "action")
GUARDS = ("guard", "pause", "host_clock")
OWN = ("hold", "unit", "tenant")  # in the order in which they can be emptied
REPORTS = (  # in the order in which they can be emptied
    *("summary_attempt", "send_attempt", "send", "mail", "report", "report_calendar"),
    *("unsubscribed", "unsubscribe_token"),
)
STRAYS = ("stray", "delivery_count")
FORWARDS = ("forward_attempt", "forward", "target_pause", "target")  # in the order of emptying
KEPT = ("retention", "forgotten", "prune_round")
TABLES = {
    **{name: (f"{{s}}{name}", "id") for name in (*LEDGER, "guard", "pause")},
    "record": ("{s}record", "finished_at, operation_id"),
    "attempt": ("{s}attempt", "operation_id, attempt"),
    "worker": ("{s}worker", "worker"),
    "host_clock": ("{s}host_clock", "host"),
    "note": ("companion_note", "seq"),
    **{name: (f"{{s}}{name}", "id") for name in (*OWN, "report", "send", "summary_attempt")},
    "mail": ("{s}mail", "report_id"),
    "send_attempt": ("{s}send_attempt", "send_id, attempt"),
    "report_calendar": ("{s}report_calendar", "tenant"),
    "unsubscribed": ("{s}unsubscribed", "tenant, recipient"),
    "stray": ("{s}stray", "id"),
    "forward": ("{s}forward", "event_id, target"),
    "forward_attempt": ("{s}forward_attempt", "event_id, target, replay_count, attempt"),
    "target_pause": ("{s}target_pause", "id"),
    "delivery_count": ("{s}delivery_count", "minute_at, process"),
}
INSTANTS = (
    *("at", "logical_time", "leased_until"),
    "available_at",
    "due_at",
    "found_at",
    "hold_until",
)
TRUTHS = ("after_expired", "leased")
SHA_256_LETTERS = 64  # a stray's digest; all others are 128-bit names
OBJECTS = ("skipped", "lag_counts", "before_image", "tokens", "carry")

_SERIAL = {"sqlite": "integer primary key", "postgres": "bigserial primary key"}
_INSTANT = {"sqlite": "text", "postgres": "timestamptz"}
_TABLES = """
create table contract_hold (
    id integer primary key, tenant text, status text, token text, hold_until {instant});
create index contract_hold_due on contract_hold (hold_until) where status = 'held';
create table companion_note (seq {serial}, side text, id text, status text);
"""


def rule_on(dialect: str) -> Rule:
    """Map the contract's table."""
    kind, zone = (DueKind.INSTANT, None) if dialect == "postgres" else (DueKind.NAIVE, "UTC")
    return Rule(
        name="r",
        table=TableName("contract_hold"),
        key=("id",),
        held=Predicate(((Condition("status", Test.EQUALS, ("held",)),),)),
        due=DueSpec("hold_until", kind, zone),
        action=SetColumns((("status", "expired"),)),
        tenant=TenantSource("tenant"),
        fence=("token",),
        carry=("tenant",),
    )


@dataclass
class SqlDoor:
    """The plain driver's way in."""

    door: BackDoor
    _columns: dict[str, list[str]] = field(default_factory=dict)

    def rows(self, table: str) -> Sequence[Mapping[str, Any]]:
        name, order = TABLES[table]
        cursor = self.door._run(f"select * from {name} order by {order}", {})
        columns = [one[0] for one in cursor.description]
        return [
            {column: _plain(column, value) for column, value in zip(columns, row, strict=True)}
            for row in cursor.fetchall()
        ]

    def add_hold(self, key: int, due: datetime | None, *, token: str = "a") -> None:
        self.door.execute(
            "insert into contract_hold values (:id, 't', 'held', :token, :due)",
            id=key,
            token=token,
            due=None if due is None else self.door.local(due),
        )

    def index_tenants(self, columns: str, where: str | None = None) -> None:
        only = "" if where is None else f" where {where}"
        name = f"contract_hold_{len(columns)}"
        self.door.script(f"create index {name} on contract_hold ({columns}){only}")

    def change_hold(self, key: int, column: str, value: str | None) -> None:
        sql = f"update contract_hold set {column} = :value where id = :id"
        assert self.door.execute(sql, value=value, id=key) == 1

    def hold(self, key: int) -> Mapping[str, Any] | None:
        rows = self.door.rows(
            "select status, tenant, token from contract_hold where id = :i", i=key
        )
        return dict(zip(("status", "tenant", "token"), rows[0], strict=True)) if rows else None

    def remove_hold(self, key: int) -> None:
        assert self.door.execute("delete from contract_hold where id = :id", id=key) == 1

    def add_event(self, key: int, *, state: str = "pending", rule: str = "r") -> None:
        at = self.door.ledger(NOW)
        over = "overriding system value" if self.door.dialect == "postgres" else ""
        self.door.execute(
            "insert into {s}outbox (id, type, operation_id, rule, tenant, hold_key, digest,"
            f" generation, due_at, at, tokens, carry, state) {over} values (:id, 'hold.expired.v1', :id,"
            " :rule, 't', :key, :digest, 1, :at, :at, :tokens, :carry, :state)",
            id=key,
            rule=rule,
            key=str(key),
            digest=str(UUID(int=key)),
            at=at,
            tokens='{"token": "a"}',
            carry='{"tenant": null}',
            state=state,
        )

    def remove_event(self, key: int) -> None:
        assert self.door.execute("delete from {s}outbox where id = :id", id=key) == 1

    def put_forward(self, key: int, state: str) -> None:
        ended_at = "changed_at" if state in ("dead", "discarded", "delivered") else "null"
        sql = f"update {{s}}forward set state = :state, ended_at = {ended_at} where event_id = :id"
        assert self.door.execute(sql, state=state, id=key)

    def suppress_changes(self) -> None:
        self._trigger("before", "select raise(ignore)", "return null")

    def restore_changes(self) -> None:
        again = "update contract_hold set status = old.status where id = old.id"
        self._trigger("after", again, f"{again}; return null", when="new.status = 'expired'")

    def refuse_changes(self) -> None:
        self._trigger("before", "select raise(abort, 'no')", "raise exception 'no'")

    def _trigger(self, moment: str, sqlite: str, postgres: str, when: str = "true") -> None:
        head = f"create trigger meddle {moment} update on contract_hold for each row when ({when})"
        if self.door.dialect == "sqlite":
            self.door.script(f"{head} begin {sqlite}; end")
            return
        self.door.script(
            f"create or replace function meddle() returns trigger language plpgsql as"
            f" $$begin {postgres}; end$$; {head} execute function meddle()"
        )

    def break_table(self) -> None:
        self.door.script("alter table contract_hold drop column token")

    @contextlib.contextmanager
    def lock_hold(self, key: int) -> Iterator[None]:
        sql = "update contract_hold set tenant = tenant where id = :id"
        with BackDoor(self.door.url) as host:
            host.execute("begin immediate" if host.dialect == "sqlite" else "begin")
            assert host.execute(sql, id=key) == 1
            yield
            host.execute("rollback")

    def prepare(self) -> None:
        """Empty the ledger and make the host's tables anew."""
        names = [*(f"{{s}}{name}" for name in (*REPORTS, *LEDGER, *GUARDS, *OWN)), "{s}rule_state"]
        tables = _TABLES.format(
            instant=_INSTANT[self.door.dialect], serial=_SERIAL[self.door.dialect]
        )
        drops = "drop table if exists contract_hold; drop table if exists companion_note;"
        names += [f"{{s}}{name}" for name in (*KEPT, *STRAYS, *FORWARDS)]
        self.door.script("".join(f"delete from {name}; " for name in names) + drops + tables)


def _plain(column: str, value: Any) -> Any:
    """Write a driver's value the way the contract wants it."""
    if value is None:
        return None
    if column in INSTANTS or column.endswith("_at"):
        at = datetime.fromisoformat(value) if isinstance(value, str) else value
        return at.replace(tzinfo=UTC) if at.utcoffset() is None else at.astimezone(UTC)
    if column == "digest" and len(str(value)) != SHA_256_LETTERS:
        return UUID(str(value))
    if column in TRUTHS:
        return bool(value)
    return json.loads(value) if column in OBJECTS and isinstance(value, str) else value


@dataclass
class Agreeing:
    """The clocks of a host that agree with the database's."""

    clock: SetClock

    def wall(self) -> datetime:
        return self.clock.instant

    def monotonic(self) -> float:
        return self.clock.instant.timestamp()

    def sleep(self, seconds: float) -> None:
        pass


@dataclass
class SqlGround:
    """Implements `testing.contracts.ground.Ground` for one URL."""

    url: str
    back: SqlDoor
    rule: Rule
    clock: SetClock = field(default_factory=lambda: SetClock(NOW))
    _opened: list[SqlLedger] = field(default_factory=list)

    def open(self) -> SqlLedger:
        return self._keep(_session(self.url, self.clock))

    def open_on(self, host: str) -> SqlLedger:
        session = _session(self.url, self.clock)
        ledger = SqlLedger(session, Onwards(), WatchedClock(host, Agreeing(self.clock)))
        self._opened.append(ledger)
        return ledger

    def open_unreachable(self) -> SqlLedger:
        if self.url.startswith("sqlite"):
            return self._keep(_session(f"{self.url}.missing/file", self.clock))
        return self._keep(_session("postgresql://app@127.0.0.1:1/none", self.clock))

    def _keep(self, session: Session) -> SqlLedger:
        ledger = SqlLedger(session, Onwards())
        self._opened.append(ledger)
        return ledger

    def set_now(self, now: datetime) -> None:
        self.clock.instant = now

    def transactions_overlap(self) -> bool:
        return self.has_server()

    def has_server(self) -> bool:
        return self.url.startswith("postgresql")

    def close(self) -> None:
        for ledger in self._opened:
            ledger.close()


def _session(url: str, clock: SetClock) -> Session:
    if url.startswith("sqlite"):
        path = str(sqlite_path(url))
        return SqliteSession(path, SystemClock(), limits=LIMITS, clock=clock, considerate=False)
    return PostgresSession(url, limits=LIMITS, clock=clock)


def migrate(url: str) -> None:
    """Make the ledger's tables."""
    session = _session(url, SetClock(NOW))
    upgrade(session)
    session.close()


@contextlib.contextmanager
def ground_at(url: str) -> Iterator[SqlGround]:
    """Give an empty ground over a migrated database."""
    with BackDoor(url) as door:
        back = SqlDoor(door)
        back.prepare()
        ground = SqlGround(url, back, rule_on(door.dialect))
        yield ground
        ground.close()
