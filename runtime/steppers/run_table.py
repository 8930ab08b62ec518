"""The table of runs that wait, for registers.py: entries in lists by place, found by what their registers hold.

Two runs at one place with equal registers are one entry, which a hash table finds; where what follows asks for
equality, an index by one or more registers finds the entries with the event's values. What has left the window lies
there until it is met, or the table is full.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from runtime.arrays import AnyArray
from runtime.chain_cea import LATE, NOBODY
from runtime.compact_set.tecs import inside
from runtime.jit import inlined, kernel
from runtime.program import NULL_CODE
from runtime.steppers.leading import Leading, is_skipped, joins, new_leading
from runtime.steppers.register_ops import EMPTY, term_of

# Places in Entries.counts.
KEY, LAST_POSITION, N_ROOTS, FREE, N_USED, N_FILLED, SERIAL, N_TAKEN = range(8)
GONE = -2


class Entries(NamedTuple):
    """Runs by position: linked lists of entries, and a hash table that finds an entry by position and registers."""

    registers: AnyArray  # int64[entries, registers]
    node: AnyArray  # int32[entries]
    start: AnyArray  # clock[entries]: the latest beginning
    last: AnyArray  # int64[entries]: the position in the stream of the last event
    at: AnyArray  # int32[entries]: the position in the pattern, NOBODY if the entry is free
    next: AnyArray  # int32[entries], and back:
    previous: AnyArray
    head: AnyArray  # int32[positions]
    table: AnyArray  # int32[power of two]: entries, NOBODY or GONE
    chain_next: AnyArray  # int32[entries]: those in one bucket of the index
    chain_previous: AnyArray
    bucket: AnyArray  # int32[power of two]
    index_of: AnyArray  # int64[positions, k]: the registers by which entries are indexed, filled up with NOBODY
    took: AnyArray  # int64[entries]: the serial number of the event that a run of the entry took last
    taken: AnyArray  # int32[entries]: the entries of which that is the event being read, N_TAKEN of them
    leading: Leading  # of starts, where AFTER MATCH SKIP PAST LAST ROW chooses among their matches
    counts: AnyArray  # int64[8]


def new_entries(
    capacity: int, n_registers: int, index_of: AnyArray, clock: np.dtype, leading: Leading | None = None
) -> Entries:
    entries = Entries(
        registers=np.zeros((capacity, max(1, n_registers)), np.int64),
        node=np.zeros(capacity, np.int32),
        start=np.zeros(capacity, clock),
        last=np.zeros(capacity, np.int64),
        at=np.full(capacity, NOBODY, np.int32),
        next=np.arange(1, capacity + 1, dtype=np.int32),
        previous=np.full(capacity, NOBODY, np.int32),
        head=np.full(len(index_of), NOBODY, np.int32),
        table=np.full(4 * capacity, NOBODY, np.int32),
        chain_next=np.full(capacity, NOBODY, np.int32),
        chain_previous=np.full(capacity, NOBODY, np.int32),
        bucket=np.full(2 * capacity, NOBODY, np.int32),
        index_of=index_of,
        took=np.full(capacity, NOBODY, np.int64),
        taken=np.zeros(capacity, np.int32),
        leading=new_leading(0, clock) if leading is None else leading,
        counts=np.zeros(8, np.int64),
    )
    entries.next[-1] = NOBODY
    entries.counts[LAST_POSITION] = -1
    return entries


def grown_entries(entries: Entries) -> Entries:
    """A copy with twice the room, and a table without gaps."""
    old = len(entries.node)
    n_registers, clock = entries.registers.shape[1], entries.start.dtype
    bigger = new_entries(2 * old, n_registers, entries.index_of, clock, entries.leading)
    for name in ("registers", "node", "start", "last", "at", "next", "previous"):
        getattr(bigger, name)[:old] = getattr(entries, name)
    bigger.head[:], bigger.counts[:] = entries.head, entries.counts
    free = entries.counts[FREE]
    bigger.next[-1] = free
    bigger.counts[FREE] = old
    rebuild(bigger)
    return bigger


@kernel
def rebuild(entries):
    """Fill the hash table and the index anew."""
    entries.table[:] = NOBODY
    entries.bucket[:] = NOBODY
    entries.counts[N_FILLED] = 0
    for e in range(len(entries.at)):
        if entries.at[e] != NOBODY:
            place(entries, e)


@inlined
def hashed(at, last, registers, row, size):
    code = np.uint64(at) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(last)
    for r in range(registers.shape[1]):
        code = (code ^ np.uint64(registers[row, r])) * np.uint64(0xBF58476D1CE4E5B9)
        code ^= code >> np.uint64(29)
    return np.int64(code & np.uint64(size - 1))


@inlined
def mixed(code, value):
    """One number for two."""
    return np.int64((np.uint64(code) * np.uint64(0xBF58476D1CE4E5B9)) ^ np.uint64(value))


@inlined
def code_of(entries, e):
    """One number for the registers by which an entry is indexed; EMPTY if one of them holds nothing."""
    at = entries.at[e]
    code = entries.registers[e, entries.index_of[at, 0]]
    lacks = code == EMPTY
    for k in range(1, entries.index_of.shape[1]):
        if entries.index_of[at, k] != NOBODY:
            value = entries.registers[e, entries.index_of[at, k]]
            lacks = lacks or value == EMPTY
            code = mixed(code, value)
    return EMPTY if lacks else code if code != EMPTY else np.int64(0)


@inlined
def sought(automaton, edge, values):
    """The same for the terms of an event that an edge wants them to be equal to; EMPTY if one of them is NULL."""
    code = term_of(values, automaton.wanted[edge, 0])
    lacks = code == NULL_CODE
    for k in range(1, automaton.wanted.shape[1]):
        if automaton.wanted[edge, k] != NOBODY:
            value = term_of(values, automaton.wanted[edge, k])
            lacks = lacks or value == NULL_CODE
            code = mixed(code, value)
    return EMPTY if lacks else code if code != EMPTY else np.int64(0)


@inlined
def found_so(entries, e, p, automaton, edge, values, empty):
    """Is it an entry at place p that the index was asked for: with the event's values, or `empty`, lacking one?"""
    if entries.at[e] != p:
        return False
    equal, lacks = True, False
    for k in range(entries.index_of.shape[1]):
        if entries.index_of[p, k] != NOBODY:
            value = entries.registers[e, entries.index_of[p, k]]
            lacks = lacks or value == EMPTY
            equal = equal and value == term_of(values, automaton.wanted[edge, k])
    return lacks if empty else equal


