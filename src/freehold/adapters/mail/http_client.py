"""One request to a provider, made once, and what its failure means.

*Invariants*: nothing is repeated, no redirect is followed, no proxy is taken from the environment;
certificates are checked. A failure before the whole body left is TRANSIENT, one after it UNKNOWN.
"""

from __future__ import annotations

import json
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import cache
from typing import Any

import httpx

from freehold.adapters.mail.answers import (
    CODE_LENGTH_MAX,
    Ended,
    in_words,
    plain,
    refused,
    transient,
    unknown,
)
from freehold.adapters.mail.limit import TimeLimit
from freehold.domain.errors import UsageError
from freehold.domain.sending import SendOutcome
from freehold.ports.mail import Answer

# Connecting, writing and reading may each take as long as one step; a whole request no longer.
_STEPS = 3
_ANSWER_BYTES_MAX = 1_000_000
_RETRY_AFTER_MOST = timedelta(days=1)
# The request did not get as far as its last byte, so there was nothing to accept.
_BEFORE_THE_END = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.WriteTimeout,
    httpx.LocalProtocolError,
    httpx.UnsupportedProtocol,
    UnicodeError,  # a host that no name server can be asked for
)
TOO_MANY_REQUESTS = 429
_REQUEST_TIMEOUT = 408
_TOO_LARGE = 413
_OF_THE_ACCOUNT = frozenset({401, 402, 403, 404, 405, 407, 410})
_SERVER_ERROR = 500


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked of a provider."""

    method: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    parameters: Mapping[str, str] | None = None
    form: Mapping[str, str] | None = None
    files: Mapping[str, tuple[str, bytes, str]] | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """What it answered; `said` is its JSON object, empty where it sent none."""

    status: int
    said: Mapping[str, Any]
    retry_after: timedelta | None = None
    at: datetime | None = None

    @property
    def is_success(self) -> bool:
        """Tell whether the request was granted."""
        return 200 <= self.status < 300  # noqa: PLR2004 -- RFC 9110: 2xx


class Client:
    """Requests to one provider; belongs to one thread."""

    def __init__(
        self, name: str, url: str, seconds: float, *, secret: str, headers: Mapping[str, str]
    ) -> None:
        """Name a provider.

        Args:
            seconds: for one step of a request; the whole of it has three times as long.
            secret: what may stand in no text.
            headers: of every request, the secret in one of them.

        Raises:
            UsageError: the URL is none, or would carry the secret in clear to another host; or the
                secret cannot be one.
        """
        if not secret or not secret.isascii() or not secret.isprintable() or " " in secret:
            raise UsageError(
                f"The key for {name} is empty, or has a space, a line end or a letter outside ASCII."
            )
        self.name = name
        self.seconds_max = _STEPS * seconds
        self._host = _host_of(name, url)
        # A provider may say back what it got: the key, or the header that it stood in.
        self._secrets = (*(value.rpartition(" ")[2] for value in headers.values()), secret)
        self._limit: TimeLimit | None = None
        self._socket: Any = None
        self._http = httpx.Client(
            base_url=url,
            headers=headers,
            timeout=seconds,
            follow_redirects=False,
            trust_env=False,
            transport=httpx.HTTPTransport(
                verify=_authorities(),
                retries=0,
                trust_env=False,
                limits=httpx.Limits(max_connections=1),
            ),
        )

    def __repr__(self) -> str:
        """Show no secret."""
        return f"Client({self.name!r}, {self._host!r})"

    def ask(self, request: Request) -> Reply:
        """Make one request.

        Raises:
            Ended: no answer came; TRANSIENT before the request was whole, else UNKNOWN.
        """
        with TimeLimit(self.seconds_max) as self._limit:
            self._limit.watch(self._socket)
            try:
                return self._exchange(request)
            except _BEFORE_THE_END as error:
                text = self.plain(f"{self.name} cannot be reached at {self._host}: {_why(error)}")
                raise Ended(transient(text, everyone=True)) from error
            except (httpx.RequestError, OSError) as error:
                text = (
                    f"{self.name} had the whole request, and its answer did not come: {_why(error)}"
                )
                raise Ended(unknown(self.plain(text))) from error

    def _exchange(self, request: Request) -> Reply:
        built = self._http.build_request(
            request.method,
            request.path,
            content=request.body,
            data=request.form,
            files=request.files,
            params=request.parameters,
            headers={
                "Accept": "application/json",
                "Accept-Encoding": "identity",
                **request.headers,
            },
            extensions={"trace": self._trace},
        )
        response = self._http.send(built, stream=True)
        try:
            return _read(response)
        finally:
            response.close()

    def _trace(self, event: str, info: dict[str, Any]) -> None:
        """Let the time limit know the connection, as soon as there is one."""
        if event in {"connection.connect_tcp.complete", "connection.start_tls.complete"}:
            self._socket = info["return_value"].get_extra_info("socket")
            assert self._limit is not None
            self._limit.watch(self._socket)

    def look(self, request: Request) -> Reply:
        """Make one request that changes nothing.

        Raises:
            Ended: no answer came, or not the wanted one; always TRANSIENT.
        """
        try:
            reply = self.ask(request)
        except Ended as ended:
            raise Ended(transient(ended.answer.text, everyone=True)) from ended
        if not reply.is_success:
            text = self.words(reply)
            everyone = reply.status != TOO_MANY_REQUESTS
            answer = transient(text, str(reply.status), everyone=everyone)
            raise Ended(_with_wait(answer, reply.retry_after))
        return reply

    def usual(self, reply: Reply, code: str = "") -> Answer:
        """Read an answer that is no acceptance by its status alone."""
        code = plain(code or str(reply.status), *self._secrets, length_max=CODE_LENGTH_MAX)
        text, status = self.words(reply), reply.status
        if status == TOO_MANY_REQUESTS:
            return _with_wait(transient(text, code, everyone=True), reply.retry_after)
        if status == _REQUEST_TIMEOUT:
            return transient(text, code)
        if reply.is_success or status >= _SERVER_ERROR:
            # A provider may have queued the mail before it failed; a 2xx without its own words may
            # come from a box in between.
            return _with_wait(unknown(text, code), reply.retry_after)
        everyone = status in _OF_THE_ACCOUNT or status < 400  # noqa: PLR2004 -- 3xx: another URL
        return refused(text, code, everyone=everyone)

    def words(self, reply: Reply) -> str:
        """Say what the provider answered."""
        said = reply.said.get("message") or reply.said.get("Message") or ""
        return self.plain(f"{self.name} answered {reply.status} {said}")

    def plain(self, text: str) -> str:
        """Make a text fit for the trail."""
        return plain(text, *self._secrets)

    def close(self) -> None:
        """Give the connection back."""
        self._http.close()


def later(answer: Answer, least: timedelta) -> Answer:
    """Ask for at least so long a wait."""
    return _with_wait(answer, max(answer.retry_after or least, least))


def _with_wait(answer: Answer, wait: timedelta | None) -> Answer:
    return replace(answer, retry_after=wait)


def refused_to_everyone(answer: Answer) -> Answer:
    """Read the same as a refusal of the account, not of the mail."""
    return replace(answer, outcome=SendOutcome.REFUSED, everyone=True)


def not_now(answer: Answer) -> Answer:
    """Read the same as trouble of the account that passes."""
    return replace(answer, outcome=SendOutcome.TRANSIENT, everyone=True)


def objects_of(value: Any) -> list[Mapping[str, Any]]:
    """Return the JSON objects of what should be a list of them; nothing else gets through."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _read(response: httpx.Response) -> Reply:
    content = bytearray()
    for chunk in response.iter_raw():  # as it came: what is packed may unpack to any length
        content += chunk
        if len(content) > _ANSWER_BYTES_MAX:
            break
    at = _instant(response.headers.get("Date"))
    wait = _wait(response.headers.get("Retry-After"), at)
    return Reply(response.status_code, _json(bytes(content)), wait, at)


