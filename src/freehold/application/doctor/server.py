"""Checks of the database as a whole: version, clock, role, file."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from freehold.application.doctor.findings import Code, Finding, Severity, fine, refuse, warn
from freehold.ports.inspection import FileFacts, Mends, RoleFacts, ServerFacts

OLDEST_POSTGRES = 15
SKEW_MOST = timedelta(seconds=2)
OPEN_TO_OTHERS = 0o077
# The versions whose checkpoints could corrupt a file in write-ahead mode.
# Source: https://www.sqlite.org/wal.html, the WAL-reset bug; fixed in 3.51.3.
RESET_BUG_FIRST = (3, 7, 0)
RESET_BUG_LAST = (3, 51, 2)


def server_findings(
    server: ServerFacts, host_now: datetime, mends: Mends, *, strict: bool
) -> Iterator[Finding]:
    """Check what holds for every rule."""
    if server.file is not None:
        yield from _engine(server)
        yield from _file(server.file, mends)
        return
    yield from _version(server)
    yield from _clock(server, host_now)
    yield from _defaults(server)
    if server.role is not None:
        yield from _role(server.role, strict=strict)


def _version(server: ServerFacts) -> Iterator[Finding]:
    if server.version[0] < OLDEST_POSTGRES:
        yield refuse(
            Code.SERVER_VERSION,
            None,
            "server",
            f"The server is {server.engine} {server.version[0]}, and Freehold needs "
            f"{OLDEST_POSTGRES} or newer: upgrade it.",
        )


def _clock(server: ServerFacts, host_now: datetime) -> Iterator[Finding]:
    skew = host_now - server.now
    if abs(skew) > SKEW_MOST:
        ahead = "ahead of" if skew > timedelta(0) else "behind"
        yield warn(
            Code.CLOCK_SKEW,
            None,
            "clock",
            f"This host's clock is {abs(skew).total_seconds():.0f} s {ahead} the database's, "
            "which decides when a hold is due: set both by NTP.",
        )


def _defaults(server: ServerFacts) -> Iterator[Finding]:
    if server.synchronous_commit not in (None, "on"):
        yield warn(
            Code.SYNCHRONOUS_COMMIT,
            None,
            "server",
            f"synchronous_commit is {server.synchronous_commit} by default, so that the host's own "
            "renewals may be lost in a crash; Freehold sets it to on in its transactions, and the "
            "host should too.",
        )
    if server.pooler is not None:
        yield fine(
            Code.POOLER,
            None,
            "address",
            f"The address looks like a pooler's ({server.pooler}), which is fine: nothing here "
            "depends on session state.",
        )


def _role(role: RoleFacts, *, strict: bool) -> Iterator[Finding]:
    severity = Severity.REFUSE if strict else Severity.WARN
    if role.superuser:
        sentence = (
            f"Role {role.name} is a superuser, which no check of rights or row-level security "
            "holds back: connect as a role of its own that has only what the rules need."
        )
        yield Finding(severity, Code.SUPERUSER, None, "role", sentence)
    elif role.bypasses_row_security:
        sentence = (
            f"Role {role.name} bypasses row-level security and so sees every tenant's rows: "
            "take BYPASSRLS away or accept it."
        )
        mend = 'alter role "{}" nobypassrls;'.format(role.name.replace('"', '""'))
        yield Finding(severity, Code.BYPASS_ROW_SECURITY, None, "role", sentence, mend)


def _engine(server: ServerFacts) -> Iterator[Finding]:
    if RESET_BUG_FIRST <= server.version <= RESET_BUG_LAST:
        version = ".".join(map(str, server.version))
        yield warn(
            Code.ENGINE_VERSION,
            None,
            "engine",
            f"SQLite {version} has the WAL-reset bug (3.7.0 to 3.51.2), in which two connections "
            "that checkpoint and write at the same moment can corrupt the file: let one process "
            "own the checkpoints, or use a Python whose SQLite is 3.51.3 or newer.",
        )


def _file(file: FileFacts, mends: Mends) -> Iterator[Finding]:
    if not file.directory_writable:
        yield refuse(
            Code.DIRECTORY,
            None,
            file.path,
            f"The directory of {file.path} is not writable, and SQLite makes its log beside the "
            "file: allow this user to write there.",
        )
    if file.network is not None:
        yield warn(
            Code.NETWORK_FILE_SYSTEM,
            None,
            file.path,
            f"{file.path} lies on a network file system ({file.network}), where SQLite's locks "
            "and its write-ahead log do not work: move it to a local disk or use PostgreSQL.",
        )
    if file.journal_mode != "wal":
        yield warn(
            Code.JOURNAL_MODE,
            None,
            file.path,
            f"{file.path} is in journal mode {file.journal_mode}, in which readers and writers "
            "wait for each other: switch to write-ahead logging when the host application allows.",
            mends.write_ahead(),
        )
    if file.mode & OPEN_TO_OTHERS:
        yield warn(
            Code.FILE_MODE,
            None,
            file.path,
            f"{file.path} has mode {file.mode:04o}, so that other users of this host may read the "
            "holds: run chmod 600 on it unless the host application runs as another user.",
        )
