"""A database that was put back to an older state: what was sent since is not sent again blindly."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.e2e.inprocess import Program
from tests.e2e.shop import make_shop

REPORT = '[report]\nsender = "r@x.example"\nhour = 0\n'
MAILDIR = '[report.maildir]\npath = "mails"\n'
SMTP = '[report.smtp]\nhost = "127.0.0.1"\nport = 1\nsecurity = "none"\n'
DAY = (datetime.now(UTC) - timedelta(days=1)).date().isoformat()
SAY = ("db", "restored", "--by", "ann", "--reason", "disk lost")


class Place:
    """A shop with a day that is over, and a backup from before its report."""

    def __init__(self, freehold: Program, transport: str) -> None:
        self.freehold = freehold
        self.file = freehold.folder / "freehold.db"
        make_shop(freehold.folder, f"sqlite:///{self.file}", due_count=3, more="")
        with (freehold.folder / "freehold.toml").open("a") as file:
            file.write(REPORT + transport)
        words = ("tenant", "add", "harbour", "--recipient", "desk@harbour.example")
        for one in (("db", "upgrade"), words, ("scan",), ("work",)):
            assert freehold(*one).code == 0
        self.release_a_day_ago()
        self.back_up()

    def release_a_day_ago(self) -> None:
        at = (datetime.now(UTC) - timedelta(days=1)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        with closing(sqlite3.connect(self.file)) as lite:
            lite.execute("update freehold_tally set at = ?", (at,))
            lite.execute("update freehold_record set finished_at = ?", (at,))
            lite.execute("update freehold_outbox set at = ?", (at,))
            lite.commit()

    def back_up(self) -> None:
        """Take a backup."""
        with closing(sqlite3.connect(self.file)) as lite:
            lite.execute("pragma wal_checkpoint(truncate)")
        shutil.copy(self.file, self.file.with_suffix(".backup"))
        self.backed_up_at = (datetime.now(UTC) - timedelta(minutes=1)).isoformat()

    def restore(self) -> None:
        """Put the backup back."""
        for end in ("-wal", "-shm"):
            self.file.with_name(self.file.name + end).unlink(missing_ok=True)
        shutil.copy(self.file.with_suffix(".backup"), self.file)

    @property
    def mails(self) -> list[Path]:
        return list((self.freehold.folder / "mails" / "new").iterdir())

    def state(self) -> str:
        found = self.freehold("report", "list", "--json").data
        return str(found["reports"][0]["state"])


@pytest.fixture
def freehold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Program:
    """The program in an empty folder."""
    return Program(tmp_path, monkeypatch, capsys)


PAUSE = ("pause", "report", "--by", "ann", "--reason", "lunch")
RESUME = ("resume", "report", "--by", "ann", "--reason", "seen")


def test_a_mail_that_was_frozen_by_then_is_settled_by_its_key(freehold: Program) -> None:
    place = Place(freehold, MAILDIR)
    assert freehold(*PAUSE).code == 0
    assert freehold("report", "run").code == 6
    place.back_up()
    assert freehold(*RESUME).code == 0
    assert freehold("report", "run").code == 0
    assert len(place.mails) == 1
    place.restore()
    ended = freehold(*SAY, "--at", place.backed_up_at)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith("1 mail is unknown; sending is paused\n")
    assert freehold("report", "run").code == 6
    assert freehold(*RESUME).code == 0
    assert freehold("report", "run").code == 0
    assert len(place.mails) == 1
    assert place.state() == "sent"
    assert "restored" in freehold("report", "show", "harbour", DAY).out
    assert freehold("audit").code == 0


def test_one_that_is_written_anew_says_otherwise_under_its_key_and_is_not_sent(
    freehold: Program,
) -> None:
    place = Place(freehold, MAILDIR)
    assert freehold("report", "run").code == 0
    (mail,) = place.mails
    sent = mail.read_bytes()
    place.restore()
    assert freehold(*SAY, "--at", place.backed_up_at).code == 0
    assert freehold(*RESUME).code == 0
    freehold("report", "run")
    assert [one.read_bytes() for one in place.mails] == [sent]
    assert place.state() == "in review"
    assert freehold("audit").code == 0


def test_without_one_a_person_is_asked_and_nothing_is_sent(freehold: Program) -> None:
    place = Place(freehold, SMTP)
    assert freehold(*SAY, "--at", place.backed_up_at, "--json").data == {
        "mail_count": 1,
        "doubted_count": 1,
    }
    assert freehold(*RESUME).code == 0
    freehold("report", "run")
    assert place.state() == "in review"
    again = freehold(*SAY, "--at", place.backed_up_at)
    assert again.out.startswith("0 mails are unknown")


def test_what_cannot_be_is_refused_and_changes_nothing(freehold: Program) -> None:
    place = Place(freehold, MAILDIR)
    later = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    for at, sentence in (
        (later, "--at must lie in the past"),
        ("2026-05-02 03:00", "with an offset"),
        ("yesterday", "with an offset"),
    ):
        ended = freehold(*SAY, "--at", at)
        assert (ended.code, sentence in ended.sentence) == (2, True)
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    with closing(sqlite3.connect(place.file)) as lite:
        lite.execute(
            "insert into freehold_worker (worker, roles, host, pid, host_at, started_at, beat_at)"
            " values ('w', 'report', 'shop-1', 4711, ?, ?, ?)",
            (now, now, now),
        )
        lite.commit()
    ended = freehold(*SAY, "--at", place.backed_up_at)
    assert (ended.code, "shop-1 (pid 4711); stop it first" in ended.sentence) == (6, True)
    assert freehold("pause", "list", "--json").data == []
