"""Deliver events to customers' HTTPS endpoints; implements `ports.target.Target`.

*Not here*: when and how often (`application.relaying`).
"""

from freehold.adapters.webhook.target import WebhookTarget

__all__ = ["WebhookTarget"]
