"""`freehold report show --html | --text | --eml`: the mail of a report, or a preview of it."""

from __future__ import annotations

import tempfile
import webbrowser
from dataclasses import dataclass
from datetime import date
from email import message_from_bytes
from email.policy import SMTP
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from freehold.domain.errors import RefusedByState, UsageError
from freehold.entrypoints.cli.context import Invocation
from freehold.entrypoints.cli.report_asked import no_report

if TYPE_CHECKING:
    from freehold.domain.facts import Facts
    from freehold.domain.inventory import Tenant
    from freehold.ports.report_insight import SeenReport
    from freehold.settings import Settings


@dataclass(frozen=True, slots=True)
class Shown:
    """What a person asked to see.

    Attributes:
        preview: whether it is made from the facts now.
    """

    content: bytes
    preview: bool = False


def show_mail(
    call: Invocation, tenant: str, day: date, kind: str, recipient: str | None, output: Path | None
) -> None:
    """Show the mail's page, its text, or one recipient's whole copy."""
    with call.ledger() as ledger, ledger.reading() as reading:
        seen = reading.reports.look(tenant, day)
        if seen is None:
            raise UsageError(no_report(tenant, day))
        body = reading.reports.mail_body(seen.id)
        head = "" if recipient is None else reading.reports.head(_send_id(seen, recipient))
    shown = _whole(seen, head, body) if kind == "eml" else _part(call, seen, kind, body)
    if shown.preview:
        typer.echo(f"freehold: preview: {_without_mail(seen)}", err=True)
    hand_over(shown.content, kind, day, output)


def hand_over(content: bytes, kind: str, day: date, output: Path | None) -> None:
    """Write into the file that was asked for; else open a page, and print what is text."""
    if output is not None:
        _write(output, content)
        typer.echo(f"wrote {output}")
    elif kind == "html":
        _open(day, content)
    else:
        typer.echo(content, nl=False)


def _send_id(seen: SeenReport, recipient: str) -> int:
    found = next((one for one in seen.sends if one.recipient == recipient), None)
    if found is None:
        known = ", ".join(one.recipient for one in seen.sends)
        whom = f"its recipients: {known}" if known else _without_mail(seen)
        raise UsageError(f"No mail of this report goes to {recipient}; {whom}.")
    return found.id


def _without_mail(seen: SeenReport) -> str:
    """Say why a report has no mail."""
    if seen.ended_at is None:
        return "the mail of this report is not frozen yet"
    return f"this report is {seen.state} ({seen.reason}) and has no mail"


def _whole(seen: SeenReport, head: str, body: bytes | None) -> Shown:
    if body is None:
        raise RefusedByState(_pruned(seen))
    return Shown(head.encode() + body)


def _pruned(seen: SeenReport) -> str:
    return (
        f"The bytes of the mail for {seen.window.report_date} were pruned ([retention] mails); "
        "`freehold report show` without options still has facts, digest and trail."
    )


def _part(call: Invocation, seen: SeenReport, kind: str, body: bytes | None) -> Shown:
    """Return the page or the text of the frozen mail, or a preview made from the facts."""
    if body is not None:
        return Shown(_read(body, "html" if kind == "html" else "plain"))
    if seen.mail is not None:
        raise RefusedByState(_pruned(seen))
    return _preview(call, seen, kind)


def _read(body: bytes, kind: str) -> bytes:
    mail = message_from_bytes(body, policy=SMTP)
    part = mail.get_body((kind,))
    assert part is not None  # every mail of ours has both
    return str(part.get_content()).encode()


def _preview(call: Invocation, seen: SeenReport, kind: str) -> Shown:
    if seen.facts is None:
        raise RefusedByState(
            f"The report for {seen.window.report_date} has no facts yet; `freehold report build` "
            "counts them."
        )
    return Shown(page_of(call.settings(), seen.facts, seen.tenant, kind), preview=True)


def page_of(settings: Settings, facts: Facts, tenant: Tenant | None, kind: str) -> bytes:
    """Return the page or the text that facts make, in the tenant's language.

    Raises:
        UsageError: reports are off.
    """
    from freehold.bootstrap import open_renderer, report_settings

    own = None if tenant is None else tenant.locale
    locale = own or report_settings(settings).policy.locale
    rendered = open_renderer(settings).render(facts, locale)
    return (rendered.html if kind == "html" else rendered.text).encode()


def _open(day: date, content: bytes) -> None:
    """Write the page where it stays, and open it."""
    folder = Path(tempfile.mkdtemp(prefix="freehold-report-"))
    path = folder / f"{day}.html"
    path.write_bytes(content)
    opened = webbrowser.open(path.as_uri())
    typer.echo(f"{'opened' if opened else 'no browser could be opened; the page is'} {path}")


def _write(path: Path, content: bytes) -> None:
    try:
        path.write_bytes(content)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}.") from None
