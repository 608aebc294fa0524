"""docs/how-to/consume-events.md says what the code does: types, fields, the inbox, the order."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from freehold.domain.events import Event, EventType, cloud_event
from freehold.inbox import KEPT_FOR, KEYS_MOST, PRUNED_MOST
from freehold.settings.values_brokers import NatsTargetSettings, RabbitTargetSettings
from freehold.settings.values_report import Secret

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "how-to" / "consume-events.md").read_text()
ZONED = datetime.fromisoformat


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def example() -> dict[str, Any]:
    (text,) = blocks("json")
    return dict(json.loads(text))


def event_of(shown: dict[str, Any]) -> Event:
    data = shown["data"]
    return Event(
        sequence=int(data["sequence"]),
        type=EventType(shown["type"]),
        rule=data["rule"],
        tenant=data["tenant"],
        hold_key=data["key"],
        digest=UUID(data["operation_key"].partition(":")[2]),
        generation=data["generation"],
        due_at=ZONED(data["due_at"]),
        at=ZONED(data["at"]),
        tokens=data["token"],
        carry=data["carry"],
    )


def test_the_example_is_what_is_sent() -> None:
    shown = example()
    sent = json.loads(cloud_event(event_of(shown)))
    assert sent == shown
    assert list(sent) == list(shown)
    assert list(sent["data"]) == list(shown["data"])


def test_every_type_has_its_line() -> None:
    told = re.findall(r"^\| `((?:hold|target)\.[a-z]+\.v\d+)` \|", PAGE, re.MULTILINE)
    assert sorted(told) == sorted(one.value for one in EventType)


@pytest.mark.parametrize("type_", EventType)
def test_every_field_has_its_line(type_: EventType) -> None:
    about = "`target.paused.v1`" if type_ is EventType.TARGET_PAUSED else "a hold's event"
    table = PAGE.split(f"| in `data` of {about} |", 1)[1].split("\n\n", 1)[0]
    told = [
        name
        for line in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)
        for name in re.findall(r"`(\w+)`", line)
    ]
    event = event_of({**example(), "type": type_.value})
    if type_ not in {EventType.HOLD_SKIPPED, EventType.TARGET_PAUSED}:
        told.remove("reason")
    assert sorted(told) == sorted(json.loads(cloud_event(event))["data"])


def test_names_and_numbers_are_those_of_the_code() -> None:
    rabbit, nats = RabbitTargetSettings(Secret("")), NatsTargetSettings(Secret(""))
    assert f"topic exchange `{rabbit.exchange}`" in PAGE
    assert f"subject `{nats.subject}.RULE.TYPE`" in PAGE
    assert f"the stream `{nats.stream}`" in PAGE
    assert f"older than {KEPT_FOR.days} days, at most {PRUNED_MOST:,}" in PAGE
    assert f"up to {KEYS_MOST:,} in one round trip" in PAGE


def test_the_inbox_in_python_does_an_effect_once(tmp_path: Path) -> None:
    names: dict[str, Any] = {}
    exec("\n".join(blocks("python")), names)  # noqa: S102 - the page's own code
    with closing(sqlite3.connect(tmp_path / "mine.db")) as connection:
        names["prepare"](connection)
        connection.execute("create table offers (hold_key text not null)")
        event = {"id": "a", "data": {"key": "4711"}}
        with pytest.raises(sqlite3.IntegrityError):
            names["handle"](connection, {"id": "a", "data": {"key": None}})
        for _ in range(3):
            names["handle"](connection, event)
        assert connection.execute("select hold_key from offers").fetchall() == [("4711",)]
        connection.execute("update freehold_inbox set received_at = '2020-01-01 00:00:00.000'")
        names["clean"](connection)
        connection.rollback()
        assert connection.execute("select count(*) from freehold_inbox").fetchone() == (0,)


def test_the_order_statement_is_that_of_the_files() -> None:
    (shown,) = blocks("sql")
    plain = re.sub(r"values \(.*?\)", "values", shown.strip())
    for name in ("postgresql", "sqlite"):
        text = (ROOT / "examples" / "inbox" / f"{name}.sql").read_text()
        assert plain in re.sub(r"values \(.*?\)", "values", text), name
