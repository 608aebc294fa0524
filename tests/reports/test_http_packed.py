"""A provider's answer is not unpacked: a few kB may unpack to any length."""

from __future__ import annotations

import gzip
import json

from freehold.adapters.mail.http_client import Client, Request
from tests.webhooks.receiver import Receiver, answering


def test_what_is_packed_says_nothing() -> None:
    with Receiver(None).serving() as receiver:
        packed = gzip.compress(json.dumps({"id": "x" * 1_000}).encode())
        receiver.play = answering(200, packed, Content_Encoding="gzip")
        client = Client("Post", receiver.url(host="127.0.0.1"), 5.0, secret="k", headers={})
        reply = client.ask(Request("POST", "", body=b"{}"))
        client.close()
    assert (reply.status, reply.said) == (200, {})
    assert receiver.got[0].headers["accept-encoding"] == "identity"
