"""Writes reports with Jinja2, Babel and the standard library's mails; implements `ports.rendering`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files

from jinja2 import DictLoader, Environment, StrictUndefined, select_autoescape

from freehold.adapters.rendering.mime import Addressed, Parts, body_of, head_of
from freehold.adapters.rendering.page import compose
from freehold.adapters.rendering.table import NAME, table_of
from freehold.adapters.rendering.texts import Wording
from freehold.domain.facts import Facts
from freehold.domain.reports import ReportPolicy
from freehold.ports.rendering import Rendered

_TEMPLATES = ("report.html", "report.txt")


@cache
def _environment() -> Environment:
    """Return the templates, which are files of the product; a tenant's texts are only values."""
    folder = files(__package__).joinpath("templates")
    return Environment(
        loader=DictLoader({name: folder.joinpath(name).read_text("utf-8") for name in _TEMPLATES}),
        autoescape=select_autoescape(["html"], default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        auto_reload=False,
    )


class MimeRenderer:
    """Writes reports as an installation wants them."""

    def __init__(self, policy: ReportPolicy) -> None:
        self._policy = policy

    def render(self, facts: Facts, locale: str, summary: str | None = None) -> Rendered:
        """Write one report."""
        wording = Wording(locale, facts.zone)
        page = compose(facts, wording, self._policy, summary)
        values = {"page": page, "say": wording.say}
        html = _environment().get_template("report.html").render(values)
        text = _environment().get_template("report.txt").render(values)
        table = table_of(facts, wording)
        name = NAME.format(date=facts.report_date.isoformat())
        parts = Parts(wording.tag, text, html, table if facts.items else None, name)
        return Rendered(wording.tag, page.subject, text, html, table, body_of(parts))

    def heads(
        self, facts: Facts, rendered: Rendered, recipients: Sequence[str], dated_at: datetime
    ) -> Sequence[tuple[str, str]]:
        """Return message key and header lines for each recipient."""
        mail = Addressed(
            facts=facts,
            policy=self._policy,
            sender_name=Wording(rendered.locale, facts.zone).say("title"),
            subject=rendered.subject,
            dated_at=dated_at.astimezone(UTC).replace(microsecond=0),
        )
        return [head_of(mail, recipient) for recipient in recipients]
