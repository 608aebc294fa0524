"""What one-shots share: a deadline as a person writes it, and what keeps them from working."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from freehold.application.stopped import Stopped
    from freehold.settings import Settings


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


def require_rules(settings: Settings) -> None:
    """Refuse where there is nothing to do.

    Raises:
        UsageError: no rule is configured.
    """
    from freehold.domain.errors import UsageError

    if not settings.rules:
        raise UsageError(
            "No rule is configured, so there is nothing to do; add [[rules]] to freehold.toml "
            "(`freehold init` drafts one)."
        )


def refuse(stopped: Stopped) -> None:
    """Refuse in one sentence when a rule could not work, also where others could.

    Raises:
        RefusedByState: one could not.
    """
    from freehold.domain.errors import RefusedByState

    if not stopped.rules:
        return
    reason = next(iter(stopped.rules.values()))
    names = [name for name, other in stopped.rules.items() if other == reason]
    who = f"Rule {names[0]}" if len(names) == 1 else f"Rules {', '.join(names)}"
    more = len(stopped.rules) - len(names)
    others = f" ({more} more cannot either, `freehold status` says why)" if more else ""
    raise RefusedByState(f"{who} cannot work: {reason}{others}.")
