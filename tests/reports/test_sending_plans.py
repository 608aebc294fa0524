"""Sending costs what it sends: no statement reads the send ledger from end to end."""

from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING

import pytest

from freehold.adapters.sql.ledger import SqlLedger
from freehold.adapters.system import Onwards
from freehold.domain.sending import AttemptKind, SendOutcome, SendState
from freehold.domain.sending_next import Rest
from freehold.ports.mail import Answer
from freehold.ports.sends import Settlement
from tests.behaviour.plans import analyse, explained

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from tests.behaviour.place import Place
    from tests.behaviour.plans import Plans

ENDED, READY, LEASED = 8_000, 800, 20  # sends; one report each
DAY = date(2026, 3, 9)
POSTGRES = {
    "claim_sends": {"send_claim", "report_pkey", "send_attempt_pkey"},
    "next_send": {"send_claim", "send_leased_until"},
    "ended_send_leases": {"send_leased_until"},
    "note_answer": {"send_attempt_pkey"},
    "lock_report": {"report_pkey"},
    "move_report": {"report_pkey"},
    "sends_by_state": {"send_once"},
    "sends_of_report": {"mail_pkey", "send_once"},
    **{name: {"send_pkey"} for name in ("send_head", "resolve_send", "add_resolve")},
}
SQLITE = {
    "claim_sends": {"freehold_send_claim"},
    "next_send": {"freehold_send_claim", "freehold_send_leased_until"},
    "ended_send_leases": {"freehold_send_leased_until"},
    "open_send": {"freehold_send_open"},
}
# What senders have in hand is little, so its indexes serve as well as a key.
IN_HAND = {"send_pkey", "send_leased_until"}
OPEN = {"send_attempt_open", "send_attempt_pkey"}
ONE_OF = {
    **dict.fromkeys(("end_attempt", "end_lost_attempt"), OPEN),
    **dict.fromkeys(("lease_send", "begin_try", "begin_look_up", "settle_send"), IN_HAND),
    **dict.fromkeys(("give_back_send", "renew_send", "take_back_send"), IN_HAND),
    "accept_late": {"send_review", "send_pkey"},
    "open_send": {"send_open", "send_once"},
    "sends_of_report": {"report_once", "report_by_date"},
}
FIRST_ENTRY = {"next_send"}  # of its indexes, in their order


@pytest.mark.parametrize("statistics", ["stale", "fresh"])
def test_statements_go_by_their_index(place: Place, statistics: str) -> None:
    if statistics == "stale":
        analyse(place)
    _fill(place)
    if statistics == "fresh":
        analyse(place)
    session = explained(place)

    def run_each(sql: str, each: Sequence[Mapping[str, Any]]) -> list[int]:
        return [session.run(sql, parameters)[1] for parameters in each]

    session.run_each = run_each  # type: ignore[method-assign]
    _send(SqlLedger(session, Onwards()))
    _assert_by_index(place, session.plans)


def _send(ledger: SqlLedger) -> None:
    """Do once whatever sending does."""
    lease = timedelta(minutes=1)
    accepted = Answer(SendOutcome.ACCEPTED, "r")
    with ledger.transaction() as tx:
        assert tx.sends.take_back(99) == LEASED
        first, second, third, fourth = tx.sends.claim(4, lease)
        tx.sends.load([first], "s@x")
        assert tx.sends.next_available() is not None
        begun = tx.sends.begin(first, AttemptKind.SEND, "x", lease)
        looked = tx.sends.begin(second, AttemptKind.LOOK_UP, "x", lease)
        assert begun is not None
        assert looked is not None
        assert tx.sends.renew([begun, third], lease) == 2
        assert tx.sends.give_back([third], tx.now, "why") == 1
        done = Rest(SendState.ACCEPTED)
        settlements = [Settlement(one, accepted, done) for one in (begun, looked, begun)]
        assert list(tx.sends.settle(settlements)) == [True, True, False]
        assert tx.sends.finish_reports([begun.report_id, fourth.report_id]) == 1
        assert len(tx.sends.of_report("t5", DAY)) == 1
        tx.sends.settle([Settlement(fourth, None, Rest(SendState.REVIEW, "why"))])
        assert tx.sends.resolve(fourth.id, SendState.ACCEPTED, accepted, "by ann")


def _assert_by_index(place: Place, plans: Plans) -> None:
    wanted = POSTGRES if place.dialect == "postgres" else SQLITE
    missing = {n: (want, plans[n]) for n, want in wanted.items() if not want <= plans[n]}
    assert not missing
    if place.dialect == "postgres":
        assert not {n: plans[n] for n, names in ONE_OF.items() if not plans[n] & names}
    grown = {f"all of {name}" for name in _grown(place)}
    assert not {n: p & grown for n, p in plans.items() if p & grown and n not in FIRST_ENTRY}


def _grown(place: Place) -> list[str]:
    """Name the tables that grow, their keys, and their short names in statements."""
    names = [f"{place.prefix}{name}" for name in ("report", "mail", "send", "send_attempt")]
    bare = [name.rpartition(".")[2] for name in names]
    keys = ("send_claim", "send_open", "send_leased_until", "send_attempt_open")
    return [*bare, *(f"{name}_pkey" for name in bare), *keys, "r", "m", "s", "a", "n", "l"]


def _fill(place: Place) -> None:
    """Write reports, each with a mail and one send; most have ended."""
    p, count = place.prefix, ENDED + READY + LEASED
    many = {
        "postgres": f"generate_series(1, {count}) s(n)",
        "sqlite": f"(with recursive s(n) as (select 1 union all select n + 1 from s"
        f" where n < {count}) select n from s) s",
    }[place.dialect]
    begin, end = "'2026-03-09T00:00:00.000000Z'", "'2026-03-10T00:00:00.000000Z'"
    run = place.host.run
    run(
        f"insert into {p}report (tenant, report_date, start_at, end_at, zone, tz_version,"
        " watermark_at, due_at, state, facts, assigned_at, frozen_at, expired_count)"
        f" select 't' || n, '{DAY}', {begin}, {end}, 'UTC', 'x', {end}, {end},"
        f" case when n > {ENDED} then 'sending' else 'sent' end, '{{}}', {end}, {end}, 0 from {many}"
    )
    run(
        f"insert into {p}mail (report_id, locale, subject, body_digest, byte_count, frozen_at)"
        f" select id, 'en', 's', 'd', 1, {end} from {p}report"
    )
    leased = f"id > {ENDED + READY}"
    run(
        f"insert into {p}send (report_id, recipient, message_key, head, mail_digest, state,"
        " state_before, leased_until, lease_token, attempt, available_at, changed_at)"
        f" select id, 'a@x', 'k' || id, '', 'd',"
        f" case when {leased} then 'leased' when id > {ENDED} then 'ready' else 'accepted' end,"
        f" case when {leased} then 'ready' end, case when {leased} then r.end_at end, 1,"
        f" case when id > {ENDED} then 0 else 1 end, r.end_at, r.end_at from {p}report r"
    )
    run(
        f"insert into {p}send_attempt (send_id, attempt, kind, transport, started_at, ended_at,"
        f" outcome) select id, 1, 'send', 'x', {end}, {end}, 'accepted' from {p}send"
        f" where state = 'accepted'"
    )
