"""What a person does with strays: look, and discard; every act is in the action log.

*Invariants*: an act and its entry in the action log commit together, a page a transaction; a stray
is never turned into a message, whatever it says.
*Not here*: operations in review (`review`), how strays get there (`deliveries`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from freehold.application.review import PAGE, Person
from freehold.domain.errors import UsageError
from freehold.ports.ledger import Act, Ledger
from freehold.ports.strays import Stray

LOOK = "`freehold review list` shows what is"


@dataclass(frozen=True, slots=True)
class StrayReview:
    """Reads and discards strays on one ledger connection."""

    ledger: Ledger

    def listed(self, limit: int) -> list[Stray]:
        """Return the first strays in review, in the order of their coming."""
        found: list[Stray] = []
        for page in self._pages():
            found += page[: limit - len(found)]
            if len(found) >= limit:
                break
        return found

    def _pages(self) -> Iterator[Sequence[Stray]]:
        after_id = 0
        while True:
            with self.ledger.transaction() as tx:
                page = tx.strays.open(after_id, PAGE)
            yield page
            if len(page) < PAGE:
                return
            after_id = page[-1].id

    def show(self, stray_id: int) -> Stray:
        """Return one stray.

        Raises:
            UsageError: it is not in review.
        """
        with self.ledger.transaction() as tx:
            found = tx.strays.find(stray_id)
        if found is None:
            raise UsageError(f"Stray {stray_id} is not in review; {LOOK}.")
        return found

    def require(self, stray_ids: Sequence[int]) -> None:
        """Check that strays named by a person are in review.

        Raises:
            UsageError: one of them is not.
        """
        for one in stray_ids:
            self.show(one)

    def chosen(self, reason_part: str) -> list[int]:
        """Return the ids of all strays in review whose reason or queue has a text."""
        return [
            one.id
            for page in self._pages()
            for one in page
            if reason_part in f"{one.queue} {one.reason}"
        ]

    def discard(self, stray_ids: Sequence[int], person: Person) -> int:
        """Take strays out of review; return how many were in it. The same bytes stay out of it."""
        count = 0
        for start in range(0, len(stray_ids), PAGE):
            count += self._discard_page(stray_ids[start : start + PAGE], person)
        return count

    def _discard_page(self, stray_ids: Sequence[int], person: Person) -> int:
        with self.ledger.transaction() as tx:
            count = 0
            for one in dict.fromkeys(stray_ids):
                stray = tx.strays.find(one)
                if stray is not None:
                    count += tx.strays.discard([one])
                    tx.actions.record(_act(stray, person))
        return count


def _act(stray: Stray, person: Person) -> Act:
    return Act(
        actor=person.name,
        action="review discard",
        subject=f"stray-{stray.id}",
        reason=person.reason,
        before=f"dead: {stray.reason}; SHA-256 {stray.digest}",
        after="discarded",
    )
