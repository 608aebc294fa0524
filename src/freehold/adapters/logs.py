"""Log lines: every event as JSON, by an allow-list of fields; implements `ports.telemetry`.

*Invariants*: a field that is not on the list is never written; a value cannot end its line, begin
another, or change how a terminal shows it. *Not here*: what happens (`ports.telemetry`).
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import fields
from datetime import datetime
from enum import Enum
from typing import Any, TextIO

import structlog

from freehold.domain.operations import Claim
from freehold.ports.telemetry import Event, HoldsReleased, Level

TEXT_LENGTH = 200  # characters of one value
# Everything that a line may hold, with what it means. Nothing here may come from a guest.
ALLOWED = {
    "roles": "what the process does",
    "pid": "its process id",
    "rule": "the rule's name",
    "tick": "the id of the tick's row",
    "found": "due rows seen",
    "new": "operations written, or tenants added",
    "unreadable": "rows whose due cannot be read, or messages that are none",
    "outcome": "how the scan ended",
    "late_seconds": "from the instant that the schedule names to the end of the scan",
    "released": "holds released",
    "skipped": "operations that needed nothing, by reason",
    "deferred": "operations put off, by reason",
    "failed": "attempts that failed and are tried again",
    "dead": "operations that went to review",
    "returned": "operations of ended leases made ready again",
    "closed": "operations in review that were closed",
    "hold_key": "the hold's key",
    "operation_key": "the operation's key, the same in every delivery and event",
    "tenant": "the tenant's id",
    "attempt": "the attempt's number, from 1",
    "due_at": "when the hold was due",
    "lag_seconds": "from due to commit",
    "classification": "transient, malformed or broken",
    "code": "the database's or the provider's code for it",
    "retry_at": "when it can be tried again",
    "limit_seconds": "how long a handler was given",
    "guard": "the guard's name",
    "loop": "the loop that waits",
    "error": "the kind of trouble",
    "counts": "rows removed, by table",
    "published": "operations named to the queue",
    "unconfirmed": "messages without a confirm",
    "delivered": "messages taken from the queue, or events taken by a target",
    "redelivered": "messages that the queue had handed over before",
    "passed_over": "messages that named nothing to do",
    "seen": "rows of the table of tenants",
    "changed": "tenants written with other values",
    "retired": "tenants that became inactive, since their row is gone",
    "rejected": "rows that cannot be used",
    "refused": "whether nothing was changed, since more than half of the tenants are gone",
    "left": "whether something is left over for the next time",
    "assigned": "reports whose holds are settled",
    "zone": "the time zone of a local date",
    "frozen": "reports whose facts were frozen",
    "written": "mails written",
    "ended": "reports that get no mail, by reason",
    "report": "the report's id",
    "kind": "what was tried",
    "state": "where it stands now",
    "transport": "the way in which mails are sent",
    "report_date": "the local date that the report is about",
    "input_tokens": "tokens that the model read",
    "output_tokens": "tokens that the model wrote",
    "cost_micros": "what a call cost, in millionths of the currency's unit",
    "reason": "why",
    "trace_id": "the trace that the event belongs to",
    "target": "the target's name",
}
# What ends a line, moves the cursor, or turns the direction of text, and what is no character.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)


class FieldNotAllowed(Exception):
    """An event has a field that is not on the list; a mistake of ours."""


class LogLines:
    """Writes one JSON line an event to a stream, stderr by default."""

    def __init__(
        self, stream: TextIO | None = None, *, level: Level = Level.INFO, strict: bool = False
    ) -> None:
        """Write to a stream.

        Args:
            level: events that matter less are left out.
            strict: raise for a field that is not allowed, instead of leaving it out; for tests.
        """
        self._level = level
        self._strict = strict
        self._log = structlog.wrap_logger(
            structlog.PrintLogger(stream or sys.stderr),
            processors=[
                structlog.processors.add_log_level,
                structlog.processors.TimeStamper(fmt="iso", utc=True, key="at"),
                structlog.processors.JSONRenderer(serializer=safe_json),
            ],
        )

    def tell(self, event: Event) -> None:
        """Write the event, one line for each hold that it releases."""
        if event.level < self._level:
            return
        write = {Level.DEBUG: self._log.debug, Level.INFO: self._log.info}.get(
            event.level, self._log.warning
        )
        try:
            for line in lines_of(event):
                write(event.name, **self._allowed(line))
        except (OSError, ValueError):
            return  # a full disk or a closed pipe is no reason to hold up a release

    def _allowed(self, line: Mapping[str, Any]) -> dict[str, Any]:
        unknown = line.keys() - ALLOWED.keys()
        if unknown and self._strict:
            raise FieldNotAllowed(f"not on the list of log fields: {', '.join(sorted(unknown))}")
        return {name: _plain(value) for name, value in line.items() if name in ALLOWED}


def lines_of(event: Event) -> Iterator[dict[str, Any]]:
    """Return the fields of each line that an event makes."""
    if isinstance(event, HoldsReleased):
        for claim in event.claims:
            lag_seconds = (event.at - claim.due_at).total_seconds()
            yield {**_of_claim(claim), "lag_seconds": round(lag_seconds, 3)}
        return
    line: dict[str, Any] = {}
    for one in fields(event):
        value = getattr(event, one.name)
        if isinstance(value, Claim):
            line |= _of_claim(value)
        elif value is not None:
            line[one.name.removesuffix("_count")] = value
    yield line


def _of_claim(claim: Claim) -> dict[str, Any]:
    return {
        "rule": claim.rule,
        "tenant": claim.tenant,
        "hold_key": claim.hold_key,
        "operation_key": claim.operation_key,
        "due_at": claim.due_at,
        "attempt": claim.failed_count + 1,
    }


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {_plain(name): _plain(one) for name, one in value.items()}
    if isinstance(value, Enum):
        value = value.value
    return value[:TEXT_LENGTH] if isinstance(value, str) else value


def safe_json(line: Any, **more: Any) -> str:
    """Write a line whose values stay values on every screen and in every collector."""
    text = json.dumps(line, ensure_ascii=False, **more)
    return _UNSAFE.sub(lambda found: json.dumps(found[0])[1:-1], text)
