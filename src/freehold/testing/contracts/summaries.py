"""The contract of `ports.summary.Summaries`: the account of asking a model."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import Any

from freehold.domain.inventory import Tenant
from freehold.domain.reports import ReportReason, Window
from freehold.domain.tallies import Tally
from freehold.ports.ledger import Ledger
from freehold.ports.report_calendar import Closing
from freehold.ports.summary import (
    Place,
    SummaryAttempt,
    SummaryWanted,
    Told,
    Usage,
    WantedPage,
)
from freehold.testing.contracts.ground import NOW, SECOND, Abandoned, Ground, only, raised

HOUR = timedelta(hours=1)
END = NOW + HOUR  # of the window of every report here
DUE = END + 7 * HOUR
DAY = date(2031, 5, 6)
RECIPIENTS = ("a@hotel.example",)
USAGE = Usage(
    800, 100, None, 60, None, {"prompt_tokens": 800, "odd": [None, "\u20ac\u0000", "\ud800"]}
)
TEXT = "3 holds were released."
TOKENS_MAX = 1_500


def tenant(name: str, **changes: Any) -> Tenant:
    """Make a tenant that gets reports."""
    return replace(Tenant(name, name, recipients=RECIPIENTS), **changes)


def freeze_reports(
    ground: Ground,
    *tenants: Tenant,
    released_count: int = 3,
    reason: ReportReason | None = None,
    due_at: datetime = DUE,
) -> None:
    """Close and freeze one report for each tenant; the clock stands at `END` then."""
    ledger = ground.open()
    window = Window(DAY, NOW - 23 * HOUR, END, "UTC", "t")
    ground.set_now(NOW)
    with ledger.transaction() as tx:
        tx.tenants.set(tenants)
        tx.operations.add_tallies([_tally(one.id, released_count) for one in tenants])
        tx.report_calendar.enrol({one.id: window for one in tenants})
    ground.set_now(END)
    following = Window(DAY + timedelta(days=1), END, END + 24 * HOUR, "UTC", "t")
    with ledger.transaction() as tx:
        for group in tx.report_calendar.due(END, 100):
            tx.report_calendar.close(Closing(group, window, following, due_at, reason), 100)
    with ledger.transaction() as tx:
        overview = tx.reports.overview(100)
        ids = [one.report_id for one in overview.waiting]
        tx.reports.freeze(tx.reports.draft(ids, {}, overview.work, 10))


def _tally(name: str, released_count: int) -> Tally:
    tally = Tally("r", name)
    for _ in range(released_count):
        tally.count_expired(1.5)
    return tally


def look(
    ledger: Ledger,
    until: datetime = END,
    after: Place | None = None,
    limit: int = 10,
    attempts_max: int = 2,
) -> WantedPage:
    """Look through one page and commit."""
    with ledger.transaction() as tx:
        return tx.summaries.wanted(until, after, limit, attempts_max)


def names(page: WantedPage) -> list[str]:
    """Name whose reports lack a text."""
    return [one.tenant for one in page.wanted]


def begin(ledger: Ledger, wanted: SummaryWanted) -> SummaryAttempt | None:
    """Open the next attempt and commit."""
    with ledger.transaction() as tx:
        return tx.summaries.begin(wanted, "1", "model.example", "small", TOKENS_MAX)


def begun(ledger: Ledger) -> SummaryAttempt:
    """Open an attempt at the only report that lacks a text."""
    (wanted,) = look(ledger).wanted
    attempt = begin(ledger, wanted)
    assert attempt is not None
    return attempt


def end(
    ledger: Ledger,
    attempt: SummaryAttempt,
    told: Told,
    rejected: str | None = None,
    cost_micros: int | None = None,
) -> bool:
    """Close an attempt and commit."""
    with ledger.transaction() as tx:
        return tx.summaries.end(attempt, told, rejected, cost_micros, "USD")


def texts(ledger: Ledger, ids: Sequence[int]) -> Mapping[int, tuple[int, str]]:
    """Read the accepted texts."""
    with ledger.transaction() as tx:
        return tx.summaries.accepted(ids)


class SummariesContract:
    """Give the fixture `ground`."""

    # ------------------------------------------------------------------------------- wanted

    def test_a_frozen_report_that_is_due_later_is_wanted(self, ground: Ground) -> None:
        freeze_reports(ground, tenant("a", locale="de"))
        ledger = ground.open()
        (wanted,) = look(ledger).wanted
        assert (wanted.tenant, wanted.locale, wanted.attempt_count) == ("a", "de", 0)
        assert (wanted.due_at, wanted.facts.released_count) == (DUE, 3)
        assert names(look(ledger, DUE - SECOND)) == ["a"]
        assert names(look(ledger, DUE)) == []

    def test_only_what_somebody_will_read_is_wanted(self, ground: Ground) -> None:
        silent, gone = tenant("b", recipients=()), tenant("c", active=False)
        freeze_reports(ground, tenant("a"), silent, gone)
        assert names(look(ground.open())) == ["a"]

    def test_a_day_without_releases_is_not_wanted(self, ground: Ground) -> None:
        freeze_reports(ground, tenant("a"), released_count=0)
        assert names(look(ground.open())) == []

    def test_what_is_only_recorded_is_not_wanted(self, ground: Ground) -> None:
        freeze_reports(ground, tenant("a"), reason=ReportReason.MISSED)
        assert names(look(ground.open())) == []

    def test_pages_follow_each_other_whatever_they_hold(self, ground: Ground) -> None:
        silent = [tenant(name, recipients=()) for name in "abc"]
        freeze_reports(ground, *silent, tenant("d"), tenant("e"))
        ledger, place, seen = ground.open(), None, []
        for _ in range(3):
            page = look(ledger, after=place, limit=2)
            seen.append(names(page))
            place = page.place
        assert seen == [[], ["d"], ["e"]]
        assert place is None

    # ---------------------------------------------------------------------------- attempts

    def test_an_attempt_is_written_before_the_model_is_asked(self, ground: Ground) -> None:
        freeze_reports(ground, tenant("a"))
        attempt = begun(ground.open())
        row = only(ground.back.rows("summary_attempt"))
        assert (row["attempt"], row["tenant"], row["started_at"]) == (1, "a", END)
        said = (row["prompt_version"], row["host"], row["model_asked"], row["facts_digest"])
        assert said == ("1", "model.example", "small", attempt.facts_digest)
        assert (row["ended_at"], row["outcome"], row["tokens_max"]) == (None, None, TOKENS_MAX)

    def test_of_one_report_one_attempt_is_open(self, ground: Ground) -> None:
        freeze_reports(ground, tenant("a"))
        one, other = ground.open(), ground.open()
        (wanted,) = look(other).wanted
        begun(one)
        assert begin(other, wanted) is None
        assert begin(other, replace(wanted, attempt_count=1)) is None
        assert names(look(other)) == []

    def test_an_attempt_that_was_not_committed_is_none(self, ground: Ground) -> None:
        freeze_reports(ground, tenant("a"))
        ledger = ground.open()
        (wanted,) = look(ledger).wanted
        with raised(Abandoned), ledger.transaction() as tx:
            tx.summaries.begin(wanted, "1", "model.example", "small", TOKENS_MAX)
            raise Abandoned
        assert ground.back.rows("summary_attempt") == []

    def test_other_facts_begin_nothing(self, ground: Ground) -> None:
        freeze_reports(ground, tenant("a"))
        ledger = ground.open()
        (wanted,) = look(ledger).wanted
        assert begin(ledger, replace(wanted, facts_digest="0" * 64)) is None

    def test_a_failed_attempt_may_be_followed_within_the_bound(self, ground: Ground) -> None:
        freeze_reports(ground, tenant("a"))
        ledger = ground.open()
        for number in (1, 2):
            attempt = begun(ledger)
            assert attempt.attempt == number
            assert end(ledger, attempt, Told(None, trouble="away"))
        assert names(look(ledger)) == []
        assert names(look(ledger, attempts_max=3)) == ["a"]
        rows = ground.back.rows("summary_attempt")
        assert [(one["outcome"], one["reason"]) for one in rows] == [("failed", "away")] * 2

    # --------------------------------------------------------------------------------- ends

    def test_an_accepted_text_is_kept_with_what_it_used(self, ground: Ground) -> None:
        freeze_reports(ground, tenant("a"))
        ledger = ground.open()
        attempt = begun(ledger)
        ground.set_now(END + SECOND)
        assert end(ledger, attempt, Told(TEXT, "small-2", USAGE), cost_micros=157)
        row = only(ground.back.rows("summary_attempt"))
        assert (row["outcome"], row["reason"], row["ended_at"]) == ("accepted", None, END + SECOND)
        assert (row["model_answered"], row["summary"]) == ("small-2", TEXT)
        assert (row["cost_micros"], row["currency"]) == (157, "USD")
        assert (row["input_tokens"], row["cached_tokens"], row["output_tokens"]) == (800, 100, 60)
        assert (row["cache_write_tokens"], row["reasoning_tokens"]) == (None, None)
        raw = row["raw_usage"]
        assert (json.loads(raw) if isinstance(raw, str) else raw) == USAGE.raw
        assert texts(ledger, [attempt.report_id]) == {attempt.report_id: (attempt.id, TEXT)}
        assert names(look(ledger, attempts_max=9)) == []

    def test_what_is_not_known_stays_unknown(self, ground: Ground) -> None:
        freeze_reports(ground, tenant("a"))
        ledger = ground.open()
        assert end(ledger, begun(ledger), Told(TEXT))
        row = only(ground.back.rows("summary_attempt"))
        unknown = ("model_answered", "input_tokens", "output_tokens", "cached_tokens", "raw_usage")
        assert {row[name] for name in (*unknown, "cost_micros", "currency")} == {None}

    def test_a_rejected_text_is_not_kept(self, ground: Ground) -> None:
        freeze_reports(ground, tenant("a"))
        ledger = ground.open()
        attempt = begun(ledger)
        assert end(ledger, attempt, Told(TEXT, "small", USAGE), rejected="a number")
        row = only(ground.back.rows("summary_attempt"))
        assert (row["outcome"], row["reason"], row["summary"]) == ("rejected", "a number", None)
        assert row["input_tokens"] == 800
        assert texts(ledger, [attempt.report_id]) == {}

    def test_an_attempt_ends_once(self, ground: Ground) -> None:
        freeze_reports(ground, tenant("a"))
        ledger = ground.open()
        attempt = begun(ledger)
        assert end(ledger, attempt, Told(None, trouble="away"))
        assert not end(ledger, attempt, Told(TEXT))
        assert only(ground.back.rows("summary_attempt"))["outcome"] == "failed"

    def test_attempts_that_were_left_open_are_abandoned(self, ground: Ground) -> None:
        freeze_reports(ground, tenant("a"))
        ledger = ground.open()
        attempt = begun(ledger)
        ground.set_now(END + HOUR)
        with ledger.transaction() as tx:
            assert tx.summaries.abandon(END) == 0
            assert tx.summaries.abandon(END + SECOND) == 1
            assert tx.summaries.abandon(END + SECOND) == 0
        row = only(ground.back.rows("summary_attempt"))
        assert (row["outcome"], row["ended_at"]) == ("abandoned", END + HOUR)
        assert (row["input_tokens"], row["cost_micros"]) == (None, None)
        assert not end(ledger, attempt, Told(TEXT))
        assert begun(ledger).attempt == 2

    def test_tokens_are_counted_by_tenant_and_time(self, ground: Ground) -> None:
        freeze_reports(ground, tenant("a"), tenant("b"))
        ledger = ground.open()
        for wanted in look(ledger).wanted:
            attempt = begin(ledger, wanted)
            assert attempt is not None
            if wanted.tenant == "a":
                end(ledger, attempt, Told(TEXT, "small", USAGE))
        with ledger.transaction() as tx:
            spent = {name: tx.summaries.spent(name, END) for name in "abc"}
            assert spent == {"a": 860, "b": TOKENS_MAX, "c": 0}
            assert tx.summaries.spent("a", END + SECOND) == 0

    def test_half_a_usage_counts_as_the_most(self, ground: Ground) -> None:
        freeze_reports(ground, tenant("a"))
        ledger = ground.open()
        end(ledger, begun(ledger), Told(TEXT, usage=Usage(output_tokens=3)))
        with ledger.transaction() as tx:
            assert tx.summaries.spent("a", END) == TOKENS_MAX
