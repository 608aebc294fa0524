"""What a report says, and that its mail is one that every reader shows."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import SMTP
from html.parser import HTMLParser

import pytest

from freehold.adapters.rendering.shown import LENGTH_MAX
from freehold.domain.facts import LateFacts, RuleFacts
from freehold.domain.unsubscribing import token
from tests.reports.sample import BAD, BUSY, CALM, DUE, ROOMS, START, TO, head, items, render

CLIP_BYTES = 100_000  # Gmail cuts a mail off a little above
VOID = {"meta", "br", "td-less"}


class Markup(HTMLParser):
    """Collects what a page is made of, and refuses what is not nested."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        assert not [name for name, _ in attrs if name.startswith("on") or name in ("src", "srcset")]
        self.links += [value or "" for name, value in attrs if name in ("href", "action")]
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag


# ------------------------------------------------------------------------------------------- said


def test_a_busy_day_is_told_in_numbers_and_words() -> None:
    text = render(BUSY).text
    for said in (
        "Saturday, March 14, 2026",
        "1,204 holds ran out and were released. 3 releases took longer than promised.",
        "That freed 860 units.",
        "99.7% on time (1,201 of 1,204)",
        "14 more than the day before, 96 fewer than a week before.",
        "Needed no release: 1,022 confirmed, 310 renewed, 2 other reasons",
        "Repeated attempts: 7",
        "180 more are in the attached table. 1,004 further releases are counted",
        "This report covers Mar 14, 2026 12:00\N{NARROW NO-BREAK SPACE}AM to Mar 15, 2026",
        "Times are those of Europe/Berlin.",
    ):
        assert said in text
    assert text.count("Due: ") == 20
    assert "Needs a person" not in text
    assert render(BUSY).subject == "Mar 14: 1,204 holds released – Harbour Hotel"  # noqa: RUF001


def test_a_calm_day_says_so_and_little_else() -> None:
    rendered = render(CALM)
    assert "A quiet day: nothing had to be released." in rendered.text
    assert rendered.text.count("\n") < 15
    assert rendered.subject == "Mar 14: nothing to release – Harbour Hotel"  # noqa: RUF001


def test_a_day_on_which_all_was_on_time_says_so() -> None:
    rule = RuleFacts("rooms", 1, 1, {}, 0, 0, None, 1.0, 1.0, 1.0, 60.0, 1)
    text = render(replace(CALM, rules=(rule,))).text
    assert "1 hold ran out and was released. Everything was on time." in text
    assert "100% on time (1 of 1)" in text


def test_what_the_counts_cannot_tell_is_not_claimed() -> None:
    rule = replace(ROOMS, promise_seconds=45.0)  # no bound of the counted lags
    text = render(replace(CALM, rules=(rule,))).text
    assert "3 releases may have taken longer than promised." in text
    assert "≥\N{NO-BREAK SPACE}99.7% on time" in text
    no_promise = replace(ROOMS, promise_seconds=None, within_promise_count=None)
    text = render(replace(CALM, rules=(no_promise,))).text
    assert "Everything was on time" not in text
    assert "Promise: none set" in text


def test_what_needs_a_person_stands_on_top() -> None:
    rendered = render(BAD)
    assert "3 holds need a person." in rendered.text
    assert "rooms: 3 holds could not be released and wait in review." in rendered.text
    assert "rooms: overdue since Mar 14, 2026 5:00" in rendered.text.replace("04:00", "5:00")
    assert rendered.subject.endswith(" – needs a person")  # noqa: RUF001
    overdue = replace(CALM, rules=(RuleFacts("rooms", oldest_due_at=START),))
    assert "Something is still overdue." in render(overdue).text


def test_what_came_late_is_told_by_its_day() -> None:
    text = render(BAD).text
    assert "From before the first report: 2 released\n" in text
    assert "Late from Mar 12: 4 released, 1 needed no release\n" in text
    days = [date(2026, 1, 1) + timedelta(days=number) for number in range(30)]
    text = render(replace(CALM, late=tuple(LateFacts(day, 1, 0) for day in days))).text
    assert "From earlier days: 21 released\n" in text
    assert text.count("Late from ") == 9


