"""Guards: freeze releases while the database's clock cannot be trusted, until it can, or a person says so.

A connection compares the database's clock with the host's monotonic one at each transaction that may
release; its first reading is compared with what this host noted at ticks and heartbeats, else with
the newest note of any host. A jump back freezes too: leases and ticks would be read wrongly.

*Invariants*: a guard trips before the first release that it is to prevent; a person's release is in
the action log. *Not here*: the guard against mass release (`masses`), the arithmetic
(`domain.clocks`). *Cannot be seen*: both clocks moved together while no process of this host ran.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from freehold.application.spans import span
from freehold.domain.clocks import (
    ClockReading,
    is_jump,
    moved_apart,
    moved_by_notes,
    moved_since,
)
from freehold.domain.errors import RefusedByState
from freehold.ports.ledger import Act, Guard, GuardKind, Ledger, Transaction
from freehold.ports.telemetry import GuardReleased, GuardTripped, Telemetry

AGREES_AGAIN = "the clocks agree again"
SLACK = timedelta(seconds=10)  # between two connections that see the same jump


def watch_clock(tx: Transaction) -> bool:
    """Compare the clocks, and freeze all rules where the database's has jumped.

    Costs no statement while all is well.

    Returns:
        False while the clock cannot be trusted.
    """
    now, base = tx.clocks.reading, tx.clocks.base
    if now is None:
        return True
    if base is not None and not is_jump(moved_since(base, now)):
        trusted = True
    else:
        guard = tx.guards.newest(GuardKind.CLOCK)
        stands = guard is not None and guard.released_at is None
        trusted = _after_doubt(tx, now, guard, stands=stands)
    if trusted:
        tx.clocks.trust()
    return trusted


def clock_agrees(tx: Transaction) -> bool:
    """Tell whether the database's clock goes on from what services noted; trips nothing.

    For a transaction that is another application's: a guard that it tripped would go with it, and
    whoever serves the rules sees the jump for himself.
    """
    if tx.clocks.reading is None:
        return True
    moved, _ = moved_by_notes(tx.clocks.noted(), tx.clocks.reading)
    return not is_jump(moved)


def _after_doubt(tx: Transaction, now: ClockReading, guard: Guard | None, *, stands: bool) -> bool:
    """Judge a first reading, or one that seems to have jumped."""
    base = tx.clocks.base
    notes = tx.clocks.noted() if base is None else []
    if base is None:
        moved, apart = moved_by_notes(notes, now, vouched=not stands)
    else:
        moved, apart = moved_since(base, now), is_jump(moved_apart(base, now))
    if stands and guard is not None:
        if base is not None:
            return bool(guard.figures.get("apart")) and not apart
        tripped_here = guard.figures.get("host") == now.host
        return tripped_here and bool(notes) and not is_jump(moved) and _may_be_over(guard)
    if not is_jump(moved) or (guard is not None and base is not None and _is_of(guard, base)):
        return True
    _trip(tx, now, moved, apart=apart)
    return False


def _may_be_over(guard: Guard) -> bool:
    """Tell whether a first reading on its host that looks right clears the guard.

    A jump that took the host's clock along looks right to whoever did not see it: only a connection
    that did, or a person, may clear it. One back is over when the clock has caught up.
    """
    went_back = float(guard.figures.get("moved_seconds", 0)) < 0
    return bool(guard.figures.get("apart")) or went_back


def _is_of(guard: Guard, base: ClockReading) -> bool:
    """Tell whether a guard that was released tripped over the jump that lies behind this base."""
    moved = timedelta(seconds=float(guard.figures.get("moved_seconds", 0)))
    return guard.tripped_at - moved >= base.database_at - SLACK


def _trip(tx: Transaction, now: ClockReading, moved: timedelta, *, apart: bool) -> None:
    way = "ahead" if moved > timedelta(0) else "back"
    whose = "against the clock" if apart else "against what was known"
    reason = (
        f"the database's clock moved {span(abs(moved))} {way} {whose} of host {now.host}; nothing "
        "is released until it agrees again, or until somebody accepts it: look at "
        "`freehold guard show`, then run `freehold guard release --all --by NAME --reason TEXT`"
    )
    figures = {"moved_seconds": moved.total_seconds(), "apart": apart, "host": now.host}
    tx.guards.trip(GuardKind.CLOCK, None, reason, figures)


def lift_clock_guard(tx: Transaction, guards: Sequence[Guard]) -> bool:
    """Release the clock's guard, after a reading that was trusted; False when none stands."""
    clock = next((one for one in guards if one.kind is GuardKind.CLOCK), None)
    if clock is None or tx.clocks.reading is None:
        return False
    return tx.guards.release(clock.id, None, AGREES_AGAIN)


def note_clock(tx: Transaction) -> None:
    """Note what the clocks say, for processes to come; a clock in doubt is not noted."""
    if watch_clock(tx):
        tx.clocks.note()


@dataclass(slots=True)
class GuardTeller:
    """Tells each guard once when it trips, and once when it is released."""

    telemetry: Telemetry
    _told: dict[int, Guard] = field(default_factory=dict)

    def tell(self, standing: Sequence[Guard]) -> None:
        """Tell what changed since the last call."""
        now = {one.id: one for one in standing}
        for number in now.keys() - self._told.keys():
            self.telemetry.tell(GuardTripped(now[number].kind.value, now[number].rule))
        for number in self._told.keys() - now.keys():
            gone = self._told[number]
            self.telemetry.tell(GuardReleased(gone.kind.value, gone.rule))
        self._told = now


def release_guards(ledger: Ledger, rule: str | None, actor: str, reason: str) -> Sequence[Guard]:
    """Release the guards of one rule, or every guard that stands, on a person's word.

    A jump of the clock is accepted with it, and what turned up overdue may be released.

    Args:
        rule: None releases all.

    Returns:
        The guards released.

    Raises:
        RefusedByState: none stands.
    """
    with ledger.transaction() as tx:
        standing = tx.guards.standing()
        chosen = [one for one in standing if rule is None or one.rule == rule]
        if not chosen:
            raise RefusedByState(_nothing(rule, standing))
        for one in chosen:
            _release(tx, one, actor, reason)
        for (
            one
        ) in chosen:  # behind all row locks: the log's chain is locked by whoever writes to it
            tx.actions.record(_act(one, actor, reason))
    return chosen


def _release(tx: Transaction, guard: Guard, actor: str, reason: str) -> None:
    tx.guards.release(guard.id, actor, reason)
    if guard.kind is GuardKind.CLOCK:
        tx.clocks.forget()
    tx.rules.unsettle(guard.rule)


def _act(guard: Guard, actor: str, reason: str) -> Act:
    subject = guard.rule or "all rules"
    return Act(actor, "guard release", subject, reason, guard.reason, "released")


def _nothing(rule: str | None, standing: Sequence[Guard]) -> str:
    if rule is not None and any(one.rule is None for one in standing):
        return (
            f"No guard stands for rule {rule} alone, but one for all rules; release it with "
            "`freehold guard release --all`."
        )
    whom = "No guard stands" if rule is None else f"No guard stands for rule {rule}"
    return f"{whom}; `freehold guard show` lists those that do."
