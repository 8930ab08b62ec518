"""runtime.partition.rows: matches become structs and arrays, whatever the types."""

from __future__ import annotations

import decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from runtime.compact_set.matches import Matches
from runtime.partition.rows import EMPTY, RowBuilder
from runtime.program import Program
from runtime.task import OrderColumn, OutputVariable, Task

LABELS = (frozenset({"a"}), frozenset({"b"}), frozenset({"a", "b"}))


def task(variables: tuple[OutputVariable, ...], **outputs: Any) -> Task:
    program = Program(
        n_states=1, transitions=np.zeros((0, 4), np.int64), initial=(0,), final=(), guards=(), labels=LABELS,
        variables=("a", "b"),
    )  # fmt: skip
    given: dict[str, Any] = {"key_outputs": (), "start": None, "end": None, "size": None, **outputs}
    return Task(program, (), (OrderColumn("ts"),), (), (), variables, **given)


def matches(*events: list[tuple[int, int]]) -> Matches:
    """Each match a list of (row, label)."""
    flat = [event for match in events for event in match]
    offsets = np.cumsum([0, *map(len, events)])
    rows, labels = (np.array([event[i] for event in flat], np.int64) for i in (0, 1))
    return Matches(len(events), offsets, rows, labels.astype(np.int32), np.zeros(len(events), np.int64))


ROWS = pa.table({"ts": [10, 20, 30, 40], "v": ["p", None, "r", "s"], "k": [1, 1, 2, 2]})
THREE = matches([(0, 0), (1, 1), (3, 1)], [(2, 2)], [(3, 1)])


def test_structs_arrays_and_bounds() -> None:
    """A single variable that is not bound is NULL, a loop's is an empty array."""
    builder = RowBuilder(
        task(
            (OutputVariable("va", "a", True, ("v", "ts")), OutputVariable("vb", "b", False, ("v",))),
            key_outputs=(("k", "key"),), start="from", end="to", size="n",
        )
    )  # fmt: skip
    assert builder.batch(THREE, ROWS).to_pylist() == [
        {"key": 1, "from": 10, "to": 40, "n": 3, "va": {"v": "p", "ts": 10}, "vb": [{"v": None}, {"v": "s"}]},
        {"key": 2, "from": 30, "to": 30, "n": 1, "va": {"v": "r", "ts": 30}, "vb": [{"v": "r"}]},
        {"key": 2, "from": 40, "to": 40, "n": 1, "va": None, "vb": [{"v": "s"}]},
    ]


def test_columns_have_the_declared_order_and_types() -> None:
    builder = RowBuilder(task((OutputVariable("x", "a", True, ("v",)),), size="n", start="from"))
    schema = builder.batch(THREE, ROWS).schema
    assert schema.names == ["from", "n", "x"]
    assert schema.types == [pa.int64(), pa.int32(), pa.struct([("v", pa.string())])]


def test_variables_of_which_nothing_is_read() -> None:
    """That they are bound is all that is told."""
    builder = RowBuilder(task((OutputVariable("x", "a", True, ()), OutputVariable("y", "b", False, ()))))
    found = builder.batch(THREE, ROWS).to_pylist()
    assert [row["x"] is None for row in found] == [False, False, True]
    assert [len(row["y"]) for row in found] == [2, 1, 1]


def test_no_column_at_all() -> None:
    batch = RowBuilder(task(())).batch(THREE, ROWS)
    assert (batch.schema.names, batch.num_rows) == ([EMPTY], 3)


def test_rows_that_were_let_go_of() -> None:
    """`base` is the number of the first row that is still held."""
    builder = RowBuilder(task((OutputVariable("x", "b", False, ("ts",)),), start="from"))
    moved = THREE._replace(positions=THREE.positions + 100)
    assert builder.batch(moved, ROWS, base=100) == builder.batch(THREE, ROWS)


def test_no_matches() -> None:
    builder = RowBuilder(task((OutputVariable("x", "a", True, ("v",)), OutputVariable("y", "b", False, ("v",)))))
    assert builder.batch(matches(), ROWS).num_rows == 0


@pytest.mark.parametrize(
    "values",
    [
        pa.array([decimal.Decimal("1.50"), None, decimal.Decimal("-2.25"), decimal.Decimal(0)], pa.decimal128(38, 2)),
        pa.array([[1, None], [], None, [3]]),
        pa.array([[("a", 1)], None, [], [("b", None)]], pa.map_(pa.string(), pa.int32())),
        pa.array([{"x": {"y": [b"1"]}}, None, {"x": None}, {"x": {"y": []}}]),
        pa.array([None] * 4, pa.null()),
        pa.array([1, None, -1, 0], pa.duration("us")),
    ],
    ids=lambda values: str(values.type)[:20],
)
def test_every_type_is_taken_unchanged(values: pa.Array) -> None:
    rows = pa.table({"ts": [1, 2, 3, 4], "v": pa.chunked_array([values.slice(0, 1), values.slice(1)])})
    builder = RowBuilder(task((OutputVariable("x", "a", True, ("v",)), OutputVariable("y", "b", False, ("v",)))))
    batch = builder.batch(matches([(0, 0), (1, 1), (3, 1)], [(2, 0)]), rows)
    given = values.to_pylist()
    assert batch.column(0).field("v").to_pylist() == [given[0], given[2]]
    assert batch.column(1).to_pylist() == [[{"v": given[1]}, {"v": given[3]}], []]
    assert batch.column(0).type.field("v").type == values.type
