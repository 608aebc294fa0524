"""Reporters and workers that are killed and replaced while the days of a whole town end.

Whatever dies where: each tenant has one report of each day, none is lost, nobody's mail is taken
twice without a person's word, and no recipient gets anything of another.
"""

from __future__ import annotations

import signal
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from freehold.application.reporting.resolving import Verdict, resolve
from freehold.bootstrap import open_ledger
from freehold.ports.system import Boundary
from freehold.testing.backdoor import BackDoor
from tests.reports.crew import Crew, Fate, Post
from tests.reports.smtp_server import MailServer
from tests.reports.town import Town
from tests.reports.town_verdict import Key, digests, judge

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.servers import Servers

HELD = "select count(*) from reservation where status = 'held'"
OPEN = "select count(*) from {s}operation"
CLAIMABLE = "select count(*) from {s}send where state in ('ready', 'retrying', 'unknown')"
LEASED = "select count(*) from {s}send where state = 'leased'"
REPORTED = "select count(distinct tenant) from {s}report where state in ('sending', {ends})"
ENDS = "'sent', 'in review'"
SECOND = timedelta(seconds=1)
LEASES_SECONDS = 120  # those of the dead last 30 s

PREPARING = (Boundary.REPORTS_ASSIGNED, Boundary.FACTS_FROZEN, Boundary.MAILS_FROZEN)
SENDING = (
    Boundary.SEND_CLAIMED,
    Boundary.SEND_BEGUN,
    Boundary.PROVIDER_ANSWERED,
    Boundary.SEND_SETTLED,
)


@pytest.fixture
def url(servers: Servers) -> Iterator[str]:
    """A fresh database of the machine's PostgreSQL."""
    server = servers.read(next(iter(servers.find_binaries())))
    url = server.create_database()
    yield url
    server.drop_database(url)


def now() -> datetime:
    return datetime.now(UTC)


def town_of(
    url: str,
    folder: Path,
    server: MailServer,
    sizes: tuple[int, int],
    soon: timedelta,
    span: timedelta,
) -> Town:
    """Prepare a town of so many tenants and zones."""
    town = Town(url, folder, (server.host, server.port), *sizes, soon=soon, span=span)
    town.prepare()
    return town


def everybody_has_a_mail(door: BackDoor, town: Town) -> bool:
    """Tell whether all holds are released, everybody's mail is written, and none can be claimed."""
    reported = door.one(REPORTED.replace("{ends}", ENDS))
    return reported == town.resident_count and not any(map(door.one, (HELD, OPEN, CLAIMABLE)))


def nothing_is_leased(door: BackDoor) -> bool:
    return not any(map(door.one, (CLAIMABLE, LEASED)))


def let_leases_end(door: BackDoor) -> None:
    """Let the leases of the dead be over without waiting for it; everybody has stopped."""
    past = now() - timedelta(days=1)
    door.execute("update {s}send set leased_until = :past where state = 'leased'", past=past)


def settled(town: Town, server: MailServer) -> set[Key]:
    """Do what is left, judge, and do it again; return the reports that wait for a person."""
    began_at = now()
    left = town.freehold("run", "--until-idle")
    assert left.code == 0, left.err
    waiting = judge(town, server, began_at, now())
    with BackDoor(town.url) as door:
        before, mail_count = digests(door), len(server.accepted)
        assert town.freehold("run", "--until-idle").code == 0
        assert digests(door) == before
    assert len(server.accepted) == mail_count
    return waiting


def speak(town: Town, server: MailServer, waiting: set[Key]) -> None:
    """Be the person who looks into the mail server's log, and says what became of each mail."""
    there = {(one.recipient, date_of(one.message)) for one in server.accepted}
    recipients = {one.id: one.recipient for one in town.residents}
    ledger = open_ledger(town.settings)
    for tenant, day in waiting:
        recipient = recipients[tenant]
        verdict = Verdict.ACCEPTED if (recipient, day) in there else Verdict.RESEND
        asked = date.fromisoformat(day)
        resolve(ledger, tenant, asked, recipient, verdict, "ann", "their log says so")
    ledger.close()


def date_of(message: bytes) -> str:
    line = next(one for one in message.splitlines() if one.startswith(b"X-Freehold-Report:"))
    return line.decode().rpartition("/")[2]


# ----------------------------------------------------------------------------------- the fleets


