"""A quota reservation: a soft delete in two columns, and a counter that is clamped at zero."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.mapping.play import LATER, cast, due_of, marks, of, play
from tests.stage import wall

if TYPE_CHECKING:
    from tests.stage import Stage

TABLES = """
create table quota_usages (
    id integer primary key, project_id varchar(255) not null, resource varchar(300) not null,
    in_use integer not null, reserved integer not null, race_preventer boolean,
    unique (project_id, resource, race_preventer), check (reserved >= 0));
create table reservations (
    id integer primary key, uuid varchar(36) not null, usage_id integer references quota_usages (id),
    project_id varchar(255), resource varchar(300), delta integer not null, expire timestamp,
    created_at timestamp, updated_at timestamp, deleted_at timestamp, deleted boolean not null);
create index reservations_expire on reservations (deleted, expire);
"""
RULE = """
[[rules]]
name = "cinder-quota"
table = "reservations"
key = ["id"]
tenant = { column = "project_id" }
held = [{ deleted = false }]
confirmed = [{ deleted = true }]
due = { column = "expire", kind = "naive", zone = "UTC" }
fence = ["uuid"]
carry = ["usage_id", "delta"]
expire = { set = { deleted = true, deleted_at = { now = true } } }
[[rules.also]]
sql = '''
update quota_usages
set reserved = case when reserved > cast(:delta as integer)
    then reserved - cast(:delta as integer) else 0 end
where id = :usage_id'''
rows = "1"
lock_by = ":usage_id"
"""
PROJECTS = 4


def delta(number: int) -> int:
    """Return what a reservation takes; a resource that shrinks has a negative one."""
    return number % 5 - 1


def usages_of(players: dict[int, str]) -> dict[int, int]:
    """Return what is reserved in each project; in the first somebody lost count before."""
    sums = {n: sum(delta(one) for one in players if one % PROJECTS == n) for n in range(PROJECTS)}
    return {**sums, 0: 3}


def fill(stage: Stage, players: dict[int, str]) -> None:
    usage = {"resource": "gigabytes", "in_use": 0}
    stage.host.insert(
        "quota_usages",
        [
            {"id": n, "project_id": f"p{n}", "reserved": reserved, **usage}
            for n, reserved in usages_of(players).items()
        ],
    )
    dues = {number: due_of(players, number) for number in players}
    stage.host.insert(
        "reservations",
        [
            {
                "id": number,
                "uuid": f"00000000-0000-0000-0000-{number:012}",
                "usage_id": number % PROJECTS,
                "project_id": f"p{number % PROJECTS}",
                "resource": "gigabytes",
                "delta": delta(number),
                "expire": None if due is None else wall(due)[:19],
                "deleted": False,
            }
            for number, due in dues.items()
        ],
    )


def test_a_reservation_is_deleted_softly_and_its_quota_returns(stage: Stage) -> None:
    stage.host.script(TABLES)
    stage.attach(RULE)
    players = cast("cancelled")
    fill(stage, players)

    def meanwhile() -> None:
        run = stage.host.run
        run(f"delete from reservations where id in ({marks(of(players, 'gone'))})")
        run(
            f"update reservations set deleted = true where id in ({marks(of(players, 'confirmed'))})"
        )
        later = f"update reservations set expire = '{wall(LATER)[:19]}'"
        run(f"{later} where id in ({marks(of(players, 'renewed'))})")
        run(f"{later}, uuid = 'another' where id in ({marks(of(players, 'taken over'))})")

    play(stage, players, str, meanwhile)
    over = "select id from reservations where deleted = true and deleted_at is not null order by id"
    assert [row[0] for row in stage.host.run(over)] == of(players, "expired")
    at = stage.host.run("select distinct deleted_at from reservations where deleted_at is not null")
    assert str(at[0][0])[:19] == wall(stage.clock.instant)[:19]
    reserved: dict[int, int] = dict(stage.host.run("select id, reserved from quota_usages"))
    for n in range(1, PROJECTS):
        released = [one for one in of(players, "expired") if one % PROJECTS == n]
        assert reserved[n] == usages_of(players)[n] - sum(map(delta, released))
    assert reserved[0] >= 0
