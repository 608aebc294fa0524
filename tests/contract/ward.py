"""A customer's table that doctor looks at: sound at first, then given one defect by each test."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import psycopg

from freehold.adapters.system import SystemClock
from freehold.application.doctor import Code, Finding, Severity, examine
from freehold.bootstrap import open_inspection, sqlite_path
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
from freehold.settings import DatabaseSettings, Settings
from tests.servers import ORDINARY_ROLE, SUPERUSER

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from freehold.adapters.sql.session import Clock
    from freehold.ports.inspection import Inspection

SOUND = {
    "postgres": """
create table hold (id bigint primary key, tenant_id bigint not null, status text not null,
    token text not null, due timestamp, short varchar(8), born timestamptz not null default now());
create index hold_due on hold (due) where status = 'held';
create index hold_tenant on hold (tenant_id, due) where status = 'held';
grant select (id, tenant_id, status, token, due, short, born) on hold to app;
grant update (status) on hold to app;
""",
    "sqlite": """
pragma journal_mode = wal;
create table hold (id integer primary key, tenant_id integer not null, status text not null,
    token text not null, due text, short varchar(8), born text not null default '');
create index hold_due on hold (due) where status = 'held';
create index hold_tenant on hold (tenant_id, due) where status = 'held';
""",
}


def where(column: str, *values: Any) -> Predicate:
    """One alternative: the column equals one of the values."""
    test = Test.EQUALS if len(values) == 1 else Test.IN
    return Predicate(((Condition(column, test, values),),))


RULE = Rule(
    name="cart",
    table=TableName("hold"),
    key=("id",),
    held=where("status", "held"),
    due=DueSpec("due", DueKind.NAIVE, "UTC"),
    action=SetColumns((("status", "expired"),)),
    tenant=TenantSource("tenant_id"),
    fence=("token",),
)


def due(**changes: Any) -> Rule:
    """The sound rule with another due."""
    return replace(RULE, due=replace(RULE.due, **changes))


@dataclass
class Ward:
    """A database with the sound table; `door` is a connection of the customer's own."""

    url: str
    door: Any

    @classmethod
    @contextmanager
    def opened(cls, url: str) -> Iterator[Ward]:
        """Make the table as its owner, who is not the role of Freehold, in an empty database."""
        if url.startswith("sqlite"):
            door: Any = sqlite3.connect(sqlite_path(url), isolation_level=None)
            sqlite_path(url).chmod(0o600)
        else:
            owner = url.replace(f"//{ORDINARY_ROLE}:", f"//{SUPERUSER}:")
            door = psycopg.connect(owner, autocommit=True)
        with closing(door):
            ward = cls(url, door)
            ward.empty()
            ward.run(SOUND[ward.dialect])
            yield ward

    def empty(self) -> None:
        """Drop everything but the ledger's tables."""
        if self.dialect == "postgres":
            self.run("drop schema public cascade;\ncreate schema public;")
            self.run("grant usage on schema public to public;")
        ledger = "freehold." if self.dialect == "postgres" else "freehold_"
        self.run(f"delete from {ledger}operation;\ndelete from {ledger}rule_state;")
        if self.dialect == "postgres":
            return
        kinds = "select type, name from sqlite_master where type in ('view', 'table')"
        mine = "name not like 'freehold\\_%' escape '\\' and name not like 'sqlite\\_%' escape '\\'"
        for kind, name in self.door.execute(f"{kinds} and {mine} order by type desc").fetchall():
            self.door.execute(f'drop {kind} "{name}"')

    @property
    def dialect(self) -> str:
        return "sqlite" if self.url.startswith("sqlite") else "postgres"

    def run(self, script: str) -> None:
        """Execute statements that end in a semicolon at the end of a line."""
        for statement in re.split(r";\s*$", script, flags=re.MULTILINE):
            if statement.strip():
                self.door.execute(statement)

    def add(self, count: int, due: str, *, first: int = 1, status: str = "held") -> None:
        """Add holds that are due at an SQL expression."""
        for number in range(first, first + count):
            values = f"{number}, {number % 3}, '{status}', 't', {due}"
            self.door.execute(
                f"insert into hold (id, tenant_id, status, token, due) values ({values})"
            )

    def inspection(self, clock: Clock | None = None, url: str | None = None) -> Inspection:
        """Open a look at the database."""
        settings = Settings(database=DatabaseSettings(url=url or self.url))
        return open_inspection(settings, clock=clock)

    def examine(
        self,
        *rules: Rule,
        strict: bool = False,
        clock: Clock | None = None,
        url: str | None = None,
    ) -> list[Finding]:
        """Examine rules, the sound one by default."""
        inspection = self.inspection(clock, url)
        try:
            return examine(inspection, rules or (RULE,), SystemClock(), strict=strict)
        finally:
            inspection.close()

    def refused(self, code: Code, *rules: Rule) -> Finding:
        """Examine, and return the one refusal, which must have this code."""
        found = [one for one in self.examine(*rules) if one.severity is Severity.REFUSE]
        assert [one.code for one in found] == [code]
        return checked(found[0])

    def retype_due(self, type_: str) -> None:
        """Give the due column another type; its values are lost."""
        self.run(
            "drop index hold_due;\ndrop index hold_tenant;\nalter table hold drop column due;\n"
            f"alter table hold add column due {type_};\n"
            "create index hold_due on hold (due) where status = 'held';\n"
            "create index hold_tenant on hold (tenant_id, due) where status = 'held';"
        )
        if self.dialect == "postgres":
            self.run("grant select (due) on hold to app;")

    def warned(self, code: Code, *rules: Rule, **options: Any) -> Finding:
        """Examine, and return the one warning of this code; nothing may be refused."""
        found = self.examine(*rules, **options)
        assert not [one for one in found if one.severity is Severity.REFUSE]
        (finding,) = [one for one in found if one.code is code]
        assert finding.severity is Severity.WARN
        return checked(finding)

    def mend(self, finding: Finding, *rules: Rule) -> None:
        """Run the mending SQL; the finding must be gone and nothing be refused for it."""
        assert finding.mend is not None
        self.run(finding.mend)
        left = self.examine(*rules)
        assert finding.code not in codes(left)
        assert not [one for one in left if one.severity is Severity.REFUSE]


def checked(finding: Finding) -> Finding:
    """Check what the house asks of every finding: one sentence, that names its rule."""
    assert finding.sentence.endswith((".", "?"))
    assert ". " not in finding.sentence
    if finding.rule is not None:
        assert finding.rule in finding.sentence
    return finding


def codes(found: Sequence[Finding]) -> set[Code]:
    """Return the codes of what is not fine."""
    return {one.code for one in found if one.severity is not Severity.OK}
