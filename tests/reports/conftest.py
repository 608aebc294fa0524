"""Places for the tests of reports: one fresh customer's database of each kind in turn."""

from __future__ import annotations

from tests.behaviour.conftest import lite, pg, place
from tests.contract.conftest import ground, migrated_url

__all__ = ["ground", "lite", "migrated_url", "pg", "place"]
