"""What an installation chooses for the daily report: its policy, its transport and its summary.

*Invariants*: a secret is in no `repr`; where a file holds it, it is read when it is needed.
*Not here*: a tenant's own zone, hour, locale and recipients, which the database has.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import ClassVar, Literal
from urllib.parse import urlsplit

from freehold.domain.errors import UsageError
from freehold.domain.reports import ReportPolicy
from freehold.domain.retries import RetryPolicy

LOOPBACK = ("localhost", "127.0.0.1", "::1")
PORTS = {"starttls": 587, "tls": 465, "none": 25}  # RFC 6409, RFC 8314, RFC 5321
Security = Literal["starttls", "tls", "none"]


@dataclass(frozen=True, slots=True)
class Secret:
    """A password or key, or the file that holds it.

    Attributes:
        place: the setting, for sentences.
    """

    place: str
    value: str | None = field(default=None, repr=False)
    file: str | None = None

    def read(self) -> str | None:
        """Return the secret, or None where there is none.

        Raises:
            UsageError: its file cannot be read.
        """
        if self.file is None:
            return self.value
        try:
            return Path(self.file).read_text(encoding="utf-8").rstrip("\r\n")
        except OSError as error:
            said = error.strerror
        except UnicodeDecodeError:
            said = "it is no UTF-8 text"
        raise UsageError(f"{self.place}_file cannot be read ({said}); mend the file or its name.")

    def needed(self) -> str:
        """Return the secret, which must be there.

        Raises:
            UsageError: it is not, or its file cannot be read.
        """
        found = self.read()
        if not found:
            raise UsageError(f"{self.place} is empty; write the secret into its file or variable.")
        return found


@dataclass(frozen=True, slots=True)
class SmtpSettings:
    """A mail server.

    Attributes:
        timeout: of connecting and of each command.
        final_timeout: of the reply behind the mail, for which RFC 5321 wants ten minutes.
    """

    name: ClassVar[str] = "smtp"
    host: str
    port: int
    security: Security = "starttls"
    user: str | None = None
    password: Secret = Secret("report.smtp.password")
    timeout: timedelta = timedelta(seconds=60)
    final_timeout: timedelta = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class ResendSettings:
    """The service Resend."""

    name: ClassVar[str] = "resend"
    key: Secret
    url: str = "https://api.resend.com"


@dataclass(frozen=True, slots=True)
class PostmarkSettings:
    """The service Postmark."""

    name: ClassVar[str] = "postmark"
    token: Secret
    stream: str = "outbound"
    url: str = "https://api.postmarkapp.com"


@dataclass(frozen=True, slots=True)
class MailgunSettings:
    """The service Mailgun."""

    name: ClassVar[str] = "mailgun"
    key: Secret
    domain: str
    url: str = "https://api.mailgun.net"


@dataclass(frozen=True, slots=True)
class MaildirSettings:
    """A folder of mails, for trials."""

    name: ClassVar[str] = "maildir"
    path: str


TransportSettings = (
    SmtpSettings | ResendSettings | PostmarkSettings | MailgunSettings | MaildirSettings
)


@dataclass(frozen=True, slots=True)
class SummarySettings:
    """A language model that may write a paragraph about a report's facts.

    Attributes:
        key: None inside for an endpoint that asks for none.
        input_price, cached_price, output_price: of a million tokens, in `currency`; None for one
            that nobody knows, so that no cost is computed.
    """

    url: str
    model: str
    key: Secret = Secret("summary.key")
    timeout: timedelta = timedelta(seconds=20)
    attempts: int = 2
    output_tokens: int = 400
    tokens_per_tenant_day: int = 20_000
    input_price: float | None = None
    cached_price: float | None = None
    output_price: float | None = None
    currency: str = "USD"

    @property
    def key_in_clear(self) -> bool:
        """Tell whether a key would travel unencrypted to another host."""
        parts = urlsplit(self.url)
        has_key = self.key.value is not None or self.key.file is not None
        return has_key and parts.scheme == "http" and parts.hostname not in LOOPBACK


@dataclass(frozen=True, slots=True)
class ReportSettings:
    """The daily report, where it is on.

    Attributes:
        senders: threads that send, each with connections of its own.
        summary: None: no model is asked.
    """

    policy: ReportPolicy
    transport: TransportSettings
    senders: int = 1
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    summary: SummarySettings | None = None
