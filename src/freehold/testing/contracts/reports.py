"""The contract of `ports.reports.Reports`, and of the glance that counts beside a writer."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any, TypeVar

from freehold.domain.errors import DatabaseError
from freehold.domain.expiry import SkipReason
from freehold.domain.facts import Facts, LateFacts, ReleasedItem
from freehold.domain.facts_text import canonical, read_facts
from freehold.domain.inventory import Tenant
from freehold.domain.names import digest
from freehold.domain.reports import ReportReason, ReportState, Window
from freehold.domain.tallies import Tally
from freehold.ports.ledger import Ledger
from freehold.ports.report_calendar import Closing
from freehold.ports.reports import Draft, FrozenReport, OpenWork, RuleNote
from freehold.ports.straight import ChosenFound
from freehold.testing.contracts.ground import NOW, SECOND, Ground, enqueue, new_operation, only

T = TypeVar("T")
DAY = timedelta(days=1)
FIRST = date(2031, 5, 6)  # the day of NOW
NOTES = {"r": RuleNote(60.0)}
OWNER = Tenant("t", "Harbour", "UTC", 7, ("a@example.org",), "en")


def window(day: date) -> Window:
    """Return a day of UTC."""
    start_at = datetime(day.year, day.month, day.day, tzinfo=UTC)
    return Window(day, start_at, start_at + DAY, "UTC", "test")


class FreezingContract:
    """Give the fixture `ground`."""

    def test_tallies_add_up(self, ground: Ground) -> None:
        ledger = ground.open()
        _tell(ledger, lags=(0.5, 2, 100), skips={SkipReason.RENEWED: 2}, redelivered=3)
        _tell(ledger, lags=(0.25,), skips={SkipReason.RENEWED: 1, SkipReason.GONE: 1})
        rule = only_rule(_frozen(ledger))
        assert (rule.released_count, rule.retried_count) == (4, 3)
        assert rule.skipped == {"renewed": 3, "gone": 1}
        assert (rule.lag_p50_seconds, rule.lag_p95_seconds) == (1.0, 100.0)
        assert (rule.lag_max_seconds, rule.promise_seconds) == (100.0, 60.0)
        assert rule.within_promise_count == 3

    def test_a_rule_that_is_no_longer_configured_has_no_promise(self, ground: Ground) -> None:
        ledger = ground.open()
        _tell(ledger, lags=(1,))
        rule = only_rule(_frozen(ledger, notes={}))
        assert (rule.promise_seconds, rule.within_promise_count) == (None, None)

    def test_a_day_without_anything_has_facts_too(self, ground: Ground) -> None:
        facts = _frozen(ground.open())
        assert (facts.rules, facts.late, facts.items) == ((), (), ())
        assert (facts.tenant, facts.tenant_name) == ("t", "t")
        assert (facts.day_before_count, facts.week_before_count) == (None, None)
        assert (facts.start_at, facts.end_at) == (window(FIRST).start_at, window(FIRST).end_at)

    def test_what_came_too_late_is_told_by_its_day(self, ground: Ground) -> None:
        ledger = ground.open()
        ground.set_now(window(FIRST).start_at - SECOND)
        _tell(ledger, lags=(1, 1), skips={SkipReason.GONE: 1})
        _close(ledger, FIRST)
        ground.set_now(NOW)
        _tell(ledger, lags=(1,))
        _close(ledger, FIRST + DAY)
        first, second = (one.facts for one in _drafts(ledger))
        assert first.late == (LateFacts(None, 2, 1),)
        assert (first.rules, second.late) == ((), (LateFacts(FIRST, 1, 0),))

    def test_items_are_the_first_released_holds(self, ground: Ground) -> None:
        ledger = ground.open()
        for second, keys in ((3, (5,)), (1, (4, 2, 3)), (2, (1,))):
            _release(ground, ledger, NOW + second * SECOND, *keys)
        facts = _frozen(ledger, items_max=4)
        due_at, at = NOW, NOW + SECOND
        assert facts.items[0] == ReleasedItem("r", "2", None, due_at, at, 1.0)
        assert [one.hold_key for one in facts.items] == ["2", "3", "4", "1"]
        assert only_rule(facts).released_count == 5

    def test_units_are_counted_and_named_by_their_column(self, ground: Ground) -> None:
        ledger = ground.open()
        for key, unit in ((1, "b"), (2, "b"), (3, "c")):
            ground.back.add_hold(key, NOW, token=unit)
        _release(ground, ledger, NOW + SECOND)
        facts = _frozen(ledger, notes={"r": RuleNote(60.0, "token")})
        assert [one.unit for one in facts.items] == ["b", "b", "c"]
        assert only_rule(facts).unit_count == 2

    def test_without_a_unit_column_each_key_is_a_unit(self, ground: Ground) -> None:
        ledger = ground.open()
        _release(ground, ledger, NOW + SECOND, 1, 2)
        ground.back.change_hold(1, "status", "held")
        ground.back.change_hold(1, "token", "again")
        _release(ground, ledger, NOW + 2 * SECOND)
        facts = _frozen(ledger)
        assert only_rule(facts).released_count == 3
        assert only_rule(facts).unit_count == 2

    def test_the_days_before_are_those_of_their_reports(self, ground: Ground) -> None:
        ledger = ground.open()
        for day in (0, 1, 6, 7):
            ground.set_now(NOW + day * DAY)
            _tell(ledger, lags=(1,) * (day + 1))
        for day in range(8):
            _close(ledger, FIRST + day * DAY)
        drafts = _drafts(ledger)
        counts = [(one.facts.day_before_count, one.facts.week_before_count) for one in drafts]
        assert counts[0] == (None, None)
        assert (counts[1], counts[2], counts[7]) == ((1, None), (2, None), (7, 1))

    def test_open_work_is_told(self, ground: Ground) -> None:
        ledger = ground.open()
        dead = [new_operation("r", key, dead_reason="why") for key in (0, 1, 2)]
        later = new_operation("r", 4, NOW - SECOND)
        other = new_operation("r", 5, tenant="u", due_at=NOW - 9 * SECOND)
        enqueue(ledger, *dead, new_operation("r", 3, NOW - 2 * SECOND), later, other)
        with ledger.transaction() as tx:
            tx.reviews.discard([only_one(tx.reviews.find_open("r", 0, 1))], "why")
        _close(ledger, FIRST)
        with ledger.glance() as tx:
            overview = tx.reports.overview(10)
            assert overview.work == {"t": {"r": OpenWork(2, NOW - 2 * SECOND)}}
        with ledger.transaction() as tx:
            ids = [one.report_id for one in overview.waiting]
            draft = only_one(tx.reports.draft(ids, {}, overview.work, 10))
        rule = only_rule(draft.facts)
        assert (rule.dead_count, rule.oldest_due_at) == (2, NOW - 2 * SECOND)
        assert (rule.released_count, rule.lag_p50_seconds) == (0, None)

    def test_an_overview_names_the_first_that_wait(self, ground: Ground) -> None:
        ledger = ground.open()
        with ledger.transaction() as tx:
            assert tx.reports.overview(10).waiting == ()
        _tell(ledger, lags=(1, 1))
        _close(ledger, FIRST)
        _close(ledger, FIRST + DAY)
        with ledger.transaction() as tx:
            waiting = tx.reports.overview(1).waiting
            assert [one.released_count for one in waiting] == [2]
            assert len(tx.reports.overview(10).waiting) == 2

    def test_an_overview_of_one_report_is_about_it_alone(self, ground: Ground) -> None:
        ledger = ground.open()
        _tell(ledger, lags=(1, 1))
        _close(ledger, FIRST)
        _close(ledger, FIRST + DAY)
        enqueue(ledger, new_operation("r", 3, NOW), new_operation("r", 5, NOW, tenant="u"))
        with ledger.transaction() as tx:
            first, second = tx.reports.overview(10).waiting
            assert tx.reports.overview_of("t", FIRST).waiting == [first]
            found = tx.reports.overview_of("t", FIRST + DAY)
            assert found.waiting == [second]
            assert found.work == {"t": {"r": OpenWork(0, NOW)}}
            assert tx.reports.overview_of("u", FIRST).waiting == ()
        drafts = _drafts(ledger)
        with ledger.transaction() as tx:
            tx.reports.freeze(drafts)
            assert tx.reports.overview_of("t", FIRST).waiting == ()

    def test_facts_are_written_once(self, ground: Ground) -> None:
        ledger = ground.open()
        _tell(ledger, lags=(1,))
        _close(ledger, FIRST)
        drafts = _drafts(ledger)
        with ledger.transaction() as tx:
            assert tx.reports.freeze(drafts) == 1
            assert tx.reports.freeze([]) == 0
        before = only(ground.back.rows("report"))
        ids = [one.report_id for one in drafts]
        changed = [replace(one, facts=replace(one.facts, tenant_name="x")) for one in drafts]
        with ledger.transaction() as tx:
            assert tx.reports.freeze(changed) == 0
            assert tx.reports.draft(ids, NOTES, {}, 10) == []
        assert only(ground.back.rows("report")) == before
        assert (before["state"], before["ended_at"]) == ("frozen", None)
        body = canonical(drafts[0].facts)
        assert before["facts"].encode() == body
        assert before["facts_digest"] == hashlib.sha256(body).hexdigest()
        assert read_facts(before["facts"]) == drafts[0].facts

    def test_counting_again_counts_the_same(self, ground: Ground) -> None:
        ledger = ground.open()
        _release(ground, ledger, NOW + SECOND, 1, 2, 3)
        _close(ledger, FIRST)
        first = only_one(_drafts(ledger))
        ground.set_now(NOW + 9 * SECOND)
        again = only_one(_drafts(ledger))
        assert replace(again.facts, frozen_at=first.facts.frozen_at) == first.facts
        assert again.facts.frozen_at == NOW + 9 * SECOND

    def test_a_report_that_is_only_recorded_ends_with_its_facts(self, ground: Ground) -> None:
        ledger = ground.open()
        _close(ledger, FIRST, reason=ReportReason.MISSED)
        drafts = _drafts(ledger)
        assert only_one(drafts).reason is ReportReason.MISSED
        with ledger.transaction() as tx:
            tx.reports.freeze(drafts)
        row = only(ground.back.rows("report"))
        assert (row["state"], row["reason"]) == ("skipped", ReportReason.MISSED.value)
        assert row["ended_at"] == row["frozen_at"]
        assert row["facts"] is not None

    def test_a_report_in_hand_is_left_to_who_has_it(self, ground: Ground) -> None:
        ledger, other = ground.open(), ground.open()
        _close(ledger, FIRST)
        if not ground.transactions_overlap():
            return
        ids = _ids(ledger)
        with ledger.transaction() as tx, other.transaction() as second:
            assert len(tx.reports.draft(ids, NOTES, {}, 10)) == 1
            assert second.reports.draft(ids, NOTES, {}, 10) == []

    def test_a_glance_writes_nothing(self, ground: Ground) -> None:
        ledger = ground.open()
        _close(ledger, FIRST)
        drafts = _drafts(ledger)
        refused = False
        try:
            with ledger.glance() as tx:
                tx.reports.freeze(drafts)
        except DatabaseError:
            refused = True
        assert refused
        assert only(ground.back.rows("report"))["state"] == "assigned"


class FrozenContract:
    """Give the fixture `ground`."""

    def test_the_earliest_due_come_first(self, ground: Ground) -> None:
        ledger = ground.open()
        for day in range(3):
            _close(ledger, FIRST + day * DAY)
        _freeze(ledger)
        due_at = window(FIRST).end_at
        with ledger.transaction() as tx:
            assert tx.reports.frozen(due_at - SECOND, 10) == []
            (one,) = tx.reports.frozen(due_at, 10)
            assert (one.facts.report_date, one.due_at) == (FIRST, due_at)
            dates = [one.facts.report_date for one in tx.reports.frozen(due_at + 9 * DAY, 2)]
            assert dates == [FIRST, FIRST + DAY]

    def test_it_comes_with_its_tenant_as_that_is_now(self, ground: Ground) -> None:
        ledger = ground.open()
        _close(ledger, FIRST)
        _freeze(ledger)
        one = _only_frozen(ledger)
        assert (one.tenant, one.unsubscribed, one.reason) == (None, frozenset(), None)
        assert one.facts_digest == hashlib.sha256(canonical(one.facts)).hexdigest()
        with ledger.transaction() as tx:
            tx.tenants.add([OWNER])
            tx.unsubscribed.add("t", "b@example.org", "me", "asked")
        one = _only_frozen(ledger)
        assert (one.tenant, one.unsubscribed) == (OWNER, frozenset({"b@example.org"}))
        with ledger.transaction() as tx:
            assert tx.reports.read("t", FIRST) == one

    def test_those_in_hand_are_left_to_who_has_them(self, ground: Ground) -> None:
        ledger, other = ground.open(), ground.open()
        _close(ledger, FIRST)
        _freeze(ledger)
        if not ground.transactions_overlap():
            return
        with ledger.transaction() as tx, other.transaction() as second:
            assert len(tx.reports.frozen(NOW + 9 * DAY, 10)) == 1
            assert second.reports.frozen(NOW + 9 * DAY, 10) == []
        with ledger.transaction() as tx, other.transaction() as second:
            assert tx.reports.read("t", FIRST) is not None
            assert second.reports.frozen(NOW + 9 * DAY, 10) == []

    def test_one_without_a_mail_ends(self, ground: Ground) -> None:
        ledger = ground.open()
        _close(ledger, FIRST)
        (waiting,) = _ids(ledger)
        ended = ([waiting, 10**9], ReportState.NOT_SENT, ReportReason.NO_RECIPIENT)
        with ledger.transaction() as tx:
            assert tx.reports.end(*ended) == 0
        _freeze(ledger)
        with ledger.transaction() as tx:
            assert tx.reports.end([], ReportState.NOT_SENT, None) == 0
            assert tx.reports.end(*ended) == 1
            assert tx.reports.end(*ended) == 0
            assert tx.reports.frozen(NOW + 9 * DAY, 10) == []
        row = only(ground.back.rows("report"))
        assert (row["state"], row["reason"], row["ended_at"]) == ("not sent", "no recipient", NOW)

    def test_a_report_is_read_once_it_has_facts(self, ground: Ground) -> None:
        ledger = ground.open()
        _close(ledger, FIRST)
        with ledger.transaction() as tx:
            assert tx.reports.read("t", FIRST) is None
        _freeze(ledger)
        with ledger.transaction() as tx:
            found = tx.reports.read("t", FIRST)
            assert found is not None
            assert (found.facts.tenant, found.facts.report_date) == ("t", FIRST)
            assert tx.reports.read("t", FIRST + DAY) is None
            assert tx.reports.read("u", FIRST) is None


def only_rule(facts: Facts) -> Any:
    """Return the facts of the only rule."""
    assert [one.rule for one in facts.rules] == ["r"]
    return facts.rules[0]


def only_one(found: Sequence[T]) -> T:
    """Return the only one."""
    assert len(found) == 1
    return found[0]


def _tell(
    ledger: Ledger,
    lags: Sequence[float] = (),
    skips: dict[SkipReason, int] | None = None,
    redelivered: int = 0,
) -> None:
    """Write a tally."""
    tally = Tally("r", "t", redelivery_count=redelivered)
    tally.skipped.update(skips or {})
    for lag_seconds in lags:
        tally.count_expired(lag_seconds)
    with ledger.transaction() as tx:
        tx.operations.add_tallies([tally])


def _release(ground: Ground, ledger: Ledger, at: datetime, *keys: int) -> None:
    """Release what is due, and more rows that fall due a second before."""
    for key in keys:
        ground.back.add_hold(key, NOW)
    ground.set_now(at)
    with ledger.transaction() as tx:
        straight = tx.straight(ground.rule)
        found = straight.lock_found(tx.holds(ground.rule).find_due(None, 100))
        tally = Tally("r", "t")
        for _ in found:
            tally.count_expired((at - NOW).total_seconds())
        (tally_id,) = tx.operations.add_tallies([tally])
        chosen = [
            ChosenFound(
                found=one.found,
                operation_id=one.operation_id or 0,
                digest=digest("r", one.found.hold_key, one.found.identity),
                due_at=NOW,
                tally_id=tally_id,
            )
            for one in found
        ]
        straight.release_found(chosen, None)


def _close(ledger: Ledger, day: date, reason: ReportReason | None = None) -> None:
    """Close a day of tenant `t`, whatever the clock says."""
    this = window(day)
    with ledger.transaction() as tx:
        tx.report_calendar.enrol({"t": this})
        (group,) = tx.report_calendar.due(this.end_at, 10)
        assert group.window == this
        closing = Closing(group, this, window(day + DAY), this.end_at, reason)
        assert tx.report_calendar.close(closing, 10) == 1


def _ids(ledger: Ledger) -> list[int]:
    with ledger.transaction() as tx:
        return [one.report_id for one in tx.reports.overview(100).waiting]


def _drafts(
    ledger: Ledger, notes: dict[str, RuleNote] | None = None, items_max: int = 10
) -> Sequence[Draft]:
    ids = _ids(ledger)
    with ledger.transaction() as tx:
        return tx.reports.draft(ids, NOTES if notes is None else notes, {}, items_max)


def _frozen(ledger: Ledger, notes: dict[str, RuleNote] | None = None, items_max: int = 10) -> Facts:
    """Close the first day, and return its facts."""
    _close(ledger, FIRST)
    return only_one(_drafts(ledger, notes, items_max)).facts


def _freeze(ledger: Ledger) -> None:
    drafts = _drafts(ledger)
    with ledger.transaction() as tx:
        assert tx.reports.freeze(drafts) == len(drafts)


def _only_frozen(ledger: Ledger) -> FrozenReport:
    with ledger.transaction() as tx:
        (one,) = tx.reports.frozen(NOW + 9 * DAY, 10)
        return one
