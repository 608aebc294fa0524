"""Asking a language model about reports: bounded, accounted for, and never in a mail's way."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from freehold.adapters.sql.ledger import SqlLedger
from freehold.adapters.system import Onwards
from freehold.application.reporting.summarizing import REST, Summarizing, SummaryPolicy
from freehold.application.scan import Scanner
from freehold.application.sweep import Sweeper
from freehold.domain.summary import Prices
from freehold.ports.summary import Told, Usage
from freehold.ports.system import Boundary
from freehold.ports.telemetry import Event, SummaryEnded, SummaryWithheld
from freehold.testing.backdoor import BackDoor
from freehold.testing.clock import SetClock
from freehold.testing.contracts.summaries import (
    DUE,
    END,
    HOUR,
    TEXT,
    begun,
    freeze_reports,
    tenant,
    texts,
)
from freehold.testing.contracts.summarizers import Play
from freehold.testing.crash import KillAt
from freehold.testing.forking import run
from tests.contract.grounds import SqlDoor, SqlGround, _session, ground_at, rule_on
from tests.reports.model_server import model_server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from freehold.ports.ledger import Ledger
    from freehold.ports.summary import Summarizer
    from freehold.ports.system import Checkpoint
    from freehold.testing.forking import Wire
    from tests.reports.model_server import ModelServer

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)
POLICY = SummaryPolicy(seconds=0.3)
PRICES = Prices(150_000, 600_000, "USD")


@pytest.fixture
def server() -> Iterator[ModelServer]:
    """A model's endpoint."""
    with model_server() as server:
        yield server


@dataclass
class Heard:
    """Keeps what it is told."""

    events: list[Event] = field(default_factory=list)

    def tell(self, event: Event) -> None:
        self.events.append(event)

    def outcomes(self) -> list[str]:
        return [one.outcome for one in self.events if isinstance(one, SummaryEnded)]

    def withheld(self) -> list[str]:
        return [one.tenant for one in self.events if isinstance(one, SummaryWithheld)]


@dataclass
class Parrot:
    """A model in this process that always says the same, and lets the test act meanwhile."""

    text: str = TEXT
    meanwhile: Callable[[], object] = bool
    asked: list[tuple[str, str]] = field(default_factory=list)
    host: str = "parrot.example"
    model: str = "parrot"

    def tell(self, prompt: str, facts: str, output_tokens_max: int) -> Told:
        self.asked.append((prompt, facts))
        self.meanwhile()
        return Told(self.text, "parrot-1", Usage(10, None, None, 5))

    def close(self) -> None:
        pass


def asking(
    ledger: Ledger,
    summarizer: Summarizer,
    heard: Heard | None = None,
    policy: SummaryPolicy = POLICY,
) -> Summarizing:
    return Summarizing(ledger, summarizer, policy, Onwards(), heard or Heard())


def attempts(ground: SqlGround, *names: str) -> list[Any]:
    rows = ground.back.rows("summary_attempt")
    return [row[names[0]] if len(names) == 1 else tuple(row[one] for one in names) for row in rows]


def step_until_idle(summarizing: Summarizing) -> int:
    count = 0
    while summarizing.step():
        count += 1
    return count


def test_a_text_is_asked_for_once_and_used_by_every_mail(
    ground: SqlGround, server: ModelServer
) -> None:
    freeze_reports(ground, tenant("a"))
    ledger, heard = ground.open(), Heard()
    summarizing = asking(ledger, server.connect(), heard, replace(POLICY, prices=PRICES))
    assert step_until_idle(summarizing) == 1
    assert len(server.requests()) == 1
    (row,) = ground.back.rows("summary_attempt")
    assert texts(ledger, [row["report_id"]]) == {row["report_id"]: (row["id"], TEXT)}
    assert (row["cost_micros"], row["currency"]) == (161, "USD")  # 812 and 64 tokens
    assert heard.events == [SummaryEnded("a", "2031-05-06", 1, "accepted", 812, 64, 161)]


def test_the_model_is_asked_in_the_tenant_s_language(
    ground: SqlGround, server: ModelServer
) -> None:
    freeze_reports(ground, tenant("a", locale="de-CH"), tenant("b", locale="zh"), tenant("c"))
    step_until_idle(asking(ground.open(), server.connect(), policy=replace(POLICY, locale="fr")))
    prompts = [one["body"]["messages"][0]["content"] for one in server.requests()]
    languages = ["German", "English", "French"]
    assert all(name in one for name, one in zip(languages, prompts, strict=True))


