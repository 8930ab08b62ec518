"""How far what must not happen has come, where it is several events: the latest start of what has ended so far.

    (A ; B) UNLESS (C ; C)      of A0 C1 C2 A3 B4 the match A3 B4 is left: after C1 C2 no match may begin before 2

Of all matches of what must not happen that have ended, the one that began last decides: a match is none if it began
there, or before. That start only ever moves on, as that of a window does. For each state of the automaton of what must
not happen one number is enough, the latest start of a run that is there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from runtime.arrays import AnyArray, IntArray
from runtime.jit import inlined, kernel
from runtime.nodes import Flat
from runtime.program import SKIP
from runtime.steppers.events import Values
from runtime.steppers.register_ops import holds
from runtime.steppers.stepper import Feed

NOT_BEGUN = int(np.iinfo(np.int64).max)  # a run that can still begin, after all that have
NONE = -1  # no run
LATEST, LAST, KEY = 0, 1, 2  # in Watch.known


class Ways(NamedTuple):
    """The transitions of some automata, side by side: each takes an event that satisfies its guard, or `skips` it."""

    source: IntArray
    guard: IntArray
    skips: AnyArray
    target: IntArray
    initial: AnyArray
    final: AnyArray


class Watch(NamedTuple):
    """How far they have come: for each state the latest start of a run there, NOT_BEGUN or NONE; `after`: the same, as
    it is being made. `known`: the latest start of what has ended (LATEST, or NONE), the last position, the key."""

    start: IntArray
    after: IntArray
    known: IntArray


def ways_of(automata: tuple[Flat, ...]) -> Ways:
    """All of them."""
    rows, ends, n = [], list[tuple[list[int], list[int]]](), 0
    for flat in automata:
        own = flat.transitions.copy()
        own[:, [0, 3]] += n
        rows.append(own)
        ends.append(([q + n for q in flat.initial], [q + n for q in flat.final]))
        n += 1 + int(max(flat.transitions[:, [0, 3]].max(initial=0), *flat.initial, *flat.final))
    source, guard, label, target = np.concatenate(rows).T
    initial, final = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
    for begins, finals in ends:
        initial[begins] = True
        final[finals] = True
    source, guard, skips, target = map(np.ascontiguousarray, (source, guard, label == SKIP, target))
    return Ways(source, guard, skips, target, initial, final)


@inlined
def stepped(ways, watch, values, position, only_skips):
    """All runs take or skip an event, or (`only_skips`) events that satisfy no guard."""
    start, after = watch.start, watch.after
    for q in range(len(after)):
        after[q] = NONE
    for t in range(len(ways.source)):
        began = start[ways.source[t]]
        if began == NONE:
            continue
        target = ways.target[t]
        if not ways.skips[t]:
            if only_skips or not holds(values, ways.guard[t]):
                continue
            began = position if began == NOT_BEGUN else began
            if ways.final[target]:
                watch.known[LATEST] = max(watch.known[LATEST], began)
        after[target] = max(after[target], began)
    for q in range(len(after)):
        start[q] = after[q]


@kernel
def begin_key(ways, watch, key):
    watch.known[LATEST], watch.known[LAST], watch.known[KEY] = NONE, -1, key
    for q in range(len(watch.start)):
        watch.start[q] = NOT_BEGUN if ways.initial[q] else NONE


@kernel
def watch_kernel(ways, watch, values, positions, keys, least):
    """Raise least[i] to the first position after the latest start of what has ended by event i. `values`: of the first
    event. O(events · transitions)."""
    for i in range(len(positions)):
        if len(keys) > 0 and keys[i] != watch.known[KEY]:
            begin_key(ways, watch, keys[i])
        own = Values(values.symbols, i, values.words)
        if positions[i] > watch.known[LAST] + 1:
            stepped(ways, watch, own, positions[i], True)
        stepped(ways, watch, own, positions[i], False)
        watch.known[LAST] = positions[i]
        least[i] = max(least[i], watch.known[LATEST] + 1)


class LatestStart:
    """What may not happen, as a stepper reads."""

    def __init__(self, automata: tuple[Flat, ...], words: int) -> None:
        self._ways, self._words = ways_of(automata), words
        n = len(self._ways.initial)
        self._watch = Watch(np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(3, np.int64))
        self.begin_key(0)

    def begin_key(self, key: int) -> None:
        """The events that follow have this key."""
        begin_key(self._ways, self._watch, key)

    def raised(self, feed: Feed, least: IntArray) -> IntArray:
        """For each event the least position that a match may start with, if it is not below one that is given."""
        found, symbols = np.ascontiguousarray(least), feed.symbols
        symbols = np.ascontiguousarray(symbols if symbols.ndim == 2 else symbols[:, None])
        watch_kernel(self._ways, self._watch, Values(symbols, 0, self._words), feed.positions, feed.keys, found)
        return found
