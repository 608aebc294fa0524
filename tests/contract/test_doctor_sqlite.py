"""Doctor on SQLite: affinities, spellings, and the file."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from freehold.adapters.sql.inspection.files import network_of
from freehold.application.doctor import Code, Severity
from freehold.application.doctor.server import server_findings
from freehold.bootstrap import sqlite_path
from freehold.domain.due import DueKind
from freehold.domain.errors import DatabaseAway
from freehold.domain.rules import DeleteRow, SetColumns, TableName
from freehold.ports.inspection import FileFacts, ServerFacts
from tests.contract.ward import RULE, codes, due

if TYPE_CHECKING:
    from tests.contract.ward import Ward

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)


@pytest.fixture
def ward(sqlite_ward: Ward) -> Ward:
    return sqlite_ward


# -------------------------------------------------------------------------------------------- types


def test_kind_timestamptz_is_refused(ward: Ward) -> None:
    assert "naive" in ward.refused(Code.DUE_TYPE, due(kind=DueKind.INSTANT)).sentence


@pytest.mark.parametrize(
    ("kind", "type_"),
    [
        (DueKind.NAIVE, "integer"),
        (DueKind.DATE, "real"),
        (DueKind.ISO, "bigint"),
        (DueKind.EPOCH_SECONDS, "varchar(20)"),
        (DueKind.EPOCH_SECONDS, "blob"),
        (DueKind.EPOCH_SECONDS, ""),
    ],
)
def test_a_kind_that_the_affinity_breaks_is_refused(ward: Ward, kind: DueKind, type_: str) -> None:
    ward.retype_due(type_)
    assert f"kind {kind}" in ward.refused(Code.DUE_TYPE, due(kind=kind)).sentence


@pytest.mark.parametrize(
    ("kind", "type_"),
    [
        (DueKind.NAIVE, "datetime"),
        (DueKind.NAIVE, "timestamp"),
        (DueKind.DATE, "date"),
        (DueKind.EPOCH_SECONDS, "int(11)"),
        (DueKind.EPOCH_MILLIS, "bigint"),
        (DueKind.EPOCH_SECONDS, "numeric"),
        (DueKind.ISO, "varchar(40)"),
    ],
)
def test_a_kind_that_the_affinity_keeps_is_fine(ward: Ward, kind: DueKind, type_: str) -> None:
    ward.retype_due(type_)
    assert codes(ward.examine(due(kind=kind))) <= {
        Code.FULL_SCAN,
        Code.EQUAL_DUES,
        Code.ENGINE_VERSION,
    }


@pytest.mark.parametrize("type_", ["", "blob"])
def test_a_key_without_affinity_is_refused(ward: Ward, type_: str) -> None:
    ward.run(
        f"alter table hold add column code {type_};\ncreate unique index codes on hold (code);"
    )
    assert ward.refused(Code.KEY_WITHOUT_TYPE, replace(RULE, key=("code",))).place == "code"


def test_a_table_without_rowid_can_be_updated_and_not_deleted_from(ward: Ward) -> None:
    ward.run(
        "create table plain (id text primary key, status text, token text, due text) without rowid;"
    )
    rule = replace(RULE, table=TableName("plain"), tenant=replace(RULE.tenant, column=None))
    assert Severity.REFUSE not in {one.severity for one in ward.examine(rule)}
    assert ward.refused(Code.NOT_A_TABLE, replace(rule, action=DeleteRow())).place == "plain"


def test_a_virtual_table_is_refused(ward: Ward) -> None:
    ward.run("create virtual table words using fts5(status, due, token, tenant_id, id);")
    assert (
        "virtual"
        in ward.refused(Code.NOT_A_TABLE, replace(RULE, table=TableName("words"))).sentence
    )


def test_a_generated_column_cannot_be_set(ward: Ward) -> None:
    ward.run(
        "create table made (id integer primary key, status text, token text, due text,\n"
        "twice integer generated always as (id * 2));"
    )
    action = SetColumns((("status", "expired"), ("twice", 1)))
    rule = replace(RULE, table=TableName("made"), tenant=replace(RULE.tenant, column=None))
    assert "twice" in ward.refused(Code.COLUMN_MISSING, replace(rule, action=action)).sentence


# ----------------------------------------------------------------------------------------- spelling


def test_a_mixture_of_separators_is_warned_of_and_mended(ward: Ward) -> None:
    ward.add(2, "'2026-01-01 10:00:00'")
    ward.add(1, "'2026-01-01T10:00:00'", first=3)
    finding = ward.warned(Code.DUE_SPELLING)
    assert "1 rows and by a blank in 2" in finding.sentence
    ward.mend(finding)


def test_local_times_that_name_an_offset_are_warned_of(ward: Ward) -> None:
    ward.add(1, "'2026-01-01T10:00:00+02:00'")
    assert "iso" in ward.warned(Code.DUE_SPELLING).sentence


def test_words_in_place_of_times_are_counted(ward: Ward) -> None:
    ward.add(2, "'tomorrow'")
    assert "'xxxxxxxx'" in ward.warned(Code.UNREADABLE_DUE).sentence


# --------------------------------------------------------------------------------------------- file


def test_a_file_that_is_not_there_is_not_made(tmp_path: Path, ward: Ward) -> None:
    path = tmp_path / "missing.db"
    with pytest.raises(DatabaseAway):
        ward.examine(url=f"sqlite:///{path}")
    assert not path.exists()


def test_another_journal_mode_is_warned_of_and_mended(ward: Ward) -> None:
    ward.run("pragma journal_mode = delete;")
    ward.mend(ward.warned(Code.JOURNAL_MODE))


def test_a_file_open_to_others_is_warned_of(ward: Ward) -> None:
    sqlite_path(ward.url).chmod(0o644)
    assert "0644" in ward.warned(Code.FILE_MODE).sentence
    sqlite_path(ward.url).chmod(0o600)
    assert Code.FILE_MODE not in codes(ward.examine())


@pytest.mark.parametrize(
    ("version", "found"),
    [((3, 6, 23), False), ((3, 7, 0), True), ((3, 51, 2), True), ((3, 51, 3), False)],
)
def test_the_engines_with_the_reset_bug_are_warned_of(
    ward: Ward, version: tuple[int, ...], *, found: bool
) -> None:
    server = ServerFacts("SQLite", version, NOW, file=FileFacts("f", 0o600, True, "wal", None))
    assert found is (Code.ENGINE_VERSION in _server_codes(ward, server))


def test_a_directory_that_is_closed_and_a_network_are_told(ward: Ward) -> None:
    file = FileFacts("f", 0o600, directory_writable=False, journal_mode="wal", network="nfs4")
    server = ServerFacts("SQLite", (3, 60, 0), NOW, file=file)
    assert _server_codes(ward, server) == {Code.DIRECTORY, Code.NETWORK_FILE_SYSTEM}


def _server_codes(ward: Ward, server: ServerFacts) -> set[Code]:
    inspection = ward.inspection()
    found = list(server_findings(server, NOW, inspection.mends, strict=False))
    inspection.close()
    return codes(found)


MOUNTS = """\
22 1 8:1 / / rw - ext4 /dev/sda1 rw
40 22 0:40 / /mnt/shared\\040files rw - nfs4 server:/x rw
41 40 8:2 / /mnt/shared\\040files/local rw - ext4 /dev/sdb1 rw
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/var/app.db", None),
        ("/mnt/shared files/app.db", "nfs4"),
        ("/mnt/shared files/local/app.db", None),
        ("/mnt/shared", None),
    ],
)
def test_a_network_file_system_is_known_by_its_mount(path: str, kind: str | None) -> None:
    assert network_of(Path(path), MOUNTS) == kind
