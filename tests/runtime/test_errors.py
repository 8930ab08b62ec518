"""The root of all errors: conditions, places, carets, and their way to other processes."""

from __future__ import annotations

import pickle

import pytest

from runtime.errors import (
    MOST_QUOTED,
    CersqlError,
    Condition,
    ExecutionError,
    InternalError,
    Span,
    line_and_column,
    pointer,
    short_lines,
)


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


@pytest.mark.parametrize("offset", [0, 3, 500_000, 999_999, 1_000_000])
def test_of_a_long_line_the_part_around_the_caret_is_shown(offset: int) -> None:
    letters = "".join(chr(0x4E00 + i % 20_000) for i in range(1_000_000))
    line, caret = pointer(f"first\n{letters}\nlast", 6 + offset).split("\n")
    assert len(line) <= MOST_QUOTED + 2
    assert (line + " ")[len(caret) - 1].strip("…") == letters[offset : offset + 1] or offset == 1_000_000
    assert line.startswith("…") == (offset > MOST_QUOTED)
    assert line.endswith("…") == (offset < 1_000_000 - MOST_QUOTED)


def test_a_text_with_short_lines() -> None:
    text = f"SELECT\n{'x' * 1000}!{'y' * 1000}\n{'z' * 1000}"
    shown, column = short_lines(text, text.index("!"))
    first, second, third = shown.split("\n")
    assert (first, second[column], third) == ("SELECT", "!", "z" * MOST_QUOTED + "…")
    assert short_lines("a\nbc", 3) == ("a\nbc", 1)


def test_a_very_long_name_is_shortened() -> None:
    error = CersqlErrorWithName("LONG", name="x" * 1_000_000, hint="y" * 1_000_000)
    assert len(str(error)) < 3_000
    assert " … " in error.message
    assert error.parameters["name"] == "x" * 1_000_000  # for programs


class CersqlErrorWithName(CersqlError):
    conditions = {"LONG": Condition("42000", "There is no {name}.")}


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
