"""Which adapters write, carry and summarize the daily report."""

from __future__ import annotations

from freehold.domain.errors import UsageError
from freehold.ports.mail import Transport
from freehold.ports.rendering import Renderer
from freehold.ports.summary import Summarizer
from freehold.settings import Settings
from freehold.settings.values_report import (
    MaildirSettings,
    MailgunSettings,
    PostmarkSettings,
    ReportSettings,
    ResendSettings,
    SmtpSettings,
    TransportSettings,
)

_NEEDS_HTTP = (
    "This provider is asked over HTTP, which needs an extra package; "
    "run: pip install 'freehold[http]'"
)


def report_settings(settings: Settings) -> ReportSettings:
    """Return what the daily report is told.

    Raises:
        UsageError: it is off.
    """
    if settings.report is None:
        raise UsageError(
            "Reports are off: add [report] to freehold.toml, with sender and a transport."
        )
    return settings.report


def open_renderer(settings: Settings) -> Renderer:
    """Return what writes mails.

    Raises:
        UsageError: reports are off.
    """
    from freehold.adapters.rendering import MimeRenderer

    return MimeRenderer(report_settings(settings).policy)


def open_transport(settings: Settings) -> Transport:
    """Return the way to send that was chosen, for one thread; it connects when it is asked to send.

    Raises:
        UsageError: reports are off, a secret's file cannot be read, or a package is missing.
    """
    chosen = report_settings(settings).transport
    match chosen:
        case SmtpSettings():
            from freehold.adapters.mail.smtp import SmtpTransport

            return SmtpTransport(
                chosen.host,
                chosen.port,
                security=chosen.security,
                user=chosen.user,
                password=chosen.password.read(),
                seconds=chosen.timeout.total_seconds(),
                final_seconds=chosen.final_timeout.total_seconds(),
            )
        case MaildirSettings():
            from freehold.adapters.mail.maildir import MaildirTransport

            return MaildirTransport(chosen.path)
    return _open_service(chosen)


def _open_service(chosen: TransportSettings) -> Transport:
    """Return a provider that is asked over HTTP."""
    try:
        from freehold.adapters.mail.mailgun import MailgunTransport
        from freehold.adapters.mail.postmark import PostmarkTransport
        from freehold.adapters.mail.resend import ResendTransport
    except ImportError as error:
        raise UsageError(_NEEDS_HTTP) from error
    match chosen:
        case ResendSettings():
            return ResendTransport(chosen.key.needed(), url=chosen.url)
        case PostmarkSettings():
            token = chosen.token.needed()
            return PostmarkTransport(token, stream=chosen.stream, url=chosen.url)
        case MailgunSettings():
            return MailgunTransport(chosen.key.needed(), chosen.domain, url=chosen.url)
        case _:
            raise AssertionError(chosen)


def open_summarizer(settings: Settings) -> Summarizer | None:
    """Return the language model that writes paragraphs, for one thread; None where there is none.

    Raises:
        UsageError: reports are off, its key's file cannot be read, or a package is missing.
    """
    chosen = report_settings(settings).summary
    if chosen is None:
        return None
    try:
        from freehold.adapters.summary import OpenAiSummarizer
    except ImportError as error:
        raise UsageError(_NEEDS_HTTP) from error
    seconds = chosen.timeout.total_seconds()
    key = chosen.key.read()
    return OpenAiSummarizer(chosen.url, key, chosen.model, seconds=seconds)
