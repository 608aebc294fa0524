"""Change a tenant as a person asks, with an entry in the action log.

*Not here*: adding and importing (`ports.inventory`, `application.takeover`): nothing is lost there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from freehold.domain.errors import UsageError
from freehold.domain.inventory import Tenant
from freehold.ports.inventory import Written
from freehold.ports.ledger import Act, Ledger


def change_tenant(
    ledger: Ledger, tenant_id: str, changes: Mapping[str, Any], by: str, reason: str
) -> tuple[Tenant, Written]:
    """Write the named fields of a tenant and leave the others.

    Again: EXISTS, and no second entry in the action log.

    Raises:
        UsageError: there is no such tenant, or a value is wrong.
    """
    with ledger.transaction() as tx:
        before = next(iter(tx.tenants.lock([tenant_id])), None)
        if before is None:
            raise UsageError(
                f"There is no tenant {tenant_id!r}; `freehold tenant list` shows those there are."
            )
        after = replace(before, **changes)
        (written,) = tx.tenants.set([after])
        if written is Written.CHANGED:
            tx.actions.record(_act(before, after, by, reason))
    return after, written


def _act(before: Tenant, after: Tenant, by: str, reason: str) -> Act:
    old, new = asdict(before), asdict(after)
    changed = [name for name in old if old[name] != new[name]]
    return Act(
        actor=by,
        action="tenant set",
        subject=after.id,
        reason=reason,
        before=_written(old, changed),
        after=_written(new, changed),
    )


def _written(fields: Mapping[str, Any], names: list[str]) -> str:
    return "; ".join(f"{name} {_text(fields[name])}" for name in names)


def _text(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(value) or "none"
    return "none" if value is None else str(value)
