"""`freehold db drop` as a person runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.contract.test_dropping import objects, run
from tests.e2e.command import freehold
from tests.e2e.running import Running
from tests.e2e.shop import make_shop, statuses

if TYPE_CHECKING:
    from pathlib import Path


def test_from_the_first_look_to_nothing_left(tmp_path: Path, database_url: str) -> None:
    make_shop(tmp_path, database_url)
    before, name = objects(database_url), database_url.rpartition("/")[2]
    assert freehold("db", "upgrade", cwd=tmp_path).code == 0
    assert freehold("run", "--until-idle", cwd=tmp_path).code == 0
    counted = statuses(database_url)
    run(database_url, "delete from {s}worker")

    looked = freehold("db", "drop", "--dry-run", "--json", cwd=tmp_path).data
    assert (looked["database"], looked["dropped"]) == (name, [])
    assert {"operation", "record", "migration"} <= set(looked["found"])
    bare = freehold("db", "drop", cwd=tmp_path)
    assert (bare.code, f"--yes {name}" in bare.sentence) == (2, True)
    wrong = freehold("db", "drop", "--yes", "another", cwd=tmp_path)
    assert (wrong.code, "and not another" in wrong.sentence) == (6, True)
    assert freehold("db", "drop", "--yes", name, "--force", cwd=tmp_path).code == 2
    assert objects(database_url) > before

    done = freehold("db", "drop", "--yes", name, "--reason", "trial is over", cwd=tmp_path)
    assert (done.code, done.err) == (0, "")
    assert "(trial is over): " in done.out
    assert objects(database_url) - {"table sqlite_sequence"} == before
    assert statuses(database_url) == counted
    assert "nothing to drop" in freehold("db", "drop", "--yes", name, cwd=tmp_path).out


def test_a_process_that_works_refuses_whatever_is_said(tmp_path: Path, sqlite_url: str) -> None:
    make_shop(tmp_path, sqlite_url)
    assert freehold("db", "upgrade", cwd=tmp_path).code == 0
    yes = ("db", "drop", "--yes", "freehold.db")
    with Running(tmp_path) as service:
        service.wait_for("batch")
        refused = freehold(*yes, "--force", "--reason", "hurry", cwd=tmp_path)
        assert (refused.code, "stop it first" in refused.sentence) == (6, True)
        assert service.stop() == 0
    assert freehold(*yes, cwd=tmp_path).code == 0
