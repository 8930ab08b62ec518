"""The rows of a stream that were read and still matter: an append-only log of pieces, by the time at which they came.

    micro-batch 1 → piece 1 (rows 0 to 99), micro-batch 2 → piece 2 (rows 100 to 149) … the window passes: piece 1 goes

A micro-batch writes a piece of what has come, and removes those of which all rows have left the window; none is written
again, but that small neighbours are put together as in a log-structured merge tree: a row is written O(log n) times,
and there are few pieces however long the window is. A row that is dropped before its time (it was consumed, or no run
mentions it) is *marked*, a bit a row; a piece of which half the rows are is written without them.
"""

from __future__ import annotations

import uuid
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from runtime.arrays import AnyArray, IntArray
from runtime.stream.head import Piece, Store, as_rows, message, packed, unpacked
from runtime.stream.local import Local

LOG = 1 << 32  # where the pieces are in the store: after all slabs
FEW_ROWS = 1 << 15  # pieces are not put together beyond this, or a part of all rows
PARTS = 32  # that part


class Facts(Protocol):
    """What must be known of rows: the slab of each, and up to which time it matters."""

    def slabs_of(self, rows: pa.Table) -> AnyArray: ...

    def matters_until(self, rows: pa.Table) -> AnyArray: ...

    @property
    def schema(self) -> pa.Schema | None: ...


class Index(Protocol):
    """What lists the pieces: a Head, or a part of it."""

    @property
    def pieces(self) -> dict[int, Piece]: ...

    next_piece: int
    next_row: int


@dataclass
class Loaded:
    """A piece as it is read. `dead`: which rows are there no more; `spent`: at which no match begins."""

    rows: pa.Table
    slabs: AnyArray
    until: AnyArray
    dead: AnyArray | None = None
    spent: AnyArray | None = None
    changed: bool = False

    def alive(self, after: int | None) -> AnyArray:
        """bool[n]: which rows still matter after that time."""
        alive = np.ones(len(self.until), np.bool_) if after is None else self.until > after
        return alive if self.dead is None else alive & ~self.dead

    def marks(self, which: Literal["dead", "spent"]) -> AnyArray:
        """bool[n]: the rows with such a mark."""
        known: AnyArray | None = getattr(self, which)
        return np.zeros(len(self.until), np.bool_) if known is None else known


class Living(NamedTuple):
    """Rows that still matter: the piece of each, and its place in it; whether no match begins at it; their numbers."""

    rows: pa.Table
    pieces: IntArray
    places: IntArray
    spent: AnyArray
    numbers: IntArray


