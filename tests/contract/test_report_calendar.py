"""The SQL ledger keeps the contract of the reports' calendar."""

from __future__ import annotations

from freehold.testing.contracts.report_calendar import AssignmentContract, CalendarContract
from freehold.testing.contracts.report_parts import PartsContract


class TestCalendar(CalendarContract):
    pass


class TestAssignment(AssignmentContract):
    pass


class TestParts(PartsContract):
    pass
