"""What a Python handler imports: the types of its one argument.

Not here: how a handler is called, and what it may do; see docs/how-to/handlers.md.
"""

from __future__ import annotations

from freehold.ports.handlers import ExpiredBatch, ExpiredHold

__all__ = ["ExpiredBatch", "ExpiredHold"]
