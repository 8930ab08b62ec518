"""The state of one bucket: rows as blobs, and an index of them.

Rows that were read lie in a log (runtime.stream.log). They are told apart by *slabs* of keys, so that only those of the
slabs of new rows are looked at.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from runtime.arrays import AnyArray
from runtime.errors import ExecutionError
from runtime.partition.order import as_clock, combined
from runtime.stream.changes import other_columns, readable, stream_changed, stream_zone, typed
from runtime.stream.head import (  # Chunk, Slab: pickles of the first format name them here
    FORMATS,
    HEAD,
    STATE_FORMAT,
    Chunk,
    Head,
    Slab,
    Store,
    as_rows,
    blob,
    unpacked,
)
from runtime.stream.local import Local
from runtime.stream.log import Log
from runtime.stream.task import FOREVER, Stated

__all__ = ["Chunk", "Head", "Slab", "State"]


class State:
    """The rows of one bucket. Nothing that is done to it is there the next time, unless it is saved."""

    def __init__(
        self, of: Stated, store: Store, folder: str | None = None, span: int | None = None, numbered: bool = False
    ) -> None:
        """`folder`: where copies of it may lie; `span`, `numbered`: see Log."""
        self._of, self._store = of, store
        self._schema: pa.Schema | None = None
        self.head = self._read_head()
        self.local = Local(folder, self.head.identity)
        self.log = Log(self.head, store, self.local, self, span, numbered)

    def save(self) -> None:
        """Write the index; until then nothing of a run is in the state."""
        if self._schema is not None:
            self.head.schema = self._schema.serialize().to_pybytes()
        self.head.format = STATE_FORMAT
        self._store.put(HEAD, pickle.dumps(self.head))
        head = self.head
        self.local.keep({part.name for parts in (head.pieces, head.engines, head.firsts) for part in parts.values()})

    @property
    def empty(self) -> bool:
        head = self.head
        return not (head.chunks or head.slabs or head.pieces or head.firsts)

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

    # ------------------------------------------------------------ what the log asks

    def slabs_of(self, rows: pa.Table) -> AnyArray:
        """In which slab each row lies."""
        return np.asarray(combined(rows.column(self._of.slab)))

    def matters_until(self, rows: pa.Table) -> AnyArray:
        """The time up to which each row matters, in microseconds."""
        return self.clocks(rows)

    @property
    def schema(self) -> pa.Schema | None:
        """Of the rows that are held."""
        if self._schema is None:
            self._schema = self._stored_schema()
        return self._schema

    def open(self) -> None:
        """See that all rows that were read lie in the log: those of the first format lie in a blob for each slab."""
        for number, slab in list(self.head.slabs.items()):
            spent = np.unpackbits(np.frombuffer(slab.spent, np.uint8), count=slab.n) if slab.spent else np.zeros(slab.n)
            self.log.append(self._rows(number + 1), spent.astype(np.bool_))
            del self.head.slabs[number]
            self._store.remove(number + 1)

    def forget(self, horizon: int | None, watermark: int) -> None:
        """Remove what matters no more after a time (None: time does not tell), or at the end of time; write the rest
        that has changed."""
        if watermark >= FOREVER:
            self.log.clear()
        elif horizon is not None:
            self.log.forget(horizon)
        self.log.tidy()

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
        self.open()
        for number in self.head.chunks:
            self._store.put(-number, blob(self._rows(-number).select(schema.names).cast(schema)))
        self.log.recast(schema)

    def _rows(self, number: int) -> pa.Table:
        return as_rows(unpacked(self._store.get(number), number), self.schema)


def _alike(a: pa.DataType, b: pa.DataType) -> bool:
    zones = pa.types.is_timestamp(a) and pa.types.is_timestamp(b)
    return bool(a == b or (zones and a.unit == b.unit and (a.tz is None) == (b.tz is None)))
