"""One pass of reporting: days close, facts freeze, mails are written; then somebody sends them.

*Invariants*: trouble in one step stops none of the others; a step that others have in hand is left
to them. *Not here*: the steps (`closing`, `freezing`, `mailing`), sending (`sending`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from freehold.application.reporting.closing import Closer
from freehold.application.reporting.freezing import Freezer
from freehold.application.reporting.mailing import Mailer
from freehold.domain.errors import DatabaseAway, DatabaseError
from freehold.ports.insight import Readable
from freehold.ports.telemetry import DatabaseTrouble, Telemetry

MAILS_A_PASS = 1_000  # then sending has its turn, where one thread does both


@dataclass(slots=True)
class Prepared:
    """What one pass did.

    Attributes:
        full: there may be more mails to write at once.
        waiting_until: when a day that is over may be closed at last; None where none waits.
        doubt: why no day closes; None where one may.
        troubles: steps that the database refused, by name.
    """

    closed_count: int = 0
    frozen_count: int = 0
    mail_count: int = 0
    full: bool = False
    waiting_until: datetime | None = None
    doubt: str | None = None
    troubles: list[tuple[str, DatabaseError]] = field(default_factory=list)

    @property
    def did_something(self) -> bool:
        """Tell whether anything moved on."""
        return bool(self.closed_count or self.frozen_count or self.mail_count)


@dataclass(slots=True)
class Reporter:
    """Prepares what is to be sent, on one ledger connection; belongs to one thread."""

    readable: Readable
    closer: Closer
    freezer: Freezer
    mailer: Mailer
    telemetry: Telemetry

    def prepare(self, mails_max: int = MAILS_A_PASS) -> Prepared:
        """Close what is over, freeze its facts, and write the mails that are due.

        Again: goes on where it stopped. Crash: each step is repeated whole by the next pass.

        Raises:
            DatabaseAway: the database cannot be reached; the other steps were not tried.
        """
        done = Prepared()

        def close() -> None:
            closed = self.closer.close()
            done.closed_count, done.waiting_until = closed.report_count, closed.waiting_until
            done.doubt = closed.doubt

        def freeze() -> None:
            done.frozen_count = self.freezer.freeze()

        def write() -> None:
            done.mail_count = self.mailer.prepare(mails_max)
            done.full = done.mail_count >= mails_max

        for name, step in (("close", close), ("freeze", freeze), ("write mails", write)):
            self._try(name, step, done)
        return done

    def _try(self, name: str, step: Callable[[], None], done: Prepared) -> None:
        try:
            step()
        except DatabaseAway:
            raise
        except DatabaseError as error:
            done.troubles.append((name, error))
            self.telemetry.tell(
                DatabaseTrouble(f"report, {name}", type(error).__name__, error.code)
            )

    def until_next(self, done: Prepared, most: timedelta) -> timedelta:
        """Return how long to wait after a pass, at most so long."""
        if done.full:
            return timedelta(0)
        with self.readable.reading() as reading:
            now, next_due_at = reading.now, reading.reports.next_due()
        instants = (done.waiting_until, self.closer.next_end(), next_due_at)
        waits = [at - now for at in instants if at is not None and at > now]
        return min([*waits, most])
