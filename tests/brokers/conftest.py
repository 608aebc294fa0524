"""Names that no test shares. The brokers themselves are fixtures of every folder: tests/conftest.py."""

from __future__ import annotations

import itertools

import pytest

_NUMBERS = itertools.count(1)


@pytest.fixture
def stream() -> str:
    """Return the name of a stream that nobody has."""
    return f"hints-{next(_NUMBERS)}"


@pytest.fixture
def queue_name() -> str:
    """Return the name of a queue that nobody has."""
    return f"hints.{next(_NUMBERS)}"
