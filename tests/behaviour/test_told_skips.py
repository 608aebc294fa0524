"""A rule with `tell_skips` leaves an event for a hold that was due and not released."""

from __future__ import annotations

from typing import TYPE_CHECKING

from freehold.application.audit import audit
from tests.behaviour.till import Till, cart, open_table, put_holds

if TYPE_CHECKING:
    from tests.behaviour.place import Place


def _meet_a_confirmed_hold(place: Place, *, tell_skips: bool) -> Till:
    """Let the host take hold 1 away between scan and work; hold 2 stays due."""
    open_table(place)
    put_holds(place, [1, 2])
    till = Till.open(place, cart(place, tell_skips=tell_skips))
    assert till.scanner.scan(till.rule).new_count == 2
    place.host.run("update hold set status = 'pending' where id = 1")
    till.worker.work(till.rule)
    assert place.ends() == {"no longer held": 1, "expired": 1}
    assert not [one for one in audit(till.ledger, (till.rule,)) if not one.clean]
    return till


def test_a_skip_is_told_with_its_reason_and_a_release_as_ever(place: Place) -> None:
    _meet_a_confirmed_hold(place, tell_skips=True)
    told = place.table("outbox", "hold_key, type, state")
    assert sorted(told) == [("1", "hold.skipped.v1", "kept"), ("2", "hold.expired.v1", "kept")]
    carried = {str(key): str(carry) for key, carry in place.table("outbox", "hold_key, carry")}
    assert "no longer held" in carried["1"]


def test_without_it_a_skip_leaves_its_record_only(place: Place) -> None:
    _meet_a_confirmed_hold(place, tell_skips=False)
    assert place.table("outbox", "hold_key, type") == [("2", "hold.expired.v1")]


def test_telling_is_no_part_of_what_the_mapping_means(place: Place) -> None:
    assert cart(place, tell_skips=True).fingerprint == cart(place).fingerprint
