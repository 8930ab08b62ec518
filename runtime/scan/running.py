"""A stretch of Parquet files, read, matched and given as rows of matches; no row goes through the JVM."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from runtime.arrays import AnyArray, IntArray
from runtime.partition.order import as_clock
from runtime.partition.partition import given, matched
from runtime.partition.terms import term_codes
from runtime.scan.conditions import columns_of
from runtime.scan.reading import Files, LateRows, as_spark, bits, check_folders
from runtime.scan.task import Scan, Stretch
from runtime.scan.truth import Rows


def run(scan: Scan, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The matches of the stretches whose numbers arrive."""
    check_folders(scan)
    for batch in batches:
        for number in batch.column(0).to_pylist():
            yield from given(scan.task, _stretch(scan, scan.stretches[number]))


def _stretch(scan: Scan, stretch: Stretch) -> Iterator[pa.RecordBatch | int]:
    rows, symbols, times = _read(scan, stretch)
    if not rows.num_rows:
        return
    if scan.task.terms:
        codes = term_codes([rows.column(name) for name in scan.task.terms], scan.task.program.numbers)
        symbols = np.concatenate([symbols[:, None], codes], axis=1)

    def mutes(order: IntArray, _: AnyArray, keys: IntArray | None) -> AnyArray | None:
        if stretch.begin is None:
            return None  # what lies behind its end was not read
        return times[order] < stretch.begin

    yield from matched(scan.task, scan.task.program, rows, symbols, mutes, lambda _, kept: kept)


class _Read:
    """What has been read of a stretch."""

    def __init__(self) -> None:
        self.symbols: list[AnyArray] = []
        self.groups: list[IntArray] = []
        self.at: list[IntArray] = []
        self.known: list[list[pa.Array]] = []


def _read(scan: Scan, stretch: Stretch) -> tuple[LateRows, AnyArray, AnyArray]:
    """The rows of a stretch that can matter, their symbols, and their times."""
    files, found = Files(scan), _Read()
    in_file = {name: (column, kind) for name, column, kind in scan.columns}
    order = scan.task.order[0].name
    names = [order, *(name for name in (*scan.task.keys, *scan.task.terms) if name != order)]
    tests = [*scan.guards, *([scan.filter] if scan.filter is not None else [])]
    asked = frozenset[str]().union(*map(columns_of, tests)) | {in_file[name][0] for name in names}
    for number, (file, group) in enumerate(stretch.groups):
        columns = files.group(file, group, sorted(asked))
        n = files.n_rows(file, group)
        rows = Rows({name: _in_unit(array) for name, array in columns.items()}, n)
        times = as_clock(as_spark(columns[scan.time], in_file[order][1]))
        word = bits([rows.truth(guard).true for guard in scan.guards], n)
        at = np.flatnonzero(_kept(scan, stretch, rows, word, times)).astype(np.int64)
        if not len(at):
            continue
        index = pa.array(at)
        found.symbols.append(word[at].astype(np.int64))
        found.groups.append(np.full(len(at), number, np.int64))
        found.at.append(at)
        found.known.append([as_spark(columns[in_file[name][0]].take(index), in_file[name][1]) for name in names])
    return _joined(scan, stretch, files, found, names)


def _kept(scan: Scan, stretch: Stretch, rows: Rows, word: AnyArray, times: AnyArray) -> AnyArray:
    """bool[n]: the rows that can matter to the stretch."""
    kept = np.ones(len(times), np.bool_)
    if scan.filter is not None:
        kept &= rows.truth(scan.filter).true
    if scan.drops:
        kept &= word & word.dtype.type((1 << scan.n_events) - 1) != 0
    if stretch.reads_from is not None:
        kept &= times >= stretch.reads_from
    if stretch.end is not None:
        kept &= times < stretch.end
    return kept


def _joined(
    scan: Scan, stretch: Stretch, files: Files, found: _Read, names: list[str]
) -> tuple[LateRows, AnyArray, AnyArray]:
    kinds = {name: kind for name, _, kind in scan.columns}
    none = np.zeros(0, np.int64)
    symbols, groups, at = (np.concatenate(parts or [none]) for parts in (found.symbols, found.groups, found.at))
    known = {
        name: pa.concat_arrays([held[k] for held in found.known]) if found.known else pa.nulls(0, kinds[name])
        for k, name in enumerate(names)
    }
    times = as_clock(known[scan.task.order[0].name])
    known |= {name: pa.array(symbols) for name in scan.task.symbols}
    return LateRows(files, scan, stretch.groups, (groups, at), known), symbols, times


def _in_unit(array: pa.Array) -> pa.Array:
    """Times in microseconds, as conditions have them."""
    if pa.types.is_timestamp(array.type) and array.type.unit != "us":
        return array.cast(pa.timestamp("us", array.type.tz))
    return array
