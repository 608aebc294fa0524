"""Takes the ledger out of a database again: what is ours, and nothing of the customer's.

*Invariants*: only objects that a migration or the sweep made are dropped, in one transaction; never
with CASCADE, never while a process works; what the customer hung onto the ledger refuses the drop.
*Not here*: the confirmation by a person (`entrypoints.cli.drop`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import PurePath

from freehold.adapters.sql.migrations import migrations
from freehold.adapters.sql.session import Runner, Session
from freehold.domain.errors import RefusedByState

COUNT_MOST = 1_000
ALIVE_WITHIN = timedelta(seconds=60)  # twelve heartbeats
_MADE = re.compile(r"^create (table|view|sequence) \{s\}(\w+)", re.MULTILINE)
_PARTITION = re.compile(r"record_[0-9]{4}_[0-9]{2}")
_WORK = (
    ("operation", "some_operations", "open operations"),
    ("outbox", "some_pending_events", "events that some target was not told of"),
    ("send", "some_sends", "mails to recipients who were not sent them yet"),
    ("hold", "some_holds", "rows of the built-in table of holds"),
)


@dataclass(frozen=True, slots=True)
class Standing:
    """A ledger as it stands.

    Attributes:
        database: the name by which a person confirms: the database, or the file's name.
        relations: kind and name of what is ours and exists, in the order of dropping.
        work: what would be lost undone, a few words each.
        hindrances: why it cannot be dropped even so, a sentence each.
    """

    database: str
    relations: Sequence[tuple[str, str]]
    work: Sequence[str]
    hindrances: Sequence[str]


def look(session: Session) -> Standing:
    """Say what there is to drop and what speaks against it; changes nothing."""
    now = session.begin(read_only=True)
    try:
        return _look(Runner(session), now - ALIVE_WITHIN)
    finally:
        session.rollback()


def drop(session: Session, *, force: bool) -> Standing:
    """Drop the ledger in one transaction; return what was dropped.

    Args:
        force: lose undone work; living processes and the customer's objects refuse all the same.

    Again: finds nothing to drop.
    Crash: everything is dropped, or nothing.

    Raises:
        RefusedByState: something speaks against it; nothing was changed.
        DatabaseBusy: a table is in use.
    """
    runner = Runner(session)
    now = session.begin()
    try:
        runner.rows("lock_migrations")
        standing = _look(runner, now - ALIVE_WITHIN)
        refuse(standing, force=force)
        for kind, relation in standing.relations:
            Runner(session, {"kind": kind, "relation": relation}).count("drop_relation")
        _drop_schema(runner)
        session.commit()
    except BaseException:
        session.rollback()
        raise
    return standing


def refuse(standing: Standing, *, force: bool) -> None:
    """Refuse to drop what is in use or would be lost.

    Raises:
        RefusedByState: a sentence with what to do.
    """
    if standing.hindrances:
        raise RefusedByState(" ".join([*standing.hindrances, "Nothing was dropped."]))
    if standing.work and not force:
        raise RefusedByState(
            f"The ledger of {standing.database} still has {', '.join(standing.work)}. Nothing was "
            'dropped; let them finish, or lose them with --force --reason "...".'
        )


def _look(runner: Runner, alive_after: object) -> Standing:
    session = runner.session
    database = PurePath(str(runner.rows("database_name")[0][0])).name
    there = {row[0] for row in runner.rows("ledger_relations")}
    made = dict.fromkeys(_ours(session.dialect, there))  # a view may have been made anew
    ours = [(kind, name) for kind, name in made if name in there]
    names = {name for _, name in ours}
    return Standing(
        database,
        ours,
        [*_work(runner, names)],
        [*_living(runner, names, alive_after), *_dependents(runner, names)],
    )


def _ours(dialect: str, there: set[str]) -> Iterator[tuple[str, str]]:
    """Yield all that can be ours, the youngest first: what depends comes before what it needs."""
    yield from (("table", name) for name in sorted(there) if _PARTITION.fullmatch(name))
    for migration in reversed(migrations(dialect)):
        yield from reversed(_MADE.findall(migration.sql))
    yield "table", "migration"


def _work(runner: Runner, names: set[str]) -> Iterator[str]:
    for relation, statement, words in _WORK:
        if relation in names:
            count = runner.rows(statement, most=COUNT_MOST + 1)[0][0]
            more = "more than " if count > COUNT_MOST else ""
            if count:
                yield f"{more}{min(count, COUNT_MOST):,} {words}"


def _living(runner: Runner, names: set[str], alive_after: object) -> Iterator[str]:
    if "worker" not in names:
        return
    rows = runner.rows("beating_workers", alive_after=alive_after)
    if rows:
        who = ", ".join(f"{host} (pid {pid})" for _, host, pid in rows)
        yield f"A process works or did within the last minute: {who}; stop it first."


def _dependents(runner: Runner, names: set[str]) -> Iterator[str]:
    """Name what is not ours and would be dropped or broken with the ledger."""
    found = [*(_on_sqlite if runner.session.dialect == "sqlite" else _on_postgres)(runner, names)]
    if found:
        yield f"Something of yours hangs onto the ledger: {', '.join(found)}; drop it first."


def _on_postgres(runner: Runner, names: set[str]) -> Iterator[str]:
    yield from (row[0] for row in runner.rows("foreign_dependents", names=sorted(names)))


def _on_sqlite(runner: Runner, names: set[str]) -> Iterator[str]:
    prefix = runner.session.prefix
    ours = {f"{prefix}{name}" for name in names}
    made = {
        found
        for migration in migrations("sqlite")
        for found in re.findall(r"^create trigger \{s\}(\w+)", migration.sql, re.MULTILINE)
    }
    word = re.compile(rf"\b(?:{'|'.join(sorted(map(re.escape, ours), key=len, reverse=True))})\b")
    for kind, name, _, sql in runner.rows("foreign_dependents") if ours else ():
        if name not in ours and name.removeprefix(prefix) not in made and word.search(sql):
            yield f"{kind} {name}"


def _drop_schema(runner: Runner) -> None:
    """Drop the schema where there is one, nothing is left in it, and we may."""
    if runner.session.dialect != "postgres":
        return
    rows = runner.rows("bare_schema")
    if rows and all(rows[0]):
        schema = runner.session.prefix.rstrip(".")
        Runner(runner.session, {"schema": schema}).count("drop_schema")
