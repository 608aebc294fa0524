"""The composition root: the only package that picks adapters.

*Invariants*: a driver is imported only when what it reaches is configured; each thread opens its
own ledger, queue and targets.
"""

from freehold.bootstrap.brokers import (
    Aimed,
    open_queue,
    open_queue_facts,
    open_targets,
    require_queue,
    require_targets,
)
from freehold.bootstrap.databases import (
    POSTGRES_SCHEMES,
    join,
    limits_of,
    open_inspection,
    open_ledger,
    open_session,
    require_schema,
    search_path_of,
    sqlite_path,
)
from freehold.bootstrap.processes import handler_problems, open_handling, open_telemetry
from freehold.bootstrap.reports import (
    open_renderer,
    open_summarizer,
    open_transport,
    report_settings,
)

__all__ = [
    "POSTGRES_SCHEMES",
    "Aimed",
    "handler_problems",
    "join",
    "limits_of",
    "open_handling",
    "open_inspection",
    "open_ledger",
    "open_queue",
    "open_queue_facts",
    "open_renderer",
    "open_session",
    "open_summarizer",
    "open_targets",
    "open_telemetry",
    "open_transport",
    "report_settings",
    "require_queue",
    "require_schema",
    "require_targets",
    "search_path_of",
    "sqlite_path",
]
