"""Makes what tenants, units, rules and holds are called safe to show.

*Invariants*: what is shown has no control character, no line break and no mark that turns the
direction of the text around it; it is at most so long.
*Not here*: markup (the templates escape), formulas (`table`), headers (`mime`).
"""

from __future__ import annotations

import re
import unicodedata

LENGTH_MAX = 80  # characters of a name
_LINE_ENDS = re.compile("[\t\n\v\f\r\x1c-\x1e\x85\u2028\u2029]+")
_DIRECTIONS = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_TURNING = re.compile(f"[\x00-\x1f\x7f-\x9f{_DIRECTIONS}\ud800-\udfff\ufff9-\ufffb]")
_UNSEEN = re.compile("[\u00ad\u200b\u2060-\u2064\u206a-\u206f\ufeff\U000e0000-\U000e007f]")
_RIGHT_TO_LEFT = ("R", "AL", "AN")
_ISOLATE, _END = "\u2068", "\u2069"
_BLANKS = re.compile("[\\s\u115f\u1160\u200c\u200d\u2800\u3164\uffa0]+")
_LOOSE_END = re.compile("[\u200c\u200d\ufe00-\ufe0f]+$")


def clean(text: str) -> str:
    """Return a text on one line, with a mark where a control stood; unseen characters go."""
    line = _LINE_ENDS.sub(" ", text)
    return _UNSEEN.sub("", _TURNING.sub("\N{REPLACEMENT CHARACTER}", line)).strip()


def is_blank(text: str) -> bool:
    """Tell whether there is nothing to see in a text."""
    return not _BLANKS.sub("", clean(text))


def cut(text: str, length_max: int = LENGTH_MAX) -> str:
    """Return a text of at most so many characters; an ellipsis says that there was more."""
    if len(text) <= length_max:
        return text
    end = length_max - 1
    while end > 1 and unicodedata.combining(text[end]):
        end -= 1
    return _LOOSE_END.sub("", text[:end]).rstrip() + "…"


def shown(text: str, length_max: int = LENGTH_MAX) -> str:
    """Return a name as it stands in a text; one that runs from right to left turns nothing else."""
    name = cut(clean(text), length_max)
    if any(unicodedata.bidirectional(character) in _RIGHT_TO_LEFT for character in name):
        return f"{_ISOLATE}{name}{_END}"
    return name
