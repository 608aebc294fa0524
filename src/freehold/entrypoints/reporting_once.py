"""The one-shot of a crontab: close, freeze, write and send what is due, within a budget.

*Not here*: the loops of the service (`reporting`), what one step does (`application.reporting`).
"""

from __future__ import annotations

import math
import os
import socket
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from freehold.adapters.sql.ledger import SqlLedger
from freehold.adapters.system import StopRequest, SystemClock
from freehold.application.reporting.reporter import Prepared, Reporter
from freehold.application.reporting.sending import Sender
from freehold.application.reporting.summarizing import Summarizing
from freehold.application.tenants_sync import sync_in_turn
from freehold.bootstrap import open_ledger, open_summarizer, report_settings
from freehold.domain.errors import DatabaseAway, DatabaseError
from freehold.domain.sending import SendState
from freehold.entrypoints.reporting import reporter_of, sender_of, summary_policy
from freehold.ports.system import Checkpoint
from freehold.ports.telemetry import Telemetry
from freehold.settings import Settings

SENDS_A_STEP = 20  # between two looks at the budget
PARKED_SECONDS_MOST = 30.0  # that are waited out, as after a rate limit; longer is the next call's


@dataclass(frozen=True, slots=True)
class MailBudget:
    """How much a one-shot may do: mails tried, and seconds; None is no bound."""

    mails: int | None = None
    seconds: float | None = None


@dataclass(slots=True)
class Reported:
    """What a one-shot did.

    Attributes:
        left: there is more to do: the limit or the time was used up, or mails wait for another
            attempt.
        next_at: when the next of them may be tried; None where none waits.
        doubt: why no day closes; None where one may.
    """

    closed_count: int = 0
    frozen_count: int = 0
    mail_count: int = 0
    summary_count: int = 0
    counts: Counter[SendState] = field(default_factory=Counter)
    paused: bool = False
    parked_until: datetime | None = None
    next_at: datetime | None = None
    used_up: bool = False
    doubt: str | None = None
    troubles: list[tuple[str, DatabaseError]] = field(default_factory=list)

    @property
    def left(self) -> bool:
        """Tell whether another call has something to do."""
        return self.used_up or self.next_at is not None

    @property
    def sent_count(self) -> int:
        """Return the mails that were accepted."""
        return self.counts[SendState.ACCEPTED]


def report_once(
    settings: Settings,
    checkpoint: Checkpoint,
    telemetry: Telemetry,
    budget: MailBudget,
    stop: StopRequest,
    *,
    considerate: bool = True,
) -> Reported:
    """Prepare, send what is available, then ask for paragraphs about reports that leave later.

    A paragraph is asked for last, so that no mail waits for it.

    Args:
        considerate: on SQLite, pause for the host application, which runs beside a crontab.
    """
    ledger = open_ledger(settings, checkpoint=checkpoint, create=False, considerate=considerate)
    tools = (ledger, settings, checkpoint, telemetry, stop)
    try:
        followed = _follow_tenants(ledger, settings, telemetry)
        sender = sender_of(*tools)
        try:
            once = _Once(reporter_of(*tools), sender, budget, stop)
            once.run()
            once.done.troubles += followed
        finally:
            sender.transport.close()
        if not once.is_over() and report_settings(settings).summary is not None:
            once.done.summary_count = _ask_all(
                ledger, settings, checkpoint, telemetry, once.is_over
            )
    finally:
        ledger.close()
    return once.done


def _follow_tenants(
    ledger: SqlLedger, settings: Settings, telemetry: Telemetry
) -> list[tuple[str, DatabaseError]]:
    """Read the customer's table of tenants first, where its turn has come.

    Trouble with it holds up no report.
    """
    try:
        if settings.tenants is not None:
            runner = f"{socket.gethostname()} {os.getpid()}"
            sync_in_turn(ledger, settings.tenants, runner, SystemClock(), telemetry)
    except DatabaseAway:
        raise
    except DatabaseError as error:
        return [("tenants", error)]
    return []


def _ask_all(
    ledger: SqlLedger,
    settings: Settings,
    checkpoint: Checkpoint,
    telemetry: Telemetry,
    is_over: Callable[[], bool],
) -> int:
    summarizer = open_summarizer(settings)
    assert summarizer is not None  # the caller looked
    policy = summary_policy(report_settings(settings))
    asking = Summarizing(ledger, summarizer, policy, checkpoint, telemetry)
    count = 0
    try:
        while not is_over() and asking.step():
            count += 1
    finally:
        summarizer.close()
    return count


class _Once:
    """Prepares and sends in turn within one budget."""

    def __init__(
        self, reporter: Reporter, sender: Sender, budget: MailBudget, stop: StopRequest
    ) -> None:
        self._reporter = reporter
        self._sender = sender
        self._budget = budget
        self._stop = stop
        self._clock = SystemClock()
        self._began = self._clock.monotonic()
        self._tried_count = 0
        self.done = Reported()

    def run(self) -> None:
        """Go on until nothing is due, or the budget is used up."""
        while True:
            prepared = self._prepare()
            moved = self._send()
            if self.is_over():
                self.done.used_up = prepared.full or self._has_more()
                return
            if not (prepared.full or moved or self._waited()):
                return

    def _waited(self) -> bool:
        """Wait out a short pause that the provider asked for; tell whether it is over."""
        until = self.done.parked_until
        if until is None:
            return False
        with self._reporter.readable.reading() as reading:
            wait_seconds = (until - reading.now).total_seconds()
        if wait_seconds > min(PARKED_SECONDS_MOST, self._left_seconds()):
            return False
        return not self._stop.wait(wait_seconds)

    def _left_seconds(self) -> float:
        if self._budget.seconds is None:
            return math.inf
        return self._budget.seconds - (self._clock.monotonic() - self._began)

    def _prepare(self) -> Prepared:
        prepared = self._reporter.prepare()
        done = self.done
        done.closed_count += prepared.closed_count
        done.frozen_count += prepared.frozen_count
        done.mail_count += prepared.mail_count
        done.doubt, done.troubles = prepared.doubt, prepared.troubles
        return prepared

    def _send(self) -> bool:
        """Send what is available; return whether anything moved."""
        sent = self._sender.send(self._most())
        done = self.done
        self._tried_count += sum(sent.counts.values())
        done.counts += sent.counts
        done.paused, done.parked_until, done.next_at = (
            sent.is_paused,
            sent.parked_until,
            sent.next_at,
        )
        return bool(sent.counts)

    def _most(self) -> int:
        left = (
            SENDS_A_STEP if self._budget.mails is None else self._budget.mails - self._tried_count
        )
        return max(0, min(SENDS_A_STEP, left))

    def _has_more(self) -> bool:
        return self.done.next_at is not None

    def is_over(self) -> bool:
        """Tell whether the budget is used up, or the process is asked to stop."""
        mails = self._budget.mails
        late = self._left_seconds() <= 0
        return late or self._stop.stopping or (mails is not None and self._tried_count >= mails)
