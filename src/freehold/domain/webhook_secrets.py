"""The secret that both sides of a webhook have.

Source: Standard Webhooks 1.0.0, "Signature scheme".
"""

from __future__ import annotations

import base64

PREFIX = "whsec_"
BYTES_LEAST, BYTES_MOST = 24, 64


def read_webhook_secret(text: str) -> bytes:
    """Return the key that a secret writes.

    Raises:
        ValueError: in words that follow what the secret is called; they repeat nothing of it.
    """
    try:
        key = base64.b64decode(text.removeprefix(PREFIX), validate=True)
    except ValueError:
        key = b""
    if not text.startswith(PREFIX) or not BYTES_LEAST <= len(key) <= BYTES_MOST:
        raise ValueError(f"must be {PREFIX} and base64 of {BYTES_LEAST} to {BYTES_MOST} bytes")
    return key
