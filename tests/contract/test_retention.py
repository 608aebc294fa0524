"""The SQL ledger keeps the contract of retention."""

from __future__ import annotations

from freehold.testing.contracts.retention import RetentionContract


class TestRetention(RetentionContract):
    pass
