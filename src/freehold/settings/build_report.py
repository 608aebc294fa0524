"""From the shape of `[report]` and `[summary]` to the frozen values behind them.

*Invariants*: what is built here has passed `consistency_report.report_findings`.
"""

from __future__ import annotations

from freehold.domain.reports import ReportPolicy
from freehold.domain.retries import RetryPolicy
from freehold.settings.shape_report import (
    TRANSPORTS,
    MaildirShape,
    MailgunShape,
    PostmarkShape,
    ReportShape,
    ResendShape,
    SmtpShape,
    SummaryShape,
)
from freehold.settings.values_report import (
    PORTS,
    MaildirSettings,
    MailgunSettings,
    PostmarkSettings,
    ReportSettings,
    ResendSettings,
    Secret,
    SmtpSettings,
    SummarySettings,
    TransportSettings,
)

TransportShape = SmtpShape | ResendShape | PostmarkShape | MailgunShape | MaildirShape


def report_settings(shape: ReportShape, summary: SummaryShape | None) -> ReportSettings:
    """Build what `[report]` says, with its summary where there is one."""
    chosen = chosen_transport(shape)
    assert chosen is not None
    return ReportSettings(
        policy=_policy(shape),
        transport=_transport(chosen),
        senders=shape.senders,
        retry=RetryPolicy(tuple(shape.retry.delays), shape.retry.jitter),
        summary=None if summary is None else _summary(summary),
    )


def transport_tables(shape: ReportShape) -> dict[str, TransportShape]:
    """Return the transports that have a table, by name."""
    found = {name: getattr(shape, name) for name in TRANSPORTS}
    return {name: table for name, table in found.items() if table is not None}


def chosen_transport(shape: ReportShape) -> TransportShape | None:
    """Return the table that was named, or the only one; None where that names none."""
    tables = transport_tables(shape)
    if shape.transport is not None:
        return tables.get(shape.transport)
    return next(iter(tables.values())) if len(tables) == 1 else None


def _policy(shape: ReportShape) -> ReportPolicy:
    return ReportPolicy(
        sender=shape.sender,
        zone=shape.zone,
        hour=shape.hour,
        locale=shape.locale,
        empty=shape.empty,
        catch_up=shape.catch_up,
        close_delay=shape.close_delay,
        on_unknown=shape.on_unknown,
        items_max=shape.items,
        reply_to=shape.reply_to,
        link=shape.link,
        unsubscribe=shape.unsubscribe,
    )


def _transport(shape: TransportShape) -> TransportSettings:
    match shape:
        case SmtpShape():
            return SmtpSettings(
                host=shape.host,
                port=shape.port or PORTS[shape.security],
                security=shape.security,
                user=shape.user,
                password=Secret("report.smtp.password", shape.password, shape.password_file),
                timeout=shape.timeout,
                final_timeout=shape.final_timeout,
            )
        case ResendShape():
            return ResendSettings(Secret("report.resend.key", shape.key, shape.key_file), shape.url)
        case PostmarkShape():
            token = Secret("report.postmark.token", shape.token, shape.token_file)
            return PostmarkSettings(token, shape.stream, shape.url)
        case MailgunShape():
            key = Secret("report.mailgun.key", shape.key, shape.key_file)
            return MailgunSettings(key, shape.domain, shape.url)
        case MaildirShape():
            return MaildirSettings(shape.path)


def _summary(shape: SummaryShape) -> SummarySettings:
    given = {name: getattr(shape, name) for name in SummaryShape.model_fields}
    key = Secret("summary.key", given.pop("key"), given.pop("key_file"))
    return SummarySettings(key=key, **given)
