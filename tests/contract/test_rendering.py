"""The rendering contract over what we ship."""

from __future__ import annotations

import pytest

from freehold.adapters.rendering import MimeRenderer
from freehold.domain.reports import ReportPolicy
from freehold.testing.contracts.rendering import RenderingContract


class TestRendering(RenderingContract):
    @pytest.fixture
    def renderer(self) -> MimeRenderer:
        return MimeRenderer(ReportPolicy("reports@harbour.example"))
