"""The contract of `ports.summary.Summarizer`: one call is one request, whatever becomes of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, Protocol

from freehold.ports.summary import Summarizer
from freehold.testing.contracts.ground import only
from freehold.testing.contracts.summaries import TEXT


class Play(StrEnum):
    """What the endpoint does with the next request; `told` is the usual answer."""

    TOLD = "told"
    BROKEN = "answers 500"
    BUSY = "answers 429"
    UNAUTHORISED = "answers 401 and says a part of the key"
    MOVED = "redirects to itself"
    DROPPED = "closes the connection once it has read the request"
    SILENT = "answers nothing within the time"
    DRIPPING = "sends a byte from time to time, and never ends"
    DRIPPING_HEADERS = "does so before the answer has begun"
    NO_JSON = "answers no JSON"
    NO_MESSAGE = "answers without a message"
    REFUSED = "answers with a refusal"
    UNFINISHED = "answers with a text that was cut off"
    HUGE = "answers with more than anybody reads"
    NO_USAGE = "answers without a usage"
    ZERO_USAGE = "counts a cached prompt as 0"
    ODD_USAGE = "writes counts that are none, and keys that nobody knows"


class Endpoint(Protocol):
    """The other side: a server that the test commands."""

    def connect(self, key: str | None = "s3cret-Key_42") -> Summarizer:
        """Return a summarizer of half a second's patience; the endpoint closes it at the end."""
        ...

    def connect_unreachable(self) -> Summarizer:
        """Return one whose server does not listen."""
        ...

    def play(self, play: Play, text: str = TEXT) -> None:
        """Answer so from here on; `text` is the message's."""
        ...

    def requests(self) -> Sequence[Mapping[str, Any]]:
        """Return what arrived: path, headers by lower-case names, and body."""
        ...


class SummarizerContract:
    """Give the fixture `endpoint`."""

    def test_it_tells_the_text_the_model_and_the_usage(self, endpoint: Endpoint) -> None:
        told = endpoint.connect().tell("Be short.", "<facts>{}</facts>", 77)
        assert (told.text, told.model, told.trouble) == (TEXT, "small-2026-01-01", "")
        usage = told.usage
        assert (usage.input_tokens, usage.output_tokens, usage.reasoning_tokens) == (812, 64, 10)
        assert (usage.cached_tokens, usage.cache_write_tokens) == (512, None)
        assert usage.raw is not None
        assert usage.raw["prompt_tokens"] == 812

    def test_it_asks_once_in_the_usual_shape(self, endpoint: Endpoint) -> None:
        summarizer = endpoint.connect()
        summarizer.tell("Be short.", "<facts>{}</facts>", 77)
        request = only(endpoint.requests())
        assert request["path"] == "/v1/chat/completions"
        assert request["headers"]["authorization"] == "Bearer s3cret-Key_42"
        body = request["body"]
        assert (body["model"], body["max_tokens"], body["stream"]) == ("small", 77, False)
        assert [(one["role"], one["content"]) for one in body["messages"]] == [
            ("system", "Be short."),
            ("user", "<facts>{}</facts>"),
        ]

    def test_without_a_key_it_says_none(self, endpoint: Endpoint) -> None:
        endpoint.connect(None).tell("p", "f", 7)
        assert "authorization" not in only(endpoint.requests())["headers"]

    def test_it_names_host_and_model_and_no_secret(self, endpoint: Endpoint) -> None:
        summarizer = endpoint.connect()
        assert (summarizer.host, summarizer.model) == ("127.0.0.1", "small")
        assert "s3cret" not in repr(summarizer)

    def test_whatever_goes_wrong_is_told_and_asked_once(self, endpoint: Endpoint) -> None:
        no_answer = {Play.BROKEN, Play.BUSY, Play.UNAUTHORISED, Play.MOVED, Play.DROPPED}
        bad_answer = {Play.NO_JSON, Play.NO_MESSAGE, Play.REFUSED, Play.UNFINISHED, Play.HUGE}
        for count, play in enumerate([*sorted(no_answer | bad_answer), Play.SILENT], 1):
            endpoint.play(play)
            told = endpoint.connect().tell("p", "f", 7)
            assert told.text is None, play
            assert told.trouble, play
            assert "s3cret" not in told.trouble, play
            assert len(endpoint.requests()) == count, play

    def test_an_answer_that_never_ends_is_left(self, endpoint: Endpoint) -> None:
        for play in (Play.DRIPPING, Play.DRIPPING_HEADERS):
            endpoint.play(play)
            told = endpoint.connect().tell("p", "f", 7)
            assert (told.text, told.trouble) == (None, "the endpoint took too long"), play

    def test_an_endpoint_out_of_reach_is_told(self, endpoint: Endpoint) -> None:
        told = endpoint.connect_unreachable().tell("p", "f", 7)
        assert (told.text, told.model) == (None, None)
        assert told.trouble == "the endpoint cannot be reached"

    def test_it_goes_on_after_trouble(self, endpoint: Endpoint) -> None:
        summarizer = endpoint.connect()
        endpoint.play(Play.DROPPED)
        assert summarizer.tell("p", "f", 7).text is None
        endpoint.play(Play.TOLD)
        assert summarizer.tell("p", "f", 7).text == TEXT

    def test_a_refusal_still_has_its_usage(self, endpoint: Endpoint) -> None:
        endpoint.play(Play.REFUSED)
        assert endpoint.connect().tell("p", "f", 7).usage.input_tokens == 812

    def test_what_is_not_said_of_usage_is_none(self, endpoint: Endpoint) -> None:
        for play in (Play.NO_USAGE, Play.ZERO_USAGE, Play.ODD_USAGE):
            endpoint.play(play)
            told = endpoint.connect().tell("p", "f", 7)
            assert told.text == TEXT, play
            assert told.usage.input_tokens is None, play

    def test_keys_that_nobody_knows_are_kept_as_they_came(self, endpoint: Endpoint) -> None:
        endpoint.play(Play.ODD_USAGE)
        usage = endpoint.connect().tell("p", "f", 7).usage
        assert (usage.output_tokens, usage.reasoning_tokens, usage.cached_tokens) == (None,) * 3
        assert usage.raw is not None
        assert usage.raw["who_knows"] == {"deep": [1, None, "\u0000"]}

    def test_closing_twice_does_nothing(self, endpoint: Endpoint) -> None:
        summarizer = endpoint.connect()
        summarizer.close()
        summarizer.close()
