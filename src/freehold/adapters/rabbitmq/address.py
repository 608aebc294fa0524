"""Where a RabbitMQ server is and as whom we come: read from a URL that is shown to nobody.

A URL is `amqp://USER:PASSWORD@HOST:PORT/VHOST` or `amqps://...`, all but the host in percent form;
without a virtual host it is "/". *Invariants*: no word of an error holds user or password; nothing
behind a question mark is heeded, so that no URL turns the check of certificates off.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from urllib.parse import quote, unquote, urlsplit

from freehold.domain.errors import UsageError

PORTS = {"amqp": 5672, "amqps": 5671}
# Both sides send one each half of it. RabbitMQ gives a silent peer up after twice, the client after
# three times as long. Source: https://www.rabbitmq.com/docs/heartbeats, which advises 5 to 20 s.
HEARTBEAT_SECONDS = 10
ANYBODY = "guest"  # the account that every server is born with


@dataclass(frozen=True, slots=True)
class Address:
    """One server.

    Attributes:
        place: host and port, for people.
        trusted: what certificates must stand up to; None without TLS.
    """

    host: str
    port: int
    vhost: str
    trusted: ssl.SSLContext | None = field(repr=False)
    user: str = field(default=ANYBODY, repr=False)
    password: str = field(default=ANYBODY, repr=False)

    @property
    def place(self) -> str:
        """Return host and port."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def url(self) -> str:
        """Return what the client is told; the virtual host it is told apart."""
        scheme = "amqp" if self.trusted is None else "amqps"
        login = f"{quote(self.user, safe='')}:{quote(self.password, safe='')}"
        return f"{scheme}://{login}@{self.place}/?heartbeat={HEARTBEAT_SECONDS}"


def read_address(url: str, ca_file: str | None) -> Address:
    """Read a URL.

    Raises:
        UsageError: it is none of RabbitMQ, or the file holds no certificates.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port, parts = None, None, urlsplit("")
    # An @ behind the host means that a password was cut short there, and the rest would be told.
    if parts.scheme not in PORTS or not host or "@" in parts.path + parts.query + parts.fragment:
        raise UsageError(
            "a URL of RabbitMQ is amqp://USER:PASSWORD@HOST:PORT/VHOST or amqps://..., user and "
            "password in percent form; yours is not"
        )
    return Address(
        host=host,
        port=port or PORTS[parts.scheme],
        vhost=unquote(parts.path[1:]) or "/",
        trusted=trust(ca_file) if parts.scheme == "amqps" else None,
        user=ANYBODY if parts.username is None else unquote(parts.username),
        password=ANYBODY if parts.password is None else unquote(parts.password),
    )


def trust(ca_file: str | None) -> ssl.SSLContext:
    """Return a context that checks certificates and names, always."""
    try:
        return ssl.create_default_context(cafile=ca_file)
    except OSError as error:
        raise UsageError(f"the ca_file {ca_file} cannot be read as certificates") from error
