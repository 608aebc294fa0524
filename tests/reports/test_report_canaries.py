"""No secret is written anywhere, and no recipient is named in a log: a provider says all it got back."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from freehold.bootstrap import sqlite_path
from freehold.testing.contracts.transports import SECRET
from tests.e2e.command import PROGRAM, environment
from tests.e2e.inprocess import Program
from tests.reports.desk import HARBOUR, Desk
from tests.reports.model_server import ModelServer
from tests.reports.resend_double import ResendDouble

if TYPE_CHECKING:
    from tests.reports.http_providers import Asked, Said

MODEL_KEY = "sk-canary-of-the-model"
TABLES = """[report.resend]
url = "{url}"
key_file = "key"
[summary]
url = "{model}"
model = "m"
"""
LOGS = '[logs]\nlevel = "debug"\n'
COMMANDS = (
    ("config", "show", "--origin"),
    ("config", "check"),
    ("doctor",),
    ("status",),
    ("report", "list"),
    ("report", "run"),
    ("tenant", "list"),
    ("audit",),
)


class Parrot(ResendDouble):
    """A provider that refuses every mail, and says all that it got in its refusal."""

    def sending(self, asked: Asked) -> Said:
        said = f"{dict(asked.headers)} {asked.body.decode()}"
        place = said.index(HARBOUR.recipients[0])
        return 422, {"name": "invalid_parameter", "message": f"{said[:300]} {said[place:]}"}


def test_neither_keys_nor_recipients_are_said(
    tmp_path: Path,
    sqlite_url: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "key").write_text(SECRET)
    monkeypatch.setenv("FREEHOLD_SUMMARY__KEY", MODEL_KEY)
    freehold = Program(tmp_path, monkeypatch, capsys)
    with Parrot.started() as double, ModelServer() as model:
        tables = TABLES.format(url=double.url, model=model.url)
        desk = Desk(freehold, sqlite_url, tables, more=LOGS)
        desk.add(HARBOUR)
        desk.release("harbour")
        log = tmp_path / "log"
        with log.open("wb") as stream:
            service = subprocess.Popen(
                [PROGRAM, "run"],
                cwd=tmp_path,
                env=environment(FREEHOLD_SUMMARY__KEY=MODEL_KEY),
                stdout=stream,
                stderr=stream,
            )
        try:
            double.wait_for_asked()
            command_line = Path(f"/proc/{service.pid}/cmdline").read_bytes()
        finally:
            service.terminate()
            service.wait(timeout=30)
        shown = "".join(
            ended.out + ended.err for ended in (desk.freehold(*one) for one in COMMANDS)
        )
    assert '"state":"refused"' in log.read_text("utf-8").replace(": ", ":")
    kept = sqlite_path(sqlite_url).read_bytes()
    assert b"refused: 422" in kept
    for secret in (SECRET, MODEL_KEY):
        for place in (kept, command_line, log.read_bytes(), shown.encode()):
            assert secret.encode() not in place
    assert HARBOUR.recipients[0] not in log.read_text("utf-8")
