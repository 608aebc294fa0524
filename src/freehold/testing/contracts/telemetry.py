"""The contract of `ports.telemetry.Telemetry`: what every listener owes the work."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from threading import Thread
from uuid import UUID

from freehold.domain.operations import Claim
from freehold.domain.retries import FailureClass
from freehold.ports.telemetry import (
    EVENTS,
    AttemptFailed,
    BatchFinished,
    DatabaseTrouble,
    DeliveriesHandled,
    Dispatched,
    Event,
    EventsForwarded,
    FactsFrozen,
    GuardReleased,
    GuardTripped,
    HandlerHung,
    HintsMissing,
    HoldsReleased,
    MailsFrozen,
    MailUnwritable,
    OperationDied,
    Pruned,
    QueueFound,
    QueueLost,
    ReportsClosed,
    RulePaused,
    RuleResumed,
    SendSettled,
    ServiceStarted,
    ServiceStopped,
    SummaryEnded,
    SummaryWithheld,
    SweepFinished,
    TargetPaused,
    TargetResumed,
    TargetUnreachable,
    Telemetry,
    TenantsSynced,
    TickFinished,
    TransportParked,
)

NOW = datetime(2031, 5, 6, 12, 0, tzinfo=UTC)
HOSTILE = 'x\r\n{"event": "started"}\x1b[2J\u202e\u2028"'
CLAIM = Claim(
    id=7,
    rule="cart",
    tenant=HOSTILE,
    hold_key=HOSTILE,
    digest=UUID(int=5),
    due_at=NOW - timedelta(seconds=2),
    generation=1,
    after_expired=False,
    attempt=0,
)

EXAMPLES: Sequence[Event] = (
    ServiceStarted(roles="scan,work", pid=41),
    ServiceStopped(pid=41),
    TickFinished("cart", 3, 10, 4, 1, "done", 0.5),
    BatchFinished("cart", 2, {"renewed": 1}, {"busy": 1}, 1, 1),
    HoldsReleased([CLAIM], NOW),
    AttemptFailed(CLAIM, 1, FailureClass.BROKEN, "23505", NOW),
    OperationDied(CLAIM, 6, FailureClass.BROKEN, "23505"),
    SweepFinished(1, 1, 1),
    RulePaused("cart"),
    RuleResumed("cart"),
    HandlerHung("cart", 15.0),
    GuardTripped("mass", "cart"),
    GuardReleased("clock", "cart"),
    DatabaseTrouble("work", "DatabaseBusy", "55P03", "cart"),
    Pruned({"record": 12}, left=True),
    Dispatched("cart", 500, 1),
    DeliveriesHandled(500, 1, 2, 1),
    QueueLost("dispatch", "QueueUnfit", HOSTILE),
    QueueFound("deliveries"),
    HintsMissing("cart"),
    TenantsSynced(12, 1, 0, 0, 1),
    ReportsClosed("2031-05-05", "Europe/Berlin", 3, HOSTILE),
    FactsFrozen(500),
    MailsFrozen(12, {HOSTILE: 2}),
    MailUnwritable(7, "UsageError"),
    SendSettled(5, "send", "retrying", 1, "smtp", "451"),
    TransportParked("smtp", "535", NOW),
    SummaryEnded(HOSTILE, "2031-05-05", 1, "accepted", 812, 64, 157),
    SummaryWithheld(HOSTILE, "2031-05-05", "budget"),
    EventsForwarded("shop", 12, 2, 1),
    TargetUnreachable("shop", NOW, "NATS at mq:4222 cannot be reached"),
    TargetPaused("shop"),
    TargetResumed("shop"),
)


class TelemetryContract:
    """Give the fixture `telemetry`."""

    def test_it_takes_every_event_of_the_vocabulary(self, telemetry: Telemetry) -> None:
        assert {type(one) for one in EXAMPLES} == set(EVENTS)
        for event in EXAMPLES:
            telemetry.tell(event)

    def test_it_may_be_told_the_same_again(self, telemetry: Telemetry) -> None:
        telemetry.tell(EXAMPLES[3])
        telemetry.tell(EXAMPLES[3])

    def test_it_may_be_told_from_several_threads(self, telemetry: Telemetry) -> None:
        def tell_all() -> None:
            for event in EXAMPLES:
                telemetry.tell(event)

        threads = [Thread(target=tell_all) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
