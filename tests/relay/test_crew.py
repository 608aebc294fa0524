"""The threads of targets: how they end."""

from __future__ import annotations

from threading import Barrier
from typing import TYPE_CHECKING, cast

from freehold.bootstrap import Aimed
from freehold.domain.forwards import TargetKind, TargetPolicy
from freehold.entrypoints.relaying import Crew, OwnThread

if TYPE_CHECKING:
    from freehold.application.relaying.relayer import Relayer
    from freehold.ports.target import Target

MEET_SECONDS = 4.0
NAMES = ("one", "two", "three")


class Idle:
    """A relayer with nothing under way."""

    def finish(self) -> None:
        """Settle nothing."""


class Slow:
    """A target whose farewell takes as long as those of all others."""

    def __init__(self, meeting: Barrier) -> None:
        self._meeting = meeting

    def close(self) -> None:
        """Wait until every target says good-bye."""
        self._meeting.wait(MEET_SECONDS)


def test_targets_say_good_bye_at_the_same_time() -> None:
    meeting = Barrier(len(NAMES))
    aimed = [
        Aimed(TargetPolicy(name, TargetKind.NATS), cast("Target", Slow(meeting))) for name in NAMES
    ]
    hands = [OwnThread(name) for name in NAMES]
    Crew(cast("Relayer", Idle()), aimed, hands).close()
    assert not meeting.broken
