"""What the chains come to that matches begin with: their rows, numbers of events, sums, and least values.

A chain is the chain before it and one event more, so each value is that of the chain before, and a step. It is
computed once for each chain, in the order of the events, however many matches begin with it: a sum of DOUBLEs has the
digits that adding one by one gives. O(chains) for each value.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from runtime.arrays import AnyArray, IntArray, grown
from runtime.compact_set.chain_values import New, add_numbers, add_values, find_first, find_last, find_least
from runtime.compact_set.chained import Beginnings, events
from runtime.partition.order import as_clock, combined, float_codes

NO_ROW = -1
Total = Literal["whole", "doubles", "sizes"]


def sortable(values: pa.Array) -> IntArray:
    """Numbers that sort as the values do, and mean the same for all values of this type; those of NULLs are any."""
    if pa.types.is_floating(values.type):
        return float_codes(np.asarray(pc.fill_null(values, 0.0)).astype(np.float64))
    if pa.types.is_boolean(values.type):
        return np.asarray(pc.fill_null(values, False).cast(pa.int8())).astype(np.int64)
    return as_clock(values)


class Chains:
    """What is known of the chains of one task; `at` says of which matches it is asked."""

    def __init__(self) -> None:
        self._known: dict[Hashable, tuple[int, list[AnyArray]]] = {}
        self._serial = -1

    def at(self, now: Beginnings, rows: pa.Table, base: int) -> None:
        """Of matches that begin so, and mention rows of this table, whose first one has the number `base`."""
        if now.serial != self._serial:
            self._known, self._serial = {}, now.serial
        self._now, self._rows, self._base = now, rows, base
        self._columns: dict[tuple[str, int], pa.Array] = {}

    def _of_matches(
        self, key: Hashable, empty: Sequence[float], add: Callable[[list[AnyArray], New], None], dtype: Any = np.int64
    ) -> list[AnyArray]:
        """Values of the chain of each match. `empty`: those of no event; `add(values, new)` makes the new ones."""
        n, (done, found) = self._now.n, self._known.get(key, (1, []))
        if not found:
            found = [np.full(n, value, dtype) for value in empty]
        if len(found[0]) < n:
            found = [grown(values, 2 * n) for values in found]
        if done < n:
            now = self._now
            add(found, New(now.row, now.label, now.before, np.int64(done)))
        self._known[key] = n, found
        return [values[self._now.of] for values in found]

    def first(self) -> IntArray:
        """The row of the first event of each chain, NO_ROW where there is none."""

        def add(found: list[AnyArray], new: New) -> None:
            find_first(found[0], new)

        return self._of_matches("first", [NO_ROW], add)[0]

    def last(self, mark: Hashable, bound: AnyArray) -> IntArray:
        """The row of the last event with a label that is `bound`; `mark` names these labels."""

        def add(found: list[AnyArray], new: New) -> None:
            find_last(found[0], new, bound)

        return self._of_matches(("last", mark), [NO_ROW], add)[0]

    def number(self, mark: Hashable, bound: AnyArray, field: str | None = None) -> IntArray:
        """How many events have such a label, and a value in a column."""

        def add(found: list[AnyArray], new: New) -> None:
            add_numbers(found[0], new, bound, self._are_known(field, new.begin))

        return self._of_matches(("number", mark, field), [0], add)[0]

    def total(self, mark: Hashable, bound: AnyArray, field: str, of: Total) -> AnyArray:
        """The sum of their values: as whole numbers, which may overflow, as DOUBLEs, or of how large they are."""

        def add(found: list[AnyArray], new: New) -> None:
            numbers = as_clock(self._column(field, new.begin))
            numbers = numbers if of == "whole" else numbers.astype(np.float64)
            numbers = np.abs(numbers) if of == "sizes" else numbers
            add_values(found[0], new, bound, self._are_known(field, new.begin), numbers)

        dtype = np.int64 if of == "whole" else np.float64
        return self._of_matches(("total", mark, field, of), [0], add, dtype)[0]

    def best(self, mark: Hashable, bound: AnyArray, field: str, greatest: bool) -> tuple[IntArray, IntArray]:
        """The row of the first of the least (or greatest) values, NO_ROW for none; and a number that sorts as it does,
        the least one first."""

        def add(found: list[AnyArray], new: New) -> None:
            code = sortable(self._column(field, new.begin))
            known = self._are_known(field, new.begin)
            find_least(found[0], found[1], new, bound, known, ~code if greatest else code)

        row, code = self._of_matches(("best", mark, field, greatest), [NO_ROW, 0], add)
        return row, code

    def values(self, match: int, bound: AnyArray, field: str) -> list[int]:
        """The whole numbers of one match, one by one."""
        own = [c for c in events(self._now, int(self._now.of[match])) if bound[self._now.label[c]]]
        numbers = combined(self._rows.column(field).take(pa.array(self._now.row[own] - self._base)))
        return as_clock(numbers.drop_null()).tolist()

    def _column(self, field: str, begin: int) -> pa.Array:
        """The values of the events that chains from `begin` on end with."""
        if (field, begin) not in self._columns:
            rows = pa.array(self._now.row[begin:] - self._base)
            self._columns[field, begin] = combined(self._rows.column(field).take(rows))
        return self._columns[field, begin]

    def _are_known(self, field: str | None, begin: int) -> AnyArray:
        if field is None:
            return np.ones(self._now.n - begin, np.bool_)
        return np.asarray(self._column(field, begin).is_valid())