def test_a_lie_is_rejected_and_the_report_goes_without(
    ground: SqlGround, server: ModelServer
) -> None:
    freeze_reports(ground, tenant("a"))
    ledger, heard = ground.open(), Heard()
    server.play(Play.TOLD, "4 holds were released.")
    assert step_until_idle(asking(ledger, server.connect(), heard)) == POLICY.attempts_max
    assert heard.outcomes() == ["rejected", "rejected"]
    assert (
        attempts(ground, "reason", "summary", "input_tokens")
        == [("a number is none of the facts': 4", None, 812)] * 2
    )
    assert texts(ledger, [row["report_id"] for row in ground.back.rows("summary_attempt")]) == {}


def test_after_a_lie_a_true_text_is_taken(ground: SqlGround, server: ModelServer) -> None:
    freeze_reports(ground, tenant("a"))
    summarizing = asking(ground.open(), server.connect())
    server.play(Play.TOLD, "https://evil.example 3")
    assert summarizing.step() == 1
    server.play(Play.TOLD)
    assert summarizing.step() == 1
    assert attempts(ground, "attempt", "outcome") == [(1, "rejected"), (2, "accepted")]


@pytest.mark.parametrize("play", [Play.BROKEN, Play.DROPPED, Play.SILENT, Play.NO_JSON])
def test_an_outage_is_one_request_an_attempt_and_rests(
    ground: SqlGround, server: ModelServer, play: Play
) -> None:
    freeze_reports(ground, tenant("a"), tenant("b"))
    summarizing = asking(ground.open(), server.connect())
    server.play(play)
    assert step_until_idle(summarizing) == 1
    ground.set_now(END + REST - SECOND)
    assert step_until_idle(summarizing) == 0
    ground.set_now(END + REST)
    server.play(Play.TOLD)
    assert step_until_idle(summarizing) == 2
    assert len(server.requests()) == len(attempts(ground, "id")) == 3
    assert sorted(attempts(ground, "outcome")) == ["accepted", "accepted", "failed"]


def test_a_refusal_does_not_keep_others_waiting(ground: SqlGround, server: ModelServer) -> None:
    freeze_reports(ground, tenant("a"), tenant("b"))
    server.play(Play.REFUSED)
    assert step_until_idle(asking(ground.open(), server.connect())) == 4
    assert sorted(attempts(ground, "tenant", "outcome")) == [
        *[("a", "failed")] * 2,
        *[("b", "failed")] * 2,
    ]


def test_a_tenant_over_its_budget_is_not_asked_about(
    ground: SqlGround, server: ModelServer
) -> None:
    freeze_reports(ground, tenant("a"), due_at=END + 30 * HOUR)
    heard = Heard()
    server.play(Play.TOLD, "4 lies")
    (ledger, endpoint), policy = (ground.open(), server.connect()), replace(POLICY, attempts_max=9)
    summarizing = asking(ledger, endpoint, heard, replace(policy, tokens_per_tenant_day=2_400))
    assert step_until_idle(summarizing) == 1  # 876 tokens, and the next might use 1,800
    assert step_until_idle(summarizing) == 0
    assert heard.withheld() == ["a"]
    freeze_reports(ground, tenant("b"))
    server.play(Play.TOLD)
    assert step_until_idle(summarizing) == 1
    assert attempts(ground, "tenant", "outcome") == [("a", "rejected"), ("b", "accepted")]
    ground.set_now(END + 12 * HOUR)  # the next day of UTC
    assert step_until_idle(summarizing) == 1
    assert attempts(ground, "outcome")[-1] == "accepted"


def test_a_report_whose_mail_is_due_is_left_alone(ground: SqlGround, server: ModelServer) -> None:
    freeze_reports(ground, tenant("a"))
    summarizing = asking(ground.open(), server.connect(), policy=replace(POLICY, seconds=20))
    for at in (DUE - 20 * SECOND, DUE, DUE + DAY):
        ground.set_now(at)
        assert summarizing.step() == 0
    ground.set_now(DUE - 21 * SECOND)
    assert summarizing.step() == 1


def test_no_mail_waits_while_the_model_thinks(ground: SqlGround) -> None:
    freeze_reports(ground, tenant("a"))
    mailing = ground.open()
    seen: list[Any] = []

    def take() -> None:
        ground.set_now(DUE)
        with mailing.transaction() as tx:
            reports = tx.reports.frozen(DUE, 10)
            seen.append([one.facts.tenant for one in reports])
            seen.append(dict(tx.summaries.accepted([one.id for one in reports])))

    assert asking(ground.open(), Parrot(meanwhile=take)).step() == 1
    assert seen == [["a"], {}]


