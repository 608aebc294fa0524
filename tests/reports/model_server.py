"""A language model's endpoint on the loopback that answers as it is told to, and goes wrong on request."""

from __future__ import annotations

import contextlib
import json
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self

from freehold.adapters.summary import ANSWER_BYTES_MAX, OpenAiSummarizer
from freehold.testing.contracts.summaries import TEXT
from freehold.testing.contracts.summarizers import Play

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

PATIENCE_SECONDS = 0.3
OPENAI_USAGE = {
    "prompt_tokens": 812,
    "completion_tokens": 64,
    "total_tokens": 876,
    "prompt_tokens_details": {"cached_tokens": 512, "audio_tokens": 0},
    "completion_tokens_details": {"reasoning_tokens": 10},
}
ODD_USAGE = {
    "prompt_tokens": "812",
    "completion_tokens": True,
    "prompt_tokens_details": None,
    "completion_tokens_details": {"reasoning_tokens": -1},
    "who_knows": {"deep": [1, None, "\u0000"]},
}
USAGES: dict[Play, Any] = {
    Play.NO_USAGE: None,
    Play.ZERO_USAGE: {"prompt_tokens": 0, "completion_tokens": 64},
    Play.ODD_USAGE: ODD_USAGE,
}
STATUSES = {Play.BROKEN: 500, Play.BUSY: 429, Play.UNAUTHORISED: 401, Play.MOVED: 307}


class ModelServer:
    """One endpoint; `with` starts and ends it."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._scheme = "http" if tls is None else "https"
        if tls is not None:
            # Shaken in the handler's thread, as its first reading does.
            self._server.socket = tls.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._play, self._text = Play.TOLD, TEXT
        self._requests: list[Mapping[str, Any]] = []
        self._opened: list[OpenAiSummarizer] = []
        self.ended = threading.Event()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        for one in self._opened:
            one.close()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self._server.server_address[1]}/v1"

    def connect(self, key: str | None = "s3cret-Key_42") -> OpenAiSummarizer:
        return self._keep(self.url, key)

    def connect_unreachable(self) -> OpenAiSummarizer:
        return self._keep("http://127.0.0.1:1/v1", None)

    def _keep(self, url: str, key: str | None) -> OpenAiSummarizer:
        opened = OpenAiSummarizer(url, key, "small", seconds=PATIENCE_SECONDS)
        self._opened.append(opened)
        return opened

    def play(self, play: Play, text: str = TEXT) -> None:
        self._play, self._text = play, text

    def requests(self) -> Sequence[Mapping[str, Any]]:
        return list(self._requests)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                raw = self.rfile.read(int(self.headers["content-length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                server._requests.append(
                    {"path": self.path, "headers": headers, "body": json.loads(raw)}
                )
                with contextlib.suppress(OSError):  # who asked may be gone
                    server._answer(self, server._play)

            def log_message(self, *_: object) -> None:
                pass

        return Handler

    def _answer(self, handler: BaseHTTPRequestHandler, play: Play) -> None:
        if play is Play.DROPPED:
            handler.close_connection = True
            return
        if play is Play.SILENT:
            self.ended.wait(5)
            return
        handler.send_response(STATUSES.get(play, 200))
        handler.send_header("content-type", "application/json")
        if play is Play.MOVED:
            handler.send_header("location", self.url + "/chat/completions")
        if play in (Play.DRIPPING, Play.DRIPPING_HEADERS):
            if play is Play.DRIPPING:
                handler.end_headers()
            else:
                handler.flush_headers()
                handler.wfile.write(b"x-more: ")
            while not self.ended.wait(PATIENCE_SECONDS / 4):
                handler.wfile.write(b" ")
            return
        body = self._body(play)
        handler.send_header("content-length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    def _body(self, play: Play) -> bytes:
        if play is Play.NO_JSON:
            return b"<html>gateway</html>"
        if play is Play.HUGE:
            return b" " * (ANSWER_BYTES_MAX + 1)
        if play in STATUSES:
            said = {"message": "Incorrect API key: s3cret-Key_42", "code": "s3cret-Key_42"}
            return json.dumps({"error": {**said, "type": "invalid_request_error"}}).encode()
        return json.dumps(self._completion(play)).encode()

    def _completion(self, play: Play) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": self._text}
        if play is Play.REFUSED:
            message |= {"content": None, "refusal": "I will not."}
        ending = "length" if play is Play.UNFINISHED else "stop"
        choice = {"index": 0, "message": message, "finish_reason": ending}
        completion: dict[str, Any] = {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "model": "small-2026-01-01",
            "choices": [] if play is Play.NO_MESSAGE else [choice],
        }
        usage = USAGES.get(play, OPENAI_USAGE)
        return completion if usage is None else {**completion, "usage": usage}


@contextlib.contextmanager
def model_server(tls: ssl.SSLContext | None = None) -> Iterator[ModelServer]:
    """Run an endpoint for the block."""
    with ModelServer(tls) as server:
        yield server
