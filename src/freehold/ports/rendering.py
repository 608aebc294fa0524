"""From frozen facts to mails: deterministic bytes.

*Invariants*: the same facts, summary and locale give the same body, in every process; no value of a
tenant can become markup, a header or a formula.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from freehold.domain.facts import Facts


@dataclass(frozen=True, slots=True)
class Rendered:
    """One report as people see it.

    Attributes:
        locale: in which it was written; the asked one, or the nearest that there is.
        table: the list of released holds as CSV, UTF-8, lines ended by CRLF.
        body: the MIME body with its own headers, from `MIME-Version` on, lines ended by CRLF.
    """

    locale: str
    subject: str
    text: str
    html: str
    table: bytes
    body: bytes


class Renderer(Protocol):
    """Writes reports."""

    def render(self, facts: Facts, locale: str, summary: str | None = None) -> Rendered:
        """Write one report; `summary` is plain text that was checked against the facts."""
        ...

    def heads(
        self, facts: Facts, rendered: Rendered, recipients: Sequence[str], dated_at: datetime
    ) -> Sequence[tuple[str, str]]:
        """Return for each recipient the message key and the header lines of its copy.

        Args:
            dated_at: what the mail says of when it was written.

        Raises:
            UsageError: an address cannot stand in a header.
        """
        ...
