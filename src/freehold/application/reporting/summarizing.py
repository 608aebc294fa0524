"""Ask a language model for a paragraph about a report, while the report's mail waits for its hour.

*Invariants*: no mail waits for this: only reports whose time is still to come are asked about, and
who freezes mails takes the texts that are there; an attempt is committed before the model is asked
and closed after; a text that is not accepted is not kept.
*Not here*: which text is accepted (`domain.summary_check`), what goes into a mail (`mailing`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from freehold.domain.number_words import language_of
from freehold.domain.summary import (
    PROMPT_VERSION,
    Prices,
    cost_micros,
    figures,
    prompt,
    tokens_most,
    told,
)
from freehold.domain.summary_check import objection, tidy
from freehold.ports.ledger import Ledger, Transaction
from freehold.ports.summary import Place, Summarizer, SummaryAttempt, SummaryWanted, Told
from freehold.ports.system import Boundary, Checkpoint
from freehold.ports.telemetry import UNHEARD, SummaryEnded, SummaryWithheld, Telemetry

PAGE = 20  # reports that one transaction looks at
PAGES_A_STEP = 50
REST = timedelta(minutes=1)  # after an endpoint that gave no answer; an outage uses up no attempts
ABANDONED_AFTER_LEAST = timedelta(minutes=2)


@dataclass(frozen=True, slots=True)
class SummaryPolicy:
    """What an installation chooses about texts.

    Attributes:
        locale: of tenants that have none.
        seconds: that one call may take; a report that is due sooner gets no text.
        attempts_max: calls for one report.
        tokens_per_tenant_day: of UTC; what a call used at the most counts where nobody knows.
        prices: None where no cost is computed.
    """

    locale: str = "en"
    seconds: float = 20.0
    attempts_max: int = 2
    output_tokens_max: int = 400
    tokens_per_tenant_day: int = 20_000
    prices: Prices | None = None
    prompt_version: str = PROMPT_VERSION


@dataclass(frozen=True, slots=True)
class _Question:
    """What is asked about one report."""

    wanted: SummaryWanted
    language: str
    prompt: str
    facts: str

    def tokens_most(self, output_tokens_max: int) -> int:
        """Return the most that the call can use."""
        return tokens_most(self.prompt, self.facts, output_tokens_max)


class Summarizing:
    """Asks about one report after the other on one ledger connection; belongs to one thread."""

    def __init__(
        self,
        ledger: Ledger,
        summarizer: Summarizer,
        policy: SummaryPolicy,
        checkpoint: Checkpoint,
        telemetry: Telemetry = UNHEARD,
    ) -> None:
        self._ledger = ledger
        self._summarizer = summarizer
        self._policy = policy
        self._checkpoint = checkpoint
        self._telemetry = telemetry
        self._place: Place | None = None
        self._asked = False  # since the pass began
        self._rest_until: datetime | None = None
        self._withheld: dict[int, datetime] = {}

    def step(self) -> int:
        """Ask about the next report that lacks a text; return 1, or 0 where none is to be asked.

        Again: another report, or another attempt.
        Crash: after the attempt was committed it stays open, is abandoned later, and its usage
        counts as the most that it could have been.
        """
        for _ in range(PAGES_A_STEP):
            opened, withheld = self._open()
            for one in withheld:
                self._tell_withheld(one)
            if opened is not None:
                self._asked = True
                self._ask(*opened)
                return 1
            if self._place is None:
                if not self._asked:
                    return 0
                self._asked = False  # who was asked about in this pass may get another attempt
        return 0

    # ---------------------------------------------------------------------------- beginning

    def _open(self) -> tuple[tuple[SummaryAttempt, _Question] | None, list[SummaryWanted]]:
        """Look through one page; return the attempt that was begun, and what the budget forbids."""
        withheld: list[SummaryWanted] = []
        with self._ledger.transaction() as tx:
            if self._is_resting(tx.now):
                self._place, self._asked = None, False
                return None, withheld
            if self._place is None:
                tx.summaries.abandon(tx.now - self._abandoned_after())
            until = tx.now + timedelta(seconds=self._policy.seconds)
            page = tx.summaries.wanted(until, self._place, PAGE, self._policy.attempts_max)
            for wanted in page.wanted:
                question = self._question(wanted)
                if not self._may_spend(tx, question):
                    withheld.append(wanted)
                elif attempt := self._begin(tx, question):
                    self._place = (wanted.due_at, wanted.report_id)
                    return (attempt, question), withheld
            self._place = page.place
        return None, withheld

    def _is_resting(self, now: datetime) -> bool:
        return self._rest_until is not None and now < self._rest_until <= now + REST

    def _abandoned_after(self) -> timedelta:
        return max(ABANDONED_AFTER_LEAST, timedelta(seconds=4 * self._policy.seconds))

    def _question(self, wanted: SummaryWanted) -> _Question:
        language = language_of(wanted.locale or self._policy.locale)
        return _Question(wanted, language, prompt(wanted.facts, language), told(wanted.facts))

    def _may_spend(self, tx: Transaction, question: _Question) -> bool:
        """Tell whether the tenant's tokens of today last; others who spend them wait meanwhile."""
        tenant = question.wanted.tenant
        tx.tenants.lock([tenant])
        today = tx.now.replace(hour=0, minute=0, second=0, microsecond=0)
        most = question.tokens_most(self._policy.output_tokens_max)
        return tx.summaries.spent(tenant, today) + most <= self._policy.tokens_per_tenant_day

    def _begin(self, tx: Transaction, question: _Question) -> SummaryAttempt | None:
        return tx.summaries.begin(
            question.wanted,
            self._policy.prompt_version,
            self._summarizer.host,
            self._summarizer.model,
            question.tokens_most(self._policy.output_tokens_max),
        )

    def _tell_withheld(self, wanted: SummaryWanted) -> None:
        """Tell once for each report; reports that are long over are forgotten."""
        if wanted.report_id in self._withheld:
            return
        newest = wanted.due_at - timedelta(days=2)
        self._withheld = {one: at for one, at in self._withheld.items() if at > newest}
        self._withheld[wanted.report_id] = wanted.due_at
        day = wanted.facts.report_date.isoformat()
        self._telemetry.tell(SummaryWithheld(wanted.tenant, day, "budget"))

    # -------------------------------------------------------------------------------- asking

    def _ask(self, attempt: SummaryAttempt, question: _Question) -> None:
        self._checkpoint.reach(Boundary.SUMMARY_BEGUN)
        answer = self._summarizer.tell(
            question.prompt, question.facts, self._policy.output_tokens_max
        )
        self._checkpoint.reach(Boundary.SUMMARY_TOLD)
        if answer.text is not None:
            answer = replace(answer, text=tidy(answer.text))
        rejected = _rejected(answer, question)
        cost = self._cost(answer)
        prices = self._policy.prices
        with self._ledger.transaction() as tx:
            if answer.text is None and answer.model is None:
                self._rest_until = tx.now + REST
            currency = None if prices is None else prices.currency
            noted = tx.summaries.end(attempt, answer, rejected, cost, currency)
        outcome = _outcome(answer, rejected) if noted else "abandoned"
        self._tell_ended(attempt, question, answer, outcome)

    def _cost(self, answer: Told) -> int | None:
        usage = answer.usage
        return cost_micros(
            self._policy.prices, usage.input_tokens, usage.cached_tokens, usage.output_tokens
        )

    def _tell_ended(
        self, attempt: SummaryAttempt, question: _Question, answer: Told, outcome: str
    ) -> None:
        wanted, usage = question.wanted, answer.usage
        self._telemetry.tell(
            SummaryEnded(
                tenant=wanted.tenant,
                report_date=wanted.facts.report_date.isoformat(),
                attempt=attempt.attempt,
                outcome=outcome,
                input_tokens=usage.input_tokens,
                output_tokens=usage.output_tokens,
                cost_micros=self._cost(answer),
            )
        )


def _rejected(answer: Told, question: _Question) -> str | None:
    if answer.text is None:
        return None
    facts = question.wanted.facts
    return objection(answer.text, figures(facts), facts.report_date, question.language)


def _outcome(answer: Told, rejected: str | None) -> str:
    if answer.text is None:
        return "failed"
    return "accepted" if rejected is None else "rejected"
