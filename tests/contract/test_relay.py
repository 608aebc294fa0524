"""The SQL ledger keeps the contract of the relay."""

from __future__ import annotations

from freehold.testing.contracts.acts_on_forwards import ActsOnForwardsContract
from freehold.testing.contracts.forwards import ForwardsContract
from freehold.testing.contracts.relay import TargetsContract


class TestTargets(TargetsContract):
    pass


class TestForwards(ForwardsContract):
    pass


class TestActsOnForwards(ActsOnForwardsContract):
    pass
