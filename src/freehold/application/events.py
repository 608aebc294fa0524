"""What people do about events: pause a target and let it go on, retry, discard, replay.

*Invariants*: an act and its one entry in the action log commit together: the entry with the first
page that changes anything, so that nothing is changed without one; a target is never told of what
it does not want, on whosoever's word.
*Not here*: looking (`ports.event_insight`), pausing the relay as a whole (`pauses`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from freehold.application.review import Person
from freehold.domain.errors import RefusedByState, UsageError
from freehold.domain.forwards import TargetPolicy, wants
from freehold.ports.event_insight import Standing
from freehold.ports.forwards import ReplayAsked
from freehold.ports.insight import Readable
from freehold.ports.ledger import Act, Ledger, Transaction
from freehold.ports.relay import TargetState

PAGE = 500  # forwards of one transaction
ACT_MOST = 100_000  # forwards of one act; what is beyond takes another
IDS_NOTED = 20  # in the action log


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which events an act is about.

    Attributes:
        full: there are more than one act may change.
    """

    event_ids: Sequence[int]
    full: bool = False

    @property
    def count(self) -> int:
        """Return how many."""
        return len(self.event_ids)


@dataclass(frozen=True, slots=True)
class EventActs:
    """Acts on targets and what they are owed, on one ledger connection.

    Attributes:
        policies: of the configured targets.
    """

    ledger: Ledger
    source: Readable
    policies: Sequence[TargetPolicy]

    # -------------------------------------------------------------------------------- targets

    def target(self, name: str) -> TargetState:
        """Return how a target stands.

        Raises:
            UsageError: nobody knows it.
            RefusedByState: it is configured, and no relay has met it.
        """
        with self.ledger.glance() as tx:
            return self._target(tx, name)

    def _target(self, tx: Transaction, name: str) -> TargetState:
        states = {one.name: one for one in tx.relay.targets()}
        if name in states:
            return states[name]
        if any(one.name == name for one in self.policies):
            raise RefusedByState(
                f"No relay has met the target {name} yet; start `freehold run`, then try again."
            )
        known = ", ".join(states) or "there is none yet"
        raise UsageError(f"There is no target {name!r}; known targets: {known}.")

    def pause(self, name: str, person: Person, until: datetime | None = None) -> None:
        """Pause a target: what it is owed waits.

        Raises:
            RefusedByState: it is paused already.
            UsageError: nobody knows it.
        """
        with self.ledger.transaction() as tx:
            state = self._target(tx, name)
            if state.is_paused(tx.now):
                raise RefusedByState(
                    f"The target {name} is paused already, {pause_of(state)}; end that first with "
                    f"`freehold events resume {name}`."
                )
            if state.pause_id is not None:  # it is over by its own end, and no relay has met it
                tx.relay.resume(name, None)
            if tx.relay.pause(name, person.reason, by=person.name, until=until) is None:
                raise RefusedByState(f"The target {name} was paused at this very moment.")
            ends = "" if until is None else f" until {until.isoformat()}"
            tx.actions.record(_act(person, "pause target", name, "going on", f"paused{ends}"))

    def resume(self, name: str, person: Person) -> TargetState:
        """End the pause of a target, and forget its failures; return how it stood.

        Raises:
            RefusedByState: it is not paused.
            UsageError: nobody knows it.
        """
        with self.ledger.transaction() as tx:
            state = self._target(tx, name)
            if not tx.relay.resume(name, person.name):
                raise RefusedByState(
                    f"The target {name} is not paused; `freehold events targets` shows what is."
                )
            before = f"paused {pause_of(state)}"
            tx.actions.record(_act(person, "resume target", name, before, "going on"))
        return state

    # -------------------------------------------------------------------------------- choosing

    def stuck(self, name: str) -> Chosen:
        """Return all that is dead at a target; of one that left, what waits as well.

        Raises:
            UsageError: nobody knows it.
        """
        with self.ledger.glance() as tx:
            waiting = not self._target(tx, name).active
            found = tx.forwards.find_stuck(name, ACT_MOST + 1, waiting=waiting)
        return Chosen(found[:ACT_MOST], len(found) > ACT_MOST)

    def require_stuck(self, name: str, event_ids: Sequence[int]) -> Chosen:
        """Check that events named by a person are among those that `stuck` would return.

        Raises:
            UsageError: one of them is not.
        """
        states = {Standing.DEAD}
        if not self.target(name).active:
            states |= {Standing.WAITING, Standing.RETRYING}
        ids = list(dict.fromkeys(event_ids))
        with self.source.reading() as reading:
            owed = reading.events.forwards(ids)
        stuck = {
            key
            for key, forwards in owed.items()
            if any(one.target == name and one.standing in states for one in forwards)
        }
        missing = [str(one) for one in ids if one not in stuck]
        if missing:
            one = len(missing) == 1
            raise UsageError(
                f"{'Event' if one else 'Events'} {', '.join(missing)} {'is' if one else 'are'} not "
                f"dead at {name}; `freehold events list --target {name} --state dead` shows what is."
            )
        return Chosen(ids)

    def replayable(self, asked: ReplayAsked) -> Chosen:
        """Return what a target would be told again; changes nothing.

        Raises:
            RefusedByState: it is not configured, or no relay has met it.
            UsageError: nobody knows it.
        """
        policy = self._policy(asked.target)
        ids: list[int] = []
        for page in self._replayable(policy, asked):
            ids += page
            if len(ids) > ACT_MOST:
                return Chosen(ids[:ACT_MOST], full=True)
        return Chosen(ids)

    def _replayable(self, policy: TargetPolicy, asked: ReplayAsked) -> Iterator[list[int]]:
        after_id: int | None = None
        while True:
            with self.ledger.glance() as tx:
                page = tx.forwards.replayable(asked, after_id, PAGE)
            yield [one.id for one in page.events if wants(policy, one)]
            after_id = page.after_id
            if after_id is None:
                return

    def _policy(self, name: str) -> TargetPolicy:
        state = self.target(name)
        found = next((one for one in self.policies if one.name == name), None)
        if found is None or not state.active:
            raise RefusedByState(
                f"The target {name} is not configured any more, so that nobody would tell it; put "
                "it back into freehold.toml and start `freehold run`."
            )
        return found

    # ---------------------------------------------------------------------------------- acting

    def retry(self, name: str, chosen: Chosen, person: Person) -> int:
        """Give dead forwards a fresh set of attempts; return how many.

        Again: nothing is dead any more, and nothing changes.
        Crash: what is done stays done, and is in the action log.

        Raises:
            RefusedByState: the target is not configured.
        """
        self._policy(name)

        def act(tx: Transaction, ids: Sequence[int]) -> Sequence[int]:
            return tx.forwards.retry(name, ids)

        return self._acted(chosen, act, _act(person, "retry events", name, "dead", _noted(chosen)))

    def discard(self, name: str, chosen: Chosen, person: Person) -> int:
        """Set aside what is stuck; return how many. They stay visible until their event is pruned.

        Again, Crash: as `retry` says.
        """
        waiting = not self.target(name).active

        def act(tx: Transaction, ids: Sequence[int]) -> Sequence[int]:
            return tx.forwards.discard(name, ids, person.reason, waiting=waiting)

        before = "dead, or waiting for a target that left" if waiting else "dead"
        return self._acted(
            chosen, act, _act(person, "discard events", name, before, _noted(chosen))
        )

    def replay(self, asked: ReplayAsked, chosen: Chosen, person: Person) -> int:
        """Owe events to a target once more; return how many.

        Again: what has not arrived yet is owed already, and stays.
        Crash: as `retry` says.
        """
        self._policy(asked.target)

        def act(tx: Transaction, ids: Sequence[int]) -> Sequence[int]:
            return tx.forwards.replay(asked.target, ids)

        entry = _act(person, "replay events", asked.target, str(_asked(asked)), _noted(chosen))
        return self._acted(chosen, act, entry)

    def _acted(
        self, chosen: Chosen, act: Callable[[Transaction, Sequence[int]], Sequence[int]], entry: Act
    ) -> int:
        size, done = min(PAGE, self.ledger.batch_limit or PAGE), 0
        for start in range(0, chosen.count, size):
            with self.ledger.transaction() as tx:
                count = len(act(tx, chosen.event_ids[start : start + size]))
                if count and not done:
                    tx.actions.record(entry)
            done += count
        return done


def pause_of(state: TargetState) -> str:
    """Say who paused a target, why, and until when."""
    who = "by itself" if state.paused_by is None else f"by {state.paused_by}"
    ends = (
        "" if state.paused_until is None else f", until {state.paused_until:%Y-%m-%d %H:%M:%S} UTC"
    )
    return f"{who}: {(state.pause_reason or 'no reason was noted').rstrip('.')}{ends}"


def _act(person: Person, action: str, target: str, before: str, after: str) -> Act:
    return Act(person.name, action, f"target {target}", person.reason, before, after)


def _noted(chosen: Chosen) -> str:
    """Say which events an act is about, the first by their ids."""
    first = ", ".join(map(str, chosen.event_ids[:IDS_NOTED]))
    more = chosen.count - IDS_NOTED
    return f"asked for {chosen.count}: {first}" + (f" and {more} more" if more > 0 else "")


def _asked(asked: ReplayAsked) -> str:
    parts = {
        "rule": asked.rule,
        "key": asked.hold_key,
        "since": asked.since and asked.since.isoformat(),
        "until": asked.until and asked.until.isoformat(),
    }
    return ", ".join(f"{name} {value}" for name, value in parts.items() if value) or "all events"
