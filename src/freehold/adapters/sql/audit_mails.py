"""Whether the kept bytes of mails are still those that were frozen."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterator
from datetime import datetime

from freehold.adapters.sql.session import Row, Runner
from freehold.ports.audit import Violation

PAGE = 100  # mails at a time; each may be as large as a mail may be


def changed_mails(sql: Runner, since: datetime) -> Iterator[Violation]:
    """Find mails and copies whose bytes are no longer what their digests say; a page at a time."""
    after_id = 0
    while page := sql.rows("kept_mails", after_id=after_id, since=since, limit=PAGE):
        for row in page:
            yield from (Violation(None, None, None, detail) for detail in _changed(sql, row))
        after_id = page[-1][0]


def _changed(sql: Runner, row: Row) -> Iterator[str]:
    report_id, packed, digest = row
    try:
        body = zlib.decompress(packed)
    except zlib.error:
        yield f"the mail of report {report_id} cannot be read"
        return
    if hashlib.sha256(body).hexdigest() != digest:
        yield f"the mail of report {report_id} is not as it was frozen"
    for send_id, head, whole_digest in sql.rows("heads_of_mail", report_id=report_id):
        if hashlib.sha256(head.encode() + body).hexdigest() != whole_digest:
            yield f"the copy of send {send_id} of report {report_id} is not as it was frozen"
