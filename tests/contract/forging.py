"""What somebody with access to a broker can put into it."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from freehold.domain.messages import PAYLOAD_BYTES_MAX, VERSION, write_message

if TYPE_CHECKING:
    from freehold.domain.messages import Message

NO_MESSAGES = {
    "nothing": b"",
    "not UTF-8": b"\xff\xfe\x00",
    "no object": b"[1]",
    "deep": b"[" * 60_000,
    "deep object": b'{"v":' * 12_000,
    "too long": b'{"v":1,"x":"' + b"x" * PAYLOAD_BYTES_MAX + b'"}',
    "a terminal's own": b"\x1b]0;owned\x07\x1b[2J",
}
FIELDS: dict[str, dict[str, Any]] = {
    "another version": {"v": 2},
    "true for a version": {"v": "1"},
    "NaN": {"operation_id": float("nan")},
    "an endless number": {"attempt": float("inf")},
    "a huge id": {"operation_id": 2**63},
    "an id of 4,000 digits": {"operation_id": 10**4_000},
    "no id": {"operation_id": 0},
    "a negative id": {"operation_id": -1},
    "true for an id": {"operation_id": True},
    "text for an id": {"operation_id": "1 or 1=1"},
    "a list for a key": {"operation_key": ["a"]},
    "nothing for a rule": {"rule": None},
    "a naive instant": {"due_at": "2031-05-06T12:00:00"},
    "no instant": {"due_at": "yesterday"},
}


def payload_of(message: Message, **changes: Any) -> bytes:
    """Write a message with some of its fields changed, as no client of ours would."""
    fields = {"v": VERSION, **asdict(message), "due_at": message.due_at.isoformat(), **changes}
    return json.dumps(fields).encode()


def unreadable_payloads(message: Message) -> dict[str, bytes]:
    """Return payloads that must be set aside, by what is wrong with them."""
    wrong = {name: payload_of(message, **changes) for name, changes in FIELDS.items()}
    return {**NO_MESSAGES, **wrong, "cut short": write_message(message)[:-1]}


def untrue_payloads(message: Message, others: dict[str, int]) -> dict[str, bytes]:
    """Return payloads that can be read and name nothing to do, by what is untrue in them.

    Args:
        others: ids of operations that are not claimable, by why.
    """
    untrue = {
        "another key": replace(message, operation_key="r:00000000-0000-0000-0000-000000000000"),
        "an empty key": replace(message, operation_key=""),
        "a key that is SQL": replace(message, operation_key="' or '1'='1"),
        "an id that is not there": replace(message, operation_id=2**63 - 1),
        "an unknown rule": replace(message, rule="removed"),
        "another rule": replace(message, rule="another"),
        "a rule that is SQL": replace(message, rule="r'; drop table operation; --"),
        "a rule with NUL": replace(message, rule="r\x00"),
        "a key with NUL": replace(message, operation_key="r\x00"),
        **{why: replace(message, operation_id=one) for why, one in others.items()},
    }
    wanted = {name: write_message(one) for name, one in untrue.items()}
    surrogate = payload_of(replace(message, operation_key="\ud800"))
    twice = write_message(message).replace(b'"rule":"r"', b'"rule":"r","rule":"removed"')
    return {**wanted, "half a pair": surrogate, "a field twice, the last counts": twice}


def harmless_payloads(message: Message) -> dict[str, bytes]:
    """Return payloads of a true operation whose other fields lie; the ledger decides by its own."""
    early = message.due_at - timedelta(days=10_000)
    lies = {
        "another due": replace(message, due_at=early),
        "the last due": replace(message, due_at=datetime.max.replace(tzinfo=message.due_at.tzinfo)),
        "a huge attempt": replace(message, attempt=2**70),
        "a negative attempt": replace(message, attempt=-5),
        "another hold": replace(message, hold_key="2"),
    }
    more = {name: write_message(one) for name, one in lies.items()}
    return {**more, "more fields": payload_of(message, command="drop", x={"y": [1]})}
