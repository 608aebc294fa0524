"""Which source each value came from, by dotted name: `database.url`, `rules.cart.promise`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from freehold.settings.shape import FileShape, Shape

DEFAULT = "default"


def origins_of(shape: FileShape, file: str, variables: Mapping[str, str]) -> dict[str, str]:
    """Return the origin of every setting: a variable, the file, or "default"."""
    found = dict(_named(shape.database, "database", file))
    found |= _named(shape.loops, "loops", file)
    for rule in shape.rules:
        found |= _named(rule, f"rules.{rule.name}", file)
    return found | variables


def _named(shape: Shape, prefix: str, file: str) -> Iterator[tuple[str, str]]:
    for name in type(shape).model_fields:
        value = getattr(shape, name)
        place = f"{prefix}.{name}"
        if isinstance(value, Shape):
            yield from _named(value, place, file)
        else:
            yield place, file if name in shape.model_fields_set else DEFAULT
