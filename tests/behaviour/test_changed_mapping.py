"""A changed mapping: open operations are built anew, and none runs under a meaning not its own."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from freehold.adapters.system import Onwards
from freehold.application.audit import audit
from freehold.application.remap import follow_mappings
from freehold.application.review import Person, Review
from freehold.domain.errors import UsageError
from freehold.domain.expiry import SkipReason
from freehold.domain.rules import Condition, Predicate, Rule, SetColumns, TenantSource, Test
from tests.behaviour.till import Till, cart, due_spec, open_table, put_holds, refuse, statuses

if TYPE_CHECKING:
    from tests.behaviour.place import Place

LONG = timedelta(hours=2)
DUE_TYPES = {"postgres": "timestamptz", "sqlite": "text"}


def held_or_kept() -> Predicate:
    return Predicate(((Condition("status", Test.IN, ("held", "kept")),),))


def assert_clean(till: Till) -> None:
    found = audit(till.ledger, (till.rule,))
    assert not [one for one in found if not one.clean]


def scanned(place: Place, rule: Rule, count: int = 3) -> None:
    open_table(place)
    put_holds(place, range(1, count + 1))
    assert Till.open(place, rule).scanner.scan(rule).new_count == count


def test_an_operation_of_another_action_is_released_by_the_new_one(place: Place) -> None:
    scanned(place, cart(place))
    rule = cart(place, action=SetColumns((("status", "lapsed"),)))
    till = Till.open(place, rule)
    assert till.run().released_count == 3
    assert statuses(place) == {"lapsed": 3}
    assert_clean(till)


def test_an_operation_is_built_anew_in_place(place: Place) -> None:
    """Without a token the identity is another; generation and id stay."""
    scanned(place, cart(place))
    ids = place.table("operation", "id")
    rule = cart(place, fence=(), held=held_or_kept())
    till = Till.open(place, rule)
    assert till.worker.work(rule).batch.released_count == 3
    assert place.table("record", "operation_id") == ids
    assert place.table("record", "generation, outcome") == [(1, "expired")] * 3
    assert_clean(till)


def test_what_is_not_held_under_the_new_mapping_ends(place: Place) -> None:
    scanned(place, cart(place))
    rule = cart(place, held=Predicate(((Condition("status", Test.EQUALS, ("kept",)),),)))
    till = Till.open(place, rule)
    assert till.run().skipped == {SkipReason.MAPPING_CHANGED: 3}
    assert place.ends() == {"mapping changed": 3}
    assert statuses(place) == {"held": 3}


def test_what_is_not_due_under_the_new_mapping_ends_and_is_found_again(place: Place) -> None:
    scanned(place, cart(place))
    rule = cart(place, due=due_spec(place, grace=LONG))
    till = Till.open(place, rule)
    assert till.run().skipped == {SkipReason.MAPPING_CHANGED: 3}
    place.advance(LONG)
    assert till.run_again(1).released_count == 3
    assert_clean(till)


def test_two_versions_at_once_release_each_hold_once(place: Place) -> None:
    open_table(place)
    old, new = cart(place), cart(place, fence=(), action=SetColumns((("status", "lapsed"),)))
    one, two = Till.open(place, old), Till.open(place, new)
    for round_number in range(6):
        first = 1 + 20 * round_number
        put_holds(place, range(first, first + 20), due=place.clock.at - timedelta(seconds=1))
        scan, work = (one, two) if round_number % 2 else (two, one)
        scan.scanner.scan(scan.rule)
        work.scanner.scan(work.rule)
        work.worker.work(work.rule)
        scan.worker.work(scan.rule)
        place.advance(timedelta(seconds=20))
    one.run_again(1)
    two.run_again(1)
    found = statuses(place)
    assert found["expired"] + found["lapsed"] == 120
    assert place.table("operation", "id") == []
    assert place.ends()["expired"] == 120


@pytest.mark.parametrize(
    "changes",
    [
        {"tenant": TenantSource("note")},
        {"fence": ("token", "qty")},
        {"fence": ()},
        {"due": None},
    ],
    ids=["tenant", "more fence", "less fence", "due"],
)
def test_what_another_mapping_released_is_not_judged_by_this_one(
    place: Place, changes: dict[str, Any]
) -> None:
    """Its records name tenant and granting by columns that the new mapping may not have."""
    scanned(place, cart(place))
    Till.open(place, cart(place)).run()
    place.host.run("alter table hold add column until " + DUE_TYPES[place.dialect])
    if "due" in changes:
        changes = {"due": due_spec(place, "until")}
    put_holds(place, range(11, 14), note="n")
    place.host.run("update hold set until = due where status = 'held'")
    till = Till.open(place, cart(place, **changes))
    assert till.run().released_count == 3
    assert_clean(till)


def test_an_operation_in_review_is_built_anew_after_its_requeue(place: Place) -> None:
    scanned(place, cart(place), 1)
    refuse(place, "new.status = 'expired'", "no")
    Till.open(place, cart(place)).run_again(7)
    rule = cart(place, action=SetColumns((("status", "lapsed"),)))
    till = Till.open(place, rule)
    review = Review(till.ledger, Onwards())
    ids = review.chosen(rule)
    (preview,) = review.preview(rule, ids)
    assert preview.outlook == "would be built anew, since the mapping changed, and released"
    assert review.requeue(rule, ids, Person("ann", "mapped otherwise")) == 1
    assert till.run().released_count == 1
    assert statuses(place) == {"lapsed": 1}


def test_what_is_not_in_review_cannot_be_requeued_by_its_id(place: Place) -> None:
    scanned(place, cart(place), 1)
    review = Review(place.ledger(), Onwards())
    with pytest.raises(UsageError, match="Operation 4711 is not in review under rule cart"):
        review.require(cart(place), [4711])


def test_a_new_mapping_is_noted_once(place: Place) -> None:
    old, new = cart(place), cart(place, fence=())
    scanned(place, old)
    ledger = place.ledger()
    for rule in (old, new, new):
        follow_mappings(ledger, (rule,))
    assert place.table("rule_state", "fingerprint") == [(new.fingerprint,)]
    assert place.table("action", "actor, action, subject, before, after") == [
        ("freehold", "mapping changed", "cart", old.fingerprint, new.fingerprint)
    ]


def test_a_renamed_rule_leaves_the_old_ones_operations_waiting(place: Place) -> None:
    scanned(place, cart(place))
    till = Till.open(place, replace(cart(place), name="basket"))
    assert till.run().released_count == 3
    assert place.table("operation", "rule, state") == [("cart", "ready")] * 3


def test_an_operation_of_no_known_mapping_is_taken_as_it_is(place: Place) -> None:
    scanned(place, cart(place))
    place.host.run(f"update {place.prefix}operation set fingerprint = null")
    place.host.run("update hold set status = 'paid' where id = 1")
    assert Till.open(place, cart(place)).run().skipped == {SkipReason.NO_LONGER_HELD: 1}
