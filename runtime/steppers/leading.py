"""AFTER MATCH SKIP PAST LAST ROW: starts that an earlier match is sure to skip need no runs.

Matches are taken one at a time, that of the least start first. The *leader* is the least start that still has a run and
is not dropped: nothing that began before it can change any more. If it has a match so far, its match will end there or
later, so all starts up to that end are dropped, and their runs with them. `A : A:*` within five minutes, a cooldown,
has one run at a time instead of one for each event of the last five minutes.

Every start has a record, in the order of the stream: the end of its longest match so far. When all runs of a start have
ended its record is *settled*: if it is not dropped and has a match, it drops what begins up to its end.

runtime.steppers.skipped looks at all runs after an event; runtime.steppers.registers, which does not, counts those of
each start (`joins`), and ends the runs of dropped starts where it meets them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from runtime.arrays import AnyArray
from runtime.compact_set.tecs import inside
from runtime.jit import inlined, kernel

# In counts: the first record not settled, where they end, the last position dropped; the leader, what it covers.
HEAD, TAIL, DROPPED, LEADER, COVERED = range(5)
NONE, SKIPPED = np.int64(-1), np.int64(-2)  # instead of an end: no match yet; settled, and dropped


class Leading(NamedTuple):
    """The records, of which head … tail are not settled."""

    start: AnyArray  # int64[capacity], increasing
    end: AnyArray  # int64[capacity]: of the longest match so far, or NONE
    clock: AnyArray  # clock[capacity]: when it began
    runs: AnyArray  # int64[capacity]: how many wait, where they are counted
    counts: AnyArray  # int64[5]


def new_leading(capacity: int, clock: np.dtype) -> Leading:
    """Without room (0), nothing is skipped."""
    made = Leading(
        start=np.zeros(capacity, np.int64),
        end=np.zeros(capacity, np.int64),
        clock=np.zeros(capacity, clock),
        runs=np.zeros(capacity, np.int64),
        counts=np.zeros(5, np.int64),
    )
    made.counts[DROPPED:] = NONE
    return made


def roomier(old: Leading) -> Leading:
    """A copy without what is settled, with room for as much again."""
    held = slice(int(old.counts[HEAD]), int(old.counts[TAIL]))
    n = held.stop - held.start
    new = new_leading(max(len(old.start), 2 * n), old.clock.dtype)
    for name in ("start", "end", "clock", "runs"):
        getattr(new, name)[:n] = getattr(old, name)[held]
    new.counts[:] = old.counts
    new.counts[HEAD], new.counts[TAIL] = 0, n
    return new


@kernel
def forget_leading(leading):
    """A new stream begins."""
    leading.counts[HEAD], leading.counts[TAIL] = 0, 0
    leading.counts[DROPPED], leading.counts[LEADER], leading.counts[COVERED] = NONE, NONE, NONE


@inlined
def begins(leading, position, now):
    """A record for what may begin at a position; the caller has seen to the room."""
    record = leading.counts[TAIL]
    leading.start[record], leading.end[record], leading.clock[record], leading.runs[record] = position, NONE, now, 0
    leading.counts[TAIL] = record + 1


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
def settle_first(leading):
    """Settle the first record, whose start has no run any more, or is dropped."""
    counts = leading.counts
    if leading.start[counts[HEAD]] <= counts[DROPPED]:
        leading.end[counts[HEAD]] = SKIPPED
    elif leading.end[counts[HEAD]] != NONE:
        counts[DROPPED] = leading.end[counts[HEAD]]
    counts[HEAD] += 1


@inlined
def settle_before(leading, least):
    """Settle the records of the starts before `least`, which have no run any more."""
    while leading.counts[HEAD] < leading.counts[TAIL] and leading.start[leading.counts[HEAD]] < least:
        settle_first(leading)


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


# ---------------------------------------------------------------- where runs are counted


@inlined
def joins(leading, start, n):
    """A start has n more runs (-1: one less). Of what was dropped there may be none any more."""
    record = record_of(leading, start)
    if record < leading.counts[TAIL] and leading.start[record] == start:
        leading.runs[record] += n


@inlined
def lead(leading, now, bounds):
    """After an event: who leads, and what it covers. A start that has left the window has no runs."""
    counts = leading.counts
    while counts[HEAD] < counts[TAIL]:
        k = counts[HEAD]
        alive = leading.runs[k] > 0 and inside(leading.clock[k], now, bounds)
        if alive and leading.start[k] > counts[DROPPED]:
            break
        settle_first(leading)
    counts[LEADER] = leading.start[counts[HEAD]] if counts[HEAD] < counts[TAIL] else NONE
    counts[COVERED] = covered(leading, counts[LEADER])


@inlined
def is_skipped(leading, start):
    """Is a start that still has runs sure to be dropped?"""
    return start <= leading.counts[COVERED] and start != leading.counts[LEADER]
