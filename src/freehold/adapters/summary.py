"""Ask a model behind an endpoint of the OpenAI shape; implements `ports.summary.Summarizer`.

OpenAI, vLLM and Ollama's `/v1` speak it, and so do most gateways; where they differ stands in the
tables below. *Invariants*: one call is one request; no redirect is followed and no proxy of the
environment used; the key is in no message; nothing of an answer is kept that a row cannot hold.
"""

from __future__ import annotations

import json
import math
import re
import socket
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Self

import httpx

from freehold.domain.errors import UsageError
from freehold.ports.summary import Told, Usage

ANSWER_BYTES_MAX = 256 * 1024
USAGE_BYTES_MAX = 8 * 1024
NAME_LENGTH = 200  # characters of a model's name
CONNECT_SECONDS = 5.0
TOO_LONG = "the endpoint took too long"
# OpenAI's newer models refuse `max_tokens` and any temperature but their own; other servers of the
# shape know `max_tokens`, and some of them nothing else (vLLM before 0.6.3, older Ollama).
_OPENAI_HOST = "api.openai.com"
# Where each count stands: OpenAI and those who copy it, then gateways, then Ollama's own shape.
_COUNTS = {
    "input_tokens": ("prompt_tokens", "input_tokens", "prompt_eval_count"),
    "output_tokens": ("completion_tokens", "output_tokens", "eval_count"),
    "cached_tokens": (
        "prompt_tokens_details.cached_tokens",
        "input_tokens_details.cached_tokens",
        "prompt_eval_cached_count",
    ),
    "cache_write_tokens": (
        "prompt_tokens_details.cache_write_tokens",
        "input_tokens_details.cache_write_tokens",
    ),
    "reasoning_tokens": (
        "completion_tokens_details.reasoning_tokens",
        "output_tokens_details.reasoning_tokens",
    ),
}
# Ollama leaves a cached prompt out of the count, or says 0: no prompt of ours is empty.
_NEVER_ZERO = ("input_tokens", "output_tokens")
_COUNT_MAX = 2**53
_KEY = re.compile(r"[\x21-\x7e]+")
_ERROR_NAME = re.compile(r"[a-z_]{1,60}")
_THOUGHT = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)  # reasoning models on local servers
_UNWRITABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_ENDINGS = {"length": "the answer was cut off", "content_filter": "the endpoint withheld the text"}


class OpenAiSummarizer:
    """A model behind `POST {url}/chat/completions`; belongs to one thread."""

    def __init__(self, url: str, key: str | None, model: str, *, seconds: float = 20.0) -> None:
        """Name the endpoint; nothing is sent yet.

        Args:
            url: up to and with the version, such as `https://api.openai.com/v1`.
            key: None for an endpoint that asks for none.
            seconds: the longest that one call may take.

        Raises:
            UsageError: the key cannot stand in a header.
        """
        if key is not None and not _KEY.fullmatch(key):
            raise UsageError("summary.key holds characters that no key has; set it again.")
        self._url = f"{url.rstrip('/')}/chat/completions"
        self._model = model
        self._seconds = seconds
        self._host = httpx.URL(url).host
        self._client = httpx.Client(
            headers=_headers(key),
            timeout=httpx.Timeout(seconds, connect=min(CONNECT_SECONDS, seconds)),
            follow_redirects=False,
            trust_env=False,
            # A connection for each call: its time limit watches the one that it made.
            transport=httpx.HTTPTransport(
                retries=0, limits=httpx.Limits(max_connections=1, max_keepalive_connections=0)
            ),
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._host!r}, {self._model!r})"

    @property
    def host(self) -> str:
        """Return the endpoint's host."""
        return self._host

    @property
    def model(self) -> str:
        """Return the model that is asked for."""
        return self._model

    def tell(self, prompt: str, facts: str, output_tokens_max: int) -> Told:
        """Ask once."""
        body = self._body(prompt, facts, output_tokens_max)
        with _TimeLimit(self._seconds) as limit:
            try:
                return self._asked(body, limit)
            except (httpx.HTTPError, httpx.InvalidURL, OSError, UnicodeError) as error:
                return _nothing(_trouble(error, is_over=limit.is_over))

    def close(self) -> None:
        """Give connections back."""
        self._client.close()

    def _body(self, prompt: str, facts: str, output_tokens_max: int) -> dict[str, Any]:
        of_openai = self._host == _OPENAI_HOST
        limit = "max_completion_tokens" if of_openai else "max_tokens"
        return {
            "model": self._model,
            "messages": [
                {"role": "system", "content": prompt},
                {"role": "user", "content": facts},
            ],
            "stream": False,
            limit: output_tokens_max,
            **({} if of_openai else {"temperature": 0}),
        }

    def _asked(self, body: Mapping[str, Any], limit: _TimeLimit) -> Told:
        raw = bytearray()
        watched = {"trace": limit.trace}
        with self._client.stream("POST", self._url, json=body, extensions=watched) as answer:
            for part in answer.iter_raw():
                raw += part
                if len(raw) > ANSWER_BYTES_MAX:
                    return _nothing("the answer is too long")
            # Where no length was said, a connection that was shut looks like the end.
            return _nothing(TOO_LONG) if limit.is_over else _read(answer.status_code, bytes(raw))


