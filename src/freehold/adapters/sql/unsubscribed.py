"""Who has unsubscribed, in SQL; implements `ports.unsubscribed`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from freehold.adapters.sql.inventory import batch
from freehold.adapters.sql.sends import SqlSends
from freehold.adapters.sql.session import Runner
from freehold.ports.unsubscribed import Link, Unsubscription


class SqlUnsubscribed:
    """Unsubscriptions inside one transaction."""

    def __init__(self, runner: Runner, now: datetime) -> None:
        self._sql = runner
        self._now = now

    def add(self, tenant: str, recipient: str, actor: str, reason: str) -> bool:
        """Note that a recipient wants no more reports."""
        who = {"tenant": tenant, "recipient": recipient}
        count = self._sql.count(
            "add_unsubscribed", **who, now=self._now, actor=actor, reason=reason
        )
        return count == 1

    def remove(self, tenant: str, recipient: str) -> bool:
        """Take the note back."""
        return self._sql.count("remove_unsubscribed", tenant=tenant, recipient=recipient) == 1

    def of(self, tenants: Sequence[str]) -> Sequence[Unsubscription]:
        """Return the notes of tenants."""
        instant = self._sql.session.sure_instant
        return [
            Unsubscription(row[0], row[1], instant(row[2]), row[3], row[4])
            for row in self._sql.rows("unsubscribed_of", tenants=list(tenants))
        ]

    def stop(self, tenant: str, recipient: str) -> int:
        """End the recipient's sends that wait, and their reports with them."""
        who = {"tenant": tenant, "recipient": recipient}
        rows = self._sql.rows(
            "stop_unsubscribed", **who, now=self._now, reason="the recipient has unsubscribed"
        )
        SqlSends(self._sql, self._now).finish_reports(row[0] for row in rows)
        return len(rows)

    def keep_links(self, links: Sequence[Link]) -> int:
        """Write what tokens name."""
        if not links:
            return 0
        rows = [(one.token, one.tenant, one.recipient) for one in links]
        return self._sql.count("keep_links", **batch(self._sql.session, rows))

    def find_link(self, token: str) -> Link | None:
        """Return what a token names."""
        rows = self._sql.rows("find_link", token=token)
        return Link(*rows[0]) if rows else None
