"""What one-shots share: a deadline as a person writes it."""

from __future__ import annotations


def deadline_seconds(deadline: str) -> float:
    """Read --deadline.

    Raises:
        UsageError: it is no duration.
    """
    from freehold.domain.errors import UsageError
    from freehold.domain.schedule import ScheduleError, parse_duration

    try:
        return parse_duration(deadline).total_seconds()
    except ScheduleError as error:
        raise UsageError(f"--deadline {deadline!r}: {error}.") from error
