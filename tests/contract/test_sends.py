"""The SQL ledger keeps the contract of `ports.sends.Sends`."""

from __future__ import annotations

from freehold.testing.contracts.sends import SendsContract
from freehold.testing.contracts.sends_attempts import AttemptsContract


class TestSends(SendsContract):
    pass


class TestAttempts(AttemptsContract):
    pass
