"""Checks of the targets of events: is each followed, told, and told of everything.

*Not here*: whether a broker or an endpoint can be reached at all (their adapters), counts over time
(`application.status`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from freehold.application.doctor.findings import Code, Finding, fine, warn
from freehold.application.event_findings import event_findings, read_figures
from freehold.application.status import COUNT_MOST, HEARTBEATS_MOST, SILENT_AFTER
from freehold.ports.insight import Readable


def target_findings(source: Readable, configured: Collection[str]) -> Iterator[Finding]:
    """Yield what is wrong with targets, as `status` says it; nothing where there never was one.

    Args:
        configured: names of the configured targets.
    """
    with source.reading() as reading:
        figures = read_figures(reading, configured, COUNT_MOST + 1)
        beats, now = reading.figures.heartbeats(HEARTBEATS_MOST), reading.now
    alive = [beat for beat in beats if now - beat.beat_at <= SILENT_AFTER]
    wrong = [
        warn(Code.TARGET, None, "targets", sentence)
        for sentence in event_findings(figures, now, alive, COUNT_MOST + 1)
    ]
    yield from wrong
    if configured and not wrong:
        count = len(configured)
        some = "The target is" if count == 1 else f"All {count} targets are"
        yield fine(Code.TARGETS, None, "targets", f"{some} told of events.")
