"""Matches → Arrow rows: for each variable a struct, or an array of structs, taken from the rows of the input.

Every Arrow type passes, since a value is only ever taken, never looked at.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from runtime.arrays import AnyArray, IntArray
from runtime.compact_set.chained import Beginnings
from runtime.compact_set.matches import Matches
from runtime.partition.beginnings import NO_ROW, Chains
from runtime.partition.order import combined
from runtime.partition.walking import Earlier, Events, walked
from runtime.selection import rivals
from runtime.task import OutputVariable, Task

IN_ORDER = rivals.Places()


class RowBuilder:
    """Makes output batches of one task."""

    def __init__(self, task: Task) -> None:
        self._task = task
        program = task.program
        matrix = program.label_matrix()
        self._held: AnyArray = np.asarray(matrix.any(axis=1))
        counted = [v in task.counted for v in program.variables] if task.counted is not None else slice(None)
        self._counted: AnyArray = np.asarray(matrix[:, counted].any(axis=1))
        self._bound = [matrix[:, program.variables.index(v.mark)] for v in task.variables]
        self._marked = {own.mark: matrix[:, program.variables.index(own.mark)] for own in task.walked}
        self._ranks = program.ranks()
        self._chains = Chains()
        self._rivals_from = rivals.first_number() if task.later is not None else 0

    def batch(
        self,
        matches: Matches,
        rows: pa.Table,
        base: int = 0,
        places: rivals.Places = IN_ORDER,
        witness: bool = False,
    ) -> pa.RecordBatch:
        """The rows of a chunk of matches. `rows` holds the input from row number `base` on. For a second pass:
        `places`, where in the stream each of them is; `witness`: they were given before."""
        task, names, columns = self._task, [], []
        index = matches.positions - base if base else matches.positions
        if matches.beginnings is None:
            first, last = index[matches.offsets[:-1]], index[matches.offsets[1:] - 1]
        else:
            first, last = self._ends(matches, matches.beginnings, index, rows, base)
        for source, key in task.key_outputs:
            names.append(key)
            columns.append(_taken(rows, source, first))
        for name, at in ((task.start, first), (task.end, last)):
            if name is not None:
                names.append(name)
                columns.append(_taken(rows, task.order[0].name, at))
        if task.size is not None:
            names.append(task.size)
            columns.append(pa.array(self._sizes(matches)))
        if task.status is not None:
            names.append(task.status)
            columns.append(pa.array(["timeout" if matches.timeout else "match"] * matches.n, pa.string()))
        if task.reached is not None:
            names.append(task.reached)
            columns.append(self._reached(matches))
        if task.later is not None:
            names += rivals.COLUMNS
            columns += rivals.columns(matches, self._held[matches.labels], places, self._rivals_from, witness)
        for variable, bound in zip(task.variables, self._bound, strict=True):
            names.append(variable.name)
            columns.append(self._variable(variable, bound, matches, index, rows, base))
        columns += self._walked(matches, index, rows, base)
        names += [column.name for column in task.walked]
        if not columns:  # nothing is asked for but that there is a match
            names, columns = [EMPTY], [pa.array(np.zeros(matches.n, np.int8))]
        return pa.RecordBatch.from_arrays(columns, names)

    def _ends(
        self, matches: Matches, begin: Beginnings, index: IntArray, rows: pa.Table, base: int
    ) -> tuple[IntArray, IntArray]:
        """Where the first and the last event of each match is that begins with a chain."""
        self._chains.at(begin, rows, base)
        first, last = self._chains.first() - base, begin.row[begin.of] - base
        longer = np.diff(matches.offsets) > 0
        last[longer] = index[matches.offsets[1:][longer] - 1]
        later = begin.of == 0
        first[later] = index[matches.offsets[:-1][later]]
        return first, last

    def _walked(self, matches: Matches, index: IntArray, rows: pa.Table, base: int) -> Iterator[pa.Array]:
        """Aggregates over the events of each match."""
        events: dict[str, Events] = {}
        for column in self._task.walked:
            if column.mark not in events:
                mask = self._marked[column.mark][matches.labels]
                match_of = _match_of(matches)[mask]
                bound = self._marked[column.mark]
                earlier = None if matches.beginnings is None else Earlier(self._chains, column.mark, bound)
                events[column.mark] = Events(matches.n, match_of, index[mask], earlier)
            yield walked(column, events[column.mark], rows, base)

    def _sizes(self, matches: Matches) -> AnyArray:
        """int32: the events of each match that some variable holds."""
        before = 0 if matches.beginnings is None else self._chains.number(None, self._counted)
        if self._counted.all():
            return (np.diff(matches.offsets) + before).astype(np.int32)
        match_of = _match_of(matches)[self._counted[matches.labels]]
        return (np.bincount(match_of, minlength=matches.n) + before).astype(np.int32)

    def _reached(self, matches: Matches) -> pa.Array:
        """The name of the variable that the last event of each match bears, of those the first in their order."""
        ranks = self._ranks[matches.labels]
        last = np.where(ranks >= 0, np.arange(len(ranks)), -1)
        at = np.maximum.reduceat(last, matches.offsets[:-1]) if matches.n else last
        return pa.array(self._task.names, pa.string()).take(pa.array(ranks[at], mask=at < 0))

    def _variable(
        self, variable: OutputVariable, bound: AnyArray, matches: Matches, index: IntArray, rows: pa.Table, base: int
    ) -> pa.Array:
        mask = bound[matches.labels]
        match_of = _match_of(matches)[mask]
        events = index[mask]
        if variable.place is not None:
            assert not variable.single
            places = np.flatnonzero(mask) - matches.offsets[match_of]
            offsets = _offsets(match_of, matches.n)
            return pa.ListArray.from_arrays(offsets, _struct(variable, rows, events, None, places))
        if variable.single:
            at = np.full(matches.n, NO_ROW)
            if matches.beginnings is not None:
                row = self._chains.last(variable.mark, bound)
                at = np.where(row == NO_ROW, row, row - base)
            at[match_of] = events
            return _struct(variable, rows, at, at == NO_ROW)
        return pa.ListArray.from_arrays(_offsets(match_of, matches.n), _struct(variable, rows, events, None))


EMPTY = "__cersql_match"


def _match_of(matches: Matches) -> IntArray:
    """Of each event its match."""
    return np.repeat(np.arange(matches.n), np.diff(matches.offsets))


def _offsets(match_of: IntArray, n: int) -> pa.Array:
    """Where the events of each of n matches begin in an array of them; `match_of`: of each its match, ascending."""
    offsets = np.zeros(n + 1, np.int32)
    np.cumsum(np.bincount(match_of, minlength=n), out=offsets[1:])
    return pa.array(offsets)


def _taken(rows: pa.Table, name: str, index: IntArray, missing: AnyArray | None = None) -> pa.Array:
    return combined(rows.column(name).take(pa.array(index, mask=missing)))


def _struct(
    variable: OutputVariable, rows: pa.Table, index: IntArray, missing: AnyArray | None, places: IntArray | None = None
) -> pa.Array:
    null = None if missing is None or not missing.any() else missing
    children = [_taken(rows, field, index, null) for field in variable.fields]
    names = list(variable.names or variable.fields)
    if variable.place is not None and places is not None:
        children.append(pa.array(places.astype(np.int32)))
        names.append(variable.place)
    if not children:
        # Spark has no empty struct; presence is all that is asked for.
        children, names = [pa.array(np.ones(len(index), np.int8), mask=null)], [EMPTY]
    return pa.StructArray.from_arrays(children, names=names, mask=None if null is None else pa.array(null))
