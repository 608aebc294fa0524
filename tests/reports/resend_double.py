"""Resend's `POST /emails`: keys for 24 hours, the first answer again, another payload refused."""

from __future__ import annotations

from base64 import b64decode
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from email.utils import parseaddr
from typing import TYPE_CHECKING, Any, ClassVar

from freehold.testing.contracts.transports import Arrived
from freehold.testing.mailbox import Fault
from tests.reports.http_providers import ApiDouble, Asked, Said, is_key, json_of

if TYPE_CHECKING:
    from collections.abc import Mapping

_WINDOW = timedelta(hours=24)


def _said(status: int, name: str, message: str) -> Said:
    return status, {"statusCode": status, "name": name, "message": message}


@dataclass
class ResendDouble(ApiDouble):
    """Resend."""

    refusals: ClassVar[Mapping[Fault, Said]] = {
        Fault.TRANSIENT: _said(429, "rate_limit_exceeded", "Too many requests."),
        Fault.TRANSIENT_FOR_EVERYONE: _said(429, "daily_quota_exceeded", "The quota is used up."),
        Fault.REFUSE: _said(422, "invalid_parameter", "anna@guests.example is no address."),
        Fault.REFUSE_EVERYONE: _said(401, "validation_error", "API key is invalid"),
    }
    keys: dict[str, tuple[bytes, datetime, str]] = field(default_factory=dict)
    running: set[str] = field(default_factory=set)

    def is_authorized(self, asked: Asked) -> bool:
        return is_key(asked.headers.get("authorization"), "Bearer ")

    def sending(self, asked: Asked) -> Said | Fault:
        key = asked.headers["idempotency-key"]
        if not 1 <= len(key) <= 256:
            return _said(400, "invalid_idempotency_key", "1 to 256 characters")
        if key in self.running:
            return _said(409, "concurrent_idempotent_requests", "in progress")
        known = self.keys.get(key)
        if known is not None and self.now - known[1] < _WINDOW:
            if known[0] != asked.body:
                return _said(409, "invalid_idempotent_request", "another payload")
            return 200, self.receipt(known[2])
        said = super().sending(asked)
        if said is Fault.SILENT:
            self.running.add(key)
        return said

    def take(self, key: str, arrived: Arrived, asked: Asked) -> Said:
        said = super().take(key, arrived, asked)
        self.keys[key] = (asked.body, self.now, self.accepted[-1].reference)
        return said

    def read(self, asked: Asked) -> tuple[str, Arrived]:
        assert asked.path == "/emails"
        said = json_of(asked)
        (recipient,) = said["to"]
        arrived = Arrived(
            recipient=recipient,
            sender=parseaddr(said["from"])[1],
            subject=said["subject"],
            text=said["text"],
            html=said["html"],
            attachments=tuple(
                (one["filename"], b64decode(one["content"], validate=True))
                for one in said["attachments"]
            ),
            headers={name.lower(): value for name, value in said["headers"].items()},
            message=None,
        )
        return asked.headers["idempotency-key"], arrived

    def receipt(self, reference: str) -> dict[str, Any]:
        return {"id": reference}

    def looking(self, asked: Asked) -> Said:
        assert asked.path == "/domains"
        if not self.is_authorized(asked):
            return _said(400, "validation_error", "API key is invalid")
        return 200, {"object": "list", "data": []}
