"""RETURN … GROUP BY in a task: what its rows add to aggregates, and a row for each group that it has met.

A task gives values that Spark can add up over tasks: the sum and the number for AVG, and so on (runtime.task.Summed).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from runtime.arrays import AnyArray, IntArray
from runtime.compact_set import semirings
from runtime.compact_set.semirings import Cells, Kind, Lift, Part
from runtime.errors import ExecutionError
from runtime.marks import FIRST_EVENT, LAST_EVENT
from runtime.partition.order import codes, combined, group_ids
from runtime.partition.walking import decimals
from runtime.program import Program
from runtime.task import GroupedBy, Summed, Trend

FOUND = "__cersql_found"  # a column that every row has
MOST_KEYS = 1 << 62
OVERFLOW_HINT = (
    "Bound the matches by WITHIN or WITHIN … SLIDE, group them by more, or ask for what has no end: MIN, MAX, or AVG "
    "and SUM of DOUBLEs."
)


class Slot(NamedTuple):
    """A value of the cells: of which variable's events, in which column; `column` None: of each event 1."""

    kind: Kind
    mark: str | None
    column: str | None
    ones: bool


@dataclass
class Grouping:
    """What the kernels need to know of the rows of a task, for one trend."""

    trend: Trend
    program: Program
    rows: pa.Table

    def __post_init__(self) -> None:
        self._slots: dict[Kind, list[Slot]] = {"exact": [], "scaled": [], "least": []}
        self._slots["exact"].append(Slot("exact", None, None, ones=True))  # the number of matches
        self._n_primes = 0
        for summed in self.trend.sums:
            for part in semirings.TABLE[summed.function]:
                self._place(summed, part)
                if part.kind == "exact":
                    self._n_primes = semirings.N_PRIMES
        self._last = [group for group in self.trend.groups if group.mark == LAST_EVENT]
        self._shifting = [group for group in self.trend.groups if group.mark != LAST_EVENT]
        n = self.rows.num_rows
        own = group_ids([self.rows.column(group.column) for group in self._last], n)
        _, first, of_row = np.unique(own, return_index=True, return_inverse=True)
        self._row_of_last, self.of_row = first, of_row.reshape(-1).astype(np.int64)
        self._codes = [self._coded(group) for group in self._shifting]
        self.width = math.prod(len(first) + 1 for _, first in self._codes)
        if self.width * (len(first) + 1) > MOST_KEYS:
            raise ExecutionError("TREND_GROUPS", hint="Group by fewer expressions, or by ones with fewer values.")

    def _place(self, summed: Summed, part: Part) -> tuple[Kind, int]:
        """Where a part of an aggregate is: its kind (greatest ones are among the least), and the number there."""
        kind: Kind = "least" if part.kind == "greatest" else part.kind
        if summed.mark is None:
            return "exact", 0
        slot, slots = Slot(part.kind, summed.mark, summed.column, part.ones), self._slots[kind]
        if slot not in slots:
            slots.append(slot)
        return kind, slots.index(slot)

    def _coded(self, group: GroupedBy) -> tuple[IntArray, IntArray]:
        """For each row the number of its value, from 1, and for each number but 0 a row that has it. NULL is 0, as is a
        variable without an event: one group."""
        column = self.rows.column(group.column)
        _, first, numbers = np.unique(
            group_ids([column], self.rows.num_rows), return_index=True, return_inverse=True
        )  # fmt: skip
        known = np.asarray(combined(column).is_valid())
        return np.where(known, numbers.reshape(-1).astype(np.int64) + 1, 0), first

    # ------------------------------------------------------------ what events add

    def lift(self) -> Lift:
        """See semirings.Lift."""
        n, exact, scaled, least = self.rows.num_rows, *(self._slots[kind] for kind in ("exact", "scaled", "least"))
        residues = np.zeros((n, len(exact), self._n_primes), np.uint32)
        size = np.zeros((n, len(exact) + len(scaled)), np.float64)
        for k, slot in enumerate(exact[1:], 1):
            residues[:, k], size[:, k] = self._exact(slot)
        for k, slot in enumerate(scaled, len(exact)):
            size[:, k] = self._known(slot) if slot.ones else self._doubles(slot)
        rank = np.zeros((n, len(least)), np.int64)
        for k, slot in enumerate(least):
            rank[:, k] = self._ranks(slot)
        shift = np.zeros((n, 0), np.int64)
        begins = np.zeros(0, np.int64)
        times, of_variables = 1, []
        for group, (numbers, first) in zip(self._shifting, self._codes, strict=True):
            if group.mark == FIRST_EVENT:
                begins = numbers * times if not len(begins) else begins + numbers * times
            else:
                shift = np.concatenate([shift, (numbers * times)[:, None]], axis=1)
                of_variables.append(group.mark)
            times *= len(first) + 1
        return Lift(
            counts=self._bound([slot.mark for slot in (*exact, *scaled)]),
            picks=self._bound([slot.mark for slot in least]),
            shifts=self._bound(of_variables),
            exact=residues,
            size=size,
            rank=rank,
            shift=np.ascontiguousarray(shift),
            begins=begins,
            opens=labels_that_open(self.program),
        )

    def _bound(self, marks: list[str] | list[str | None]) -> AnyArray:
        """bool[labels, marks], by what the compact set calls a label."""
        labels = labels_of_nodes(self.program)
        return np.array([[mark in label for mark in marks] for label in labels], np.bool_).reshape(
            len(labels), len(marks)
        )

    def _column(self, slot: Slot) -> pa.Array:
        assert slot.column is not None
        return combined(self.rows.column(slot.column))

    def _known(self, slot: Slot) -> AnyArray:
        """bool[n]: which rows have a value."""
        if slot.column is None:
            return np.ones(self.rows.num_rows, np.bool_)
        return np.asarray(self._column(slot).is_valid())

    def _exact(self, slot: Slot) -> tuple[AnyArray, AnyArray]:
        """The values as residues, and as floats without their signs; NULL is 0."""
        if slot.ones:
            known = self._known(slot)
            return semirings.residues_of(known.astype(np.int64)), known.astype(np.float64)
        array = self._column(slot)
        if not pa.types.is_decimal(array.type):
            numbers = np.asarray(pc.fill_null(array, pa.scalar(0, array.type))).astype(np.int64)
            return semirings.residues_of(numbers), np.abs(numbers.astype(np.float64))
        words = np.frombuffer(array.buffers()[1], np.uint64)[2 * array.offset :][: 2 * len(array)]
        known = self._known(slot)
        low, high = np.where(known, words[::2], np.uint64(0)), np.where(known, words[1::2].view(np.int64), 0)
        short = low.view(np.int64)
        wide = np.abs(high.astype(np.float64) * 2.0**64 + low.astype(np.float64))
        size = np.where(high == short >> 63, np.abs(short.astype(np.float64)), wide)
        return semirings.residues_of_wide(low, high), size

    def _doubles(self, slot: Slot) -> AnyArray:
        array = self._column(slot)
        if pa.types.is_decimal(array.type):
            array = array.cast(pa.float64())
        return np.asarray(pc.fill_null(array, pa.scalar(0, array.type))).astype(np.float64)

    def _ranks(self, slot: Slot) -> IntArray:
        """From 0 in the order of the values, for a greatest from the last one; -1 for NULL."""
        ordered = codes(self._column(slot))[-1]
        _, ranks = np.unique(ordered, return_inverse=True)
        ranks = ranks.reshape(-1).astype(np.int64)
        if slot.kind == "greatest":
            ranks = ranks.max(initial=0) - ranks
        return np.where(self._known(slot), ranks, -1)

    # ------------------------------------------------------------ what is found

    def batch(self, found: Cells) -> pa.RecordBatch:
        """A row for each group."""
        names: list[str] = [FOUND]
        columns: list[pa.Array] = [pa.array(np.ones(len(found.key), np.int8))]
        for group, rows, missing in self._groups(found):
            names.append(group.name)
            columns.append(combined(self.rows.column(group.column)).take(pa.array(rows, mask=missing)))
        for summed in self.trend.sums:
            names += summed.names
            columns += self._summed(summed, found)
        return pa.RecordBatch.from_arrays(columns, names)

    def _groups(self, found: Cells) -> Iterator[tuple[GroupedBy, IntArray, AnyArray]]:
        """For each group column the rows where its values stand, and where there is none."""
        last, rest = np.divmod(found.key, self.width)
        numbers = {}
        for group, (_, first) in zip(self._shifting, self._codes, strict=True):
            rest, number = np.divmod(rest, len(first) + 1)
            numbers[group] = first[np.maximum(number - 1, 0)], number == 0
        for group in self.trend.groups:
            yield (group, *numbers[group]) if group in numbers else (
                group, self._row_of_last[last], np.zeros(len(last), np.bool_),
            )  # fmt: skip

    def _summed(self, summed: Summed, found: Cells) -> Iterator[pa.Array]:
        places = [self._place(summed, part) for part in semirings.TABLE[summed.function]]
        (kind, k), n_exact = places[0], len(self._slots["exact"])
        if kind == "least":
            rows = found.row[:, k]
            yield self._column(self._slots["least"][k]).take(pa.array(np.maximum(rows, 0), mask=rows < 0))
        elif summed.function == "AVG OF DOUBLE":
            yield from _mean(found, *(n_exact + place for _, place in places))
        elif kind == "scaled":
            yield pa.array(semirings.doubles_of(found, n_exact + k), mask=found.part[:, n_exact + places[1][1]] == 0)
        elif summed.function == "SUM":
            yield self._decimal(summed, found, k, self._scale(summed), found.part[:, n_exact + places[1][1]] == 0)
        elif summed.function == "AVG":
            yield self._decimal(summed, found, k, self._scale(summed), np.zeros(len(found.key), np.bool_))
            yield self._decimal(summed, found, places[1][1], 0, np.zeros(len(found.key), np.bool_))
        else:
            yield self._decimal(summed, found, k, 0, np.zeros(len(found.key), np.bool_))

    def _scale(self, summed: Summed) -> int:
        assert summed.column is not None
        kind = combined(self.rows.column(summed.column)).type
        return int(kind.scale) if pa.types.is_decimal(kind) else 0

    def _decimal(self, summed: Summed, found: Cells, k: int, scale: int, missing: AnyArray) -> pa.Array:
        """The exact numbers k as DECIMAL(38). ExecutionError TREND_OVERFLOW names a group where one does not fit."""
        low, high, too_large = semirings.numbers_of(found, k)
        if too_large.any():
            cell = int(np.flatnonzero(too_large)[0])
            group = self._shown(Cells._make(column[cell : cell + 1] for column in found))
            raise ExecutionError("TREND_OVERFLOW", function=summed.shown, group=group, hint=OVERFLOW_HINT)
        return decimals(low, high, missing, semirings.DIGITS, scale)

    def _shown(self, found: Cells) -> str:
        """A group as people read it."""
        values = [
            f"{group.shown} = {None if missing[0] else self.rows.column(group.column).take(pa.array(rows))[0].as_py()}"
            for group, rows, missing in self._groups(found)
        ]
        return ", ".join(values) or "of all matches"


def _mean(found: Cells, total: int, ones: int) -> Iterator[pa.Array]:
    """The sum, the number, and by which power of 2^STEP both are to be multiplied."""
    power = np.maximum(found.power[:, total], found.power[:, ones])
    for k in (total, ones):
        with np.errstate(over="ignore"):
            yield pa.array(np.ldexp(found.part[:, k], semirings.STEP * (found.power[:, k] - power)))
    yield pa.array(power.astype(np.int64))


def labels_of_nodes(program: Program) -> list[frozenset[str]]:
    """What the labels in the compact set bind. Runs side by side have the bits of their atoms there, those that catch
    up two labels for each."""
    label_of = getattr(program.machine, "label_of", None)
    if label_of is None or program.family not in ("pcea", "deferred", "ranged"):
        return list(program.labels)
    return [program.labels[i] for i in label_of.tolist()]


def labels_that_open(program: Program) -> AnyArray:
    """bool[labels]: of those in the compact set, which can be of the first event of a match."""
    n = len(labels_of_nodes(program))
    return np.arange(n) < (len(program.labels) if program.family in ("deferred", "ranged") else n)
