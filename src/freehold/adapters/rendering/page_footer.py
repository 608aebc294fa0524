"""The end of a page: which span it covers, what it is made from, and how to stop it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, timedelta
from urllib.parse import urlsplit

from freehold.adapters.rendering.texts import Wording
from freehold.domain.facts import Facts
from freehold.domain.facts_text import canonical, facts_digest
from freehold.domain.reports import ReportPolicy

DIGEST_LENGTH = 12  # characters of the digest; enough to find it
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Footer:
    """The last lines.

    Attributes:
        why: why somebody gets this, and how to get no more of it.
        unsubscribe: a URL that is the same for every recipient; None without one.
    """

    lines: tuple[str, ...]
    why: str
    unsubscribe: str | None


def footer(facts: Facts, wording: Wording, policy: ReportPolicy, tenant: str) -> Footer:
    """Say what has to be said at the end."""
    why = [wording.say("footer_why", tenant=tenant)]
    link = _link(policy)
    if policy.unsubscribe and link is None:
        why.append(wording.say("footer_unsubscribe"))
    return Footer(_lines(facts, wording), " ".join(why), link)


def _lines(facts: Facts, wording: Wording) -> tuple[str, ...]:
    start, end = wording.instant(facts.start_at), wording.instant(facts.end_at)
    covers = [wording.say("footer_window", start=start, end=end)]
    length = facts.end_at.astimezone(UTC) - facts.start_at.astimezone(UTC)
    if length != _DAY:
        span = wording.span(length.total_seconds())
        covers.append(wording.say("footer_length", span=span))
    covers.append(wording.say("footer_zone", zone=facts.zone))
    digest = facts_digest(canonical(facts))[:DIGEST_LENGTH]
    frozen = wording.instant(facts.frozen_at)
    return " ".join(covers), wording.say("footer_digest", digest=digest, at=frozen)


def _link(policy: ReportPolicy) -> str | None:
    """Return the unsubscribe URL where it names no recipient: all copies have one body."""
    url = policy.unsubscribe
    if url is None or "{token}" in url:
        return None
    return url if urlsplit(url).scheme in ("http", "https", "mailto") else None
