"""Postmark's `POST /email` and its message search: no keys, an index that lags."""

from __future__ import annotations

from base64 import b64decode
from dataclasses import dataclass, field
from datetime import timedelta
from email.utils import parseaddr
from typing import TYPE_CHECKING, Any, ClassVar

from freehold.testing.contracts.transports import Arrived
from freehold.testing.mailbox import Fault
from tests.reports.http_providers import Accepted, ApiDouble, Asked, Said, is_key, json_of

if TYPE_CHECKING:
    from collections.abc import Mapping

_INDEXING = timedelta(seconds=90)
_KEPT = timedelta(days=45)


def _said(status: int, code: int, message: str) -> Said:
    return status, {"ErrorCode": code, "Message": message}


@dataclass
class PostmarkDouble(ApiDouble):
    """Postmark."""

    refusals: ClassVar[Mapping[Fault, Said]] = {
        Fault.TRANSIENT: _said(429, 429, "Rate limit exceeded."),
        Fault.TRANSIENT_FOR_EVERYONE: _said(503, 100, "Maintenance"),
        Fault.REFUSE: _said(422, 406, "Found inactive addresses: anna@guests.example."),
        Fault.REFUSE_EVERYONE: _said(401, 10, "Bad or missing API token."),
    }
    streams: list[str] = field(default_factory=list)
    ignores_filters: bool = False

    def is_authorized(self, asked: Asked) -> bool:
        return is_key(asked.headers.get("x-postmark-server-token"))

    def read(self, asked: Asked) -> tuple[str, Arrived]:
        assert asked.path == "/email"
        said = json_of(asked)
        self.streams.append(said["MessageStream"])
        ((name, value),) = said["Metadata"].items()
        assert (len(name), len(value)) <= (20, 80)
        arrived = Arrived(
            recipient=said["To"],
            sender=parseaddr(said["From"])[1],
            subject=said["Subject"],
            text=said["TextBody"],
            html=said["HtmlBody"],
            attachments=tuple(
                (one["Name"], b64decode(one["Content"], validate=True))
                for one in said["Attachments"]
            ),
            headers={one["Name"].lower(): one["Value"] for one in said["Headers"]},
            message=None,
        )
        return f"{name}={value}", arrived

    def receipt(self, reference: str) -> dict[str, Any]:
        said = {"To": "x", "SubmittedAt": self.now.isoformat(), "MessageID": reference}
        return {**said, "ErrorCode": 0, "Message": "OK"}

    def looking(self, asked: Asked) -> Said:
        assert asked.path == "/messages/outbound"
        if not self.is_authorized(asked):
            return self.refusals[Fault.REFUSE_EVERYONE]
        if not {"count", "offset"} <= asked.query.keys():
            return _said(422, 701, "count and offset are required")
        wanted = [
            f"{name.removeprefix('metadata_')}={value}"
            for name, value in asked.query.items()
            if name.startswith("metadata_")
        ]
        found = [
            self._listed(one)
            for one in self.indexed(_INDEXING)
            if self.now - one.at < _KEPT
            and (self.ignores_filters or not wanted or one.key in wanted)
        ]
        count = int(asked.query["count"])
        return 200, {"TotalCount": len(found), "Messages": found[:count]}

    def _listed(self, one: Accepted) -> dict[str, Any]:
        name, _, value = one.key.partition("=")
        return {"MessageID": one.reference, "Metadata": {name: value}, "Status": "Sent"}
