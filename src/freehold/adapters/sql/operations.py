"""The open work of all rules in SQL; implements `ports.ledger.Operations`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from uuid import UUID

from freehold.adapters.sql.session import Row, Runner, Session
from freehold.domain.errors import ChangeLost
from freehold.domain.operations import Claim, NewOperation
from freehold.domain.retries import MESSAGE_LENGTH, Failure
from freehold.domain.tallies import Tally
from freehold.ports.ledger import PastRecord, Put, ReadyAfter, ReadyOperation, Skipped

_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)


def claim_of(session: Session, row: Row, lease_token: int | None = None) -> Claim:
    """Read one claimed row; see the column list of the statement `claim`."""
    due_at = session.instant(row[5])
    return Claim(
        id=row[0],
        rule=row[1],
        tenant=row[2],
        hold_key=row[3],
        digest=session.uuid(row[4]),
        due_at=due_at or _BEGINNING,
        generation=row[6],
        after_expired=bool(row[7]),
        attempt=row[8],
        deferrals=row[9],
        lease_token=lease_token,
        available_at=session.instant(row[11]),
        fingerprint=row[12],
    )


def cut(message: str) -> str:
    """Cut an error text to the length that is kept; NUL cannot be stored."""
    return message.replace("\x00", "")[:MESSAGE_LENGTH]


class SqlOperations:
    """Operations inside one transaction."""

    def __init__(self, runner: Runner, now: datetime) -> None:
        self._sql = runner
        self._now = now

    def enqueue(
        self, new: Sequence[NewOperation], tick_id: int | None, fingerprint: str | None = None
    ) -> int:
        """Write open operations; return how many were new."""
        added = 0
        fixed = {"now": self._now, "tick_id": tick_id, "fingerprint": fingerprint}
        for rule in dict.fromkeys(one.rule for one in new):
            rows = [_operation_row(one) for one in new if one.rule == rule]
            added += self._sql.many("enqueue", rows, rule=rule, **fixed)
        return added

    def rebuild(self, built: Mapping[int, NewOperation], fingerprint: str) -> None:
        """Give claimed operations the identity, fence and due that another mapping reads."""
        rows = [
            (key, one.tenant, one.digest, one.identity, one.guard, one.due_at)
            for key, one in built.items()
        ]
        count = self._sql.many("rebuild", rows, fingerprint=fingerprint, now=self._now)
        _assert_all(count, len(rows), "rebuild")

    def renumber(self, following: Sequence[NewOperation]) -> None:
        """Give operations written in this transaction their generation."""
        for rule in dict.fromkeys(one.rule for one in following):
            rows = [
                (one.hold_key, one.digest, one.generation, one.after_expired, one.dead_reason)
                for one in following
                if one.rule == rule
            ]
            self._sql.many("renumber", rows, rule=rule)

    def past(
        self, rule: str, found: Sequence[tuple[str, UUID]], since: datetime
    ) -> Sequence[PastRecord]:
        """Return the newest record of each (hold_key, digest)."""
        keys = [key for key, _ in found]
        digests = [digest for _, digest in found]
        rows = self._sql.rows(
            "past_records", rule=rule, keys=keys, digests=digests, since=since, now=self._now
        )
        uuid = self._sql.session.uuid
        return [PastRecord(key, uuid(d), generation, bool(e)) for key, d, generation, e in rows]

    def claim(self, rule: str, max_count: int, floor: datetime | None) -> Sequence[Claim]:
        """Lock claimable operations of one rule for this transaction."""
        rows = self._sql.rows(
            "claim", rule=rule, limit=max_count, floor=floor or _BEGINNING, now=self._now
        )
        return [claim_of(self._sql.session, row) for row in rows]

    def newest(self, rule: str, max_count: int) -> Sequence[Claim]:
        """Lock the claimable operations that were written last."""
        rows = self._sql.rows("newest", rule=rule, limit=max_count, now=self._now)
        return self.claim_these([row[0] for row in rows])

    def claim_these(
        self, operation_ids: Sequence[int], lease_token: int | None = None
    ) -> Sequence[Claim]:
        """Lock these operations, as far as they are still ours to take."""
        return self._lock_these(operation_ids, lease_token, with_windows=False)

    def _lock_these(
        self, operation_ids: Sequence[int], lease_token: int | None, *, with_windows: bool
    ) -> Sequence[Claim]:
        ids = list(operation_ids)
        what = {"lease_token": lease_token, "with_windows": with_windows, "now": self._now}
        rows = self._sql.rows("claim_these", ids=ids, **what)
        return [claim_of(self._sql.session, row, lease_token) for row in rows]

    def lease(
        self, rule: str, max_count: int, floor: datetime | None, until: datetime
    ) -> Sequence[Claim]:
        """Claim for longer than this transaction."""
        return self.lease_claimed(self.claim(rule, max_count, floor), until)

    def lease_these(self, operation_ids: Sequence[int], until: datetime) -> Sequence[Claim]:
        """Lease these operations, as far as they are still claimable."""
        found = self._lock_these(operation_ids, None, with_windows=True)
        return self.lease_claimed(found, until)

    def lease_claimed(self, claims: Sequence[Claim], until: datetime) -> Sequence[Claim]:
        """Lease operations that this transaction has claimed."""
        if not claims:
            return []
        token = self._sql.rows("next_lease_token")[0][0]
        ids = [claim.id for claim in claims]
        count = self._sql.count(
            "lease_these", ids=ids, until=until, lease_token=token, now=self._now
        )
        _assert_all(count, len(ids), "lease")
        return [one.leased(token) for one in claims]

    def still_leased(self, operation_ids: Sequence[int], lease_token: int) -> set[int]:
        """Lock these operations, as far as they are still leased under the token."""
        ids = list(operation_ids)
        rows = self._sql.rows("still_leased", ids=ids, lease_token=lease_token)
        return {row[0] for row in rows}

    def any_leased(self) -> bool:
        """Tell whether anything is leased for longer than now."""
        return bool(self._sql.rows("any_leased", now=self._now))

    def renew(self, lease_token: int, until: datetime) -> int:
        """Prolong a lease; return how many operations it still covers."""
        return self._sql.count("renew", lease_token=lease_token, until=until, now=self._now)

    def count_ready(self, rule: str, at_most: int, floor: datetime | None = None) -> int:
        """Count claimable operations up to a limit."""
        rows = self._sql.rows(
            "count_ready", rule=rule, limit=at_most, now=self._now, floor=floor or _BEGINNING
        )
        return int(rows[0][0])

    def oldest_ready(self, rule: str, floor: datetime | None) -> datetime | None:
        """Return since when the oldest claimable operation is claimable."""
        rows = self._sql.rows("oldest_ready", rule=rule, now=self._now, floor=floor or _BEGINNING)
        return self._sql.session.instant(rows[0][0]) if rows else None

    def find_ready(
        self, rule: str, after: ReadyAfter | None, limit: int
    ) -> Sequence[ReadyOperation]:
        """Read claimable operations in order, without claiming them."""
        place = after or ReadyAfter(_BEGINNING, 0)
        rows = self._sql.rows(
            "find_ready",
            rule=rule,
            after_at=place.available_at,
            after_id=place.operation_id,
            limit=limit,
            now=self._now,
        )
        return [_ready(self._sql.session, row) for row in rows]

    def still_ready(self, operation_ids: Sequence[int]) -> Sequence[ReadyOperation]:
        """Read these operations as far as they are claimable, without claiming them."""
        rows = self._sql.rows("still_ready", ids=list(operation_ids), now=self._now)
        return [_ready(self._sql.session, row) for row in rows]

    def put_off(self, put: Sequence[Put]) -> None:
        """Defer claimed operations without spending an attempt."""
        rows = [(p.operation_id, p.reason, p.available_at, p.deferrals) for p in put]
        _assert_all(self._sql.many("put_off", rows, now=self._now), len(rows), "defer")

    def bring_back(self, rule: str, tenant: str, max_count: int) -> int:
        """Make operations claimable now that were put off as paused."""
        return self._sql.count(
            "bring_back", rule=rule, tenant=tenant, limit=max_count, now=self._now
        )

    def fail(self, claim: Claim, failure: Failure, attempt: int, retry_at: datetime | None) -> bool:
        """Record a failed attempt; False when the claim no longer holds."""
        what = self._failure(failure)
        changed = self._sql.count(
            "fail",
            id=claim.id,
            attempt=attempt,
            leased=claim.lease_token is not None,
            lease_token=claim.lease_token,
            state="dead" if retry_at is None else "retrying",
            retry_at=retry_at,
            reason=failure.failure_class.value,
            now=self._now,
            **what,
        )
        if changed:
            row = (claim.id, attempt, claim.lease_token)
            self._sql.many("note_attempts", [row], now=self._now, **what)
        return changed == 1

    def bury(self, claims: Sequence[Claim], reason: str, failure: Failure) -> None:
        """Make claimed operations dead."""
        if not claims:
            return
        ids = [claim.id for claim in claims]
        what = self._failure(failure)
        self._sql.count("bury", ids=ids, reason=reason, now=self._now, **what)
        rows = [(claim.id, claim.attempt, claim.lease_token) for claim in claims]
        self._sql.many("note_attempts", rows, now=self._now, **what)

    def _failure(self, failure: Failure) -> dict[str, str]:
        return {
            "failure_class": failure.failure_class.value,
            "failure_code": failure.code,
            "failure_message": cut(failure.message),
        }

    def add_tallies(self, tallies: Sequence[Tally]) -> Sequence[int]:
        """Write tallies; return their ids in order."""
        rows = [_tally_row(tally) for tally in tallies]
        if not rows:
            return []
        if self._sql.session.dialect == "sqlite":
            return sorted(row[0] for row in self._sql.rows("add_tallies", now=self._now, rows=rows))
        columns = {f"c{n}": list(column) for n, column in enumerate(zip(*rows, strict=True))}
        return [row[0] for row in self._sql.rows("add_tallies", now=self._now, **columns)]

    def finish_skipped(self, skipped: Sequence[Skipped]) -> None:
        """Move operations to `record` as skipped."""
        rows = [(s.operation_id, s.tally_id, s.reason) for s in skipped]
        _assert_all(self._sql.many("record_skipped", rows, now=self._now), len(rows), "skip")
        remove_operations(self._sql, [s.operation_id for s in skipped])

    def tell_skipped(self, skipped: Sequence[Skipped]) -> None:
        """Write the events of skips."""
        rows = [(s.operation_id, s.reason) for s in skipped]
        _assert_all(self._sql.many("tell_skipped", rows, now=self._now), len(rows), "be told of")

    def return_lapsed(self, max_count: int) -> Sequence[Claim]:
        """Take back leases that ended."""
        rows = self._sql.rows("lapsed", now=self._now, limit=max_count)
        claims = [claim_of(self._sql.session, row, row[10]) for row in rows]
        ids = [claim.id for claim in claims]
        if ids:
            _assert_all(
                self._sql.count("return_lapsed", ids=ids, now=self._now), len(ids), "return"
            )
        return claims


def remove_operations(runner: Runner, ids: Sequence[int]) -> None:
    """Take operations out after their records were written, where that is a statement of its own."""
    if runner.session.dialect == "sqlite" and ids:
        _assert_all(runner.count("remove_operations", ids=list(ids)), len(ids), "finish")


def _assert_all(changed: int, wanted: int, verb: str) -> None:
    if changed != wanted:
        raise ChangeLost(f"{wanted} operations were to {verb}, {changed} did", "FREEHOLD")


def _ready(session: Session, row: Row) -> ReadyOperation:
    return ReadyOperation(
        operation_id=row[0],
        rule=row[1],
        digest=session.uuid(row[2]),
        hold_key=row[3],
        due_at=session.instant(row[4]) or _BEGINNING,
        available_at=session.instant(row[5]) or _BEGINNING,
        attempt=row[6],
    )


def _operation_row(one: NewOperation) -> Row:
    return (
        one.tenant,
        one.hold_key,
        one.digest,
        one.identity,
        one.guard,
        one.due_at,
        one.generation,
        one.after_expired,
        one.dead_reason,
    )


def _tally_row(tally: Tally) -> Row:
    skipped = {reason.value: count for reason, count in sorted(tally.skipped.items())}
    return (
        tally.rule,
        tally.tenant,
        tally.expired_count,
        json.dumps(skipped),
        json.dumps(tally.lag_counts),
        tally.lag_max_seconds,
        tally.redelivery_count,
    )
