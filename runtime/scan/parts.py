"""The rows of a stretch that can matter, row group by row group: their symbols, their times, and where they lie."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from runtime.arrays import AnyArray, IntArray
from runtime.partition.order import as_clock
from runtime.scan.conditions import columns_of
from runtime.scan.reading import AT, GROUP, Files, as_spark, bits
from runtime.scan.task import Scan, Source, Stretch
from runtime.scan.truth import Rows


class Part(NamedTuple):
    """Some rows: int64[n] symbols and times, and a table of what is known of them, with their places (GROUP, AT)."""

    symbols: AnyArray
    times: AnyArray
    rows: pa.Table

    def __len__(self) -> int:
        return len(self.times)

    def taken(self, order: IntArray) -> Part:
        """The rows in another order. O(rows)."""
        return Part(self.symbols[order], self.times[order], self.rows.take(pa.array(order)))

    def cut(self, at: int) -> tuple[Part, Part]:
        """The first rows, and the others. O(1)."""
        first = Part(self.symbols[:at], self.times[:at], self.rows.slice(0, at))
        return first, Part(self.symbols[at:], self.times[at:], self.rows.slice(at))


def joined(parts: Sequence[Part]) -> Part:
    """The rows of one part after those of another. O(rows), unless there is one alone."""
    if len(parts) == 1:
        return parts[0]
    tables = pa.concat_tables([part.rows for part in parts]).combine_chunks()
    return Part(
        np.concatenate([part.symbols for part in parts]), np.concatenate([part.times for part in parts]), tables
    )


def parts_of(scan: Scan, stretch: Stretch, files: Files) -> Iterator[Part]:
    """A part for each row group of a stretch, in their order. O(rows of the group) each, in time and memory."""
    read = _Reader(scan, stretch, files)
    for number, (file, group) in enumerate(stretch.groups):
        yield read.part(number, file, group)


class _Reader:
    def __init__(self, scan: Scan, stretch: Stretch, files: Files) -> None:
        task = scan.task
        self._scan, self._stretch, self._files = scan, stretch, files
        order = task.order[0].name
        self._names = [order, *(name for name in (*task.keys, *task.terms, *task.weights) if name != order)]
        self._asked = [self._columns(source) for source in scan.sources]

    def _columns(self, source: Source) -> list[str]:
        """What is read of all rows of a source, as the files call it."""
        tests = [*source.guards, *([source.filter] if source.filter is not None else [])]
        named = {column for name, column, _ in source.columns if name in self._names}
        return sorted(frozenset[str]().union(named, *map(columns_of, tests)))

    def part(self, number: int, file: int, group: int) -> Part:
        """What can matter of a row group. Raises ExecutionError SCAN_FILE."""
        scan, source = self._scan, self._scan.source_of(file)
        columns = self._files.group(file, group, self._asked[scan.files[file].source])
        n = self._files.n_rows(file, group)
        rows = Rows({name: in_unit(array) for name, array in columns.items()}, n)
        in_file = {name: (column, kind) for name, column, kind in source.columns if name in self._names}
        times = as_clock(as_spark(columns[source.time], in_file[self._names[0]][1]))
        word = bits([rows.true(guard) for guard in source.guards], n)
        kept = self._kept(source, rows, word, times)
        at = np.arange(n) if kept is None or kept.all() else np.flatnonzero(kept)
        known = {name: (columns[in_file[name][0]], in_file[name][1]) for name in self._names}
        if len(at) < n:
            word, times, index = word[at], times[at], pa.array(at)
            known = {name: (array.take(index), kind) for name, (array, kind) in known.items()}
        symbols = word.astype(np.int64)
        held = {name: as_spark(array, kind) for name, (array, kind) in known.items()}
        held |= {name: pa.array(symbols) for name in scan.task.symbols}
        held |= {GROUP: pa.array(np.full(len(at), number, np.int32)), AT: pa.array(at)}
        return Part(symbols, times, pa.table(held))

    def _kept(self, source: Source, rows: Rows, word: AnyArray, times: AnyArray) -> AnyArray | None:
        """bool[n]: the rows that can matter to the stretch; None: all of them."""
        scan, stretch = self._scan, self._stretch
        tests = []
        if source.filter is not None:
            tests.append(rows.true(source.filter))
        if scan.drops:
            tests.append(word & word.dtype.type((1 << scan.n_events) - 1) != 0)
        if stretch.reads_from is not None:
            tests.append(times >= stretch.reads_from)
        if stretch.end is not None:
            tests.append(times < stretch.end)
        return np.logical_and.reduce(tests) if tests else None


def in_unit(array: pa.Array) -> pa.Array:
    """Times in microseconds, as conditions have them."""
    if pa.types.is_timestamp(array.type) and array.type.unit != "us":
        return array.cast(pa.timestamp("us", array.type.tz))
    return array