@inlined
def bucket_of(entries, at, value):
    code = (np.uint64(np.int64(value)) ^ np.uint64(at)) * np.uint64(0x9E3779B97F4A7C15)
    code ^= code >> np.uint64(32)
    return np.int64(code & np.uint64(len(entries.bucket) - 1))


@kernel
def place(entries, e):
    """Put an entry into the table, where there is room, and into the index."""
    if entries.index_of[entries.at[e], 0] != NOBODY:
        b = bucket_of(entries, entries.at[e], code_of(entries, e))
        first = entries.bucket[b]
        entries.chain_next[e], entries.chain_previous[e] = first, NOBODY
        if first != NOBODY:
            entries.chain_previous[first] = e
        entries.bucket[b] = e
    size = len(entries.table)
    at = entries.at[e]
    slot = hashed(at, np.int64(0), entries.registers, e, size)
    while entries.table[slot] >= 0:
        slot = (slot + 1) & (size - 1)
    if entries.table[slot] == NOBODY:
        entries.counts[N_FILLED] += 1
    entries.table[slot] = e


@kernel
def release(entries, e):
    """Take an entry out of its list, the table and the index, and into the free list."""
    if len(entries.leading.start) > 0:
        joins(entries.leading, entries.registers[e, -1], -1)
    before, after = entries.previous[e], entries.next[e]
    if before == NOBODY:
        entries.head[entries.at[e]] = after
    else:
        entries.next[before] = after
    if after != NOBODY:
        entries.previous[after] = before
    if entries.index_of[entries.at[e], 0] != NOBODY:
        before, after = entries.chain_previous[e], entries.chain_next[e]
        if before == NOBODY:
            entries.bucket[bucket_of(entries, entries.at[e], code_of(entries, e))] = after
        else:
            entries.chain_next[before] = after
        if after != NOBODY:
            entries.chain_previous[after] = before
    size = len(entries.table)
    slot = hashed(entries.at[e], np.int64(0), entries.registers, e, size)
    while entries.table[slot] != e:
        slot = (slot + 1) & (size - 1)
    entries.table[slot] = GONE
    entries.at[e] = NOBODY
    entries.next[e] = entries.counts[FREE]
    entries.counts[FREE] = e
    entries.counts[N_USED] -= 1


@kernel
def forget_all(entries):
    """Drop all runs."""
    for p in range(len(entries.head)):
        e = entries.head[p]
        while e != NOBODY:
            following = entries.next[e]
            release(entries, e)
            e = following


@inlined
def let_out(entries, roots, e):
    """The matches of an entry that has waited; all have one start, which is inside any window of itself."""
    root = entries.counts[N_ROOTS]
    roots.node[root], roots.clock[root], roots.key[root] = entries.node[e], entries.start[e], entries.counts[KEY]
    entries.counts[N_ROOTS] = root + 1


@kernel
def sweep(space, automaton, entries, now):
    """Drop the runs that have left the window (an index lets most of them lie), and let out what waited for that; and
    those of starts that are sure to be skipped."""
    skips = len(entries.leading.start) > 0
    for e in range(len(entries.at)):
        if entries.at[e] == NOBODY:
            continue
        if skips and is_skipped(entries.leading, entries.registers[e, -1]):
            release(entries, e)
        elif not inside(entries.start[e], now, space.bounds):
            if entries.at[e] == automaton.special[LATE]:
                let_out(entries, space.roots, e)
            release(entries, e)


@kernel
def end_key(automaton, entries, roots):
    """Let out all that waits for its window to close: time has passed."""
    late = automaton.special[LATE]
    e = entries.head[late] if late != NOBODY else NOBODY
    while e != NOBODY:
        following = entries.next[e]
        let_out(entries, roots, e)
        release(entries, e)
        e = following
