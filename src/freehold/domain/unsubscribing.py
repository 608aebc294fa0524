"""The token by which a mail's unsubscribe link names who it was sent to.

A token only names: whoever follows the link can do nothing but stop this tenant's report to this
one address, which the action log records and `freehold tenant resubscribe` undoes. So it carries no
secret, and is the same in every mail to the recipient. It does not tell tenant or address to those
who read the logs of the page behind the link; somebody who knows both could make it.
"""

from __future__ import annotations

import hashlib

_TOKEN_DIGITS = 40  # of SHA-256, in hex: 160 bits
_PURPOSE = "freehold unsubscribe 1"


def token(tenant: str, recipient: str) -> str:
    """Return the token of one tenant's recipient: `[0-9a-f]{40}`.

    Args:
        recipient: the address as it was read by `addresses.read_address`.
    """
    text = f"{_PURPOSE}\0{tenant}\0{recipient}"
    return hashlib.sha256(text.encode()).hexdigest()[:_TOKEN_DIGITS]
