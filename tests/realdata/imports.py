"""A database that the whole file was imported into, and a copy of it for each mode to release.

Importing takes longest, so it is done once. *Not here*: what must be true in the end
(`import_evidence`).
"""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from freehold.bootstrap import sqlite_path
from freehold.domain.inventory import RULE_NAME
from freehold.domain.rules import Mode
from freehold.testing.backdoor import BackDoor
from freehold.testing.own_table import disguise
from tests.e2e.command import Ended
from tests.realdata.holds_file import FileHold, write_holds
from tests.servers import PostgresServer

ATTACH_LIMIT = 100  # low, so that the small sample waits for its attach too

Run = Callable[..., Ended]


@dataclass(frozen=True, slots=True)
class Imported:
    """A database of holds as they came in, and nothing released yet.

    Attributes:
        server: None for SQLite.
        first_seconds: what the import took, its start-up included.
        again_seconds: what the same import took when everything was there.
    """

    url: str
    server: PostgresServer | None
    holds: Sequence[FileHold]
    first_seconds: float
    again_seconds: float

    @contextmanager
    def copied(self, folder: Path, mode: Mode) -> Iterator[str]:
        """Lend the URL of a copy, whose settings in the folder say this mode."""
        if self.server is None:
            url = f"sqlite:///{folder / 'copy.db'}"
            shutil.copyfile(sqlite_path(self.url), folder / "copy.db")
        else:
            url = self.server.create_database(template=self.url.rpartition("/")[2])
        write_settings(url, folder, mode)
        try:
            yield url
        finally:
            if self.server is not None:
                self.server.drop_database(url)


def write_settings(url: str, folder: Path, mode: Mode) -> None:
    """Write the settings of the built-in holds alone."""
    lines = ("[database]", f'url = "{url}"', "[holds]", f'mode = "{mode}"')
    (folder / "freehold.toml").write_text("\n".join((*lines, f"attach_limit = {ATTACH_LIMIT}")))


def import_all(
    run: Run, url: str, server: PostgresServer | None, source: Path, folder: Path
) -> Imported:
    """Import a file of bookings twice, and note from then on what becomes of each hold."""
    holds = write_holds(source, folder / "bookings.csv")
    write_settings(url, folder, Mode.RESERVATION)
    assert run("db", "upgrade").code == 0
    seconds = []
    for new, there in ((len(holds), 0), (0, len(holds))):
        began = time.monotonic()
        ended = run("--json", "hold", "import", "bookings.csv", "--create-units")
        seconds.append(time.monotonic() - began)
        assert ended.code == 0, ended.err
        done = ended.data
        assert (done["new"], done["there_already"], done["rejected"]) == (new, there, 0)
        assert bool(done["created_tenants_and_units"]) == bool(new)
    with BackDoor(url) as door:
        disguise(door)
    return Imported(url, server, holds, *seconds)


def attach(run: Run, url: str, holds: Sequence[FileHold]) -> None:
    """Confirm the backlog by its count; before that, and with a wrong count, nothing is released."""
    lapsed = sum(hold.lapsed for hold in holds)
    assert lapsed > ATTACH_LIMIT
    by = ("--by", "the test")
    assert run("run", "--until-idle").code == 6
    assert run("attach", RULE_NAME, "--confirm", str(lapsed // 2), *by).code == 6
    with BackDoor(url) as door:
        statuses: dict[str, int] = dict(
            door.rows("select status, count(*) from {s}hold group by status")
        )
        assert statuses == Counter(hold.status for hold in holds)
        assert door.one("select count(*) from {s}record") == 0
    assert run("attach", RULE_NAME, "--confirm", str(lapsed), *by).code == 0
