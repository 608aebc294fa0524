"""How many releases kept their rule's promise, as far as the counted lags can tell."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from freehold.domain.facts import RuleFacts
from freehold.domain.tallies import LAG_BOUNDS_SECONDS


@dataclass(frozen=True, slots=True)
class Kept:
    """Of so many releases under a promise, so many surely kept it.

    Attributes:
        is_exact: the others surely did not; lags are counted in buckets, and a promise within one
            leaves its releases in doubt.
    """

    part: int = 0
    whole: int = 0
    is_exact: bool = True

    @property
    def late_count(self) -> int:
        """Return how many did not keep it, or perhaps did not."""
        return self.whole - self.part

    @classmethod
    def of(cls, rules: Iterable[RuleFacts]) -> Kept:
        """Add up the rules that have a promise."""
        known = [rule for rule in rules if rule.within_promise_count is not None]
        return cls(
            part=sum(rule.within_promise_count or 0 for rule in known),
            whole=sum(rule.released_count for rule in known),
            is_exact=all(_is_exact(rule) for rule in known),
        )


def _is_exact(rule: RuleFacts) -> bool:
    all_kept = rule.within_promise_count == rule.released_count
    return all_kept or rule.promise_seconds in LAG_BOUNDS_SECONDS
