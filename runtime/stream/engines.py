"""Engines that are kept beside the rows of a stream: a key with many rows is not read again for each that comes.

    the engine has read the rows up to 10:00 │ 300 rows since then │ 2 new ones
    ──────────── its file ───────────────────┴──── are read ───────┴──── and give matches

An engine lies in a file of the host (runtime.stream.local), its arrays as they are in memory: whoever goes on from it
maps them, and copies only the pages that it writes. So what it costs to go on depends on what has come since. It is
written again when that has become much beside what it holds (a part of its nodes), so that writing is O(1) a row.

It holds what the watermark has passed, where no row can come in between; what is beyond is read again each time, and
thrown away with the private copy. The state tells its name, and up to where it has read: an engine that is lost or
damaged, or that another attempt of a micro-batch wrote, is never missed: the rows are read instead.

One for each *slab* of which all rows have one key (there are many more slabs than keys). What can go on so is said by
StreamTask.resumes: matches are those that end at some row, whatever the watermark does.
"""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from runtime.arrays import AnyArray, IntArray
from runtime.compact_set.matches import Matches
from runtime.engine import Engine, engine_for
from runtime.errors import ExecutionError
from runtime.limits import Listed
from runtime.partition import partition
from runtime.partition.order import as_clock, comparable, group_ids, sorted_rows
from runtime.partition.rows import RowBuilder
from runtime.partition.terms import has_own_codes
from runtime.stream.local import Local, sum_of
from runtime.stream.log import Log
from runtime.stream.rereading import with_new
from runtime.stream.state import Head, KeptEngine
from runtime.stream.task import FOREVER, StreamTask

HEAVY = 1 << 13  # rows of a slab from which on an engine is kept
FEW = 1 << 11  # rows that are read again, whatever the engine holds
PART = 16  # that part of an engine's nodes is read again rather than to write it
ALIGNED = 64
_HEADER = 8


class Rows(NamedTuple):
    """Rows of one slab, with their numbers."""

    rows: pa.Table
    numbers: IntArray


class Until(NamedTuple):
    """The watermark, and what counts the matches of a task."""

    watermark: int
    listed: Listed


class _Fed(NamedTuple):
    """What an engine reads of rows, in their order: symbols, times, what windows are measured in, and numbers."""

    symbols: AnyArray
    times: AnyArray
    clocks: AnyArray
    numbers: IntArray


