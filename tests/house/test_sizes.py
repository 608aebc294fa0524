"""Functions and files stay small enough to be read in one go."""

from __future__ import annotations

import statistics

from tests.house import source

MEDIAN_LINES = 8
NINETIETH_LINES = 25
LONGEST_LINES = 50
FILE_LINES = 400


def test_functions_are_short_on_the_whole() -> None:
    lengths = sorted(function.lines for function in source.functions(source.PACKAGE))
    if not lengths:
        return
    assert statistics.median(lengths) <= MEDIAN_LINES
    assert lengths[int(len(lengths) * 0.9)] <= NINETIETH_LINES


def test_no_function_is_long() -> None:
    long = [
        f"{function.place}: {function.lines} lines"
        for function in source.functions(source.PACKAGE, source.TESTS)
        if function.lines > LONGEST_LINES
    ]
    assert not long


def test_no_file_is_long() -> None:
    paths = source.python_files(source.PACKAGE, source.TESTS) + source.sql_files()
    counts = {source.relative(path): len(path.read_text().splitlines()) for path in paths}
    assert not {place: lines for place, lines in counts.items() if lines > FILE_LINES}
