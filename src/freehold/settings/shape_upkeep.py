"""The keys of `[retention]` and `[logs]`: what is kept for how long, and what is said of the work."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from freehold.settings.shape import Shape, Span, written
from freehold.settings.values import LogSettings, RetentionSettings

_AGES = RetentionSettings()


def _age(name: str) -> Any:
    return written(getattr(_AGES, name))


class RetentionShape(Shape):
    """How long the ledger keeps what nobody works on any more."""

    records: Span = Field(
        _age("records"),
        description="How long records and tallies are kept; on PostgreSQL a month goes as a whole. "
        "At least 7d.",
    )
    attempts: Span = Field(
        _age("attempts"),
        description="How long failed attempts are kept once their operation ended, and strays once a "
        "person discarded them. At least 1d.",
    )
    events: Span = Field(
        _age("events"),
        description="How long events are kept that were published, with what was owed of them to "
        "targets, or had no target. At least 1d.",
    )
    ticks: Span = Field(
        _age("ticks"),
        description="How long finished runs of schedules, guards and pauses that ended, and counts of "
        "a queue's deliveries are kept. At least 1d.",
    )
    mails: Span = Field(
        _age("mails"),
        description="How long the bytes of a report's mail are kept once no send of it is open; "
        "facts, digest and send ledger stay for ever. At least 1d.",
    )


class LogsShape(Shape):
    """What a running process writes to stderr."""

    level: Literal["debug", "info", "warning"] = Field(
        LogSettings().level,
        description="What matters less is left out; debug has a line for each release.",
    )
