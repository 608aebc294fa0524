"""Mailgun's `messages.mime` and events: the message as it is, events that come late and go."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parseaddr
from typing import TYPE_CHECKING, Any, ClassVar

from freehold.testing.contracts.transports import SECRET, Arrived
from freehold.testing.mailbox import Fault
from tests.reports.http_providers import Accepted, ApiDouble, Asked, Said
from tests.reports.mailed import arrived_of

if TYPE_CHECKING:
    from collections.abc import Mapping

DOMAIN = "mg.hotel.example"
_INDEXING = timedelta(minutes=20)
_KEPT = timedelta(days=3)


def _said(status: int, message: str) -> Said:
    return status, {"message": message}


@dataclass
class MailgunDouble(ApiDouble):
    """Mailgun."""

    refusals: ClassVar[Mapping[Fault, Said]] = {
        Fault.TRANSIENT: _said(429, "Too many requests"),
        Fault.TRANSIENT_FOR_EVERYONE: _said(429, "Domain sends too much"),
        Fault.REFUSE: _said(400, "to parameter is not a valid address: anna@guests.example"),
        Fault.REFUSE_EVERYONE: _said(401, "Forbidden"),
    }
    keeps_message_ids: bool = True

    def is_authorized(self, asked: Asked) -> bool:
        login = b64encode(f"api:{SECRET}".encode()).decode()
        return asked.headers.get("authorization") == f"Basic {login}"

    def read(self, asked: Asked) -> tuple[str, Arrived]:
        assert asked.path == f"/v3/{DOMAIN}/messages.mime"
        form = _form_of(asked)
        message = form["message"]
        arrived = arrived_of(form["to"].decode(), "", message)
        sender = parseaddr(arrived.headers["from"])[1]
        return form["v:freehold-key"].decode(), arrived_of(arrived.recipient, sender, message)

    def take(self, key: str, arrived: Arrived, asked: Asked) -> Said:
        super().take(key, arrived, asked)
        if self.keeps_message_ids:
            own = self.accepted.pop()
            kept = arrived.headers["message-id"]
            self.accepted.append(Accepted(kept, own.key, own.at, own.arrived))
        return 200, self.receipt(self.accepted[-1].reference)

    def receipt(self, reference: str) -> dict[str, Any]:
        return {"id": reference, "message": "Queued. Thank you."}

    def looking(self, asked: Asked) -> Said:
        if asked.path != f"/v3/{DOMAIN}/events":
            return _said(404, "Domain not found")
        if not self.is_authorized(asked):
            return self.refusals[Fault.REFUSE_EVERYONE]
        query = asked.query
        begin = datetime.fromtimestamp(float(query.get("begin", "0")), UTC)
        found = [
            self._event(one)
            for one in reversed(self.indexed(_INDEXING))
            if begin <= one.at
            and self.now - one.at < _KEPT
            # A filter by a variable finds nothing at the real one.
            and query.get("recipient") == one.arrived.recipient
            and "user-variables" not in query
        ]
        limit = int(query["limit"])
        assert limit <= 300
        return 200, {"items": found[:limit], "paging": {}}

    def _event(self, one: Accepted) -> dict[str, Any]:
        return {
            "event": "accepted",
            "recipient": one.arrived.recipient,
            "user-variables": {"freehold-key": one.key},
            "message": {"headers": {"message-id": one.reference.strip("<>")}},
        }


def _form_of(asked: Asked) -> dict[str, bytes]:
    """Read a form by hand: a parser of mails would take the message in it apart."""
    boundary = asked.headers["content-type"].partition("boundary=")[2].encode()
    form: dict[str, bytes] = {}
    for part in asked.body.split(b"--" + boundary)[1:-1]:
        head, _, content = part.removeprefix(b"\r\n").partition(b"\r\n\r\n")
        name = head.decode().partition(' name="')[2].partition('"')[0]
        form[name.replace("%3A", ":")] = content.removesuffix(b"\r\n")
    return form
