"""Every language says everything, in all its plural forms, about the same values."""

from __future__ import annotations

import re
import string

import pytest
from babel import Locale

from freehold.adapters.rendering.texts import Text, Wording, languages, nearest
from freehold.domain.expiry import SkipReason

OTHERS = [language for language in languages() if language != "en"]


def placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


def forms(text: Text) -> list[str]:
    return [text] if isinstance(text, str) else list(text.values())


def test_there_are_the_languages_that_were_promised() -> None:
    assert {"en", "de", "fr", "es", "nl"} <= set(languages())


@pytest.mark.parametrize("language", OTHERS)
def test_a_language_has_every_text(language: str) -> None:
    english, other = languages()["en"], languages()[language]
    assert list(other) == list(english)
    assert [isinstance(one, str) for one in other.values()] == [
        isinstance(one, str) for one in english.values()
    ]


@pytest.mark.parametrize("language", list(languages()))
def test_a_count_has_every_plural_form_of_its_language(language: str) -> None:
    wanted = {*Locale.parse(language).plural_form.tags, "other"}
    counts = {k: set(v) for k, v in languages()[language].items() if not isinstance(v, str)}
    assert counts
    assert not {key: found for key, found in counts.items() if found != wanted}


@pytest.mark.parametrize("language", list(languages()))
def test_every_form_holds_the_same_values_as_the_english_one(language: str) -> None:
    for key, text in languages()[language].items():
        wanted = placeholders(forms(languages()["en"][key])[-1])
        assert [placeholders(form) for form in forms(text)] == [wanted] * len(forms(text)), key


@pytest.mark.parametrize("language", list(languages()))
def test_no_text_holds_markup_or_a_control(language: str) -> None:
    for text in languages()[language].values():
        assert not re.search(r"[<>&\x00-\x1f]", "".join(forms(text)))


def test_every_reason_has_its_own_words() -> None:
    wording = Wording("en", "UTC")
    words = [wording.reason(reason.value) for reason in SkipReason]
    assert len({*words, wording.reason("none of them")}) == len(SkipReason) + 1


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("en", "en"),
        ("de-AT", "de_AT"),
        ("de-XX", "de"),
        ("DE-at", "de_AT"),
        ("pt-BR", "en"),
        ("xx", "en"),
        ("zh-Hant-TW", "en"),
        ("fr-CA", "fr_CA"),
    ],
)
def test_an_unknown_locale_falls_back_to_its_language_and_then_to_english(
    asked: str, found: str
) -> None:
    assert str(nearest(asked)) == found


def test_a_share_is_never_rounded_up() -> None:
    wording = Wording("en", "UTC")
    assert [wording.share(part, 100_000) for part in (99_999, 100_000, 0)] == [
        "99.9%",
        "100%",
        "0%",
    ]


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0.0, "0 sec"),
        (-1.0, "0 sec"),
        (0.034, "0.03 sec"),
        (7.26, "7.3 sec"),
        (59.6, "1 min"),
        (74.2, "1 min 14 sec"),
        (3_600, "1 hr"),
        (90_000, "1 day 1 hr"),
        (float("inf"), "> 1 day"),
    ],
)
def test_a_span_is_told_in_its_largest_units(seconds: float, told: str) -> None:
    assert Wording("en", "UTC").span(seconds).replace("\N{NO-BREAK SPACE}", " ") == told
