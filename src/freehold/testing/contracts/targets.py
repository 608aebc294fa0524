"""The contract of `ports.target.Target`, for every broker, for webhooks and for any further one.

A ground is the other side: it says what arrived, and goes wrong when asked to. What one cannot play
(`plays`) is not asked of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Protocol

from freehold.domain.errors import TargetAway
from freehold.ports.target import Answer, Parcel, Reception, Target

RULE = "cart"
TYPE = "hold.expired.v1"


class Wrong(Enum):
    """What the other side may do wrong."""

    REFUSE = "says no to everything"
    SILENT = "takes what comes and says nothing"
    TAKE_THEN_CUT = "takes what comes next, and cuts the connection instead of an answer"


class Ground(Protocol):
    """The other side of a target, with a back door that does not use the adapter."""

    def connect(self, *, impatient: bool = False) -> Target:
        """Open one more connection; the ground closes it at the end.

        Args:
            impatient: wait for an answer for a moment only.
        """
        ...

    def connect_unreachable(self) -> Target:
        """Return a target that cannot be reached."""
        ...

    def arrived(self) -> Sequence[tuple[str, bytes]]:
        """Return key and body of what arrived, in any order; a repeat once or more."""
        ...

    def plays(self, wrong: Wrong) -> bool:
        """Tell whether it can go wrong in this way."""
        ...

    def go(self, wrong: Wrong | None) -> None:
        """Go wrong from now on; None: be well again."""
        ...


class DeliverContract:
    """Give the fixture `ground`."""

    def test_what_is_delivered_arrives_as_it_is(self, ground: Ground) -> None:
        parcels = [parcel(1), parcel(2, rule=""), parcel(3, body='{"name":"größe, ✓"}'.encode())]
        answers = ground.connect().deliver(parcels)
        assert [one.reception for one in answers] == [Reception.ACCEPTED] * 3
        assert sorted(ground.arrived()) == sorted((one.event_key, one.body) for one in parcels)

    def test_nothing_is_answered_with_nothing(self, ground: Ground) -> None:
        assert list(ground.connect().deliver([])) == []
        assert list(ground.arrived()) == []

    def test_a_repeat_has_the_same_key_and_bytes(self, ground: Ground) -> None:
        target = ground.connect()
        for _ in range(2):
            (answer,) = target.deliver([parcel(1)])
            assert answer.reception is Reception.ACCEPTED
        assert set(ground.arrived()) == {(parcel(1).event_key, parcel(1).body)}

    def test_a_whole_batch_is_taken(self, ground: Ground) -> None:
        target = ground.connect()
        assert target.seconds_most > 0
        parcels = [parcel(number) for number in range(min(target.batch_most, 50))]
        answers = target.deliver(parcels)
        assert [one.reception for one in answers] == [Reception.ACCEPTED] * len(parcels)
        assert len(set(ground.arrived())) == len(parcels)

    def test_who_is_unreachable_accepts_nothing(self, ground: Ground) -> None:
        target = ground.connect_unreachable()
        assert receptions(target, [parcel(1), parcel(2)]) <= {Reception.TRANSIENT}
        target.close()
        target.close()

    def test_after_a_close_the_next_delivery_opens_again(self, ground: Ground) -> None:
        target = ground.connect()
        target.deliver([parcel(1)])
        target.close()
        (answer,) = target.deliver([parcel(2)])
        assert answer.reception is Reception.ACCEPTED


class WrongContract:
    """Give the fixture `ground`."""

    def test_a_refusal_is_told_with_its_reason(self, ground: Ground) -> None:
        if ground.plays(Wrong.REFUSE):
            target = ground.connect()
            target.deliver([parcel(1)])
            ground.go(Wrong.REFUSE)
            answers = target.deliver([parcel(2), parcel(3)])
            assert all(_is_told(one) for one in answers)
            assert len(answers) == 2
            _is_well_again(ground, target)

    def test_silence_is_no_acceptance(self, ground: Ground) -> None:
        if ground.plays(Wrong.SILENT):
            target = ground.connect(impatient=True)
            target.deliver([parcel(1)])
            ground.go(Wrong.SILENT)
            assert receptions(target, [parcel(2)]) <= {Reception.TRANSIENT}
            _is_well_again(ground, target)

    def test_a_lost_answer_loses_no_event(self, ground: Ground) -> None:
        """A target may ask again by itself, where the other side knows a repeat by its key."""
        if ground.plays(Wrong.TAKE_THEN_CUT):
            target = ground.connect()
            target.deliver([parcel(1)])
            ground.go(Wrong.TAKE_THEN_CUT)
            assert receptions(target, [parcel(2)]) <= {Reception.TRANSIENT, Reception.ACCEPTED}
            assert (parcel(2).event_key, parcel(2).body) in set(ground.arrived())
            _is_well_again(ground, target)


def parcel(number: int, *, rule: str = RULE, body: bytes | None = None) -> Parcel:
    """Make a parcel."""
    return Parcel(
        event_key=f"{TYPE}:{rule}:{number}",
        type=TYPE,
        rule=rule,
        tenant=None,
        body=body or f'{{"id":"{number}"}}'.encode(),
    )


def receptions(target: Target, parcels: Sequence[Parcel]) -> set[Reception]:
    """Deliver and return what became of the parcels; nothing where the target is away."""
    try:
        return {one.reception for one in target.deliver(parcels)}
    except TargetAway:
        return set()


def _is_told(answer: Answer) -> bool:
    """Tell whether an answer is a no that a person understands."""
    return answer.reception is not Reception.ACCEPTED and bool(answer.code or answer.reason)


def _is_well_again(ground: Ground, target: Target) -> None:
    ground.go(None)
    (answer,) = target.deliver([parcel(9)])
    assert answer.reception is Reception.ACCEPTED
