"""After a restore from a backup: nothing is sent again that may have been sent since.

A restored database knows nothing of the mails between the backup and the restore. So every mail that
is due by now is written, and then every one that waits becomes unknown, as if first tried when the
backup was taken: what its provider remembers or can be asked for is settled so, and the rest is put
before a person.

*Invariants*: sending is paused before anything is written, and stays so until a person resumes it.
*Not here*: what is done about an unknown end (`domain.sending_next`); the customer's own rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from freehold.application.pauses import begin_pause
from freehold.application.reporting.reporter import Reporter
from freehold.domain.errors import RefusedByState, UsageError, WorkLeft
from freehold.domain.pauses import Pause, Role
from freehold.ports.ledger import Act, Ledger

ALIVE_WITHIN = timedelta(seconds=60)  # twelve heartbeats
PAGE = 200  # sends of one transaction


@dataclass(frozen=True, slots=True)
class Restored:
    """What was done.

    Attributes:
        mail_count: mails that were due by now and had not been written.
        doubted_count: sends that are unknown from here on.
    """

    mail_count: int
    doubted_count: int


def restored(
    ledger: Ledger, reporter: Reporter, transport: str, at: datetime, by: str, reason: str
) -> Restored:
    """Say that the database was put back to its state of an instant.

    Args:
        transport: the name of that which sent then, and sends now.

    Again: doubts what waits by then. Crash: sending stays paused; run it again.

    Raises:
        UsageError: the instant is still to come.
        RefusedByState: a process works, or may still have a mail in hand.
        WorkLeft: some reports could not be prepared; run it again.
    """
    _refuse(ledger, at)
    with ledger.transaction() as tx:
        begun_at = tx.now
    begin_pause(ledger, Pause(Role.REPORT, None, None, by, reason, begun_at))
    mail_count = _written(reporter)
    doubted_count = 0
    while count := _doubt(ledger, at, transport):
        doubted_count += count
    with ledger.transaction() as tx:
        after = f"{doubted_count} waiting mails became unknown; sending is paused"
        before = f"state of {at.isoformat()}"
        tx.actions.record(Act(by, "db restored", "database", reason, before, after))
    return Restored(mail_count, doubted_count)


def _refuse(ledger: Ledger, at: datetime) -> None:
    """Refuse while somebody works; take back what senders of then left behind."""
    while True:
        with ledger.transaction() as tx:
            if at >= tx.now:
                raise UsageError("--at must lie in the past: when was the backup taken?")
            living = tx.restoring.living(tx.now - ALIVE_WITHIN)
            if living:
                raise RefusedByState(
                    f"A process works or did within the last minute: {', '.join(living)}; stop it "
                    "first. Nothing was changed."
                )
            taken_count = tx.sends.take_back(PAGE)
            leased_count = tx.restoring.leased_count()
        if not taken_count:
            break
    if leased_count:
        raise RefusedByState(
            f"{leased_count} mails are in the hands of a sender whose lease is not over; run this "
            "again in a few minutes. Nothing was changed."
        )


def _written(reporter: Reporter) -> int:
    """Write every mail that is due, so that none is born later without a doubt."""
    count = 0
    while True:
        done = reporter.prepare()
        count += done.mail_count
        if done.troubles:
            name, error = done.troubles[0]
            raise WorkLeft(
                f"Some reports could not be prepared ({name}: {error}); sending is paused and stays "
                "so; run this again when that is mended."
            )
        if not done.full:
            return count


def _doubt(ledger: Ledger, at: datetime, transport: str) -> int:
    page = min(PAGE, ledger.batch_limit or PAGE)
    with ledger.transaction() as tx:
        return tx.restoring.doubt(at, transport, page)
