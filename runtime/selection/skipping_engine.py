"""AFTER MATCH SKIP where events are compared: the register kernel with runs for each start, and the choice around it.

Of each start the matches with the latest end are held, as nodes of the compact set. A start is settled once it and all
before it have no run any more: its NXT-greatest match is taken, and what it skips is dropped
(runtime.selection.select).
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from runtime.arrays import AnyArray, IntArray
from runtime.compact_set.matches import Matches
from runtime.compact_set.tecs import BOTTOM, UNION
from runtime.nodes import ONLY_NEAR
from runtime.program import Program
from runtime.selection import select
from runtime.selection.key_events import KeyEvents
from runtime.steppers import cea, leading, run_table
from runtime.steppers.cea_engine import next_positions
from runtime.steppers.registers_engine import RegistersEngine

MOST_HELD = 1 << 12  # starts with a match; more are looked through
NEVER = np.iinfo(np.int64).max  # after all positions


class SkippingEngine(RegistersEngine):
    """See runtime.engine.Engine. Nodes hold positions, which the choice is made by."""

    def __init__(self, program: Program) -> None:
        assert program.skip is not None
        super().__init__(program)
        self._skip = program.skip
        self._begin_key()

    def _begin_key(self) -> None:
        self._best: dict[int, tuple[int, list[int]]] = {}  # by start: the latest end, and the nodes that end there
        self._dropped = -1  # the last position at which no match may begin any more
        self._numbers: list[tuple[IntArray, IntArray]] = []  # positions and rows that may still be mentioned
        self._least = -1  # no position before this is mentioned any more

    # ------------------------------------------------------------ the contract

    def feed(
        self,
        symbols: AnyArray,
        times: AnyArray,
        positions: IntArray | None = None,
        keys: IntArray | None = None,
        rows: IntArray | None = None,
        mute: AnyArray | None = None,
    ) -> Iterator[Matches]:
        """See Engine.feed; nothing is mute."""
        n = len(symbols)
        if n == 0:
            return
        if positions is None:
            positions = next_positions(self._live.counts, n, keys)
        rows = positions if rows is None else rows
        borders = [0, n] if keys is None else [0, *(np.flatnonzero(np.diff(keys)) + 1).tolist(), n]
        for begin, end in pairwise(borders):
            if keys is not None and keys[begin] != self._live.counts[cea.KEY]:
                yield from self._settled(ended=True)
                self._next_key(int(keys[begin]))
            part = slice(begin, end)
            self._numbers.append((positions[part], rows[part]))
            for _ in self._steps(symbols[part], times[part], positions[part], None, None, None):
                self._hold()
                if len(self._best) >= MOST_HELD:
                    yield from self._settled()
            yield from self._settled()
            self._numbers = [numbers for numbers in self._numbers if numbers[0][-1] >= self._least]

    def count(
        self,
        symbols: AnyArray,
        times: AnyArray,
        positions: IntArray | None = None,
        keys: IntArray | None = None,
        mute: AnyArray | None = None,
    ) -> int:
        """See Engine.count."""
        return sum(matches.n for matches in self.feed(symbols, times, positions, keys))

    def flush(self) -> Iterator[Matches]:
        """See Engine.flush."""
        yield from self._settled(ended=True)
        self._next_key(int(self._live.counts[cea.KEY]))

    def least_row(self) -> int:
        """See Engine.least_row."""
        super().least_row()
        first = min([self._least_live(), *self._best])
        rows = [own[positions >= first] for positions, own in self._numbers]
        return min((int(own.min()) for own in rows if len(own)), default=int(NEVER))

    # ------------------------------------------------------------ choosing

    def _next_key(self, key: int) -> None:
        self._begin_key()
        if self._entries is not None:
            run_table.forget_all(self._entries)
            leading.forget_leading(self._entries.leading)
            self._entries.counts[run_table.KEY], self._entries.counts[run_table.LAST_POSITION] = key, -1
        self._live.counts[cea.KEY], self._live.counts[cea.LAST_POSITION] = key, -1

    def _hold(self) -> None:
        """Of each start that matches now, these matches instead of earlier ones."""
        n = int(self._live.counts[cea.N_ROOTS])
        if n == 0:
            return
        assert self._arena is not None
        found = self._roots.node[:n]
        ended = zip(self._roots.key[:n].tolist(), self._arena.row[found].tolist(), found.tolist(), strict=True)
        for start, end, node in ended:
            if start <= self._dropped:
                continue
            held = self._best.get(start)
            if held is None or end > held[0]:
                self._best[start] = end, [node]
            else:
                held[1].append(node)

    def _least_live(self) -> int:
        """The first start that has a run."""
        entries = self._entries
        if entries is None:
            return int(NEVER)
        run_table.sweep(self._automaton, entries, self._roots, self._last_clock, self._width, self._strict)
        alive = entries.at >= 0
        near = self._automaton.near[np.maximum(entries.at, 0)] == ONLY_NEAR
        # The kernel may have stopped before what it calls the last position.
        alive &= ~near | (entries.last >= entries.counts[run_table.LAST_POSITION] - 1)
        return int(entries.registers[alive, -1].min(initial=NEVER))

    def _settled(self, ended: bool = False) -> Iterator[Matches]:
        """The matches that nothing can change any more."""
        least = int(NEVER) if ended else self._least_live()
        chosen = []
        for start in sorted(self._best):
            if start >= least:
                break
            _, nodes = self._best.pop(start)
            if start <= self._dropped:
                continue
            matches = list(self._spelled(nodes))
            if len(matches) > 1:
                matches = select.skipped(matches, self._skip, self._program.variables)
            match = matches[0]
            self._dropped = select.last_dropped(match, self._skip)
            chosen.append(match)
        if chosen:
            yield self._rows_of(chosen)
        self._least = min([least, *self._best])

    def _spelled(self, nodes: list[int]) -> Iterator[select.Match]:
        """The matches of nodes of one start."""
        arena, labels = self._arena, self._program.labels
        assert arena is not None
        todo: list[tuple[int, Any]] = [(node, None) for node in nodes]
        while todo:
            node, tail = todo.pop()
            if node == BOTTOM:
                events = []
                while tail is not None:
                    event, tail = tail
                    events.append(event)
                places, marks = zip(*events, strict=True)
                yield select.Match(places, marks, tuple(labels[mark] for mark in marks))
            elif arena.label[node] == UNION:
                todo += [(int(arena.child[node]), tail), (int(arena.right[node]), tail)]
            else:
                event = int(arena.row[node]), int(arena.label[node])
                todo.append((int(arena.child[node]), (event, tail)))

    def _rows_of(self, chosen: list[select.Match]) -> Matches:
        events = KeyEvents(self._numbers, [])
        offsets = np.concatenate([[0], np.cumsum([len(match.positions) for match in chosen])]).astype(np.int64)
        positions = np.array([p for match in chosen for p in match.positions], np.int64)
        labels = np.array([label for match in chosen for label in match.labels], np.int32)
        keys = np.full(len(chosen), self._live.counts[cea.KEY], np.int64)
        return Matches(len(chosen), offsets, events.rows_at(positions), labels, keys)

    # ------------------------------------------------------------ the arena, snapshots

    def _kept_nodes(self) -> AnyArray:
        return np.array([node for _, nodes in self._best.values() for node in nodes], np.int32)

    def _renumber(self, forward: AnyArray) -> None:
        self._best = {start: (end, forward[nodes].tolist()) for start, (end, nodes) in self._best.items()}

    def snapshot(self) -> bytes:
        """The state, compacted. Codes of terms must mean the same to whoever restores it."""
        own = super().snapshot()
        return pickle.dumps((own, self._best, self._dropped, self._numbers, self._least))

    def restore(self, data: bytes) -> None:
        """Go on where `snapshot` was taken. ExecutionError SNAPSHOT_VERSION for another format."""
        own, self._best, self._dropped, self._numbers, self._least = pickle.loads(data)
        super().restore(own)
