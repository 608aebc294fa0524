"""One-shots beside guards, pauses and paused tenants: each says what stops it, and exits so."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from freehold.bootstrap import open_ledger
from freehold.ports.ledger import GuardKind
from freehold.settings import load_settings
from tests.e2e.command import freehold
from tests.e2e.inprocess import Program
from tests.e2e.shop import make_shop, statuses

if TYPE_CHECKING:
    from pathlib import Path

WHO = ("--by", "ann", "--reason", "a price update")
ALL = (("run", "--until-idle"), ("scan",), ("work",), ("sweep",))


@pytest.fixture
def program(
    tmp_path: Path,
    sqlite_url: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Program:
    make_shop(tmp_path, sqlite_url)
    ready = Program(tmp_path, monkeypatch, capsys)
    assert ready("db", "upgrade").code == 0
    return ready


def _trip(program: Program, kind: GuardKind, rule: str | None, reason: str) -> None:
    """Let a guard stand, as another host would have tripped it."""
    ledger = open_ledger(load_settings(program.folder / "freehold.toml", {}))
    with ledger.transaction() as tx:
        tx.guards.trip(kind, rule, reason, {"host": "elsewhere"})
    ledger.close()


@pytest.mark.parametrize(
    ("kind", "rule", "reason"),
    [
        (GuardKind.CLOCK, None, "the clock moved; run `freehold guard release --all`"),
        (GuardKind.MASS, "cart", "1,200 turned up; run `freehold guard release cart`"),
    ],
)
def test_a_guard_refuses_every_one_shot(
    program: Program, sqlite_url: str, kind: GuardKind, rule: str | None, reason: str
) -> None:
    _trip(program, kind, rule, reason)
    for words in ALL:
        ended = program(*words)
        assert ended.code == 6, words
        assert ended.sentence == f"freehold: Rule cart cannot work: {reason}."
        data = program(*words, "--json")
        assert data.code == 6
        assert reason in str(data.data)
    assert statuses(sqlite_url)["held"] == 11
    assert program("guard", "release", "--all", *WHO).code == 0
    assert program("run", "--until-idle").out == "released 10 holds\n"


@pytest.mark.parametrize(
    ("role", "refused"),
    [("work", {"run", "work"}), ("scan", {"run", "scan"})],
)
def test_a_pause_refuses_the_one_shots_of_its_role(
    program: Program, role: str, refused: set[str]
) -> None:
    assert program("pause", role, *WHO).code == 0
    for words in ALL:
        ended = program(*words)
        assert ended.code == (6 if words[0] in refused else 0), words
        if ended.code:
            assert ended.sentence == (
                f"freehold: Rule cart cannot work: its {role} is paused by ann: a price update "
                f"(`freehold resume {role} --by NAME --reason TEXT` ends that)."
            )


def test_a_paused_schedule_is_said(program: Program) -> None:
    assert program("schedule", "pause", "cart", *WHO).code == 0
    ended = program("run", "--until-idle")
    assert ended.code == 6
    assert "its schedule is paused by ann" in ended.sentence
    assert "`freehold schedule resume cart" in ended.sentence
    assert program("work").code == 0


def test_a_paused_tenant_is_counted_and_refuses_nothing(program: Program) -> None:
    assert program("pause", "work", "--tenant", "harbour", *WHO).code == 0
    said = "1 tenant is paused, see `freehold pause list`"
    for words in (("run", "--until-idle"), ("work",)):
        ended = program(*words)
        assert (ended.code, ended.err) == (0, "")
        assert ended.out == f"released 0 holds; {said}\n"
    assert program("work", "--json").data["paused_tenants"] == ["harbour"]


def test_several_rules_are_one_sentence(program: Program) -> None:
    file = program.folder / "freehold.toml"
    rule = file.read_text().split("[[rules]]")[1]
    more = [rule.replace('"cart"', f'"{name}"') for name in ("seat", "room")]
    file.write_text("[[rules]]".join([file.read_text(), *more]))
    _trip(program, GuardKind.CLOCK, None, "the clock moved")
    said = program("run", "--until-idle").sentence
    assert said == "freehold: Rules cart, seat, room cannot work: the clock moved."
    assert program("guard", "release", "--all", *WHO).code == 0
    for name in ("cart", "room"):
        _trip(program, GuardKind.MASS, name, f"too much of {name}")
    assert program("scan").sentence == (
        "freehold: Rule cart cannot work: too much of cart (1 more cannot either, "
        "`freehold status` says why)."
    )


def test_one_shots_print_sentences_and_no_log_line(program: Program) -> None:
    for words in ALL:
        assert (program(*words).code, program(*words).err) == (0, "")


def test_until_idle_takes_no_single_role(program: Program) -> None:
    ended = program("run", "--until-idle", "--role", "work")
    assert ended.code == 2
    assert "`freehold work`" in ended.sentence


def test_a_slip_of_the_fingers_is_one_sentence(program: Program) -> None:
    for words, says in (
        (("plann",), "Did you mean 'plan'? `freehold --help`"),
        (("status", "--jsn"), "No such option: --jsn. `freehold status --help`"),
        (("attach", "cart", "--confirm", "1"), "Missing option '--by'."),
        (("run", "--limit", "x"), "it must be a whole number"),
        (("guard", "release", "cup", *WHO), "There is no rule named 'cup'"),
        (("pause", "list", "--rule", "cart"), "takes no other option"),
    ):
        ended = program(*words)
        assert (ended.code, ended.out) == (2, ""), words
        assert says in ended.sentence
    assert program("plan", "--tenant", "nobody").out == "cart: no hold of tenant 'nobody' is due\n"


def test_a_status_fits_a_narrow_screen(program: Program) -> None:
    program("run", "--until-idle")
    shown = {
        width: freehold("status", cwd=program.folder, COLUMNS=str(width)).out for width in (80, 120)
    }
    assert "put off" in shown[120]
    assert "cart  ● active" in shown[80]
    for width, text in shown.items():
        assert "…" not in text
        assert max(map(len, text.splitlines())) <= width
