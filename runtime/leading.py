"""AFTER MATCH SKIP PAST LAST ROW: starts that an earlier match is sure to skip need no runs.

Matches are taken one at a time, that of the least start first. The *leader* is the least start that still has a run and
is not dropped: nothing that began before it can change any more. If it has a match so far, its match will end there or
later, so all starts up to that end are dropped, and their runs with them. `A : A:*` within five minutes, a cooldown,
has one run at a time instead of one for each event of the last five minutes.

Every start has a record, in the order of the stream: the end of its longest match so far. When all runs of a start have
ended its record is *settled*: if it is not dropped and has a match, it drops what begins up to its end.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from runtime.arrays import AnyArray
from runtime.jit import inlined

HEAD, TAIL, DROPPED = 0, 1, 2  # in counts: the first record not settled, where they end, the last position dropped
NONE, SKIPPED = np.int64(-1), np.int64(-2)  # instead of an end: no match yet; settled, and dropped


class Leading(NamedTuple):
    """The records, of which head … tail are not settled."""

    start: AnyArray  # int64[capacity], increasing
    end: AnyArray  # int64[capacity]: of the longest match so far, or NONE
    counts: AnyArray  # int64[3]


def new_leading(capacity: int) -> Leading:
    made = Leading(np.zeros(capacity, np.int64), np.zeros(capacity, np.int64), np.zeros(3, np.int64))
    made.counts[DROPPED] = NONE
    return made


def roomier(old: Leading) -> Leading:
    """A copy without what is settled, with room for as much again."""
    held = slice(int(old.counts[HEAD]), int(old.counts[TAIL]))
    n = held.stop - held.start
    new = new_leading(max(len(old.start), 2 * n))
    new.start[:n], new.end[:n] = old.start[held], old.end[held]
    new.counts[TAIL], new.counts[DROPPED] = n, old.counts[DROPPED]
    return new


@inlined
def forget_leading(leading):
    """A new stream begins."""
    leading.counts[HEAD], leading.counts[TAIL], leading.counts[DROPPED] = 0, 0, NONE


@inlined
def begins(leading, position):
    """A record for what may begin at a position; the caller has seen to the room."""
    leading.start[leading.counts[TAIL]], leading.end[leading.counts[TAIL]] = position, NONE
    leading.counts[TAIL] += 1


@inlined
def record_of(leading, start):
    """The number of the record of a start."""
    low, high = np.int64(0), leading.counts[TAIL]
    while low < high:
        middle = (low + high) >> 1
        if leading.start[middle] < start:
            low = middle + 1
        else:
            high = middle
    return low


@inlined
def matched(leading, start, end):
    """A start has a match that ends here, later than its others."""
    record = record_of(leading, start)
    leading.end[record] = max(leading.end[record], end)


@inlined
def settle_before(leading, least):
    """Settle the records of the starts before `least`, which have no run any more."""
    counts = leading.counts
    while counts[HEAD] < counts[TAIL] and leading.start[counts[HEAD]] < least:
        if leading.start[counts[HEAD]] <= counts[DROPPED]:
            leading.end[counts[HEAD]] = SKIPPED
        elif leading.end[counts[HEAD]] != NONE:
            counts[DROPPED] = leading.end[counts[HEAD]]
        counts[HEAD] += 1


@inlined
def covered(leading, least):
    """The last position whose start is sure to be dropped, if `least` is the leader (it stays itself)."""
    counts = leading.counts
    if counts[HEAD] < counts[TAIL] and leading.start[counts[HEAD]] == least:
        return max(counts[DROPPED], leading.end[counts[HEAD]])
    return counts[DROPPED]


@inlined
def is_kept(leading, start, least, last):
    """Can a match of this start still be chosen? `last`: what is covered by the leader, `least`."""
    record = record_of(leading, start)
    if record < leading.counts[HEAD]:
        return leading.end[record] != SKIPPED
    return start > last or start == least
