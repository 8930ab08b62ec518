"""runtime.partition.order: Spark's order of values, as numbers; sorting rows; grouping keys."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import random
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.partition.order import (
    as_clock,
    codes,
    combined,
    float_codes,
    group_ids,
    has_clock,
    sorted_rows,
    stable_order,
)
from runtime.task import OrderColumn

D = decimal.Decimal
NAN, INF = math.nan, math.inf
UTC = dt.UTC
STRUCT = pa.struct([("a", pa.int32()), ("b", pa.string())])

# A type and its values in Spark's ascending order, NULL left out.
ASCENDING: list[tuple[pa.DataType, list[Any]]] = [
    (pa.int8(), [-128, -1, 0, 127]),
    (pa.int16(), [-(2**15), 0, 2**15 - 1]),
    (pa.int32(), [-(2**31), -1, 0, 2**31 - 1]),
    (pa.int64(), [-(2**63), -1, 0, 2**63 - 1]),
    (pa.float32(), [-INF, -1.5, 0.0, 1e-30, INF, NAN]),
    (pa.float64(), [-INF, -1e300, -1e-300, 0.0, 5e-324, 1.5, INF, NAN]),
    (pa.bool_(), [False, True]),
    (pa.string(), ["", "A", "Z", "a", "aa", "b", "é", "\uffee", "\U0001f600"]),
    (pa.binary(), [b"", b"\x00", b"\x00\x00", b"\x7f", b"\x80", b"\xff"]),
    (pa.decimal128(9, 2), [D("-9999999.99"), D("-0.01"), D("0.00"), D("3.10"), D("9999999.99")]),
    (pa.decimal128(38, 0), [D(-(10**38) + 1), D(-(2**64)), D(-1), D(0), D(2**64), D(10**38 - 1)]),
    (pa.timestamp("us", "UTC"), [dt.datetime(year, 1, 1, tzinfo=UTC) for year in (1, 1970, 9999)]),
    (pa.timestamp("us"), [dt.datetime(1960, 1, 1), dt.datetime(1970, 1, 1, 0, 0, 0, 1)]),
    (pa.date32(), [dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date(9999, 12, 31)]),
    (pa.duration("us"), [dt.timedelta(-1), dt.timedelta(0), dt.timedelta(microseconds=1)]),
    (STRUCT, [{"a": None, "b": "z"}, {"a": 1, "b": None}, {"a": 1, "b": ""}, {"a": 2, "b": None}]),
    (pa.list_(pa.float64()), [[], [None], [0.0], [0.0, 1.0], [1.0], [NAN]]),
    (pa.list_(pa.struct([("x", pa.binary())])), [[], [{"x": None}], [{"x": b"a"}], [{"x": b"b"}]]),
]  # fmt: skip
IDS = [str(kind) for kind, _ in ASCENDING]


def permutation(column: pa.Array | pa.ChunkedArray, nulls_last: bool = False) -> list[int]:
    return [int(i) for i in np.lexsort(codes(column, nulls_last)[::-1])]


@pytest.mark.parametrize(("kind", "values"), ASCENDING, ids=IDS)
@pytest.mark.parametrize("nulls", ["none", "first", "last"])
@pytest.mark.parametrize("cut", [False, True])
def test_codes_sort_as_spark_does(kind: pa.DataType, values: list[Any], nulls: str, cut: bool) -> None:
    order = [*range(len(values))]
    random.Random(1).shuffle(order)
    shuffled = [values[i] for i in order] + [None] * (nulls != "none")
    if cut:  # a slice with an offset, in chunks
        whole = pa.array([values[0], *shuffled], kind).slice(1)
        column: Any = pa.chunked_array([whole.slice(0, 2), whole.slice(2)])
    else:
        column = pa.array(shuffled, kind)
    places = permutation(column, nulls == "last")
    if nulls != "none":
        null = len(values)
        assert places[0 if nulls == "first" else -1] == null
        places.remove(null)
    assert [order[i] for i in places] == list(range(len(values)))


@pytest.mark.parametrize(("kind", "values"), ASCENDING, ids=IDS)
def test_group_ids_are_equal_for_equal_values_only(kind: pa.DataType, values: list[Any]) -> None:
    column = pa.array([*values, None, *values, None], kind)
    ids = group_ids([column], len(column))
    half = len(values) + 1
    assert ids[:half].tolist() == ids[half:].tolist()
    assert len(set(ids.tolist())) == half


def test_zeros_and_nans_are_one_key_each() -> None:
    other_nan = np.array([0x7FF8000000000001, -(2**51) + 1], np.int64).view(np.float64)
    for column in (pa.array([0.0, -0.0, NAN, *other_nan]), pa.array([[0.0], [-0.0], [NAN], [NAN], [-NAN]])):
        ids = group_ids([column], 5).tolist()
        assert ids[0] == ids[1]
        assert ids[2] == ids[3] == ids[4] != ids[0]


@given(st.lists(st.tuples(st.sampled_from([None, 0, 1, 2]), st.sampled_from([None, "", "a", "é"]), st.booleans())))
def test_group_ids_of_several_columns(rows: list[tuple[Any, ...]]) -> None:
    kinds = (pa.int32(), pa.string(), pa.bool_())
    columns = [pa.array([row[i] for row in rows], kind) for i, kind in enumerate(kinds)]
    ids = group_ids(list(columns), len(rows)).tolist()
    assert len(set(zip(ids, rows, strict=True))) == len(set(ids)) == len(set(rows))


@given(st.lists(st.floats(width=64)))
def test_float_codes_compare_as_sparks_doubles(values: list[float]) -> None:
    def key(value: float) -> tuple[bool, float]:
        return (True, 0.0) if math.isnan(value) else (False, value + 0.0)

    coded = float_codes(np.array(values, np.float64)).tolist()
    by_code = sorted(range(len(values)), key=coded.__getitem__)
    assert by_code == sorted(range(len(values)), key=lambda i: key(values[i]))
    for i, j in pairwise(range(len(values))):
        assert (coded[i] == coded[j]) == (key(values[i]) == key(values[j]))


# ---------------------------------------------------------------- clocks


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array([dt.datetime(1969, 12, 31, 23, 59, 59, 999999, UTC)], pa.timestamp("us", "UTC")), [-1]),
        (pa.array([dt.datetime(1970, 1, 1, 0, 0, 1)], pa.timestamp("us")), [1_000_000]),
        (pa.array([dt.date(1969, 12, 31), dt.date(1970, 1, 2)]), [-1, 1]),
        (pa.array([D("-1.25"), D("10.00")], pa.decimal128(18, 2)), [-125, 1000]),
        (pa.array([D("9"), D("-1.25"), D("10.00")], pa.decimal128(18, 2)).slice(1), [-125, 1000]),
        (pa.array([-(2**63), 2**63 - 1]), [-(2**63), 2**63 - 1]),
        (pa.array([1, 2], pa.int8()), [1, 2]),
        (pa.array([0.5, -INF]), [0.5, -INF]),
    ],
)
def test_clocks(column: pa.Array, expected: list[Any]) -> None:
    assert as_clock(column).tolist() == expected
    assert as_clock(pa.chunked_array([column.slice(0, 1), column.slice(1)])).tolist() == expected


@pytest.mark.parametrize(
    "kind", [pa.int64(), pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.date32(), pa.decimal128(18, 0)]
)
def test_a_null_does_not_make_the_others_inexact(kind: pa.DataType) -> None:
    """Rows that only carry counts have no time (runtime.numbering)."""
    large = 2**31 - 1 if kind == pa.date32() else 2**53 + 1
    if pa.types.is_decimal(kind):
        column = pa.array([D(large), None], kind)
    else:
        column = pa.array([large, None], pa.int32() if kind == pa.date32() else pa.int64()).view(kind)
    clock = as_clock(column)
    assert clock.dtype == np.int64
    assert clock[0] == large


def test_which_types_are_clocks() -> None:
    clocks = pa.int8(), pa.float32(), pa.date32(), pa.timestamp("us"), pa.decimal128(18, 3)
    assert all(map(has_clock, clocks))
    assert not any(has_clock(kind) for kind in (pa.decimal128(19, 3), pa.string(), pa.bool_(), pa.list_(pa.int8())))


# ---------------------------------------------------------------- rows in order


CELLS = st.tuples(st.integers(-3, 3), st.integers(0, 2), st.sampled_from([None, "", "b"]), st.floats(width=32))


@given(st.lists(CELLS, max_size=40))
def test_sorted_rows(rows: list[tuple[int, int, str | None, float]]) -> None:
    table = pa.table(
        {"s": pa.array([row[2] for row in rows], pa.string()), "f": pa.array([row[3] for row in rows], pa.float32())}
    )
    keys, first = (np.array([row[i] for row in rows], np.int64) for i in (1, 0))
    order = sorted_rows(table, keys, first, (OrderColumn("s", nulls_last=True), OrderColumn("f")))

    def key(i: int) -> tuple[Any, ...]:
        time, group, text, number = rows[i]
        nan = math.isnan(number)
        return group, time, text is None, text or "", nan, 0.0 if nan else number + 0.0

    assert [key(i) for i in order] == sorted(map(key, range(len(rows))))
    assert sorted(order.tolist()) == list(range(len(rows)))


@pytest.mark.parametrize("spread", [5, 1 << 15, (1 << 16) - 1, 1 << 16, 1 << 62])
@pytest.mark.parametrize("offset", [0, -7, -(2**63), 2**62 - 1])
def test_stable_order(spread: int, offset: int) -> None:
    chance = random.Random(spread + offset)
    values = [offset + chance.choice((0, spread // 2, spread, chance.randint(0, spread))) for _ in range(200)]
    order = stable_order(np.array(values, np.int64)).tolist()
    assert order == sorted(range(200), key=values.__getitem__)


def test_extreme_keys_sort() -> None:
    first = np.array([2**63 - 1, -(2**63), 0], np.int64)
    keys = np.array([-(2**63), 2**63 - 1, -(2**63)], np.int64)
    assert sorted_rows(pa.table({}), keys, first, ()).tolist() == [2, 0, 1]


def test_no_rows() -> None:
    empty = pa.table({"a": pa.array([], pa.string()), "n": pa.chunked_array([], pa.list_(pa.int32()))})
    assert group_ids([empty["a"], empty["n"]], 0).tolist() == []
    assert sorted_rows(empty, None, np.zeros(0, np.int64), (OrderColumn("a"),)).tolist() == []
    assert len(combined(empty["n"])) == 0