def test_two_processes_never_ask_about_one_report_at_once(ground: SqlGround) -> None:
    freeze_reports(ground, tenant("a"))
    inner = Parrot()
    other = asking(ground.open(), inner)
    outer = Parrot(meanwhile=lambda: step_until_idle(other))
    assert step_until_idle(asking(ground.open(), outer)) == 1
    assert (len(outer.asked), len(inner.asked)) == (1, 0)


def test_an_answer_that_comes_after_its_attempt_was_given_up_is_told_so(ground: SqlGround) -> None:
    freeze_reports(ground, tenant("a"))
    other = asking(ground.open(), Parrot())

    def give_up() -> None:
        ground.set_now(END + 2 * MINUTE + SECOND)
        assert other.step() == 1

    heard = Heard()
    assert asking(ground.open(), Parrot(meanwhile=give_up), heard).step() == 1
    assert heard.outcomes() == ["abandoned"]
    assert attempts(ground, "outcome", "input_tokens") == [("abandoned", None), ("accepted", 10)]


def test_the_sweep_closes_what_nobody_asks_about_any_more(ground: SqlGround) -> None:
    freeze_reports(ground, tenant("a"))
    ledger = ground.open()
    sweeper = Sweeper(ledger, Onwards(), Scanner(ledger, Onwards()))
    begun(ledger)
    sweeper.sweep([])
    assert attempts(ground, "outcome") == [None]
    ground.set_now(END + 31 * MINUTE)
    sweeper.sweep([])
    assert attempts(ground, "outcome") == ["abandoned"]


def test_many_tenants_without_readers_keep_nobody_waiting(ground: SqlGround) -> None:
    silent = [tenant(f"a{n}", recipients=()) for n in range(60)]
    freeze_reports(ground, *silent, tenant("b"))
    parrot = Parrot()
    assert step_until_idle(asking(ground.open(), parrot)) == 1
    assert len(parrot.asked) == 1


# -------------------------------------------------------------------------------------- kills


@dataclass
class Written(Parrot):
    """A model that notes each request in a file, which a killed process leaves behind."""

    path: Path | None = None

    def tell(self, prompt: str, facts: str, output_tokens_max: int) -> Told:
        assert self.path is not None
        with self.path.open("a") as book:
            book.write("asked\n")
        return super().tell(prompt, facts, output_tokens_max)


@contextmanager
def look_at(url: str) -> Iterator[SqlGround]:
    """Open what a test left behind."""
    with BackDoor(url) as door:
        ground = SqlGround(url, SqlDoor(door), rule_on(door.dialect))
        yield ground
        ground.close()


def in_child(url: str, clock: SetClock, book: Path, checkpoint: Checkpoint) -> list[int]:
    """Ask from a process of its own until nothing is left; return how often."""

    def child(wire: Wire) -> int:
        if isinstance(checkpoint, KillAt):
            checkpoint.tell = wire.tell
        ledger = SqlLedger(_session(url, clock), Onwards())
        return step_until_idle(Summarizing(ledger, Written(path=book), POLICY, checkpoint))

    ending = run(child)
    return [] if ending.was_killed else [ending.value]


@pytest.mark.timeout(60, method="signal")  # a time limit by a thread could not fork
@pytest.mark.parametrize(
    ("boundary", "asked_count"), [(Boundary.SUMMARY_BEGUN, 0), (Boundary.SUMMARY_TOLD, 1)]
)
def test_a_killed_attempt_is_given_up_and_followed(
    migrated_url: str, tmp_path: Path, boundary: Boundary, asked_count: int
) -> None:
    with ground_at(migrated_url) as ground:
        freeze_reports(ground, tenant("a"))
    book = tmp_path / "asked"
    book.touch()
    clock = SetClock(END)
    assert in_child(migrated_url, clock, book, KillAt(1, boundary)) == []
    assert len(book.read_text().splitlines()) == asked_count
    assert in_child(migrated_url, clock, book, Onwards()) == [
        0
    ]  # the open attempt may still be answered
    clock.instant = END + 2 * MINUTE + SECOND
    assert in_child(migrated_url, clock, book, Onwards()) == [1]
    assert len(book.read_text().splitlines()) == asked_count + 1
    with look_at(migrated_url) as ground:
        assert attempts(ground, "attempt", "outcome", "input_tokens", "cost_micros") == [
            (1, "abandoned", None, None),
            (2, "accepted", 10, None),
        ]
        ledger = ground.open()
        most = attempts(ground, "tokens_max")[0]
        with ledger.transaction() as tx:
            assert tx.summaries.spent("a", END) == most + 15
