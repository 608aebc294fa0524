"""Hints, and events to a target, over RabbitMQ (AMQP 0-9-1).

Implements `ports.queue.Queue` and `ports.target.Target`, and tells `doctor` how the server is set
up. *Not here*: what is published, when and how often (`application`).
"""

from freehold.adapters.rabbitmq.facts import RabbitFacts
from freehold.adapters.rabbitmq.queue import RabbitQueue
from freehold.adapters.rabbitmq.target import RabbitTarget

__all__ = ["RabbitFacts", "RabbitQueue", "RabbitTarget"]
