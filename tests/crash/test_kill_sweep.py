"""The exhaustive kill sweep: a real process is killed at its 1st, 2nd, ... n-th boundary reach.

After each kill another process drains the rest; then every invariant holds, every counter is
right, and running all again changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import product
from typing import Any, TypeVar

import pytest

from freehold.domain.rules import Mode
from freehold.ports.system import Boundary
from freehold.testing.crash import CRASHED, KillAt, Recorder
from freehold.testing.dice import SeededDice
from freehold.testing.faulty_queue import Faults, FaultyBroker, FaultyQueue
from freehold.testing.forking import ChildTrouble, Wire, fork, run
from tests.crash.conftest import prepare
from tests.crash.script import Script

SQLITE_EVERY, POSTGRES_EVERY = 5, 10  # the sample of `make test`: each so-manieth reach
# Not reached by the loops of holds, but by a person (test_killed_while_a_person_requeues), by the
# role `report` (tests/reports: test_conservation, test_sending_kills, test_summaries), and by the
# role `relay` (tests/relay).
NOT_IN_THE_LOOPS = {
    Boundary.REVIEWED,
    Boundary.REPORTS_ASSIGNED,
    Boundary.FACTS_FROZEN,
    Boundary.MAILS_FROZEN,
    Boundary.SEND_CLAIMED,
    Boundary.SEND_BEGUN,
    Boundary.PROVIDER_ANSWERED,
    Boundary.SEND_SETTLED,
    Boundary.SUMMARY_BEGUN,
    Boundary.SUMMARY_TOLD,
    Boundary.EVENTS_ROUTED,
    Boundary.FORWARDS_CLAIMED,
    Boundary.PARCELS_DELIVERED,
    Boundary.FORWARDS_SETTLED,
}
OF_QUEUES = (
    Boundary.READY_READ,
    Boundary.MESSAGES_PUBLISHED,
    Boundary.DELIVERIES_TAKEN,
    Boundary.DELIVERIES_HANDLED,
    Boundary.DELIVERIES_SETTLED,
)
TWICE = (Boundary.RELEASED, Boundary.COMMITTED)  # first kills that a second one follows
LANE_SECONDS_MAX = 290
Case = TypeVar("Case")


def queue_in_process() -> Callable[[], FaultyQueue]:
    """Return what connects to a broker that dies with its process, which is the wiped broker.

    Each child has its own copy: some messages come twice or in any order, and the first is junk.
    """
    broker = FaultyBroker(SeededDice(1), Faults(duplicate=0.3, reorder=0.3))
    broker.accept(b"no message of ours")
    return broker.connect


WAYS: dict[str, dict[str, Any]] = {
    "one transaction": {},
    "leased": {"leased": True},
    "handler": {"handled": True},
    "direct": {"mode": Mode.DIRECT},
    "window": {"mode": Mode.WINDOW},
    "direct in bulk": {"mode": Mode.DIRECT, "alone": True},
    "window in bulk": {"mode": Mode.WINDOW, "alone": True},
    "through a queue": {"connect": queue_in_process()},
    "through a queue, leased": {"connect": queue_in_process(), "leased": True},
}
WAY = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
SAMPLED = {name: way for name, way in WAYS.items() if name != "through a queue, leased"}


def trace_of(script: Script) -> list[Boundary]:
    """Return the boundaries of a run that nobody kills, in order."""

    def whole(wire: Wire) -> list[str]:
        script.reset()
        recorder = Recorder()
        script.run(recorder)
        return [boundary.value for boundary in recorder.reached]

    return [Boundary(value) for value in run(whole).value]


def killed_at(script: Script, nth: int) -> str | None:
    """Run from the beginning and be killed; return the boundary, None when the run ended clean."""

    def victim(wire: Wire) -> None:
        script.reset()
        script.run(KillAt(nth, tell=wire.tell))

    ending = run(victim)
    assert ending.was_killed == (ending.said(CRASHED) is not None)
    return str(ending.said(CRASHED)) if ending.was_killed else None


def wrong_after(script: Script) -> list[str]:
    """Recover in a process of its own; return what is wrong then."""
    try:
        wrong: list[str] = run(lambda _: script.recover()).value
    except ChildTrouble as trouble:
        return [f"the recovery failed: {trouble}"]
    return wrong


def sweep(script: Script, reaches: Iterable[int]) -> list[str]:
    """Kill at each of these reaches; return every failure with its reach and boundary."""
    found = []
    for nth in reaches:
        boundary = killed_at(script, nth)
        assert boundary is not None, f"the run has no reach {nth}"
        found += [f"killed at reach {nth}, {boundary}: {wrong}" for wrong in wrong_after(script)]
    return found


def in_lanes(
    scripts: Sequence[Script],
    cases: Sequence[Case],
    part: Callable[[Script, Sequence[Case]], list[str]],
) -> list[str]:
    """Do the cases in as many processes as there are scripts, each on its own database."""
    children = [
        fork(
            lambda _, script=script, lane=lane: part(script, cases[lane :: len(scripts)]),  # type: ignore[misc]
            LANE_SECONDS_MAX,
        )
        for lane, script in enumerate(scripts)
    ]
    found: list[str] = []
    for child in children:
        with child:
            found += child.end().value
    return found


def releasing(trace: Sequence[Boundary]) -> list[int]:
    """Return the reaches, from 1, of the first transaction that released something."""
    released = trace.index(Boundary.RELEASED)
    first = max(n for n in range(released) if trace[n] is Boundary.HOLDS_LOCKED)
    last = trace.index(Boundary.COMMITTED, released)
    return list(range(first + 1, last + 2))


def sampled(trace: Sequence[Boundary], *, sqlite: bool) -> list[int]:
    """Return the reaches that `make test` kills at; with a queue only those that it brings."""
    if Boundary.READY_READ in trace:
        return [trace.index(one) + 1 for one in OF_QUEUES]
    sample = {*range(1, len(trace) + 1, SQLITE_EVERY if sqlite else POSTGRES_EVERY)}
    return sorted(sample | {*releasing(trace)} if sqlite else sample)


@pytest.mark.parametrize("way", SAMPLED.values(), ids=SAMPLED)
def test_a_sample_of_kills_is_recovered_from(lanes: list[str], way: dict[str, Any]) -> None:
    scripts = [Script(url, **way) for url in lanes]
    trace = trace_of(scripts[0])
    sample = sampled(trace, sqlite=lanes[0].startswith("sqlite"))
    assert not in_lanes(scripts, sample, sweep)
    assert killed_at(scripts[0], len(trace) + 1) is None
    assert not wrong_after(scripts[0])


@WAY
@pytest.mark.proof
def test_every_kill_is_recovered_from(lanes: list[str], way: dict[str, Any]) -> None:
    scripts = [Script(url, **way) for url in lanes]
    trace = trace_of(scripts[0])
    assert not in_lanes(scripts, range(1, len(trace) + 1), sweep)
    assert killed_at(scripts[0], len(trace) + 1) is None


@WAY
@pytest.mark.proof
def test_a_second_kill_during_recovery_is_recovered_from(
    lanes: list[str], way: dict[str, Any]
) -> None:
    scripts = [Script(url, attempts_max=3, **way) for url in lanes]
    trace = trace_of(scripts[0])
    firsts = [nth for nth in releasing(trace) if trace[nth - 1] in TWICE]
    seconds = dict.fromkeys(trace[nth - 1] for nth in releasing(trace))
    assert not in_lanes(scripts, list(product(firsts, seconds)), sweep_twice)


def sweep_twice(script: Script, cases: Iterable[tuple[int, Boundary]]) -> list[str]:
    """Kill at a reach, then the recovery at a boundary; return every failure."""
    found = []
    for first, second in cases:
        killed_at(script, first)
        ending = run(lambda wire, at=second: script.recover(KillAt(1, at, wire.tell)))  # type: ignore[misc]
        again = f"at reach {first}, then while recovering at {second}"
        found += [f"killed {again}: {wrong}" for wrong in wrong_after(script)]
        found += [] if ending.was_killed else [f"not killed {again}"]
    return found


def test_the_script_reaches_every_boundary(sqlite_url: str) -> None:
    url = prepare(sqlite_url)
    reached = {boundary for way in WAYS.values() for boundary in trace_of(Script(url, **way))}
    assert reached == {*Boundary} - NOT_IN_THE_LOOPS