class Engines:
    """The engines of one bucket. `head` tells of them."""

    def __init__(self, task: StreamTask, head: Head, local: Local, log: Log) -> None:
        self._task, self._head, self._local, self._log = task, head, local, log
        self._usable = task.resumes and local.used

    @property
    def names(self) -> set[str]:
        """Of their files."""
        return {kept.name for kept in self._head.engines.values()}

    def of(self, touched: Iterable[int], new: pa.Table) -> dict[int, Engine]:
        """The engines of some slabs with new rows, as far as they are there and these are of their keys."""
        found: dict[int, Engine] = {}
        if not self._usable:
            self._head.engines.clear()
        for slab in sorted(self._head.engines.keys() & set(touched)):
            engine = self._loaded(self._head.engines[slab])
            if engine is None or not self._is_of(slab, new):
                del self._head.engines[slab]
            else:
                found[slab] = engine
        return found

    def since(self, slabs: Iterable[int]) -> dict[int, int]:
        """Up to which time the engine of each of these slabs has read."""
        return {slab: self._head.engines[slab].clock for slab in slabs}

    def forget(self, until: int) -> None:
        """Forget the engines of which all rows matter no more after that time."""
        for slab in [slab for slab, kept in self._head.engines.items() if kept.clock <= until]:
            del self._head.engines[slab]

    # ------------------------------------------------------------ reading

    def read(self, slab: int, engine: Engine, own: Rows, new: pa.Table, until: Until) -> Iterator[pa.RecordBatch]:
        """Go on with an engine: yield the matches with a new row. `new`: all new rows of the bucket."""
        fed = self._ordered(own)
        settled = self._settled(fed, until.watermark)
        if settled > max(FEW, engine.nodes // PART):
            yield from self._fed(engine, fed, slice(0, settled), new, until.listed)
            self._write(slab, engine, until.watermark, self._head.engines[slab].key)
            yield from self._fed(engine, fed, slice(settled, None), new, until.listed)
        else:
            yield from self._fed(engine, fed, slice(None), new, until.listed)

    def begin(self, slab: int, own: Rows, watermark: int) -> None:
        """Make an engine of a slab that has many rows, if they have one key."""
        if not self._usable or own.rows.num_rows < HEAVY or watermark >= FOREVER or not self._has_codes(own.rows):
            return
        keys: list[pa.ChunkedArray | pa.Array] = [own.rows.column(name) for name in self._task.task.keys]
        ids = group_ids(keys, own.rows.num_rows)
        fed = self._ordered(own)
        settled = self._settled(fed, watermark)
        if (ids != ids[0]).any() or settled < HEAVY:
            return
        engine, part, mute = engine_for(self._task.task.program), slice(0, settled), np.ones(settled, np.bool_)
        for _ in engine.feed(fed.symbols[part], fed.clocks[part], None, None, fed.numbers[part], mute):
            pass
        self._write(slab, engine, watermark, self._key_of(own.rows))

    def _fed(self, engine: Engine, fed: _Fed, part: slice, new: pa.Table, listed: Listed) -> Iterator[pa.RecordBatch]:
        """The matches with a new row that end in a part of the rows."""
        if not len(fed.times[part]):
            return
        mute = np.cumsum(fed.numbers >= self._head.next_row)[part] == 0
        for matches in engine.feed(fed.symbols[part], fed.clocks[part], None, None, fed.numbers[part], mute):
            listed.add(matches.n)
            known = with_new(matches, self._head.next_row)
            if known.n:
                yield self._batch(known, new)

    def _batch(self, matches: Matches, new: pa.Table) -> pa.RecordBatch:
        """The rows of matches, whose positions are numbers of rows: these alone are looked up."""
        task, first_new = self._task.task, self._head.next_row
        numbers, positions = np.unique(matches.positions, return_inverse=True)
        at = int(np.searchsorted(numbers, first_new))
        parts = [self._log.rows(numbers[:at])] if at else []
        rows = pa.concat_tables([*parts, new.take(pa.array(numbers[at:] - first_new))])
        own = matches._replace(positions=positions.reshape(-1).astype(np.int64))
        return RowBuilder(task).batch(own, partition.compacted(task, rows))

    def _ordered(self, own: Rows) -> _Fed:
        """What an engine reads of rows of one key, in their order."""
        task, rows = self._task.task, own.rows
        first, rest = partition.first_codes(task, rows)
        order = sorted_rows(rows, None, first, rest)
        return _Fed(
            partition.symbols_of(task, rows, in_pieces=True)[order],
            as_clock(rows.column(task.order[0].name))[order],
            partition.clocks_of(task, rows)[order],
            own.numbers[order],
        )

    def _settled(self, fed: _Fed, watermark: int) -> int:
        """How many of the rows nothing can come before any more."""
        return int(np.searchsorted(fed.times, watermark, side="right"))

    # ------------------------------------------------------------ keys

    def _has_codes(self, rows: pa.Table) -> bool:
        """Do the codes of what is compared mean the same in other rows?"""
        return all(has_own_codes(rows.schema.field(name).type) for name in self._task.task.terms)

    def _is_of(self, slab: int, new: pa.Table) -> bool:
        """Are new rows of a slab of the key that its engine has read? And have all of them codes?"""
        own = new.filter(pa.array(as_clock(new.column(self._task.slab)) == slab))
        keys: list[pa.ChunkedArray | pa.Array] = [own.column(name) for name in self._task.task.keys]
        ids = group_ids(keys, own.num_rows)
        if (ids != ids[0]).any() or self._key_of(own) != self._head.engines[slab].key:
            return False
        try:
            partition.symbols_of(self._task.task, own, in_pieces=True)
        except ExecutionError:  # the least values of a BIGINT, which have a code among the others only
            return False
        return True

    def _key_of(self, rows: pa.Table) -> str:
        """The key of the first row, as text that equal ones share."""
        first = [comparable(rows.column(name)[0].as_py()) for name in self._task.task.keys]
        return repr(first)

    # ------------------------------------------------------------ files

    def _write(self, slab: int, engine: Engine, clock: int, key: str) -> None:
        parts, name = frozen(engine), uuid.uuid4().hex
        total = sum_of(b"".join(parts))
        if self._local.put(name, parts):
            self._head.engines[slab] = KeptEngine(name, total, clock, key)
        else:
            self._head.engines.pop(slab, None)

    def _loaded(self, kept: KeptEngine) -> Engine | None:
        own = self._local.get(kept.name, kept.checksum, private=True)
        return None if own is None else thawed(own)


def frozen(engine: Engine) -> list[bytes | memoryview]:
    """An engine as parts of a file: where each array lies, all that is no array, and the arrays."""
    arrays: list[pickle.PickleBuffer] = []
    told = pickle.dumps(engine, protocol=5, buffer_callback=arrays.append)
    raws = [array.raw() for array in arrays]
    begins = np.cumsum([0, *(_padded(raw.nbytes) for raw in raws)])
    index = pickle.dumps((told, begins[:-1].tolist(), [raw.nbytes for raw in raws]))
    header = len(index).to_bytes(_HEADER, "little") + index
    parts: list[bytes | memoryview] = [header, bytes(_padded(len(header)) - len(header))]
    for raw in raws:
        parts += [raw, bytes(_padded(raw.nbytes) - raw.nbytes)]
    return parts


def thawed(file: pa.Buffer) -> Engine:
    """The engine of a file, whose arrays lie where the file is in memory."""
    view = memoryview(file)
    size = int.from_bytes(view[:_HEADER], "little")
    told, begins, sizes = pickle.loads(view[_HEADER : _HEADER + size])
    base = _padded(_HEADER + size)
    arrays = [view[base + begin : base + begin + n] for begin, n in zip(begins, sizes, strict=True)]
    engine: Engine = pickle.loads(told, buffers=arrays)
    return engine


def _padded(n: int) -> int:
    return -(-n // ALIGNED) * ALIGNED