def test_a_day_that_is_not_24_hours_long_says_so_and_tells_its_hours_apart() -> None:
    start = datetime(2026, 10, 24, 22, tzinfo=UTC)
    twice = [
        replace(item, due_at=start + timedelta(hours=hour, minutes=30))
        for hour, item in zip((2, 3), items(2), strict=True)
    ]
    facts = replace(
        CALM,
        report_date=date(2026, 10, 25),
        start_at=start,
        end_at=start + timedelta(hours=25),
        rules=(ROOMS,),
        items=tuple(twice),
    )
    text = render(facts, "de").text
    assert "Dieser Tag dauerte 1\N{NO-BREAK SPACE}Tg. 1\N{NO-BREAK SPACE}Std." in text
    assert "Fällig: 02:30 +02:00" in text
    assert "Fällig: 02:30 +01:00" in text


def test_a_due_of_another_day_is_shown_with_its_date() -> None:
    old = replace(items(1)[0], due_at=START - timedelta(days=2))
    text = render(replace(CALM, rules=(ROOMS,), items=(old,)), "de").text
    assert "Fällig: 12. März, 00:00, Freigegeben: 00:00:01" in text


def test_a_summary_is_marked_as_written_by_a_model() -> None:
    rendered = render(BUSY, summary="A busy day.")
    for part in (rendered.text, rendered.html):
        assert "A busy day." in part
        assert "written by a language model" in part
    assert "language model" not in render(BUSY).text


@pytest.mark.parametrize(
    ("locale", "said"),
    [
        ("de", "1.204 Vormerkungen sind abgelaufen"),
        ("fr", "1\N{NARROW NO-BREAK SPACE}204 options sont arrivées à échéance"),
        ("es", "1.204 prerreservas vencieron"),
        ("nl", "1.204 opties zijn verlopen"),
        ("pt-BR", "1,204 holds ran out"),
    ],
)
def test_a_tenant_reads_its_own_language(locale: str, said: str) -> None:
    rendered = render(BAD, locale)
    assert said in rendered.text
    assert f'<html lang="{rendered.locale}" dir="ltr">' in rendered.html


def test_a_link_is_shown_where_it_leads_to_the_web_and_nowhere_else() -> None:
    facts = replace(BUSY, tenant="a/../b?c=<d>&e")
    link = "https://harbour.example/{tenant}/{date}"
    filled = "https://harbour.example/a%2F..%2Fb%3Fc%3D%3Cd%3E%26e/2026-03-14"
    assert filled in render(facts, link=link).text
    assert Markup(render(facts, link=link).html).links == [filled]
    for bad in ("javascript:alert(1)", "data:text/html,x", "//harbour.example"):
        assert Markup(render(facts, link=bad).html).links == []


def test_an_unsubscribe_link_stands_in_the_mail_only_where_it_names_nobody() -> None:
    assert "unsubscribe" not in render(BUSY).text.lower()
    one = "https://harbour.example/stop"
    assert Markup(render(BUSY, unsubscribe=one).html).links == [one]
    rendered = render(BUSY, unsubscribe=f"{one}/{{token}}")
    assert Markup(rendered.html).links == []
    assert "use “Unsubscribe” in your mail program" in rendered.text


# ------------------------------------------------------------------------------------------ shaped


@pytest.mark.parametrize("facts", [BUSY, CALM, BAD])
def test_the_page_is_tables_without_anything_from_elsewhere(facts: object) -> None:
    html = render(BUSY if facts is BUSY else CALM if facts is CALM else BAD, summary="Fine.").html
    tags = set(Markup(html).tags)
    assert tags <= {
        *("html", "head", "meta", "title", "style", "body", "div", "table", "tr", "td", "th"),
        *("h1", "h2", "p", "span", "b", "br"),
    }
    assert "url(" not in html
    assert "@import" not in html
    assert "prefers-color-scheme: dark" in html
    assert html.count("<table") == html.count("</table>")


def test_a_mail_is_never_clipped() -> None:
    rule = replace(BAD.rules[0], rule='"<&' * 200)
    name = "\N{FAMILY}<&'\"" * 200
    worst = replace(
        BAD,
        tenant_name='<">&' * 50,
        rules=(rule,) * 200,
        late=tuple(
            LateFacts(date(2020, 1, 1) + timedelta(days=n), 10**9, 10**9) for n in range(99)
        ),
        items=items(200, unit=name, rule=name),
    )
    for locale in ("en", "de", "fr"):
        rendered = render(worst, locale, "<" * 5_000)
        assert len(rendered.html.encode()) < CLIP_BYTES
        assert "180 " in rendered.text
    assert "…" in render(worst).html
    assert len(render(worst).subject) < 2 * LENGTH_MAX


