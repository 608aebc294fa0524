"""Recipients who want no more reports of a tenant, and the tokens that name them in links.

*Invariants*: an unsubscription stands until a person takes it back, whether or not the address is
a recipient now; what was sent, or may have been, is left as it is.
*Not here*: the action log entry and who asked (`application.unsubscribing`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Unsubscription:
    """One recipient who wants no more reports of one tenant."""

    tenant: str
    recipient: str
    at: datetime
    actor: str
    reason: str


@dataclass(frozen=True, slots=True)
class Link:
    """What the token of an unsubscribe link names."""

    token: str
    tenant: str
    recipient: str


class Unsubscribed(Protocol):
    """Who has unsubscribed, inside one transaction."""

    def add(self, tenant: str, recipient: str, actor: str, reason: str) -> bool:
        """Note that a recipient wants no more reports; False where that is noted already.

        Again: leaves the first note as it is.
        """
        ...

    def remove(self, tenant: str, recipient: str) -> bool:
        """Take the note back; False where there is none."""
        ...

    def of(self, tenants: Sequence[str]) -> Sequence[Unsubscription]:
        """Return the notes of tenants, in the order of tenant and address."""
        ...

    def stop(self, tenant: str, recipient: str) -> int:
        """End the recipient's sends that wait and surely were not accepted; return how many.

        One in somebody's hands, and one whose end is unknown, are left to those.
        """
        ...

    def keep_links(self, links: Sequence[Link]) -> int:
        """Write what tokens name; return how many are new.

        Again: leaves those that are there as they are.
        """
        ...

    def find_link(self, token: str) -> Link | None:
        """Return what a token names; None where no mail ever carried it."""
        ...
