"""What nobody can read, as an operator meets it: in status, in review, and gone again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from freehold.adapters.system import SystemClock
from freehold.application.findings import judged
from freehold.application.status import status
from freehold.domain.messages import Unreadable, read_message
from freehold.entrypoints.cli.review_strays import escaped
from freehold.ports.strays import DeliveryCounts
from tests.e2e.inprocess import Program
from tests.insight.test_commands import FILE

if TYPE_CHECKING:
    from pathlib import Path

    from tests.insight.shop import Shop

NASTY = b"\x1b]0;owned\x07\x1b[2J\xe2\x80\xae\xff[red]'; drop \\ <script>"
BY = ("--by", "ann", "--reason", "a misled publisher")


@pytest.fixture
def freehold(
    sqlite_shop: Shop,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Program:
    """The program beside the shop's configuration, with three strays in review."""
    (tmp_path / "freehold.toml").write_text(FILE.format(url=sqlite_shop.url))
    with sqlite_shop.ledger() as ledger, ledger.transaction() as tx:
        for payload in (NASTY, b"x" * 2_000, b"{}"):
            tx.strays.record("hints", [unreadable(payload)])
        tx.strays.count("p", DeliveryCounts(published_count=7, delivered_count=5))
    return Program(tmp_path, monkeypatch, capsys)


def unreadable(payload: bytes) -> Unreadable:
    read = read_message(payload)
    assert isinstance(read, Unreadable)
    return read


def ids(freehold: Program) -> list[str]:
    found: list[dict[str, Any]] = json.loads(freehold("--json", "review", "list").out)
    return [one["id"] for one in found if one["kind"] == "stray"]


def test_bytes_are_shown_so_that_no_terminal_obeys_them(freehold: Program) -> None:
    first, second, _ = ids(freehold)
    listed = freehold("review", "list")
    shown = freehold("review", "show", first)
    assert (listed.code, shown.code) == (0, 0)
    for text in (listed.out, shown.out):
        assert not {*text} - {chr(one) for one in (10, *range(32, 127))}
        assert r"\x1b]0;owned\x07\x1b[2J\xe2\x80\xae\xff[red]" in text
    assert r"'; drop \x5c <script>" in shown.out
    cut = freehold("review", "show", second)
    assert "the first 1,000 of 2,000 bytes are kept" in cut.out
    assert cut.out.count("x" * 1_000) == 1
    data = json.loads(freehold("--json", "review", "show", first).out)
    assert (data["raw"], data["queue"], data["seen_count"]) == (escaped(NASTY), "hints", 1)


def test_strays_are_discarded_by_a_person_with_a_reason(
    freehold: Program, sqlite_shop: Shop
) -> None:
    first, second, _ = ids(freehold)
    assert freehold("review", "discard", first, "--by", "ann").code == 2
    ended = freehold("review", "discard", first, second, *BY)
    assert (ended.code, ended.out) == (0, "discarded 2\n")
    assert len(ids(freehold)) == 1
    with sqlite_shop.raw() as raw:
        rows = raw.execute("select actor, action, subject, reason from freehold_action order by id")
        acts = rows.fetchall()[-2:]
    assert acts == [("ann", "review discard", one, "a misled publisher") for one in (first, second)]
    again = freehold("review", "discard", first, *BY)
    assert again.code == 2
    assert "not in review" in again.sentence


def test_many_are_discarded_after_a_count(freehold: Program) -> None:
    many = ("review", "discard", "--strays", "--matching", "", *BY)
    refused = freehold(*many)
    assert refused.code == 6
    assert "3 strays match" in refused.sentence
    assert "--confirm 3" in refused.sentence
    assert freehold(*many, "--confirm", "3").out == "discarded 3\n"
    assert freehold("review", "list").out.strip() == "nothing waits in review"


@pytest.mark.parametrize(
    "words",
    [
        ("review", "show", "stray-0"),
        ("review", "show", "stray-" + "9" * 19),
        ("review", "show", "stray-12x"),
        ("review", "discard", "17", *BY),
        ("review", "discard", "--rule", "cart", "stray-1", *BY),
        ("review", "discard", "17", "stray-1", *BY),
        ("review", "discard", "--strays", *BY),
        ("review", "requeue", "--rule", "cart", "stray-1", *BY),
        ("review", "preview", "--rule", "cart", "stray-1"),
    ],
)
def test_what_makes_no_sense_is_refused(freehold: Program, words: tuple[str, ...]) -> None:
    assert freehold(*words).code == 2
    assert len(ids(freehold)) == 3


def test_status_tells_of_strays_and_of_the_queue(freehold: Program, sqlite_shop: Shop) -> None:
    with sqlite_shop.ledger() as ledger:
        seen = judged(status(ledger, sqlite_shop.settings.rules, SystemClock()))
    assert (seen.queue.stray_count, seen.queue.counts.published_count) == (3, 7)
    assert any(one.startswith("3 payloads of the queue are no message") for one in seen.findings)
    assert "7 published and 5 taken in the last hour" in freehold("status").out
    queue = json.loads(freehold("--json", "status").out)["queue"]
    assert (queue["stray_count"], queue["last_hour"]["delivered_count"]) == (3, 5)
