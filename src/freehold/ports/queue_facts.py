"""Facts about a broker for `doctor`, read and never written.

*Invariants*: nothing is declared, taken or changed; no fact holds a password. *Not here*: what a
fact means (`application.doctor.brokers`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class QueueFacts:
    """How a broker, and the queue of hints in it, is set up; None: not known or not asked.

    Attributes:
        kind: rabbitmq or nats.
        version: as the server says it, such as 3.10.8.
        is_made: whether the queue is there; it is made at its first use.
        queue_type: classic, quorum or stream of RabbitMQ, the retention of a stream of NATS.
        is_persistent: whether messages are in files.
        is_clustered: whether the server is one of several.
        replicas: on how many servers a message is.
        sync_seconds: how long what was confirmed may be in no file yet; 0: never.
        delivery_limit: after how many hand-overs the broker gives a message up.
        dead_letter_target: where it then goes.
        overflow: what a full queue does.
        user: as whom we come; None: as nobody.
        vhost: of RabbitMQ.
        is_in_clear: whether the connection is without TLS and leaves this host.
        is_monitored: whether the broker's own HTTP interface was asked.
        waiting_count: messages that wait.
        dead_count: dead letters kept aside.
    """

    kind: str
    version: str
    is_made: bool = False
    queue_type: str | None = None
    is_persistent: bool | None = None
    is_clustered: bool | None = None
    replicas: int | None = None
    sync_seconds: float | None = None
    delivery_limit: int | None = None
    dead_letter_target: str | None = None
    overflow: str | None = None
    user: str | None = None
    vhost: str | None = None
    is_in_clear: bool = False
    is_monitored: bool = False
    waiting_count: int | None = None
    dead_count: int | None = None


class QueueInspection(Protocol):
    """Looks at one broker."""

    def read(self) -> QueueFacts:
        """Look once, over a connection of its own, for a bounded time.

        Raises:
            QueueAway: the broker, or its monitoring where one is configured, cannot be reached.
            QueueUnfit: it does not let us in.
        """
        ...
