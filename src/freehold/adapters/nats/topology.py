"""Streams and consumers as they must be: made where they are missing, refused where they differ.

*Invariants*: nothing that exists is changed, but for how much a consumer may hold unsettled.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from freehold.adapters.nats.client import LinkLost, LinkRefused
from freehold.adapters.nats.link import Link

WORKER = "workers"  # the consumer that all workers share
SECOND = 1_000_000_000  # JetStream counts in nanoseconds
NOT_FOUND = {10059, 10014}  # of a stream, of a consumer
# What JetStream answers while a cluster has no leader or changes, or room is short: it may pass.
# Source: nats-server, `server/jetstream_errors_generated.go`.
PASSING = {10005, 10008, 10009, 10023, 10047, 10202}


def hints_stream(name: str, replicas: int) -> dict[str, Any]:
    """Return the stream of hints.

    The window for repeats is as short as one call that sends again; see `queue`.
    """
    return {
        "name": name,
        "subjects": [f"{name}.ready"],
        "storage": "file",
        "retention": "workqueue",
        "num_replicas": replicas,
        "duplicate_window": 30 * SECOND,
    }


def dead_stream(name: str, replicas: int) -> dict[str, Any]:
    """Return the stream of what nobody can read: evidence, so the oldest goes when it is full."""
    return {
        "name": f"{name}-dead",
        "subjects": [f"{name}.dead"],
        "storage": "file",
        "retention": "limits",
        "discard": "old",
        "max_msgs": 10_000,
        "max_bytes": 256 * 1024 * 1024,
        "num_replicas": replicas,
    }


def events_stream(name: str, subject: str, replicas: int) -> dict[str, Any]:
    """Return the stream of events: kept a week for whoever subscribes, read or not."""
    return {
        "name": name,
        "subjects": [f"{subject}.>"],
        "storage": "file",
        "retention": "limits",
        "discard": "old",
        "max_age": 7 * 24 * 3_600 * SECOND,
        "num_replicas": replicas,
        "duplicate_window": 120 * SECOND,
    }


def worker(name: str, ack_wait_seconds: float, ack_pending: int) -> dict[str, Any]:
    """Return the consumer that all workers share.

    No `max_deliver`: attempts are the ledger's, and a work queue keeps what passed the limit for
    ever and says nothing. Source: nats-server issues 5564 and 7817.
    """
    return {
        "durable_name": name,
        "deliver_policy": "all",
        "ack_policy": "explicit",
        "ack_wait": int(ack_wait_seconds * SECOND),
        "max_deliver": -1,
        "max_ack_pending": ack_pending,
    }


async def declare_stream(link: Link, wanted: Mapping[str, Any], keys: tuple[str, ...]) -> None:
    """Make a stream, or check that the one of its name is as it must be.

    Args:
        keys: what must be equal in a stream that exists; its owner may choose the rest.

    Raises:
        LinkRefused: it differs, or may not be made.
        LinkLost: it cannot be made now.
    """
    name = wanted["name"]
    answer = await link.request(f"STREAM.INFO.{name}", {})
    if _code(answer) in NOT_FOUND:
        answer = await link.request(f"STREAM.CREATE.{name}", dict(wanted))
    _check(f"the stream {name}", answer, {key: wanted[key] for key in keys})


async def declare_consumer(link: Link, stream: str, wanted: Mapping[str, Any]) -> None:
    """Make a durable consumer, or check the one of its name.

    Raises:
        LinkRefused: it differs, or may not be made.
        LinkLost: it cannot be made now.
    """
    name = wanted["durable_name"]
    answer = await link.request(f"CONSUMER.INFO.{stream}.{name}", {})
    mild = ("ack_wait", "max_ack_pending")
    found = answer.get("config", {})
    if _code(answer) in NOT_FOUND or any(found.get(key) != wanted[key] for key in mild):
        answer = await link.request(
            f"CONSUMER.DURABLE.CREATE.{stream}.{name}",
            {"stream_name": stream, "config": dict(wanted)},
        )
    must = {key: wanted[key] for key in ("ack_policy", "max_deliver")} | {"deliver_subject": None}
    _check(f"the consumer {name} of the stream {stream}", answer, must)


def _check(what: str, answer: Mapping[str, Any], must: Mapping[str, Any]) -> None:
    code = _code(answer)
    if code:
        text = answer["error"].get("description", "")
        error = LinkLost if code in PASSING else LinkRefused
        raise error(f"NATS cannot make {what}: {text}")
    found = answer.get("config", {})
    for key, value in must.items():
        if found.get(key) != value:
            raise LinkRefused(
                f"{what} exists with {key} {found.get(key)!r} instead of {value!r}: "
                "delete it, or choose another name"
            )


def _code(answer: Mapping[str, Any]) -> int:
    """Return JetStream's error code, 0 without an error."""
    error = answer.get("error", {})
    return int(error.get("err_code", error.get("code", 0)))
