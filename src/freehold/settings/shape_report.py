"""The keys of `[report]` and `[summary]`: the daily report, who carries it, and its paragraph."""

from __future__ import annotations

from dataclasses import fields
from typing import Annotated, Any, Literal

from pydantic import Field

from freehold.domain.reports import ReportPolicy
from freehold.settings.shape import Name, RetryShape, Shape, Span, written
from freehold.settings.shape import empty as absent
from freehold.settings.values_report import (
    MailgunSettings,
    PostmarkSettings,
    ReportSettings,
    ResendSettings,
    SmtpSettings,
    SummarySettings,
)

TRANSPORTS = ("smtp", "resend", "postmark", "mailgun", "maildir")
_URL = "Where it is reached; change it for a region or a proxy."


def _default(owner: type, name: str) -> Any:
    return written(next(one for one in fields(owner) if one.name == name).default)


def _secret(what: str, *, elsewhere: str) -> Any:
    return Field(
        None, description=f"{what}, a secret: never shown; better given by {elsewhere}, or a file."
    )


def _secret_file(key: str) -> Any:
    return Field(
        None,
        description=f"A file that holds the {key}, read when it is needed.",
        examples=[f"/run/secrets/{key}"],
    )


class SmtpShape(Shape):
    """A mail server; the report's own way of sending where nothing else is at hand."""

    host: Name = Field(description="The server's name.", examples=["mail.example.com"])
    port: Annotated[int, Field(ge=1, le=65_535)] | None = Field(
        None, description="Absent: 587 for starttls, 465 for tls, 25 for none."
    )
    security: Literal["starttls", "tls", "none"] = Field(
        _default(SmtpSettings, "security"),
        description="starttls and tls send nothing before the connection is encrypted and the "
        "server's certificate is checked; none sends everything in clear.",
    )
    user: Name | None = Field(None, description="The account; absent: no login.")
    password: Name | None = _secret(
        "The account's password", elsewhere="FREEHOLD_REPORT__SMTP__PASSWORD"
    )
    password_file: Name | None = _secret_file("password")
    timeout: Span = Field(
        _default(SmtpSettings, "timeout"),
        description="How long connecting and each command may take.",
    )
    final_timeout: Span = Field(
        _default(SmtpSettings, "final_timeout"),
        description="How long the reply behind a mail may take; a shorter wait makes more ends "
        "that nobody knows.",
    )


class ResendShape(Shape):
    """The service Resend, which replays the first answer to a repeated key."""

    key: Name | None = _secret("The API key", elsewhere="FREEHOLD_REPORT__RESEND__KEY")
    key_file: Name | None = _secret_file("key")
    url: Name = Field(_default(ResendSettings, "url"), description=_URL)


class PostmarkShape(Shape):
    """The service Postmark, which can be asked for a mail by its key."""

    token: Name | None = _secret("The server token", elsewhere="FREEHOLD_REPORT__POSTMARK__TOKEN")
    token_file: Name | None = _secret_file("token")
    stream: Name = Field(_default(PostmarkSettings, "stream"), description="The message stream.")
    url: Name = Field(_default(PostmarkSettings, "url"), description=_URL)


class MailgunShape(Shape):
    """The service Mailgun, which can be asked for a mail by its key."""

    key: Name | None = _secret("The sending key", elsewhere="FREEHOLD_REPORT__MAILGUN__KEY")
    key_file: Name | None = _secret_file("key")
    domain: Name = Field(description="The sending domain.", examples=["mg.example.com"])
    url: Name = Field(
        _default(MailgunSettings, "url"), description=_URL, examples=["https://api.eu.mailgun.net"]
    )


class MaildirShape(Shape):
    """A folder that mails are written into, for trials: nothing leaves the machine."""

    path: Name = Field(description="The folder; made if it is missing.", examples=["mails"])


