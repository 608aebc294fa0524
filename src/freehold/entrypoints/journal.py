"""What a running process says of itself, one JSON line an event; an allow-list, no guest data."""

from __future__ import annotations

import sys
from typing import TextIO

import structlog

from freehold.application.release import BatchResult
from freehold.application.scan import ScanResult
from freehold.application.sweep import SweepResult
from freehold.domain.errors import DatabaseError
from freehold.domain.rules import Rule


class Journal:
    """Writes structured lines to a stream, stderr by default."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._log = structlog.wrap_logger(
            structlog.PrintLogger(stream or sys.stderr),
            processors=[
                structlog.processors.add_log_level,
                structlog.processors.TimeStamper(fmt="iso", utc=True, key="at"),
                structlog.processors.JSONRenderer(),
            ],
        )

    def batch(self, rule: Rule, result: BatchResult) -> None:
        """Say what became of a batch."""
        self._log.info(
            "batch",
            rule=rule.name,
            released=result.released_count,
            skipped=dict(result.skipped),
            deferred=dict(result.deferred),
            failed=result.failed_count,
            dead=result.buried_count,
        )

    def scanned(self, rule: Rule, result: ScanResult) -> None:
        """Say what a scan found, when it found something."""
        if result.new_count or result.unreadable_count:
            self._log.info(
                "scan",
                rule=rule.name,
                found=result.found_count,
                new=result.new_count,
                unreadable=result.unreadable_count,
            )

    def swept(self, result: SweepResult) -> None:
        """Say what a sweep did, when it did something."""
        if any((result.returned_count, result.buried_count, result.closed_count)):
            self._log.info(
                "sweep",
                returned=result.returned_count,
                dead=result.buried_count,
                closed=result.closed_count,
            )

    def paused(self, rule: Rule, *, paused: bool) -> None:
        """Say that a rule was paused, or works again; `freehold status` has the reason."""
        if paused:
            self._log.warning("paused", rule=rule.name)
        else:
            self._log.info("resumed", rule=rule.name)

    def database_trouble(self, loop: str, error: DatabaseError, rule: Rule | None = None) -> None:
        """Say that a loop is waiting for the database; the text may name no value, only the code."""
        name = {} if rule is None else {"rule": rule.name}
        self._log.warning(
            "database", loop=loop, error=type(error).__name__, code=error.code, **name
        )

    def say(self, event: str, **fields: str | float | None) -> None:
        """Say anything else that holds no guest data."""
        self._log.info(event, **fields)
