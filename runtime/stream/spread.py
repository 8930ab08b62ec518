"""By which numbers buckets are called, so that each of Spark's tasks gets equally many of them.

Spark gives a group to the partition pmod(hash(its key), partitions). Of buckets called 0, 1, 2 … that is as chance has
it: of 2 both go to the same one of 2 partitions, of 8 five go to one of two.

    2 buckets, called 0 and 3                one for each of 2 partitions
    8 buckets, 8, 4, 2 or 1 partitions       equally many for each

So a bucket is called by the least number whose hash has the remainder that is the bucket's place. The numbers are keys
of the state: they depend on how many buckets there are, and on nothing else.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from runtime.arrays import AnyArray, IntArray

_SEED = 42  # Spark's


@lru_cache(maxsize=16)
def called(n: int) -> IntArray:
    """int64[n]: the number of each of n buckets."""
    found = np.full(n, -1, np.int64)
    begin, size = 0, 16 * n
    while (found < 0).any():
        numbers = np.arange(begin, begin + size)
        places, first = np.unique(spark_hash(numbers) % n, return_index=True)
        new = found[places] < 0
        found[places[new]] = numbers[first[new]]
        begin += size
    return found


def spark_hash(numbers: IntArray) -> IntArray:
    """int64[n]: what `hash(n)` of Spark is, of an INT from 0 on: Murmur3, in 32 bits."""
    k = _times(_rotated(_times(numbers.astype(np.uint64), 0xCC9E2D51), 15), 0x1B873593)
    h = (_times(_rotated(k ^ np.uint64(_SEED), 13), 5) + np.uint64(0xE6546B64)) & np.uint64(0xFFFFFFFF)
    h = h ^ np.uint64(4)  # bytes
    h = _times(h ^ (h >> np.uint64(16)), 0x85EBCA6B)
    h = _times(h ^ (h >> np.uint64(13)), 0xC2B2AE35)
    return (h ^ (h >> np.uint64(16))).astype(np.uint32).view(np.int32).astype(np.int64)


def _times(a: AnyArray, b: int) -> AnyArray:
    """a · b in 32 bits."""
    found: AnyArray = (a * np.uint64(b)) & np.uint64(0xFFFFFFFF)
    return found


def _rotated(a: AnyArray, bits: int) -> AnyArray:
    """a with its 32 bits rotated to the left."""
    found: AnyArray = ((a << np.uint64(bits)) | (a >> np.uint64(32 - bits))) & np.uint64(0xFFFFFFFF)
    return found
