"""Hints, and events to a target, over NATS JetStream.

Implements `ports.queue.Queue` and `ports.target.Target`, and tells `doctor` how the server is set
up. *Not here*: what is published, when and how often (`application`).
"""

from freehold.adapters.nats.facts import NatsFacts
from freehold.adapters.nats.queue import NatsQueue
from freehold.adapters.nats.target import NatsTarget

__all__ = ["NatsFacts", "NatsQueue", "NatsTarget"]
