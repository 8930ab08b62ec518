"""The live entries of a table of states: for each the state of its runs and a union list of their nodes.

Entry 0 (START) is the run that has not begun, with ⊥ alone in its list. Of a flat automaton it is in state 0 at every
event; what remembers something before the match begins (START, NXT, …) moves on, or dies.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from runtime.arrays import AnyArray
from runtime.jit import kernel
from runtime.steppers.union_lists import LIST_LENGTH

START = 0

# Places in Live.counts. FIRST: the first entry, which is 1 where the run that has not begun is dead.
FIRST, N_LIVE, LAST_POSITION, KEY, SERIAL, SIDE, N_ROOTS, WANTED_STATE, WANTED = range(9)


class Live(NamedTuple):
    """T of [CORE] Algorithm 1, for the key being read: entries FIRST … N_LIVE; two sides, the current one is
    counts[SIDE].

    An entry of the new side is found at a place of `slot`: that of its state, or (with clocks) by hash.
    """

    state: AnyArray  # int32[2, entries]
    length: AnyArray  # int32[2, entries]
    nodes: AnyArray  # int32[2, entries, LIST_LENGTH]
    slot: AnyArray  # int32[2 ** k]: which entry of the new side lies here …
    stamp: AnyArray  # int64[2 ** k]: … if this is the serial number of the event
    counts: AnyArray  # int64[9]


def new_live(capacity: int) -> Live:
    """Room for so many, and for as many states; the run that has not begun is there."""
    slots = 1 << (4 * capacity - 1).bit_length()  # a power of two: places are found by masking
    live = Live(
        state=np.zeros((2, capacity), np.int32),
        length=np.zeros((2, capacity), np.int32),
        nodes=np.zeros((2, capacity, LIST_LENGTH), np.int32),
        slot=np.zeros(slots, np.int32),
        stamp=np.zeros(slots, np.int64),
        counts=np.zeros(9, np.int64),
    )
    live.length[:, START] = 1
    live.counts[N_LIVE], live.counts[LAST_POSITION] = START + 1, -1
    return live


def grown_live(old: Live, capacity: int) -> Live:
    """The same with more room, between two events."""
    new = new_live(capacity)
    n = old.state.shape[1]
    new.state[:, :n], new.length[:, :n], new.nodes[:, :n] = old.state, old.length, old.nodes
    new.counts[:] = old.counts
    return new


@kernel
def begin_stream(live, key):
    """Events of another key follow: nothing lives but the run that has not begun, and that is at its beginning."""
    counts = live.counts
    counts[KEY], counts[LAST_POSITION] = key, -1
    counts[FIRST], counts[N_LIVE] = START, START + 1
    live.state[counts[SIDE], START] = 0