def _json(content: bytes) -> Mapping[str, Any]:
    try:
        said = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}


def _instant(text: str | None) -> datetime | None:
    try:
        at = parsedate_to_datetime(text or "")
    except (ValueError, OverflowError):
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def _wait(text: str | None, at: datetime | None) -> timedelta | None:
    """Read Retry-After: seconds, or an instant by the provider's own clock (RFC 9110 10.2.3)."""
    if text is None:
        return None
    until = _instant(text)
    try:
        seconds = (until - at).total_seconds() if until and at else float(text)
        return timedelta(seconds=min(max(seconds, 0.0), _RETRY_AFTER_MOST.total_seconds()))
    except ValueError:
        return None


@cache
def _authorities() -> ssl.SSLContext:
    """Load the authorities that httpx brings along, once for all threads: it takes 20 ms."""
    return httpx.create_ssl_context()


def _host_of(name: str, url: str) -> str:
    try:
        read = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise UsageError(f"The URL of {name} is none: {error}.") from error
    if read.scheme not in {"http", "https"} or not re.fullmatch(r"[\w.:-]+", read.host):
        raise UsageError(f"The URL of {name} must begin with https:// and name a host.")
    if read.scheme == "http" and read.host not in {"localhost", "127.0.0.1", "::1"}:
        raise UsageError(f"The URL of {name} must begin with https://, or the key goes in clear.")
    return read.host


def _why(error: Exception) -> str:
    if isinstance(error, httpx.TimeoutException):
        return "it did not answer in time"
    return in_words(error)
