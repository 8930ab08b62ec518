"""Which rows of a stream meet: pairs of a left and a right one, of one key, not too far apart, and one of them new.

Both are found by two binary searches a row among the rows of its key in the order of time; a piece of pairs at a time
is laid out, however many there are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from runtime.arrays import AnyArray, IntArray

PIECE = 1 << 20  # pairs


class Rows(NamedTuple):
    """Of each row its key (a number from 0 on), its time, whether it can be the left and the right event of a pair,
    and whether it has just come."""

    keys: IntArray
    clocks: IntArray
    left: AnyArray
    right: AnyArray
    new: AnyArray


def meeting(rows: Rows, within: int | None, ordered: bool) -> Iterator[tuple[IntArray, IntArray]]:
    """The places of the left and of the right rows that meet, in pieces. `within`: their times are not farther apart;
    `ordered`: the left one is not after the right one. A row can meet itself."""
    order = _Order(rows, within, ordered)
    yield from _pieces(rows.left & rows.new, rows.right, order)
    yield from _pieces(rows.left & ~rows.new, rows.right & rows.new, order)


class _Order:
    """Where rows stand in the order of key and time, and from where to where they meet others. Times are replaced by
    their ranks, so that one number holds both."""

    def __init__(self, rows: Rows, within: int | None, ordered: bool) -> None:
        clocks, n = rows.clocks, len(rows.clocks)
        far = 0 if within is None else within
        ranks = np.unique(np.concatenate([clocks, clocks - far, clocks + far]), return_inverse=True)[1].reshape(-1)
        size = int(ranks.max(initial=0)) + 1
        base = rows.keys * size
        self.at = base + ranks[:n]
        self.first = self.at if ordered else base if within is None else base + ranks[n : 2 * n]
        self.last = base + size - 1 if within is None else base + ranks[2 * n :]


def _pieces(left: AnyArray, right: AnyArray, order: _Order) -> Iterator[tuple[IntArray, IntArray]]:
    lefts, rights = np.flatnonzero(left), np.flatnonzero(right)
    rights = rights[np.argsort(order.at[rights], kind="stable")]
    begins = np.searchsorted(order.at[rights], order.first[lefts], side="left")
    counts = np.searchsorted(order.at[rights], order.last[lefts], side="right") - begins
    upto = np.cumsum(counts)
    at = 0
    while at < len(lefts):
        before = int(upto[at - 1]) if at else 0
        end = max(at + 1, int(np.searchsorted(upto, before + PIECE, side="right")))
        own = counts[at:end]
        n = int(own.sum())
        if n:
            within = np.arange(n) - np.repeat(np.cumsum(own) - own, own)
            yield np.repeat(lefts[at:end], own), rights[np.repeat(begins[at:end], own) + within]
        at = end
