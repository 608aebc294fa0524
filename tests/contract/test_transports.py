"""Every way to send keeps the contract of `ports.mail.Transport`, and so does the declared double."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from freehold.testing.contracts.transports import LookUpContract, RepeatContract, SendContract
from tests.reports.providers import GROUNDS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from freehold.testing.contracts.transports import Provider


@pytest.fixture(params=sorted(GROUNDS))
def provider(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Provider]:
    """Each provider in turn, running."""
    with GROUNDS[request.param](tmp_path) as provider:
        yield provider


class TestSend(SendContract):
    pass


class TestRepeat(RepeatContract):
    pass


class TestLookUp(LookUpContract):
    pass
