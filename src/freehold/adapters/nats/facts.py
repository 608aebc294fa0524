"""How a NATS server and the stream of hints are set up; implements `ports.queue_facts`.

*Invariants*: nothing is made: a stream that is missing is told as missing. What the protocol does
not tell, the server's monitoring does, where its URL is known.
"""

from __future__ import annotations

import asyncio
import http.client
import ipaddress
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from freehold.adapters.nats.address import Address, read_addresses, trust
from freehold.adapters.nats.client import LinkLost, LinkRefused
from freehold.adapters.nats.link import CONNECT_SECONDS, REQUEST_SECONDS, Link
from freehold.adapters.nats.topology import SECOND, WORKER
from freehold.domain.errors import QueueAway, QueueUnfit
from freehold.ports.queue_facts import QueueFacts

MONITOR_SECONDS = 5.0
BODY_BYTES_MOST = 1_000_000
OK = 200


class NatsFacts:
    """Implements `ports.queue_facts.QueueInspection`."""

    def __init__(
        self, *, url: str, name: str, ca_file: str | None = None, monitor: str | None = None
    ) -> None:
        self._addresses = read_addresses(url)
        self._trusted = trust(ca_file)
        self._name = name
        self._monitor = monitor

    def read(self) -> QueueFacts:
        """Look once."""
        seconds = len(self._addresses) * CONNECT_SECONDS + 4 * REQUEST_SECONDS
        try:
            told = asyncio.run(asyncio.wait_for(self._ask(), seconds))
        except LinkRefused as error:
            raise QueueUnfit(str(error)) from None
        except LinkLost as error:
            raise QueueAway(str(error)) from None
        except TimeoutError:
            raise QueueAway("NATS did not answer in time") from None
        return QueueFacts(
            kind="nats",
            user=self._addresses[0].user if self._addresses[0].password is not None else None,
            is_in_clear=any(not one.is_tls and not _is_loopback(one) for one in self._addresses),
            is_monitored=self._monitor is not None,
            sync_seconds=None if self._monitor is None else self._sync_seconds(self._monitor),
            **told,
        )

    async def _ask(self) -> dict[str, Any]:
        link = await Link.open(self._addresses, self._trusted)
        try:
            return await self._told(link)
        finally:
            await link.close()

    async def _told(self, link: Link) -> dict[str, Any]:
        stream = await link.request(f"STREAM.INFO.{self._name}", {})
        consumer = await link.request(f"CONSUMER.INFO.{self._name}.{WORKER}", {})
        dead = await link.request(f"STREAM.INFO.{self._name}-dead", {})
        config = stream.get("config", {})
        limit = consumer.get("config", {}).get("max_deliver")
        return {
            "version": link.version,
            "is_made": "config" in stream and "config" in consumer,
            "queue_type": config.get("retention"),
            "is_persistent": None if not config else config.get("storage") == "file",
            "is_clustered": bool(link.cluster),
            "replicas": config.get("num_replicas"),
            "delivery_limit": None if limit in (None, -1) else int(limit),
            "dead_letter_target": f"{self._name}-dead" if "config" in dead else None,
            "overflow": config.get("discard"),
            "waiting_count": consumer.get("num_pending"),
            "dead_count": dead.get("state", {}).get("messages"),
        }

    def _sync_seconds(self, monitor: str) -> float | None:
        """Read from the server's monitoring how often it syncs files.

        Source: nats-server 2.15.1, `/varz`: nanoseconds, and `sync_always` where it does at once.
        """
        config = self._get(monitor, "/varz").get("jetstream", {}).get("config", {})
        if config.get("sync_always"):
            return 0.0
        interval = config.get("sync_interval")
        return None if interval is None else interval / SECOND

    def _get(self, monitor: str, path: str) -> Mapping[str, Any]:
        parts = urlsplit(monitor)
        host, port = parts.hostname or "", parts.port
        connection = http.client.HTTPConnection(host, port, timeout=MONITOR_SECONDS)
        if parts.scheme == "https":
            connection = http.client.HTTPSConnection(
                host, port, timeout=MONITOR_SECONDS, context=self._trusted
            )
        try:
            connection.request("GET", f"{parts.path.rstrip('/')}{path}")
            answer = connection.getresponse()
            found: Any = json.loads(answer.read(BODY_BYTES_MOST)) if answer.status == OK else None
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise QueueAway(f"NATS's monitoring cannot be read ({type(error).__name__})") from None
        finally:
            connection.close()
        if not isinstance(found, dict):
            raise QueueAway(f"NATS's monitoring answered {answer.status} to {path}")
        return found


def _is_loopback(address: Address) -> bool:
    host = urlsplit(f"//{address.place}").hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
