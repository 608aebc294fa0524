"""A consumer's inbox: which events it has seen, remembered in the transaction of their effects.

Events are delivered at least once, so a consumer meets some of them again. `Inbox` writes an
event's key into a table of yours, over your open connection of psycopg 3 or `sqlite3`, inside the
transaction in which you do what the event asks for. Key and effect are committed together, or
neither is: that makes the effect one, however often the event comes.

*Invariants*: nothing here commits or rolls back; the driver's own errors pass through, and a
deadlock or serialization failure means to repeat your whole transaction.
*Not here*: reading from brokers and checking of signatures (examples/), the order of events (the
`sequence` in their data; docs/how-to/consume-events.md), other languages (examples/inbox/*.sql).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Literal

from freehold.adapters.sql.inbox import create_script, keys_over
from freehold.adapters.system import SystemClock
from freehold.domain.errors import UsageError

__all__ = ["KEPT_FOR", "Inbox", "UsageError", "create_table_sql"]

TABLE = "freehold_inbox"
KEPT_FOR = timedelta(days=90)  # thrice as long as delivered events can be replayed by default
KEYS_MOST = 10_000  # in one call: a batch, not an archive
PRUNED_MOST = 10_000  # in one call, so that no transaction becomes long
_CONSUMER_CHARACTERS = 64
_KEY_CHARACTERS = 255  # a key of ours has about 140 at most; what MySQL indexes without thought


def create_table_sql(dialect: Literal["postgres", "sqlite"], table: str = TABLE) -> str:
    """Return the script that makes the inbox's table where it is missing, for your migrations.

    Raises:
        UsageError: another dialect, or a name that is not plain.
    """
    if dialect not in {"postgres", "sqlite"}:
        raise UsageError("The dialect is postgres or sqlite; for others see examples/inbox.")
    return create_script(dialect, table)


class Inbox:
    """The memory of one consumer, inside the transaction that is open on a connection.

    Args:
        connection: yours, of psycopg 3 or of `sqlite3`; it must not be in autocommit mode unless
            a transaction is open.
        consumer: who remembers; two consumers of one table know nothing of each other.
        table: its name, with or without a schema, exactly as it was created.

    Raises:
        UsageError: an argument is none of these.
    """

    def __init__(self, connection: object, consumer: str, table: str = TABLE) -> None:
        _check("consumer's name", consumer, _CONSUMER_CHARACTERS)
        self._consumer = consumer
        self._keys = keys_over(connection, table)

    def first(self, event_key: str) -> bool:
        """Tell whether an event is new, and remember it: do its effect only if it is.

        While another transaction has remembered the same event and not ended yet, this waits: after
        its commit the answer is False, after its rollback True. (On SQLite the wait is the
        connection's time-out, and for any writer.)

        Args:
            event_key: the event's `id`.

        Again: False, in this transaction and, once it is committed, in every other.
        Crash: before your commit nothing is remembered, and the event is new again.

        Raises:
            UsageError: no transaction is open, and the driver would open none; or the key is not
                one of 1 to 255 characters.
        """
        return bool(self.new_of([event_key]))

    def new_of(self, event_keys: Sequence[str]) -> list[str]:
        """Remember a batch of events in one round trip; return the new ones, each once, in order.

        It waits as `first` does. Two batches that overlap never wait for each other in a circle;
        two transactions of several batches each may, and the database ends one of them.

        Raises:
            UsageError: as in `first`; or there are more than 10,000.
        """
        if len(event_keys) > KEYS_MOST:
            raise UsageError(f"{len(event_keys)} keys at once; give at most {KEYS_MOST}.")
        for key in event_keys:
            _check("event's key", key, _KEY_CHARACTERS)
        if not event_keys:
            return []
        return [event_keys[place] for place in self._keys.add(self._consumer, event_keys)]

    def prune(self, older_than: timedelta = KEPT_FOR, limit: int = PRUNED_MOST) -> int:
        """Forget events received longer ago than this, the oldest first; return how many.

        What is forgotten is new when it comes again. A repeat can come for as long as delivered
        events are kept for replay (30 days by default), and as long as a dead one waits for a
        person: keep keys longer than both. Fewer than `limit` means that nothing is left.

        Raises:
            UsageError: not a positive span or number; or no transaction is open.
        """
        if older_than <= timedelta(0) or limit < 1:
            raise UsageError("Both older_than and limit must be more than nothing.")
        before = SystemClock().wall() - older_than
        return self._keys.prune(self._consumer, before, min(limit, PRUNED_MOST))


def _check(what: str, text: object, characters_most: int) -> None:
    """Refuse what a column of text cannot hold, before it costs the caller's transaction."""
    if not isinstance(text, str) or not 0 < len(text) <= characters_most:
        raise UsageError(f"The {what} must be a text of 1 to {characters_most} characters.")
    if "\0" in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise UsageError(f"The {what} has a character that no database holds.")
