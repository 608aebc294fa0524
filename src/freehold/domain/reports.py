"""The daily report of a tenant: its window, where it stands, and what an installation may choose.

*Invariants*: a report is known by tenant and local date, never by a run; a tenant's windows tile the
time line, each beginning where the one before ended; dates only grow.
*Not here*: how long a local day is (`days`), what the report says (`facts`), sending (`sending`).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from enum import StrEnum
from typing import Literal

NOBODY = ""  # the tenant of reports about holds that belong to nobody


class ReportState(StrEnum):
    """Where a report stands.

    ASSIGNED: its tallies are its own for ever. FROZEN: its facts too. SENDING: its mail too, and
    some recipient has no end yet. IN_REVIEW: no attempt is due, and a person must say how one ended.
    The others are ends; PARTLY_SENT, NOT_SENT and SKIPPED have a reason.
    """

    ASSIGNED = "assigned"
    FROZEN = "frozen"
    SENDING = "sending"
    IN_REVIEW = "in review"
    SENT = "sent"
    PARTLY_SENT = "partly sent"
    NOT_SENT = "not sent"
    SKIPPED = "skipped"

    @property
    def is_end(self) -> bool:
        """Tell whether nothing more becomes of it, but by a person."""
        return self in _ENDS


_ENDS = (ReportState.SENT, ReportState.PARTLY_SENT, ReportState.NOT_SENT, ReportState.SKIPPED)


class ReportReason(StrEnum):
    """Why a report was not sent to anybody, or not at all."""

    NO_RECIPIENT = "no recipient"
    UNSUBSCRIBED = "every recipient has unsubscribed"
    NOT_ACCEPTED = "no recipient's mail was accepted"
    SOME_NOT_ACCEPTED = "some recipients' mails were not accepted"
    EMPTY = "nothing happened"
    MISSED = "missed while nothing ran, and older than those that are caught up with"
    INACTIVE = "the tenant is not active"
    UNWRITABLE = "its mail could not be made, which is a mistake of ours"


@dataclass(frozen=True, slots=True)
class Window:
    """The span of one report, half-open in UTC: [start_at, end_at).

    Attributes:
        tz_version: of the tz database that the end was computed with.
    """

    report_date: date
    start_at: datetime
    end_at: datetime
    zone: str
    tz_version: str

    @property
    def span(self) -> timedelta:
        """Return its true length."""
        return self.end_at - self.start_at


@dataclass(frozen=True, slots=True)
class ReportPolicy:
    """What an installation chooses; a tenant's own zone, hour and locale go before.

    Attributes:
        hour: local hour of the following day at which the mail leaves, 0 to 23.
        empty: what a day without events does.
        catch_up: missed dates that are still sent; older ones are marked skipped.
        close_delay: how long an open worker transaction may keep a window from closing.
        on_unknown: what is done where no one can tell whether a mail was accepted.
        items_max: released holds that a report lists.
        link: a URL with `{tenant}` and `{date}`, to what the list leaves out; None for none.
        unsubscribe: what List-Unsubscribe names, a mailto: or https: URL that may hold `{token}`.
    """

    sender: str
    zone: str = "UTC"
    hour: int = 7
    locale: str = "en"
    empty: Literal["send", "skip"] = "send"
    catch_up: int = 3
    close_delay: timedelta = timedelta(minutes=5)
    on_unknown: Literal["review", "resend"] = "review"
    items_max: int = 200
    reply_to: str | None = None
    link: str | None = None
    unsubscribe: str | None = None
