"""The SQL ledger and the adapter of the OpenAI shape keep the contracts of summaries."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from freehold.testing.contracts.summaries import SummariesContract
from freehold.testing.contracts.summarizers import SummarizerContract
from tests.reports.model_server import model_server

if TYPE_CHECKING:
    from collections.abc import Iterator

    from freehold.testing.contracts.summarizers import Endpoint


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    """An endpoint of the OpenAI shape on the loopback."""
    with model_server() as server:
        yield server


class TestSummaries(SummariesContract):
    pass


class TestSummarizer(SummarizerContract):
    pass
