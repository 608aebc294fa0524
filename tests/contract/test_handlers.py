"""The Python handler keeps the contract; its limits, and what is said of a wrong name."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import warnings
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from freehold.adapters.handlers import PythonHandler, load_function
from freehold.domain.errors import HandlerFailed, UsageError
from freehold.domain.rules import HandlerSpec
from freehold.testing.contracts.handlers import BATCH, HandlersContract, Make, nothing
from freehold.testing.forking import Wire, fork
from tests.contract.grounds import rule_on

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from freehold.ports.handlers import ExpiredBatch, Handler

RULE = rule_on("sqlite")


@pytest.fixture
def make() -> Make:
    def handler(function: Callable[[ExpiredBatch], object], seconds: float) -> Handler:
        return PythonHandler(RULE, function, seconds=seconds)

    return handler


class TestHandlers(HandlersContract):
    pass


@pytest.mark.timeout(60, method="signal")  # a fork wants no other thread
def test_a_function_that_cannot_be_stopped_ends_the_process() -> None:
    def child(wire: Wire) -> None:
        def hung(rule: str, seconds: float) -> None:
            wire.tell("hung", [rule, seconds])

        handler = PythonHandler(
            RULE, lambda _: time.sleep(60), seconds=0.05, on_hung=hung, grace_seconds=0.05
        )
        handler.run(BATCH, nothing)

    with fork(child) as started:
        assert started.wait_for("hung") == ["r", 0.1]
        _, status = os.waitpid(started.pid, 0)
        started._ended = True
    assert os.waitstatus_to_exitcode(status) == 1


@pytest.mark.parametrize("leave", [lambda: None, sys.exit], ids=["returns", "exits"])
@pytest.mark.timeout(60, method="signal")
def test_a_child_that_a_function_forks_ends_with_the_function(leave: Callable[[], None]) -> None:
    """It would go on as a second worker in the transaction of the first."""
    reader, writer = os.pipe()

    def forks(_: ExpiredBatch) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python 3.12 warns of the watching thread
            pid = os.fork()
        if pid == 0:
            return leave()
        assert os.waitpid(pid, 0)[1] == 0
        return None

    def run(wire: Wire) -> None:
        PythonHandler(RULE, forks, seconds=60).run(BATCH, nothing)
        os.write(writer, b".")

    with fork(run) as started:
        started.end()
    os.close(writer)
    with os.fdopen(reader, "rb") as done:
        assert done.read() == b"."


def test_a_failure_is_placed_in_the_customers_own_file() -> None:
    def function(_: ExpiredBatch) -> None:
        json.loads("{")

    with pytest.raises(HandlerFailed) as failed:
        PythonHandler(RULE, function, seconds=60).run(BATCH, nothing)
    assert re.fullmatch(r"JSONDecodeError at test_handlers.py:\d+", failed.value.place)


def target(text: str) -> HandlerSpec:
    return HandlerSpec(text, timedelta(seconds=1))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("no_such_module:f", "ModuleNotFoundError: No module named 'no_such_module'."),
        ("shop_hooks:missing", "AttributeError: module 'shop_hooks' has no attribute 'missing'."),
        ("shop_hooks:LIMIT", "it is no function."),
        ("shop_hooks:later", "it is async; a handler is a plain function."),
        ("shop_hooks:nothing", "it must take one argument, the batch."),
        ("broken_hooks:f", "SystemExit: 3."),
    ],
)
def test_what_is_wrong_with_a_name_is_one_sentence(
    text: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shop_hooks.py").write_text(
        "LIMIT = 3\ndef nothing(): ...\nasync def later(batch): ...\n"
    )
    (tmp_path / "broken_hooks.py").write_text("raise SystemExit(3)\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in ("shop_hooks", "broken_hooks"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    with pytest.raises(UsageError) as error:
        load_function(target(text))
    assert str(error.value) == f"handler {text} cannot be used: {why}"


def test_a_module_beside_the_settings_is_found(tmp_path: Path) -> None:
    (tmp_path / "shop_hooks.py").write_text("class Hooks:\n    called = staticmethod(print)\n")
    script = (
        "from datetime import timedelta; from freehold.adapters.handlers import load_function; "
        "from freehold.domain.rules import HandlerSpec; "
        "load_function(HandlerSpec('shop_hooks:Hooks.called', timedelta(1)))('found')"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", script],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "found\n"
