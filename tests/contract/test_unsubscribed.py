"""The SQL ledger keeps the contract of unsubscriptions."""

from __future__ import annotations

from freehold.testing.contracts.unsubscribed import UnsubscribedContract


class TestUnsubscribed(UnsubscribedContract):
    pass
