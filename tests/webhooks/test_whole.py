"""From a hold that lapses to a customer's endpoint, with the commands as they are."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from standardwebhooks.webhooks import Webhook

from tests.e2e.inprocess import Program
from tests.e2e.shop import make_shop
from tests.webhooks.receiver import SECRET, Certificates, Receiver, answering

TARGET = """
[[targets]]
name = "crm"
kind = "webhook"
url = "{url}"
secret_file = "crm.secret"
ports = [{port}]
allow = ["127.0.0.0/8", "::1/128"]
ca_file = "{ca_file}"
types = ["hold.expired.v1"]
"""


def lapse_one_more(file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("update carts set hold_until = '2026-01-01 11:00:00' where id = 100000")
        connection.commit()


def test_a_lapsed_hold_is_told_once_and_a_goodbye_is_heard(
    certificates: Certificates,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    freehold = Program(tmp_path, monkeypatch, capsys)
    file = tmp_path / "freehold.db"
    make_shop(tmp_path, f"sqlite:///{file}", due_count=7)
    (tmp_path / "crm.secret").write_text(SECRET + "\n")
    with Receiver(certificates.context("localhost")).serving() as receiver:
        with (tmp_path / "freehold.toml").open("a") as settings:
            url = receiver.url("/hook?key=canary", host="localhost")
            settings.write(TARGET.format(url=url, port=receiver.port, ca_file=certificates.file))
        said = [freehold("db", "upgrade"), freehold("run", "--until-idle"), freehold("relay")]
        assert [one.code for one in said] == [0, 0, 0], said
        events = [Webhook(SECRET).verify(one.body, one.headers) for one in receiver.got]
        assert sorted(int(one["data"]["key"]) for one in events) == list(range(7))
        assert {one["type"] for one in events} == {"hold.expired.v1"}
        assert freehold("relay").code == 0
        assert len(receiver.got) == 7

        receiver.play = answering(410)
        lapse_one_more(file)
        said += [freehold("run", "--until-idle"), freehold("relay"), freehold("relay")]
        assert len(receiver.got) == 8  # paused: it is not asked again
    assert not [one for one in said if "canary" in one.out + one.err]
