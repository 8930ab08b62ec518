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

import io
import pickle
import uuid
import zlib
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
from runtime.partition.order import as_clock, comparable, group_ids, sorted_rows, stable_order
from runtime.partition.rows import RowBuilder
from runtime.partition.terms import has_own_codes
from runtime.program import Program
from runtime.stream.head import Head, KeptEngine
from runtime.stream.local import Local
from runtime.stream.log import Log
from runtime.stream.rereading import named, with_new
from runtime.stream.task import FOREVER, HEAVY, StreamTask

FEW = 1 << 9  # rows that are read again, whatever the engine holds
PART = 16  # that part of an engine's nodes is read again rather than to write it
ALIGNED = 64
_HEADER = 8
_PROGRAM = "program"


class Rows(NamedTuple):
    """Rows of some slabs, with their numbers and slabs."""

    rows: pa.Table
    numbers: IntArray
    slabs: IntArray

    def chosen(self, keep: AnyArray) -> Rows:
        """Some of them."""
        return Rows(self.rows.filter(pa.array(keep)), self.numbers[keep], self.slabs[keep])


class MicroBatch(NamedTuple):
    """The watermark of a micro-batch, and what counts the matches that it lists."""

    watermark: int
    listed: Listed


class _Fed(NamedTuple):
    """What engines read of rows, in their order: slabs, symbols, times, what windows are measured in, and numbers."""

    slabs: IntArray
    symbols: AnyArray
    times: AnyArray
    clocks: AnyArray
    numbers: IntArray

    def part(self, rows: slice) -> _Fed:
        """Some that follow each other."""
        return _Fed._make(column[rows] for column in self)

    def of(self, slab: int) -> _Fed:
        """Those of a slab."""
        return self.part(slice(*np.searchsorted(self.slabs, [slab, slab + 1]).tolist()))

    def until(self, watermark: int) -> _Fed:
        """Of those of one slab the ones that nothing can come before any more."""
        return self.part(slice(0, int(np.searchsorted(self.times, watermark, side="right"))))


