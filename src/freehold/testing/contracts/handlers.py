"""The contract of `ports.handlers.Handler`: one call, under a time limit."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

from freehold.domain.errors import HandlerFailed, HandlerTimedOut
from freehold.ports.handlers import ExpiredBatch, Handler
from freehold.testing.contracts.ground import NOW, raised

BATCH = ExpiredBatch("r", None, NOW, ())
LONG_SECONDS = 60.0


class Make(Protocol):
    """Makes a handler of a function."""

    def __call__(self, function: Callable[[ExpiredBatch], object], seconds: float) -> Handler:
        """Return it with that time limit."""
        ...


def nothing() -> None:
    """Cancel nothing."""


class HandlersContract:
    """Give the fixture `make`."""

    def test_the_function_is_called_once_with_the_batch(self, make: Make) -> None:
        given: list[ExpiredBatch] = []
        make(given.append, LONG_SECONDS).run(BATCH, nothing)
        assert given == [BATCH]

    def test_whatever_it_raises_is_the_cause(self, make: Make) -> None:
        for error in (ValueError("v"), SystemExit(3), KeyboardInterrupt(), GeneratorExit()):

            def function(_: ExpiredBatch, error: BaseException = error) -> None:
                raise error

            failed = _failure(make(function, LONG_SECONDS))
            assert failed.__cause__ is error
            assert str(failed).startswith(type(error).__name__)

    def test_a_failure_that_cannot_say_its_text_is_told_by_its_type(self, make: Make) -> None:
        class Mute(Exception):
            def __str__(self) -> str:
                raise SystemExit(3)

        def mute(_: ExpiredBatch) -> None:
            raise Mute

        def unwritable(_: ExpiredBatch) -> None:
            raise ValueError("\ud800")

        assert str(_failure(make(mute, LONG_SECONDS))) == "Mute"
        assert str(_failure(make(unwritable, LONG_SECONDS))) == "ValueError: ?"

    def test_two_failures_are_alike_by_type_and_place_not_by_text(self, make: Make) -> None:
        def function(batch: ExpiredBatch) -> None:
            if batch.rule == "other":
                raise ValueError(batch.rule)
            raise ValueError(batch.rule)

        def likeness(rule: str) -> str:
            handler = make(function, LONG_SECONDS)
            return _failure(handler, ExpiredBatch(rule, None, NOW, ())).likeness

        assert likeness("one") == likeness("two") != likeness("other")
        assert "two" not in likeness("two")

    def test_a_function_that_computes_is_stopped_at_its_limit(self, make: Make) -> None:
        def forever(_: ExpiredBatch) -> None:
            while True:
                pass

        with raised(HandlerTimedOut):
            make(forever, 0.05).run(BATCH, nothing)

    def test_a_function_that_waits_for_a_statement_is_stopped_by_cancel(self, make: Make) -> None:
        cancelled = threading.Event()

        def wait(_: ExpiredBatch) -> None:
            cancelled.wait()

        with raised(HandlerTimedOut):
            make(wait, 0.05).run(BATCH, cancelled.set)

    def test_one_that_goes_on_after_its_limit_has_timed_out_all_the_same(self, make: Make) -> None:
        def stubborn(_: ExpiredBatch) -> None:
            try:
                while True:
                    pass
            except BaseException:  # noqa: BLE001, S110 - this is what is tried
                pass

        with raised(HandlerTimedOut):
            make(stubborn, 0.05).run(BATCH, nothing)

    def test_nothing_interrupts_after_the_end(self, make: Make) -> None:
        for _ in range(200):
            cancels: list[bool] = []
            try:
                make(lambda _: sum(range(2_000)), 0.0002).run(
                    BATCH,
                    lambda cancels=cancels: cancels.append(True),  # type: ignore[misc]
                )
            except HandlerTimedOut:
                assert cancels == [True]
            else:
                assert cancels == []

    def test_it_says_how_long_the_database_must_bear_with_it(self, make: Make) -> None:
        assert make(lambda _: None, 3.0).seconds_max >= 3


def _failure(handler: Handler, batch: ExpiredBatch = BATCH) -> HandlerFailed:
    """Run a handler that fails; return how."""
    try:
        handler.run(batch, nothing)
    except HandlerFailed as failed:
        return failed
    raise AssertionError("the handler was to fail")
