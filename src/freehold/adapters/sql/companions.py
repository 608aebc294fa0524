"""Companion statements: operator's SQL, once for each released hold, with a checked row count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from freehold.adapters.sql.session import Session
from freehold.adapters.sql.statements import parameters
from freehold.domain.errors import RowRefused
from freehold.domain.rules import Companion


def run_companion(
    session: Session, companion: Companion, values: Sequence[Mapping[str, Any]]
) -> None:
    """Run one companion for each hold, in the order of the row that it touches.

    Raises:
        RowRefused: it changed more or fewer rows than it may.
    """
    names = parameters(companion.sql)
    ordered = sorted(values, key=lambda one: str(one.get(companion.lock_by or "operation_key")))
    given = [{name: one.get(name) for name in names} for one in ordered]
    for count in session.run_each(companion.sql, given):
        _check(companion, max(count, 0))


def _check(companion: Companion, count: int) -> None:
    most = companion.rows_max
    if count < companion.rows_min or (most is not None and count > most):
        wanted = f"{companion.rows_min} to {'any number' if most is None else most}"
        raise RowRefused(f"a companion changed {count} rows, expected {wanted}", "FREEHOLD")
