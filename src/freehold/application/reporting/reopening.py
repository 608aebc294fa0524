"""A person's word that a report which nobody got is to be sent after all, as it was frozen.

*Invariants*: only a report that never had a mail; the word and the entry in the action log commit
together; it is reopened only where it can be sent now.
*Not here*: writing its mail (`mailing`), mails that were tried (`resolving`).
"""

from __future__ import annotations

from datetime import date

from freehold.application.reporting.mailing import fate_of
from freehold.application.review import Person
from freehold.domain.errors import RefusedByState
from freehold.domain.reports import ReportPolicy, ReportState
from freehold.ports.ledger import Act, Ledger
from freehold.ports.report_insight import report_subject


def reopen(
    ledger: Ledger, policy: ReportPolicy, tenant: str, report_date: date, by: str, reason: str
) -> None:
    """Let the report get its mail now; whom it goes to is read when that is written.

    Again: refused, as it is under way. Crash: the next pass of reporting writes the mail.

    Raises:
        UsageError: name or reason is missing.
        RefusedByState: it did not end without a mail, or would do so again.
    """
    person = Person(by, reason)
    named = report_subject(tenant, report_date)
    with ledger.transaction() as tx:
        if not tx.reports.reopen(tenant, report_date):
            raise RefusedByState(
                f"The report {named} is none that was not sent for want of a mail; without --by and "
                "--reason what waits of it is sent, and --recipient names one who refused."
            )
        report = tx.reports.read(tenant, report_date)
        fate = None if report is None else fate_of(report, policy)
        if fate is not None:
            raise RefusedByState(
                f"The report {named} would end again as {fate[0]} ({fate[1]}); look at `freehold "
                "tenant list` first."
            )
        before, after = ReportState.NOT_SENT.value, ReportState.FROZEN.value
        tx.actions.record(Act(person.name, "report send", named, person.reason, before, after))
