"""Zones whose local midnight falls on an instant of a test's choice, in a tz database of its own.

SYNTHESISED: the rules of these zones, and nothing else. The program is the real one, and so are the
clocks: a folder that stands before the pinned tz database on the program's path adds zones to it, and
the program itself computes when their days begin and end.
"""

from __future__ import annotations

import importlib.resources
import struct
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

_DAY_SECONDS = 86_400
_DAY = timedelta(days=1)
_HALF_DAY = timedelta(hours=12)
_VERSION = "made"


@dataclass(frozen=True, slots=True)
class MadeZone:
    """A zone where it is midnight at an instant.

    Attributes:
        midnight_at: in UTC, a whole second.
        jump_seconds: by so much the clock there was put forward at the noon before.
    """

    name: str
    midnight_at: datetime
    jump_seconds: int = 0

    @property
    def offset_seconds(self) -> int:
        """Return how far the clock there is ahead of UTC at midnight, in -12 h to 12 h."""
        ahead = -int(self.midnight_at.timestamp()) % _DAY_SECONDS
        return ahead if ahead <= _DAY_SECONDS // 2 else ahead - _DAY_SECONDS

    @property
    def day(self) -> date:
        """Return the local day that ends at midnight."""
        return (self.midnight_at + timedelta(seconds=self.offset_seconds)).date() - _DAY

    @property
    def day_start_at(self) -> datetime:
        """Return when that day began."""
        return self.midnight_at - _DAY + timedelta(seconds=self.jump_seconds)

    def as_file(self) -> bytes:
        """Return the zone as RFC 8536 has it: one change, and its last offset for ever."""
        noon = int((self.midnight_at - _HALF_DAY).timestamp())
        before, after = self.offset_seconds - self.jump_seconds, self.offset_seconds
        kinds = struct.pack(">lbb", before, 0, 0) + struct.pack(">lbb", after, 0, 0)
        tail = b"\x01" + kinds + b"MADE\x00"
        counts = (0, 0, 0, 1, 2, 5)
        head = struct.pack(">4sc15x6l", b"TZif", b"2", *counts)
        sign = "-" if after >= 0 else "+"  # POSIX counts westwards
        hours, seconds = divmod(abs(after), 3600)
        footer = f"\n<MADE>{sign}{hours:02}:{seconds // 60:02}:{seconds % 60:02}\n"
        old, new = struct.pack(">l", noon), struct.pack(">q", noon)
        return head + old + tail + head + new + tail + footer.encode()


def write_tz_database(folder: Path, zones: list[MadeZone]) -> None:
    """Write a package `tzdata` into a folder: the pinned one's zones, and these."""
    pinned = Path(str(importlib.resources.files("tzdata")))
    package = folder / "tzdata"
    (package / "zoneinfo").mkdir(parents=True)
    for entry in (pinned / "zoneinfo").iterdir():
        (package / "zoneinfo" / entry.name).symlink_to(entry)
    (package / "zoneinfo" / "Made").mkdir()
    (package / "__init__.py").write_text(f'IANA_VERSION = "{_VERSION}"\n')
    names = [pinned.joinpath("zones").read_text("utf-8"), *(f"{one.name}\n" for one in zones)]
    (package / "zones").write_text("".join(names))
    for zone in zones:
        (package / "zoneinfo" / zone.name).write_bytes(zone.as_file())


def next_second(span: timedelta) -> datetime:
    """Return the whole second that comes after a span from now."""
    return (datetime.now(UTC) + span).replace(microsecond=0) + timedelta(seconds=1)
