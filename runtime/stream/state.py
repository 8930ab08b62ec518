"""The state of one bucket: rows of its keys as blobs, and an index of them.

Rows lie in *slabs* of keys, so that only slabs with rows or due times are read and written.
"""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from runtime.arrays import AnyArray
from runtime.errors import ExecutionError, InternalError
from runtime.partition.order import as_clock
from runtime.stream.changes import other_columns, readable, stream_changed, stream_zone, typed
from runtime.stream.task import NEVER, Stated

STATE_FORMAT = 2
FORMATS = (1, 2)  # that are read; before 2 all rows lay in slabs
HEAD = 0  # the key of the index; slabs are 1, 2, …, chunks -1, -2, …, and pieces of the log lie behind all slabs


class Store(Protocol):
    """Where a bucket's state lies: blobs by number."""

    def get(self, number: int) -> bytes | None: ...

    def put(self, number: int, blob: bytes) -> None: ...

    def remove(self, number: int) -> None: ...


@dataclass
class Chunk:
    """Rows that wait: from `least` on."""

    least: int
    n: int


@dataclass
class Slab:
    """Rows of some keys: how many, the least time from which something can still change, the greatest (Left.until); and
    for each, as bits, whether no match can begin there (StreamTask.spent)."""

    n: int
    least: int | None
    greatest: int
    spent: bytes = b""


@dataclass
class Piece:
    """Some rows of the log: how many, the number of the first (rows are numbered as they come), the times up to which
    the first and the last of them matter, the name and the checksum of its copy, and whether some are marked."""

    n: int
    first: int
    least: int
    greatest: int
    name: str
    checksum: int
    marked: bool = False


@dataclass
class KeptEngine:
    """The engine of a slab: the name and the checksum of its file, up to which time it has read, and of which key."""

    name: str
    checksum: int
    clock: int
    key: str


@dataclass
class Head:
    """The index of a bucket's state. `late`: rows that came too late. `timer`: when to wake up (see next_due). `zone`:
    StreamTask's, of the session that began it. `identity`: a name that no other state has."""

    format: int
    meaning: str
    described: str
    schema: bytes | None = None
    watermark: int = NEVER
    late: int = 0
    next_chunk: int = 1
    timer: int | None = None
    zone: str | None = None  # also of a state that was written when there was no such field
    chunks: dict[int, Chunk] = field(default_factory=dict)
    slabs: dict[int, Slab] = field(default_factory=dict)
    pieces: dict[int, Piece] = field(default_factory=dict)
    engines: dict[int, KeptEngine] = field(default_factory=dict)
    next_piece: int = 1
    next_row: int = 0
    identity: str = field(default_factory=lambda: uuid.uuid4().hex)

    def __setstate__(self, known: dict[str, Any]) -> None:
        """A head of a release that knew less."""
        self.__init__(known["format"], known["meaning"], known["described"])  # type: ignore[misc]
        self.__dict__.update(known)


class Left(NamedTuple):
    """What is left of the rows of some slabs; for each whether what began there can still change, whether no match can
    begin there any more, and of what time the last row is that it is there for (`until`)."""

    rows: pa.Table
    open: AnyArray
    spent: AnyArray
    until: AnyArray


