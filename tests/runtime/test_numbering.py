"""runtime.numbering: positions in an order that is cut into ranges, without bringing it together."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.numbering import number, place_in_ranges
from runtime.task import OrderColumn, Ranges

Row = tuple[int, int, str]  # ts, symbol, name


def batch(rows: Sequence[Row]) -> pa.RecordBatch:
    types = (("ts", pa.int64()), ("symbol", pa.int8()), ("name", pa.string()))
    return pa.RecordBatch.from_arrays(
        [pa.array([row[i] for row in rows], kind) for i, (_, kind) in enumerate(types)], [name for name, _ in types]
    )


def numbered(parts: Sequence[Sequence[Row]], span: int | None, dropped: tuple[str, ...] = ()) -> list[pa.RecordBatch]:
    """What the first pass of every range sends."""
    ranges = Ranges("to", "from", "at", len(parts), span)
    order = (OrderColumn("ts"), OrderColumn("name"))
    sent: list[pa.RecordBatch] = []
    for me, rows in enumerate(parts):
        sent += number(ranges, ("symbol",), None, order, dropped, me, iter([batch(rows[:2]), batch(rows[2:])]))
    return sent


def placed(sent: list[pa.RecordBatch], n: int, span: int | None) -> list[tuple[int, int, str, bool]]:
    """(target, position, name, mute) of what the second pass reads, in its order."""
    rows = pa.Table.from_batches(sent)
    order, keys, positions, mute = place_in_ranges(Ranges("to", "from", "at", n, span), rows)
    names = rows["name"].take(pa.array(order)).to_pylist()
    return list(zip(keys.tolist(), positions.tolist(), names, mute.tolist(), strict=True))


PARTS: list[list[Row]] = [
    [(2, 1, "c"), (1, 0, "b"), (1, 1, "a")],
    [],
    [(5, 0, "d")],
    [(7, 1, "f"), (6, 1, "e")],
]


def test_positions_go_on_from_range_to_range() -> None:
    found = placed(numbered(PARTS, span=1), 4, span=1)
    assert [(position, name) for _, position, name, mute in found if not mute] == [
        (0, "a"),
        (2, "c"),
        (4, "e"),
        (5, "f"),
    ]
    assert not any(mute for *_, mute in found)


@pytest.mark.parametrize(("span", "before"), [(2, []), (3, ["c"]), (4, ["c"]), (5, ["a", "c"]), (100, ["a", "c"])])
def test_a_range_is_sent_what_its_matches_can_span(span: int, before: list[str]) -> None:
    """The last range begins at position 4, and range 2 between has no row of interest."""
    found = placed(numbered(PARTS, span), 4, span)
    last = [(name, mute) for target, _, name, mute in found if target == 3]
    assert last == [(name, True) for name in before] + [("e", False), ("f", False)]


def test_an_unbounded_span_brings_all_to_one() -> None:
    found = placed(numbered(PARTS, None), 4, None)
    assert found == [(0, 0, "a", False), (0, 2, "c", False), (0, 4, "e", False), (0, 5, "f", False)]


def test_columns_that_only_sorted_are_dropped() -> None:
    sent = numbered(PARTS, 3, dropped=("name",))
    assert {tuple(batch.schema.names) for batch in sent} == {("ts", "symbol", "to", "from", "at")}


def test_markers_have_no_values() -> None:
    rows = pa.Table.from_batches(numbered(PARTS, 2))
    markers = [row for row in rows.to_pylist() if row["at"] < 0]
    assert {(row["ts"], row["symbol"], row["name"]) for row in markers} == {(None, None, None)}
    counts = {(row["to"], row["from"]): -1 - row["at"] for row in markers}
    assert counts == {(to, me): len(PARTS[me]) for me in (0, 2, 3) for to in range(me, 4)}


@pytest.mark.parametrize(
    "kind",
    [pa.map_(pa.string(), pa.int8()), pa.null(), pa.list_(pa.field("e", pa.int8(), nullable=False)), pa.duration("us")],
)
def test_payload_of_any_type_travels(kind: pa.DataType) -> None:
    rows = pa.RecordBatch.from_arrays(
        [pa.array([1, 2]), pa.array([1, 1], pa.int8()), pa.nulls(2, kind)],
        schema=pa.schema([pa.field("ts", pa.int64(), nullable=False), ("symbol", pa.int8()), ("payload", kind)]),
    )
    sent = list(number(Ranges("to", "from", "at", 1, 1), ("symbol",), None, (OrderColumn("ts"),), (), 0, iter([rows])))
    assert sum(batch.num_rows for batch in sent) == 3
    assert sent[0].schema.field("payload").type == kind


@given(
    st.lists(st.tuples(st.integers(0, 8), st.booleans()), max_size=30),
    st.lists(st.integers(0, 9), max_size=5),
    st.one_of(st.none(), st.integers(1, 12)),
)
def test_the_same_positions_wherever_the_order_is_cut(
    drawn: list[tuple[int, bool]], borders: list[int], span: int | None
) -> None:
    rows = [(ts, int(relevant), f"{n:02}") for n, (ts, relevant) in enumerate(drawn)]
    borders = [-1, *sorted(borders), 9]
    parts = [[row for row in rows if low < row[0] <= high] for low, high in pairwise(borders)]
    sent = numbered(parts, span)
    if not sent:
        return
    ordered = sorted(rows, key=lambda row: (row[0], row[2]))
    expected = [(position, row[2]) for position, row in enumerate(ordered) if row[1]]
    found = placed(sent, len(parts), span)
    assert [(position, name) for _, position, name, mute in found if not mute] == expected
    for _, position, name, mute in found:
        assert (position, name) in expected or not mute
    for target in {target for target, *_ in found}:
        own: list[Any] = [position for to, position, *_ in found if to == target]
        assert own == sorted(set(own))
        first = min((position for to, position, _, mute in found if to == target and not mute), default=None)
        if span is not None and first is not None:
            inside = [position for position, _ in expected if first - span < position < first]
            assert set(inside) <= set(own)
    assert np.all(np.diff([target for target, *_ in found]) >= 0)
