"""What tests of binding share: schemas, bound queries, and errors with their place marked in the text by ‸."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from cersql.api import SchemaCatalog
from cersql.binding.bind import bind
from cersql.language.parse import parse
from planner import cel
from planner.formula import Formula
from planner.query import Query
from runtime.errors import MOST_QUOTED, CersqlError, line_and_column

SCHEMAS: dict[str, dict[str, str]] = {
    # a table with a column of types
    "t": {
        "ts": "timestamp", "type": "string", "k": "int", "v": "double", "w": "double", "name": "string",
        "s": "struct<f:int,g:struct<h:int>>", "arr": "array<int>", "m": "map<string,int>", "odd.name": "int",
        "end": "int", "date": "date",
    },
    # three without one
    "orders": {"ts": "timestamp", "id": "int", "price": "double"},
    "payments": {"ts": "timestamp", "id": "int", "paid": "double"},
    "ticks": {"n": "bigint", "day": "date", "x": "double", "d": "decimal(10,2)", "wide": "decimal(30,2)", "s": "string",
              "var": "variant", "at": "timestamp_ntz", "i": "interval day to second"},
}  # fmt: skip


def bound(text: str, schemas: Mapping[str, Mapping[str, str]] = SCHEMAS, case_sensitive: bool = False) -> Query:
    """The bound query."""
    return bind(parse(text), SchemaCatalog(schemas, case_sensitive))


def where(condition: str, pattern: str = "A a ; B b", before: str = "FROM t") -> str:
    """A query with this WHERE."""
    return f"{before} PATTERN {pattern} WHERE {condition} ORDER BY ts RETURN *"


def filters(formula: Formula) -> str:
    """A formula in one line, types by the variables they mark: `(a ; b) | a: v > 1`, OR between brackets."""
    match formula:
        case cel.Event(type, marks):
            return "+".join(sorted(m for m in marks if not m.startswith("@"))) or type or "ANY"
        case cel.Filter(inner, variable, predicate):
            return f"{filters(inner)} | {variable}: {predicate.sql.replace('`', '')}"
        case cel.FilterAny(inner, sides):
            texts = (f"{variable}: {predicate.sql.replace('`', '')}" for variable, predicate in sides)
            return f"{filters(inner)} | [{'] OR ['.join(texts)}]"
        case cel.Or(left, right):
            return f"[{filters(left)}] OR [{filters(right)}]"
        case cel.Sequence(left, right):
            return f"({filters(left)} ; {filters(right)})"
        case cel.Contiguous(left, right):
            return f"({filters(left)} : {filters(right)})"
        case cel.Iteration(inner):
            return f"{filters(inner)}+"
        case cel.ContiguousIteration(inner):
            return f"{filters(inner)}:+"
        case cel.As(inner, variable):
            return f"({filters(inner)} AS {variable})"
    raise TypeError(formula)


def check_error(
    marked: str, condition: str, *fragments: str, schemas: Mapping[str, Mapping[str, str]] = SCHEMAS,
    case_sensitive: bool = False,
) -> CersqlError:  # fmt: skip
    """The text has this error where ‸ stands; the fragments are parts of its message and hint."""
    place = marked.index("‸")
    text = marked.replace("‸", "")
    with pytest.raises(CersqlError) as raised:
        bound(text, schemas, case_sensitive)
    check_place(raised.value, text, place, condition, *fragments)
    return raised.value


def check_place(error: CersqlError, text: str, place: int, condition: str, *fragments: str) -> None:
    """Condition, line, column, the caret under the character at `place`, and fragments of message and hint."""
    shown = str(error)
    assert (error.condition, (error.line, error.column)) == (condition, line_and_column(text, place)), shown
    line, caret = shown.split("\n")[-2:]
    assert caret.strip() == "^", shown
    whole, column = text.split("\n")[(error.line or 0) - 1], (error.column or 0) - 1
    if len(whole) > MOST_QUOTED:
        assert line.strip("…") in whole
        assert line[caret.index("^") :].strip("…") == whole[column:][: len(line[caret.index("^") :].strip("…"))]
    else:
        assert (line, caret.index("^")) == (whole, column)
    for fragment in fragments:
        assert fragment in f"{error.message} {error.hint}", shown
