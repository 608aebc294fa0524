"""Every setting as it stands in the end, with its value as written and where that came from.

*Invariants*: each setting of the file's shape is there once, under its dotted name, with a rule's
name in the place of its number: `database.url`, `rules.cart.promise`; a secret is masked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from freehold.settings.shape import Shape
from freehold.settings.shape_brokers import TargetShape, keys_of
from freehold.settings.shape_file import FileShape
from freehold.settings.url import MASK, masked, masked_address

DEFAULT = "default"
_HIDDEN: dict[str, Callable[[str], str]] = {  # of queue and targets
    "url": masked_address,
    "monitor": masked_address,
    "secret": lambda _: MASK,
    "old_secret": lambda _: MASK,
}
_SECRETS: dict[str, Callable[[str], str]] = {
    "database.url": masked,
    "report.smtp.password": lambda _: MASK,
    "report.resend.key": lambda _: MASK,
    "report.postmark.token": lambda _: MASK,
    "report.mailgun.key": lambda _: MASK,
    "summary.key": lambda _: MASK,
}


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting.

    Attributes:
        value: as the file would have it; None where it is absent and has no default.
        origin: "default", the file's name, or the variable's.
    """

    name: str
    value: Any
    origin: str


def effective(
    shape: FileShape, tables: Mapping[str, Any], file: str, variables: Mapping[str, str]
) -> list[Setting]:
    """Return every setting, in the order of the file's shape.

    Args:
        tables: what `shape` was read from.
        variables: the environment variable behind a dotted name.
    """
    named: list[tuple[str, Shape, Mapping[str, Any]]] = [
        ("database", shape.database, tables.get("database", {})),
        ("loops", shape.loops, tables.get("loops", {})),
        ("retention", shape.retention, tables.get("retention", {})),
        ("logs", shape.logs, tables.get("logs", {})),
    ]
    optional = {
        "holds": shape.holds,
        "report": shape.report,
        "summary": shape.summary,
        "tenants": shape.tenants,
        "queue": shape.queue,
    }
    named += [(name, one, tables[name]) for name, one in optional.items() if one is not None]
    for index, target in enumerate(shape.targets):
        named.append((f"targets.{target.name}", target, tables["targets"][index]))
    for index, rule in enumerate(shape.rules):
        named.append((f"rules.{rule.name}", rule, tables["rules"][index]))
    return [
        Setting(place, _shown(place, value), variables.get(place) or (file if given else DEFAULT))
        for prefix, table, written in named
        for place, value, given in _walk(table, written, prefix)
    ]


def _walk(shape: Shape, written: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any, bool]]:
    known = keys_of(shape) if isinstance(shape, TargetShape) else type(shape).model_fields
    for name, field in type(shape).model_fields.items():
        if name not in known:
            continue
        value, place = getattr(shape, name), f"{prefix}.{name}"
        if isinstance(value, Shape):
            yield from _walk(value, written.get(name, {}), place)
        elif name in written:
            yield place, written[name], True
        else:
            yield place, field.get_default(call_default_factory=True), False


def _shown(place: str, value: Any) -> Any:
    if value is None:
        return None
    if place in _SECRETS:
        return _SECRETS[place](value)
    hides = _HIDDEN.get(place.rpartition(".")[2])
    is_ours = place.startswith(("queue.", "targets."))
    return hides(value) if is_ours and hides is not None else value
