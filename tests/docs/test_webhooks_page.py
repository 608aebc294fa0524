"""The how-to on webhooks: its settings load, its secret signs, its receiver takes what is sent."""

from __future__ import annotations

import os
import re
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from freehold.adapters.webhook.connecting import CONNECT_SECONDS
from freehold.adapters.webhook.signing import Signer, webhook_id
from freehold.adapters.webhook.target import ANSWER_BYTES_MAX
from freehold.bootstrap.brokers import open_targets
from freehold.domain.forwards import WEBHOOK_DELAYS, TargetKind, TargetPolicy
from freehold.domain.forwards_next import PROBE_FIRST, PROBE_MOST, WAIT_MOST
from freehold.inbox import create_table_sql
from freehold.settings import load_settings
from freehold.settings.values_brokers import WEBHOOK_PORTS, WebhookSettings
from freehold.settings.values_report import Secret
from tests.e2e.shop import make_shop
from tests.unit.test_settings import LEAST

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "webhooks.md").read_text()
BODY = b'{"specversion":"1.0","id":"a:b:1:hold.expired.v1","data":{"key":"7"}}'


def blocks(language: str) -> list[str]:
    return re.findall(rf"^ *```{language}\n(.*?)^ *```", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture
def secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The secret that the page's commands make."""
    monkeypatch.chdir(tmp_path)
    script = blocks("sh")[1]
    subprocess.run(["bash", "-euo", "pipefail", "-c", script], check=True, timeout=20)
    return Path("secrets/crm").read_text().strip()


def test_the_settings_open_targets(secret: str) -> None:
    crm, shop, rotated = blocks("toml")
    Path("secrets/shop").write_text(secret)
    Path("secrets/crm-new").write_text(secret)
    shop = re.sub("^ca_file.*$", "", shop, flags=re.MULTILINE)
    Path("freehold.toml").write_text(crm + shop + LEAST)
    targets = open_targets(load_settings(None, {}))
    assert [str(one.target) for one in targets] == [
        "WebhookTarget('crm.example.com')",
        "WebhookTarget('shop.internal.example')",
    ]
    crm = crm.replace('secret_file = "secrets/crm"\n', rotated)
    Path("freehold.toml").write_text(crm + LEAST)
    (target,) = open_targets(load_settings(None, {}))
    assert target.target.batch_most


@pytest.mark.proof
def test_the_desk_is_told_of_what_is_released_and_what_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, look, again = blocks("sh")[2:]
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        make = make.replace("8088", str(probe.getsockname()[1]))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("USER", "ann")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    make_shop(tmp_path, "sqlite:///shop.db", due_count=2)
    run("freehold db upgrade; freehold run --until-idle")
    run(make)
    with sqlite3.connect("shop.db") as shop:
        shop.execute("update carts set hold_until = '2026-01-01 10:00:00' where id = 100000")
    shop.close()
    receiving = subprocess.Popen([sys.executable, "receive.py"], stdout=subprocess.PIPE, text=True)
    try:
        assert receiving.stdout is not None
        assert receiving.stdout.readline() == "listening\n"
        assert "delivered 1 event\n" in run(look)
        assert receiving.stdout.readline() == "hold.expired.v1 cart 100000\n"
        assert "3 events would be told" in run(again)
        told = {receiving.stdout.readline() for _ in range(3)}
    finally:
        receiving.kill()
        receiving.communicate()
    assert told == {f"hold.expired.v1 cart {key}\n" for key in (0, 1, 100000)}


def run(script: str) -> str:
    """Run a script of the page and return what it printed."""
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        check=True,
        timeout=60,
        stdout=subprocess.PIPE,
        text=True,
    )
    return done.stdout


def receiver() -> Callable[..., int]:
    (source,) = blocks("python")
    names: dict[str, Any] = {}
    exec(compile(source, "webhooks.md", "exec"), names)  # noqa: S102 -- the page's own example
    return names["receive"]  # type: ignore[no-any-return]


def test_the_receiver_takes_an_event_once(secret: str) -> None:
    receive = receiver()
    with closing(sqlite3.connect("customer.db")) as connection:
        connection.executescript(create_table_sql("sqlite"))
        connection.execute("create table offers (hold_key text)")
        headers = Signer([secret]).headers("a:b:1:hold.expired.v1", BODY, datetime.now(UTC))
        for _ in range(2):
            assert receive(headers, BODY, secret, connection) == 204
        forged = BODY.replace(b'"7"', b'"8"')
        assert receive(headers, forged, secret, connection) == 401
        assert connection.execute("select * from offers").fetchall() == [("7",)]


def test_the_figures_are_those_of_the_code() -> None:
    usual = WebhookSettings(Secret("url"), Secret("secret"))
    delays = [int(one.total_seconds()) for one in WEBHOOK_DELAYS]
    assert delays == [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400]
    assert "5 s, 5 min, 30 min, 2 h, 5 h, 10 h and 14 h" in PAGE
    assert (usual.timeout.total_seconds(), "`timeout` (15 s)" in PAGE) == (15, True)
    assert (usual.concurrency, "`concurrency` (8)" in PAGE) == (8, True)
    assert (WEBHOOK_PORTS, "(443 and 8443)" in PAGE) == ((443, 8443), True)
    assert (ANSWER_BYTES_MAX, "4 kB" in PAGE) == (4_096, True)
    assert (WAIT_MOST.total_seconds(), "an hour at most" in PAGE) == (3_600, True)
    assert TargetPolicy("crm", TargetKind.WEBHOOK).pause_after.days == 1
    assert (PROBE_FIRST.seconds, PROBE_MOST.seconds, "1, 2, 4 ... 60" in PAGE) == (1, 60, True)
    assert CONNECT_SECONDS < 15
    assert len(webhook_id("x")) == len("msg_") + 32
