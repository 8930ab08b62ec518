"""One bucket of a stream: rows wait until the watermark passes, then meet the rows of their keys that still matter.

The state of a query is the *rows* that a later match can mention, not the engine's arena: a match is decided by the
rows of its window before it is known (planner.streaming says for which queries), so the engine reads those of a key
again when new ones come, and only the matches that end at new rows are given out. Reading rows costs nothing beside
fetching them from Spark's state: an engine reads some 10⁷ rows a second, a state store gives some 10⁵. In return the
state does not depend on how engines work, rows of many keys share one blob, and a restart needs no engine to restore.

Rows lie in *slabs* of keys, so that only slabs with rows or due times are read and written; an index says when each is
due. Rows that wait lie in chunks by time, so that only those that the watermark reaches are read. A slab whose rows
have all left the window is removed unread.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Protocol

import numpy as np
import pyarrow as pa

from runtime.arrays import AnyArray
from runtime.errors import CersqlError, ExecutionError, InternalError
from runtime.partition.order import as_clock
from runtime.stream.rereading import Held, Left, Times, advance
from runtime.stream.task import FOREVER, NEVER, StreamTask

STATE_FORMAT = 1
MOST_CHUNKS = 4  # that the rows of one micro-batch are cut into, give or take one
HEAD = 0  # the key of the index; slabs are 1, 2, … and chunks -1, -2, …


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
    """Rows of some keys: how many, the least time from which something can still change, and the greatest time; and
    for each, as bits, whether no match can begin there (StreamTask.spent)."""

    n: int
    least: int | None
    greatest: int
    spent: bytes = b""


@dataclass
class Head:
    """The index of a bucket's state. `late`: rows that came too late. `timer`: when to wake up (see next_due). `zone`:
    StreamTask's, of the session that began it."""

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


