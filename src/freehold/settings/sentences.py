"""From pydantic's errors to sentences for a person: what, where, what to do.

*Invariants*: no sentence repeats a value that may be a secret; an unknown key gets a suggestion.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from freehold.settings.notation import Finding, full_stop, kind_of, suggestion
from freehold.settings.shape import Shape
from freehold.settings.shape_file import FileShape

Place = tuple[int | str, ...]

_ELSEWHERE = {  # words that people try, and what is meant
    "every": 'write when = "every 30s"',
    "schedule": 'write when = "..."',
    "cron": 'write when = "..."',
    "action": "write expire = { ... }",
    "companions": 'write also = [{ sql = "..." }]',
    "timezone": "write zone",
    "tz": "write zone",
    "from": "write sender",
    "recipients": "each tenant has its own: `freehold tenant set ID --recipient ADDRESS --by NAME`",
}
_WANTED = {
    "string_type": "a text in quotes",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a table",
    "model_type": "a table",
    "model_attributes_type": "a table",
}
_FIXED = {
    "value_error": "{error}",
    "string_pattern_mismatch": "must be 1 to 64 of the letters a-z, digits, _ and -",
    "too_short": "is empty; name at least one",
    "string_too_short": "is empty; write a name",
    "too_long": "has more than {max_length} entries",
    "greater_than_equal": "must be at least {ge:g}",
    "less_than_equal": "must be at most {le:g}",
    "finite_number": "must be a finite number",
}
_TO_COME = ("direct", "window")


def sentences(error: ValidationError, tables: Mapping[str, Any]) -> list[Finding]:
    """Return one finding for each error."""
    return [
        Finding(dotted(_at(one)), full_stop(f"{_sentence(one)}{_of_rule(_at(one), tables)}"))
        for one in error.errors(include_url=False)
    ]


def dotted(place: Sequence[int | str]) -> str:
    """Write a place as `rules[0].due.kind`."""
    text = "".join(f"[{one}]" if isinstance(one, int) else f".{one}" for one in place)
    return text.removeprefix(".")


def _at(error: ErrorDetails) -> Place:
    return tuple(one for one in error["loc"] if one != "[key]")


def _of_rule(place: Place, tables: Mapping[str, Any]) -> str:
    match place:
        case ("rules", int(index), *_):
            rule = tables["rules"][index]
            name = rule.get("name") if isinstance(rule, dict) else None
            return f" (rule {name!r})" if isinstance(name, str) else ""
        case ("targets", int(index), *_):
            target = tables["targets"][index]
            name = target.get("name") if isinstance(target, dict) else None
            return f" (target {name!r})" if isinstance(name, str) else ""
        case _:
            return ""


def _sentence(error: ErrorDetails) -> str:
    kind, place, context = error["type"], _at(error), error.get("ctx", {})
    if kind in _WANTED:
        return f"must be {_WANTED[kind]}, not {kind_of(error['input'])}"
    if kind in _FIXED:
        return _FIXED[kind].format_map(context)
    if kind == "missing":
        return f"is missing; add {_example(place)}"
    if kind == "extra_forbidden":
        return _unknown(place)
    if kind == "literal_error":
        return _not_a_word(place, error["input"])
    return f"is wrong: {error['msg']}"


def _unknown(place: Place) -> str:
    name, known = str(place[-1]), list(_keys_at(place[:-1]))
    elsewhere = _ELSEWHERE.get(name)
    close = f"; {elsewhere}" if elsewhere else suggestion(name, known)
    return f"is unknown{close or '; known here: ' + ', '.join(known)}"


def _not_a_word(place: Place, value: Any) -> str:
    if place[-1] == "mode" and value in _TO_COME:
        return f'"{value}" is not available yet; write "reservation"'
    words = [one for one in _words(_field_at(place).annotation) if isinstance(one, str)]
    if not words:
        return "can only be true"
    close = suggestion(value, words) if isinstance(value, str) else ""
    return f"must be one of {', '.join(words)}{close}"


def _words(annotation: Any) -> Iterator[Any]:
    for one in get_args(annotation):
        yield from _words(one) if get_args(one) else (one,)


def _example(place: Place) -> str:
    examples = _field_at(place).examples or ["..."]
    return f"{place[-1]} = {toml_text(examples[0])}"


def toml_text(value: Any) -> str:
    """Write a value as TOML, on one line."""
    if isinstance(value, Mapping):
        pairs = (f"{toml_key(name)} = {toml_text(one)}" for name, one in value.items())
        return f"{{ {', '.join(pairs)} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(toml_text(one) for one in value)}]"
    return json.dumps(value, ensure_ascii=False, default=str)


def toml_key(name: str) -> str:
    """Write a key, in quotes where TOML needs them."""
    bare = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    return name if bare else json.dumps(name, ensure_ascii=False)


def _keys_at(place: Place) -> Iterator[str]:
    shape: type[Shape] = FileShape
    for name in place:
        if isinstance(name, str):
            shape = next(_shapes_in(shape.model_fields[name].annotation))
    yield from shape.model_fields


def _field_at(place: Place) -> Any:
    shape: type[Shape] = FileShape
    names = [one for one in place if isinstance(one, str)]
    for name in names[:-1]:
        shape = next(_shapes_in(shape.model_fields[name].annotation))
    return shape.model_fields[names[-1]]


def _shapes_in(annotation: Any) -> Iterator[type[Shape]]:
    if isinstance(annotation, type) and issubclass(annotation, Shape):
        yield annotation
    for one in get_args(annotation):
        yield from _shapes_in(one)
