"""What must fit together in `[queue]` and `[[targets]]`, as far as no server is needed to know it.

*Invariants*: no sentence repeats a URL or a secret. *Not here*: what a file holds that a key names;
whoever opens the queue or target judges that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from functools import partial
from ipaddress import ip_network
from urllib.parse import SplitResult, urlsplit

from freehold.domain.events import EventType
from freehold.domain.webhook_secrets import read_webhook_secret
from freehold.domain.webhook_urls import read_webhook_url
from freehold.settings.notation import Finding, suggestion
from freehold.settings.shape_brokers import QueueShape, TargetShape, keys_of

SCHEMES = {"rabbitmq": ("amqp", "amqps"), "nats": ("nats", "tls")}
_UNWRITABLE = re.compile(r"[\x00-\x20\x7f-\uffff]")
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,200}")
_STREAM = re.compile(r"[A-Za-z0-9_-]{1,200}")  # JetStream refuses dots


def broker_findings(
    queue: QueueShape | None, targets: list[TargetShape], rules: Collection[str]
) -> Iterator[Finding]:
    """Yield all that does not fit together.

    Args:
        rules: names of all rules, the built-in one's too.
    """
    if queue is not None:
        for place, text in _queue(queue):
            yield Finding(f"queue.{place}", f"{text}.")
    first: dict[str, int] = {}
    for index, target in enumerate(targets):
        where = f"targets[{index}]"
        if first.setdefault(target.name, index) != index:
            other = f"targets[{first[target.name]}]"
            yield Finding(
                f"{where}.name",
                f"{target.name!r} is the name of {other} too; rename one of them.",
            )
        for place, text in (*_target(target), *_wishes(target, rules)):
            yield Finding(f"{where}.{place}", f"{text} (target {target.name!r}).")


def _queue(queue: QueueShape) -> Iterator[Finding]:
    yield from _one_of(queue, "url", needed="FREEHOLD_QUEUE__URL")
    yield from _one_of(queue, "monitor")
    yield from _urls("url", queue.url, queue.kind, SCHEMES[queue.kind])
    if queue.monitor is not None:
        yield from _url("monitor", queue.monitor, ("http", "https"))
    if queue.kind == "rabbitmq" and "replicas" in queue.model_fields_set:
        yield Finding("replicas", "is for NATS; RabbitMQ places a quorum queue itself; remove it")


def _target(target: TargetShape) -> Iterator[Finding]:
    known = keys_of(target)
    for key in sorted(target.model_fields_set - {*known}):
        yield Finding(key, f"means nothing for a target of kind {target.kind}; remove it")
    yield from _one_of(target, "url", needed="")
    if target.kind == "webhook":
        yield from _webhook(target)
        return
    yield from _urls("url", target.url, target.kind, SCHEMES[target.kind])
    for key, form in (("exchange", _NAME), ("subject", _NAME), ("stream", _STREAM)):
        if key in known and not form.fullmatch(getattr(target, key)):
            dots = ", dots" if form is _NAME else ""
            yield Finding(key, f"must be 1 to 200 ASCII letters, digits{dots}, _ and -")


def _one_of(
    table: QueueShape | TargetShape, key: str, *, needed: str | None = None
) -> Iterator[Finding]:
    """Check that a secret stands in the file or in a file of its own, not in both.

    Args:
        needed: None where it may be absent, else the variable that can hold it; empty for none.
    """
    value, file = getattr(table, key), getattr(table, f"{key}_file")
    if value is not None and file is not None:
        yield Finding(key, f"and {key}_file are both set; keep one of them")
    if needed is not None and value is None and file is None:
        way = f"set {needed}, or name" if needed else "add it, or name"
        yield Finding(key, f"is missing; {way} a file with {key}_file")


def _urls(place: str, text: str | None, kind: str, schemes: tuple[str, ...]) -> Iterator[Finding]:
    """Check one URL, or several of NATS."""
    if text is not None:
        for url in text.split(",") if kind == "nats" else [text]:
            yield from _url(place, url.strip(), schemes)


def _url(place: str, url: str, schemes: tuple[str, ...]) -> Iterator[Finding]:
    parts = _parts(url)
    # An @ behind the host means that a password was cut short there.
    if parts is None or "@" in parts.path + parts.query + parts.fragment:
        yield Finding(
            place,
            "is no URL: the port must be a number, and any of / ? # @ : [ ] in a password must be "
            "written in percent form",
        )
    elif _UNWRITABLE.search(url):
        yield Finding(place, "has a blank or a letter that a URL writes in percent form")
    elif parts.scheme not in schemes:
        yield Finding(place, f"must begin with {' or '.join(f'{one}:' for one in schemes)}")
    elif not parts.hostname:
        yield Finding(place, "names no host")


def _parts(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return None
    return parts


def _webhook(target: TargetShape) -> Iterator[Finding]:
    yield from _one_of(target, "secret", needed="")
    yield from _one_of(target, "old_secret")
    for key in ("secret", "old_secret"):
        value = getattr(target, key)
        if value is not None:
            yield from _reading(key, read_webhook_secret, value)
    yield from _allow(target)
    if target.url is not None:
        read = partial(read_webhook_url, ports=target.ports, insecure=target.insecure)
        yield from _reading("url", read, target.url)


def _reading(key: str, read: Callable[[str], object], text: str) -> Iterator[Finding]:
    try:
        read(text)
    except ValueError as error:
        yield Finding(key, str(error))


def _allow(target: TargetShape) -> Iterator[Finding]:
    if target.insecure and not target.allow:
        yield Finding("insecure", "takes http: into the networks of allow only, and there are none")
    for one in target.allow:
        try:
            network = ip_network(one)
        except ValueError:
            yield Finding("allow", f"{one!r} is no network; write one as in 10.20.0.0/16")
            continue
        if network.prefixlen == 0:
            yield Finding("allow", f"{one!r} is every address there is; name the networks you mean")


def _wishes(target: TargetShape, rules: Collection[str]) -> Iterator[Finding]:
    """Check what a target wants: types that we write, rules that are there."""
    types = [one.value for one in EventType]
    for one in target.types or ():
        if one not in types:
            close = suggestion(one, types) or f"; known types: {', '.join(types)}"
            yield Finding("types", f"names {one!r}, which is no type of event{close}")
    for one in target.rules or ():
        if one not in rules:
            close = suggestion(one, [*rules]) or f"; known rules: {', '.join(rules) or 'none'}"
            yield Finding("rules", f"names {one!r}, which is no rule{close}")
