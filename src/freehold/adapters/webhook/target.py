"""Post events to one customer's endpoint, several at once, each within its time.

*Invariants*: a redirect is not followed, no proxy of the environment is used, an answer is never
unpacked, and of its body no more is read than `ANSWER_BYTES_MAX`; no URL beyond its host, no body
and no secret is in a reason or a log. *Not here*: which hosts may be reached (`connecting`), what an
answer means (`reading`), signatures (`signing`).

It stands on httpcore alone: httpx above it logs every URL, follows the environment's proxies unless
told otherwise, and unpacks what it reads.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Collection, Sequence
from contextlib import suppress
from functools import partial

import httpcore

from freehold import __version__
from freehold.adapters.webhook.connecting import (
    AddressForbidden,
    GuardedNetwork,
    LookUp,
    NameUnknown,
    look_up,
)
from freehold.adapters.webhook.reading import read_answer
from freehold.adapters.webhook.signing import Signer
from freehold.domain.errors import TargetAway, UsageError
from freehold.domain.public_addresses import Network
from freehold.domain.webhook_urls import WebhookUrl, read_webhook_url
from freehold.ports.system import HostClock
from freehold.ports.target import Answer, Parcel, Reception

ANSWER_BYTES_MAX = 4_096  # read so that the connection can be used again; nobody looks at it
ANSWER_SECONDS = 1.0  # for the body behind a status
IDLE_SECONDS = 20.0  # a connection without a delivery is closed; many servers wait 60 or more
ROUNDS = 4  # of `concurrency` deliveries in one batch
_SPARE_SECONDS = 1.0  # a batch: signing, closing, a busy host

_BROKEN = (httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError, OSError)


class WebhookTarget:
    """One endpoint; belongs to one thread, in which its loop runs while `deliver` does."""

    def __init__(
        self,
        url: str,
        secret: str,
        clock: HostClock,
        *,
        old_secret: str | None = None,
        ports: Collection[int],
        allow: Collection[Network] = (),
        insecure: bool = False,
        ca_file: str | None = None,
        seconds: float = 15.0,
        concurrency: int = 8,
        look_up: LookUp = look_up,
    ) -> None:
        """Name an endpoint; nothing is sent or looked up yet.

        Args:
            secret: what the customer verifies with.
            clock: its wall time stamps every attempt.
            old_secret: signs too, while the customer changes over; None or empty where there is none.
            ports: the ports that the URL may name.
            allow: networks that may be reached although they are not public.
            insecure: whether http is taken; it reaches `allow` only.
            ca_file: certificates to trust instead of the system's.
            seconds: of one delivery, from the look-up of the name to the status of the answer.
            concurrency: deliveries under way at once.

        Raises:
            UsageError: the URL, a secret or the file of certificates is not what it must be.
        """
        self._url = _read(url, ports, insecure=insecure)
        self._signer = Signer([secret, *([old_secret] if old_secret else [])])
        self._clock = clock
        self._seconds = seconds
        self._concurrency = concurrency
        self._network = partial(
            GuardedNetwork, allow, insecure=not self._url.is_secure, look_up=look_up
        )
        self._tls = _tls(ca_file)
        self._runner: asyncio.Runner | None = None
        self._pool: httpcore.AsyncConnectionPool | None = None

    def __repr__(self) -> str:
        """Show no secret, and no path, which may be one."""
        return f"{type(self).__name__}({self._url.host!r})"

    @property
    def seconds_most(self) -> float:
        """Return how long `deliver` may take at most, in seconds."""
        return ROUNDS * (self._seconds + ANSWER_SECONDS) + _SPARE_SECONDS

    @property
    def batch_most(self) -> int:
        """Return how many parcels one call takes at most."""
        return ROUNDS * self._concurrency

    def deliver(self, parcels: Sequence[Parcel]) -> Sequence[Answer]:
        """Post each parcel once, and answer for each.

        Raises:
            TargetAway: no connection came about in the first round, for whatever reason: the name
                is unknown, nobody listens, the certificate is wrong. No parcel left.
        """
        if self._runner is None:
            self._runner = asyncio.Runner()
        return self._runner.run(self._deliver(parcels))

    def close(self) -> None:
        """End the connections. A second call does nothing."""
        runner, self._runner = self._runner, None
        if runner is not None:
            with runner:
                runner.run(self._close())

    async def _close(self) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            with suppress(*_BROKEN):
                await pool.aclose()

    async def _deliver(self, parcels: Sequence[Parcel]) -> list[Answer]:
        answers: list[Answer] = []
        for start in range(0, len(parcels), self._concurrency):
            some = parcels[start : start + self._concurrency]
            found = await asyncio.gather(*(self._post(parcel) for parcel in some))
            answers += [answer for answer, _ in found]
            if start == 0 and not any(reached for _, reached in found):
                raise TargetAway(found[0][0].reason)
            rest = _ending(answers)
            if rest is not None:  # what was not sent yet is not sent any more
                return answers + [rest] * (len(parcels) - len(answers))
        return answers

    async def _post(self, parcel: Parcel) -> tuple[Answer, bool]:
        """Post one parcel.

        Returns:
            What came of it, and whether anything of it may have left.
        """
        steps = _Steps()
        try:
            async with asyncio.timeout(self._seconds):
                response = await self._open_pool().handle_async_request(
                    self._request(parcel, steps)
                )
        except AddressForbidden:
            return self._forbidden(), True
        except NameUnknown:
            return self._transient("name", "cannot be looked up"), False
        except TimeoutError:
            what = "did not answer in time" if steps.has_begun else "cannot be reached in time"
            return self._transient("timeout", what), steps.has_begun
        except _BROKEN as error:
            return self._broken(error, steps), steps.has_begun
        return await self._answer(response), True

    async def _answer(self, response: httpcore.Response) -> Answer:
        headers = {name.decode("latin-1").lower(): value for name, value in response.headers}
        texts = {name: value.decode("latin-1") for name, value in headers.items()}
        try:
            return read_answer(response.status, texts, self._clock.wall())
        finally:
            await _drop(response)

    def _request(self, parcel: Parcel, steps: _Steps) -> httpcore.Request:
        headers = {
            "Host": self._url.authority,
            "Content-Type": "application/cloudevents+json; charset=utf-8",
            "Content-Length": str(len(parcel.body)),
            "User-Agent": f"Freehold/{__version__}",
            "Accept-Encoding": "identity",
            **self._signer.headers(parcel.event_key, parcel.body, self._clock.wall()),
        }
        url = httpcore.URL(
            scheme=self._url.scheme,
            host=self._url.host,
            port=self._url.port,
            target=self._url.path,
        )
        return httpcore.Request(
            "POST",
            url,
            headers=list(headers.items()),
            content=parcel.body,
            extensions={"trace": steps.note},
        )

    def _open_pool(self) -> httpcore.AsyncConnectionPool:
        if self._pool is None:
            self._pool = httpcore.AsyncConnectionPool(
                ssl_context=self._tls,
                max_connections=self._concurrency,
                keepalive_expiry=IDLE_SECONDS,
                network_backend=self._network(),
            )
        return self._pool

    def _broken(self, error: Exception, steps: _Steps) -> Answer:
        if steps.has_begun:
            return self._transient("broken", "broke the connection before it answered")
        if _is_about_certificate(error):
            return self._transient(
                "certificate", "has a certificate that is not for it or not valid"
            )
        return self._transient("connect", "cannot be reached")

    def _transient(self, code: str, what: str) -> Answer:
        return Answer(Reception.TRANSIENT, code, f"{self._url.host} {what}")

    def _forbidden(self) -> Answer:
        what = "is not on the public internet" if self._url.is_secure else "is not in `allow`"
        return Answer(Reception.REFUSED, "address", f"{self._url.host} {what}")


class _Steps:
    """How far one exchange has come."""

    def __init__(self) -> None:
        self.has_begun = False

    async def note(self, event: str, _: object) -> None:
        """Note one step of httpcore."""
        if event == "http11.send_request_headers.started":
            self.has_begun = True


def _ending(answers: Sequence[Answer]) -> Answer | None:
    """Return what is said of all that was not sent yet, where an answer ends the batch."""
    for one in answers:
        if one.reception is Reception.GONE:
            return one
    if any(one.wait_seconds for one in answers):
        return Answer(Reception.UNSENT, "", "the endpoint asked to be left alone")
    return None


async def _drop(response: httpcore.Response) -> None:
    """Read a short body, so that the connection can be used again; else close it."""
    length = 0
    with suppress(TimeoutError, *_BROKEN):
        async with asyncio.timeout(ANSWER_SECONDS):
            async for part in response.aiter_stream():
                length += len(part)
                if length > ANSWER_BYTES_MAX:
                    break
    with suppress(*_BROKEN):
        await response.aclose()


def _is_about_certificate(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return True
        error = error.__cause__ or error.__context__
    return False


def _read(url: str, ports: Collection[int], *, insecure: bool) -> WebhookUrl:
    try:
        return read_webhook_url(url, ports, insecure=insecure)
    except ValueError as error:
        raise UsageError(f"The URL of a webhook {error}.") from None


def _tls(ca_file: str | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca_file)
    except OSError as error:  # ssl.SSLError among them
        why = error.strerror or "it has no certificates"
        raise UsageError(f"The certificates in {ca_file} cannot be read ({why}).") from None
