"""The SQL ledger keeps the contract of retention."""

from __future__ import annotations

from freehold.testing.contracts.retention import RetentionContract
from freehold.testing.contracts.retention_relay import RelayRetentionContract


class TestRetention(RetentionContract):
    pass


class TestRelayRetention(RelayRetentionContract):
    pass