class Engines:
    """The engines of one bucket. `head` tells of them."""

    def __init__(self, task: StreamTask, head: Head, local: Local, log: Log) -> None:
        self._task, self._head, self._local, self._log = task, head, local, log
        self._usable = task.resumes and local.used
        self._builder = RowBuilder(task.task)

    def of(self, touched: Iterable[int], new: pa.Table) -> dict[int, Engine]:
        """Load the engines of slabs that have new rows. A slab whose file is lost or damaged has none, nor has one that
        gets rows of a second key: their rows are read again."""
        found: dict[int, Engine] = {}
        if not self._usable:
            self._head.engines.clear()
        known = sorted(self._head.engines.keys() & set(touched))
        if not known:
            return found
        slabs = as_clock(new.column(self._task.slab))
        own = np.flatnonzero(np.isin(slabs, known))
        rows = new.take(pa.array(own))
        keys = self._keys_of(rows, slabs[own]) if self._goes_on(rows) else {}
        for slab in known:
            kept = self._head.engines[slab]
            engine = self._loaded(kept) if keys.get(slab) == kept.key else None
            if engine is None:
                del self._head.engines[slab]
            else:
                found[slab] = engine
        return found

    def since(self, slabs: Iterable[int]) -> dict[int, int]:
        """Up to which time the engine of each of these slabs has read."""
        return {slab: self._head.engines[slab].clock for slab in slabs}

    def forget(self, until: int | None) -> None:
        """Forget the engines of which all rows matter no more after that time (None: time does not tell)."""
        for slab in [slab for slab, kept in self._head.engines.items() if until is not None and kept.clock <= until]:
            del self._head.engines[slab]

    # ------------------------------------------------------------ reading

    def read(self, engines: dict[int, Engine], own: Rows, new: pa.Table, batch: MicroBatch) -> Iterator[pa.RecordBatch]:
        """Go on with engines: yield the matches with a new row. `own`: the rows of their slabs since they were written;
        `new`: all new rows of the bucket."""
        fed = self._ordered(own)
        for slab, engine in engines.items():
            yield from self._go_on(slab, engine, fed.of(slab), new, batch)

    def _go_on(
        self, slab: int, engine: Engine, fed: _Fed, new: pa.Table, batch: MicroBatch
    ) -> Iterator[pa.RecordBatch]:
        settled = fed.until(batch.watermark)
        if len(settled.times) > max(FEW, engine.nodes // PART):
            yield from self._fed(engine, settled, new, batch.listed)
            self._write(slab, engine, batch.watermark, self._head.engines[slab].key)
            fed = fed.part(slice(len(settled.times), None))
        yield from self._fed(engine, fed, new, batch.listed)

    def begin(self, slabs: Iterable[int], own: Rows, watermark: int) -> None:
        """Make engines of slabs that have many rows, each if they have one key. `own`: their rows."""
        if not self._usable or watermark >= FOREVER or not self._has_codes(own.rows):
            return
        try:
            fed, keys = self._ordered(own), self._keys_of(own.rows, own.slabs)
        except ExecutionError:  # see _goes_on
            return
        for slab in slabs:
            settled = fed.of(slab).until(watermark)
            if slab not in keys or len(settled.times) < HEAVY:
                continue
            engine, mute = engine_for(self._task.task.program), np.ones(len(settled.times), np.bool_)
            for _ in engine.feed(settled.symbols, settled.clocks, None, None, settled.numbers, mute):
                pass
            self._write(slab, engine, watermark, keys[slab])

    def _fed(self, engine: Engine, fed: _Fed, new: pa.Table, listed: Listed) -> Iterator[pa.RecordBatch]:
        """The matches with a new row that end in some rows."""
        if not len(fed.times):
            return
        new_row = fed.numbers >= self._head.next_row
        mute = np.cumsum(new_row) == 0
        if not (new_row | mute).all():  # some come between rows that were read before
            engine.list_new(self._head.next_row)
        for matches in engine.feed(fed.symbols, fed.clocks, None, None, fed.numbers, mute):
            listed.add(matches.n)
            known = with_new(matches, self._head.next_row)
            if known.n:
                yield self._batch(known, new)

    def _batch(self, matches: Matches, new: pa.Table) -> pa.RecordBatch:
        """The rows of matches, whose positions are numbers of rows: these alone are looked up."""
        task, first_new = self._task.task, self._head.next_row
        numbers, own = named(matches)
        at = int(np.searchsorted(numbers, first_new))
        parts = [self._log.rows(numbers[:at])] if at else []
        rows = pa.concat_tables([*parts, new.take(pa.array(numbers[at:] - first_new))])
        return self._builder.batch(own, partition.compacted(task, rows))

    def _ordered(self, own: Rows) -> _Fed:
        """What engines read of rows, by slab and in their order."""
        task, rows = self._task.task, own.rows
        first, rest = partition.first_codes(task, rows)
        order = sorted_rows(rows, own.slabs, first, rest)
        return _Fed(
            own.slabs[order],
            partition.symbols_of(task, rows, in_pieces=True)[order],
            as_clock(rows.column(task.order[0].name))[order],
            partition.clocks_of(task, rows)[order],
            own.numbers[order],
        )

    # ------------------------------------------------------------ keys

    def _has_codes(self, rows: pa.Table) -> bool:
        """Do the codes of what is compared mean the same in other rows?"""
        return all(has_own_codes(rows.schema.field(name).type) for name in self._task.task.terms)

    def _goes_on(self, rows: pa.Table) -> bool:
        """Can an engine read these, too? Not the least values of a BIGINT, which have a code among others only."""
        try:
            partition.symbols_of(self._task.task, rows, in_pieces=True)
        except ExecutionError:
            return False
        return True

    def _keys_of(self, rows: pa.Table, slabs: IntArray) -> dict[int, str]:
        """The key of each slab whose rows have one, as text that equal keys share."""
        names = self._task.task.keys
        ids = group_ids([rows.column(name) for name in names], rows.num_rows)
        order = stable_order(slabs)
        begins = np.flatnonzero(np.diff(slabs[order], prepend=-1))
        least, greatest = (ufunc.reduceat(ids[order], begins) for ufunc in (np.minimum, np.maximum))
        firsts = rows.select(list(names)).take(pa.array(order[begins]))
        values = zip(*(column.to_pylist() for column in firsts.columns), strict=True) if names else [()] * len(begins)
        return {
            slab: repr([comparable(value) for value in key])
            for slab, key, one in zip(slabs[order[begins]].tolist(), values, (least == greatest).tolist(), strict=True)
            if one
        }

    # ------------------------------------------------------------ files

    def _write(self, slab: int, engine: Engine, clock: int, key: str) -> None:
        file, name = frozen(engine), uuid.uuid4().hex
        if self._local.put(name, file):
            self._head.engines[slab] = KeptEngine(name, zlib.crc32(file), clock, key)
        else:
            self._head.engines.pop(slab, None)

    def _loaded(self, kept: KeptEngine) -> Engine | None:
        own = self._local.get(kept.name, kept.checksum, private=True)
        return None if own is None else thawed(own, self._task.task.program)


class _Pickler(pickle.Pickler):
    """Leaves out the program, which the task has."""

    def persistent_id(self, obj: object) -> str | None:
        return _PROGRAM if isinstance(obj, Program) else None


class _Unpickler(pickle.Unpickler):
    def __init__(self, told: bytes, arrays: Iterable[memoryview], program: Program) -> None:
        super().__init__(io.BytesIO(told), buffers=arrays)
        self._program = program

    def persistent_load(self, pid: object) -> Program:
        return self._program


def frozen(engine: Engine) -> bytes:
    """An engine as a file: where each array lies, all that is no array, and the arrays."""
    arrays: list[pickle.PickleBuffer] = []
    told = io.BytesIO()
    _Pickler(told, protocol=5, buffer_callback=arrays.append).dump(engine)
    raws = [array.raw() for array in arrays]
    begins = np.cumsum([0, *(_padded(raw.nbytes) for raw in raws)])
    index = pickle.dumps((told.getvalue(), begins[:-1].tolist(), [raw.nbytes for raw in raws]))
    header = len(index).to_bytes(_HEADER, "little") + index
    parts: list[bytes | memoryview] = [header, bytes(_padded(len(header)) - len(header))]
    for raw in raws:
        parts += [raw, bytes(_padded(raw.nbytes) - raw.nbytes)]
    return b"".join(parts)


def thawed(file: pa.Buffer, program: Program) -> Engine:
    """The engine of a file, whose arrays lie where the file is in memory; `program`: that it runs."""
    view = memoryview(file)
    size = int.from_bytes(view[:_HEADER], "little")
    told, begins, sizes = pickle.loads(view[_HEADER : _HEADER + size])
    base = _padded(_HEADER + size)
    arrays = [view[base + begin : base + begin + n] for begin, n in zip(begins, sizes, strict=True)]
    engine: Engine = _Unpickler(told, arrays, program).load()
    return engine


def _padded(n: int) -> int:
    return -(-n // ALIGNED) * ALIGNED
