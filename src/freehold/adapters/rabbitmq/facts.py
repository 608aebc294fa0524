"""How a RabbitMQ server and the queue of hints are set up; implements `ports.queue_facts`.

*Invariants*: nothing is made: a queue that is missing is told as missing. What the protocol does not
tell, the server's management does, where its URL is known; without it the server is asked whether a
queue that is there is made as we would make it, which changes nothing.
"""

from __future__ import annotations

import asyncio
import base64
import http.client
import ipaddress
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from aiormq.exceptions import AMQPError, ChannelAccessRefused, ChannelNotFoundEntity

from freehold.adapters.rabbitmq.address import read_address, trust
from freehold.adapters.rabbitmq.link import (
    CLOSE_SECONDS,
    CONNECT_SECONDS,
    REQUEST_SECONDS,
    Link,
    LinkLost,
    LinkRefused,
    told,
)
from freehold.adapters.rabbitmq.topology import dead_name, hints_arguments, is_made_so
from freehold.domain.errors import QueueAway, QueueUnfit
from freehold.ports.queue_facts import QueueFacts

MONITOR_SECONDS = 5.0
BODY_BYTES_MOST = 1_000_000
REQUESTS_MOST = 8
OK, NOT_FOUND = 200, 404
NOT_FOR_YOU = (401, 403)  # of nodes: it takes the tag "monitoring"


class RabbitFacts:
    """Implements `ports.queue_facts.QueueInspection`."""

    def __init__(
        self, *, url: str, name: str, ca_file: str | None = None, monitor: str | None = None
    ) -> None:
        self._address = read_address(url, ca_file)
        self._name = name
        self._ca_file = ca_file
        self._monitor = monitor

    def read(self) -> QueueFacts:
        """Look once."""
        seconds = CONNECT_SECONDS + REQUESTS_MOST * REQUEST_SECONDS + CLOSE_SECONDS
        try:
            asked = asyncio.run(asyncio.wait_for(self._ask(), seconds))
        except LinkRefused as error:
            raise QueueUnfit(str(error)) from None
        except LinkLost as error:
            raise QueueAway(str(error)) from None
        except TimeoutError:
            raise QueueAway("RabbitMQ did not answer in time") from None
        monitored = {} if self._monitor is None else self._read_monitor(self._monitor)
        if asked["is_made"] and self._monitor is not None and "queue_type" not in monitored:
            raise QueueAway("RabbitMQ's management does not show the queue: see queue.monitor")
        return QueueFacts(
            kind="rabbitmq",
            user=self._address.user,
            vhost=self._address.vhost,
            is_in_clear=self._address.trusted is None and not _is_loopback(self._address.host),
            is_monitored=self._monitor is not None,
            **(asked | monitored),
        )

    # ------------------------------------------------------------------------- over the protocol

    async def _ask(self) -> dict[str, Any]:
        link = await Link.open(self._address)
        try:
            return await self._told(link)
        finally:
            await link.close()

    async def _told(self, link: Link) -> dict[str, Any]:
        waiting = await self._count(link, self._name)
        dead = await self._count(link, dead_name(self._name))
        facts: dict[str, Any] = {
            "version": link.version,
            "is_made": waiting is not None and dead is not None,
            "waiting_count": waiting,
            "dead_count": dead,
        }
        wanted = hints_arguments(self._name)
        if waiting is None or self._monitor is not None:
            return facts
        is_ours = await is_made_so(link, self._name, wanted)
        return facts | (_kept(wanted) if is_ours else {})

    async def _count(self, link: Link, queue: str) -> int | None:
        channel = await link.aside()
        try:
            answer = await link.ask(channel.queue_declare(queue, passive=True))
        except ChannelNotFoundEntity:
            return None
        except ChannelAccessRefused as error:
            raise LinkRefused(f"RabbitMQ does not show the queue {queue}: {told(error)}") from None
        except AMQPError as error:
            raise LinkLost(f"RabbitMQ does not count the queue {queue}: {told(error)}") from None
        await link.ask(channel.close())
        return int(answer.message_count or 0)

    # ----------------------------------------------------------------------- over its management

    def _read_monitor(self, monitor: str) -> dict[str, Any]:
        """Read how the queue really is, policies included.

        Source: RabbitMQ 3.10, https://www.rabbitmq.com/docs/http-api-reference, `/api/queues`.
        """
        path = f"/api/queues/{quote(self._address.vhost, safe='')}/{quote(self._name, safe='')}"
        queue = self._get(monitor, path, (NOT_FOUND,))
        nodes = self._get(monitor, "/api/nodes?columns=name", NOT_FOR_YOU)
        clustered: dict[str, Any] = {"is_clustered": None if nodes is None else len(nodes) > 1}
        if queue is None:
            return clustered
        policy = queue.get("effective_policy_definition") or {}
        set_by = {f"x-{key}": value for key, value in policy.items()}
        return clustered | _kept(set_by | queue.get("arguments", {}), queue)

    def _get(self, monitor: str, path: str, passed_over: tuple[int, ...]) -> Any:
        """Return what is told, or None where the answer is one of those."""
        parts = urlsplit(monitor)
        host, port = parts.hostname or "", parts.port
        connection = http.client.HTTPConnection(host, port, timeout=MONITOR_SECONDS)
        if parts.scheme == "https":
            context = trust(self._ca_file)
            connection = http.client.HTTPSConnection(
                host, port, timeout=MONITOR_SECONDS, context=context
            )
        login = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
        headers = {"Authorization": f"Basic {base64.b64encode(login.encode()).decode()}"}
        try:
            connection.request("GET", f"{parts.path.rstrip('/')}{path}", headers=headers)
            answer = connection.getresponse()
            body = answer.read(BODY_BYTES_MOST)
            found = json.loads(body) if answer.status == OK else None
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise QueueAway(
                f"RabbitMQ's management cannot be read ({type(error).__name__})"
            ) from None
        finally:
            connection.close()
        if answer.status not in (OK, *passed_over):
            raise QueueAway(f"RabbitMQ's management answered {answer.status}")
        return found


def _kept(arguments: Mapping[str, Any], queue: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return how a queue is kept, from what it was made with and what the management says."""
    kind = (queue or {}).get("type") or arguments.get("x-queue-type", "classic")
    exchange, key = (arguments.get(f"x-dead-letter-{word}") for word in ("exchange", "routing-key"))
    members = (queue or {}).get("members")
    return {
        "queue_type": kind,
        "is_persistent": kind in {"quorum", "stream"} or bool((queue or {}).get("durable")),
        "delivery_limit": arguments.get("x-delivery-limit"),
        "dead_letter_target": None if exchange is None else exchange or key or "",
        "overflow": arguments.get("x-overflow", "drop-head"),
        "replicas": None if members is None else len(members),
    }


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
