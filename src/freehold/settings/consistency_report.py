"""What must fit together in `[report]` and `[summary]`, as far as no server is needed to know it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

from freehold.domain.due_walls import check_zone
from freehold.domain.inventory_text import read_locale, read_recipients
from freehold.settings.build_report import TransportShape, chosen_transport, transport_tables
from freehold.settings.notation import Finding
from freehold.settings.shape_report import (
    TRANSPORTS,
    MailgunShape,
    PostmarkShape,
    ReportShape,
    ResendShape,
    SmtpShape,
    SummaryShape,
)

_WEB = ("http", "https")
_SECRETS = {"smtp": "password", "resend": "key", "postmark": "token", "mailgun": "key"}
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_UNWRITABLE = re.compile(r"[\x00-\x20\x7f-\uffff]")  # a header or a link would break


def report_findings(report: ReportShape | None, summary: SummaryShape | None) -> Iterator[Finding]:
    """Yield all that does not fit together."""
    if report is not None:
        for place, text in (*_policy(report), *_transport(report)):
            yield Finding(f"report.{place}", f"{text}.")
    if summary is not None:
        for place, text in _summary(summary, report):
            yield Finding(f"summary{place and '.'}{place}", f"{text}.")


def _policy(report: ReportShape) -> Iterator[Finding]:
    for name in ("sender", "reply_to"):
        text = getattr(report, name)
        if text is not None and not is_address(text):
            yield Finding(name, "must be one mail address without a name, such as desk@example.com")
    try:
        check_zone(report.zone)
    except ValueError as error:
        yield Finding("zone", f"is wrong: {error}")
    try:
        read_locale(report.locale)
    except ValueError:
        yield Finding("locale", "must be a name such as en, de-AT or pt-BR")
    if report.link is not None:
        yield from _url("link", report.link, _WEB, ("tenant", "date"))
    if report.unsubscribe is not None:
        yield from _url("unsubscribe", report.unsubscribe, ("mailto", "https"), ("token",))


def is_address(text: str) -> bool:
    """Tell whether a text is one mail address."""
    try:
        return read_recipients(text) == (text,)
    except ValueError:
        return False


def _url(
    place: str, url: str, schemes: Sequence[str], placeholders: Sequence[str] = ()
) -> Iterator[Finding]:
    """Check a URL without repeating it: it may hold a secret."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        yield Finding(place, "is no URL")
        return
    if _UNWRITABLE.search(url):
        yield Finding(place, "has a blank or a letter that a URL writes in percent form")
    if parts.scheme not in schemes:
        yield Finding(place, f"must begin with {' or '.join(f'{one}:' for one in schemes)}")
    elif parts.scheme in _WEB and not parts.hostname:
        yield Finding(place, "names no host")
    if "@" in parts.netloc:
        yield Finding(place, "holds a user or a password, which would be shown; take it out")
    if place == "url" and (parts.query or parts.fragment):
        yield Finding(
            place, "has a part behind ? or #, which would be shown and cannot stay; take it out"
        )
    for name in _PLACEHOLDER.findall(url):
        if name not in placeholders:
            known = ", ".join(f"{{{one}}}" for one in placeholders) or "none"
            yield Finding(place, f"has a placeholder {{{name}}} that is not filled; known: {known}")


def _transport(report: ReportShape) -> Iterator[Finding]:
    tables = transport_tables(report)
    chosen = chosen_transport(report)
    if chosen is None:
        yield _unchosen(report, tables)
    for name, table in tables.items():
        for place, text in _table(name, table, used=table is chosen):
            yield Finding(f"{name}.{place}", text)


def _unchosen(report: ReportShape, tables: dict[str, TransportShape]) -> Finding:
    if report.transport is not None:
        return Finding(
            "transport",
            f'is "{report.transport}", but there is no table [report.{report.transport}]; add it',
        )
    if tables:
        return Finding(
            "transport",
            f"is missing, and there are several tables ({', '.join(tables)}); name the one that "
            f'carries the mails, as in transport = "{next(iter(tables))}"',
        )
    known = ", ".join(f"[report.{one}]" for one in TRANSPORTS)
    return Finding(
        "transport",
        f"is missing: add one of the tables {known}; for a trial, maildir = {{ path = "
        '"mails" } writes mails into a folder and sends nothing',
    )


def _table(name: str, table: TransportShape, *, used: bool) -> Iterator[Finding]:
    secret = _SECRETS.get(name)
    if secret is not None:
        yield from _secret(table, secret, _variable(name, secret), needed=used)
    match table:
        case SmtpShape():
            yield from _smtp(table)
        case ResendShape() | PostmarkShape() | MailgunShape():
            yield from _url("url", table.url, _WEB)


def _variable(table: str, key: str) -> str:
    return f"FREEHOLD_REPORT__{table.upper()}__{key.upper()}"


def _secret(
    table: TransportShape | SummaryShape, key: str, variable: str, *, needed: bool
) -> Iterator[Finding]:
    value, file = getattr(table, key), getattr(table, f"{key}_file")
    if value is not None and file is not None:
        yield Finding(key, f"and {key}_file are both set; keep one of them")
    if needed and value is None and file is None and not isinstance(table, SmtpShape):
        yield Finding(key, f"is missing; set {variable}, or name a file with {key}_file")


def _smtp(table: SmtpShape) -> Iterator[Finding]:
    has_password = table.password is not None or table.password_file is not None
    if has_password and table.user is None:
        yield Finding("user", "is missing, and there is a password; add user, or take it away")
    if table.user is not None and not has_password:
        yield Finding(
            "password",
            f"is missing, and there is a user; set {_variable('smtp', 'password')}, or name a file "
            "with password_file",
        )
    if table.user is not None and table.security == "none":
        yield Finding(
            "security", 'is "none", which would send the password in clear; write "starttls"'
        )


def _summary(summary: SummaryShape, report: ReportShape | None) -> Iterator[Finding]:
    if report is None:
        yield Finding("", "is a part of the daily report, which is off; add [report]")
    yield from _url("url", summary.url, _WEB)
    yield from _secret(summary, "key", "FREEHOLD_SUMMARY__KEY", needed=False)
    if (summary.input_price is None) != (summary.output_price is None):
        missing = "input_price" if summary.input_price is None else "output_price"
        yield Finding(missing, "is missing; costs are computed from both prices")