class ReportShape(Shape):
    """The daily report; absent: it is off."""

    sender: Name = Field(
        description="The address that reports come from, without a name.",
        examples=["reports@example.com"],
    )
    zone: Name = Field(
        _default(ReportPolicy, "zone"),
        description="The time zone of tenants that have none of their own.",
        examples=["Europe/Berlin"],
    )
    hour: int = Field(
        _default(ReportPolicy, "hour"),
        ge=0,
        le=23,
        description="Local hour of the following day at which a report leaves, for tenants without "
        "one of their own.",
    )
    locale: Name = Field(
        _default(ReportPolicy, "locale"),
        description="Language and number format of tenants without one of their own.",
        examples=["de-AT"],
    )
    empty: Literal["send", "skip"] = Field(
        _default(ReportPolicy, "empty"),
        description="What a day without events does: send says so in a mail, skip is recorded as "
        "the reason why none was sent.",
    )
    catch_up: int = Field(
        _default(ReportPolicy, "catch_up"),
        ge=1,
        le=366,
        description="How many missed dates are still sent after a pause, oldest first; older ones "
        "are marked skipped.",
    )
    close_delay: Span = Field(
        _default(ReportPolicy, "close_delay"),
        description="How long an open transaction of a worker may keep a day from being closed; "
        "what still comes later stands in the next report.",
    )
    on_unknown: Literal["review", "resend"] = Field(
        _default(ReportPolicy, "on_unknown"),
        description="What is done where nobody can tell whether a mail was accepted: a person "
        "says, or it is sent again, perhaps twice.",
    )
    items: int = Field(
        _default(ReportPolicy, "items_max"),
        ge=0,
        le=10_000,
        description="How many released holds a report lists.",
    )
    reply_to: Name | None = Field(
        None, description="The address that answers go to.", examples=["desk@example.com"]
    )
    link: Name | None = Field(
        None,
        description="An http or https address of what the list leaves out; {tenant} and {date} "
        "stand for theirs.",
        examples=["https://example.com/holds/{tenant}/{date}"],
    )
    unsubscribe: Name | None = Field(
        None,
        description="What the header List-Unsubscribe names: a mailto or https address; {token} "
        "stands for the recipient's token. Absent: no such header.",
        examples=["https://example.com/unsubscribe/{token}"],
    )
    transport: Literal["smtp", "resend", "postmark", "mailgun", "maildir"] | None = Field(
        None,
        description="Which of the tables below carries the mails; may be absent where there is "
        "one only.",
    )
    senders: int = Field(
        _default(ReportSettings, "senders"),
        ge=1,
        le=16,
        description="Threads that send, each with connections of its own.",
    )
    retry: RetryShape = Field(
        default_factory=absent(RetryShape),
        description="When a mail that was surely not taken is tried again.",
    )
    smtp: SmtpShape | None = Field(None, description="Send through a mail server.")
    resend: ResendShape | None = Field(None, description="Send through Resend.")
    postmark: PostmarkShape | None = Field(None, description="Send through Postmark.")
    mailgun: MailgunShape | None = Field(None, description="Send through Mailgun.")
    maildir: MaildirShape | None = Field(None, description="Write into a folder, for trials.")


class SummaryShape(Shape):
    """A paragraph about each report by a language model; absent: there is none."""

    url: Name = Field(
        description="The endpoint, up to what stands before /chat/completions.",
        examples=["https://api.openai.com/v1", "http://localhost:11434/v1"],
    )
    model: Name = Field(description="The model that is asked.", examples=["gpt-4.1-mini"])
    key: Name | None = _secret("The endpoint's key", elsewhere="FREEHOLD_SUMMARY__KEY")
    key_file: Name | None = _secret_file("key")
    timeout: Span = Field(
        _default(SummarySettings, "timeout"), description="How long one answer may take."
    )
    attempts: int = Field(
        _default(SummarySettings, "attempts"),
        ge=1,
        le=10,
        description="How often it is asked for one report, at most; then the report has none.",
    )
    output_tokens: int = Field(
        _default(SummarySettings, "output_tokens"),
        ge=16,
        le=4_000,
        description="Tokens that one answer may have.",
    )
    tokens_per_tenant_day: int = Field(
        _default(SummarySettings, "tokens_per_tenant_day"),
        ge=0,
        description="Tokens that one tenant's reports may use in a day; beyond, nothing is asked.",
    )
    input_price: float | None = Field(
        None, ge=0, description="Price of a million tokens of input; absent: costs stay unknown."
    )
    cached_price: float | None = Field(
        None, ge=0, description="Price of a million cached tokens of input; absent: input_price."
    )
    output_price: float | None = Field(
        None, ge=0, description="Price of a million tokens of output; absent: costs stay unknown."
    )
    currency: Name = Field(
        _default(SummarySettings, "currency"), description="The currency of the prices."
    )
