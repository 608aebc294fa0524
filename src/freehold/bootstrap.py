"""The composition root: the only module that picks adapters.

*Invariants*: a driver is imported only when its database is named; each thread opens its own
ledger.
"""

from __future__ import annotations

import socket
import sqlite3
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import TextIO
from urllib.parse import unquote, urlsplit

from freehold.adapters.sql.ledger import SqlLedger, WatchedClock
from freehold.adapters.sql.migrations import problems
from freehold.adapters.sql.session import Clock, Limits, Session
from freehold.adapters.system import Onwards, SystemClock
from freehold.application.handling import Handling
from freehold.domain.errors import RefusedByState, UsageError
from freehold.domain.rules import Rule
from freehold.ports.inspection import Inspection
from freehold.ports.mail import Transport
from freehold.ports.rendering import Renderer
from freehold.ports.summary import Summarizer
from freehold.ports.system import Checkpoint
from freehold.ports.telemetry import UNHEARD, HandlerHung, Level, Telemetry
from freehold.settings import Settings
from freehold.settings.values_report import (
    MaildirSettings,
    MailgunSettings,
    PostmarkSettings,
    ReportSettings,
    ResendSettings,
    SmtpSettings,
    TransportSettings,
)

POSTGRES_SCHEMES = ("postgresql", "postgres")
_NEEDS_HTTP = (
    "This provider is asked over HTTP, which needs an extra package; "
    "run: pip install 'freehold[http]'"
)


def limits_of(settings: Settings) -> Limits:
    """Return the database limits in the unit of the adapters."""
    database = settings.database
    return Limits(
        lock_timeout_ms=_ms(database.lock_timeout),
        statement_timeout_ms=_ms(database.statement_timeout),
        idle_timeout_ms=_ms(database.idle_in_transaction),
        connect_timeout_s=max(1, round(database.connect_timeout.total_seconds())),
    )


def _ms(span: timedelta) -> int:
    return max(1, round(span.total_seconds() * 1000))


def open_session(
    settings: Settings,
    *,
    clock: Clock | None = None,
    create: bool = True,
    considerate: bool = True,
) -> Session:
    """Return a session of the configured database; it connects at its first transaction.

    Args:
        create: make a missing SQLite file.
        considerate: on SQLite, pause between write transactions for the host application's sake.

    Raises:
        UsageError: the URL names no database that we know, or its driver is not installed.
    """
    url = settings.database.url
    scheme = urlsplit(url).scheme
    if scheme in POSTGRES_SCHEMES:
        return _open_postgres(settings, clock)
    if scheme == "sqlite":
        from freehold.adapters.sql.sqlite import SqliteSession

        return SqliteSession(
            str(sqlite_path(url)),
            SystemClock(),
            limits=limits_of(settings),
            clock=clock,
            create=create,
            considerate=considerate,
        )
    raise UsageError(
        "The database URL must begin with sqlite:/// or postgresql://; "
        "set [database] url in freehold.toml or FREEHOLD_DATABASE__URL."
    )


def _open_postgres(settings: Settings, clock: Clock | None) -> Session:
    try:
        from freehold.adapters.sql.postgres import PostgresSession
    except ImportError as error:
        raise UsageError(
            "PostgreSQL needs an extra package; run: pip install 'freehold[postgres]'"
        ) from error
    return PostgresSession(
        settings.database.url,
        search_path=settings.database.search_path or search_path_of(settings),
        limits=limits_of(settings),
        clock=clock,
    )


def search_path_of(settings: Settings) -> str:
    """Return the pinned search path: the schemas of the rules, then public, never a temporary one.

    The customer's triggers and companions run under it too, and may name their tables bare.
    """
    schemas = [
        rule.table.schema
        for rule in settings.rules
        if rule.table.schema and rule != settings.built_in  # ours is always named in full
    ]
    quoted = ['"' + name.replace('"', '""') + '"' for name in dict.fromkeys([*schemas, "public"])]
    return ", ".join([*quoted, "pg_temp"])


def sqlite_path(url: str) -> Path:
    """Return the file that an `sqlite:///` URL names: three slashes relative, four absolute.

    Raises:
        UsageError: the URL names a host or no file.
    """
    parts = urlsplit(url)
    if parts.netloc or not parts.path.removeprefix("/"):
        raise UsageError(
            "An SQLite URL is sqlite:///relative/path.db or sqlite:////absolute/path.db."
        )
    return Path(unquote(parts.path[1:]))


def open_ledger(
    settings: Settings,
    *,
    checkpoint: Checkpoint | None = None,
    clock: Clock | None = None,
    create: bool = True,
    considerate: bool = True,
    watched: WatchedClock | None = None,
) -> SqlLedger:
    """Return a ledger of its own connection, for one thread.

    Args:
        clock: replaces the database's; then no host's clock is compared with it, unless `watched`
            gives one.
    """
    session = open_session(settings, clock=clock, create=create, considerate=considerate)
    if watched is None and clock is None:
        watched = WatchedClock(socket.gethostname(), SystemClock())
    return SqlLedger(session, checkpoint or Onwards(), watched)


def open_telemetry(settings: Settings, stream: TextIO | None = None) -> Telemetry:
    """Return everybody who listens: log lines on a stream, stderr by default."""
    from freehold.adapters.logs import LogLines
    from freehold.adapters.telling import Everybody

    return Everybody([LogLines(stream, level=Level[settings.logs.level.upper()])])


