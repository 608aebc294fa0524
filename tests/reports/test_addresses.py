from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freehold.domain.addresses import RECIPIENTS_MAX, read_address, read_addresses, sort_out
from freehold.domain.inventory_text import read_recipients
from freehold.domain.unsubscribing import token

GOOD = (
    "desk@harbour.example",
    "o'brien+report@xn--hfen-loa.example",
    "a@b",
    "x" * 64 + "@example.org",
    "first.last=tag@mail-1.example.org",
)
BAD = (
    "",
    "desk",
    "@example.org",
    "desk@",
    "desk@@example.org",
    "a@b@c",
    "Desk <desk@example.org>",
    "<desk@example.org>",
    '"desk"@example.org',
    "desk@example.org\r\nBcc: all@example.org",
    "desk@example.org\n",
    "desk\x00@example.org",
    "desk\x1c@example.org",
    "desk\u2028@example.org",
    "d\u202eesk@example.org",
    "d\u0435sk@example.org",  # a Cyrillic letter
    "desk@h\u00e4fen.example",
    "desk%other.example@example.org",
    "other.example!desk@example.org",
    "=?utf-8?q?desk?=@example.org",
    ".desk@example.org",
    "desk.@example.org",
    "de..sk@example.org",
    "desk@-example.org",
    "desk@example..org",
    "desk@example.org.",
    "desk@[127.0.0.1]",
    "desk(comment)@example.org",
    "desk@example.org,other@example.org",
    "desk @example.org",
    "{{7*7}}@example.org",
    "x" * 65 + "@example.org",
    "x@" + ".".join(["e" * 60] * 5),
)


@pytest.mark.parametrize("text", GOOD)
def test_a_plain_address_passes_as_it_is(text: str) -> None:
    assert read_address(text) == text


@pytest.mark.parametrize("text", BAD)
def test_what_is_no_plain_address_does_not_pass_and_is_not_repeated(text: str) -> None:
    with pytest.raises(ValueError, match="plain mail address") as refused:
        read_address(text)
    assert text == "" or text not in str(refused.value).replace("desk@harbour.example", "")


@given(st.text(max_size=80))
def test_what_passes_is_one_line_of_ascii_with_one_at(text: str) -> None:
    try:
        found = read_address(text)
    except ValueError:
        return
    assert found.isascii()
    assert found.isprintable()
    assert found.count("@") == 1
    assert not set(found) & set(' \t\r\n,;:<>()[]"\\')
    assert read_address(found) == found


def test_an_address_counts_once_and_case_of_the_domain_is_nothing() -> None:
    assert read_recipients("a@X.org; a@x.org,b@x.org a@x.ORG") == ("a@x.org", "b@x.org")
    assert read_recipients("  ") == ()


def test_there_is_an_end_to_recipients() -> None:
    many = [f"a{n}@x.org" for n in range(RECIPIENTS_MAX + 1)]
    assert len(read_addresses(many[1:])) == RECIPIENTS_MAX
    with pytest.raises(ValueError, match="at most 20"):
        read_addresses(many)


def test_stored_recipients_are_sorted_out() -> None:
    stored = ["a@X.org", "Desk <b@x.org>", "a@x.org", "c@x.org"]
    assert sort_out(stored) == (("a@x.org", "c@x.org"), ("Desk <b@x.org>",))
    many = [f"a{n}@x.org" for n in range(RECIPIENTS_MAX + 2)]
    assert sort_out(many) == (tuple(many[:-2]), tuple(many[-2:]))


def test_a_token_names_tenant_and_recipient_without_telling_them() -> None:
    tokens = {token("t", "a@x"), token("t", "b@x"), token("u", "a@x"), token("", "t\0a@x")}
    assert len(tokens) == 4
    assert token("t", "a@x") == token("t", "a@x")
    assert all(len(one) == 40 and int(one, 16) for one in tokens)
