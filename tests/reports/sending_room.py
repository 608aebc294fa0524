"""A room where reports are sent: three reports of two recipients each, a provider, and a clock.

Everything that senders in other processes need is made there; what they left is judged from the raw
tables and the provider's own file.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from freehold.adapters.sql.ledger import SqlLedger
from freehold.adapters.sql.postgres import PostgresSession
from freehold.adapters.sql.sqlite import SqliteSession
from freehold.adapters.system import Onwards, StopRequest, SystemClock
from freehold.application.reporting.attempts import LEASE
from freehold.application.reporting.sending import LOOK_UPS, Sender, Sent
from freehold.bootstrap import sqlite_path
from freehold.domain.reports import ReportPolicy
from freehold.domain.sending import Repeat, TransportPromise
from freehold.ports.telemetry import UNHEARD
from freehold.testing.backdoor import BackDoor
from freehold.testing.clock import SetClock, SteadyDice
from freehold.testing.contracts.ground import NOW
from freehold.testing.forking import run
from freehold.testing.mailbox import DeclaredProvider, Fault, Mailbox
from freehold.testing.postroom import post
from tests.contract.grounds import Agreeing

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from freehold.adapters.sql.session import Session
    from freehold.ports.system import Checkpoint
    from freehold.ports.telemetry import Telemetry

IS_LONG = os.environ.get("FREEHOLD_PROOF") == "long"
ONWARDS = Onwards()
HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
ATTEMPT_SECONDS = 1.0
OVER = LEASE + timedelta(seconds=LOOK_UPS * ATTEMPT_SECONDS)  # the longest lease there is
NONE = TransportPromise("none", attempt_seconds_max=ATTEMPT_SECONDS)
REPLAYS = replace(NONE, name="replays", repeat=Repeat.REPLAYS, window=24 * HOUR)
CONFLICTS = replace(NONE, name="conflicts", repeat=Repeat.CONFLICTS, window=24 * HOUR)
SHORT = replace(CONFLICTS, name="short", window=5 * MINUTE)
LOOKS = replace(NONE, name="looks", looks_up=True, indexing=5 * MINUTE)
CLASSES = {one.name: one for one in (NONE, REPLAYS, CONFLICTS, SHORT, LOOKS)}
RECIPIENTS = {"harbour": ["a@x", "b@x"], "hill": ["c@x", "d@x"], "mill": ["e@x", "f@x"]}
REFUSED = "d@x"  # of these one is refused, and one met by trouble first
BUSY = "b@x"
Some = TypeVar("Some")
TABLES = ("send_attempt", "send", "mail", "report", "report_calendar")


@dataclass
class Room:
    """One database, one provider; senders come and go."""

    url: str
    folder: Path
    promise: TransportPromise = NONE
    on_unknown: Literal["review", "resend"] = "review"
    clock: SetClock = field(default_factory=lambda: SetClock(NOW))
    telemetry: Telemetry = UNHEARD
    recipients: Mapping[str, Sequence[str]] = field(default_factory=lambda: RECIPIENTS)
    _opened: list[SqlLedger] = field(default_factory=list)

    @property
    def mailbox(self) -> Mailbox:
        """The provider's own file."""
        return Mailbox(self.folder / "mailbox.db")

    def session(self) -> Session:
        """Return a session of this database under the room's clock."""
        if self.url.startswith("sqlite"):
            path = str(sqlite_path(self.url))
            return SqliteSession(path, SystemClock(), clock=self.clock, considerate=False)
        return PostgresSession(self.url, clock=self.clock)

    def ledger(self, checkpoint: Checkpoint = ONWARDS, session: Session | None = None) -> SqlLedger:
        """Open a ledger."""
        ledger = SqlLedger(session or self.session(), checkpoint)
        self._opened.append(ledger)
        return ledger

    def close(self) -> None:
        """Close what was opened."""
        while self._opened:
            self._opened.pop().close()

    def sender(
        self,
        checkpoint: Checkpoint = ONWARDS,
        ledger: SqlLedger | None = None,
        stop: StopRequest | None = None,
    ) -> Sender:
        """Return a sender."""
        return Sender(
            ledger=ledger or self.ledger(checkpoint),
            transport=self.provider(),
            policy=ReportPolicy("Reports <r@x>", on_unknown=self.on_unknown),
            dice=SteadyDice(),
            checkpoint=checkpoint,
            pause=stop or StopRequest(),
            clock=Agreeing(self.clock),
            telemetry=self.telemetry,
        )

    def provider(self) -> DeclaredProvider:
        """Return the way to the mailbox."""
        return DeclaredProvider(self.mailbox, self.promise, lambda: self.clock.instant)

    # --------------------------------------------------------------------------- what happens

    def fill(self) -> None:
        """Empty the room, and write its mails anew."""
        (self.folder / "mailbox.db").unlink(missing_ok=True)
        with BackDoor(self.url) as door:
            door.wait_until_alone()
            door.script("".join(f"delete from {{s}}{name}; " for name in TABLES))
        post(self.ledger(), self.recipients)
        self.close()

    def trouble(self) -> None:
        """Let one mail be refused, and one be met by trouble that goes by."""
        self.mailbox.play(*[Fault.REFUSE] * 5, recipient=REFUSED)
        self.mailbox.play(Fault.TRANSIENT, recipient=BUSY)

    def send(self, advance: timedelta = timedelta(0)) -> Sent:
        """Send all that can be sent now, with a sender of its own."""
        self.clock.instant += advance
        return self.sender().send(100)

    def run(self, checkpoint: Checkpoint = ONWARDS) -> None:
        """Send, with one sender, until nothing is left to be tried."""
        sender = self.sender(checkpoint)
        for _ in range(50):
            sent = sender.send(100)
            if sent.next_at is None:
                break
            self.clock.instant = max(self.clock.instant, sent.next_at)

    # ------------------------------------------------------------------------- what is there

    def rows(self, sql: str, **parameters: Any) -> list[tuple[Any, ...]]:
        """Read by the plain driver."""
        with BackDoor(self.url) as door:
            return door.rows(sql, **parameters)

    def states(self) -> dict[str, str]:
        """Return the states of sends by recipient."""
        return dict(self.rows("select recipient, state from {s}send"))

    def trail(self, recipient: str) -> list[tuple[str, str | None]]:
        """Return kind and outcome of each attempt."""
        return self.rows(
            "select a.kind, a.outcome from {s}send_attempt a join {s}send s on s.id = a.send_id"
            " where s.recipient = :recipient order by a.attempt",
            recipient=recipient,
        )

    def report_states(self) -> dict[str, str]:
        """Return the states of reports by tenant."""
        return dict(self.rows("select tenant, state from {s}report"))

    def states_and_reports(self) -> list[Any]:
        """Return how every send and report stands."""
        sends = self.rows("select recipient, state, reference, attempt from {s}send order by 1")
        reports = self.rows("select tenant, state, reason from {s}report order by 1")
        return [[list(row) for row in rows] for rows in (sends, reports)]

    def everything(self) -> list[Any]:
        """Return all rows that sending writes."""
        with BackDoor(self.url) as door:
            return [door.rows(f"select * from {{s}}{name} order by 1, 2") for name in TABLES]

    def wrong(self) -> list[str]:
        """Return which of I19 to I23 do not hold, once nothing is left to be tried."""
        with BackDoor(self.url) as door:
            found = door.rows("select message_key, state, mail_digest from {s}send")
            tried = {row[0] for row in door.rows(TRIED)}
            (open_count,) = door.rows("select count(*) from {s}send_attempt where outcome is null")[
                0
            ]
        accepted = self.mailbox.accepted()
        twice = [key for key, count in Counter(one.key for one in accepted).items() if count > 1]
        wrong = [f"I19: {key} was accepted twice" for key in twice]
        wrong += [f"I20: {one.key} left no attempt" for one in accepted if one.key not in tried]
        known = {one.key: one.digest for one in accepted}
        for key, state, digest in found:
            if (state == "accepted") != (key in known) and state != "review":
                wrong.append(f"I21: {key} is {state}, accepted by the provider: {key in known}")
            if known.get(key, digest) != digest:
                wrong.append(f"I22: {key} went out with other bytes")
            if state in ("ready", "leased", "retrying", "unknown"):
                wrong.append(f"I23: {key} rests as {state}")
        return [*wrong, *([f"I23: {open_count} attempts are open"] if open_count else [])]


TRIED = (
    "select s.message_key from {s}send s where exists"
    " (select 1 from {s}send_attempt a where a.send_id = s.id and a.kind <> 'look-up')"
)


def alone(step: Callable[[], Some]) -> Some:
    """Do a step in a process of its own, which connects by itself."""
    value: Some = run(lambda _: step()).value
    return value