# ----------------------------------------------------------------------------------------- mailed


def test_the_mail_has_its_parts_and_one_recipient() -> None:
    policy = {
        "reply_to": "office@harbour.example",
        "unsubscribe": "https://harbour.example/stop/{token}",
    }
    message = message_from_bytes(
        head(BUSY, **policy).encode() + render(BUSY, **policy).body, policy=SMTP
    )
    assert isinstance(message, EmailMessage)
    assert [part.get_content_type() for part in message.walk()] == [
        "multipart/mixed",
        "multipart/alternative",
        "text/plain",
        "text/html",
        "text/csv",
    ]
    assert not [part for part in message.walk() if part.defects]
    (table,) = message.iter_attachments()
    assert table.get_filename() == "released-holds-2026-03-14.csv"
    assert table.get_payload(decode=True) == render(BUSY).table
    assert [str(one) for one in message["To"].addresses] == [TO]
    assert message["Date"].datetime == DUE
    assert message["Auto-Submitted"] == "auto-generated"
    assert message["X-Auto-Response-Suppress"] == "All"
    assert message["Message-ID"].startswith("<report.")
    assert message["Message-ID"].endswith("@harbour.example>")
    stop = f"<https://harbour.example/stop/{token('harbour', TO)}>"
    assert message["List-Unsubscribe"] == stop
    assert message["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    assert "harbour/" not in head(BUSY).replace("harbour.example", "")


def test_only_https_can_be_clicked_once() -> None:
    assert "List-Unsubscribe" not in head(BUSY)
    lines = head(BUSY, unsubscribe="mailto:stop@harbour.example?subject={token}")
    assert "List-Unsubscribe: <mailto:stop@" in lines
    assert "One-Click" not in lines


def test_a_subject_survives_being_encoded() -> None:
    names = ("Hôtel – é" + "é😀 x" * 30, "日本語 ホテル", "x" * 500, "a  b", "=?utf-8?q?Bcc?=")  # noqa: RUF001
    for name in names:
        facts = replace(BUSY, tenant_name=name)
        message = message_from_bytes(head(facts).encode("ascii"), policy=SMTP)
        assert message["Subject"] == render(facts).subject


@pytest.mark.parametrize(
    ("name", "tenant", "said"),
    [
        ("\u200b", "harbour", "harbour"),
        (" \u00a0\u3164\u2800", "harbour", "harbour"),
        ("\u200b", " \u200b", r"' \u200b'"),
        ("", "  ", "'  '"),
        ("", "", "Holds that belong to nobody"),
    ],
)
def test_a_name_that_looks_blank_is_not_nobodys(name: str, tenant: str, said: str) -> None:
    rendered = render(replace(CALM, tenant_name=name, tenant=tenant))
    assert said in rendered.subject
    assert said in rendered.text
    assert ("nobody" in rendered.text) == (not tenant)


CODE = """
import hashlib, sys
from tests.reports.sample import BAD, head, render
for locale in ("en", "de", "fr-CA"):
    rendered = render(BAD, locale, "Fine.")
    lines = head(BAD, locale=locale).encode()
    print(hashlib.sha256(lines + rendered.body).hexdigest())
"""


def test_another_process_elsewhere_writes_the_same_bytes() -> None:
    mails = [
        head(BAD, locale=locale).encode() + render(BAD, locale, "Fine.").body
        for locale in ("en", "de", "fr-CA")
    ]
    here = [hashlib.sha256(mail).hexdigest() for mail in mails]
    for seed, language, zone in (
        ("1", "de_DE.UTF-8", "Asia/Kathmandu"),
        ("4711", "C", "America/St_Johns"),
    ):
        changed = {"PYTHONHASHSEED": seed, "LANG": language, "LC_ALL": language, "TZ": zone}
        there = subprocess.run(
            [sys.executable, "-c", CODE],
            env={**os.environ, **changed},
            check=True,
            capture_output=True,
            text=True,
        )
        assert there.stdout.split() == here
