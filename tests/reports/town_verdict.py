"""What must be true of a town in the end: by the plain driver, and by the mail server's account."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from datetime import timedelta
from email import message_from_bytes
from email.policy import SMTP
from typing import TYPE_CHECKING, Any

from freehold.testing.backdoor import BackDoor
from freehold.testing.invariants import check_invariants, digest_tables

if TYPE_CHECKING:
    from datetime import date, datetime

    from tests.reports.smtp_server import AcceptedMail, MailServer
    from tests.reports.town import Town

Key = tuple[str, str]  # a tenant's id, and a report's date as written
JUST_OVER = timedelta(minutes=1)  # a day that ended since may wait for the delay of closing
OF_REPORTS = ("report", "report_calendar", "mail", "send", "send_attempt")
REPORTS = (
    "select tenant, report_date, start_at, end_at, state, expired_count, facts, tz_version"
    " from {s}report order by tenant, report_date"
)
SENDS = (
    "select r.tenant, r.report_date, s.recipient, s.state, s.reference, s.mail_digest"
    " from {s}send s join {s}report r on r.id = s.report_id"
)
# What a report counts, from the records: what was released in its window and is in its tallies.
COUNTED = (
    "select r.tenant, r.report_date, count(*) from {s}record e join {s}tally t on t.id = e.tally_id"
    " join {s}report r on r.id = t.report_id where e.outcome = 'expired'"
    " and e.finished_at >= r.start_at and e.finished_at < r.end_at group by 1, 2"
)
LATE = (
    "select count(*) from {s}record e join {s}tally t on t.id = e.tally_id"
    " join {s}report r on r.id = t.report_id where e.outcome = 'expired'"
    " and e.finished_at < r.start_at"
)
WAITING = (
    "select count(*) from {s}record e join {s}tally t on t.id = e.tally_id"
    " where e.outcome = 'expired' and t.report_id is null"
)
UNKNOWN = (
    "select count(*) from {s}send_attempt a where a.outcome = 'unknown' and a.kind = 'send'"
    " and a.send_id = (select s.id from {s}send s join {s}report r on r.id = s.report_id"
    " where r.tenant = :tenant and r.report_date = :day)"
)


def judge(town: Town, server: MailServer, began_at: datetime, ended_at: datetime) -> set[Key]:
    """Hold database and mail server to each other; return the reports that wait for a person.

    Args:
        began_at: before services were asked for the last time to do what was due.
        ended_at: after that.
    """
    with BackDoor(town.url) as door:
        _check_reports(town, door, began_at, ended_at)
        _check_sums(town, door)
        waiting = _check_mails(town, door, server)
        check_invariants(door, town.rule, ended_at)
    audited = town.freehold("audit")
    assert audited.code == 0, audited.out
    return waiting


def _check_reports(town: Town, door: BackDoor, began_at: datetime, ended_at: datetime) -> None:
    """Each tenant has one report of each day that is over, and of no other; each by its bounds."""
    rows = door.rows(REPORTS)
    found = Counter((row[0], row[1].isoformat()) for row in rows)
    least, most = owed(town, began_at - JUST_OVER), owed(town, ended_at)
    assert set(found) >= least, f"lost: {sorted(least - set(found))[:5]}"
    assert set(found) <= most, f"too many: {sorted(set(found) - most)[:5]}"
    assert set(found.values()) == {1}
    made = {one.id: one.made for one in town.residents if one.made is not None}
    for tenant, _, start_at, end_at, _, count, facts, tz_version in rows:
        assert sum(one["released_count"] for one in json.loads(facts)["rules"]) == count
        assert tz_version == "made"
        if tenant in made:
            assert (start_at, end_at) == (made[tenant].day_start_at, made[tenant].midnight_at)


def owed(town: Town, now: datetime) -> set[Key]:
    """Return the tenants and days that are owed a report at an instant."""
    return {(one.id, _text(day)) for one in town.residents for day in town.days_of(one, now)}


def _text(day: date) -> str:
    return day.isoformat()


def _check_sums(town: Town, door: BackDoor) -> None:
    """What reports say, the late ones in them, and what waits for the next, is all that expired."""
    counted = {(row[0], _text(row[1])): row[2] for row in door.rows(COUNTED)}
    told = {(row[0], _text(row[1])): row[5] for row in door.rows(REPORTS) if row[5]}
    assert told == counted
    whole = sum(told.values()) + door.one(LATE) + door.one(WAITING)
    records = door.one("select count(*) from {s}record where outcome = 'expired'")
    expired = door.one("select count(*) from history where new_status = 'expired'")
    assert whole == records == expired == town.hold_count


def _check_mails(town: Town, door: BackDoor, server: MailServer) -> set[Key]:
    """Every mail went to its tenant's own recipient, once; what may have gone is marked as that."""
    recipients = {one.id: one.recipient for one in town.residents}
    accepted: dict[Key, AcceptedMail] = {}
    for mail in server.accepted:
        key = _key_of(mail)
        assert mail.recipient == recipients[key[0]], f"{key} went to {mail.recipient}"
        assert key not in accepted, f"{key} was accepted twice"
        accepted[key] = mail
    sends = {(row[0], _text(row[1])): row[2:] for row in door.rows(SENDS)}
    assert {key: row[0] for key, row in sends.items()} == {key: recipients[key[0]] for key in sends}
    assert set(accepted) <= set(sends)
    waiting = set()
    for key, (_, state, reference, digest) in sends.items():
        if state == "accepted":
            mail = accepted[key]
            assert reference is None or mail.queue_id in reference, key
            assert hashlib.sha256(mail.message).hexdigest() == digest
        else:
            assert state == "review", f"{key} is {state}"
            assert door.one(UNKNOWN, tenant=key[0], day=key[1]) == 1
            waiting.add(key)
    return waiting


def _key_of(mail: AcceptedMail) -> Key:
    """Read whose mail this is, and insist that it speaks of nobody else."""
    read: Any = message_from_bytes(mail.message, policy=SMTP)
    assert str(read["To"]) == mail.recipient
    day = str(read["X-Freehold-Report"]).rpartition("/")[2]
    texts = [part.get_content() for part in read.walk() if part.get_content_type() == "text/plain"]
    (tenant,) = set(re.findall(r"House (tenant-\d+)", "".join(texts)))
    return tenant, day


def digests(door: BackDoor) -> dict[str, str]:
    """Return what a second pass must leave as it is."""
    own = {
        name: hashlib.sha256(
            repr(sorted(map(repr, door.rows(f"select * from {{s}}{name}")))).encode()
        )
        for name in OF_REPORTS
    }
    return {**digest_tables(door), **{name: one.hexdigest() for name, one in own.items()}}
