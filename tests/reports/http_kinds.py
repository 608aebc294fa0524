"""The providers over HTTP by name: the double of each, and how a transport to it is opened."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from tests.reports.mailgun_double import MailgunDouble
from tests.reports.postmark_double import PostmarkDouble
from tests.reports.providers import mailgun_at, postmark_at, resend_at
from tests.reports.resend_double import ResendDouble

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from freehold.ports.mail import Transport
    from tests.reports.http_providers import ApiDouble

KINDS: dict[str, tuple[type[ApiDouble], Callable[[str, float], Transport]]] = {
    "resend": (ResendDouble, resend_at),
    "postmark": (PostmarkDouble, postmark_at),
    "mailgun": (MailgunDouble, mailgun_at),
}
every_kind = pytest.mark.parametrize("kind", sorted(KINDS))


@contextmanager
def running(kind: str) -> Iterator[tuple[Any, Transport]]:
    """Run a double and open a transport to it."""
    double_type, open_at = KINDS[kind]
    with double_type.started() as double:
        transport = open_at(double.url, 5.0)
        yield double, transport
        transport.close()
