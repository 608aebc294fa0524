"""Database URLs: what is wrong with one, and how one is shown.

*Invariants*: no function here lets a password out, not even in an error about the URL.
"""

from __future__ import annotations

import re
from urllib.parse import SplitResult, parse_qsl, quote, urlsplit

SCHEMES = ("sqlite", "postgresql", "postgres")
MASK = "***"
_SECRETS = ("password", "sslpassword")
_BETWEEN_URLS = re.compile(r",(?=\s*[a-z]+://)")


def check_url(url: str) -> str:
    """Return the URL if a database can be behind it.

    Raises:
        ValueError: it cannot be; half a sentence without any part of the URL.
    """
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise ValueError(
            "is no URL: the port must be a number, and any of / ? # @ : [ ] in a password must be "
            "written in percent form (%2F %3F %23 %40 %3A %5B %5D)"
        ) from None
    _check_scheme(parts)
    if parts.scheme == "sqlite":
        _check_sqlite(parts)
    elif parts.fragment or "@" in parts.path + parts.query:
        raise ValueError("has a # or @ behind the host; in a password write %23 and %40")
    return url


def _check_scheme(parts: SplitResult) -> None:
    base = parts.scheme.partition("+")[0]
    if parts.scheme in SCHEMES:
        return
    if base in SCHEMES:
        raise ValueError(f"names a driver; write {base}: without the + and what follows it")
    raise ValueError("must begin with sqlite:/// or postgresql://")


def _check_sqlite(parts: SplitResult) -> None:
    if parts.netloc or not parts.path.removeprefix("/"):
        raise ValueError(
            "must be sqlite:///relative/path.db or sqlite:////absolute/path.db (three slashes or four)"
        )
    if parts.path == "/:memory:":
        raise ValueError("names a database in memory, which no second connection sees; name a file")
    if parts.query or parts.fragment:
        raise ValueError("takes no options for SQLite; write %3F and %23 for ? and # in a path")


def masked(url: str) -> str:
    """Return the URL with its passwords masked, or only the mask where it cannot be read."""
    try:
        parts = urlsplit(check_url(url))
    except ValueError:
        return MASK
    if parts.scheme == "sqlite":
        return url
    account, at, host = parts.netloc.rpartition("@")
    user, colon, _password = account.partition(":")
    query = f"?{_masked_query(parts.query)}" if parts.query else ""
    return f"{parts.scheme}://{user}{colon and colon + MASK}{at}{host}{parts.path}{query}"


def _masked_query(query: str) -> str:
    pairs = parse_qsl(query, keep_blank_values=True)
    return "&".join(
        f"{quote(name)}={MASK if name.lower() in _SECRETS else quote(value)}"
        for name, value in pairs
    )


def masked_address(text: str) -> str:
    """Return scheme and host of the URLs of a broker or webhook; the mask for all else in them.

    Path and query of a webhook are often as good as a password. A comma parts URLs only where
    another one begins behind it, since a password may hold one.
    """
    return ",".join(_scheme_and_host(one.strip()) for one in _BETWEEN_URLS.split(text))


def _scheme_and_host(url: str) -> str:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return MASK
    if not parts.hostname:
        return MASK
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    account = f"{MASK}@" if "@" in parts.netloc else ""
    rest = f"/{MASK}" if parts.path.strip("/") or parts.query or parts.fragment else parts.path
    return f"{parts.scheme}://{account}{host}{f':{port}' if port else ''}{rest}"
