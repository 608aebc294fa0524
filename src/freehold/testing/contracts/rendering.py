"""The contract of `ports.rendering.Renderer`: bytes that stay the same, and values that stay values."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import SMTP

import pytest

from freehold.domain.errors import UsageError
from freehold.domain.facts import Facts, ReleasedItem, RuleFacts
from freehold.ports.rendering import Rendered, Renderer

START = datetime(2031, 5, 5, 22, tzinfo=UTC)
DUE = START + timedelta(hours=31)
FACTS = Facts(
    tenant="harbour",
    tenant_name="Harbour",
    report_date=date(2031, 5, 6),
    start_at=START,
    end_at=START + timedelta(days=1),
    zone="Europe/Berlin",
    tz_version="2031a",
    watermark_at=START + timedelta(days=1),
    frozen_at=START + timedelta(days=1, minutes=1),
    rules=(RuleFacts("rooms", 2, 1, {"renewed": 1}, 0, 0, None, 1.0, 1.0, 0.9, 60.0, 2),),
    items=(
        ReleasedItem("rooms", "1", "Room 1", START, START + timedelta(seconds=1), 1.0),
        ReleasedItem("rooms", "2", "Room 1", START, START + timedelta(seconds=1), 1.0),
    ),
)
TO = "desk@harbour.example"
TRICK = "x\r\nBcc: y@z.example\x00\u2028Cc: <b>"


class RenderingContract:
    """Give the fixture `renderer`, whose policy names any sender."""

    def test_the_same_facts_are_the_same_bytes(self, renderer: Renderer) -> None:
        first, second = (renderer.render(FACTS, "en", "All is well.") for _ in range(2))
        assert first == second
        heads = [renderer.heads(FACTS, first, [TO], DUE) for _ in range(2)]
        assert heads[0] == heads[1]

    def test_other_facts_are_other_bytes(self, renderer: Renderer) -> None:
        other = renderer.render(replace(FACTS, day_before_count=1), "en")
        assert other.body != renderer.render(FACTS, "en").body

    def test_a_locale_that_there_is_not_gets_the_nearest(self, renderer: Renderer) -> None:
        assert renderer.render(FACTS, "xx-YY").locale == renderer.render(FACTS, "en").locale

    def test_lines_end_in_crlf(self, renderer: Renderer) -> None:
        rendered = renderer.render(FACTS, "en")
        for part in (rendered.body, rendered.table):
            assert part.endswith(b"\r\n")
            assert not re.search(rb"(?<!\r)\n|\r(?!\n)", part)

    def test_head_and_body_are_one_mail(self, renderer: Renderer) -> None:
        rendered = renderer.render(FACTS, "en")
        message = whole(renderer, FACTS, rendered)
        assert rendered.body.startswith(b"MIME-Version: 1.0\r\n")
        assert (message["To"], message["Subject"]) == (TO, rendered.subject)
        assert message["Date"].datetime == DUE
        assert not message.defects
        assert shown(message) == (rendered.text, rendered.html)

    def test_a_key_is_plain_and_the_same_each_time(self, renderer: Renderer) -> None:
        key = only_key(renderer, FACTS, TO)
        assert re.fullmatch(r"[A-Za-z0-9._-]{1,100}", key)
        again = replace(FACTS, tenant_name="Other", day_before_count=5)
        assert only_key(renderer, again, TO) == key

    def test_a_key_belongs_to_tenant_date_and_recipient(self, renderer: Renderer) -> None:
        others = [
            (replace(FACTS, tenant="other"), TO),
            (replace(FACTS, report_date=date(2031, 5, 7)), TO),
            (FACTS, "other@harbour.example"),
        ]
        keys = {only_key(renderer, facts, to) for facts, to in [(FACTS, TO), *others]}
        assert len(keys) == 4

    def test_each_copy_names_its_own_recipient_alone(self, renderer: Renderer) -> None:
        other = "other@harbour.example"
        rendered = renderer.render(FACTS, "en")
        heads = renderer.heads(FACTS, rendered, [TO, other], DUE)
        assert [other in head for _, head in heads] == [False, True]
        assert [TO in head for _, head in heads] == [True, False]

    def test_a_recipient_that_is_no_address_is_refused(self, renderer: Renderer) -> None:
        rendered = renderer.render(FACTS, "en")
        for recipient in ("nobody", "a@b.example, c@d.example", f"a@b.example{TRICK}"):
            with pytest.raises(UsageError):
                renderer.heads(FACTS, rendered, [recipient], DUE)

    def test_no_name_becomes_a_header_or_markup(self, renderer: Renderer) -> None:
        item = replace(FACTS.items[0], rule=TRICK, hold_key=TRICK, unit=TRICK)
        rules = (replace(FACTS.rules[0], rule=TRICK),)
        facts = replace(FACTS, tenant=TRICK, tenant_name=TRICK, rules=rules, items=(item,))
        rendered = renderer.render(facts, "en")
        message, plain = whole(renderer, facts, rendered), whole(renderer, FACTS, rendered)
        assert message.keys() == plain.keys()
        assert "\n" not in rendered.subject
        assert "<b>Cc" not in rendered.html
        assert "Cc: &lt;b&gt;" in rendered.html


def whole(renderer: Renderer, facts: Facts, rendered: Rendered) -> EmailMessage:
    """Return the copy of one recipient, read back."""
    ((_, head),) = renderer.heads(facts, rendered, [TO], DUE)
    return message_from_bytes(head.encode("ascii") + rendered.body, policy=SMTP)


def only_key(renderer: Renderer, facts: Facts, recipient: str) -> str:
    """Return the message key of one recipient's copy."""
    ((key, _),) = renderer.heads(facts, renderer.render(facts, "en"), [recipient], DUE)
    return key


def shown(message: EmailMessage) -> tuple[str, str]:
    """Return what a mail reader shows: plain text and HTML."""
    bodies = (message.get_body((kind,)) for kind in ("plain", "html"))
    text, html = (body.get_content().replace("\r\n", "\n") for body in bodies if body is not None)
    return text, html