def open_handling(settings: Settings, telemetry: Telemetry = UNHEARD) -> Handling:
    """Import the handlers of all rules, for one worker.

    Raises:
        UsageError: one cannot be used; the sentence says why.
    """
    from freehold.adapters.handlers import PythonHandler, load_function

    def hung(rule: str, seconds: float) -> None:
        telemetry.tell(HandlerHung(rule, seconds))

    handlers = {
        rule.name: PythonHandler(
            rule,
            load_function(rule.handler),
            seconds=rule.handler.time_limit.total_seconds(),
            on_hung=hung,
        )
        for rule in settings.rules
        if rule.handler is not None
    }
    return Handling(handlers, SystemClock())


def handler_problems(rules: Sequence[Rule]) -> dict[str, str]:
    """Try to import handlers; return by rule what is wrong, in a sentence each."""
    from freehold.adapters.handlers import load_function

    problems = {}
    for rule in rules:
        if rule.handler is not None:
            try:
                load_function(rule.handler)
            except UsageError as error:
                problems[rule.name] = f"Rule {rule.name}: {error}"
    return problems


def report_settings(settings: Settings) -> ReportSettings:
    """Return what the daily report is told.

    Raises:
        UsageError: it is off.
    """
    if settings.report is None:
        raise UsageError(
            "Reports are off: add [report] to freehold.toml, with sender and a transport."
        )
    return settings.report


def open_renderer(settings: Settings) -> Renderer:
    """Return what writes mails.

    Raises:
        UsageError: reports are off.
    """
    from freehold.adapters.rendering import MimeRenderer

    return MimeRenderer(report_settings(settings).policy)


def open_transport(settings: Settings) -> Transport:
    """Return the way to send that was chosen, for one thread; it connects when it is asked to send.

    Raises:
        UsageError: reports are off, a secret's file cannot be read, or a package is missing.
    """
    chosen = report_settings(settings).transport
    match chosen:
        case SmtpSettings():
            from freehold.adapters.mail.smtp import SmtpTransport

            return SmtpTransport(
                chosen.host,
                chosen.port,
                security=chosen.security,
                user=chosen.user,
                password=chosen.password.read(),
                seconds=chosen.timeout.total_seconds(),
                final_seconds=chosen.final_timeout.total_seconds(),
            )
        case MaildirSettings():
            from freehold.adapters.mail.maildir import MaildirTransport

            return MaildirTransport(chosen.path)
    return _open_service(chosen)


def _open_service(chosen: TransportSettings) -> Transport:
    """Return a provider that is asked over HTTP."""
    try:
        from freehold.adapters.mail.mailgun import MailgunTransport
        from freehold.adapters.mail.postmark import PostmarkTransport
        from freehold.adapters.mail.resend import ResendTransport
    except ImportError as error:
        raise UsageError(_NEEDS_HTTP) from error
    match chosen:
        case ResendSettings():
            return ResendTransport(chosen.key.needed(), url=chosen.url)
        case PostmarkSettings():
            token = chosen.token.needed()
            return PostmarkTransport(token, stream=chosen.stream, url=chosen.url)
        case MailgunSettings():
            return MailgunTransport(chosen.key.needed(), chosen.domain, url=chosen.url)
        case _:
            raise AssertionError(chosen)


def open_summarizer(settings: Settings) -> Summarizer | None:
    """Return the language model that writes paragraphs, for one thread; None where there is none.

    Raises:
        UsageError: reports are off, its key's file cannot be read, or a package is missing.
    """
    chosen = report_settings(settings).summary
    if chosen is None:
        return None
    try:
        from freehold.adapters.summary import OpenAiSummarizer
    except ImportError as error:
        raise UsageError(_NEEDS_HTTP) from error
    seconds = chosen.timeout.total_seconds()
    key = chosen.key.read()
    return OpenAiSummarizer(chosen.url, key, chosen.model, seconds=seconds)


def join(
    connection: object, *, clock: Clock | None = None, watched: WatchedClock | None = None
) -> SqlLedger:
    """Return a ledger inside the open transaction of a caller's connection.

    Its transactions begin and end nothing; they give the connection back as it was.

    Args:
        connection: of psycopg 3, or of `sqlite3`.
        clock: replaces the database's, as in `open_ledger`.

    Raises:
        UsageError: the connection is of another driver.
    """
    if watched is None and clock is None:
        watched = WatchedClock(socket.gethostname(), SystemClock())
    if isinstance(connection, sqlite3.Connection):
        from freehold.adapters.sql.joined_sqlite import JoinedSqlite

        return SqlLedger(JoinedSqlite(connection, SystemClock(), clock=clock), Onwards(), watched)
    if any(base.__module__ == "psycopg" for base in type(connection).__mro__):
        from freehold.adapters.sql.joined_postgres import JoinedPostgres, checked

        return SqlLedger(JoinedPostgres(checked(connection), clock=clock), Onwards(), watched)
    raise UsageError(
        "The connection must be an open one of psycopg 3 or of sqlite3; "
        f"{type(connection).__name__} is neither."
    )


def require_schema(ledger: SqlLedger) -> None:
    """Check that the ledger's tables are there and as this program knows them.

    Raises:
        RefusedByState: they are not; the sentence says what to do.
    """
    found = problems(ledger.session)
    if found:
        raise RefusedByState(found[0])


def open_inspection(settings: Settings, *, clock: Clock | None = None) -> Inspection:
    """Return a look at the configured database for doctor and plan; it connects at its first read.

    Raises:
        UsageError: the URL names no database that we know, or its driver is not installed.
    """
    ledger = open_ledger(settings, clock=clock, create=False)
    url = settings.database.url
    if urlsplit(url).scheme in POSTGRES_SCHEMES:
        from freehold.adapters.sql.inspection.postgres import PostgresInspection

        return PostgresInspection(ledger, url)
    from freehold.adapters.sql.inspection.sqlite import SqliteInspection

    return SqliteInspection(ledger, sqlite_path(url))
