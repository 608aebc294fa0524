"""Reporting in the service: the loops of `freehold run`, each in a thread of its own.

*Invariants*: each thread has a ledger of its own, and each sender its own transport; the model that
writes paragraphs has a thread of its own, so that no mail waits for it.
*Not here*: what one step does (`application.reporting`), how loops end (`service`), the one-shot of
a crontab (`reporting_once`).
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from datetime import datetime, timedelta

from freehold.adapters.sql.ledger import SqlLedger
from freehold.adapters.system import StopRequest, SystemClock, SystemDice
from freehold.application.reporting.closing import Closer
from freehold.application.reporting.freezing import Freezer, notes_of
from freehold.application.reporting.mailing import Mailer
from freehold.application.reporting.reporter import Reporter
from freehold.application.reporting.sending import Sender, Sent
from freehold.application.reporting.summarizing import Summarizing, SummaryPolicy
from freehold.application.tenants_sync import sync_tenants
from freehold.bootstrap import (
    open_ledger,
    open_renderer,
    open_summarizer,
    open_transport,
    report_settings,
)
from freehold.domain.summary import Prices
from freehold.domain.tenant_mapping import TenantMapping
from freehold.entrypoints.pacing import Loop
from freehold.ports.system import Checkpoint
from freehold.ports.telemetry import Telemetry
from freehold.settings import Settings
from freehold.settings.values_report import ReportSettings, SummarySettings

LOOK_AGAIN = timedelta(seconds=15)  # for days and mails that another process made
LOOK_SECONDS_LEAST = 0.1  # while another sender locks what is available
SENDS_A_PASS = 100
ASK_AGAIN_SECONDS = 30.0  # whether a report without a paragraph waits
_MICROS = 1_000_000


@dataclass(slots=True)
class Reporting:
    """Makes the loops of the role `report`."""

    settings: Settings
    checkpoint: Checkpoint
    telemetry: Telemetry
    stop: StopRequest

    def loops(self) -> list[Loop]:
        """Return the loops: preparing, each sender, and summaries and tenants where there are any.

        Raises:
            UsageError: a secret cannot be read, or a package is missing.
        """
        chosen = report_settings(self.settings)
        senders = [self._send_loop(number) for number in range(1, chosen.senders + 1)]
        others = [] if chosen.summary is None else [self._summary_loop()]
        if self.settings.tenants is not None:
            others.append(self._tenants_loop(self.settings.tenants))
        wakes = [one.wake for one in senders if one.wake is not None]
        return [self._prepare_loop(wakes), *senders, *others]

    def _prepare_loop(self, wakes: list[threading.Event]) -> Loop:
        ledger = open_ledger(self.settings, checkpoint=self.checkpoint)
        reporter = reporter_of(ledger, self.settings, self.checkpoint, self.telemetry, self.stop)

        def step() -> float:
            done = reporter.prepare()
            if done.mail_count:
                for wake in wakes:
                    wake.set()
            return reporter.until_next(done, LOOK_AGAIN).total_seconds()

        return Loop("report", step, ledger.close)

    def _send_loop(self, number: int) -> Loop:
        ledger = open_ledger(self.settings, checkpoint=self.checkpoint)
        sender = sender_of(ledger, self.settings, self.checkpoint, self.telemetry, self.stop)

        def step() -> float:
            sent = sender.send(SENDS_A_PASS)
            with ledger.glance() as tx:
                return until_send(sent, tx.now)

        def close() -> None:
            sender.transport.close()
            ledger.close()

        return Loop(f"send {number}", step, close, threading.Event())

    def _summary_loop(self) -> Loop:
        ledger = open_ledger(self.settings, checkpoint=self.checkpoint)
        summarizer = open_summarizer(self.settings)
        assert summarizer is not None  # it is configured
        policy = summary_policy(report_settings(self.settings))
        asking = Summarizing(ledger, summarizer, policy, self.checkpoint, self.telemetry)

        def step() -> float:
            if asking.step():
                return 0.0
            ledger.close()  # its connection is of no use before the next question
            return ASK_AGAIN_SECONDS

        def close() -> None:
            summarizer.close()
            ledger.close()

        return Loop("summary", step, close)

    def _tenants_loop(self, mapping: TenantMapping) -> Loop:
        ledger = open_ledger(self.settings, checkpoint=self.checkpoint)

        def step() -> float:
            try:
                sync_tenants(ledger, mapping, telemetry=self.telemetry)
            finally:
                ledger.close()  # no connection is kept until the next reading
            return mapping.every.total_seconds()

        return Loop("tenants", step, ledger.close)


def reporter_of(
    ledger: SqlLedger,
    settings: Settings,
    checkpoint: Checkpoint,
    telemetry: Telemetry,
    stop: StopRequest,
) -> Reporter:
    """Return what closes, freezes and writes, as the settings say."""
    policy = report_settings(settings).policy
    return Reporter(
        readable=ledger,
        closer=Closer(ledger, policy, checkpoint, telemetry, lambda: stop.stopping),
        freezer=Freezer(ledger, policy, notes_of(settings.rules), checkpoint, telemetry),
        mailer=Mailer(ledger, open_renderer(settings), policy, checkpoint, telemetry),
        telemetry=telemetry,
    )


def sender_of(
    ledger: SqlLedger,
    settings: Settings,
    checkpoint: Checkpoint,
    telemetry: Telemetry,
    stop: StopRequest,
) -> Sender:
    """Return what sends, with a transport of its own, as the settings say."""
    chosen = report_settings(settings)
    return Sender(
        ledger=ledger,
        transport=open_transport(settings),
        policy=chosen.policy,
        dice=SystemDice(),
        checkpoint=checkpoint,
        pause=stop,
        clock=SystemClock(),
        telemetry=telemetry,
        retry=chosen.retry,
    )


def summary_policy(chosen: ReportSettings) -> SummaryPolicy:
    """Return what an installation chose about paragraphs."""
    summary = chosen.summary
    assert summary is not None  # there is a table [summary]
    return SummaryPolicy(
        locale=chosen.policy.locale,
        seconds=summary.timeout.total_seconds(),
        attempts_max=summary.attempts,
        output_tokens_max=summary.output_tokens,
        tokens_per_tenant_day=summary.tokens_per_tenant_day,
        prices=_prices(summary),
    )


def _prices(summary: SummarySettings) -> Prices | None:
    if summary.input_price is None or summary.output_price is None:
        return None
    cached = summary.cached_price
    return Prices(
        input_micros=round(summary.input_price * _MICROS),
        output_micros=round(summary.output_price * _MICROS),
        currency=summary.currency,
        cached_micros=None if cached is None else round(cached * _MICROS),
    )


def until_send(sent: Sent, now: datetime) -> float:
    """Return the seconds until a sender looks again."""
    most = LOOK_AGAIN.total_seconds()
    if sent.is_paused or sent.next_at is None:
        return most
    next_at = max(sent.next_at, sent.parked_until or sent.next_at)
    least = 0.0 if sent.counts else LOOK_SECONDS_LEAST
    return min(most, max(least, (next_at - now).total_seconds()))
