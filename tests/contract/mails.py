"""Reports with mails and sends, written and read by the plain driver."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from freehold.domain.sending import SendState
from freehold.testing.contracts.ground import NOW

if TYPE_CHECKING:
    from collections.abc import Mapping

    from freehold.testing.backdoor import BackDoor

REPORT = """
insert into {s}report (tenant, report_date, start_at, end_at, zone, tz_version, watermark_at,
    due_at, state, facts, facts_digest, assigned_at, frozen_at, expired_count)
values (:tenant, :date, :start_at, :end_at, 'UTC', '1', :end_at, :end_at, :state, '{}', 'd',
    :end_at, :end_at, 0)
"""
MAIL = """
insert into {s}mail (report_id, locale, subject, body, body_digest, byte_count, frozen_at)
values (:report, 'en', 's', :body, 'd', 1, :at)
"""
SEND = """
insert into {s}send (report_id, recipient, message_key, head, mail_digest, state, available_at,
    changed_at, leased_until, lease_token, state_before)
values (:report, :recipient, :key, '', 'd', :state, :at, :at, :leased_until, :lease_token, :before)
"""


@dataclass
class Mails:
    """Implements `testing.contracts.unsubscribed.MailsDoor`."""

    door: BackDoor

    def add_mail(
        self, tenant: str, day: int, sends: Mapping[str, SendState], *, frozen: bool = False
    ) -> None:
        start = NOW.replace(day=day, hour=0)
        start_at, end_at = self.door.ledger(start), self.door.ledger(start + timedelta(days=1))
        named = {"tenant": tenant, "date": f"{start:%Y-%m-%d}"}
        state = "sent" if frozen else "sending"
        self.door.execute(REPORT, **named, start_at=start_at, end_at=end_at, state=state)
        report = self._report(tenant, day)
        self.door.execute(MAIL, report=report, body=b"body", at=end_at)
        for recipient, one in sends.items():
            leased = one is SendState.LEASED
            self.door.execute(
                SEND,
                report=report,
                recipient=recipient,
                key=f"{tenant}.{day}.{recipient}",
                state=one.value,
                at=end_at,
                leased_until=end_at if leased else None,
                lease_token=1 if leased else None,
                before="ready" if leased else None,
            )

    def _report(self, tenant: str, day: int) -> int:
        date = f"{NOW.replace(day=day):%Y-%m-%d}"
        found = self.door.one(
            "select id from {s}report where tenant = :tenant and report_date = :date",
            tenant=tenant,
            date=date,
        )
        return int(found)

    def states(self, tenant: str, day: int) -> Mapping[str, str]:
        rows = self.door.rows(
            "select recipient, state from {s}send where report_id = :report order by id",
            report=self._report(tenant, day),
        )
        return dict(rows)

    def kept(self) -> Mapping[tuple[str, int], bool]:
        rows = self.door.rows(
            "select r.tenant, cast(r.report_date as text), m.body is not null"
            " from {s}mail m join {s}report r on r.id = m.report_id"
        )
        return {(tenant, int(date[8:])): bool(kept) for tenant, date, kept in rows}
