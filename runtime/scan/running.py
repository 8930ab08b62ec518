"""A stretch of Parquet files, read, matched and given as rows of matches; no row goes through the JVM.

Row groups are read by their least times. Where time alone puts rows in order, those that lie before the least time of
the row groups to come are fed to the engine, and only the others are held: a file in order is read as a stream, and
rows that are late are put where they belong on the way. Where keys come first, a stretch is held as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from runtime import capacities
from runtime.arrays import AnyArray, IntArray
from runtime.partition.order import is_sorted, sorted_rows
from runtime.partition.partition import Fed, codes_of, given, matched, streamed
from runtime.scan.parts import Part, joined, parts_of
from runtime.scan.reading import Files, LateRows, check_folders, unordered
from runtime.scan.task import Scan, Stretch


def run(scan: Scan, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The matches of the stretches whose numbers arrive."""
    check_folders(scan)
    for batch in batches:
        for number in batch.column(0).to_pylist():
            found = (_streamed if is_streamed(scan) else _whole)(scan, scan.stretches[number])
            yield from given(scan.task, found)


def is_streamed(scan: Scan) -> bool:
    """Can rows be fed as they are read? Not where keys come first, where a second pass or groups of matches ask for all
    rows, or where the codes of terms may be ranks, which mean something among the rows at hand only."""
    task, kinds = scan.task, {name: kind for name, _, kind in scan.sources[0].columns}
    return not (task.keys or task.interleaved or task.later or task.trend) and all(
        _has_code(kinds[name]) for name in task.terms
    )


def _has_code(kind: pa.DataType) -> bool:
    """Has each value a code of its own? Not the least ones of 64 bits (runtime.partition.terms)."""
    narrow = pa.types.is_integer(kind) and kind.bit_width < 64
    return narrow or bool(pa.types.is_floating(kind) or pa.types.is_date32(kind) or pa.types.is_decimal(kind))


def _whole(scan: Scan, stretch: Stretch) -> Iterator[pa.RecordBatch | int]:
    files, task = Files(scan), scan.task
    parts = [part for part in parts_of(scan, stretch, files) if len(part)]
    if not parts:
        return
    part = joined(parts)
    rows, times = LateRows(files, scan, stretch.groups, part.rows), part.times

    def mutes(order: IntArray, _: AnyArray, keys: IntArray | None) -> AnyArray | None:
        return _mute(stretch, times[order])

    yield from matched(task, task.program, rows, _with_terms(scan, part), mutes, lambda _, kept: kept)


def _mute(stretch: Stretch, times: AnyArray) -> AnyArray | None:
    """Which matches others report; what lies behind the end of the stretch was not read."""
    return None if stretch.begin is None else times < stretch.begin


def _with_terms(scan: Scan, part: Part) -> AnyArray:
    """int64[n], or int64[n, 1 + terms + weights]."""
    task = scan.task
    if not (task.terms or task.weights):
        return part.symbols
    return np.concatenate([part.symbols[:, None], codes_of(task, part.rows)], axis=1)


def _streamed(scan: Scan, stretch: Stretch) -> Iterator[pa.RecordBatch | int]:
    files = Files(scan)
    parts = ((part.rows, _pieces(scan, stretch, part)) for part in _in_order(scan, stretch, files))
    yield from streamed(scan.task, parts, lambda held: LateRows(files, scan, stretch.groups, held))


def _pieces(scan: Scan, stretch: Stretch, part: Part) -> Iterator[Fed]:
    """So few rows at once that they stay in the cache of a core."""
    program = scan.task.program
    windows = [window for window in (program.window, *program.inner_windows) if window is not None]
    timed = any(window.kind == "time" for window in windows)
    while len(part):
        piece, part = part.cut(capacities.FED_ROWS)
        clocks = piece.times if timed else np.zeros(len(piece), np.int64)
        yield Fed(_with_terms(scan, piece), clocks, mute=_mute(stretch, piece.times))


def _in_order(scan: Scan, stretch: Stretch, files: Files) -> Iterator[Part]:
    """The rows of a stretch in their order, as soon as no row group to come can have one before them. Those that wait
    are sorted again when they have doubled, so O(rows · log rows) whatever the file."""
    waiting: list[Part] = []
    sorted_before, given_until = 0, None
    for number, part in enumerate(parts_of(scan, stretch, files)):
        waiting += [part] if len(part) else []
        n = sum(map(len, waiting))
        until = stretch.firsts[number + 1] if number + 1 < len(stretch.groups) else None
        if not n or (until is not None and n < 2 * sorted_before):
            continue
        part = _sorted(scan, stretch, files, joined(waiting))
        if given_until is not None and part.times[0] < given_until:
            raise unordered(files.path(stretch.groups[number][0]))
        first, rest = part.cut(n if until is None else int(np.searchsorted(part.times, until)))
        if len(first):
            yield first
        waiting, sorted_before, given_until = [rest] if len(rest) else [], len(rest), until


def _sorted(scan: Scan, stretch: Stretch, files: Files, part: Part) -> Part:
    if bool(np.all(part.times[1:] > part.times[:-1])):
        return part
    task, rows = scan.task, LateRows(files, scan, stretch.groups, part.rows)
    order = sorted_rows(rows, None, part.times, (*task.order[1:], *task.ties))
    return part if is_sorted(order) else part.taken(order)
