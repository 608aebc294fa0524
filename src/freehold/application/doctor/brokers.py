"""Checks of the broker that carries hints: how the queue is kept, and who may reach it.

Losing every hint costs latency only, so that nothing here forbids to run but a broker that will
never take one. *Not here*: how the facts are read (`ports.queue_facts`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from freehold.application.doctor.findings import Code, Finding, Severity, fine, refuse, warn
from freehold.domain.errors import QueueAway, QueueUnfit
from freehold.ports.queue_facts import QueueFacts, QueueInspection

PLACE = "queue"
WORDS = {"rabbitmq": "RabbitMQ", "nats": "NATS"}
# RabbitMQ: at-least-once dead letters came with 3.10. NATS: 2.10.20 to 2.10.22 could lose a whole
# stream when a server was killed. Source: https://github.com/nats-io/nats-server/releases/tag/v2.10.23.
OLDEST = {"rabbitmq": (3, 10, 0), "nats": (2, 10, 23)}
KEPT = {"rabbitmq": "quorum", "nats": "workqueue"}


def broker_findings(inspection: QueueInspection) -> Iterator[Finding]:
    """Look at the broker and yield what is to be said of it."""
    try:
        facts = inspection.read()
    except QueueUnfit as error:
        sentence = f"No hint gets through: {error}. Until then workers ask the ledger."
        yield refuse(Code.BROKER_UNFIT, None, PLACE, sentence)
        return
    except QueueAway as error:
        sentence = f"The broker could not be looked at: {error}. Workers ask the ledger meanwhile."
        yield warn(Code.BROKER_AWAY, None, PLACE, sentence)
        return
    yield from judge(facts)


def judge(facts: QueueFacts) -> Iterator[Finding]:
    """Yield what the facts mean."""
    found = [
        *_version(facts),
        *_queue(facts),
        *_losses(facts),
        *_dead_letters(facts),
        *_access(facts),
        *_unasked(facts),
    ]
    yield from found
    if not any(one.severity is Severity.WARN for one in found):
        word = WORDS[facts.kind]
        state = (
            "carries hints" if facts.is_made else "will carry hints, in a queue made at first use"
        )
        yield fine(Code.BROKER, None, PLACE, f"{word} {facts.version} {state}.")


def _version(facts: QueueFacts) -> Iterator[Finding]:
    found = tuple(int(one) for one in re.findall(r"\d+", facts.version)[:3])
    oldest = OLDEST[facts.kind]
    if found and found < oldest:
        wanted = ".".join(map(str, oldest))
        yield _warn(
            Code.BROKER_VERSION,
            f"{WORDS[facts.kind]} {facts.version} is older than {wanted}, before which it could "
            "lose what it had confirmed: upgrade it.",
        )


def _queue(facts: QueueFacts) -> Iterator[Finding]:
    kind = facts.queue_type
    if kind is None:
        return
    if kind != KEPT[facts.kind]:
        yield _warn(
            Code.BROKER_QUEUE,
            f"The queue is of type {kind} instead of {KEPT[facts.kind]}: delete it, and it is made "
            "again as it must be.",
        )
    if facts.is_persistent is False:
        yield _warn(
            Code.BROKER_QUEUE,
            "The queue is in memory alone, so that a restart of the broker loses every hint, which "
            "costs a sweep: delete it, and it is made again in files.",
        )
    if facts.delivery_limit is not None and facts.dead_letter_target is None:
        yield _warn(
            Code.BROKER_QUEUE,
            f"After {facts.delivery_limit} hand-overs the broker drops a message, for there is no "
            "queue of dead letters: name one, or delete the queue, and both are made again.",
        )
    if facts.kind == "rabbitmq" and facts.overflow == "drop-head":
        yield _warn(
            Code.BROKER_QUEUE,
            "A full queue drops its oldest hints silently: set overflow to reject-publish, or "
            "delete the queue, and it is made again so.",
        )


def _losses(facts: QueueFacts) -> Iterator[Finding]:
    if facts.is_clustered and facts.replicas == 1:
        yield _warn(
            Code.BROKER_REPLICAS,
            "The server is one of a cluster, and the queue is on it alone, so that hints stop "
            "while it is away: keep it on three.",
        )
    if facts.sync_seconds and (facts.replicas or 1) == 1:
        yield _warn(
            Code.BROKER_SYNC,
            f"What is confirmed may be in no file for {facts.sync_seconds:g} s, so that a loss of "
            "power loses those hints, which costs a sweep and no hold: accept it, or set "
            "sync_interval to always.",
        )


def _dead_letters(facts: QueueFacts) -> Iterator[Finding]:
    if facts.dead_count:
        yield _warn(
            Code.BROKER_DEAD_LETTERS,
            f"{facts.dead_count:,} messages were set aside as dead letters: freehold review shows "
            "those that nobody could read; find out who sends them, then purge "
            f"{facts.dead_letter_target or 'the queue of dead letters'}.",
        )


def _access(facts: QueueFacts) -> Iterator[Finding]:
    if facts.kind == "rabbitmq" and facts.user == "guest":
        yield _warn(
            Code.BROKER_ACCOUNT,
            "Freehold comes as guest, the account that everybody knows: give it one of its own.",
        )
    if facts.vhost == "/":
        yield _warn(
            Code.BROKER_ACCOUNT,
            "The queue is in the virtual host /, beside what others have there: give Freehold one "
            "of its own, and its account rights there alone.",
        )
    if facts.kind == "nats" and facts.user is None and facts.is_in_clear:
        yield _warn(
            Code.BROKER_ACCOUNT,
            "Freehold comes without a password to a server on another host, as anybody may: give "
            "it an account of its own.",
        )
    if facts.is_in_clear:
        yield _warn(
            Code.BROKER_IN_CLEAR,
            "The connection to another host is without TLS, so that whoever is on the way can read "
            f"hints and password: use {'amqps' if facts.kind == 'rabbitmq' else 'tls'}:.",
        )


def _unasked(facts: QueueFacts) -> Iterator[Finding]:
    if not facts.is_monitored:
        about = "replicas" if facts.kind == "rabbitmq" else "how often files are synced"
        yield fine(
            Code.BROKER_UNASKED,
            None,
            PLACE,
            f"Not looked at: {about}; queue.monitor names the HTTP interface that tells.",
        )


def _warn(code: Code, sentence: str) -> Finding:
    return warn(code, None, PLACE, sentence)
