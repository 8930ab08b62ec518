"""The engine around runtime.steppers.timed: composed programs with registers, consumption, or a choice between starts.

What must be chosen among the matches of a whole partition (AFTER MATCH SKIP, a strategy over a trailing absence) is
held back until its end; for AFTER MATCH SKIP that is one set of matches for each start.
"""

from __future__ import annotations

import pickle
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np

from runtime.arrays import AnyArray, IntArray, grown
from runtime.automata.determinize import DEAD
from runtime.automata.determinize_composed import FRESH, Composed, ComposedRow, Target
from runtime.compact_set import tecs as ecs
from runtime.compact_set.matches import Matches
from runtime.errors import ExecutionError
from runtime.program import FORMAT, Program
from runtime.selection import select
from runtime.steppers import cea, leading, timed
from runtime.steppers.cea_engine import ALL_REPORT, FIRST_ROOTS, NO_KEYS, CeaEngine, next_positions

CODE_BITS = 62
PIECE = 512  # events after which runs are looked through, where some make others superfluous …
FEW_RUNS = 64  # … if there are so many
FIRST_RECORDS = 1 << 10
FEW_STARTS, MANY_STARTS = 16, 4096  # whose matches are listed at a time, where later ones may be dropped


class RuleBuilder:
    """The rows of the deterministic automaton that the data asked for, as arrays that grow."""

    def __init__(self, composed: Composed, n_windows: int) -> None:
        self._composed, self._n_windows = composed, n_windows
        self.n_rows = self.n_edges = self._n_known = self._n_codes = 0
        self.rules = timed.Rules(
            row_of=np.full((8, 8), -1, np.int32),
            first=np.zeros(16, np.int32),
            last=np.zeros(16, np.int32),
            skip=np.zeros(16, np.int32),
            skip_from=np.zeros((16, 1), np.int32),
            quiet=np.zeros(16, np.bool_),
            report=np.zeros(16, np.bool_),
            label=np.zeros(16, np.int32),
            target=np.zeros(16, np.int32),
            accept=np.zeros(16, np.bool_),
            from_=np.zeros((16, 1), np.int32),
            registers=np.zeros(8, np.int32),
            code=np.zeros(8, np.int64),
            begin=np.full(8, -1, np.int32),
            hash_state=np.full(16, -1, np.int32),
            hash_code=np.zeros(16, np.int64),
            hash_next=np.zeros(16, np.int32),
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


class TimedEngine(CeaEngine):
    """Runs a composed program (see runtime.engine.Engine for the contract)."""

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self._composed = Composed(program)
        self._rules = RuleBuilder(self._composed, max(1, len(program.inner_windows)))
        self._entries: timed.Entries | None = None
        self._windows: timed.InnerWindows | None = None
        self._time = np.dtype(np.int64)
        self._holds = program.skip is not None or program.choose != "ALL"
        self._borders = self._holds or program.ends_late
        past_last = program.skip is not None and program.skip.to == "PAST LAST ROW"
        self._absorbs = past_last and not program.inner_windows and not program.ends_late and program.window is None
        # A match that becomes known late has another end than the event that made it known.
        self._skips = past_last and not program.ends_late
        self._leading = leading.new_leading(0, self._time)
        self._logs = False  # does the kernel log every move (runtime.selection.timeouts)?
        self._best: dict[int, list[tuple[int, int]]] = {}  # by start: (end, node) of its longest matches
        self._held = select.Held(program)
        self._numbers: list[tuple[IntArray, IntArray]] = []  # (positions, rows) of this key's events, where held
        self._timed_roots: timed.Roots = self._new_timed_roots(FIRST_ROOTS)

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
        """See Engine.feed."""
        for ended in self._run(symbols, times, positions, keys, rows, mute):
            yield from self._output(ended)

    def count(
        self,
        symbols: AnyArray,
        times: AnyArray,
        positions: IntArray | None = None,
        keys: IntArray | None = None,
        mute: AnyArray | None = None,
    ) -> int:
        """See Engine.count."""
        total = 0
        for ended in self._run(symbols, times, positions, keys, None, mute):
            total += sum(found.n for found in self._output(ended)) if self._holds else self._count_roots()
        return total

    def flush(self) -> Iterator[Matches]:
        """The matches that the end of the stream makes known."""
        if self._entries is not None and self._borders:
            self._end_of_key()
            yield from self._output(ended=True)
            self._forget_key()

    def least_row(self) -> int:
        """See Engine.least_row. Compacts the arena. O(nodes)."""
        if self._entries is None:
            return int(np.iinfo(np.int64).max)
        if self._holds:
            return int(min((rows.min() for _, rows in self._numbers if len(rows)), default=np.iinfo(np.int64).max))
        return self._compact(self._last_clock)

    # ------------------------------------------------------------ reading

    def _run(
        self,
        symbols: AnyArray,
        times: AnyArray,
        positions: IntArray | None,
        keys: IntArray | None,
        rows: IntArray | None,
        mute: AnyArray | None,
    ) -> Iterator[bool]:
        """Run the kernel; yields whenever roots must be dealt with before it can go on: True at the end of a key."""
        piece = PIECE if self._absorbs else max(1, len(symbols))
        for begin in range(0, len(symbols), piece):
            part = slice(begin, begin + piece)
            more = (None if column is None else column[part] for column in (positions, keys, rows, mute))
            yield from self._run_kernel(symbols[part], times[part], *more)
            if self._absorbs:
                self._absorb()

    def _run_kernel(
        self,
        symbols: AnyArray,
        times: AnyArray,
        positions: IntArray | None,
        keys: IntArray | None,
        rows: IntArray | None,
        mute: AnyArray | None,
    ) -> Iterator[bool]:
        n = len(symbols)
        if n == 0:
            return
        times = self._as_clock(times)
        live = self._begin(times)
        positions = next_positions(live.counts, n, keys) if positions is None else positions
        clocks = positions if self._by_position else times
        rows = positions if rows is None else rows
        arena = self._ready(clocks)
        keys = NO_KEYS if keys is None else keys
        mute = ALL_REPORT if mute is None else mute
        classes = self._classes.of(symbols)
        if self._holds and (not len(keys) or keys[0] == live.counts[timed.KEY]):
            self._note(0, positions, rows, keys)
        numbers = positions if self._holds else rows
        at, self._crowded = 0, -1
        while True:
            self._rules.fit(len(self._classes.symbols))
            live = self._fit_entries()
            result, at = timed.step_kernel(
                arena, self._rules.rules, self._windows, live, self._leading, self._timed_roots, at,
                classes, positions, numbers, clocks, times, keys, mute, self._width, self._strict,
                self._borders, self._program.consume, self._logs, self._skips,
            )  # fmt: skip
            counts = live.counts
            if result == timed.NEEDS_ROW:
                state, klass = int(counts[timed.WANTED_STATE]), int(counts[timed.WANTED_CLASS])
                self._rules.add(state, klass, self._classes.symbols[klass])
            elif result == timed.NEEDS_STATE:
                self._rules.add_code(int(counts[timed.WANTED_STATE]), int(counts[timed.WANTED_CODE]))
            elif result == timed.NEEDS_ENTRIES:
                self._entries = timed.grown_entries(live, 2 * int(counts[timed.WANTED_CODE]), self._rules.width)
            elif result == timed.NEEDS_RECORDS:
                self._leading = leading.roomier(self._leading)
            elif result == timed.CONSUMED:
                self.drop_runs()
            elif result == timed.KEY_ENDS:
                yield from self._key_ends(keys[at])
                if self._holds:
                    self._note(at, positions, rows, keys)
            else:
                yield False
                counts[timed.N_ROOTS] = 0
                if result == timed.DONE:
                    self._last_clock = clocks[-1]
                    return
                if result == timed.NEEDS_NODES:
                    arena = self._make_room(clocks[at], at)
                elif at == self._stuck:
                    self._timed_roots = self._new_timed_roots(2 * len(self._timed_roots.node))
                self._stuck = at if result == timed.NEEDS_ROOTS else -1

    def _absorb(self) -> None:
        """Drop the runs of starts that an earlier start in the same state makes superfluous (PAST LAST ROW, no window).

        From a state on, both have matches with the same ends. Let i be before k, and no match that has ended from i on,
        but before k, begin before i. If matches are still to come, then i is chosen with the last of them, which skips
        k; or i was skipped by a match that begins before it, and that ends after k as well. So of `A+ ; B` over n times
        A there is one run, where each start had one, of up to n events.
        """
        live = self._entries
        if live is None:
            return
        counts, side = live.counts, live.counts[timed.SIDE]
        n = int(counts[timed.N_LIVE])
        if n < FEW_RUNS:
            return
        begun = np.array([self._rules.rules.begin[state] for state in live.state[side, :n]], np.int64)
        starts = live.position[side, np.arange(n), np.maximum(begun, 0)]
        kept = begun < 0
        ends = sorted((start, group[0][0]) for start, group in self._best.items())
        own_starts, own_ends = [start for start, _ in ends], [end for _, end in ends]
        first_of: dict[int, tuple[int, list[int]]] = {}  # by state: its least start, and the ends of those before that
        for k in np.argsort(starts, kind="stable").tolist():
            if kept[k]:
                continue
            state, start = int(live.state[side, k]), int(starts[k])
            first = first_of.get(state)
            if first is None or bisect_left(first[1], first[0]) < bisect_left(first[1], start):
                first_of[state] = start, sorted(own_ends[: bisect_left(own_starts, start)])
                kept[k] = True
        self._keep_entries(np.flatnonzero(kept))

    def _keep_entries(self, kept: IntArray) -> None:
        live = self._entries
        assert live is not None
        side, n = live.counts[timed.SIDE], len(kept)
        for column in (live.state, live.length, live.nodes, live.clock, live.position):
            column[side, :n] = column[side, kept]
        live.counts[timed.N_LIVE] = n

    def _key_ends(self, key: Any) -> Iterator[bool]:
        assert self._entries is not None
        self._end_of_key()
        yield True
        self._forget_key()
        self._entries.counts[timed.KEY] = key

    def _note(self, begin: int, positions: IntArray, rows: IntArray, keys: IntArray) -> None:
        """Remember the rows of the key that is read from `begin` on."""
        end = len(positions)
        if len(keys):
            others = np.flatnonzero(keys[begin:] != keys[begin])
            end = begin + int(others[0]) if len(others) else end
        self._numbers.append((positions[begin:end], rows[begin:end]))

    def _begin(self, times: AnyArray) -> timed.Entries:
        """Entries and windows, made when the first batch shows the type of the times."""
        if self._entries is None:
            self._time = times.dtype
            self._entries = timed.new_entries(64, self._rules.width, len(self._program.inner_windows), self._time)
            self._windows = self._inner_windows()
            self._leading = leading.new_leading(FIRST_RECORDS, self._time)
        return self._entries

    def _inner_windows(self) -> timed.InnerWindows:
        inner = self._program.inner_windows
        return timed.InnerWindows(
            by_position=np.array([w.kind == "events" for w in inner], np.bool_),
            size=np.array([w.size for w in inner], self._time),
            strict=np.array([w.strict for w in inner], np.bool_),
        )

    def _ready(self, clocks: AnyArray) -> ecs.Arena:
        if self._arena is None:
            super()._ready(clocks)
            self._timed_roots = self._new_timed_roots(FIRST_ROOTS)
        assert self._arena is not None
        return self._arena

    def _new_timed_roots(self, capacity: int) -> timed.Roots:
        return timed.Roots(
            node=np.zeros(capacity, np.int32),
            clock=np.zeros(capacity, self._clock),
            key=np.zeros(capacity, np.int64),
            begin=np.zeros(capacity, np.int64),
            end=np.zeros(capacity, np.int64),
        )

    def _fit_entries(self) -> timed.Entries:
        assert self._entries is not None
        if self._rules.width > len(self._entries.start_clock):
            capacity = self._entries.state.shape[1]
            self._entries = timed.grown_entries(self._entries, capacity, self._rules.width)
        return self._entries

    def drop_runs(self) -> None:
        """All partial matches are consumed."""
        if self._entries is None:
            return
        counts = self._entries.counts
        counts[timed.N_LIVE] = 0
        if counts[timed.START_STATE] >= 0:
            self._move_start(self._composed.forgotten(int(counts[timed.START_STATE])))

    def _move_start(self, target: Target) -> None:
        """The run that has not begun goes to another state, its registers with it."""
        live = self._entries
        assert live is not None
        live.counts[timed.START_STATE] = target.state
        for r, source in enumerate(target.sources):
            assert source != FRESH
            live.start_clock[r], live.start_position[r] = live.start_clock[source], live.start_position[source]

    # ------------------------------------------------------------ the end of a key

    def _end_of_key(self) -> None:
        """Roots for what waits for the window to close: time has passed."""
        live = self._entries
        assert live is not None
        assert self._arena is not None
        counts, side = live.counts, live.counts[timed.SIDE]
        if not self._program.ends_late:
            return
        while counts[timed.N_ROOTS] + counts[timed.N_LIVE] > len(self._timed_roots.node):
            old = self._timed_roots
            self._timed_roots = timed.Roots._make(grown(column, 2 * len(column)) for column in old)
        while self._arena.size[0] + counts[timed.N_LIVE] * cea.LIST_LENGTH > len(self._arena.row):
            self._arena = ecs.grown_arena(self._arena, 2 * len(self._arena.row))
        for k in range(counts[timed.N_LIVE]):
            if self._composed.at_end(int(live.state[side, k])):
                node = timed.merge_entry(self._arena, live, side, k)
                n = counts[timed.N_ROOTS]
                roots = self._timed_roots
                roots.node[n], roots.clock[n], roots.key[n] = node, self._arena.start[node], counts[timed.KEY]
                register = self._rules.rules.begin[live.state[side, k]]
                roots.begin[n] = live.position[side, k, register] if register >= 0 else 0
                roots.end[n] = counts[timed.LAST_POSITION]
                counts[timed.N_ROOTS] = n + 1

    def _forget_key(self) -> None:
        """Make ready for the next key."""
        live = self._entries
        assert live is not None
        assert self._arena is not None
        counts = live.counts
        counts[timed.N_LIVE] = counts[timed.N_ROOTS] = counts[timed.START_STATE] = 0
        counts[timed.LAST_POSITION] = -1
        self._arena.size[0] = 1
        self._best, self._held, self._numbers = {}, select.Held(self._program), []
        leading.forget_leading(self._leading)

    # ------------------------------------------------------------ output

    def _output(self, ended: bool) -> Iterator[Matches]:
        """The matches of the roots; where they are held back, those chosen, once the key has ended."""
        assert self._entries is not None
        self._live.counts[cea.N_ROOTS] = self._entries.counts[timed.N_ROOTS]
        roots = self._timed_roots if self._arena is not None else None
        if roots is not None:
            self._roots = ecs.Roots(roots.node, roots.clock, roots.key)
        if not self._holds:
            yield from self._enumerate()
            return
        if self._program.ends_late:
            for match in self._listed():
                self._held.add(match)
        else:
            self._keep_best()
        winners = self._winners() if ended else []
        if winners:
            yield self._as_matches(winners)

    def _winners(self) -> list[select.Match]:
        """What is chosen among all matches of the key."""
        skip, variables = self._program.skip, self._program.variables
        if skip is None or self._program.ends_late:
            return self._held.chosen()
        # Matches are listed some starts at a time, since most starts may be dropped by those before them.
        starts, at, dropped, some = sorted(self._best), 0, -1, FEW_STARTS
        winners: list[select.Match] = []
        while (at := bisect_right(starts, dropped, lo=at)) < len(starts):
            found = select.skipped(self._listed_best(starts[at : at + some]), skip, variables, dropped)
            winners += found
            at, dropped = at + some, select.last_dropped(found[-1], skip)
            some = min(2 * some, MANY_STARTS) if len(found) * 2 > some else FEW_STARTS
        return winners

    def _count_roots(self) -> int:
        assert self._entries is not None
        self._live.counts[cea.N_ROOTS] = self._entries.counts[timed.N_ROOTS]
        self._roots = ecs.Roots(self._timed_roots.node, self._timed_roots.clock, self._timed_roots.key)
        return super()._count_roots()

    def _listed(self) -> Iterator[select.Match]:
        """All matches of the roots, one by one."""
        names = self._program.labels
        for part in self._enumerate():
            for k in range(part.n):
                own = slice(int(part.offsets[k]), int(part.offsets[k + 1]))
                labels = tuple(part.labels[own].tolist())
                yield select.Match(tuple(part.positions[own].tolist()), labels, tuple(names[i] for i in labels))

    def _keep_best(self) -> None:
        """Of the roots of each start, those with the latest end."""
        assert self._entries is not None
        roots = self._timed_roots
        n = int(self._entries.counts[timed.N_ROOTS])
        begin, end, node = roots.begin[:n], roots.end[:n], roots.node[:n]
        order = np.lexsort((end, begin))
        last = np.flatnonzero(np.diff(begin[order], append=-1) != 0)  # of each start, its latest end
        latest = dict(zip(begin[order][last].tolist(), end[order][last].tolist(), strict=True))
        kept = order[end[order] == np.repeat(end[order][last], np.diff(last, prepend=-1))]
        fresh: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for k in kept.tolist():
            fresh[int(begin[k])].append((int(end[k]), int(node[k])))
        for start, group in fresh.items():
            held = self._best.get(start)
            if held is None or held[0][0] < latest[start]:
                self._best[start] = group
            elif held[0][0] == latest[start]:
                held += group

    def _listed_best(self, starts: list[int]) -> list[select.Match]:
        """The longest matches of these starts."""
        nodes = np.array([node for start in starts for _, node in self._best[start]], np.int32)
        assert self._arena is not None
        self._roots = ecs.Roots(nodes, self._arena.start[nodes], np.zeros(len(nodes), np.int64))
        self._live.counts[cea.N_ROOTS] = len(nodes)
        return list(self._listed())

    def _as_matches(self, matches: list[select.Match]) -> Matches:
        assert self._entries is not None
        sizes = [len(match.positions) for match in matches]
        positions = np.array([p for match in matches for p in match.positions], np.int64)
        known = np.concatenate([part for part, _ in self._numbers])
        rows = np.concatenate([part for _, part in self._numbers])
        return Matches(
            n=len(matches),
            offsets=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            positions=rows[np.searchsorted(known, positions)],
            labels=np.array([label for match in matches for label in match.labels], np.int32),
            key=np.full(len(matches), self._entries.counts[timed.KEY], np.int64),
        )

    # ------------------------------------------------------------ the arena

    def _compact(self, now: Any) -> int:
        """Drop every node that no entry, and no match held back, reaches. Returns the least row still mentioned."""
        live, arena = self._entries, self._arena
        assert live is not None
        assert arena is not None
        counts, side = live.counts, live.counts[timed.SIDE]
        kept = 0
        for k in range(counts[timed.N_LIVE]):
            if cea.prune(arena, live, side, k, now, self._width, self._strict) == 0:
                continue
            for column in (live.state, live.length, live.nodes, live.clock, live.position):
                column[side, kept] = column[side, k]
            kept += 1
        counts[timed.N_LIVE] = kept
        lists = [live.nodes[side, k, : live.length[side, k]] for k in range(kept)]
        best = np.array([node for group in self._best.values() for _, node in group], np.int32)
        roots = np.concatenate([*lists, best])
        forward = np.zeros(int(arena.size[0]), np.int32)
        ecs.mark_kernel(arena, roots, len(roots), now, self._width, self._strict, forward)
        least = ecs.slide_kernel(arena, now, self._width, self._strict, forward)
        for k in range(kept):
            length = live.length[side, k]
            live.nodes[side, k, :length] = forward[live.nodes[side, k, :length]]
        self._best = {start: [(end, int(forward[node])) for end, node in group] for start, group in self._best.items()}
        return int(least)

    # ------------------------------------------------------------ snapshots

    def snapshot(self) -> bytes:
        """The state, compacted."""
        live = self._entries
        if live is None or self._arena is None:
            return pickle.dumps({"format": FORMAT, "entries": None})
        self._compact(self._last_clock)
        counts, side = live.counts, live.counts[timed.SIDE]
        n, start = int(counts[timed.N_LIVE]), int(counts[timed.START_STATE])
        return pickle.dumps(
            {
                "format": FORMAT,
                "entries": [
                    (
                        self._composed.members[live.state[side, k]],
                        live.nodes[side, k, : live.length[side, k]].copy(),
                        live.clock[side, k].copy(),
                        live.position[side, k].copy(),
                    )
                    for k in range(n)
                ],
                "start": None if start < 0 else self._composed.members[start],
                "registers": (live.start_clock.copy(), live.start_position.copy()),
                "arena": [column[: self.nodes].copy() for column in self._arena[:-1]],
                "position": int(counts[timed.LAST_POSITION]),
                "key": int(counts[timed.KEY]),
                "clock": self._last_clock,
                "held": (self._best, list(self._held.matches()), self._numbers),
                "leading": self._leading,
            }
        )

    def restore(self, data: bytes) -> None:
        """Go on where `snapshot` was taken. ExecutionError SNAPSHOT_VERSION for another format."""
        state = pickle.loads(data)
        if state["format"] != FORMAT:
            raise ExecutionError("SNAPSHOT_VERSION", found=state["format"], expected=FORMAT)
        self._entries = self._arena = None
        if state["entries"] is None:
            return
        start_clock, start_position = state["registers"]
        live = self._begin(np.zeros(0, start_clock.dtype))
        numbers = [self._composed.intern(entry[0]) for entry in state["entries"]]
        start = DEAD if state["start"] is None else self._composed.intern(state["start"])
        self._rules.fit(0)
        width = max(self._rules.width, len(start_clock))
        self._entries = live = timed.grown_entries(live, 2 * len(numbers) + 64, width)
        live.start_clock[: len(start_clock)], live.start_position[: len(start_clock)] = start_clock, start_position
        for k, (number, (_, nodes, clock, position)) in enumerate(zip(numbers, state["entries"], strict=True)):
            live.state[0, k], live.length[0, k] = number, len(nodes)
            live.nodes[0, k, : len(nodes)] = nodes
            live.clock[0, k, : len(clock)], live.position[0, k, : len(position)] = clock, position
        live.counts[timed.N_LIVE], live.counts[timed.START_STATE] = len(numbers), start
        live.counts[timed.LAST_POSITION], live.counts[timed.KEY] = state["position"], state["key"]
        self._last_clock = state["clock"]
        self._best, held, self._numbers = state["held"]
        for match in held:
            self._held.add(match)
        self._leading = state["leading"]
        columns = state["arena"]
        self._restore_arena(columns)
