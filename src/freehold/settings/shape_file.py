"""The whole of freehold.toml, and its table `[holds]`, which is a rule with most of it given.

*Not here*: the tables in it (`shape`), the rule that `[holds]` becomes (`freehold.domain`).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from freehold.settings.shape import (
    CompanionShape,
    DatabaseShape,
    LoopsShape,
    ModeWord,
    RetryShape,
    RuleShape,
    Shape,
    Span,
    empty,
)
from freehold.settings.shape_brokers import QueueShape, TargetShape
from freehold.settings.shape_report import ReportShape, SummaryShape
from freehold.settings.shape_tenants import TenantsShape
from freehold.settings.shape_upkeep import LogsShape, RetentionShape

_HOLD_WINDOW: Any = "15m"  # as it is written; long enough for a payment


def _as_in_rule(key: str, **more: Any) -> Any:
    """Return the field of a rule's key: default, limits and what it means are the same."""
    found = RuleShape.model_fields[key]
    return Field(found.default, description=found.description, **more)


class HoldsShape(Shape):
    """The built-in holds, for those without a table of their own; absent: they are off."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9_-]{1,64}$")] = Field(
        "holds", description="What the built-in rule is known by."
    )
    hold_window: Span = Field(
        _HOLD_WINDOW,
        description="How long a hold lasts that is granted without saying until when; the age "
        "alert uses it too.",
    )
    when: str = _as_in_rule("when", examples=["precise"])
    zone: str | None = _as_in_rule("zone")
    mode: ModeWord = _as_in_rule("mode")
    promise: Span = _as_in_rule("promise")
    again: Literal["review", "release"] = _as_in_rule("again")
    attach_limit: int = _as_in_rule("attach_limit", ge=0)
    batch: int = _as_in_rule("batch", ge=1, le=10_000)
    also: list[CompanionShape] = _as_in_rule("also")
    retry: RetryShape = Field(
        default_factory=empty(RetryShape), description="When a failed operation is tried again."
    )
    tell_skips: bool = _as_in_rule("tell_skips")
    handler: str | None = _as_in_rule("handler", examples=["shop.hooks:released"])
    handler_timeout: Span | None = _as_in_rule("handler_timeout", examples=["5s"])


class FileShape(Shape):
    """The whole file."""

    database: DatabaseShape = Field(
        default_factory=empty(DatabaseShape), description="The database."
    )
    loops: LoopsShape = Field(
        default_factory=empty(LoopsShape), description="The loops of freehold run."
    )
    retention: RetentionShape = Field(
        default_factory=empty(RetentionShape), description="How long what is kept."
    )
    logs: LogsShape = Field(
        default_factory=empty(LogsShape), description="What a running process says."
    )
    holds: HoldsShape | None = Field(
        None, description="The built-in holds; absent: they are off. An empty table turns them on."
    )
    report: ReportShape | None = Field(None, description="The daily report; absent: it is off.")
    summary: SummaryShape | None = Field(
        None, description="A paragraph by a language model; absent: there is none."
    )
    tenants: TenantsShape | None = Field(
        None, description="The customer's own table of tenants; absent: people add them."
    )
    queue: QueueShape | None = Field(
        None, description="A broker of hints; absent: workers ask the ledger."
    )
    targets: list[TargetShape] = Field(
        [], description="One [[targets]] table for each target of events; none: events are kept."
    )
    rules: list[RuleShape] = Field([], description="One [[rules]] table for each rule.")
