"""Handing a batch over to a target whose code may raise instead of answering.

*Invariants*: what raises is an answer, and must not end the process with the batch in hand, again
and again; an event that makes it raise is found by halving, and the others do not pay for it.
*Not here*: what an answer means (`hearing`).
"""

from __future__ import annotations

from collections.abc import Sequence

from freehold.application.relaying.hearing import Heard, parcel_of
from freehold.domain.errors import TargetAway
from freehold.ports.relay import ClaimedForward
from freehold.ports.target import Answer, Reception, Target

UNSENT = Answer(Reception.UNSENT)


def hand_over(target: Target, forwards: Sequence[ClaimedForward]) -> Heard:
    """Hand a batch over, in halves where the target's code raises; touches no database.

    What raises may have arrived in part, so halves are told again what the whole was told: a repeat
    that consumers know by its key. One event among the whole is found; a target that raises at
    everything is asked a few times only, for the lease goes on meanwhile.
    """
    answers: list[Answer] = []
    waiting = [forwards]
    raises_left = 2 * len(forwards).bit_length()  # then no part is halved any more
    while waiting:
        part = waiting.pop()
        try:
            said = target.deliver([parcel_of(one) for one in part])
            answers += Heard.of(said, len(part)).answers
        except TargetAway as error:
            if part is forwards:
                return Heard(away=str(error))
            answers += [UNSENT] * len(part)
        except Exception as error:  # noqa: BLE001 -- it is written down with each forward
            raises_left -= 1
            half = len(part) // 2
            if half and raises_left > 0:
                waiting += [part[half:], part[:half]]
            else:
                answers += Heard.broken(type(error).__name__, len(part)).answers
    return Heard(answers)
