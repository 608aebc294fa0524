"""How languages write numbers: marks, units, and words that say a number without a digit.

*Not here*: which numbers are true (`summary_check`).
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum


class Kind(StrEnum):
    """What a number counts."""

    COUNT = "count"
    PERCENT = "percent"
    SECONDS = "seconds"
    MINUTES = "minutes"
    HOURS = "hours"
    DAYS = "days"


@dataclass(frozen=True, slots=True)
class Language:
    """One language that a text may be written in; words stand as `folded` leaves them.

    Attributes:
        name: in English, for the prompt.
        small: words for 2 to 12 in their order, between blanks; `|` between two of one value.
        large: words for larger and for vague numbers, each a pattern of the whole word.
        none: words that say 0, all: words that say 100 percent; patterns of the whole word.
        units: words behind a number, by what it then counts.
        foreign: English number words that mean something else here.
    """

    name: str
    decimal_mark: str
    group_mark: str
    small: str
    large: str
    none: str
    all: str
    units: dict[Kind, str]
    foreign: frozenset[str] = frozenset()


SMALLEST = 2  # "one" is an article in most languages
BLANKS = " \u00a0\u202f\u2009"  # the last three hold a number together
GROUPING = f"{BLANKS}'\u2019"  # of thousands, in every language
_PERCENT = "%|percent"
_ENGLISH = Language(
    name="English",
    decimal_mark=".",
    group_mark=",",
    small="two three four five six seven eight nine ten eleven twelve",
    large=r"(thir|four|fif|six|seven|eigh|nine)teen"
    r"|(twen|thir|four|for|fif|six|seven|eigh|nine)t(y|ies)"
    r"|(hundred|thousand|million|billion|dozen|couple|pair|quarter|third|fourth|fifth|half)s?"
    r"|(doubl|tripl|quadrupl)\w+|halv\w+|twice|thrice",
    none="no|none|nothing|zero|nobody",
    all="all|every|everything|always",
    units={
        Kind.PERCENT: f"{_PERCENT}|per cent",
        Kind.SECONDS: "s|secs?|seconds?",
        Kind.MINUTES: "mins?|minutes?",
        Kind.HOURS: "h|hrs?|hours?",
        Kind.DAYS: "days?",
    },
)
LANGUAGES = {
    "en": _ENGLISH,
    "de": Language(
        name="German",
        decimal_mark=",",
        group_mark=".",
        small="zwei|zwo drei vier funf sechs sieben acht neun zehn elf zwolf",
        large=r"\w+zehn|\w*(zwanzig|dreissig|vierzig|f(u|ue)nfzig|sechzig|siebzig|achtzig"
        r"|neunzig|hundert|tausend|million|milliarde|dutzend|doppel)\w*|halfte|halbe\w?|\w*drittel"
        r"|\w*viertel|(zwei|drei|vier|f(u|ue)nf|sechs|sieben|acht|neun|zehn)(mal|fach\w*)",
        none=r"kein\w*|nichts|null|niemand",
        all=r"alle\w?|jede\w?|samtliche\w?|alles|immer|stets",
        units={
            Kind.PERCENT: f"{_PERCENT}|prozent",
            Kind.SECONDS: "s|sek|sekunden?",
            Kind.MINUTES: "min|minuten?",
            Kind.HOURS: "h|std|stunden?",
            Kind.DAYS: "tage?n?",
        },
    ),
    "fr": Language(
        name="French",
        decimal_mark=",",
        group_mark=".",
        small="deux trois quatre cinq six sept huit neuf dix onze douze",
        large=r"treize|quatorze|quinze|seize|vingt\w*|trente|quarante|cinquante|soixante|septante"
        r"|huitante|nonante|cents?|mille|millions?|milliards?|douzaines?|dizaines?|centaines?"
        r"|milliers?|demie?s?|moitie|(doubl|tripl)\w+|tiers|quarts?",
        none=r"aucune?s?|rien|zero|nul\w*|personne",
        all=r"tous|toutes?|tout|chaque|toujours",
        units={
            Kind.PERCENT: f"{_PERCENT}|pour cent",
            Kind.SECONDS: "s|secondes?",
            Kind.MINUTES: "min|minutes?",
            Kind.HOURS: "h|heures?",
            Kind.DAYS: "jours?",
        },
    ),
    "es": Language(
        name="Spanish",
        decimal_mark=",",
        group_mark=".",
        small="dos tres cuatro cinco seis siete ocho nueve diez once doce",
        large=r"trece|catorce|quince|dieci\w+|veint\w+|treinta|cuarenta|cincuenta|sesenta|setenta"
        r"|ochenta|noventa|cien|ciento|\w+cient[oa]s|quinient[oa]s|mil(es)?|millon|millones"
        r"|docenas?|mitad|dobles?|duplic\w+|triples?|triplic\w+|tercios?|cuartos?|decenas?"
        r"|centenar\w*|millar\w*",
        none=r"ningun\w*|nada|cero|nadie",
        all=r"tod[oa]s?|cada|siempre",
        units={
            Kind.PERCENT: f"{_PERCENT}|por ciento",
            Kind.SECONDS: "s|segundos?",
            Kind.MINUTES: "min|minutos?",
            Kind.HOURS: "h|horas?",
            Kind.DAYS: "dias?",
        },
    ),
    "nl": Language(
        name="Dutch",
        decimal_mark=",",
        group_mark=".",
        small="twee drie vier vijf zes zeven acht negen tien elf twaalf",
        large=r"(der|veer|vijf|zes|zeven|acht|negen)tien|\w*(twintig|dertig|veertig|vijftig|zestig"
        r"|zeventig|tachtig|negentig|honderd|duizend|miljoen|miljard|dozijn|dubbel)\w*|helft|halve"
        r"|derde|kwart|(twee|drie|vier|vijf|zes|zeven|acht|negen|tien)(maal|voud\w*)",
        none="geen|niets|nul|niemand",
        all="alle|alles|allemaal|elke?|ieder|iedere|altijd",
        units={
            Kind.PERCENT: f"{_PERCENT}|procent",
            Kind.SECONDS: "s|sec|seconden?",
            Kind.MINUTES: "min|minuten|minuut",
            Kind.HOURS: "uur|uren|u",
            Kind.DAYS: "dag|dagen",
        },
        foreign=frozenset({"ten"}),
    ),
}


def language_of(locale: str | None) -> str:
    """Return the language of a BCP 47 name that a text can be checked in: English for all others."""
    language = (locale or "").replace("_", "-").partition("-")[0].lower()
    return language if language in LANGUAGES else "en"


def folded(text: str) -> str:
    """Return a text without case and accents, so that no spelling hides a word."""
    bare = unicodedata.normalize("NFD", text.casefold())
    return "".join(one for one in bare if unicodedata.category(one) != "Mn")


def value_of(token: str, language: str) -> Decimal | None:
    """Read a number as the language writes it; None for what it does not write so.

    Blanks and apostrophes group thousands everywhere, else the language's own mark; what another
    language would read differently is no number here.
    """
    known = LANGUAGES[language]
    whole, mark, part = token.partition(known.decimal_mark)
    if mark and not (part.isascii() and part.isdigit()):
        return None
    marks = set(re.sub(r"\d", "", whole))
    if len(marks) > 1 or not marks <= {*known.group_mark, *GROUPING}:
        return None
    groups = re.split(r"\D", whole)
    if len(groups) > 1 and (len(groups[0]) > 3 or any(len(one) != 3 for one in groups[1:])):  # noqa: PLR2004 - thousands
        return None
    return Decimal("".join(groups) + (f".{part}" if mark else ""))


def word_values(language: str) -> dict[str, int]:
    """Return the value of every small number word of a language, and of English beside it."""
    own, english = LANGUAGES[language], LANGUAGES["en"]
    values = {
        word: n for n, word in enumerate(english.small.split(), SMALLEST) if word not in own.foreign
    }
    for n, words in enumerate(own.small.split(), SMALLEST):
        values |= dict.fromkeys(words.split("|"), n)
    return values
