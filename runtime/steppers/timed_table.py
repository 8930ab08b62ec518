"""A table of deterministic states with registers, where windows inside the pattern began: the stepper of timed.py.

Consumption and each start's own runs (for AFTER MATCH SKIP, and to watch how far starts come) are its business, too.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from runtime import capacities
from runtime.arrays import AnyArray, IntArray, grown
from runtime.automata.determinize_composed import FRESH, Composed, ComposedRow, Target
from runtime.automata.symbols import Classes
from runtime.compact_set.store import Store
from runtime.errors import ExecutionError
from runtime.program import Program
from runtime.steppers import cea, leading, timed
from runtime.steppers.stepper import Feed, Stepper
from runtime.steppers.table import filled

CODE_BITS = 62
NEVER = int(np.iinfo(np.int64).max)  # after all positions


class RuleBuilder:
    """The rows of the deterministic automaton that the data asked for, as arrays that grow."""

    def __init__(self, composed: Composed, n_windows: int) -> None:
        self._composed, self._n_windows = composed, n_windows
        self.n_rows = self.n_edges = self._n_known = self._n_codes = 0
        rows, edges, states, codes = capacities.ROWS, capacities.EDGES, capacities.STATES, capacities.CODES
        self.rules = timed.Rules(
            row_of=np.full((states, capacities.CLASSES), -1, np.int32),
            first=np.zeros(rows, np.int32),
            last=np.zeros(rows, np.int32),
            skip=np.zeros(rows, np.int32),
            skip_from=np.zeros((rows, 1), np.int32),
            quiet=np.zeros(rows, np.bool_),
            report=np.zeros(rows, np.bool_),
            label=np.zeros(edges, np.int32),
            target=np.zeros(edges, np.int32),
            accept=np.zeros(edges, np.bool_),
            from_=np.zeros((edges, 1), np.int32),
            registers=np.zeros(states, np.int32),
            code=np.zeros(states, np.int64),
            begin=np.full(states, -1, np.int32),
            forgetful=np.zeros(states, np.bool_),
            hash_state=np.full(codes, -1, np.int32),
            hash_code=np.zeros(codes, np.int64),
            hash_next=np.zeros(codes, np.int32),
        )

    @property
    def width(self) -> int:
        """Registers that the arrays have room for."""
        return self.rules.from_.shape[1]

    def fit(self, n_classes: int) -> None:
        """Room for all states, classes and registers met so far, and what is known of each state."""
        members, rules = self._composed.members, self.rules
        states, classes = rules.row_of.shape
        if len(members) > states or n_classes > classes:
            wider = np.full((max(states, 2 * len(members)), max(classes, 2 * n_classes)), -1, np.int32)
            wider[:states, :classes] = rules.row_of
            rules = rules._replace(
                row_of=wider,
                registers=grown(rules.registers, len(wider)),
                code=grown(rules.code, len(wider)),
                begin=grown(rules.begin, len(wider)),
                forgetful=grown(rules.forgetful, len(wider)),
            )
        for number in range(self._n_known, len(members)):
            closed = members[number].closed
            if len(closed) * self._n_windows > CODE_BITS:
                raise ExecutionError(
                    "REGISTER_LIMIT",
                    found=len(closed),
                    limit=CODE_BITS // self._n_windows,
                    hint="Use fewer windows inside the pattern, or repeat less under them.",
                )
            rules.registers[number] = len(closed)
            rules.begin[number] = self._composed.begin(number)
            rules.code[number] = sum(bits << (r * self._n_windows) for r, bits in enumerate(closed))
        self._n_known = len(members)
        most = int(rules.registers.max(initial=0))
        if most > rules.from_.shape[1]:
            rules = rules._replace(from_=_wider(rules.from_, 2 * most), skip_from=_wider(rules.skip_from, 2 * most))
        self.rules = rules

    def add(self, state: int, klass: int, symbol: tuple[int, ...]) -> None:
        """Make the row of a state and class."""
        row: ComposedRow = self._composed.row(state, symbol)
        self.fit(0)
        rules = self.rules
        if self.n_rows == len(rules.first):
            for name in ("first", "last", "skip", "skip_from", "quiet", "report"):
                rules = rules._replace(**{name: grown(getattr(rules, name), 2 * self.n_rows)})
        while self.n_edges + len(row.moves) > len(rules.label):
            for name in ("label", "target", "accept", "from_"):
                rules = rules._replace(**{name: grown(getattr(rules, name), 2 * len(getattr(rules, name)))})
        rules.first[self.n_rows] = self.n_edges
        for label, target, accept in row.moves:
            rules.label[self.n_edges], rules.target[self.n_edges] = label, target.state
            rules.accept[self.n_edges] = accept
            rules.from_[self.n_edges, : len(target.sources)] = target.sources
            self.n_edges += 1
        rules.last[self.n_rows] = self.n_edges
        rules.skip[self.n_rows] = row.skip.state
        rules.skip_from[self.n_rows, : len(row.skip.sources)] = row.skip.sources
        same = row.skip.state == state and row.skip.sources == tuple(range(len(row.skip.sources)))
        rules.quiet[self.n_rows] = not row.moves and not row.report and same
        rules.report[self.n_rows] = row.report
        rules.row_of[state, klass] = self.n_rows
        self.n_rows += 1
        self.rules = rules

    def add_code(self, state: int, code: int) -> None:
        """Make known which state an aged one is."""
        n, width = len(self._composed.members[state].closed), self._n_windows
        closed = tuple(code >> (r * width) & ((1 << width) - 1) for r in range(n))
        after = self._composed.expired(state, closed)
        self.fit(0)
        if 2 * (self._n_codes + 1) > len(self.rules.hash_state):
            self._rehash()
        self._put(state, code, after)
        self._n_codes += 1

    def _rehash(self) -> None:
        old, size = self.rules, 4 * len(self.rules.hash_state)
        self.rules = old._replace(
            hash_state=np.full(size, -1, np.int32),
            hash_code=np.zeros(size, np.int64),
            hash_next=np.zeros(size, np.int32),
        )
        for at in np.flatnonzero(old.hash_state >= 0):
            self._put(int(old.hash_state[at]), int(old.hash_code[at]), int(old.hash_next[at]))

    def _put(self, state: int, code: int, after: int) -> None:
        rules = self.rules
        at = int(timed.place_of(state, code, len(rules.hash_state)))
        while rules.hash_state[at] >= 0:
            at = (at + 1) & (len(rules.hash_state) - 1)
        rules.hash_state[at], rules.hash_code[at], rules.hash_next[at] = state, code, after


def _wider(array: AnyArray, width: int) -> AnyArray:
    wider = np.zeros((len(array), width), array.dtype)
    wider[:, : array.shape[1]] = array
    return wider


class TimedStepper(Stepper):
    """Runs a composed program. `logs`: every move is a root, so that runs can be watched."""

    def __init__(self, program: Program, store: Store, logs: bool = False) -> None:
        super().__init__(store)
        self._program = program
        self.by_key = program.ends_late
        self._composed = Composed(program)
        self._classes = Classes(len(program.guards), program.words)
        self._rules = RuleBuilder(self._composed, max(1, len(program.inner_windows)))
        self._live = self._new_entries(np.dtype(np.int64))
        self._windows = self._inner_windows()
        # A match that becomes known late has another end than the event that made it known.
        past_last = program.skip is not None and program.skip.to == "PAST LAST ROW" and program.skip.waits
        skips = past_last and not program.ends_late
        self._options = timed.Options(program.consume, logs, skips)
        self.absorbs = skips and not program.inner_windows and program.window is None
        self._leading = leading.new_leading(capacities.RECORDS if skips else 0, np.dtype(np.int64))

    def read(self, feed: Feed) -> Iterator[None]:
        """See Stepper.read."""
        self._begin(feed.times)
        n = len(feed.times)
        piece = capacities.PIECE if self.absorbs else n
        for begin in range(0, n, piece):
            yield from self._read(feed if piece >= n else feed.part(begin, begin + piece))

    def _read(self, feed: Feed) -> Iterator[None]:
        store, at = self.store, 0
        feed = feed._replace(symbols=self._classes.of(feed.symbols))
        while True:
            self._rules.fit(len(self._classes.symbols))
            live = self._fit_entries()
            result, at = timed.step_kernel(
                store.space, self._rules.rules, self._windows, live, self._leading, at, feed, self._options
            )
            counts = live.counts
            if result == timed.NEEDS_ROW:
                state, klass = int(counts[timed.WANTED_STATE]), int(counts[timed.WANTED_CLASS])
                self._rules.add(state, klass, self._classes.symbols[klass])
            elif result == timed.NEEDS_STATE:
                self._rules.add_code(int(counts[timed.WANTED_STATE]), int(counts[timed.WANTED_CODE]))
            elif result == timed.NEEDS_ENTRIES:
                self._live = timed.grown_entries(live, 2 * int(counts[timed.WANTED_CODE]), self._rules.width)
            elif result == timed.NEEDS_RECORDS:
                self._leading = leading.roomier(self._leading)
            elif result == timed.CONSUMED:
                self.drop_runs()
            else:
                store.n_roots = int(counts[timed.N_ROOTS])
                yield
                store.n_roots = counts[timed.N_ROOTS] = 0
                if result == timed.DONE:
                    return
                if result == timed.NEEDS_NODES:
                    store.make_room(feed.clocks[at], at)
                store.listed_before(at, result == timed.NEEDS_ROOTS)

    def _begin(self, times: AnyArray) -> None:
        """Entries and windows have the type of the times, which the first feed shows."""
        if times.dtype != self._live.clock.dtype:
            self._live = self._new_entries(times.dtype)
            self._windows = self._inner_windows()
            self._leading = leading.new_leading(len(self._leading.start), times.dtype)

    def _new_entries(self, times: np.dtype) -> timed.Entries:
        n_windows = len(self._program.inner_windows)
        return timed.new_entries(capacities.TIMED_ENTRIES, self._rules.width, n_windows, times)

    def _inner_windows(self) -> timed.InnerWindows:
        inner = self._program.inner_windows
        return timed.InnerWindows(
            by_position=np.array([w.kind == "events" for w in inner], np.bool_),
            size=np.array([w.size for w in inner], self._live.clock.dtype),
            strict=np.array([w.strict for w in inner], np.bool_),
        )

    def _fit_entries(self) -> timed.Entries:
        if self._rules.width > len(self._live.start_clock):
            capacity = self._live.state.shape[1]
            self._live = timed.grown_entries(self._live, capacity, self._rules.width)
        return self._live

    def drop_runs(self) -> None:
        """See Stepper.drop_runs; the run that has not begun forgets what it has seen."""
        counts = self._live.counts
        counts[timed.N_LIVE] = 0
        start = int(counts[timed.START_STATE])
        if start >= 0:
            target = self._composed.forgotten(start)
            self._rules.fit(0)
            stays = target.state == start and target.sources == tuple(range(len(target.sources)))
            self._rules.rules.forgetful[start] = stays  # next time the kernel goes on
            self._move_start(target)

    def _move_start(self, target: Target) -> None:
        """The run that has not begun goes to another state, its registers with it."""
        live = self._live
        live.counts[timed.START_STATE] = target.state
        for r, source in enumerate(target.sources):
            assert source != FRESH
            live.start_clock[r], live.start_position[r] = live.start_clock[source], live.start_position[source]

    # ------------------------------------------------------------ starts that have runs of their own

    def least_start(self) -> int:
        """See Stepper.least_start."""
        starts, _ = self._starts()
        return int(starts.min(initial=NEVER))

    def _starts(self) -> tuple[IntArray, IntArray]:
        """For each entry the position at which it began, -1 where that is not known; and its state."""
        live, side, n = self._live, self._live.counts[timed.SIDE], int(self._live.counts[timed.N_LIVE])
        states = live.state[side, :n]
        register = self._rules.rules.begin[states]
        starts = live.position[side, np.arange(n), np.maximum(register, 0)]
        return np.where(register < 0, -1, starts), states

    def absorb(self, ends: Mapping[int, int]) -> None:
        """Drop the runs of starts that an earlier start in the same state makes superfluous (PAST LAST ROW, no window).
        `ends`: by start, the end of the longest match so far that may still be taken.

        From a state on, both have matches with the same ends. Let i be before k, and no match that has ended from i on,
        but before k, begin before i. If matches are still to come, then i is chosen with the last of them, which skips
        k; or i was skipped by a match that begins before it, and that ends after k as well. So of `A+ ; B` over n times
        A there is one run, where each start had one, of up to n events.
        """
        starts, states = self._starts()
        if len(starts) < capacities.FEW_RUNS:
            return
        kept = starts < 0
        own = sorted(ends.items())
        own_starts, own_ends = [start for start, _ in own], [end for _, end in own]
        first_of: dict[int, tuple[int, list[int]]] = {}  # by state: its least start, and the ends of those before that
        for k in np.argsort(starts, kind="stable").tolist():
            if kept[k]:
                continue
            state, start = int(states[k]), int(starts[k])
            first = first_of.get(state)
            if first is None or bisect_left(first[1], first[0]) < bisect_left(first[1], start):
                first_of[state] = start, sorted(own_ends[: bisect_left(own_starts, start)])
                kept[k] = True
        self._keep(np.flatnonzero(kept))

    def _keep(self, kept: IntArray) -> None:
        live = self._live
        side, n = live.counts[timed.SIDE], len(kept)
        for column in (live.state, live.length, live.nodes, live.clock, live.position):
            column[side, :n] = column[side, kept]
        live.counts[timed.N_LIVE] = n

    # ------------------------------------------------------------ the end of a key

    def end_key(self) -> None:
        """Roots for what waits for the window to close: time has passed."""
        if not self._program.ends_late:
            return
        live, store = self._live, self.store
        counts, side = live.counts, live.counts[timed.SIDE]
        n = int(counts[timed.N_LIVE])
        store.more_roots(n)
        while store.nodes + n * cea.LIST_LENGTH > len(store.arena.row):
            store.grow()
        for k in range(n):
            if self._composed.at_end(int(live.state[side, k])):
                node = timed.merge_entry(store.arena, live, side, k)
                register = self._rules.rules.begin[live.state[side, k]]
                begin = live.position[side, k, register] if register >= 0 else 0
                row = node, store.arena.start[node], counts[timed.KEY], begin, counts[timed.LAST_POSITION]
                for column, value in zip(store.roots, row, strict=True):
                    column[store.n_roots] = value
                store.n_roots += 1

    def begin_key(self, key: int) -> None:
        """See Stepper.begin_key."""
        counts = self._live.counts
        counts[timed.N_LIVE] = counts[timed.START_STATE] = 0
        counts[timed.KEY], counts[timed.LAST_POSITION] = key, -1
        leading.forget_leading(self._leading)

    # ------------------------------------------------------------ its nodes: those in union lists

    def prune(self, now: Any) -> None:
        """See Holder.prune."""
        live, store = self._live, self.store
        side, n = live.counts[timed.SIDE], int(live.counts[timed.N_LIVE])
        left = [cea.prune(store.arena, live, side, k, now, store.bounds) > 0 for k in range(n)]
        self._keep(np.flatnonzero(left))

    def held(self) -> AnyArray:
        """See Holder.held."""
        live, side, n = self._live, self._live.counts[timed.SIDE], int(self._live.counts[timed.N_LIVE])
        return live.nodes[side, :n][filled(live.length[side, :n])]

    def renumber(self, forward: AnyArray) -> None:
        """See Holder.renumber."""
        live, side, n = self._live, self._live.counts[timed.SIDE], int(self._live.counts[timed.N_LIVE])
        used = filled(live.length[side, :n])
        live.nodes[side, :n][used] = forward[live.nodes[side, :n][used]]
