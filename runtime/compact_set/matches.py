"""Matches as flat arrays: what an engine yields."""

from __future__ import annotations

from typing import NamedTuple

from runtime.arrays import AnyArray, IntArray
from runtime.compact_set import chained


class Matches(NamedTuple):
    """n matches; the events of match k are offsets[k] … offsets[k+1], in stream order.

    `positions` are the rows that the caller gave (by default the positions in the key's stream), `labels` indices
    into Program.labels, `key` the key of each match (0 where there are none). `timeout`: these are no matches, but how
    far starts came whose windows closed without one (runtime.selection.timeouts). `beginnings`: with what match k
    begins before its event offsets[k]; None: nothing.
    """

    n: int
    offsets: IntArray
    positions: IntArray
    labels: AnyArray
    key: IntArray
    timeout: bool = False
    beginnings: chained.Beginnings | None = None
