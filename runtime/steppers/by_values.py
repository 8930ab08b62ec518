"""How kernels find what waits at a place under the values of an event: open addressing by place and values.

A *table* is any bundle of arrays with `code` (the hash), `value`, `place` and `generation` of each slot, and
`counts[GENERATION]`: a slot is free if its generation is another. A new key of the stream empties a table by a new one.
"""

from __future__ import annotations

import numpy as np

from runtime.jit import inlined
from runtime.steppers.register_ops import term_of

N_FILLED, GENERATION = 0, 1  # places in the counts of a table
# Why a kernel with such tables has stopped, and places in its own counts.
DONE, NEEDS_NODES, NEEDS_ROOTS, NEEDS_SLOTS, NEEDS_BLOCKS = range(5)
KEY, LAST_POSITION, N_ROOTS = range(3)


@inlined
def code_of(place, values, terms, begin, end):
    """The hash of a place and the event's values of terms[begin:end]."""
    code = np.uint64(place + 1) * np.uint64(0x9E3779B97F4A7C15)
    for t in range(begin, end):
        code = (code ^ np.uint64(term_of(values, terms[t]))) * np.uint64(0xBF58476D1CE4E5B9)
        code ^= code >> np.uint64(29)
    return code


@inlined
def slot_of(table, code, place, values, terms, begin, end):
    """Where the place with these values is, or could be put."""
    size = len(table.place)
    slot = np.int64(code & np.uint64(size - 1))
    while table.generation[slot] == table.counts[GENERATION]:
        alike = table.code[slot] == code and table.place[slot] == place
        for t in range(begin, end):
            alike = alike and table.value[slot, t - begin] == term_of(values, terms[t])
        if alike:
            break
        slot = (slot + 1) & (size - 1)
    return slot


@inlined
def free_slot(table, code):
    """The first free slot for a hash that is not there yet."""
    size = len(table.place)
    slot = np.int64(code & np.uint64(size - 1))
    while table.generation[slot] == table.counts[GENERATION]:
        slot = (slot + 1) & (size - 1)
    return slot


@inlined
def fill(table, slot, code, place, values, terms, begin, end):
    """Fill a free slot, but for what its owner keeps there besides."""
    for t in range(begin, end):
        table.value[slot, t - begin] = term_of(values, terms[t])
    table.code[slot], table.place[slot] = code, place
    table.generation[slot] = table.counts[GENERATION]
    table.counts[N_FILLED] += 1
