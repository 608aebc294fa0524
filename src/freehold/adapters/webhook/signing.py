"""Sign a delivery as Standard Webhooks want it.

*Invariants*: the id is the same at every attempt and has no dot; the secret is in no text.
Source: Standard Webhooks 1.0.0, https://github.com/standard-webhooks/standard-webhooks.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime

from standardwebhooks.webhooks import Webhook

from freehold.domain.errors import UsageError
from freehold.domain.webhook_secrets import PREFIX, read_webhook_secret

_ID_LENGTH = 32  # hex digits: 128 bits


def webhook_id(event_key: str) -> str:
    """Return the `webhook-id` of an event.

    What is signed is id.timestamp.body, so an id with a dot could be read as another id and
    timestamp; our keys end in a type, which has dots.
    """
    return f"msg_{hashlib.sha256(event_key.encode()).hexdigest()[:_ID_LENGTH]}"


class Signer:
    """Signs with the current secret, and with the old one while there is one."""

    def __init__(self, secrets: Sequence[str]) -> None:
        """Read the secrets, the current one first.

        Raises:
            UsageError: one is none.
        """
        self._webhooks = [Webhook(_key(secret)) for secret in secrets]

    def __repr__(self) -> str:
        return f"Signer({len(self._webhooks)} secrets)"

    def headers(self, event_key: str, body: bytes, at: datetime) -> Mapping[str, str]:
        """Return the three headers of one attempt; the body is UTF-8."""
        name, text = webhook_id(event_key), body.decode()
        return {
            "webhook-id": name,
            "webhook-timestamp": str(int(at.timestamp())),
            "webhook-signature": " ".join(one.sign(name, at, text) for one in self._webhooks),
        }


def _key(secret: str) -> bytes:
    try:
        return read_webhook_secret(secret)
    except ValueError as error:
        raise UsageError(
            f'A webhook\'s secret {error}; make one with: echo "{PREFIX}$(openssl rand -base64 32)".'
        ) from None
