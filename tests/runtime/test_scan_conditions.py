"""Conditions on Arrow columns beside the same evaluated row by row, with SQL's three truths."""

from __future__ import annotations

import math
import struct
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from runtime.scan import conditions as c
from runtime.scan.pruning import Bounds, may_hold
from runtime.scan.truth import Rows

FLOATS = [None, 0.0, -0.0, 1.5, -2.0, math.nan, math.inf, -math.inf]
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "i": (pa.int32(), [None, -1, 0, 3]),
    "l": (pa.int64(), [None, -(2**63), 0, 3, 2**63 - 1]),
    "d": (pa.float64(), FLOATS),
    "f": (pa.float32(), FLOATS),
    "s": (pa.string(), [None, "", "a", "ab", "é", "💧"]),
    "e": (pa.dictionary(pa.int32(), pa.string()), [None, "", "a", "ab", "é", "💧"]),
    "b": (pa.bool_(), [None, True, False]),
}
OF_ONE_KIND = (("i", "l"), ("d", "f"), ("s", "e"), ("b",))


def equal(one: Any, other: Any) -> bool:
    return one == other or (one != one and other != other)


def less(one: Any, other: Any) -> bool:
    if isinstance(one, str):
        return one.encode() < str(other).encode()
    return one == one if other != other else one < other


def computed(op: str, one: Any, other: Any, type: str) -> Any:
    """As Java computes: whole numbers are divided towards 0; a FLOAT is the nearest after each step, to which a step in
    DOUBLE and then to the nearest leads, too."""
    if type == "int64":
        return {"+": one + other, "-": one - other, "*": one * other, "%": math.fmod(one, other)}[op]
    made = {"+": one + other, "-": one - other, "*": one * other, "/": one / other if other else math.nan}[op]
    return made if type == "float64" else struct.unpack("f", struct.pack("f", made))[0]


def value_of(value: c.Value, row: dict[str, Any]) -> Any:
    match value:
        case c.Column(name):
            return row[name]
        case c.Constant(known):
            return known
        case c.Widened(inner, to):
            held = value_of(inner, row)
            return None if held is None else float(held) if to == "float64" else held
        case c.Absolute(inner):
            held = value_of(inner, row)
            return None if held is None else abs(held)
        case c.Arithmetic(op, left, right, type):
            one, other = value_of(left, row), value_of(right, row)
            return None if one is None or other is None else computed(op, one, other, type)
    raise AssertionError(value)


def truth(test: c.Test, row: dict[str, Any]) -> bool | None:
    match test:
        case c.And(parts):
            found = [truth(part, row) for part in parts]
            return False if False in found else None if None in found else True
        case c.Or(parts):
            found = [truth(part, row) for part in parts]
            return True if True in found else None if None in found else False
        case c.Not(inner):
            found_ = truth(inner, row)
            return None if found_ is None else not found_
        case c.IsNull(value):
            return value_of(value, row) is None
        case c.Flag(value):
            return value_of(value, row)  # type: ignore[no-any-return]
        case c.In(value, among):
            held = value_of(value, row)
            return None if held is None else any(equal(held, constant.value) for constant in among)
        case c.Matches(how, value, text):
            held = value_of(value, row)
            if held is None:
                return None
            return {"starts": held.startswith(text), "ends": held.endswith(text), "contains": text in held}[how]
        case c.Compare(op, left, right):
            one, other = value_of(left, row), value_of(right, row)
            if op == "<=>":
                return (one is None and other is None) or (None not in (one, other) and equal(one, other))
            if one is None or other is None:
                return None
            same, below = equal(one, other), less(one, other)
            return {"=": same, "<": below, "<=": below or same, ">": not below and not same, ">=": not below}[op]
    raise AssertionError(test)


