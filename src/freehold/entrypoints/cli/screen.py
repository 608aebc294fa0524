"""The screen for people: what rows, tenants and providers are called gives no terminal an order."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.text import Text

from freehold.entrypoints.cli.sentences import harmless


class Screen(Console):
    """Rich's console, which lets control characters of a text through to the terminal."""

    def render_str(self, text: str, **options: Any) -> Text:
        """Turn a text with markup into one that can be shown."""
        return super().render_str(harmless(text), **options)
