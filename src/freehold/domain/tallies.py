"""Counts that one releasing transaction adds up, one tally for each tenant that it touched.

*Invariants*: the sum over all tallies equals the records; a tally never changes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from freehold.domain.expiry import SkipReason

# Upper bounds in seconds; the last bucket is open. Doubling and tripling by turns keeps the
# relative error of a percentile below one half from 10 ms to a day.
LAG_BOUNDS_SECONDS = (
    0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 60.0, 180.0, 600.0, 1_800.0, 3_600.0, 10_800.0,
    86_400.0,
)  # fmt: skip


@dataclass(slots=True)
class Tally:
    """Counts of one (rule, tenant) in one transaction.

    Attributes:
        lag_counts: expired holds by lag, one count for each of `LAG_BOUNDS_SECONDS` and one open.
        lag_max_seconds: the longest lag exactly; None when nothing expired.
        redelivery_count: attempts beyond the first of all operations that ended here.
    """

    rule: str
    tenant: str | None
    expired_count: int = 0
    skipped: Counter[SkipReason] = field(default_factory=Counter)
    lag_counts: list[int] = field(default_factory=lambda: [0] * (len(LAG_BOUNDS_SECONDS) + 1))
    lag_max_seconds: float | None = None
    redelivery_count: int = 0

    def count_expired(self, lag_seconds: float) -> None:
        """Add one expired hold with its lag from due to commit."""
        self.expired_count += 1
        self.lag_counts[bisect_left(LAG_BOUNDS_SECONDS, lag_seconds)] += 1
        if self.lag_max_seconds is None or lag_seconds > self.lag_max_seconds:
            self.lag_max_seconds = lag_seconds


def lag_quantile(lag_counts: Iterable[int], share: float) -> float | None:
    """Return the upper bound in seconds of the bucket that holds this share of lags.

    Returns:
        None when nothing was counted; infinity for the open bucket.
    """
    counts = list(lag_counts)
    wanted, seen = share * sum(counts), 0
    if not sum(counts):
        return None
    for bound, count in zip((*LAG_BOUNDS_SECONDS, float("inf")), counts, strict=True):
        seen += count
        if seen >= wanted:
            return bound
    return float("inf")


def lags(
    lag_counts: Iterable[int], lag_max_seconds: float | None = None
) -> dict[str, float | None]:
    """Return the usual quantiles in seconds, by name: upper bounds, as in `lag_quantile`.

    Args:
        lag_max_seconds: the longest lag exactly, where it is known; no quantile is above it.
    """
    counts = list(lag_counts)
    shares = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}
    found = {name: lag_quantile(counts, share) for name, share in shares.items()}
    if lag_max_seconds is None:
        return found
    return {name: None if at is None else min(at, lag_max_seconds) for name, at in found.items()}


def within_count(
    lag_counts: Iterable[int], lag_max_seconds: float | None, promise_seconds: float
) -> int:
    """Count the lags that were surely within a promise: those of the buckets up to it.

    Args:
        lag_max_seconds: the longest lag exactly, where it is known; if it kept the promise all did.
    """
    counts = list(lag_counts)
    if lag_max_seconds is not None and lag_max_seconds <= promise_seconds:
        return sum(counts)
    bounded = zip(LAG_BOUNDS_SECONDS, counts, strict=False)  # the last bucket is open
    return sum(count for bound, count in bounded if bound <= promise_seconds)
