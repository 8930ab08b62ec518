"""The cases of tests/cases/*.toml: queries with their streams and matches, in terms that know no engine.

A file has entries

    [[case]]
    name = "gap-allowed"
    query = "FROM events PATTERN A a ; B b ORDER BY ts, id RETURN *"
    columns = ["type", "v"]         # what the words of a row in `stream` are; this is the default
    stream = ["A 1", "C NULL", "B 3"]
    matches = [{ a = [0], b = [2] }]

A row may be a table instead, `{ type = "A", v = 1.5, ts = 3, key = 2 }`. Columns are `id` (the row's number), `type`,
`ts`, `v` and `key`; what a row does not give is: `ts` its number, `key` 0, `v` and `type` NULL. The word NULL is NULL.
A match gives for each variable that RETURN * would show the ids of its events; a variable that it leaves out is empty.
The order of matches means nothing.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlglot
from sqlglot import exp

CASES = Path(__file__).parent / "cases"
SCHEMA = {"id": "bigint", "type": "string", "ts": "bigint", "v": "double", "key": "int"}

Row = dict[str, Any]
CaseMatch = frozenset[tuple[str, tuple[int, ...]]]  # (variable, ids of its events, ascending), without empty ones


@dataclass(frozen=True)
class Case:
    """One case; `rows` are in the stream's order, with all columns of SCHEMA."""

    file: str
    name: str
    query: str
    rows: tuple[Row, ...]
    matches: tuple[CaseMatch, ...]

    @property
    def id(self) -> str:
        return f"{self.file}:{self.name}"

    def tuples(self) -> list[tuple[Any, ...]]:
        """The rows as tuples in the order of SCHEMA, as `spark.createDataFrame` takes them."""
        return [tuple(row[column] for column in SCHEMA) for row in self.rows]


def case_match(bound: Mapping[str, Any]) -> CaseMatch:
    """A match from variable → ids, in the form that compares."""
    return frozenset((variable, tuple(sorted(ids))) for variable, ids in bound.items() if ids)


def spark_schema() -> str:
    """SCHEMA as a DDL string."""
    return ", ".join(f"`{column}` {type}" for column, type in SCHEMA.items())


def _value(column: str, word: str) -> Any:
    if word == "NULL":
        return None
    if column == "type":
        return word
    return float(word) if column == "v" else int(word)


def _row(number: int, columns: list[str], given: str | Mapping[str, Any]) -> Row:
    if isinstance(given, str):
        words = given.split()
        if len(words) > len(columns):
            raise ValueError(f"row {number} has {len(words)} words for {len(columns)} columns: {given!r}")
        given = {column: _value(column, word) for column, word in zip(columns, words, strict=False)}
    unknown = set(given) - set(SCHEMA)
    if unknown:
        raise ValueError(f"row {number} has unknown columns: {sorted(unknown)}")
    row = {"id": number, "type": None, "ts": number, "v": None, "key": 0, **given}
    row["v"] = None if row["v"] is None else float(row["v"])
    return {column: row[column] for column in SCHEMA}


def _case(file: str, entry: Mapping[str, Any]) -> Case:
    unknown = set(entry) - {"name", "query", "columns", "stream", "matches"}
    if unknown:
        raise ValueError(f"{file}: {entry.get('name')}: unknown fields {sorted(unknown)}")
    columns = list(entry.get("columns", ["type", "v"]))
    rows = tuple(_row(number, columns, given) for number, given in enumerate(entry["stream"]))
    matches = tuple(case_match(match) for match in entry["matches"])
    return Case(file, entry["name"], entry["query"].strip(), rows, matches)


def parse_cases(file: str, text: str) -> list[Case]:
    """The cases in the text of a file."""
    return [_case(file, entry) for entry in tomllib.loads(text)["case"]]


def load_cases() -> list[Case]:
    """All cases, by file and in the order of each file."""
    paths = sorted(CASES.glob("*.toml"))
    return [case for path in paths for case in parse_cases(path.stem, path.read_text(encoding="utf-8"))]


# ---------------------------------------------------------------- conditions, as Spark reads them (a small part)


def holds(sql: str, row: Row) -> bool:
    """Whether a condition on one row is TRUE. Comparisons, IN, IS NULL, AND, OR, NOT; NULL is not TRUE."""
    return evaluate(sqlglot.parse_one(sql, read="spark"), row) is True


def evaluate(node: exp.Expression, row: Row) -> Any:
    """The value of an expression on one row, with SQL's NULLs (None)."""
    match node:
        case exp.Paren() | exp.Cast():
            return evaluate(node.this, row)
        case exp.Column():
            by_name = {column.casefold(): value for column, value in row.items()}
            return by_name[node.name.casefold()]
        case exp.Null():
            return None
        case exp.Boolean():
            return bool(node.this)
        case exp.Literal():
            return node.this if node.is_string else float(node.this)
        case exp.Neg():
            value = evaluate(node.this, row)
            return None if value is None else -value
        case exp.Is():
            return evaluate(node.this, row) is evaluate(node.expression, row)
        case exp.Not():
            value = evaluate(node.this, row)
            return None if value is None else not value
        case exp.And() | exp.Or():
            return _connect(node, evaluate(node.this, row), evaluate(node.expression, row))
        case exp.In():
            value = evaluate(node.this, row)
            equal = [_compare(exp.EQ, value, evaluate(item, row)) for item in node.expressions]
            return True if True in equal else None if None in equal else False
        case exp.Between():
            value = evaluate(node.this, row)
            low = _compare(exp.GTE, value, evaluate(node.args["low"], row))
            high = _compare(exp.LTE, value, evaluate(node.args["high"], row))
            return False if False in (low, high) else None if None in (low, high) else True
        case exp.NullSafeEQ():
            return evaluate(node.this, row) == evaluate(node.expression, row)
        case exp.Binary():
            return _compare(type(node), evaluate(node.this, row), evaluate(node.expression, row))
    raise NotImplementedError(f"the corpus's evaluator does not know {node.sql()!r} ({type(node).__name__})")


def _connect(node: exp.Expression, left: Any, right: Any) -> Any:
    decisive = isinstance(node, exp.Or)  # the value that decides alone
    if left is decisive or right is decisive:
        return decisive
    return None if left is None or right is None else not decisive


def _compare(operator: type[exp.Expression], left: Any, right: Any) -> Any:
    if left is None or right is None:
        return None
    operations = {
        exp.EQ: lambda: left == right,
        exp.NEQ: lambda: left != right,
        exp.LT: lambda: left < right,
        exp.LTE: lambda: left <= right,
        exp.GT: lambda: left > right,
        exp.GTE: lambda: left >= right,
        exp.Add: lambda: left + right,
        exp.Sub: lambda: left - right,
        exp.Mul: lambda: left * right,
        exp.Mod: lambda: left % right,
    }
    if operator not in operations:
        raise NotImplementedError(f"the corpus's evaluator does not know {operator.__name__}")
    return operations[operator]()
