"""A room lock in epoch seconds under an integer key, and a session of tickets under a text key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.mapping.play import LATER, cast, due_of, marks, of, play

if TYPE_CHECKING:
    from tests.stage import Stage

LOCKS = """
create table abc_vikbooking_tmplock (
    id integer primary key, idroom integer not null, checkin integer not null,
    checkout integer not null, until integer not null, realback integer, idorder integer);
create index tmplock_until on abc_vikbooking_tmplock (until);
"""
LOCK_RULE = """
[[rules]]
name = "vik-lock"
table = "abc_vikbooking_tmplock"
key = ["id"]
tenant = { constant = "hotel" }
held = [{ idorder = { is = "null" } }, { idorder = 0 }]
confirmed = [{ idorder = { is = "not null" } }]
due = { column = "until", kind = "epoch_s" }
fence = ["checkin", "checkout"]
expire = { delete = true }
carry = ["idroom", "checkin", "checkout"]
"""
SESSIONS = """
create table wp_tec_slr_sessions (
    token varchar(150) primary key, object_id bigint not null, expiration integer not null,
    reservations text not null, expiration_lock boolean not null);
create index sessions_expiration on wp_tec_slr_sessions (expiration);
"""
SESSION_RULE = """
[[rules]]
name = "tec-session"
table = "wp_tec_slr_sessions"
key = ["token"]
held = [{ expiration_lock = false }]
confirmed = [{ expiration_lock = true }]
due = { column = "expiration", kind = "epoch_s", bound = "exclusive" }
expire = { delete = true }
carry = ["reservations"]
"""


def epoch(players: dict[int, str], number: int) -> int:
    due_at = due_of(players, number)
    return 0 if due_at is None else int(due_at.timestamp())


def test_a_room_lock_ends_by_its_epoch_seconds(stage: Stage) -> None:
    stage.host.script(LOCKS)
    stage.attach(LOCK_RULE)
    players = cast("cancelled")
    stage.host.insert(
        "abc_vikbooking_tmplock",
        [
            {
                "id": number,
                "idroom": number % 9,
                "checkin": 1_780_000_000,
                "checkout": 1_780_086_400 + number,
                "until": epoch(players, number),
                "realback": None,
                "idorder": 0 if number % 2 else None,
            }
            for number in players
        ],
    )

    def meanwhile() -> None:
        run, table = stage.host.run, "abc_vikbooking_tmplock"
        run(f"delete from {table} where id in ({marks(of(players, 'gone'))})")
        run(f"update {table} set idorder = 77 where id in ({marks(of(players, 'confirmed'))})")
        later = f"update {table} set until = {int(LATER.timestamp())}"
        run(f"{later} where id in ({marks(of(players, 'renewed'))})")
        run(f"{later}, checkin = 5 where id in ({marks(of(players, 'taken over'))})")

    play(stage, players, str, meanwhile)
    left = stage.host.run("select id from abc_vikbooking_tmplock order by id")
    kept = of(players, "renewed", "confirmed", "taken over", "future", "no due")
    assert [row[0] for row in left] == kept


def token(number: int) -> str:
    """Return a key of 150 characters that quotes, breaks lines and is no ASCII."""
    return f"{number}:'\"\\ %s {{id}} :id\n☂".ljust(150, "ø")


def test_a_ticket_session_ends_under_a_text_key(stage: Stage) -> None:
    stage.host.script(SESSIONS)
    stage.attach(SESSION_RULE)
    players = cast("cancelled", "taken over")
    players = {number: kind for number, kind in players.items() if number != 1}
    stage.host.insert(
        "wp_tec_slr_sessions",
        [
            {
                "token": token(number),
                "object_id": number,
                "expiration": epoch(players, number),
                "reservations": '{"seat": "A\\u0000"}',
                "expiration_lock": False,
            }
            for number in players
        ],
    )

    def meanwhile() -> None:
        run, table = stage.host.run, "wp_tec_slr_sessions"
        run(f"delete from {table} where object_id in ({marks(of(players, 'gone'))})")
        locked = marks(of(players, "confirmed"))
        run(f"update {table} set expiration_lock = true where object_id in ({locked})")
        renewed = marks(of(players, "renewed"))
        later = int(LATER.timestamp())
        run(f"update {table} set expiration = {later} where object_id in ({renewed})")

    play(stage, players, token, meanwhile)
    left = stage.host.run("select object_id from wp_tec_slr_sessions order by object_id")
    assert [row[0] for row in left] == of(players, "renewed", "confirmed", "future", "no due")
