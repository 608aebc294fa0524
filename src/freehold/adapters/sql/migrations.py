"""The ledger's own schema: ordered SQL, a checksum each, one lock, never automatic.

*Invariants*: a migration that was applied never changes; the version table says what was applied.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files

from freehold.adapters.sql.session import Runner, Session
from freehold.adapters.sql.statements import fill, load
from freehold.domain.errors import (
    DatabaseError,
    RefusedByState,
    RuleRefused,
    StatementTimedOut,
    UsageError,
)

PREFIXES = {"sqlite": "freehold_", "postgres": "freehold."}


@dataclass(frozen=True, slots=True)
class Migration:
    """One step of the schema; `version` counts from 1."""

    version: int
    name: str
    sql: str

    @property
    def checksum(self) -> str:
        """Return the digest by which a changed file is noticed."""
        return hashlib.sha256(self.sql.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Applied:
    """What the database says about one migration."""

    version: int
    name: str
    checksum: str


def migrations(dialect: str) -> Sequence[Migration]:
    """Return the dialect's migrations in order."""
    folder = files(__package__).joinpath("schema", dialect)
    found = sorted(folder.iterdir(), key=lambda path: path.name)
    return [
        Migration(int(path.name[:4]), path.name[5:-4], path.read_text())
        for path in found
        if path.name.endswith(".sql")
    ]


def applied(session: Session) -> Sequence[Applied]:
    """Return what was applied, oldest first; empty where there is no ledger yet."""
    runner = Runner(session)
    session.begin(read_only=True)
    try:
        if not runner.rows("has_ledger")[0][0]:
            return []
        return [Applied(*row) for row in runner.rows("applied_migrations")]
    finally:
        session.rollback()


def problems(session: Session) -> Sequence[str]:
    """Return one sentence for each way in which schema and code differ; empty when they agree."""
    known = {one.version: one for one in migrations(session.dialect)}
    done = {one.version: one for one in applied(session)}
    found = [
        f"Migration {one.version} ({one.name}) is not applied; run `freehold db upgrade`."
        for version, one in known.items()
        if version not in done
    ]
    for version, one in done.items():
        if version not in known:
            found.append(
                f"Migration {version} ({one.name}) is newer than this program; upgrade Freehold."
            )
        elif known[version].checksum != one.checksum:
            found.append(
                f"Migration {version} ({one.name}) was applied with another text; "
                "restore the released file before going on."
            )
    return found


def upgrade(session: Session) -> Sequence[Migration]:
    """Apply what is missing, each migration in a transaction of its own; return what was applied.

    Again: applies nothing.
    Crash: a migration is applied whole or not at all.

    Raises:
        RefusedByState: an applied migration differs from the released file, or one cannot be
            applied: rights are missing, or the tables are too large for the time limit.
    """
    tampered = [text for text in problems(session) if "is not applied" not in text]
    if tampered:
        raise RefusedByState(tampered[0])
    done = {one.version for one in applied(session)}
    new = [one for one in migrations(session.dialect) if one.version not in done]
    return [one for one in new if _apply(session, one)]


def _apply(session: Session, migration: Migration) -> bool:
    """Apply one migration unless another process did so meanwhile."""
    runner = Runner(session)
    now = session.begin()
    try:
        runner.rows("lock_migrations")
        if not runner.rows("has_place")[0][0]:
            runner.rows("make_ledger")
        runner.count("make_migrations")
        if runner.rows("find_migration", version=migration.version):
            session.rollback()
            return False
        for statement in split(fill(migration.sql, {"s": session.prefix})):
            session.run(statement, {})
        runner.count(
            "note_migration",
            version=migration.version,
            name=migration.name,
            checksum=migration.checksum,
            now=now,
        )
        session.commit()
    except BaseException as error:
        session.rollback()
        if isinstance(error, RuleRefused):
            raise _cannot(migration, error) from error
        if isinstance(error, StatementTimedOut):
            raise _too_slow(migration) from error
        raise
    return True


def _cannot(migration: Migration, error: DatabaseError) -> RefusedByState:
    return RefusedByState(
        f"Migration {migration.version} ({migration.name}) could not be applied: {error}. "
        "Nothing was changed; grant CREATE on the database and run `freehold db upgrade` again."
    )


def _too_slow(migration: Migration) -> RefusedByState:
    return RefusedByState(
        f"Migration {migration.version} ({migration.name}) takes longer on tables of this size than "
        "[database] statement_timeout allows. Nothing was changed; run "
        "`FREEHOLD_DATABASE__STATEMENT_TIMEOUT=10m freehold db upgrade`."
    )


def split(sql: str) -> list[str]:
    """Split a migration into statements; ours hold no semicolon inside one but in a trigger's body."""
    lines = "\n".join(line for line in sql.splitlines() if not line.startswith("--"))
    found: list[str] = []
    for part in lines.split(";"):
        if found and _is_cut_trigger(found[-1]):
            found[-1] += f";{part}"
        elif part.strip():
            found.append(part)
    return [one.strip() for one in found]


def _is_cut_trigger(text: str) -> bool:
    words = text.split()
    return words[:2] == ["create", "trigger"] and "begin" in words and words[-1] != "end"


def script(dialect: str) -> str:
    """Return the whole schema as SQL for a person to read, the same text at every call.

    Raises:
        UsageError: the dialect is not one of ours.
    """
    if dialect not in PREFIXES:
        raise UsageError(f"There is no dialect {dialect!r}; choose one of {', '.join(PREFIXES)}.")
    slots = {"s": PREFIXES[dialect]}
    head = [fill(load(dialect)[name], slots) + ";" for name in ("make_ledger", "make_migrations")]
    return "\n".join([*head, *(fill(one.sql, slots) for one in migrations(dialect))])
