"""What the loops keep in the ledger: rule states, ticks, heartbeats, the action log."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime, timedelta

from freehold.adapters.sql.guards import SqlGuards, SqlPauses
from freehold.adapters.sql.session import Runner
from freehold.domain.pauses import RULE_ROLES, Pause
from freehold.ports.ledger import Act, Guard, RuleCondition, RuleState, Tick

STALE_AFTER = timedelta(seconds=30)  # DESIGN section 5: then any scheduler takes the tick over
CHAIN_START = "0" * 64
_WRITTEN = (
    *("rule", "fingerprint", "condition", "reason", "batch_limit", "leased"),
    *("probe_at", "probe_count", "crash_count", "scan_paused"),
)


class SqlRuleStates:
    """Implements `ports.ledger.RuleStates`."""

    def __init__(self, runner: Runner, now: datetime) -> None:
        self._sql = runner
        self._now = now

    def read(self, rule: str) -> RuleState | None:
        """Return the rule's state, or None for a rule never met."""
        rows = self._sql.rows("read_rule", rule=rule)
        if not rows:
            return None
        name, fingerprint, condition, reason, batch, leased, probe_at, *rest = rows[0]
        instant = self._sql.session.instant
        return RuleState(
            rule=name,
            fingerprint=fingerprint,
            condition=RuleCondition(condition),
            reason=reason,
            batch_limit=batch,
            leased=bool(leased),
            probe_at=instant(probe_at),
            probe_count=rest[0],
            crash_count=rest[1],
            scan_paused=rest[2],
            scanned_at=instant(rest[3]),
            unsettled_at=instant(rest[4]),
            guards=self._guards(rule) if rest[5] else (),
            pauses=self._pauses(rule) if rest[6] else (),
        )

    def _guards(self, rule: str) -> tuple[Guard, ...]:
        """Read the guards of a rule, which the state says are there."""
        standing = SqlGuards(self._sql, self._now).standing()
        return tuple(one for one in standing if one.rule in (None, rule))

    def _pauses(self, rule: str) -> tuple[Pause, ...]:
        found = SqlPauses(self._sql, self._now).open()
        ours = (one for one in found if one.role in RULE_ROLES)
        return tuple(one for one in ours if one.rule in (None, rule))

    def write(self, state: RuleState) -> None:
        """Write the whole state."""
        values = {name: getattr(state, name) for name in _WRITTEN}
        values["condition"] = state.condition.value
        self._sql.count("write_rule", **values, now=self._now)

    def note_pass(self, rule: str, began_at: datetime, *, whole: bool) -> None:
        """Note that a reading of the due rows ended."""
        self._sql.count("note_pass", rule=rule, began_at=began_at, whole=whole)

    def unsettle(self, rule: str | None) -> None:
        """Let overdue rows turn up without alarm until they were all read."""
        self._sql.count("unsettle", rule=rule or "", now=self._now)

    def lock(self, rule: str) -> RuleState | None:
        """Read the state and keep others from writing it until the transaction ends."""
        self._sql.rows("lock_rule", rule=rule)
        return self.read(rule)

    def alone(self, rule: str) -> bool:
        """Try to be the only transaction that runs this rule's companions."""
        return bool(self._sql.rows("alone", rule=rule)[0][0])


class SqlTicks:
    """Implements `ports.ledger.Ticks`."""

    def __init__(self, runner: Runner, now: datetime) -> None:
        self._sql = runner
        self._now = now

    def start(
        self,
        schedule: str,
        logical_time: datetime,
        runner: str,
        host_at: datetime,
        *,
        rolled_up: bool = False,
    ) -> Tick | None:
        """Begin a run, or take over one that never finished."""
        key = {"schedule": schedule, "logical_time": logical_time}
        run = {**key, "now": self._now, "host_at": host_at, "runner": runner}
        rows = self._sql.rows("start_tick", **run)
        if rows:
            return Tick(rows[0][0], schedule, logical_time)
        if rolled_up and (rows := self._sql.rows("rejoin_tick", **run)):
            return Tick(rows[0][0], schedule, logical_time, run=rows[0][1])
        rows = self._sql.rows("take_over_tick", **run, stale_before=self._now - STALE_AFTER)
        if not rows:
            return None
        return Tick(rows[0][0], schedule, logical_time, taken_over=True, run=rows[0][1])

    def keep(self, tick: Tick) -> bool:
        """Say that a run goes on; False when it is somebody else's by now."""
        return self._sql.count("keep_tick", id=tick.id, run=tick.run, now=self._now) == 1

    def finish(self, tick: Tick, found_count: int, new_count: int, outcome: str) -> None:
        """Close the run."""
        self._sql.count(
            "finish_tick",
            id=tick.id,
            run=tick.run,
            found_count=found_count,
            new_count=new_count,
            outcome=outcome,
            now=self._now,
        )

    def last(self, schedule: str) -> datetime | None:
        """Return the newest logical time that finished."""
        rows = self._sql.rows("last_tick", schedule=schedule)
        return self._sql.session.instant(rows[0][0]) if rows else None

    def oldest_unfinished(self, schedule: str) -> datetime | None:
        """Return the oldest logical time that began long ago and never finished."""
        stale_before = self._now - STALE_AFTER
        rows = self._sql.rows("unfinished_tick", schedule=schedule, stale_before=stale_before)
        return self._sql.session.instant(rows[0][0]) if rows else None


class SqlWorkers:
    """Implements `ports.ledger.Workers`."""

    def __init__(self, runner: Runner, now: datetime) -> None:
        self._sql = runner
        self._now = now

    def beat(
        self, worker: str, roles: str, host: str, pid: int, host_at: datetime, in_hand: str | None
    ) -> None:
        """Say that the worker lives."""
        self._sql.count(
            "beat",
            worker=worker,
            roles=roles,
            host=host,
            pid=pid,
            in_hand=in_hand,
            host_at=host_at,
            now=self._now,
        )

    def leave(self, worker: str) -> None:
        """Take the worker's row out."""
        self._sql.count("leave", worker=worker)

    def count(self, role: str) -> int:
        """Count the processes with a role."""
        return int(self._sql.rows("count_workers", role=role)[0][0])

    def forget_silent(self, since: datetime) -> Sequence[str]:
        """Take out workers silent since then; return what each had in hand."""
        return [row[0] for row in self._sql.rows("forget_silent", since=since) if row[0]]


class SqlActions:
    """Implements `ports.ledger.Actions`."""

    def __init__(self, runner: Runner, now: datetime) -> None:
        self._sql = runner
        self._now = now

    def record(self, act: Act) -> None:
        """Append an act to the chain."""
        self._sql.rows("lock_chain")
        rows = self._sql.rows("last_act_hash")
        previous = rows[0][0] if rows else CHAIN_START
        self._sql.count(
            "record_act",
            **asdict(act),
            now=self._now,
            previous_hash=previous,
            hash=act_hash(previous, self._now, act),
        )


def act_hash(previous: str, at: datetime, act: Act) -> str:
    """Return the hash that ties an act to the one before it."""
    text = json.dumps([previous, at.isoformat(), *asdict(act).values()], ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()
