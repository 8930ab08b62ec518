"""The root of all errors: conditions, places, carets, and their way to other processes."""

from __future__ import annotations

import pickle

import pytest

from runtime.errors import CersqlError, ExecutionError, InternalError, Span, line_and_column, pointer


@pytest.mark.parametrize(
    ("text", "offset", "line", "column"),
    [
        ("", 0, 1, 1), ("abc", 0, 1, 1), ("abc", 3, 1, 4), ("abc", 99, 1, 4), ("abc", -5, 1, 1),
        ("a\nbc", 2, 2, 1), ("a\nbc", 1, 1, 2), ("a\r\nbc", 4, 2, 2), ("\n\n", 2, 3, 1), ("é\n🙂x", 3, 2, 2),
    ],
)  # fmt: skip
def test_line_and_column(text: str, offset: int, line: int, column: int) -> None:
    assert line_and_column(text, offset) == (line, column)


@pytest.mark.parametrize(
    ("text", "offset", "shown"),
    [
        ("WHERE x", 6, "WHERE x\n      ^"),
        ("a\n\tb c\nd", 5, "\tb c\n\t  ^"),
        ("a b\r\nc", 2, "a b\n  ^"),
        ("abc", 3, "abc\n   ^"),
        ("a\n", 2, "\n^"),
    ],
)
def test_pointer(text: str, offset: int, shown: str) -> None:
    assert pointer(text, offset) == shown


def test_spans_join() -> None:
    assert Span(5, 7) | Span(1, 6) == Span(1, 7)


def test_text_of_an_error() -> None:
    error = ExecutionError("STATE_LIMIT", found=5, limit=4, hint="Shorten it.", span=Span(2, 3))
    assert (error.line, error.column) == (None, None)
    assert str(error) == "[STATE_LIMIT] The automaton's subsets grew to 5 states, the limit is 4.\nShorten it."
    assert error.at("a\nbc", Span(0, 1)) is error  # its own place stays
    assert (error.line, error.column) == (2, 1)
    assert str(error).endswith("(line 2, column 1)\nShorten it.\n\nbc\n^")
    error.at("another text")
    assert error.text == "a\nbc"


def test_unknown_conditions_are_a_mistake_of_ours() -> None:
    with pytest.raises(ValueError, match="has no condition 'NO_SUCH'"):
        ExecutionError("NO_SUCH")


@pytest.mark.parametrize("error", [
    ExecutionError("STATE_LIMIT", found=5, limit=4, hint="Shorten it.", span=Span(2, 3), text="abc"),
    InternalError("INTERNAL", detail="x"),
])  # fmt: skip
def test_pickle(error: CersqlError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), again.condition, again.sqlstate, str(again)) == (
        type(error), error.condition, error.sqlstate, str(error),
    )  # fmt: skip
