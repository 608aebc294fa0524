"""Mail addresses as the gate lets them in: one plain address each, safe in a header and an envelope.

*Invariants*: what passes is ASCII, one address and nothing else, and the same however often it is
read; a reader never repeats the text.
*Not here*: whether anybody reads there; only sending can tell.

Only ASCII, because a mail to any other address needs a server and a provider with SMTPUTF8 at every
hop, and because a letter that only looks like another would send a report to a stranger. The domain
may be written in its ASCII form (`xn--...`). Left out of the local part, though RFC 5321 allows
them: quotes, and `%`, `!` and `?`, which some servers read as a route to another domain or as an
encoded word.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

ADDRESS_LENGTH_MAX = 254  # RFC 5321, less the angle brackets of a path
LOCAL_LENGTH_MAX = 64
RECIPIENTS_MAX = 20  # of one tenant; a list of more is an address of its own at a mail server

_ATOM = r"[A-Za-z0-9&'*+/=^_~#$|-]+"
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_ADDRESS = re.compile(rf"(?P<local>{_ATOM}(?:\.{_ATOM})*)@(?P<domain>{_LABEL}(?:\.{_LABEL})*)")


def read_address(text: str) -> str:
    """Read one address; its domain becomes lower case, since case means nothing there.

    Raises:
        ValueError: it is none.
    """
    found = _ADDRESS.fullmatch(text)
    if found is None or len(text) > ADDRESS_LENGTH_MAX or len(found["local"]) > LOCAL_LENGTH_MAX:
        raise ValueError(
            "must be a plain mail address in ASCII, such as desk@harbour.example, without a name "
            "or quotes"
        )
    return f"{found['local']}@{found['domain'].lower()}"


def read_addresses(texts: Iterable[str]) -> tuple[str, ...]:
    """Read the recipients of one tenant; an address that stands there twice counts once.

    Raises:
        ValueError: one is no address, or there are too many.
    """
    found = tuple(dict.fromkeys(read_address(one) for one in texts))
    if len(found) > RECIPIENTS_MAX:
        raise ValueError(f"must be at most {RECIPIENTS_MAX} addresses")
    return found


def sort_out(recipients: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Part stored recipients into those that may be sent to and those that may not.

    What was stored before addresses were checked strictly is found here, where it is read.
    """
    good: dict[str, None] = {}
    bad: dict[str, None] = {}
    for one in recipients:
        try:
            good[read_address(one)] = None
        except ValueError:
            bad[one] = None
    return tuple(good)[:RECIPIENTS_MAX], (*bad, *tuple(good)[RECIPIENTS_MAX:])
