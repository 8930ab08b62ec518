"""CONSUME BY ANY: an output drops the partial matches of all partitions, so that all are read in the global order.

One engine per key, one event at a time, since any event may consume what every other key holds. Slow, and right: about
ten thousand events a second.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator

import numpy as np

from runtime import nodes
from runtime.arrays import AnyArray, IntArray
from runtime.compact_set.matches import Matches
from runtime.program import Program
from runtime.steppers.bound import BoundEngine
from runtime.steppers.timed_engine import TimedEngine


class ConsumeAnyEngine:
    """See runtime.engine.Engine; `keys` need not be adjacent here, rows come in the order of the whole stream."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._engines: dict[int, TimedEngine | BoundEngine] = {}

    def _engine(self, key: int) -> TimedEngine | BoundEngine:
        if key not in self._engines:
            machine = self._program.machine
            general = bool(self._program.terms) or (machine is not None and machine.has(nodes.NotBeforeEach))
            self._engines[key] = (BoundEngine if general else TimedEngine)(self._program)
        return self._engines[key]

    def feed(
        self,
        symbols: AnyArray,
        times: AnyArray,
        positions: IntArray | None = None,
        keys: IntArray | None = None,
        rows: IntArray | None = None,
        mute: AnyArray | None = None,
    ) -> Iterator[Matches]:
        """See Engine.feed."""
        n = len(symbols)
        keys = np.zeros(n, np.int64) if keys is None else keys
        for i in range(n):
            one, key = slice(i, i + 1), int(keys[i])
            own = None if positions is None else positions[one]
            row = None if rows is None else rows[one]
            consumed = False
            for matches in self._engine(key).feed(symbols[one], times[one], own, None, row):
                consumed = True
                yield matches._replace(key=np.full(matches.n, key, np.int64))
            if consumed:
                for engine in self._engines.values():
                    engine.drop_runs()

    def count(
        self,
        symbols: AnyArray,
        times: AnyArray,
        positions: IntArray | None = None,
        keys: IntArray | None = None,
        mute: AnyArray | None = None,
    ) -> int:
        """See Engine.count."""
        return sum(matches.n for matches in self.feed(symbols, times, positions, keys, None, mute))

    def flush(self) -> Iterator[Matches]:
        """Nothing waits for the end of the stream: CONSUME BY with a trailing absence is an error."""
        return iter(())

    def least_row(self) -> int:
        """See Engine.least_row."""
        return min((engine.least_row() for engine in self._engines.values()), default=int(np.iinfo(np.int64).max))

    def snapshot(self) -> bytes:
        return pickle.dumps({key: engine.snapshot() for key, engine in self._engines.items()})

    def restore(self, data: bytes) -> None:
        self._engines = {}
        for key, own in pickle.loads(data).items():
            self._engine(key).restore(own)
