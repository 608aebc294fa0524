"""Frozen reports and mails, ready to be sent, as tests of sending need them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta

from freehold.domain.reports import Window
from freehold.ports.ledger import Ledger
from freehold.ports.report_calendar import Closing
from freehold.ports.sends import NewMail, NewSend

DAY = timedelta(days=1)
DATE = date(2031, 5, 5)
BODY = b"MIME-Version: 1.0\r\nContent-Type: text/plain\r\n\r\nreleased: 3\r\n"
MANY = 1_000


def freeze_reports(ledger: Ledger, tenants: Sequence[str], day: date = DATE) -> Mapping[str, int]:
    """Close one day of these tenants and freeze its facts; return the reports' ids by tenant."""
    window, following = _window(day), _window(day + DAY)
    with ledger.transaction() as tx:
        tx.report_calendar.enrol(dict.fromkeys(tenants, window))
        for group in tx.report_calendar.due(window.end_at, MANY):
            closing = Closing(group, group.window, following, window.end_at)
            tx.report_calendar.close(closing, MANY)
    with ledger.transaction() as tx:
        waiting = [one.report_id for one in tx.reports.overview(MANY).waiting]
        tx.reports.freeze(tx.reports.draft(waiting, {}, {}, 1))
    with ledger.transaction() as tx:
        frozen = tx.reports.frozen(window.end_at, MANY)
        return {one.facts.tenant: one.id for one in frozen if one.facts.tenant in tenants}


def _window(day: date) -> Window:
    start_at = datetime(day.year, day.month, day.day, tzinfo=UTC)
    return Window(day, start_at, start_at + DAY, "UTC", "test")


def mail_of(
    report_id: int, recipients: Sequence[str], *, body: bytes = BODY, unsubscribed: str = ""
) -> NewMail:
    """Return the mail of one report; every recipient's copy has a head of its own."""
    sends = []
    for recipient in recipients:
        head = f"To: {recipient}\r\nSubject: report {report_id}\r\n"
        digest = hashlib.sha256(head.encode() + body).hexdigest()
        key = f"{report_id}.{hashlib.sha256(recipient.encode()).hexdigest()[:16]}"
        sends.append(NewSend(recipient, key, head, digest, recipient == unsubscribed))
    return NewMail(report_id, "en", f"report {report_id}", body, tuple(sends))


def post(
    ledger: Ledger, recipients: Mapping[str, Sequence[str]], day: date = DATE
) -> Mapping[str, int]:
    """Freeze reports and their mails, with recipients by tenant; return the reports' ids."""
    ids = freeze_reports(ledger, list(recipients), day)
    with ledger.transaction() as tx:
        tx.sends.write(
            [mail_of(ids[tenant], addresses) for tenant, addresses in recipients.items()]
        )
    return ids
