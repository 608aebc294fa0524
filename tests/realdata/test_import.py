"""119,390 real bookings through `freehold hold import`, and released in each mode."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from freehold.domain.rules import Mode
from freehold.testing.backdoor import BackDoor
from tests.e2e.command import Ended, freehold, run_for
from tests.realdata.bookings import FILE, FOLDER_VARIABLE, Booking, count_lapsed, find_file
from tests.realdata.holds_file import write_holds
from tests.servers import Servers, find_debian_major

pytestmark = [pytest.mark.proof, pytest.mark.timeout(1800)]

PATIENCE_SECONDS = 900
OVERLAPS = """
select count(*) from (
    select ends_at, lead(starts_at) over (partition by unit_id order by starts_at) as next_at
    from {s}hold where status in ('held', 'confirmed')) h
where next_at < ends_at
"""
NEW_TOKEN = {
    "sqlite": "lower(printf('%s-%s-%s-%s-%s', hex(randomblob(4)), hex(randomblob(2)),"
    " hex(randomblob(2)), hex(randomblob(2)), hex(randomblob(6))))",
    "postgres": "gen_random_uuid()",
}


def test_on_sqlite(sqlite_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    check(sqlite_url, tmp_path, capsys)


def test_on_postgres(servers: Servers, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    server = servers.read(f"postgres{find_debian_major()}")
    url = server.create_database()
    check(url, tmp_path, capsys)
    server.drop_database(url)


def check(url: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Import the file, twice, and release what lapsed, in each mode under a rule of its own."""
    source = find_file()
    if source is None:
        with capsys.disabled():
            print(f"\nreal bookings NOT imported: no {FILE} in {FOLDER_VARIABLE} or ../shared/data")  # noqa: T201
        return
    bookings = write_holds(source, folder / "bookings.csv")
    settings(url, folder, Mode.RESERVATION)
    assert freehold("db", "upgrade", cwd=folder).code == 0
    for new, there in ((len(bookings), 0), (0, len(bookings))):
        done = import_holds(folder).data
        assert (done["new"], done["there_already"], done["rejected"]) == (new, there, 0)
    check_imported(url, bookings)
    for mode in Mode:
        settings(url, folder, mode)
        release(url, folder, mode, bookings)


def settings(url: str, folder: Path, mode: Mode) -> None:
    lines = ("[database]", f'url = "{url}"', "[holds]", f'name = "{mode}"', f'mode = "{mode}"')
    (folder / "freehold.toml").write_text("\n".join(lines))


def import_holds(folder: Path) -> Ended:
    words = ("--json", "hold", "import", "bookings.csv", "--create-units")
    return run_for(PATIENCE_SECONDS, *words, cwd=folder)


def check_imported(url: str, bookings: Sequence[Booking]) -> None:
    with BackDoor(url) as door:
        found = door.rows("select tenant, status, count(*) from {s}hold group by tenant, status")
        assert {(tenant, status): count for tenant, status, count in found} == Counter(
            (one.tenant, one.state) for one in bookings
        )
        assert door.one(OVERLAPS) == 0
        assert door.one("select count(*) from {s}outbox") == 0


def release(url: str, folder: Path, mode: Mode, bookings: Sequence[Booking]) -> None:
    """Attach the rule by the count of what is overdue, and let it work; then grant all anew."""
    wanted = count_lapsed(bookings)
    confirm = ("--confirm", str(wanted.total()), "--by", "the test")
    assert freehold("run", "--until-idle", cwd=folder).code == 6
    assert freehold("attach", str(mode), *confirm, cwd=folder).code == 0
    assert run_for(PATIENCE_SECONDS, "run", "--until-idle", cwd=folder).code == 0
    assert run_for(PATIENCE_SECONDS, "audit", cwd=folder).code == 0
    with BackDoor(url) as door:
        for table, what, where in (
            ("hold", "count(*)", "status = 'expired'"),
            ("record", "count(*)", f"rule = '{mode}' and outcome = 'expired'"),
            ("outbox", "count(*)", f"rule = '{mode}'"),
            ("tally", "sum(expired_count)", f"rule = '{mode}'"),
        ):
            sql = f"select tenant, {what} from {{s}}{table} where {where} group by tenant"
            assert Counter(dict(door.rows(sql))) == wanted, table
        door.execute(
            f"update {{s}}hold set status = 'held', expired_at = null,"
            f" hold_token = {NEW_TOKEN[door.dialect]} where status = 'expired'"
        )
