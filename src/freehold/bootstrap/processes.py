"""What a process brings to its work: who listens, and the rules' own Python functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

from freehold.adapters.system import SystemClock
from freehold.application.handling import Handling
from freehold.domain.errors import UsageError
from freehold.domain.rules import Rule
from freehold.ports.telemetry import UNHEARD, HandlerHung, Level, Telemetry
from freehold.settings import Settings


def open_telemetry(settings: Settings, stream: TextIO | None = None) -> Telemetry:
    """Return everybody who listens: log lines on a stream, stderr by default."""
    from freehold.adapters.logs import LogLines
    from freehold.adapters.telling import Everybody

    return Everybody([LogLines(stream, level=Level[settings.logs.level.upper()])])


def open_handling(settings: Settings, telemetry: Telemetry = UNHEARD) -> Handling:
    """Import the handlers of all rules, for one worker.

    Raises:
        UsageError: one cannot be used; the sentence says why.
    """
    from freehold.adapters.handlers import PythonHandler, load_function

    def hung(rule: str, seconds: float) -> None:
        telemetry.tell(HandlerHung(rule, seconds))

    handlers = {
        rule.name: PythonHandler(
            rule,
            load_function(rule.handler),
            seconds=rule.handler.time_limit.total_seconds(),
            on_hung=hung,
        )
        for rule in settings.rules
        if rule.handler is not None
    }
    return Handling(handlers, SystemClock())


def handler_problems(rules: Sequence[Rule]) -> dict[str, str]:
    """Try to import handlers; return by rule what is wrong, in a sentence each."""
    from freehold.adapters.handlers import load_function

    problems = {}
    for rule in rules:
        if rule.handler is not None:
            try:
                load_function(rule.handler)
            except UsageError as error:
                problems[rule.name] = f"Rule {rule.name}: {error}"
    return problems
