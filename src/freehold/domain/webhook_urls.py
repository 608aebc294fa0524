"""The URL of a webhook, read strictly: what cannot be read in two ways.

*Invariants*: no sentence about a URL repeats more of it than its host; a host is a name in ASCII or
one plain address. *Not here*: whether the host may be reached, which only its addresses tell
(`public_addresses`), each time that we connect.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from urllib.parse import SplitResult, urlsplit

URL_LENGTH_MAX = 2_048
HOST_LENGTH_MAX = 253  # RFC 1035, less the length of the root
_PORTS = {"https": 443, "http": 80}
_UNSAFE = re.compile(r'[^\x21-\x7e]|[\\"<>^`{|}]')  # RFC 3986 has none of them in a URL
_NETLOC = re.compile(r"(?:\[[^\[\]]*\]|[^\[\]:]*)(?::[0-9]*)?")
_LABEL = r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_NAME = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
# Names like 2130706433, 0x7f.1 or 127.1 are addresses to some readers (WHATWG URL, host parsing).
_NUMERIC = re.compile(r"(?:.*\.)?(?:[0-9]+|0[xX][0-9a-fA-F]*)")


@dataclass(frozen=True, slots=True)
class WebhookUrl:
    """Where a webhook goes.

    Attributes:
        host: a name in lower case, or an address without brackets.
        path: with its query, which may hold a secret.
    """

    is_secure: bool
    host: str
    port: int
    path: str = field(repr=False)

    @property
    def authority(self) -> str:
        """Return host and port as the header `Host` has them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def scheme(self) -> str:
        """Return https or http."""
        return "https" if self.is_secure else "http"


def read_webhook_url(text: str, ports: Collection[int], *, insecure: bool = False) -> WebhookUrl:
    """Read a URL.

    Args:
        ports: the ports that it may name.
        insecure: whether http is taken too.

    Raises:
        ValueError: in words that follow "the URL"; they repeat nothing of it.
    """
    parts = _parts(text)
    if parts.scheme not in {"https", "http"} or (parts.scheme == "http" and not insecure):
        raise ValueError("must begin with https://")
    if "@" in parts.netloc:
        raise ValueError("must have no user and no password; the signature says who sends")
    if parts.fragment or text.endswith("#"):
        raise ValueError("must have no fragment (#...), which no server sees")
    port = _port(parts)
    if port not in ports:
        raise ValueError(f"must use one of the ports {', '.join(map(str, ports))}")
    path = parts.path or "/"
    query = f"?{parts.query}" if parts.query else ""
    return WebhookUrl(parts.scheme == "https", _host(parts), port, path + query)


def _parts(text: str) -> SplitResult:
    if len(text) > URL_LENGTH_MAX:
        raise ValueError(f"must have at most {URL_LENGTH_MAX} characters")
    if _UNSAFE.search(text):
        raise ValueError(
            "must be plain ASCII without spaces; a host with other letters is written as xn--..., "
            "and other characters as %.."
        )
    try:
        return urlsplit(text)
    except ValueError:
        raise ValueError("has a host that is none") from None


def _port(parts: SplitResult) -> int:
    try:
        return _PORTS[parts.scheme] if parts.port is None else parts.port
    except ValueError:
        raise ValueError("has a port that is none") from None


def _host(parts: SplitResult) -> str:
    host = parts.hostname or ""
    if not _NETLOC.fullmatch(parts.netloc):
        raise ValueError("has a host that is none")
    if "[" in parts.netloc:
        return _v6(host)
    if _NUMERIC.fullmatch(host):
        return _v4(host)
    if not _NAME.fullmatch(host) or len(host) > HOST_LENGTH_MAX:
        raise ValueError("must name a host, without a dot at its end")
    return host


def _v4(host: str) -> str:
    try:
        return str(IPv4Address(host))
    except AddressValueError:
        raise ValueError("must write an IPv4 address as four decimal numbers") from None


def _v6(host: str) -> str:
    try:
        address = IPv6Address(host)
    except AddressValueError:
        raise ValueError("has an IPv6 address that is none") from None
    if address.scope_id is not None:
        raise ValueError("must have no zone in its IPv6 address")
    return str(address)