class Log:
    """The pieces of one bucket. `head` lists them; `span`: one holds no more than that stretch of time (None: any), so
    that it goes soon after its rows; `numbered`: rows are found by their numbers, and none is marked."""

    def __init__(self, head: Index, store: Store, local: Local, facts: Facts, span: int | None, numbered: bool) -> None:
        self._head, self._store, self._local, self._facts = head, store, local, facts
        self._span, self._numbered = span, numbered
        self._loaded: dict[int, Loaded] = {}

    @property
    def n(self) -> int:
        """How many rows there are, with those that are marked."""
        return sum(piece.n for piece in self._head.pieces.values())

    # ------------------------------------------------------------ reading

    def living(self, wanted: Iterable[int], after: int | None, since: dict[int, int] | None = None) -> Living:
        """The rows of some slabs that still matter after a time; `since`: of a slab only what matters after this."""
        lookup = _Lookup(wanted, since or {})
        tables, pieces, places, spent, numbers = [], [], [], [], []
        for number, piece in self._head.pieces.items():
            if after is not None and piece.greatest <= after:
                continue
            loaded = self.loaded(number)
            found = np.flatnonzero(lookup.has(loaded.slabs, loaded.until) & loaded.alive(after))
            if not len(found):
                continue
            whole = len(found) == piece.n
            tables.append(loaded.rows if whole else loaded.rows.take(pa.array(found)))
            pieces.append(np.full(len(found), number, np.int64))
            places.append(found)
            numbers.append(found + piece.first)
            spent.append(np.zeros(len(found), np.bool_) if loaded.spent is None else loaded.spent[found])
        none, schema = np.zeros(0, np.int64), self._facts.schema
        assert schema is not None
        return Living(
            pa.concat_tables(tables) if tables else schema.empty_table(),
            np.concatenate([none, *pieces]),
            np.concatenate([none, *places]),
            np.concatenate([np.zeros(0, np.bool_), *spent]),
            np.concatenate([none, *numbers]),
        )

    def slabs_between(self, after: int, until: int) -> set[int]:
        """The slabs of rows that matter after the one time, and not after the other."""
        found: set[int] = set()
        for number, piece in self._head.pieces.items():
            if piece.greatest > after:
                loaded = self.loaded(number)
                found.update(np.unique(loaded.slabs[loaded.alive(after) & (loaded.until <= until)]).tolist())
        return found

    def slabs(self) -> set[int]:
        """All slabs of rows."""
        found: set[int] = set()
        for number in self._head.pieces:
            loaded = self.loaded(number)
            found.update(np.unique(loaded.slabs[loaded.alive(None)]).tolist())
        return found

    def least_after(self, after: int) -> int | None:
        """The least time after this one until which a row matters."""
        least = []
        for number, piece in self._head.pieces.items():
            if piece.greatest > after:
                loaded = self.loaded(number)
                until = loaded.until[loaded.alive(after)]
                least += [int(until.min())] if len(until) else []
        return min(least, default=None)

    def rows(self, numbers: IntArray) -> pa.Table:
        """The rows of these numbers, which are distinct and ascend."""
        tables = []
        for number, piece in self._head.pieces.items():
            begin, end = np.searchsorted(numbers, [piece.first, piece.first + piece.n])
            if begin < end:
                tables.append(self.loaded(number).rows.take(pa.array(numbers[begin:end] - piece.first)))
        return pa.concat_tables(tables)

    def loaded(self, number: int) -> Loaded:
        """A piece: its copy, or what the state holds."""
        if number not in self._loaded:
            piece = self._head.pieces[number]
            own = self._local.get(piece.name, piece.checksum)
            if own is None:
                own = unpacked(self._store.get(LOG + 2 * number), number)
                self._local.put(piece.name, own)
            rows = as_rows(own, self._facts.schema)
            loaded = Loaded(rows, self._facts.slabs_of(rows), self._facts.matters_until(rows))
            if piece.marked:
                marks = unpacked(self._store.get(LOG + 2 * number + 1), number)
                bits = np.unpackbits(np.frombuffer(marks, np.uint8).reshape(2, -1), axis=1, count=piece.n)
                loaded.dead, loaded.spent = bits.astype(np.bool_)
            self._loaded[number] = loaded
        return self._loaded[number]

    # ------------------------------------------------------------ writing

    def append(self, rows: pa.Table, spent: AnyArray | None = None) -> None:
        """A piece more, if there are rows. `spent`: at which no match begins."""
        if rows.num_rows:
            self._write(self._new_number(), rows, self._head.next_row, None, spent)
            self._head.next_row += rows.num_rows

    def mark(self, living: Living, dead: AnyArray, spent: AnyArray) -> None:
        """Mark living rows: `dead` ones are there no more, at `spent` ones no match begins."""
        for number in np.unique(living.pieces[dead | (spent & ~living.spent)]).tolist():
            own, loaded = living.pieces == number, self.loaded(number)
            if loaded.dead is None or loaded.spent is None:
                n = self._head.pieces[number].n
                loaded.dead, loaded.spent = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
            loaded.dead[living.places[own & dead]] = True
            loaded.spent[living.places[own & spent]] = True
            loaded.changed = True

    def forget(self, until: int) -> None:
        """Remove the pieces of which nothing matters after that time."""
        for number in [number for number, piece in self._head.pieces.items() if piece.greatest <= until]:
            self._remove(number)

    def clear(self) -> None:
        """Remove all pieces."""
        for number in list(self._head.pieces):
            self._remove(number)

    def tidy(self) -> None:
        """Write the marks that have changed, without rows that are dead where these are many; put small neighbours
        together."""
        for number in [number for number, loaded in self._loaded.items() if loaded.changed]:
            self._write_marks(number)
        most = max(FEW_ROWS, self.n // PARTS)
        while len(self._head.pieces) > 1:
            before, last = list(self._head.pieces)[-2:]
            first, second = self._head.pieces[before], self._head.pieces[last]
            if first.n > 2 * second.n or first.n + second.n > most or not self._can_join(first, second):
                return
            self._together(before, last)

    def recast(self, schema: pa.Schema) -> None:
        """All rows with fewer columns."""
        for number, piece in self._head.pieces.items():
            loaded = self.loaded(number)
            loaded.rows = loaded.rows.select(schema.names).cast(schema)
            piece.name, piece.checksum = self._stored(number, loaded.rows)

    def _new_number(self) -> int:
        number = self._head.next_piece
        self._head.next_piece += 1
        return number

    def _write(
        self, number: int, rows: pa.Table, first: int, dead: AnyArray | None = None, spent: AnyArray | None = None
    ) -> None:
        """Store a piece; its marks are stored when all is tidied."""
        known = self._head.pieces.get(number)
        if known is not None and known.marked:
            self._store.remove(LOG + 2 * number + 1)
        loaded = Loaded(rows, self._facts.slabs_of(rows), self._facts.matters_until(rows))
        if any(marks is not None and marks.any() for marks in (dead, spent)):
            loaded.dead = np.zeros(len(loaded.until), np.bool_) if dead is None else dead
            loaded.spent = np.zeros(len(loaded.until), np.bool_) if spent is None else spent
            loaded.changed = True
        name, checksum = self._stored(number, rows)
        piece = Piece(rows.num_rows, first, int(loaded.until.min()), int(loaded.until.max()), name, checksum)
        self._head.pieces[number], self._loaded[number] = piece, loaded

    def _stored(self, number: int, rows: pa.Table) -> tuple[str, int]:
        """Store rows, and a copy; its name and its checksum."""
        own, name = message(rows), uuid.uuid4().hex
        self._store.put(LOG + 2 * number, packed(own))
        self._local.put(name, own)
        return name, zlib.crc32(own)

    def _write_marks(self, number: int) -> None:
        loaded, piece = self._loaded[number], self._head.pieces[number]
        assert loaded.dead is not None
        assert loaded.spent is not None
        n_dead = int(loaded.dead.sum())
        if n_dead == piece.n:
            self._remove(number)
            return
        if 2 * n_dead > piece.n:
            alive = ~loaded.dead
            self._write(number, loaded.rows.filter(pa.array(alive)), piece.first, None, loaded.spent[alive])
            loaded, piece = self._loaded[number], self._head.pieces[number]
        if loaded.dead is not None and loaded.spent is not None:
            piece.marked, loaded.changed = True, False
            bits = np.packbits(np.stack([loaded.dead, loaded.spent]), axis=1)
            self._store.put(LOG + 2 * number + 1, packed(pa.py_buffer(bits.tobytes())))

    def _can_join(self, first: Piece, second: Piece) -> bool:
        """Can two neighbours be one: do they lie near each other, and do the numbers of their rows follow?"""
        span = max(first.greatest, second.greatest) - min(first.least, second.least)
        near = self._span is None or span <= self._span
        return near and (not self._numbered or first.first + first.n == second.first)

    def _together(self, *numbers: int) -> None:
        """Put neighbours together."""
        parts = [self.loaded(number) for number in numbers]
        first = self._head.pieces[numbers[0]].first
        rows = pa.concat_tables([part.rows for part in parts]).combine_chunks()
        dead, spent = (np.concatenate([part.marks(which) for part in parts]) for which in ("dead", "spent"))
        for number in numbers:
            self._remove(number)
        number = self._new_number()
        self._write(number, rows, first, dead, spent)
        if self._loaded[number].changed:
            self._write_marks(number)

    def _remove(self, number: int) -> None:
        piece = self._head.pieces.pop(number)
        self._loaded.pop(number, None)
        self._store.remove(LOG + 2 * number)
        if piece.marked:
            self._store.remove(LOG + 2 * number + 1)


class _Lookup:
    """Slabs that are wanted, by a table: a slab is found by its low bits, so that rows of others may be found, too."""

    BITS = 16

    def __init__(self, wanted: Iterable[int], since: dict[int, int]) -> None:
        self._after = np.full(1 << self.BITS, np.iinfo(np.int64).max)
        for slab in wanted:
            at = slab & ((1 << self.BITS) - 1)
            self._after[at] = since.get(slab, np.iinfo(np.int64).min)

    def has(self, slabs: AnyArray, until: AnyArray) -> AnyArray:
        """bool[n]: which rows are wanted."""
        found: AnyArray = self._after[slabs & ((1 << self.BITS) - 1)] < until
        return found
