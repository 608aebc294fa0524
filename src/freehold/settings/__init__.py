"""Settings: file and environment in, frozen values out; `values` holds every default.

*Invariants*: an unknown key is an error with a suggestion; every error is one sentence that says
what, where and what to do; a secret is never echoed.
*Not here*: checking rules against a live table (`freehold.application.doctor`).
"""

from freehold.settings.sources import load_settings
from freehold.settings.values import DEFAULT_URL, DatabaseSettings, LoopSettings, Settings

__all__ = ["DEFAULT_URL", "DatabaseSettings", "LoopSettings", "Settings", "load_settings"]
