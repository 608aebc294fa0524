"""What an endpoint's answer means.

*Invariants*: only a status is believed; the words of an answer are somebody else's, and are not
repeated.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus

from freehold.ports.target import Answer, Reception

WAIT_SECONDS_MOST = 86_400.0
# RFC 9110 15.5.9, RFC 8470 and RFC 6585: the request itself was not found wrong.
_COME_AGAIN = {
    HTTPStatus.REQUEST_TIMEOUT,
    HTTPStatus.TOO_EARLY,
    HTTPStatus.TOO_MANY_REQUESTS,
}


def read_answer(status: int, headers: Mapping[str, str], at: datetime) -> Answer:
    """Read a status.

    Args:
        headers: by their names in lower case.
        at: now, for a `Retry-After` with a date where the answer has none.
    """
    code, said = str(status), f"the endpoint answered {status}"
    if 200 <= status < 300:  # noqa: PLR2004 -- RFC 9110: 2xx
        return Answer(Reception.ACCEPTED, code)
    if status == HTTPStatus.GONE:
        return Answer(Reception.GONE, code, "the endpoint answered 410, which ends it")
    if status in _COME_AGAIN or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return Answer(Reception.TRANSIENT, code, said, _wait_seconds(headers, at))
    if 300 <= status < 400:  # noqa: PLR2004 -- RFC 9110: 3xx
        return Answer(Reception.REFUSED, code, f"{said}; redirects are not followed")
    return Answer(Reception.REFUSED, code, said)


def _wait_seconds(headers: Mapping[str, str], at: datetime) -> float | None:
    """Read `Retry-After`: seconds, or an instant by the endpoint's own clock (RFC 9110 10.2.3)."""
    text = headers.get("retry-after", "")
    until = _instant(text)
    try:
        seconds = (
            float(text)
            if until is None
            else (until - (_instant(headers.get("date", "")) or at)).total_seconds()
        )
    except ValueError:
        return None
    return min(max(seconds, 0.0), WAIT_SECONDS_MOST) if math.isfinite(seconds) else None


def _instant(text: str) -> datetime | None:
    try:
        at = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)