class State:
    """The rows of one bucket. Nothing that is done to it is there the next time, unless it is saved."""

    def __init__(self, of: Stated, store: Store) -> None:
        self._of, self._store = of, store
        self._schema: pa.Schema | None = None
        self.head = self._read_head()

    def save(self) -> None:
        """Write the index; until then nothing of a run is in the state."""
        if self._schema is not None:
            self.head.schema = self._schema.serialize().to_pybytes()
        self.head.format = STATE_FORMAT
        self._store.put(HEAD, pickle.dumps(self.head))

    @property
    def empty(self) -> bool:
        return not self.head.chunks and not self.head.slabs and not self.head.pieces

    def in_time(self, tables: Iterable[pa.Table], watermark: int) -> tuple[pa.Table | None, int]:
        """The rows that have come, in the schema of the state, and how many too late: at or before the watermark."""
        late = 0
        arrived = []
        for table in tables:
            if self._schema is None:
                self._schema = self._checked(table.schema)
            in_time = self.clocks(table) > watermark
            if not in_time.all():
                late += self.n_rows(table.filter(pa.array(~in_time)))
                table = table.filter(pa.array(in_time))
            arrived.append(table.cast(self._schema))
        return pa.concat_tables(arrived) if arrived else None, late

    def n_rows(self, rows: pa.Table) -> int:
        """How many rows of the stream these are."""
        return rows.num_rows

    def clocks(self, table: pa.Table) -> AnyArray:
        """The times of rows, in microseconds."""
        return as_clock(table.column(self._of.time))

    # ------------------------------------------------------------ slabs

    def slabs_of(self, rows: pa.Table) -> AnyArray:
        """In which slab each row lies."""
        return as_clock(rows.column(self._of.slab))

    def slab(self, number: int) -> pa.Table:
        """The rows of a slab."""
        return self._rows(number + 1)

    def put(self, left: Left, touched: set[int]) -> None:
        """Store what is left of the slabs that were read."""
        slabs = self.slabs_of(left.rows)
        order = np.argsort(slabs, kind="stable")
        numbers, begins = np.unique(slabs[order], return_index=True)
        rows, open_, spent, until = (left.rows.take(pa.array(order)), *(part[order] for part in left[1:]))
        clocks = self.clocks(rows)
        for number, (begin, end) in zip(numbers.tolist(), pairwise([*begins.tolist(), len(order)]), strict=True):
            own_open = clocks[begin:end][open_[begin:end]]
            least = int(own_open.min()) if len(own_open) else None
            bits = np.packbits(spent[begin:end]).tobytes() if spent.any() else b""
            self.head.slabs[number] = Slab(end - begin, least, int(until[begin:end].max()), bits)
            self._store.put(number + 1, blob(rows.slice(begin, end - begin)))
        for number in touched - set(numbers.tolist()):
            self.remove(number)

    def remove(self, number: int) -> None:
        """Forget a slab, if it is there."""
        if self.head.slabs.pop(number, None) is not None:
            self._store.remove(number + 1)

    # ------------------------------------------------------------ blobs

    def _read_head(self) -> Head:
        of, stored = self._of, self._store.get(HEAD)
        if stored is None:
            return Head(STATE_FORMAT, of.meaning, of.described, zone=of.zone)
        with readable():
            head: Head = pickle.loads(stored)
        if head.format not in FORMATS:
            hint = "Go on with the release that began it, or begin anew with another checkpoint."
            raise ExecutionError("STREAM_VERSION", found=head.format, expected=STATE_FORMAT, hint=hint)
        if head.meaning != of.meaning:
            raise stream_changed(head.described, of.described)
        if head.zone is None:
            head.zone = of.zone
        if head.zone != of.zone:
            raise stream_zone(head.zone, of.zone)
        return head

    def _stored_schema(self) -> pa.Schema | None:
        if self.head.schema is None:
            return None
        stored = pa.ipc.read_schema(pa.py_buffer(self.head.schema))
        if not self.empty and not set(self._of.columns) <= set(stored.names):
            raise other_columns(typed(stored), list(zip(self._of.columns, self._of.types, strict=False)))
        return stored

    def _checked(self, schema: pa.Schema) -> pa.Schema:
        """The schema of new rows, which the rows in the state take: they may have more columns, of the same types."""
        schema = schema.remove_metadata()
        stored = self._stored_schema()
        if stored is None or self.empty or stored == schema:
            return schema
        types = dict(zip(stored.names, stored.types, strict=True))
        if not all(name in types and _alike(types[name], schema.field(name).type) for name in schema.names):
            raise other_columns(typed(stored), typed(schema))
        self._schema = stored
        self._recast(schema)
        return schema

    def _recast(self, schema: pa.Schema) -> None:
        """Write all rows with fewer columns."""
        for number in [*(-chunk for chunk in self.head.chunks), *(slab + 1 for slab in self.head.slabs)]:
            self._store.put(number, blob(self._rows(number).select(schema.names).cast(schema)))

    def _rows(self, number: int) -> pa.Table:
        if self._schema is None:
            self._schema = self._stored_schema()
        return as_rows(unpacked(self._store.get(number), number), self._schema)


def _alike(a: pa.DataType, b: pa.DataType) -> bool:
    zones = pa.types.is_timestamp(a) and pa.types.is_timestamp(b)
    return bool(a == b or (zones and a.unit == b.unit and (a.tz is None) == (b.tz is None)))


def blob(rows: pa.Table) -> bytes:
    """The rows without their schema, which the index holds."""
    return packed(message(rows))


def message(rows: pa.Table) -> pa.Buffer:
    """The rows as one Arrow message."""
    (batch,) = rows.combine_chunks().to_batches()
    return batch.serialize()


def as_rows(message: pa.Buffer, schema: pa.Schema | None) -> pa.Table:
    """The rows of a message. ExecutionError STREAM_DAMAGED if it is none."""
    if schema is None:
        raise InternalError("INTERNAL", detail="the state of a stream has rows, and no columns")
    with readable():
        return pa.Table.from_batches([pa.ipc.read_record_batch(message, schema)])


def packed(buffer: pa.Buffer) -> bytes:
    """Its length, and it in LZ4."""
    found: bytes = pa.compress(buffer, "lz4", asbytes=True)
    return buffer.size.to_bytes(8, "little") + found


def unpacked(stored: bytes | None, number: int) -> pa.Buffer:
    """What was packed; `number`: of the blob in the store, for the error where it is not there."""
    if stored is None:
        raise InternalError("INTERNAL", detail=f"the state of a stream has lost its part {number}")
    with readable():
        return pa.decompress(stored[8:], int.from_bytes(stored[:8], "little"), "lz4")
