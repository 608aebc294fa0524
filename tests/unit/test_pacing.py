"""An idle worker waits longer and longer, but not past the next due."""

from __future__ import annotations

from freehold.entrypoints.pacing import FIRST_SECONDS, IdlePause


def test_pauses_double_up_to_the_poll_and_are_short_again_after_work() -> None:
    pause = IdlePause(0.05, lambda: 1.0)
    waits = [pause.after(busy=False) for _ in range(4)]
    assert waits == [FIRST_SECONDS, FIRST_SECONDS * 2, FIRST_SECONDS * 4, 0.05]
    assert pause.after(busy=True) == 0
    assert pause.after(busy=False) == FIRST_SECONDS


def test_a_pause_ends_when_a_hold_falls_due_and_quick_looks_follow() -> None:
    due_in = iter([1.0, 1.0, 0.015, 1.0, 1.0])
    pause = IdlePause(1.0, lambda: next(due_in))
    waits = [pause.after(busy=False) for _ in range(5)]
    assert waits == [FIRST_SECONDS, FIRST_SECONDS * 2, 0.015, FIRST_SECONDS, FIRST_SECONDS * 2]


def test_a_stream_of_dues_never_makes_the_worker_spin() -> None:
    pause = IdlePause(1.0, lambda: 0.0)
    assert [pause.after(busy=False) for _ in range(3)] == [FIRST_SECONDS] * 3
