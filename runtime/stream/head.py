"""The index of a bucket's state, and how its blobs are written."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from runtime.errors import InternalError
from runtime.stream.changes import readable
from runtime.stream.task import NEVER

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


class Sizes(NamedTuple):
    """How much is in a state: rows that later matches may need, rows that wait for the watermark, and kept engines."""

    held: int
    waiting: int
    engines: int


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
    firsts: dict[int, Piece] = field(default_factory=dict)  # of the first rows of keys (runtime.stream.firsts)
    next_piece: int = 1
    next_row: int = 0
    identity: str = field(default_factory=lambda: uuid.uuid4().hex)

    def __setstate__(self, known: dict[str, Any]) -> None:
        """A head of a release that knew less."""
        self.__init__(known["format"], known["meaning"], known["described"])  # type: ignore[misc]
        self.__dict__.update(known)


def sizes(head: Head) -> Sizes:
    """How much is in a state, by its index."""
    held = sum(part.n for parts in (head.slabs, head.pieces) for part in parts.values())
    return Sizes(held, sum(chunk.n for chunk in head.chunks.values()), len(head.engines))


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
