"""The keys of freehold.toml: their types, limits, examples and one line on each.

The reference page, the JSON Schema and the messages are made from these models; defaults are read
from the dataclasses that they end in.

*Invariants*: an unknown key is refused; nothing is converted silently (strict).
*Not here*: the whole file and `[holds]` (`shape_file`), what must fit together inside a rule
(`consistency`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, fields
from datetime import timedelta
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PlainValidator, WithJsonSchema

from freehold.domain.due import DueKind, DueSpec, EmptyDue
from freehold.domain.retries import RetryPolicy
from freehold.domain.rules import Again, Rule, TableName
from freehold.domain.rules import Literal as Scalar
from freehold.domain.rules import Mode as RuleMode
from freehold.domain.rules import Now as NowValue
from freehold.settings.notation import (
    Comparison,
    RowRange,
    duration_text,
    read_assignment,
    read_comparison,
    read_duration,
    read_rows,
    read_span,
    read_table,
)
from freehold.settings.url import check_url
from freehold.settings.values import DatabaseSettings, LoopSettings

_DURATION_SCHEMA = {"type": "string", "pattern": r"^(\d+d)?(\d+h)?(\d+m)?(\d+s)?(\d+ms)?$"}
_SCALAR_SCHEMA = {"type": ["string", "number", "boolean"]}
_COMPARISON_SCHEMA = {
    "anyOf": [
        _SCALAR_SCHEMA,
        {"type": "array", "items": _SCALAR_SCHEMA, "minItems": 1},
        {
            "type": "object",
            "properties": {
                "lt": {"type": ["string", "number"]},
                "is": {"enum": ["null", "not null"]},
            },
            "minProperties": 1,
            "maxProperties": 1,
            "additionalProperties": False,
        },
    ]
}
_ASSIGNMENT_SCHEMA = {
    "anyOf": [
        _SCALAR_SCHEMA,
        {
            "type": "object",
            "properties": {"now": {"const": True}, "null": {"const": True}},
            "minProperties": 1,
            "maxProperties": 1,
            "additionalProperties": False,
        },
    ]
}
_ROWS_SCHEMA = {"type": "string", "pattern": r"^(any|\d{1,9}(-(\d{1,9})?)?)$"}

_ANY_ROWS: Any = "any"  # as it is written; every default is read like a value of the file

Duration = Annotated[timedelta, PlainValidator(read_duration), WithJsonSchema(_DURATION_SCHEMA)]
Span = Annotated[timedelta, PlainValidator(read_span), WithJsonSchema(_DURATION_SCHEMA)]
Url = Annotated[str, AfterValidator(check_url)]
Name = Annotated[str, Field(min_length=1)]
Table = Annotated[TableName, PlainValidator(read_table), WithJsonSchema({"type": "string"})]
Test = Annotated[Comparison, PlainValidator(read_comparison), WithJsonSchema(_COMPARISON_SCHEMA)]
Alternative = Annotated[dict[Name, Test], Field(min_length=1)]
Assigned = Annotated[
    Scalar | NowValue, PlainValidator(read_assignment), WithJsonSchema(_ASSIGNMENT_SCHEMA)
]
ModeWord = Literal["direct", "window", "reservation"]
Rows = Annotated[RowRange, PlainValidator(read_rows), WithJsonSchema(_ROWS_SCHEMA)]


def _default(owner: type, name: str) -> Any:
    """Return a dataclass field's default as the file would have it."""
    found = next(one for one in fields(owner) if one.name == name)
    value = found.default if found.default_factory is MISSING else found.default_factory()
    return written(value)


def written(value: Any) -> Any:
    """Return a value as the file would have it."""
    if isinstance(value, timedelta):
        return duration_text(value)
    return [written(one) for one in value] if isinstance(value, tuple) else value


S = TypeVar("S", bound="Shape")


