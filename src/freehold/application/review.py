"""What a person does in review: look, preview, requeue, discard; every act is in the action log.

*Invariants*: an act and its entry in the action log commit together; a preview changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from freehold.application.release import decide_batch
from freehold.application.remap import built_anew, is_foreign
from freehold.domain.errors import RefusedByState, UsageError
from freehold.domain.expiry import Decision, Defer, Release, Skip, SkipReason, ToReview
from freehold.domain.operations import Claim
from freehold.domain.rules import Rule
from freehold.ports.ledger import Act, FailedAttempt, InReview, Ledger, Transaction
from freehold.ports.system import Boundary, Checkpoint

PAGE = 500  # operations of one transaction
WINDOW_OUTLOOK = "would release what is still due in it"


@dataclass(frozen=True, slots=True)
class Preview:
    """What requeuing one operation would lead to, if it ran at this instant."""

    operation: InReview
    outlook: str


@dataclass(frozen=True, slots=True)
class Person:
    """Who acts, and why; both are kept for ever."""

    name: str
    reason: str

    def __post_init__(self) -> None:
        if not self.name.strip() or not self.reason.strip():
            raise UsageError("Say who you are and why: --by NAME --reason TEXT are required.")


class Review:
    """Acts on operations in review, a page a transaction, on one ledger connection."""

    def __init__(self, ledger: Ledger, checkpoint: Checkpoint) -> None:
        self._ledger = ledger
        self._checkpoint = checkpoint

    @property
    def ledger(self) -> Ledger:
        """Return the ledger that it acts on."""
        return self._ledger

    def listed(self, rule: Rule, limit: int) -> list[InReview]:
        """Return the first operations in review of a rule."""
        found: list[InReview] = []
        for page in self._pages(rule):
            found += page[: limit - len(found)]
            if len(found) >= limit:
                break
        return found

    def _pages(self, rule: Rule) -> Iterator[Sequence[InReview]]:
        after_id = 0
        while True:
            with self._ledger.transaction() as tx:
                page = tx.reviews.find(rule.name, after_id, PAGE)
            yield page
            if len(page) < PAGE:
                return
            after_id = page[-1].id

    def require(self, rule: Rule, operation_ids: Sequence[int]) -> None:
        """Check that operations named by a person are in review.

        Raises:
            UsageError: one of them is not, or is another rule's.
        """
        with self._ledger.transaction() as tx:
            there = {one.id for one in tx.reviews.read(operation_ids) if one.rule == rule.name}
        missing = [str(one) for one in operation_ids if one not in there]
        if missing:
            one = len(missing) == 1
            raise UsageError(
                f"{'Operation' if one else 'Operations'} {', '.join(missing)} "
                f"{'is' if one else 'are'} not in review under rule {rule.name}; "
                "`freehold review list` shows what is."
            )

    def chosen(self, rule: Rule, reason_part: str = "") -> list[int]:
        """Return the ids of all operations in review of a rule whose reason or error has a text."""
        return [
            one.id
            for page in self._pages(rule)
            for one in page
            if reason_part in f"{one.reason or ''} {one.failure.message if one.failure else ''}"
        ]

    def show(self, operation_id: int) -> tuple[InReview, Sequence[FailedAttempt]]:
        """Return one operation with its failed attempts.

        Raises:
            UsageError: it is not in review.
        """
        with self._ledger.transaction() as tx:
            found = tx.reviews.read([operation_id])
            attempts = tx.reviews.attempts(operation_id)
        if not found:
            raise UsageError(
                f"Operation {operation_id} is not in review; `freehold review list` shows what is."
            )
        return found[0], attempts

    def preview(self, rule: Rule, operation_ids: Sequence[int]) -> list[Preview]:
        """Tell what would happen to each operation if it ran now; changes nothing."""
        previews: list[Preview] = []
        for start in range(0, len(operation_ids), PAGE):
            with self._ledger.transaction() as tx:
                found = tx.reviews.read(operation_ids[start : start + PAGE])
                previews += _outlooks(tx, rule, found)
        return previews

    def requeue(self, rule: Rule, operation_ids: Sequence[int], person: Person) -> int:
        """Give operations in review a fresh set of attempts; the history of the old ones stays.

        One that another mapping built is built anew when a worker takes it.

        Again: requeues nothing that is not in review any more.
        """
        return self._act(rule, operation_ids, person, "requeue")

    def discard(self, rule: Rule, operation_ids: Sequence[int], person: Person) -> int:
        """Set dead operations aside; they stay visible, and the sweep closes them in time."""
        return self._act(rule, operation_ids, person, "discard")

    def _act(self, rule: Rule, operation_ids: Sequence[int], person: Person, verb: str) -> int:
        count = 0
        for start in range(0, len(operation_ids), PAGE):
            count += self._act_on_page(rule, operation_ids[start : start + PAGE], person, verb)
            self._checkpoint.reach(Boundary.REVIEWED)
        return count

    def _act_on_page(
        self, rule: Rule, operation_ids: Sequence[int], person: Person, verb: str
    ) -> int:
        with self._ledger.transaction() as tx:
            found = [one for one in tx.reviews.read(operation_ids) if one.rule == rule.name]
            ids = [one.id for one in found]
            outlooks = {one.operation.id: one.outlook for one in _outlooks(tx, rule, found)}
            done = (
                tx.reviews.requeue(ids)
                if verb == "requeue"
                else tx.reviews.discard(ids, person.reason)
            )
            for one in found:
                if one.id in done:
                    tx.actions.record(_act(one, person, verb, outlooks.get(one.id)))
        return len(done)


def _act(one: InReview, person: Person, verb: str, outlook: str | None) -> Act:
    return Act(
        actor=person.name,
        action=f"review {verb}",
        subject=f"{one.rule}:{one.digest}",
        reason=person.reason,
        before=f"{one.state}: {one.reason}",
        after=f"ready; outlook: {outlook}" if verb == "requeue" else "discarded",
    )


def _outlooks(tx: Transaction, rule: Rule, found: Sequence[InReview]) -> list[Preview]:
    """Decide about each hold as a worker would now, without writing."""
    ours = [one for one in found if one.rule == rule.name and one.due_at is not None]
    single = [one for one in ours if not one.is_window]
    foreign = {one.id for one in single if is_foreign(rule, one.fingerprint)}
    claims = [_claim(one) for one in single if one.id not in foreign]
    said = {one.id: WINDOW_OUTLOOK for one in ours if one.is_window}
    said |= {key: describe(one) for key, one in decide_batch(tx, rule, claims)} if claims else {}
    said |= _outlooks_anew(tx, rule, [_claim(one) for one in single if one.id in foreign])
    unreadable = "the due cannot be read: mend the row, the sweep then closes this operation"
    return [Preview(one, said.get(one.id, unreadable)) for one in found]


def _outlooks_anew(tx: Transaction, rule: Rule, claims: Sequence[Claim]) -> dict[int, str]:
    """Tell what becomes of operations that another mapping built."""
    built = built_anew(tx, rule, claims) if claims else {}
    ended = describe(Skip(SkipReason.MAPPING_CHANGED))
    anew = "would be built anew, since the mapping changed, and released"
    return {claim.id: anew if claim.id in built else ended for claim in claims}


def _claim(one: InReview) -> Claim:
    if one.due_at is None:
        raise RefusedByState(f"Operation {one.id} has no due that could be read.")
    return Claim(
        id=one.id,
        rule=one.rule,
        tenant=one.tenant,
        hold_key=one.hold_key,
        digest=one.digest,
        due_at=one.due_at,
        generation=one.generation,
        after_expired=False,
        attempt=0,
        fingerprint=one.fingerprint,
    )


def describe(decision: Decision) -> str:
    """Say a decision in words."""
    match decision:
        case Release():
            return "would be released"
        case Skip(reason):
            return f"would be skipped: {reason}"
        case Defer(reason):
            return f"would be put off: {reason}"
        case ToReview(reason):
            return f"would stay in review: {reason}"
