"""Where a NATS server is and as whom we come: read from a URL that is shown to nobody.

Several URLs are parted by commas. Each is `nats://` or `tls://`, with USER:PASSWORD@ or TOKEN@ in
front of the host, in percent form, or `?credentials=FILE` behind it, the file of an account that
signs with a key (`nsc generate creds`). *Invariants*: no word of an error holds user, password or
token.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from freehold.domain.errors import UsageError

PORT = 4222


@dataclass(frozen=True, slots=True)
class Address:
    """One server.

    Attributes:
        place: host and port, for people.
        is_tls: TLS is demanded, whatever the server says about itself.
    """

    place: str
    is_tls: bool
    user: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)
    credentials: str | None = field(default=None, repr=False)

    @property
    def options(self) -> dict[str, Any]:
        """Return what of it the client is told."""
        scheme = "tls" if self.is_tls else "nats"
        told: dict[str, Any] = {"servers": [f"{scheme}://{self.place}"]}
        if self.credentials is not None:
            told["user_credentials"] = self.credentials
        elif self.password is not None:
            told |= {"user": self.user, "password": self.password}
        elif self.user is not None:
            told["token"] = self.user
        return told


def read_addresses(urls: str) -> list[Address]:
    """Read one URL or several.

    Raises:
        UsageError: one is no URL of NATS.
    """
    return [_read(url.strip()) for url in urls.split(",")]


def _read(url: str) -> Address:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port or PORT
    except ValueError:
        host, parts, port = None, urlsplit(""), PORT
    # An @ behind the host means that a password was cut short there, and the rest would be told.
    is_cut = "@" in parts.path + parts.query + parts.fragment
    if parts.scheme not in {"nats", "tls"} or not host or is_cut:
        raise UsageError(
            "a URL of NATS is nats://USER:PASSWORD@HOST:PORT or tls://..., user and password in "
            "percent form; one of yours is not"
        )
    credentials = parse_qs(parts.query).get("credentials", [None])[0]
    if credentials is not None and find_spec("nkeys") is None:
        raise UsageError(
            "a file of credentials needs one more package: pip install 'nats-py[nkeys]'"
        )
    return Address(
        place=f"[{host}]:{port}" if ":" in host else f"{host}:{port}",
        is_tls=parts.scheme == "tls",
        user=None if parts.username is None else unquote(parts.username),
        password=None if parts.password is None else unquote(parts.password),
        credentials=credentials,
    )


def trust(ca_file: str | None) -> ssl.SSLContext:
    """Return a context that checks certificates and names, always.

    Raises:
        UsageError: the file holds no certificates.
    """
    try:
        return ssl.create_default_context(cafile=ca_file)
    except OSError as error:
        raise UsageError(f"the ca_file {ca_file} cannot be read as certificates") from error