class Shape(BaseModel):
    """One table of the file."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, validate_default=True)


def empty(shape: type[S]) -> Callable[[], S]:
    """Return a maker of the table that is absent from the file."""
    return lambda: shape.model_validate({})


class DatabaseShape(Shape):
    """Where ledger and holds live, and how long one transaction may take."""

    url: Url = Field(
        _default(DatabaseSettings, "url"),
        description="The database of the holds and the ledger; a secret, so never shown whole.",
        examples=["postgresql://app@localhost/app", "sqlite:///freehold.db"],
    )
    search_path: str = Field(
        _default(DatabaseSettings, "search_path"),
        description="PostgreSQL search path of every transaction, as SET takes it; empty: the "
        "schemas of the rules, then public.",
        examples=['"shop", public, pg_temp'],
    )
    lock_timeout: Span = Field(
        _default(DatabaseSettings, "lock_timeout"),
        description="How long a statement waits for a lock.",
    )
    statement_timeout: Span = Field(
        _default(DatabaseSettings, "statement_timeout"),
        description="How long one statement may run.",
    )
    idle_in_transaction: Span = Field(
        _default(DatabaseSettings, "idle_in_transaction"),
        description="How long the server keeps a transaction of ours that does nothing.",
    )
    connect_timeout: Span = Field(
        _default(DatabaseSettings, "connect_timeout"),
        description="How long making a connection may take; whole seconds count.",
    )


class LoopsShape(Shape):
    """How the loops of `freehold run` pace themselves."""

    lease: Span = Field(
        _default(LoopSettings, "lease"),
        description="How long a worker's claim lasts without renewal.",
    )
    sweep: Span = Field(
        _default(LoopSettings, "sweep"),
        description="How often ended leases are taken back.",
    )
    poll: Span = Field(
        _default(LoopSettings, "poll"),
        description="The longest sleep of a precise rule, so that new holds are seen.",
    )
    heartbeat: Span = Field(
        _default(LoopSettings, "heartbeat"),
        description="How often a process says that it lives; shorter than the lease.",
    )
    drain: Duration = Field(
        _default(LoopSettings, "drain"),
        description="How long SIGTERM lets work in hand finish.",
    )


class TenantShape(Shape):
    """Who a hold belongs to: one of the two keys."""

    column: Name | None = Field(None, description="The column that names the tenant.")
    constant: Name | None = Field(None, description="One tenant for every hold of the rule.")


class DueShape(Shape):
    """When a hold is due."""

    column: Name = Field(description="The column that says when.", examples=["hold_until"])
    kind: Literal["timestamptz", "naive", "date", "epoch_s", "epoch_ms", "iso"] = Field(
        description="How the column holds an instant: timestamptz as one; naive as a local time; "
        "date as a local day, over when that day is; epoch_s and epoch_ms as seconds and "
        "milliseconds since 1970; iso as text, with an offset or in the zone.",
        examples=["timestamptz"],
    )
    zone: str | None = Field(
        None,
        description="The time zone of naive and date columns, where it is required, and of texts "
        "without an offset.",
        examples=["Europe/Berlin"],
    )
    grace: Duration = Field(
        _default(DueSpec, "grace"), description="Waited after due before release."
    )
    bound: Literal["inclusive", "exclusive"] = Field(
        "inclusive", description="Whether a hold that is due at exactly now is due."
    )
    on_empty: Literal["never", "now", "review"] = Field(
        _default(DueSpec, "on_empty").value,
        description="What a NULL, zero or unreadable due means: never due, though counted and "
        "shown; due now; or review by a person.",
    )


class ExpireShape(Shape):
    """What expiring does to the row: one of the two keys."""

    delete: Literal[True] | None = Field(None, description="Delete the row.")
    set: Annotated[dict[Name, Assigned], Field(min_length=1)] | None = Field(
        None,
        description="Columns to write: bare values, { now = true } or { null = true }.",
        examples=[{"status": "expired"}],
    )


class CompanionShape(Shape):
    """A statement that runs with each release, in its transaction."""

    sql: str = Field(
        description="One SQL statement; :name takes a column of the hold before the change, or "
        ":now, :operation_key, :tenant.",
        examples=["update stock set free = free + :qty where id = :stock_id"],
    )
    rows: Rows = Field(
        _ANY_ROWS,
        description="How many rows it may change, else the release is rolled back.",
    )
    before: bool = Field(False, description="Run ahead of the release.")
    lock_by: str | None = Field(
        None,
        description="The parameter that names the row it touches; without it one batch of the "
        "rule runs at a time.",
        examples=[":stock_id"],
    )


class RetryShape(Shape):
    """When a failed operation is tried again."""

    delays: Annotated[list[Span], Field(max_length=100)] = Field(
        _default(RetryPolicy, "delays"),
        description="Pauses after the 1st, 2nd, ... failed attempt; one attempt more than delays.",
    )
    jitter: float = Field(
        _default(RetryPolicy, "jitter"),
        ge=0,
        le=1,
        description="Share by which a pause may be longer or shorter.",
    )


class RuleShape(Shape):
    """One mapping of one table, and what expiring means there."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9_-]{1,64}$")] = Field(
        description="What the rule is known by.", examples=["cart"]
    )
    table: Table = Field(
        description="The table of the holds; each part is an exact name, in quotes or not.",
        examples=['public."SelectedSlots"'],
    )
    key: Annotated[list[Name], Field(min_length=1)] = Field(
        description="The columns that name one row.", examples=[["id"]]
    )
    tenant: TenantShape = Field(
        default_factory=empty(TenantShape),
        description="Who a hold belongs to; absent: nobody.",
    )
    held: list[Alternative] = Field(
        [],
        description="Alternatives of conditions that all hold for a held row; absent: every row is "
        "a hold.",
        examples=[[{"status": "held"}]],
    )
    due: DueShape = Field(
        description="When a hold is due.",
        examples=[{"column": "hold_until", "kind": "timestamptz"}],
    )
    fence: list[Name] = Field(
        [],
        description="Token columns, compared at commit beside key, due and the columns of held.",
    )
    expire: ExpireShape = Field(
        description="What expiring does.", examples=[{"set": {"status": "expired"}}]
    )
    confirmed: Annotated[list[Alternative], Field(min_length=1)] | None = Field(
        None, description="What a confirmed row looks like, to name the skip."
    )
    cancelled: Annotated[list[Alternative], Field(min_length=1)] | None = Field(
        None, description="What a cancelled row looks like, to name the skip."
    )
    also: list[CompanionShape] = Field([], description="Statements that run with each release.")
    carry: list[Name] = Field([], description="Columns whose values travel in the event.")
    unit: Name | None = Field(
        None,
        description="The column that names what a hold sets aside, such as a room or a seat, for "
        "reports; absent: each row is a unit of its own.",
        examples=["room_no"],
    )
    when: str = Field(
        "precise",
        description="precise, an interval such as 30s, five cron fields, or a macro such as "
        "@hourly.",
        examples=["precise"],
    )
    zone: str | None = Field(None, description="The time zone of a cron line in when; absent: UTC.")
    mode: ModeWord = Field(
        RuleMode.RESERVATION.value,
        description="How due holds become work: an operation each (reservation), none unless the "
        "scan cannot release it (direct), or one for all that is due (window).",
    )
    promise: Span = Field(
        _default(Rule, "promise"), description="The longest lag from due to commit that you accept."
    )
    hold_window: Span | None = Field(
        None, description="How long a hold usually lasts, for the age alert."
    )
    again: Literal["review", "release"] = Field(
        _default(Rule, "again").value,
        description="What happens to a hold that is due again with the identity of one expired: "
        "review by a person, or release.",
    )
    attach_limit: int = Field(
        _default(Rule, "attach_limit"),
        ge=0,
        description="Overdue rows that the first scan may take without being confirmed.",
    )
    batch: int = Field(
        _default(Rule, "batch_size"),
        ge=1,
        le=10_000,
        description="Holds in one transaction, at most.",
    )
    retry: RetryShape = Field(
        default_factory=empty(RetryShape), description="When a failed operation is tried again."
    )
    tell_skips: bool = Field(
        _default(Rule, "tell_skips"),
        description="Whether an event hold.skipped.v1 tells of a hold that was due and could not be "
        "released, because it was renewed, confirmed, cancelled or gone by then.",
    )
    handler: str | None = Field(
        None,
        description="A Python function, called with each batch of released holds inside their "
        "transaction; needs mode reservation.",
        examples=["shop.hooks:released"],
    )
    handler_timeout: Span | None = Field(
        None,
        description="How long one call of the handler may take, shorter than loops.lease; absent: "
        "half of loops.lease.",
        examples=["5s"],
    )


def _same(words: Any, kinds: Any) -> bool:
    return set(words.__args__) == {str(one.value) for one in kinds}


assert _same(DueShape.model_fields["kind"].annotation, DueKind)
assert _same(DueShape.model_fields["on_empty"].annotation, EmptyDue)
assert _same(RuleShape.model_fields["again"].annotation, Again)
assert _same(ModeWord, RuleMode)
