"""The engine around runtime.steppers.pcea: owns allocation and growth, lists matches, snapshots."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np

from runtime import nodes
from runtime.arrays import AnyArray, IntArray
from runtime.automata.determinize import NoSubsets, SubsetTable
from runtime.compact_set import products
from runtime.compact_set import tecs as ecs
from runtime.compact_set.matches import Matches
from runtime.errors import ExecutionError
from runtime.program import FORMAT, Program
from runtime.steppers import cea, pcea
from runtime.steppers.cea_engine import ALL_REPORT, CHUNK_EVENTS, NO_KEYS, CeaEngine, new_listing, next_positions

FIRST_PLACES = 1 << 12


class PceaEngine(CeaEngine):
    """Runs nodes.Parallel (see runtime.engine.Engine for the contract)."""

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        machine = program.machine
        assert isinstance(machine, nodes.Parallel)
        self._automaton = pcea.Automaton(**{name: getattr(machine, name) for name in pcea.Automaton._fields})
        self._depth = machine.depth
        n_steps, n_parts = len(machine.place), len(machine.part)
        # An output for each step, a product for each part, and where a run waits a path of its heap.
        self._need = n_steps * (2 * products.MOST_RANKS + 4) + n_parts
        self._waiting = pcea.Waiting(
            node=np.zeros(n_steps, np.int32),
            step=np.zeros(n_steps, np.int64),
            path=np.zeros(products.MOST_RANKS, np.int32),
        )
        self._places = pcea.new_places(FIRST_PLACES, self._depth)
        self._products = products.new_product_walk(256, max(1, len(machine.guard)))

    def _states_of(self, program: Program) -> SubsetTable:
        return NoSubsets()

    # ------------------------------------------------------------ reading

    def _steps(
        self,
        symbols: AnyArray,
        times: AnyArray,
        positions: IntArray | None,
        keys: IntArray | None,
        rows: IntArray | None,
        mute: AnyArray | None,
    ) -> Iterator[None]:
        """Run the kernel; yields whenever there may be roots to list before it can go on."""
        n, counts = len(symbols), self._live.counts
        if n == 0:
            return
        if positions is None:
            positions = next_positions(counts, n, keys)
        clocks = positions if self._by_position else self._as_clock(times)
        rows = positions if rows is None else rows
        keys = NO_KEYS if keys is None else keys
        mute = ALL_REPORT if mute is None else mute
        symbols = np.ascontiguousarray(symbols if symbols.ndim == 2 else symbols[:, None])
        arena, at, words = self._ready(clocks), 0, self._program.words
        self._crowded = -1
        while True:
            result, at = pcea.step_kernel(
                arena, self._automaton, self._places, self._waiting, counts, self._roots, at, self._need,
                symbols, words, positions, rows, clocks, keys, mute, self._width, self._strict,
            )  # fmt: skip
            yield
            counts[cea.N_ROOTS] = 0
            if result == pcea.DONE:
                self._last_clock = clocks[-1]
                return
            if result == pcea.NEEDS_NODES:
                arena = self._make_room(clocks[at], at)
            elif result == pcea.NEEDS_PLACES:
                self._more_places(clocks[at])
            elif at == self._stuck:
                self._roots = self._new_roots(2 * len(self._roots.node))
            self._stuck = at if result == pcea.NEEDS_ROOTS else -1

    def _more_places(self, now: Any) -> None:
        """Without the places whose runs have all left the window; with more room, if more than a quarter is left."""
        size = len(self._places.place)
        while True:
            to = pcea.new_places(size, self._depth)
            pcea.moved(self._arena, self._places, to, now, self._width, self._strict)
            self._places = to
            if 4 * (to.counts[pcea.N_FILLED] + len(self._automaton.place)) <= size:
                return
            size *= 2

    def _held(self) -> IntArray:
        """The slots that are filled."""
        return np.flatnonzero(self._places.generation == self._places.counts[pcea.GENERATION])

    def least_row(self) -> int:
        """See Engine.least_row. Compacts the arena. O(nodes)."""
        if self._arena is None or self._places.counts[pcea.N_FILLED] == 0:
            return int(np.iinfo(np.int64).max)
        return self._compact(self._last_clock)

    def _compact(self, now: Any) -> int:
        """Drop every node that no run reaches inside the window. Returns the least row still mentioned."""
        assert self._arena is not None
        self._more_places(now)
        places, held = self._places, self._held()
        roots = places.node[held]
        forward = np.zeros(int(self._arena.size[0]), np.int32)
        ecs.mark_kernel(self._arena, roots, len(roots), now, self._width, self._strict, forward)
        least = ecs.slide_kernel(self._arena, now, self._width, self._strict, forward)
        places.node[held] = forward[roots]
        return int(least)

    # ------------------------------------------------------------ output

    def _enumerate(self) -> Iterator[Matches]:
        n_roots = int(self._live.counts[cea.N_ROOTS])
        if n_roots == 0:
            return
        assert self._arena is not None
        self._products.top[0] = 0
        root, result = 0, ecs.LISTING_FULL
        while result != ecs.FINISHED:
            listing = new_listing(CHUNK_EVENTS, root)
            while True:
                result = products.enumerate_products(
                    self._arena, self._products, self._roots, n_roots, self._width, self._strict,
                    self._automaton.label_of, listing,
                )  # fmt: skip
                if result != ecs.WALK_FULL:
                    break
                self._products = products.grown_product_walk(self._products)
            n, root = int(listing.state[0]), int(listing.state[1])
            if n:
                end = int(listing.offsets[n])
                yield Matches(n, listing.offsets[: n + 1], listing.row[:end], listing.label[:end], listing.key[:n])

    def _count_part(self, begin: int, n_roots: int, total: IntArray) -> int:
        at: int = products.count_products(
            self._arena, self._roots, begin, n_roots, self._width, self._strict,
            self._walk.stack_node, self._counts, total,
        )  # fmt: skip
        return at

    # ------------------------------------------------------------ snapshots

    def snapshot(self) -> bytes:
        """The state, compacted. Codes of terms must mean the same to whoever restores it."""
        if self._arena is None:
            return pickle.dumps({"format": FORMAT, "arena": None})
        self._compact(self._last_clock)
        places, counts, held = self._places, self._live.counts, self._held()
        return pickle.dumps(
            {
                "format": FORMAT,
                "arena": [column[: self.nodes].copy() for column in self._arena[:-1]],
                "places": {name: getattr(places, name)[held] for name in ("code", "value", "place", "node")},
                "position": int(counts[cea.LAST_POSITION]),
                "key": int(counts[cea.KEY]),
                "clock": self._last_clock,
            }
        )

    def restore(self, data: bytes) -> None:
        """Go on where `snapshot` was taken. ExecutionError SNAPSHOT_VERSION for another format."""
        state = pickle.loads(data)
        if state["format"] != FORMAT:
            raise ExecutionError("SNAPSHOT_VERSION", found=state["format"], expected=FORMAT)
        self._arena = None
        columns = state["arena"]
        if columns is None:
            self._places = pcea.new_places(FIRST_PLACES, self._depth)
            return
        self._restore_arena(columns)
        n = len(state["places"]["node"])
        flat = pcea.new_places(n, self._depth)
        for name, column in state["places"].items():
            getattr(flat, name)[:] = column
        flat.generation[:] = 0
        flat.counts[pcea.N_FILLED] = n
        self._places = pcea.new_places(max(FIRST_PLACES, 1 << (4 * n).bit_length()), self._depth)
        pcea.moved(self._arena, flat, self._places, state["clock"], self._width, self._strict)
        counts = self._live.counts
        counts[cea.LAST_POSITION], counts[cea.KEY] = state["position"], state["key"]
        self._last_clock = state["clock"]
