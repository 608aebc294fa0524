"""Tables of odd shapes: each is filled with raw SQL, released, and compared with raw SQL."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from freehold.adapters.sql.catalogue import quote
from freehold.domain.due import DueKind, DueSpec
from freehold.domain.names import pack
from freehold.domain.rules import Rule, TableName
from tests.behaviour.till import EXPIRE, HELD, Till

if TYPE_CHECKING:
    from collections.abc import Sequence

    from freehold.domain.rules import Action, Predicate
    from tests.behaviour.place import Place

PLAIN = {
    "postgres": "set timezone = 'UTC'; set datestyle = 'ISO, YMD'; set intervalstyle = 'postgres'; "
    "set extra_float_digits = 1; set bytea_output = 'hex'",
    "sqlite": "select 1",
}
DUE = {"postgres": "timestamptz", "sqlite": "text"}


@dataclass
class Odd:
    """One table whose key, state or fence is odd; every row in it is due.

    Attributes:
        columns: column definitions beside `due`, and beside `status` unless `held` is given.
        rows: the SQL values of those columns, a row each.
        states: the SQL value of the status column in every row.
    """

    name: str
    columns: str
    rows: Sequence[str]
    key: tuple[str, ...] = ("id",)
    fence: tuple[str, ...] = ()
    held: Predicate = HELD
    action: Action = EXPIRE
    still_held: str = "status = 'held'"
    status: str = "status text default 'held'"
    setup: Sequence[str] = field(default_factory=list)


def check(place: Place, odd: Odd, till_options: dict[str, Any] | None = None) -> None:
    """Release every row of a table, and compare keys and tokens with what raw SQL says."""
    host, table = place.host, quote(odd.name)
    for sql in odd.setup:
        host.run(sql)
    host.run(f"create table {table} ({odd.status}, due {DUE[place.dialect]}, {odd.columns})")
    for row in odd.rows:
        host.run(f"insert into {table} select {_status(odd)}, '2026-03-10 11:00:00', {row}")
    keys, tokens = _raw(place, table, odd.key), _raw(place, table, odd.fence)
    spec = DueSpec("due", DueKind.INSTANT)
    if place.dialect == "sqlite":
        spec = DueSpec("due", DueKind.NAIVE, "UTC")
    rule = Rule(odd.name, TableName(odd.name), odd.key, odd.held, spec, odd.action, fence=odd.fence)
    till = Till.open(place, rule, **(till_options or {}))
    assert till.run().released_count == len(odd.rows), odd.name
    assert host.run(f"select count(*) from {table} where {odd.still_held}") == [(0,)], odd.name

    told = host.run(
        f"select hold_key, tokens from {place.prefix}outbox where rule = :rule", rule=odd.name
    )
    expected = [row[0] if len(row) == 1 else pack(row) for row in keys]
    assert sorted(key for key, _ in told) == sorted(expected), odd.name
    said = [_object(text) for _, text in told]
    wanted = [dict(zip(odd.fence, row, strict=True)) for row in tokens] or [{}] * len(odd.rows)
    assert sorted(map(str, said)) == sorted(map(str, wanted)), odd.name
    place.advance(timedelta(minutes=1))
    assert till.run().total == 0, odd.name


def _status(odd: Odd) -> str:
    return odd.status.partition("default ")[2]


def _object(text: Any) -> Any:
    return json.loads(text) if isinstance(text, str) else text


def _raw(place: Place, table: str, columns: Sequence[str]) -> list[list[Any]]:
    if not columns:
        return []
    for setting in PLAIN[place.dialect].split("; "):
        place.host.run(setting)
    if place.dialect == "postgres":
        texts = ", ".join(f"{quote(column)}::text" for column in columns)
    else:
        texts = ", ".join(
            f"case typeof({quote(c)}) when 'blob' then hex({quote(c)}) when 'real' then "
            f"printf('%!.17g', {quote(c)}) else cast({quote(c)} as text) end"
            for c in columns
        )
    return [list(row) for row in place.host.run(f"select {texts} from {table}")]
