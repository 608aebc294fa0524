"""The fast ways of the scan say what the slow ones say."""

from __future__ import annotations

import json

import psycopg
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from psycopg.adapt import Transformer
from psycopg.pq import Format

from freehold.adapters.sql.postgres import ArrayDumper
from freehold.domain.due_text import read_count, read_stamp
from freehold.domain.names import pack

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))


@given(
    st.from_regex(
        r"[0-9]{4}-[0-1][0-9]-[0-3][0-9] [0-2][0-9]:[0-6][0-9]:[0-6][0-9](\.[0-9]{1,6})?\+00",
        fullmatch=True,
    )
)
@example("2024-02-29 23:59:59.999999+00")
@example("2023-02-29 00:00:00+00")
@example("2023-01-01 24:00:00+00")
@example("0000-01-01 00:00:00+00")
def test_an_instant_as_printed_reads_like_any_other_spelling_of_it(text: str) -> None:
    assert read_stamp(text) == read_stamp(text.replace(" ", "T"))


@given(st.integers(0, 10**16), st.sampled_from([1, 1000]))
@example(253_402_300_798, 1)
@example(253_402_300_799, 1)
@example(253_402_300_800, 1)
@example(253_402_300_799_001, 1000)
@example(0, 1)
def test_a_whole_count_reads_like_one_with_a_fraction(units: int, per_second: int) -> None:
    assert read_count(str(units), per_second) == read_count(f"{units}.", per_second)


@given(st.lists(st.none() | st.text(st.characters(exclude_categories=["Cs"]))))
def test_packing_writes_compact_json(values: list[str | None]) -> None:
    assert pack(values) == json.dumps(values, ensure_ascii=False, separators=(",", ":"))


@given(st.lists(TEXT | st.none()))
@example([])
@example([""])
@example(["NULL", "{}", ",", '"', "\\"])
def test_an_array_literal_reads_back(values: list[str | None]) -> None:
    literal = ArrayDumper(list).dump(values)
    loader = Transformer().get_loader(psycopg.adapters.types["text"].array_oid, Format.TEXT)
    assert loader.load(literal) == values


@pytest.mark.parametrize("values", [["a\0b"], ["\0"], ["a", "\0"], [None, "a\0b"]])
def test_an_array_never_cuts_a_text_at_nul(values: list[str | None]) -> None:
    with pytest.raises(psycopg.DataError):
        ArrayDumper(list).dump(values)