@st.composite
def asked(draw: st.DrawFn, depth: int) -> c.Test:
    if depth and draw(st.booleans()):
        inner = asked(depth - 1)
        kind = draw(st.sampled_from([c.And, c.Or, c.Not]))
        return c.Not(draw(inner)) if kind is c.Not else kind(tuple(draw(st.lists(inner, min_size=1, max_size=3))))
    names = draw(st.sampled_from(OF_ONE_KIND))
    name = draw(st.sampled_from(names))
    known = [value for value in VALUES[name][1] if value is not None]
    column: c.Value = c.Column(name)
    if name in ("i", "f") and draw(st.booleans()):
        column = c.Widened(column, "int64" if name == "i" else "float64")
    if name in ("i", "d", "f") and draw(st.booleans()):
        op = draw(st.sampled_from(["+", "-", "*", "%" if name == "i" else "/"]))
        by = c.Constant(draw(st.sampled_from([3, -7] if name == "i" else [0.5, -8.0, math.inf, math.nan])))
        wide = isinstance(column, c.Widened) and name == "f"
        type = "int64" if name == "i" else "float64" if name == "d" or wide else "float32"
        column = c.Arithmetic(op, column, by, type)  # type: ignore[arg-type]
        column = c.Absolute(column) if draw(st.booleans()) else column
    constant = c.Constant(draw(st.sampled_from(known)))
    other = draw(st.sampled_from([constant, c.Column(draw(st.sampled_from(names)))]))
    op = draw(st.sampled_from(["=", "<", "<=", ">", ">=", "<=>"]))
    made = [c.Compare(op, column, other), c.IsNull(column)]  # type: ignore[arg-type]
    made.append(c.In(column, tuple(map(c.Constant, draw(st.lists(st.sampled_from(known), min_size=1, max_size=3))))))
    if name in ("s", "e"):
        how = draw(st.sampled_from(["starts", "ends", "contains"]))
        made.append(c.Matches(how, column, draw(st.sampled_from(["", "a", "b", "é"]))))  # type: ignore[arg-type]
    if name == "b":
        made = [c.Flag(column), c.IsNull(column), c.Compare("=", column, constant), c.Flag(constant)]
    return draw(st.sampled_from(made))


rows = st.lists(
    st.fixed_dictionaries({name: st.sampled_from(values) for name, (_, values) in VALUES.items()}), max_size=6
)


@given(asked(2), rows)
def test_each_row(test: c.Test, rows: list[dict[str, Any]]) -> None:
    columns = {name: pa.array([row[name] for row in rows], kind) for name, (kind, _) in VALUES.items()}
    # A column of a file is often a piece of a longer one.
    shifted = {
        name: pa.concat_arrays([array.slice(0, 1), array]).slice(min(1, len(rows))) for name, array in columns.items()
    }
    for given_ in (columns, shifted):
        found = Rows(given_, len(rows)).truth(test)
        assert found.true.tolist() == [truth(test, row) is True for row in rows]
        assert found.false.tolist() == [truth(test, row) is False for row in rows]


def test_what_a_condition_reads() -> None:
    test = c.And((c.Not(c.Compare("=", c.Widened(c.Column("i"), "int64"), c.Column("l"))), c.Flag(c.Column("b"))))
    assert c.columns_of(test) == {"i", "l", "b"}


@given(asked(2), rows)
def test_what_is_pruned_holds_nowhere(test: c.Test, rows: list[dict[str, Any]]) -> None:
    known = {}
    for name in ("i", "l", "d", "f", "s", "e"):
        values = [row[name] for row in rows]
        some = [value for value in values if value is not None and value == value]
        if some:
            known[name] = Bounds(min(some), max(some), None in values, name in ("d", "f"))
    if not may_hold(test, known):
        assert not any(truth(test, row) for row in rows)


def test_what_is_pruned() -> None:
    known = {"i": Bounds(0, 3, False, False), "s": Bounds("a", "c", True, False), "d": Bounds(0.0, 1.0, False, True)}
    i, s, d = c.Column("i"), c.Column("s"), c.Column("d")
    nowhere = [
        c.Compare("=", i, c.Constant(4)), c.Compare("<", i, c.Constant(0)), c.Compare(">", i, c.Constant(3)),
        c.In(s, (c.Constant("A"), c.Constant("d"))), c.IsNull(i), c.Compare("<", d, c.Constant(0.0)),
        c.And((c.Compare("=", i, c.Constant(4)), c.IsNull(s))), c.Or((c.IsNull(i), c.Compare("=", s, c.Constant("")))),
    ]  # fmt: skip
    somewhere = [c.Compare(">", d, c.Constant(2.0)), c.IsNull(s), c.Compare("=", c.Column("x"), c.Constant(1))]
    assert not any(may_hold(test, known) for test in nowhere)
    assert all(may_hold(test, known) for test in somewhere)
