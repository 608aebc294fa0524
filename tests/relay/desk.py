"""What the tests of `freehold events` share: a relay's room, with the command line beside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from freehold.adapters.sql.session import DatabaseClock
from freehold.domain.forwards import TargetKind, TargetPolicy
from freehold.domain.retries import RetryPolicy
from tests.e2e.inprocess import Program
from tests.relay.room import BUSY, Room, Script

if TYPE_CHECKING:
    from collections import Counter
    from pathlib import Path

    import pytest

    from tests.behaviour.place import Place
    from tests.e2e.command import Ended

WHO = ("--by", "ann", "--reason", "the endpoint is mended")
ONCE = RetryPolicy(())
SHOP = TargetPolicy("shop", TargetKind.WEBHOOK, retry=ONCE)
BUS = TargetPolicy("bus", TargetKind.NATS, retry=ONCE)
FILE = """
[database]
url = "{url}"
"""
TARGETS = {
    "shop": """
[[targets]]
name = "shop"
kind = "webhook"
url = "https://shop.test/freehold"
secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
""",
    "bus": """
[[targets]]
name = "bus"
kind = "nats"
url = "nats://127.0.0.1"
""",
}


@dataclass
class Desk:
    """A room with a relay, and the command line over the same database."""

    room: Room
    program: Program

    def __call__(self, *words: str) -> Ended:
        """Run a command."""
        return self.program("events", *words)

    def data(self, *words: str) -> Any:
        """Run a command that works, and return what it says as JSON."""
        ended = self("--json", *words)
        assert ended.code == 0, ended.err
        return ended.data

    def configure(self, *policies: TargetPolicy) -> None:
        """Let these be the targets, in the file and for the relay."""
        place = self.room.place
        url = place.target if place.dialect == "postgres" else f"sqlite:///{place.target}"
        self.program.write(
            "freehold.toml", FILE.format(url=url), *(TARGETS[one.name] for one in policies)
        )
        self.room.policies = policies
        self.room.open()

    def relay(self, shop: Script | None = None) -> None:
        """Hand over all there is; the shop answers like this, and all others accept."""
        self.room.relayer(shop=shop or Script()).run_until_idle()

    def dead(self, *numbers: int) -> None:
        """Make events that arrive at the bus, and are dead at the shop."""
        self.room.add(numbers)
        self.relay(Script([BUSY]))

    def acts(self) -> list[tuple[Any, ...]]:
        """Read the action log."""
        sql = "select actor, action, subject, reason, before, after from {s}action order by id"
        return self.room.place.host.run(sql.replace("{s}", self.room.place.prefix))

    def arrived(self, name: str = "shop") -> Counter[str]:
        """Count what arrived at a target."""
        return self.room.box(name).arrived()


def desk_at(
    place: Place, folder: Path, patch: pytest.MonkeyPatch, capture: pytest.CaptureFixture[str]
) -> Desk:
    """Open a desk where events are made and told by the database's own clock."""
    place.clock = DatabaseClock()  # type: ignore[assignment]  # as the command line's is
    desk = Desk(Room(place, folder), Program(folder, patch, capture))
    desk.configure(SHOP, BUS)
    return desk