class _TimeLimit:
    """Shuts the connection after so long: a time-out of reading starts anew with every byte."""

    def __init__(self, seconds: float) -> None:
        self._timer = threading.Timer(seconds, self._end)
        self._timer.daemon = True
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self.is_over = False

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        with self._lock:
            self._socket = None

    def trace(self, event: str, info: Mapping[str, Any]) -> None:
        """Learn the connection as soon as there is one."""
        if event in {"connection.connect_tcp.complete", "connection.start_tls.complete"}:
            with self._lock:
                self._socket = info["return_value"].get_extra_info("socket")
                self._shut_if_over()

    def _end(self) -> None:
        with self._lock:
            self.is_over = True
            self._shut_if_over()

    def _shut_if_over(self) -> None:
        if self.is_over and self._socket is not None:
            with suppress(OSError):
                # Below TLS, which belongs to the thread that asks.
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)


def _trouble(error: Exception, *, is_over: bool) -> str:
    if is_over or isinstance(error, httpx.TimeoutException):
        return TOO_LONG
    if isinstance(error, httpx.ConnectError | UnicodeError):  # the latter: an odd host name
        return "the endpoint cannot be reached"
    return "the connection broke before the answer was there"


def _headers(key: str | None) -> dict[str, str]:
    """Ask for plain bytes, whose length is known before they are unpacked."""
    plain = {"Accept": "application/json", "Accept-Encoding": "identity"}
    return plain if key is None else {**plain, "Authorization": f"Bearer {key}"}


def _nothing(trouble: str) -> Told:
    return Told(None, trouble=trouble)


def _finite(text: str) -> float:
    """Refuse NaN and infinities: they are no JSON, and no database takes them."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value


def _read(status: int, raw: bytes) -> Told:
    """Read an answer; whatever it is, it is told and never raised."""
    try:
        found = json.loads(raw, parse_constant=_finite, parse_float=_finite)
    except (ValueError, RecursionError):
        found = None
    if status != httpx.codes.OK:
        return _nothing(f"the endpoint answered {status}{_error_name(found)}")
    if not isinstance(found, dict):
        return _nothing("the answer is no JSON object")
    model, usage = _model(found), _usage(found)
    text, trouble = _text(found)
    return Told(text, model, usage, trouble)


def _error_name(found: Any) -> str:
    """Return the name of an error, never its sentence: that may hold a part of the key."""
    error = found.get("error") if isinstance(found, dict) else None
    if not isinstance(error, dict):
        return ""
    names = (error.get(place) for place in ("code", "type"))
    said = (name for name in names if isinstance(name, str) and _ERROR_NAME.fullmatch(name))
    return next((f" ({name})" for name in said), "")


def _model(found: Mapping[str, Any]) -> str | None:
    model = found.get("model")
    return _UNWRITABLE.sub("?", model)[:NAME_LENGTH] if isinstance(model, str) else None


def _text(found: Mapping[str, Any]) -> tuple[str | None, str]:
    """Return the text, or None and why there is none."""
    choices = found.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        return None, "the answer has no message"
    ending = choice.get("finish_reason")
    if isinstance(ending, str) and ending in _ENDINGS:
        return None, _ENDINGS[ending]
    if message.get("refusal"):
        return None, "the model refused"
    content = message.get("content")
    if not isinstance(content, str):
        return None, "the message has no text"
    return _THOUGHT.sub("", content), ""


def _usage(found: Mapping[str, Any]) -> Usage:
    """Read what was used: from `usage`, or from the top where Ollama writes it."""
    raw = found.get("usage")
    if not isinstance(raw, dict):
        raw = {name: value for name, value in found.items() if name.endswith("_count")} or None
    if raw is None:
        return Usage()
    counts = {name: _count(raw, name) for name in _COUNTS}
    return Usage(**counts, raw=raw if _is_short(raw) else None)


def _is_short(raw: Mapping[str, Any]) -> bool:
    try:
        return len(json.dumps(raw)) <= USAGE_BYTES_MAX
    except RecursionError:
        return False


def _count(raw: Mapping[str, Any], name: str) -> int | None:
    for path in _COUNTS[name]:
        value: Any = raw
        for step in path.split("."):
            value = value.get(step) if isinstance(value, dict) else None
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _COUNT_MAX:
            return None if value == 0 and name in _NEVER_ZERO else value
    return None
