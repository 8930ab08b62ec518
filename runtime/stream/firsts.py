"""The first row of each key of a stream, held for ever: it tells START that no later row is the first.

    START(A ; B) WITHIN 1 HOUR: k = 7 began at 09:00; at 11:00 its row of 09:00 is read before those of the last hour

In a window of time rows leave the log without being read again, so first rows lie in a log of their own as well, which
none of them leaves; while a row is in its window it is read from there. (In a window of events it is never marked as
gone.) A row that has left the window is out of reach of all that comes, but for its place in front of it.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from runtime.arrays import AnyArray
from runtime.stream.head import Head, Piece, Store
from runtime.stream.local import Local
from runtime.stream.log import Facts, Log
from runtime.stream.task import FOREVER


class Firsts:
    """Those of one bucket; there are none where nothing asks for them. `facts`: of rows in their window."""

    def __init__(self, head: Head, store: Store, local: Local, facts: Facts) -> None:
        self._facts = facts
        self.log = Log(_Index(head), store, local, _Lasting(facts), None, numbered=False)

    def passed(self, slabs: Iterable[int], horizon: int | None) -> pa.Table:
        """Those of some slabs that matter no more after the horizon, and so are not among other rows."""
        rows = self.log.living(slabs, None).rows
        return rows.filter(pa.array(self._facts.matters_until(rows) <= (horizon or 0))) if rows.num_rows else rows

    def note(self, rows: pa.Table) -> None:
        """Hold these, too."""
        if rows.num_rows:
            self.log.append(rows)

    def forget(self, watermark: int) -> None:
        """Write what has changed; at the end of time nothing is left."""
        if watermark >= FOREVER:
            self.log.clear()
        self.log.tidy()


class _Index:
    """The part of a head that lists the pieces of first rows; pieces of both logs are numbered together."""

    def __init__(self, head: Head) -> None:
        self._head, self.next_row = head, 0

    @property
    def pieces(self) -> dict[int, Piece]:
        return self._head.firsts

    @property
    def next_piece(self) -> int:
        return self._head.next_piece

    @next_piece.setter
    def next_piece(self, number: int) -> None:
        self._head.next_piece = number


class _Lasting:
    """Facts of rows that matter for ever."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts

    def slabs_of(self, rows: pa.Table) -> AnyArray:
        return self._facts.slabs_of(rows)

    @property
    def schema(self) -> pa.Schema | None:
        return self._facts.schema

    def matters_until(self, rows: pa.Table) -> AnyArray:
        return np.full(rows.num_rows, FOREVER, np.int64)
