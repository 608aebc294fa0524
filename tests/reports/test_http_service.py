"""A service is killed while a provider over HTTP has its mail: the next one asks; it sends no second."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from freehold.testing.backdoor import BackDoor
from freehold.testing.contracts.transports import SECRET
from freehold.testing.mailbox import Fault
from tests.e2e.inprocess import Program
from tests.e2e.running import Running
from tests.reports.desk import HARBOUR, Desk
from tests.reports.http_kinds import KINDS
from tests.reports.mailgun_double import DOMAIN

SETTINGS = {
    "postmark": '[report.postmark]\nurl = "{url}"\ntoken = "{secret}"',
    "mailgun": '[report.mailgun]\nurl = "{url}"\nkey = "{secret}"\ndomain = "{domain}"',
}


def _let_hours_pass(url: str) -> None:
    """End what is leased, and let what waits be available."""
    at = (datetime.now(UTC) - timedelta(seconds=1)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    with BackDoor(url) as door:
        door.execute("update {s}send set leased_until = :at where leased_until is not null", at=at)
        door.execute("update {s}send set available_at = :at where state = 'unknown'", at=at)


@pytest.mark.parametrize("taken", [True, False], ids=["taken", "lost"])
@pytest.mark.parametrize("kind", sorted(SETTINGS))
def test_what_a_killed_service_handed_over_is_looked_up(
    kind: str,
    taken: bool,  # by the provider, before it lost the connection
    sqlite_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with KINDS[kind][0].started() as double:
        double.now = datetime.now(UTC)
        words = SETTINGS[kind].format(url=double.url, secret=SECRET, domain=DOMAIN)
        desk = Desk(Program(tmp_path, monkeypatch, capsys), sqlite_url, words)
        desk.add(HARBOUR)
        desk.release("harbour", 3)
        double.play(Fault.SILENT)
        with Running(tmp_path):  # its end is SIGKILL
            double.wait_for_asked()
        if not taken:
            double.accepted.clear()
        double.now += timedelta(hours=1)
        ended: Counter[str] = Counter()
        for _ in range(3):
            _let_hours_pass(sqlite_url)
            ended.update(desk.freehold("--json", "report", "run").data["sends"])
        assert (ended["accepted"], ended["review"]) == (taken, not taken)
        assert len(double.accepted) == taken
        assert sum(asked.method == "POST" for asked in double.asked) == 1
        assert desk.states() == [("harbour", "sent" if taken else "in review")]
        assert desk.freehold("audit").code == 0
