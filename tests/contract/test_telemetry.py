"""Every listener keeps the contract of telemetry, and a failing one harms nobody."""

from __future__ import annotations

from io import StringIO

import pytest

from freehold.adapters.logs import LogLines
from freehold.adapters.telling import Everybody
from freehold.ports.telemetry import UNHEARD, Event, Level, ServiceStopped, Telemetry
from freehold.testing.contracts.telemetry import EXAMPLES, TelemetryContract


class Broken:
    """A listener with a bug."""

    def tell(self, event: Event) -> None:
        raise RuntimeError("a bug")


class Full(StringIO):
    """A stream on a full disk."""

    def write(self, _: str) -> int:
        raise OSError(28, "No space left on device")


def _listeners() -> dict[str, Telemetry]:
    closed = StringIO()
    closed.close()
    return {
        "nobody": UNHEARD,
        "log lines": LogLines(StringIO(), level=Level.DEBUG, strict=True),
        "log lines on a full disk": LogLines(Full()),
        "log lines on a closed stream": LogLines(closed),
        "everybody": Everybody([Broken(), LogLines(StringIO(), strict=True), UNHEARD]),
    }


class TestTelemetry(TelemetryContract):
    @pytest.fixture(params=list(_listeners()))
    def telemetry(self, request: pytest.FixtureRequest) -> Telemetry:
        return _listeners()[request.param]


def test_a_broken_listener_keeps_no_other_from_hearing() -> None:
    stream = StringIO()
    everybody = Everybody([Broken(), LogLines(stream)])
    everybody.tell(ServiceStopped(pid=1))
    assert '"stopped"' in stream.getvalue()
    assert everybody.failed_count == 1
    assert len(EXAMPLES) > 10
