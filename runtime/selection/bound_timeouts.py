"""WITH TIMEOUTS where events are compared: the general engine looks how far each start comes (see timeouts.py)."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator

import numpy as np

from runtime.arrays import AnyArray, IntArray
from runtime.compact_set.matches import Matches
from runtime.program import Program
from runtime.selection.key_events import Dropped, KeyEvents
from runtime.steppers.bound import UNION, BoundEngine, Clock, Node, Output
from runtime.steppers.rows_known import Asked


class BoundWatch(BoundEngine):
    """Runs Program.timeouts; what it yields at the end of a key are the starts that timed out.

    Its runs are one for each start and state (nodes.First), so all that a node stands for has one beginning and one
    support. `_best`: for each start the rank of its furthest run so far and that run, None once a match begins there.
    """

    def __init__(self, program: Program, dropped: Dropped) -> None:
        assert program.timeouts is not None
        super().__init__(program.timeouts)
        self._holds = True  # nodes hold positions
        self._dropped, self._all_starts = dropped, program.all_starts
        self._ranks = program.timeouts.ranks().tolist()
        self._label_of = [program.labels.index(label) for label in program.timeouts.labels]

    def _begin_key(self) -> None:
        super()._begin_key()
        self._best: dict[int, tuple[int, Node] | None] = {}
        self._events: list[tuple[int, int, Clock]] = []  # position, row, time

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
        for matches in super().feed(symbols, times, positions, keys, rows):
            yield matches._replace(timeout=True)

    def flush(self) -> Iterator[Matches]:
        """See Engine.flush."""
        for matches in super().flush():
            yield matches._replace(timeout=True)

    def least_row(self) -> int:
        """See Engine.least_row."""
        open_ = (self._rows[p] for best in self._best.values() if best is not None for p, _ in _events(best[1]))
        return min(super().least_row(), *open_)

    # ------------------------------------------------------------ looking on

    def _step(self, event: Asked, row: int, out: Output, mute: bool) -> None:
        if event is not self._quiet:
            self._events.append((self._position, row, self._now[0]))
        super()._step(event, row, out, mute)

    def _took(self, run: Node) -> None:
        rank = self._ranks[run.label]
        start = _start(run)
        best = self._best.get(start, (-2, run))
        if best is not None and (rank > best[0] or (rank == best[0] and rank >= 0 and self._is_greater(run, best[1]))):
            self._best[start] = rank, run

    def _is_greater(self, run: Node, other: Node) -> bool:
        """Under NXT: has it the least position in which they differ?"""
        return run.left is other or self._support(run) > self._support(other)

    def _support(self, run: Node) -> list[int]:
        return [-position for position, label in _events(run) if self._ranks[label] >= 0]

    def _output(self, nodes: Iterable[Node], out: Output, now: tuple[Clock, int] | None) -> None:
        """A match begins at the starts of these."""
        for node in () if self._all_starts else nodes:
            if now is None or self._fits(node.start):
                self._best[_start(node)] = None

    def _end_key(self, out: Output) -> None:
        for states, node in self._live.items():
            if any(self._machine.at_end(value) is not None for value in states):
                self._output([node], out, None)
        open_ = sorted((start, best[1]) for start, best in self._best.items() if best is not None)
        if not open_:
            return
        places, rows, times = zip(*self._events, strict=True)
        events = KeyEvents([(np.array(places, np.int64), np.array(rows, np.int64))], [np.array(times)])
        starts = np.array([start for start, _ in open_], np.int64)
        lost = self._dropped(self._key, starts, events)
        for (_, run), gone in zip(open_, lost.tolist(), strict=True):
            if not gone:
                found = _events(run)
                out.add([self._rows[p] for p, _ in found], [self._label_of[label] for _, label in found], self._key)

    # ------------------------------------------------------------ snapshots

    def snapshot(self) -> bytes:
        runs = {start: None if best is None else (best[0], _events(best[1])) for start, best in self._best.items()}
        return pickle.dumps((super().snapshot(), runs, self._events))

    def restore(self, data: bytes) -> None:
        own, runs, self._events = pickle.loads(data)
        super().restore(own)
        self._best = {start: best if best is None else (best[0], _run(best[1])) for start, best in runs.items()}


def _start(run: Node) -> int:
    """The position at which a run began."""
    while run.left is not None:
        run = run.left
    return run.row


def _events(run: Node) -> list[tuple[int, int]]:
    """The positions and labels of a run, in order."""
    found: list[tuple[int, int]] = []
    node: Node | None = run
    while node is not None:
        if node.label != UNION:
            found.append((node.row, node.label))
        node = node.left
    return found[::-1]


def _run(events: list[tuple[int, int]]) -> Node:
    """Such a run again; its clock is not asked for."""
    (position, label), *more = events
    run = Node(position, label, None, None, 0)
    for position, label in more:
        run = Node(position, label, run, None, 0)
    return run
