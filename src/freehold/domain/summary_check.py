"""Which text of a language model may stand in a report.

*Invariants*: every number of an accepted text is one of the figures that the model was told, of the
same kind; an accepted text is plain: Latin letters, ASCII digits, a few marks, no link.
*Not here*: whether a true number stands beside the right word, which nobody can tell from the text;
the report says that a model wrote it, and has the figures themselves.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from freehold.domain.number_words import (
    BLANKS,
    LANGUAGES,
    Kind,
    folded,
    value_of,
    word_values,
)
from freehold.domain.summary import RELEASED, TEXT_LENGTH_MAX, WITHIN_PERCENT, Figure

LINES_MAX = 4
_QUOTES = "\"'\u201c\u201d\u201e\u2018\u2019\u00ab\u00bb\u2039\u203a"
_MINUS = "-\u2212\u2013"  # hyphen, minus sign and en dash, all of which stand before numbers
_MARKS = {*".,;:!?()%/+\u00a1\u00bf\u2014\u2026", *_QUOTES, *_MINUS}
_NUMBER = re.compile(r"\d+(?:[.,'\u2019\u00a0\u202f\u2009]\d+| \d{3}(?!\d))*", re.ASCII)
_LINK = re.compile(
    r"//|\bwww\b|\b(?:https?|ftp|mailto|tel|data|javascript|file)\s*:|[^\W_]\.[^\W\d_]{2,}",
    re.IGNORECASE,
)
_ROMAN = re.compile(r"\b[IVXLCDM]{2,}\b")
_LIST = re.compile(r"^\s*(?:[-\u2013\u2014+]\s|\d+[.)]\s)", re.MULTILINE)
_WORD = re.compile(r"[^\W\d_]+")
_BEFORE = {*"(\n", *_QUOTES, *BLANKS}
_AFTER = {*".,;:!?)\u2026%\n", *_QUOTES, *BLANKS}
_BEYOND = "\u0180"  # Latin letters from here on are of no language that is known here
_DAYS = (Figure("", Decimal(1), Kind.DAYS), Figure("", Decimal(7), Kind.DAYS))


@dataclass(frozen=True, slots=True)
class _Text:
    """A text beside what it may say."""

    text: str
    figures: tuple[Figure, ...]
    language: str

    def has(self, value: Decimal, kind: Kind, *, signed: bool = False) -> bool:
        """Tell whether a number is one of the figures; a change may stand without its sign."""
        return any(
            one.kind is kind and (one.value == value or (not signed and abs(one.value) == value))
            for one in (*self.figures, *_DAYS)
        )


def tidy(text: str) -> str:
    """Return the text as it would stand: composed characters, no blanks around it."""
    return unicodedata.normalize("NFC", text).replace("\r\n", "\n").strip()


def objection(text: str, figures: Sequence[Figure], report_date: date, language: str) -> str | None:
    """Return why a text may not stand, in a few words of ours; None where it may.

    Args:
        text: as `tidy` returned it.
        language: one of `number_words.LANGUAGES`.
    """
    shown = _Text(text.replace(report_date.isoformat(), ""), tuple(figures), language)
    checks: tuple[Callable[[_Text], str | None], ...] = (
        _shape,
        _characters,
        _links,
        _numbers,
        _words,
        _subject,
    )
    return next((found for check in checks if (found := check(shown)) is not None), None)


def _shape(shown: _Text) -> str | None:
    if not shown.text.strip():
        return "the text is empty"
    if len(shown.text) > TEXT_LENGTH_MAX:
        return f"the text is longer than {TEXT_LENGTH_MAX} characters"
    if shown.text.count("\n") >= LINES_MAX:
        return f"the text has more than {LINES_MAX} lines"
    return "the text is a list" if _LIST.search(shown.text) else None


def _characters(shown: _Text) -> str | None:
    for one in shown.text:
        if not _is_plain(one):
            return f"the character U+{ord(one):04X} is none of plain text"
    return None


def _is_plain(one: str) -> bool:
    category = unicodedata.category(one)
    if category.startswith("L"):
        # What is written by two others, a ligature for one, could hide a word from the checks.
        alone = unicodedata.normalize("NFKC", one) == one
        return alone and unicodedata.name(one, "").startswith("LATIN ") and one < _BEYOND
    if category.startswith("N"):
        return one.isascii()
    return one == "\n" or one in BLANKS or one in _MARKS


def _links(shown: _Text) -> str | None:
    return "the text has a link or an address" if _LINK.search(shown.text) else None


def _numbers(shown: _Text) -> str | None:
    for found in _NUMBER.finditer(shown.text):
        reason = _number(shown, found)
        if reason is not None:
            return f"{reason}: {found[0][:40]}"
    roman = _ROMAN.search(shown.text)
    return None if roman is None else f"a number is written in letters: {roman[0][:40]}"


def _number(shown: _Text, found: re.Match[str]) -> str | None:
    """Return what is wrong with one number."""
    before, after = shown.text[: found.start()], shown.text[found.end() :]
    sign = before[-1:] if before.endswith((*_MINUS, "+")) else ""
    before = before.removesuffix(sign)
    if (before and before[-1] not in _BEFORE) or (after and after[0] not in _AFTER):
        return "a number is joined to something"
    value = value_of(found[0], shown.language)
    if value is None:
        return "a number cannot be read"
    kind = _kind(folded(after), shown.language)
    if shown.has(-value if sign in _MINUS and sign else value, kind, signed=bool(sign)):
        return None
    of = "" if kind is Kind.COUNT else f" of {kind.value}"
    return f"a number{of} is none of the facts'"


def _kind(after: str, language: str) -> Kind:
    """Return what a number counts, by what stands behind it."""
    for kind, words in LANGUAGES[language].units.items():
        if re.match(rf"\s{{0,2}}(?:{words})(?!\w)", after):
            return kind
    return Kind.COUNT


def _words(shown: _Text) -> str | None:
    known, values = LANGUAGES[shown.language], word_values(shown.language)
    large = f"{known.large}|{LANGUAGES['en'].large}"
    for word, after in _spoken(shown):
        if re.fullmatch(large, word):
            return f"a number is written as a word: {word[:40]}"
        if word in values and not shown.has(Decimal(values[word]), _kind(after, shown.language)):
            return f"a number is written as a word, and none of the facts': {word[:40]}"
        if re.fullmatch(known.none, word) and not shown.has(Decimal(0), Kind.COUNT):
            return f"the text says none where there are some: {word[:40]}"
        if re.fullmatch(known.all, word) and not _is_all(shown):
            return f"the text says all where that is not known: {word[:40]}"
    return None


def _spoken(shown: _Text) -> Iterator[tuple[str, str]]:
    """Yield every word, folded, and what stands behind it; percents are passed over."""
    units = LANGUAGES[shown.language].units[Kind.PERCENT]
    text = re.sub(rf"(?:{units})(?!\w)", "", folded(shown.text))
    for found in _WORD.finditer(text):
        yield found[0], text[found.end() :]


def _is_all(shown: _Text) -> bool:
    percent = [one.value for one in shown.figures if one.name == WITHIN_PERCENT]
    return percent == [Decimal(100)]


def _subject(shown: _Text) -> str | None:
    """A text that does not say what was released is about something else, a refusal for one."""
    released = [one.value for one in shown.figures if one.name == RELEASED]
    said = (value_of(found[0], shown.language) for found in _NUMBER.finditer(shown.text))
    if any(value in released for value in said):
        return None
    return "the text does not say how many holds were released"
