"""The SQL ledger keeps the contract of doubts after a restore."""

from __future__ import annotations

from freehold.testing.contracts.restoring import RestoringContract


class TestRestoring(RestoringContract):
    pass
