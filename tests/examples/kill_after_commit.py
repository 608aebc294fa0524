"""Run the example named on the command line; it kills itself after its first commit, before the ack.

Not a test: a process that tests start.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
from pathlib import Path
from typing import Any


def load(path: Path) -> Any:
    """Import a file that is in no package."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main(path: Path) -> int:
    """Run the example's main with a handling that ends in SIGKILL."""
    example = load(path)
    handle = example.handle

    def handle_and_die(connection: Any, body: bytes) -> None:
        handle(connection, body)
        os.kill(os.getpid(), signal.SIGKILL)

    example.handle = handle_and_die
    return int(example.main())


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
