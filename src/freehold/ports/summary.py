"""A short text about frozen facts by a language model: asking for one, and the account of asking.

*Invariants*: every attempt has a row before the model is asked; a text that is used belongs to an
accepted attempt on the same facts; what is not known of usage is None, never 0.
*Not here*: which text is accepted (`domain.summary`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from freehold.domain.facts import Facts


@dataclass(frozen=True, slots=True)
class Usage:
    """What a call used, as far as the provider said.

    Attributes:
        input_tokens: all of them, cached ones included.
        raw: the provider's own object, unchanged.
    """

    input_tokens: int | None = None
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    raw: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Told:
    """What the model answered; `text` is None where it did not, and `trouble` says why."""

    text: str | None
    model: str | None = None
    usage: Usage = field(default_factory=Usage)
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class SummaryAttempt:
    """One attempt to get a text, opened before the model is asked."""

    id: int
    report_id: int
    attempt: int
    facts_digest: str


Place = tuple[datetime, int]  # due and id of a report


@dataclass(frozen=True, slots=True)
class SummaryWanted:
    """A frozen report that has no accepted text yet and may still get one.

    Attributes:
        locale: the tenant's own; None for the installation's.
        attempt_count: attempts that were begun so far.
    """

    report_id: int
    tenant: str
    facts: Facts
    facts_digest: str
    locale: str | None
    due_at: datetime
    attempt_count: int


@dataclass(frozen=True, slots=True)
class WantedPage:
    """Some of the reports that wait for their time, and where the next page begins.

    Attributes:
        place: of the last report that was looked at; None behind the last one there is.
    """

    wanted: Sequence[SummaryWanted]
    place: Place | None


class Summarizer(Protocol):
    """A model behind an endpoint; belongs to one thread."""

    @property
    def host(self) -> str:
        """Return the endpoint's host, for the account; no secret."""
        ...

    @property
    def model(self) -> str:
        """Return the model that is asked for."""
        ...

    def tell(self, prompt: str, facts: str, output_tokens_max: int) -> Told:
        """Ask once; never raises for what the endpoint did, and never repeats by itself.

        Returns:
            No secret and none of the endpoint's own words but the text; `trouble` is a sentence of
            ours, `model` and `usage` are as the endpoint said, in sizes that a row can hold.
        """
        ...

    def close(self) -> None:
        """Give connections back."""
        ...


class Summaries(Protocol):
    """The account of asking, inside one transaction."""

    def wanted(
        self, until: datetime, after: Place | None, limit: int, attempts_max: int
    ) -> WantedPage:
        """Look through frozen reports that are due after `until`, and return those that lack a text.

        Only those that somebody will read, and that have something to say: released holds, an
        active tenant with a recipient, no reason to be recorded only, and no attempt open.

        Args:
            after: the last one looked at in this pass; None begins at the front.
            limit: reports that are looked at, in the order (due, id).
        """
        ...

    def spent(self, tenant: str, since: datetime) -> int:
        """Return the tokens that a tenant's attempts used since.

        An unknown usage counts as the most that it could have been.
        """
        ...

    def begin(
        self, wanted: SummaryWanted, prompt_version: str, host: str, model: str, tokens_max: int
    ) -> SummaryAttempt | None:
        """Open the next attempt; None where another process was faster. Commit, then ask.

        Args:
            tokens_max: the most that it may use, input and output.
        """
        ...

    def end(
        self,
        attempt: SummaryAttempt,
        told: Told,
        rejected: str | None,
        cost_micros: int | None,
        currency: str | None,
    ) -> bool:
        """Close an attempt: accepted, rejected with a reason, or failed; False where it was closed.

        Only an accepted text is kept.
        """
        ...

    def abandon(self, older_than: datetime) -> int:
        """Close attempts that were begun before an instant and left open; return how many.

        What they used stays unknown.
        """
        ...

    def accepted(self, report_ids: Sequence[int]) -> Mapping[int, tuple[int, str]]:
        """Return attempt id and text of reports with an accepted text on their own facts."""
        ...
