"""The example's consumer of a broker in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests.examples.conftest import EXAMPLES
from tests.examples.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.examples.brokers import Broker

CONSUMER = EXAMPLES / "consumer-python" / "consumer.py"


@contextmanager
def consuming(broker: Broker, database_url: str, *command: Path) -> Iterator[subprocess.Popen[str]]:
    """Run the example in a process of its own, and wait until it takes messages."""
    process = subprocess.Popen(
        [sys.executable, *(command or (CONSUMER,))],
        env={"PATH": os.environ["PATH"], "DATABASE_URL": database_url, "BROKER_URL": broker.url},
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line.startswith("consuming"), f"it ended with {process.wait(PATIENCE_SECONDS)}"
            yield process
        finally:
            process.kill()
