"""The contract of `ports.restoring.Restoring`."""

from __future__ import annotations

from freehold.domain.sending import SendState
from freehold.testing.contracts.ground import NOW, SECOND, Ground
from freehold.testing.contracts.unsubscribed import MailsDoor


class RestoringContract:
    """Give the fixtures `ground` and `mails`."""

    def test_only_those_that_said_so_lately_live(self, ground: Ground) -> None:
        ledger = ground.open()
        with ledger.transaction() as tx:
            tx.workers.beat("w", "report", "shop-1", 4711, NOW, None)
        ground.set_now(NOW + 10 * SECOND)
        with ledger.transaction() as tx:
            assert list(tx.restoring.living(NOW - SECOND)) == ["shop-1 (pid 4711)"]
            assert list(tx.restoring.living(NOW + SECOND)) == []

    def test_what_waits_becomes_unknown_and_its_trail_says_why(
        self, ground: Ground, mails: MailsDoor
    ) -> None:
        for day, state in enumerate(SendState, 1):
            mails.add_mail("t", day, {"a@x": state})
        since = NOW - 3600 * SECOND
        with ground.open().transaction() as tx:
            assert tx.restoring.leased_count() == 1
            assert tx.restoring.doubt(since, "post", 1) == 1
        with ground.open().transaction() as tx:
            assert tx.restoring.doubt(since, "post", 9) == 1
            assert tx.restoring.doubt(since, "post", 9) == 0
        waited = (SendState.READY, SendState.RETRYING)
        for day, state in enumerate(SendState, 1):
            after = SendState.UNKNOWN if state in waited else state
            assert mails.states("t", day) == {"a@x": after}
        doubted = [row for row in ground.back.rows("send") if row["transport"] == "post"]
        assert [row["attempt"] for row in doubted] == [1, 1]
        for row in doubted:
            assert (row["first_tried_at"], row["last_tried_at"]) == (since, NOW)
            assert row["available_at"] == NOW
        attempts = ground.back.rows("send_attempt")
        assert [row["send_id"] for row in attempts] == [row["id"] for row in doubted]
        for row in attempts:
            assert (row["kind"], row["outcome"], row["code"]) == ("send", "unknown", "restored")
            assert (row["started_at"], row["ended_at"]) == (since, NOW)
