"""The example's webhook receiver in a process of its own, and deliveries to it."""

from __future__ import annotations

import base64
import os
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit

from freehold.adapters.system import SystemClock
from freehold.adapters.webhook import WebhookTarget
from freehold.ports.target import Parcel, Reception
from tests.examples.conftest import EXAMPLES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

HOOK = Path(__file__).with_name("kill_after_commit.mjs")
SECRET = "whsec_" + base64.b64encode(b"a secret of the tests, 32 bytes!").decode()


@dataclass
class Receiver:
    """The example in a process of its own, as its README starts it."""

    process: subprocess.Popen[str]
    url: str

    @classmethod
    def start(cls, database_url: str, *options: str, port: int = 0) -> Self:
        given = {"DATABASE_URL": database_url, "WEBHOOK_SECRET": SECRET, "PORT": str(port)}
        process = subprocess.Popen(
            ["node", *options, "main.mjs"],
            cwd=EXAMPLES / "consumer-node",
            env={"PATH": os.environ["PATH"], **given},
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("listening on "), f"it ended with {process.wait(30)}"
        return cls(process, line.split()[-1])

    @property
    def port(self) -> int:
        """Where it listens."""
        return urlsplit(self.url).port or 0

    def deliver(
        self, given: Sequence[Parcel], secret: str = SECRET, old_secret: str | None = None
    ) -> list[Reception]:
        """Hand parcels over as Freehold's relay does."""
        target = WebhookTarget(
            self.url,
            secret,
            SystemClock(),
            old_secret=old_secret,
            ports=[self.port],
            allow=[ip_network("127.0.0.0/8")],
            insecure=True,
        )
        try:
            return [answer.reception for answer in target.deliver(given)]
        finally:
            target.close()


@contextmanager
def receiving(database_url: str, *options: str, port: int = 0) -> Iterator[Receiver]:
    receiver = Receiver.start(database_url, *options, port=port)
    with receiver.process:
        try:
            yield receiver
        finally:
            receiver.process.kill()
