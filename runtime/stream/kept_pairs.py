"""Which pairs of codes a stream keeps: those of which rows are held, or still to come.

Beside the rows of events a bucket is sent the pairs that Spark has found TRUE (runtime.partition.tables), each from the
time on when both events are there. A later row with the same value brings its pairs itself (runtime.stream.meeting), so
a pair of which one value is in no row any more can go.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from runtime.arrays import AnyArray, IntArray


class Coded(NamedTuple):
    """Of rows: the slab in which each lies, and the codes of all terms."""

    slabs: AnyArray
    codes: IntArray


def needed(
    tables: tuple[tuple[int, int, int], ...],
    numbers: IntArray,
    pairs: Coded,
    until: AnyArray,
    held: Coded,
    watermark: int,
) -> AnyArray:
    """bool[n]: which pairs are kept, of equal ones in a slab the one that is needed longest. `tables`: as in Program;
    `numbers`, `until`: of each pair its condition, and until when rows of its values are still to come."""
    found = np.zeros(len(numbers), np.bool_)
    for number, left, right in tables:
        own = np.flatnonzero(numbers == number)
        lefts, held_lefts = _values(pairs, held, own, left)
        rights, held_rights = _values(pairs, held, own, right)
        both_held = np.isin(lefts, held_lefts) & np.isin(rights, held_rights)
        found[own] = _last_of_each(lefts, rights, until[own]) & (both_held | (until[own] > watermark))
    return found


def _values(pairs: Coded, held: Coded, own: IntArray, term: int) -> tuple[IntArray, IntArray]:
    """Slab and code of a term as one number, for some of the pairs and for the rows that are held."""
    codes = pairs.codes[own, term]
    values, index = np.unique(np.concatenate([codes, held.codes[:, term]]), return_inverse=True)
    ids = np.concatenate([pairs.slabs[own], held.slabs]).astype(np.int64) * len(values) + index.reshape(-1)
    return ids[: len(codes)], ids[len(codes) :]


def _last_of_each(left: IntArray, right: IntArray, until: AnyArray) -> AnyArray:
    """bool[n]: of those with equal codes the one with the greatest `until`."""
    order = np.lexsort((until, right, left))
    differs = (np.diff(left[order]) != 0) | (np.diff(right[order]) != 0)
    found = np.zeros(len(order), np.bool_)
    found[order[np.append(differs, True)[: len(order)]]] = True
    return found