def test_two_reporters_that_are_killed_give_a_town_its_reports(url: str, tmp_path: Path) -> None:
    fates: list[Fate] = [(Boundary.REPORTS_ASSIGNED, 2), (Boundary.PROVIDER_ANSWERED, 3)]
    posts = [Post("report", [one]) for one in fates]
    posts.append(Post("scan,work", [(Boundary.BEFORE_COMMIT, 1)]))
    with MailServer.started(tls="none") as server, BackDoor(url) as door:
        town = town_of(url, tmp_path, server, (40, 10), 2 * SECOND, SECOND)
        with Crew(tmp_path, town.path, posts) as crew:
            crew.wait_until(lambda: everybody_has_a_mail(door, town), "a mail for everybody")
            crew.stop()
        assert any("killed" in end for end in crew.ends), crew.ends
        let_leases_end(door)
        settled(town, server)


@pytest.mark.proof
def test_four_whole_services_restarted_in_turn_in_the_due_minute(url: str, tmp_path: Path) -> None:
    """As an upgrade does it; each of the four does everything, and none leads."""
    posts = [Post("scan,work,report") for _ in range(4)]
    with MailServer.started(tls="none") as server, BackDoor(url) as door:
        town = town_of(url, tmp_path, server, (80, 20), 6 * SECOND, 6 * SECOND)
        with Crew(tmp_path, town.path, posts) as crew:
            for number, post in enumerate(posts):
                moment = town.first_midnight_at + number * 2 * SECOND
                crew.wait_until(lambda at=moment: now() >= at, "the next restart")  # type: ignore[misc]
                crew.strike(post, signal.SIGTERM)
            crew.wait_until(lambda: everybody_has_a_mail(door, town), "a mail for everybody")
            crew.stop()
        assert crew.ends.total() == 4
        let_leases_end(door)  # of one that ended before it had begun to listen
        assert settled(town, server) == set()
        assert len(server.accepted) == len(set(owed_keys(door)))


def owed_keys(door: BackDoor) -> list[tuple[str, date]]:
    return [(row[0], row[1]) for row in door.rows("select tenant, report_date from {s}report")]


@pytest.mark.proof
def test_five_hundred_tenants_in_forty_zones_get_one_report_each(url: str, tmp_path: Path) -> None:
    """Two reporters, four workers: killed at every boundary, and restarted in the due minute."""
    # Nobody gets past a step before somebody died there: both die first at what prepares mails.
    first: list[Fate] = [(boundary, 1) for boundary in PREPARING]
    reporters = [
        Post("report", [*first, (Boundary.SEND_BEGUN, 12), (Boundary.SEND_SETTLED, 8)]),
        Post("report", [*first, (Boundary.PROVIDER_ANSWERED, 9), (Boundary.SEND_CLAIMED, 2)]),
    ]
    workers = [
        Post("scan,work", [(Boundary.TALLIES_WRITTEN, 2), (Boundary.COMMITTED, 2)]),
        Post("scan,work", [(Boundary.BEFORE_COMMIT, 2)]),
        Post("scan,work", [(Boundary.OPERATIONS_WRITTEN, 2)]),
        Post("scan,work"),
    ]
    with MailServer.started(tls="none") as server, BackDoor(url) as door:
        town = town_of(url, tmp_path, server, (500, 40), 8 * SECOND, 12 * SECOND)
        with Crew(tmp_path, town.path, [*reporters, *workers]) as crew:
            strike_all(crew, town, server, door, reporters, workers)
            crew.wait_until(lambda: everybody_has_a_mail(door, town), "a mail for everybody")
            crew.wait_until(lambda: nothing_is_leased(door), "leases to end", LEASES_SECONDS)
            crew.stop()
        print(crew.ends)  # noqa: T201 -- shown when the test fails
        assert all(map(crew.died_at, PREPARING)), crew.ends
        assert sum(map(bool, map(crew.died_at, SENDING))) >= 2, crew.ends
        waiting = judge(town, server, now(), now())
        assert waiting
        speak(town, server, waiting)
        assert settled(town, server) == set()
        assert len(server.accepted) == len(set(owed_keys(door)))


def strike_all(
    crew: Crew,
    town: Town,
    server: MailServer,
    door: BackDoor,
    reporters: list[Post],
    workers: list[Post],
) -> None:
    """Restart reporters a second before the first midnight, and workers in turn behind it.

    Then kill each reporter once more, amid the mails.
    """
    crew.wait_until(lambda: now() >= town.first_midnight_at - SECOND, "the last second")
    for post in reporters:
        crew.strike(post, signal.SIGTERM)
    held = door.one(HELD)
    for number, post in enumerate(workers):
        left = held * (8 - number) // 9
        crew.wait_until(lambda most=left: door.one(HELD) <= most, "releases")  # type: ignore[misc]
        crew.strike(post, signal.SIGTERM)
    for number, post in enumerate(reporters):
        least = 150 * (number + 1)
        crew.wait_until(lambda least=least: len(server.accepted) >= least, "mails")  # type: ignore[misc]
        crew.strike(post, signal.SIGKILL)
