"""From the file's shape to the frozen values that the rest of Freehold reads.

*Invariants*: what is built here has passed `consistency.findings`.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from freehold.domain.due import DueKind, DueSpec, EmptyDue
from freehold.domain.inventory import built_in_rule
from freehold.domain.retries import RetryPolicy
from freehold.domain.rules import (
    Action,
    Again,
    Companion,
    Condition,
    DeleteRow,
    HandlerSpec,
    Mode,
    Predicate,
    Rule,
    SetColumns,
    TenantSource,
)
from freehold.domain.schedule import Precise, Schedule, parse_schedule
from freehold.domain.tenant_mapping import TenantMapping
from freehold.settings.build_brokers import queue_settings, target_settings
from freehold.settings.build_report import report_settings
from freehold.settings.shape import (
    Alternative,
    CompanionShape,
    DatabaseShape,
    DueShape,
    ExpireShape,
    LoopsShape,
    RuleShape,
)
from freehold.settings.shape_file import FileShape, HoldsShape
from freehold.settings.shape_tenants import TenantsShape
from freehold.settings.values import (
    DatabaseSettings,
    LogSettings,
    LoopSettings,
    RetentionSettings,
    Settings,
)


def build(shape: FileShape, origins: dict[str, str]) -> Settings:
    """Build the settings; the built-in rule comes behind the others."""
    built_in = None if shape.holds is None else _built_in(shape.holds, shape)
    rules = [_rule(one, shape.loops) for one in shape.rules]
    return Settings(
        database=_database(shape.database),
        loops=_loops(shape.loops),
        retention=RetentionSettings(**dict(shape.retention)),
        logs=LogSettings(shape.logs.level),
        report=None if shape.report is None else report_settings(shape.report, shape.summary),
        tenants=None if shape.tenants is None else _tenants(shape.tenants),
        queue=None if shape.queue is None else queue_settings(shape.queue),
        targets=tuple(target_settings(one) for one in shape.targets),
        built_in=built_in,
        rules=tuple(rules if built_in is None else [*rules, built_in]),
        origins=origins,
    )


def _database(shape: DatabaseShape) -> DatabaseSettings:
    return DatabaseSettings(**{name: getattr(shape, name) for name in DatabaseShape.model_fields})


def _loops(shape: LoopsShape) -> LoopSettings:
    return LoopSettings(**{name: getattr(shape, name) for name in LoopsShape.model_fields})


def _built_in(holds: HoldsShape, shape: FileShape) -> Rule:
    return built_in_rule(
        "sqlite" if urlsplit(shape.database.url).scheme == "sqlite" else "postgres",
        name=holds.name,
        companions=tuple(_companion(one) for one in holds.also),
        schedule=schedule(holds, shape.loops),
        mode=Mode(holds.mode),
        promise=holds.promise,
        hold_window=holds.hold_window,
        retry=RetryPolicy(tuple(holds.retry.delays), holds.retry.jitter),
        again=Again(holds.again),
        attach_limit=holds.attach_limit,
        batch_size=holds.batch,
        tell_skips=holds.tell_skips,
        handler=_handler(holds, shape.loops),
    )


def _rule(shape: RuleShape, loops: LoopsShape) -> Rule:
    return Rule(
        name=shape.name,
        table=shape.table,
        key=tuple(shape.key),
        held=predicate(shape.held),
        due=_due(shape.due),
        action=_action(shape.expire),
        tenant=TenantSource(shape.tenant.column, shape.tenant.constant),
        fence=tuple(shape.fence),
        confirmed=None if shape.confirmed is None else predicate(shape.confirmed),
        cancelled=None if shape.cancelled is None else predicate(shape.cancelled),
        companions=tuple(_companion(one) for one in shape.also),
        carry=tuple(shape.carry),
        unit=shape.unit,
        schedule=schedule(shape, loops),
        mode=Mode(shape.mode),
        promise=shape.promise,
        hold_window=shape.hold_window,
        retry=RetryPolicy(tuple(shape.retry.delays), shape.retry.jitter),
        again=Again(shape.again),
        attach_limit=shape.attach_limit,
        batch_size=shape.batch,
        tell_skips=shape.tell_skips,
        handler=_handler(shape, loops),
    )


def _tenants(shape: TenantsShape) -> TenantMapping:
    named = {name: getattr(shape, name) for name in TenantsShape.model_fields}
    active = None if shape.active is None else predicate(shape.active)
    return TenantMapping(**{**named, "active": active})


def _handler(shape: RuleShape | HoldsShape, loops: LoopsShape) -> HandlerSpec | None:
    if shape.handler is None:
        return None
    return HandlerSpec(shape.handler, shape.handler_timeout or loops.lease / 2)


def predicate(alternatives: list[Alternative]) -> Predicate:
    """Build a predicate from its alternatives."""
    return Predicate(
        tuple(
            tuple(Condition(column, test.test, test.values) for column, test in one.items())
            for one in alternatives
        )
    )


def schedule(shape: RuleShape | HoldsShape, loops: LoopsShape) -> Schedule:
    """Build the schedule of a rule, built in or not; a precise one polls as the loops do.

    Raises:
        ScheduleError: the line or its zone is wrong.
    """
    found = parse_schedule(shape.when, shape.zone or "UTC")
    return Precise(loops.poll.total_seconds()) if isinstance(found, Precise) else found


def _due(shape: DueShape) -> DueSpec:
    return DueSpec(
        column=shape.column,
        kind=DueKind(shape.kind),
        zone=shape.zone,
        grace=shape.grace,
        inclusive=shape.bound == "inclusive",
        on_empty=EmptyDue(shape.on_empty),
    )


def _action(shape: ExpireShape) -> Action:
    return DeleteRow() if shape.set is None else SetColumns(tuple(shape.set.items()))


def _companion(shape: CompanionShape) -> Companion:
    return Companion(
        sql=shape.sql.strip().removesuffix(";"),
        rows_min=shape.rows.least,
        rows_max=shape.rows.most,
        before=shape.before,
        lock_by=None if shape.lock_by is None else shape.lock_by.removeprefix(":"),
    )
