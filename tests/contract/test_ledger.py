"""The SQL ledger keeps the contract of every port that it implements."""

from __future__ import annotations

from freehold.testing.contracts.bulk import BulkContract
from freehold.testing.contracts.due_by_tenant import DueByTenantContract
from freehold.testing.contracts.endings import EndingsContract
from freehold.testing.contracts.guards import (
    GuardsContract,
    HostClocksContract,
    PausesContract,
    SeenContract,
    WeighingContract,
)
from freehold.testing.contracts.holds import FindingContract, ReleasingContract
from freehold.testing.contracts.inventory import TenantsContract, UnitsContract
from freehold.testing.contracts.ledger import LedgerContract
from freehold.testing.contracts.loops import (
    ActionsContract,
    RuleStatesContract,
    TicksContract,
    WorkersContract,
)
from freehold.testing.contracts.operations import OperationsContract
from freehold.testing.contracts.own_holds import ChangingContract, PlacingContract
from freehold.testing.contracts.rates import AttachRatesContract
from freehold.testing.contracts.rebuilding import RebuildingContract
from freehold.testing.contracts.reports import FreezingContract, FrozenContract
from freehold.testing.contracts.reviews import ReviewsContract
from freehold.testing.contracts.straight import StraightContract
from freehold.testing.contracts.strays import StraysContract
from freehold.testing.contracts.windows import WindowsContract


class TestLedger(LedgerContract):
    pass


class TestOperations(OperationsContract):
    pass


class TestEndings(EndingsContract):
    pass


class TestRuleStates(RuleStatesContract):
    pass


class TestTicks(TicksContract):
    pass


class TestWorkers(WorkersContract):
    pass


class TestActions(ActionsContract):
    pass


class TestGuards(GuardsContract):
    pass


class TestPauses(PausesContract):
    pass


class TestHostClocks(HostClocksContract):
    pass


class TestSeen(SeenContract):
    pass


class TestWeighing(WeighingContract):
    pass


class TestReviews(ReviewsContract):
    pass


class TestFinding(FindingContract):
    pass


class TestReleasing(ReleasingContract):
    pass


class TestDueByTenant(DueByTenantContract):
    pass


class TestBulk(BulkContract):
    """Releasing a stretch of due rows by one statement."""


class TestStraight(StraightContract):
    pass


class TestTenants(TenantsContract):
    pass


class TestUnits(UnitsContract):
    pass


class TestPlacing(PlacingContract):
    pass


class TestChanging(ChangingContract):
    pass


class TestWindows(WindowsContract):
    pass


class TestAttachRates(AttachRatesContract):
    pass


class TestRebuilding(RebuildingContract):
    pass


class TestFreezing(FreezingContract):
    pass


class TestFrozen(FrozenContract):
    pass


class TestStrays(StraysContract):
    pass
