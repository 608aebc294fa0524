"""The texts of the report in the languages that there are, and numbers and times as people write them.

*Invariants*: every text stands in `texts.toml`; a value that is put into a text is never read as
one; nothing depends on the process's own language or time zone.
*Not here*: which text is said when (`page`).
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from functools import cache
from importlib.resources import files

from babel import Locale, UnknownLocaleError
from babel.dates import format_date, format_datetime, format_skeleton, format_time
from babel.numbers import format_decimal, format_percent
from babel.units import format_unit

from freehold.domain.due_walls import zone_info

DEFAULT_LANGUAGE = "en"
Text = str | Mapping[str, str]  # a mapping has one text for each plural form

_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400  # seconds
_EXACT_BELOW_SECONDS = 10  # shorter spans have a decimal
_STEPS = (  # from, large unit and its seconds, small unit and its seconds
    (_DAY, ("day", _DAY), ("hour", _HOUR)),
    (_HOUR, ("hour", _HOUR), ("minute", _MINUTE)),
    (_MINUTE, ("minute", _MINUTE), ("second", 1)),
)


@cache
def languages() -> Mapping[str, Mapping[str, Text]]:
    """Return every text by language and key."""
    text = files(__package__).joinpath("texts.toml").read_text("utf-8")
    return tomllib.loads(text)


@cache
def nearest(name: str) -> Locale:
    """Return the locale itself, or without its region, or English: the first that there is."""
    language = name.partition("-")[0].lower()
    for tried in (name, language) if language in languages() else ():
        try:
            return Locale.parse(tried, sep="-")
        except (UnknownLocaleError, ValueError):
            continue
    return Locale.parse(DEFAULT_LANGUAGE)


class Wording:
    """Says things in one language, about one time zone."""

    def __init__(self, locale: str, zone: str) -> None:
        self.locale = nearest(locale)
        self._texts = languages()[self.locale.language]
        self._zone = zone_info(zone)

    @property
    def tag(self) -> str:
        """Return the locale as BCP 47 writes it."""
        return str(self.locale).replace("_", "-")

    @property
    def direction(self) -> str:
        """Return `ltr` or `rtl`."""
        return self.locale.text_direction

    # ------------------------------------------------------------------------------- texts

    def say(self, key: str, **values: str) -> str:
        """Return a text."""
        text = self._texts[key]
        assert isinstance(text, str), key
        return text.format(**values) if values else text

    def count(self, key: str, count: int, **values: str) -> str:
        """Return a text in the plural form of a number, which it may hold."""
        forms = self._texts[key]
        assert not isinstance(forms, str), key
        form = self.locale.plural_form(count)
        return forms[form].format(count=self.number(count), **values)

    def reason(self, reason: str) -> str:
        """Return why a hold needed no release."""
        key = f"reason_{reason.replace(' ', '_')}"
        return self.say(key if key in self._texts else "reason_other")

    # ----------------------------------------------------------------------------- numbers

    def number(self, value: float) -> str:
        """Return a number, with two decimals at most."""
        return format_decimal(value, "#,##0.##", self.locale)

    def share(self, part: int, whole: int) -> str:
        """Return a percentage, cut and never rounded up: only all of it is 100 %."""
        share = math.floor(part * 1_000 / whole) / 1_000
        pattern = self.locale.percent_formats[None].pattern.replace("0", "0.#")
        return format_percent(share, pattern.replace("0.#.#", "0.#"), self.locale)

    def span(self, seconds: float) -> str:
        """Return a length of time in its one or two largest units."""
        if not math.isfinite(seconds):
            return f"> {self.span(_DAY)}"
        if seconds < _EXACT_BELOW_SECONDS:
            places = 2 if seconds < 1 else 1
            return self._unit(round(max(seconds, 0.0), places), "second")
        whole = round(seconds)
        for least, large, small in _STEPS:
            if whole >= least:
                return self._two(whole, large, small)
        return self._unit(whole, "second")

    def _two(self, seconds: int, large: tuple[str, int], small: tuple[str, int]) -> str:
        count, rest = divmod(seconds, large[1])
        first = self._unit(count, large[0])
        left = rest // small[1]
        return f"{first} {self._unit(left, small[0])}" if left else first

    def _unit(self, value: float, unit: str) -> str:
        told = format_unit(value, f"duration-{unit}", "short", "#,##0.##", self.locale)
        return told.replace(" ", "\N{NO-BREAK SPACE}")

    # ------------------------------------------------------------------------------- times

    def day(self, day: date) -> str:
        """Return a date with its weekday, in full."""
        return format_date(day, "full", self.locale)

    def short_day(self, day: date) -> str:
        """Return a date without its year."""
        return format_skeleton("MMMd", day, locale=self.locale)

    def instant(self, at: datetime) -> str:
        """Return date and time of day, to the minute."""
        local = self.local(at)
        return f"{format_date(local, 'medium', self.locale)} {self.clock(at)}"

    def clock(self, at: datetime, *, seconds: bool = False) -> str:
        """Return a time of day."""
        length = "medium" if seconds else "short"
        return format_time(self._bare(at), length, locale=self.locale)

    def offset(self, at: datetime) -> str:
        """Return the offset from UTC, as in +02:00; it tells two readings of a clock apart."""
        return format_datetime(self.local(at), "xxx", tzinfo=self._zone, locale=self.locale)

    def local(self, at: datetime) -> datetime:
        """Return an instant as the tenant's clocks show it."""
        return at.astimezone(self._zone)

    def _bare(self, at: datetime) -> datetime:
        """Return the reading of the tenant's clocks: what is not aware is shown as it is."""
        return self.local(at).replace(tzinfo=None)


def span_of(start_at: datetime, end_at: datetime) -> timedelta:
    """Return the true length between two instants, whatever their zones."""
    return end_at.astimezone(UTC) - start_at.astimezone(UTC)
