"""What providers of one shape do differently, and what must not leave by the endpoint."""

from __future__ import annotations

import json
import ssl
from typing import Any

import httpx
import pytest
import trustme

from freehold.adapters.summary import OpenAiSummarizer, _read
from freehold.domain.errors import UsageError
from freehold.ports.summary import Usage
from tests.reports.model_server import model_server

# Of each provider: what it writes beside the text, and what that means.
SHAPES: list[tuple[str, dict[str, Any], Usage]] = [
    (
        "OpenAI",
        {
            "usage": {
                "prompt_tokens": 900,
                "completion_tokens": 70,
                "prompt_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 12},
                "completion_tokens_details": {"reasoning_tokens": 0},
            }
        },
        Usage(900, 0, 12, 70, 0),
    ),
    (
        "vLLM without details",
        {"usage": {"prompt_tokens": 900, "completion_tokens": 70, "total_tokens": 970}},
        Usage(900, None, None, 70, None),
    ),
    (
        "vLLM, which leaves a cache of 0 out",
        {"usage": {"prompt_tokens": 900, "completion_tokens": 70, "prompt_tokens_details": {}}},
        Usage(900, None, None, 70, None),
    ),
    (
        "older Ollama with a cached prompt",
        {"usage": {"prompt_tokens": 0, "completion_tokens": 70}},
        Usage(None, None, None, 70, None),
    ),
    (
        "Ollama's own counts",
        {"prompt_eval_count": 900, "prompt_eval_cached_count": 800, "eval_count": 70},
        Usage(900, 800, None, 70, None),
    ),
    (
        "a gateway that writes like the responses API",
        {
            "usage": {
                "input_tokens": 900,
                "output_tokens": 70,
                "output_tokens_details": {"reasoning_tokens": 30},
            }
        },
        Usage(900, None, None, 70, 30),
    ),
    ("nobody", {}, Usage()),
    ("no object", {"usage": [1]}, Usage()),
    ("a count beyond all sense", {"usage": {"prompt_tokens": 10**30}}, Usage()),
]


def answer(**more: Any) -> bytes:
    message = {"role": "assistant", "content": "3 holds were released."}
    return json.dumps({"model": "m", "choices": [{"message": message}], **more}).encode()


@pytest.mark.parametrize(("provider", "said", "usage"), SHAPES, ids=[one[0] for one in SHAPES])
def test_each_provider_s_counts_are_read(provider: str, said: dict[str, Any], usage: Usage) -> None:
    told = _read(200, answer(**said))
    names = ("input_tokens", "cached_tokens", "cache_write_tokens", "output_tokens")
    for name in (*names, "reasoning_tokens"):
        assert getattr(told.usage, name) == getattr(usage, name), name
    assert told.text == "3 holds were released."


@pytest.mark.parametrize(
    ("status", "raw", "trouble"),
    [
        (200, b"[]", "the answer is no JSON object"),
        (200, b"\xff\xfe", "the answer is no JSON object"),
        (200, b'{"model": NaN}', "the answer is no JSON object"),
        (200, b'{"usage": {"prompt_tokens": 1e999}}', "the answer is no JSON object"),
        (200, b"[" * 100_000, "the answer is no JSON object"),
        (200, b'{"choices": [null]}', "the answer has no message"),
        (200, b'{"choices": [{"message": {"content": [1]}}]}', "the message has no text"),
        (204, b"", "the endpoint answered 204"),
        (503, b'{"error": "sk-1"}', "the endpoint answered 503"),
        (400, b'{"error": {"code": "bad_model"}}', "the endpoint answered 400 (bad_model)"),
        (401, b'{"error": {"code": "sk-Secret1"}}', "the endpoint answered 401"),
    ],
)
def test_what_is_no_answer_is_told_in_words_of_ours(status: int, raw: bytes, trouble: str) -> None:
    told = _read(status, raw)
    assert (told.text, told.trouble) == (None, trouble)


def test_what_a_row_cannot_hold_is_not_kept() -> None:
    told = _read(200, answer(model="a\x00b\ud800" + "x" * 500, usage={"x": "y" * 9_000}))
    assert told.model == "a?b?" + "x" * 196
    assert told.usage.raw is None


def test_a_thought_is_no_part_of_the_text() -> None:
    raw = answer().replace(b"3 holds", b"<think>3 or 4?</think>3 holds")
    assert _read(200, raw).text == "3 holds were released."


def test_openai_is_asked_in_its_newer_words() -> None:
    summarizer = OpenAiSummarizer("https://api.openai.com/v1/", "k", "m")
    body = summarizer._body("p", "f", 77)
    summarizer.close()
    assert body["max_completion_tokens"] == 77
    assert not {"max_tokens", "temperature"} & body.keys()


@pytest.mark.parametrize("key", ["", "two words", "line\nend", "ключ"])
def test_a_key_that_no_header_can_hold_is_refused_and_not_shown(key: str) -> None:
    with pytest.raises(UsageError, match=r"summary\.key") as refused:
        OpenAiSummarizer("https://api.openai.com/v1", key, "m")
    assert not key or key not in str(refused.value)


def test_a_certificate_that_nobody_vouches_for_gets_nothing() -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)
    with model_server(context) as server:
        told = server.connect().tell("p", "f", 7)
        assert (told.text, told.trouble) == (None, "the endpoint cannot be reached")
        assert server.requests() == []


def test_a_host_that_cannot_be_asked_for_is_told() -> None:
    summarizer = OpenAiSummarizer("https://../v1", None, "m", seconds=1.0)
    assert summarizer.tell("p", "f", 10).trouble == "the endpoint cannot be reached"
    summarizer.close()


def test_no_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    with model_server() as server:
        with pytest.raises(httpx.ConnectError):  # so it would be taken
            httpx.get(server.url)
        assert server.connect().tell("p", "f", 7).text is not None
