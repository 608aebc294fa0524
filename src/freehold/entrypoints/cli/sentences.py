"""Every error as a sentence that says what to do next."""

from __future__ import annotations

import re

from freehold.domain.errors import (
    DatabaseAway,
    DatabaseBusy,
    FreeholdError,
    RuleRefused,
    StatementTimedOut,
)

NO_RIGHT = ("42501",)  # insufficient_privilege, also a table or column of somebody else's

# Escape sequences can retitle, clear and answer; marks of direction show another text than is there.
_ORDERS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def harmless(text: str) -> str:
    """Return a text with a mark where a control stood; ends of lines and tabs stay."""
    return _ORDERS.sub("\N{REPLACEMENT CHARACTER}", text)


def sentence(error: FreeholdError) -> str:
    """Say an error with what to do next; a database's own words stand in brackets."""
    if isinstance(error, DatabaseAway):
        return (
            f"The database cannot be reached ({error}). Nothing was lost; check [database] url "
            "(`freehold config show --origin`) and that the server runs, or that the file may be "
            "written, then try again."
        )
    if isinstance(error, DatabaseBusy):
        return (
            f"The database is locked by another program ({error}). Nothing was lost; try again "
            "when it is done."
        )
    if isinstance(error, StatementTimedOut):
        return (
            f"The database took longer than [database] statement_timeout allows ({error}). Nothing "
            "was lost; `freehold doctor` says which index is missing, or raise the limit and try again."
        )
    if isinstance(error, RuleRefused) and error.code in NO_RIGHT:
        return (
            f"The database role may not do this ({error}). Nothing was changed; use the role that "
            "ran `freehold db upgrade`, or grant what is missing: `freehold doctor` prints what "
            "the rules need."
        )
    if isinstance(error, RuleRefused):
        return (
            f"The database refused ({error}). Nothing was changed; `freehold doctor` says what to "
            "mend."
        )
    return str(error)