class Bucket:
    """The state of one bucket, and what a micro-batch does to it."""

    def __init__(self, task: StreamTask, store: Store) -> None:
        self._task, self._store = task, store
        self._schema: pa.Schema | None = None
        self.head = self._read_head()

    # ------------------------------------------------------------ the contract

    def run(self, tables: Iterable[pa.Table], watermark: int) -> Iterator[pa.RecordBatch]:
        """Take new rows and the watermark (microseconds) that holds; yield the matches that are known by it.

        A row at or before the watermark is late: it is dropped, and counted. Must be read to its end, and saved.
        """
        head, late = self.head, 0
        arrived = []
        for table in tables:
            if self._schema is None:
                self._schema = self._checked(table.schema)
            clocks = self._clocks(table)
            in_time = clocks > watermark
            late += int(len(clocks) - in_time.sum())
            kept = table if in_time.all() else table.filter(pa.array(in_time))
            arrived.append(kept.cast(self._schema))
        if arrived:
            self._wait(pa.concat_tables(arrived))
        head.late += late
        if watermark > head.watermark:
            before, head.watermark = head.watermark, watermark
            yield from self._advance(Times(watermark, before))
        if self._schema is not None:
            head.schema = self._schema.serialize().to_pybytes()

    def save(self) -> None:
        """Write the index; until then nothing of a run is in the state."""
        self._store.put(HEAD, pickle.dumps(self.head))

    def next_due(self) -> int | None:
        """The least watermark, in microseconds, at which there is something to do; None if nothing waits."""
        times = [chunk.least for chunk in self.head.chunks.values()]
        times += [self._due(slab) for slab in self.head.slabs.values()]
        return min(times, default=None)

    @property
    def empty(self) -> bool:
        return not self.head.chunks and not self.head.slabs

    # ------------------------------------------------------------ rows that wait

    def _clocks(self, table: pa.Table) -> AnyArray:
        return as_clock(table.column(self._task.task.order[0].name))

    def _wait(self, rows: pa.Table) -> None:
        """Store rows until the watermark passes them, by stretches of time."""
        if not rows.num_rows:
            return
        clocks = self._clocks(rows)
        # A chunk costs two calls to the store, so there are few of them, however long the time is that they cover.
        width = max(self._task.slot_us, int(clocks.max() - clocks.min()) // MOST_CHUNKS + 1)
        slots = clocks // width
        for slot in np.unique(slots).tolist():
            chosen = slots == slot
            part = rows if chosen.all() else rows.filter(pa.array(chosen))
            number = self.head.next_chunk
            self.head.next_chunk += 1
            self.head.chunks[number] = Chunk(int(clocks[chosen].min()), part.num_rows)
            self._store.put(-number, _blob(part))

    def _ready(self, watermark: int) -> list[pa.Table]:
        """Take the rows that the watermark has passed; of their chunks the others wait on."""
        ready, waiting = [], []
        for number, chunk in list(self.head.chunks.items()):
            if chunk.least > watermark:
                continue
            rows = self._rows(-number)
            self._store.remove(-number)
            del self.head.chunks[number]
            passed = self._clocks(rows) <= watermark
            if passed.all():
                ready.append(rows)
                continue
            ready.append(rows.filter(pa.array(passed)))
            waiting.append(rows.filter(pa.array(~passed)))
        if waiting:
            self._wait(pa.concat_tables(waiting))
        return ready

    # ------------------------------------------------------------ slabs

    def _due(self, slab: Slab) -> int:
        """When a slab must be looked at again, whatever comes: for what closes in it, or to be freed."""
        task = self._task
        if task.reach.kind != "time":
            return FOREVER
        freed = task.holds.closes_at(slab.greatest)
        return freed if slab.least is None or not task.waits else min(freed, task.reach.closes_at(slab.least))

    def _advance(self, times: Times) -> Iterator[pa.RecordBatch]:
        """The watermark has come to here: read what it has passed, and what closes by it."""
        watermark = times.watermark
        ready = self._ready(watermark)
        if self._schema is None:
            self._schema = self._stored_schema()
        new = pa.concat_tables(ready) if ready else None
        arriving = set() if new is None else set(np.unique(as_clock(new.column(self._task.slab))).tolist())
        due = {number for number, slab in self.head.slabs.items() if self._due(slab) <= watermark}
        if self._expires_unread():
            for number in due - arriving:
                self._remove(number)
            due &= arriving
        touched = arriving | due
        if not touched:
            return
        known = [number for number in sorted(touched) if number in self.head.slabs]
        old = [self._rows(number + 1) for number in known]
        spent = [self._spent(self.head.slabs[number]) for number in known]
        tables = [*old, *([] if new is None else [new])]
        n_old = sum(table.num_rows for table in old)
        held = Held(pa.concat_tables(tables), n_old, np.concatenate([np.zeros(0, np.bool_), *spent]))
        left = yield from advance(self._task, held, times)
        self._put(left, touched)

    def _spent(self, slab: Slab) -> AnyArray:
        if not self._task.spent:
            return np.zeros(slab.n, np.bool_)
        found: AnyArray = np.unpackbits(np.frombuffer(slab.spent, np.uint8), count=slab.n).astype(np.bool_)
        return found

    def _expires_unread(self) -> bool:
        """Is a due slab one of which nothing is left?"""
        return not self._task.waits and self._task.reach.kind == "time"

    def _put(self, left: Left, touched: set[int]) -> None:
        """Store what is left of the slabs that were read."""
        slabs = as_clock(left.rows.column(self._task.slab))
        order = np.argsort(slabs, kind="stable")
        numbers, begins = np.unique(slabs[order], return_index=True)
        rows, open_ = left.rows.take(pa.array(order)), left.open[order]
        clocks = self._clocks(rows)
        for number, (begin, end) in zip(numbers.tolist(), pairwise([*begins.tolist(), len(order)]), strict=True):
            own, own_open = clocks[begin:end], clocks[begin:end][open_[begin:end]]
            least = int(own_open.min()) if len(own_open) else None
            spent = np.packbits(left.spent[order[begin:end]]).tobytes() if self._task.spent else b""
            self.head.slabs[number] = Slab(end - begin, least, int(own.max()), spent)
            self._store.put(number + 1, _blob(rows.slice(begin, end - begin)))
        for number in touched - set(numbers.tolist()):
            self._remove(number)

    def _remove(self, number: int) -> None:
        if self.head.slabs.pop(number, None) is not None:
            self._store.remove(number + 1)

    # ------------------------------------------------------------ blobs

    def _read_head(self) -> Head:
        blob = self._store.get(HEAD)
        task = self._task
        if blob is None:
            return Head(STATE_FORMAT, task.meaning, task.described, zone=task.zone)
        with _readable():
            head: Head = pickle.loads(blob)
        if head.format != STATE_FORMAT:
            hint = "Go on with the release that began it, or begin anew with another checkpoint."
            raise ExecutionError("STREAM_VERSION", found=head.format, expected=STATE_FORMAT, hint=hint)
        if head.meaning != task.meaning:
            raise stream_changed(head.described, task.described)
        if head.zone is None:
            head.zone = task.zone
        if head.zone != task.zone:
            raise stream_zone(head.zone, task.zone)
        return head

    def _stored_schema(self) -> pa.Schema | None:
        if self.head.schema is None:
            return None
        stored = pa.ipc.read_schema(pa.py_buffer(self.head.schema))
        if not self.empty and not set(self._task.columns) <= set(stored.names):
            raise _other_columns(_typed(stored), list(zip(self._task.columns, self._task.types, strict=False)))
        return stored

    def _checked(self, schema: pa.Schema) -> pa.Schema:
        """The schema of new rows, which the rows in the state take: they may have more columns, of the same types."""
        schema = schema.remove_metadata()
        stored = self._stored_schema()
        if stored is None or self.empty or stored == schema:
            return schema
        types = dict(zip(stored.names, stored.types, strict=True))
        if not all(name in types and _alike(types[name], schema.field(name).type) for name in schema.names):
            raise _other_columns(_typed(stored), _typed(schema))
        self._schema = stored
        for number in [*(-chunk for chunk in self.head.chunks), *(slab + 1 for slab in self.head.slabs)]:
            self._store.put(number, _blob(self._rows(number).select(schema.names).cast(schema)))
        return schema

    def _rows(self, number: int) -> pa.Table:
        blob = self._store.get(number)
        if self._schema is None:
            self._schema = self._stored_schema()
        if blob is None or self._schema is None:
            raise InternalError("INTERNAL", detail=f"the state of a stream has lost its part {number}")
        with _readable():
            return pa.Table.from_batches([pa.ipc.read_record_batch(_decompressed(blob), self._schema)])


# ---------------------------------------------------------------- what cannot go on


def stream_changed(old: str, new: str) -> ExecutionError:
    """The checkpoint is of another query; both as people wrote them."""
    return ExecutionError(
        "STREAM_CHANGED", old=old, new=new,
        hint="Start it with a new checkpoint. RETURN, HAVING and the names of variables may change; where only "
        "numbers differ, SET cersql.stream.buckets and cersql.stream.slabs to what they were.",
    )  # fmt: skip


def stream_zone(old: str, new: str) -> ExecutionError:
    """The same query, whose conditions would now mean other times of day."""
    hint = f"SET spark.sql.session.timeZone = {old}, and start it again; or start it with a new checkpoint."
    return ExecutionError("STREAM_ZONE", old=old or "none", new=new or "none", hint=hint)


def _other_columns(old: Sequence[tuple[str, str]], new: Sequence[tuple[str, str]]) -> ExecutionError:
    """Columns of our own are shown only where nothing else differs."""
    hint = "Start it with a new checkpoint, or bring the columns back into their old types in a subquery."
    shown = [[column for column in columns if not column[0].startswith("__cersql")] for columns in (old, new)]
    if shown[0] == shown[1]:
        shown = [list(old), list(new)]
    texts = [", ".join(f"{name} {type}".rstrip() for name, type in columns) for columns in shown]
    return ExecutionError("STREAM_COLUMNS", old=texts[0] or "none", new=texts[1] or "none", hint=hint)


@contextmanager
def _readable() -> Iterator[None]:
    """What cannot be read of a state is damaged: an error that says so, not the reader's own."""
    try:
        yield
    except CersqlError:
        raise
    except Exception as error:
        hint = "Restore the checkpoint from a copy, or start with a new one, and with the rows from the beginning."
        raise ExecutionError("STREAM_DAMAGED", reason=f"{type(error).__name__}: {error}", hint=hint) from error


def _blob(rows: pa.Table) -> bytes:
    """The rows without their schema, which the index holds: the length of an Arrow message, and the message in LZ4."""
    (batch,) = rows.combine_chunks().to_batches()
    message = batch.serialize()
    packed: bytes = pa.compress(message, "lz4", asbytes=True)
    return message.size.to_bytes(8, "little") + packed


def _decompressed(blob: bytes) -> pa.Buffer:
    return pa.decompress(blob[8:], int.from_bytes(blob[:8], "little"), "lz4")


def _alike(a: pa.DataType, b: pa.DataType) -> bool:
    zones = pa.types.is_timestamp(a) and pa.types.is_timestamp(b)
    return bool(a == b or (zones and a.unit == b.unit and (a.tz is None) == (b.tz is None)))


def _typed(schema: pa.Schema) -> list[tuple[str, str]]:
    return [(field.name, sql_type(field.type)) for field in schema]


_SQL_TYPES = {
    "bool": "BOOLEAN", "int8": "TINYINT", "int16": "SMALLINT", "int32": "INT", "int64": "BIGINT", "float": "FLOAT",
    "double": "DOUBLE", "string": "STRING", "large_string": "STRING", "binary": "BINARY", "large_binary": "BINARY",
    "date32[day]": "DATE", "null": "VOID",
}  # fmt: skip


def sql_type(type: pa.DataType) -> str:
    """A type of Arrow's as Spark calls it: int64 is BIGINT."""
    if pa.types.is_timestamp(type):
        return "TIMESTAMP_NTZ" if type.tz is None else "TIMESTAMP"
    if pa.types.is_decimal(type):
        return f"DECIMAL({type.precision},{type.scale})"
    if pa.types.is_list(type) or pa.types.is_large_list(type):
        return f"ARRAY<{sql_type(type.value_type)}>"
    if pa.types.is_map(type):
        return f"MAP<{sql_type(type.key_type)},{sql_type(type.item_type)}>"
    if pa.types.is_struct(type):
        fields = (type.field(i) for i in range(type.num_fields))
        return f"STRUCT<{','.join(f'{field.name}:{sql_type(field.type)}' for field in fields)}>"
    return _SQL_TYPES.get(str(type), str(type).upper())
