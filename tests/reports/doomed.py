"""The real program, but that it kills itself at a boundary: `python -m tests.reports.doomed`.

The words are the boundary, at which of its reaches, and then what `freehold` takes.
"""

from __future__ import annotations

import sys
from functools import partial

from freehold.adapters import system
from freehold.entrypoints.cli.main import main
from freehold.ports.system import Boundary
from freehold.testing.crash import KillAt

if __name__ == "__main__":
    boundary, nth, *words = sys.argv[1:]
    system.Onwards = partial(KillAt, int(nth), Boundary(boundary))  # type: ignore[assignment,misc]
    sys.argv = ["freehold", *words]
    main()
