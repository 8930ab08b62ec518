"""Any machine, in Python, event by event: the general stepper, for composed programs whose runs compare events.

States hold attributes of events (automata/comparing.py), so there is no table of them; they live as long as a run is in
them. Runs in equal states share one list of the compact set, as everywhere, so the cost is by live states: for a
comparison with an earlier event by the different values that are waiting, never by partial matches. Roughly 10⁵ steps
of a state a second.

A register (see runtime.automata.machine) is here the position of the event itself, and its clock is looked up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from runtime import capacities
from runtime.arrays import AnyArray
from runtime.automata.machine import REPORT, OutOfSteps, Reg, Steps, Symbol, Value
from runtime.automata.machines import machine_of, too_many_steps
from runtime.automata.values import registers, undominated, with_now
from runtime.compact_set.store import Store
from runtime.errors import ExecutionError
from runtime.program import NULL_CODE, Program, Window
from runtime.steppers import moves
from runtime.steppers.cea import LIST_LENGTH
from runtime.steppers.events import Event
from runtime.steppers.rows_known import Asked, KnownRows, Row, States
from runtime.steppers.stepper import Feed, Stepper
from runtime.steppers.table import filled

Clock = int | float


class Run(NamedTuple):
    """The runs in one state: the slot of their list, the latest clock and the position at which one of them began."""

    slot: int
    start: Clock
    begin: int


class GeneralStepper(Stepper):
    """Runs a composed program. `logs`: every move is a root, so that runs can be watched."""

    by_key = True

    def __init__(self, program: Program, store: Store, logs: bool = False) -> None:
        super().__init__(store)
        assert program.machine is not None
        self._program, self._otherwise = program, moves.LOGGED if logs else moves.NOTHING
        self._steps = Steps()
        self._machine = machine_of(program.machine, self._steps)
        self._label = {mask: i for i, mask in enumerate(program.masks)}
        self._quiet = self._event((0,) * program.words, (None,) * len(program.terms))
        self._known = KnownRows()  # of any key
        self._most_live = 16 * program.max_subsets
        self._lists, self._side = moves.new_lists(capacities.SLOTS), 0
        self.begin_key(0)

    def begin_key(self, key: int) -> None:
        """See Stepper.begin_key."""
        self._key, self._position = key, -1
        self._start: States | None = undominated(self._machine.initial())
        self._live: dict[States, Run] = {}  # by decreasing start
        self._clocks: dict[int, tuple[Clock, int]] = {}  # of registers: time and position
        self._most_clocks = capacities.FEW_CLOCKS
        self._now: tuple[Clock, int] = (0, -1)

    # ------------------------------------------------------------ reading

    def read(self, feed: Feed) -> Iterator[None]:
        """See Stepper.read; symbols are int64[n, words + terms], all of one key."""
        words = self._program.words
        table = (feed.symbols if feed.symbols.ndim == 2 else feed.symbols[:, None]).tolist()
        clocks, at, rows = feed.times.tolist(), feed.positions.tolist(), feed.rows.tolist()
        mute = feed.mute.tolist() if len(feed.mute) else [False] * len(table)
        for i, symbol in enumerate(table):
            if at[i] > self._position + 1:
                self._now = (clocks[i], at[i] - 1)
                yield from self._step(self._quiet, 0, mute[i])
            values = tuple(None if code == NULL_CODE else code for code in symbol[words:])
            self._now, self._position = (clocks[i], at[i]), at[i]
            yield from self._step(self._event(tuple(symbol[:words]), values), rows[i], mute[i])
        yield
        self.store.n_roots = 0

    def _event(self, words: tuple[int, ...], codes: tuple[int | None, ...]) -> Asked:
        return Asked(words, codes, self.has_closed)

    def has_closed(self, register: Reg, window: int) -> bool:
        return not _inside(self._program.inner_windows[window], self._clocks[register.number], self._now)

    def _step(self, event: Asked, row: int, mute: bool) -> Iterator[None]:
        """One event; yields where there is no room for its roots or nodes before those that are there are listed."""
        if len(self._clocks) > self._most_clocks:
            self._forget_clocks()
        self._drop_old()
        rows: list[tuple[Run | None, Row]] = []
        if self._start is not None:
            rows.append((None, self._row(self._start, event)))
        rows += [(run, self._row(states, event)) for states, run in self._live.items()]
        start = self._skipped_start(rows)
        if self._changes_nothing(rows):
            self._start = start
            return
        plan, live, accepts = self._moves(rows)
        if len(live) > self._most_live:
            hint = (
                "Bound the pattern by WITHIN, or compare fewer different values: fewer variables, or = in place of <>."
            )
            raise ExecutionError("STATE_LIMIT", found=len(live), limit=self._most_live, hint=hint)
        if not self._has_room(len(plan)):
            yield
            self.store.n_roots = 0
            self._make_room(len(plan))
        self._move(plan, len(live), row, not mute)
        self._live, self._start = live, start
        if accepts and self._program.consume:
            self.drop_runs()

    def _drop_old(self) -> None:
        """Drop the states whose runs have all left the window."""
        window = self._program.window
        if window is None or not self._live:
            return
        now = self._clock(self._now)
        if not _holds(window, next(reversed(self._live.values())).start, now):
            self._live = {states: run for states, run in self._live.items() if _holds(window, run.start, now)}

    def _skipped_start(self, rows: list[tuple[Run | None, Row]]) -> States | None:
        """What the run that has not begun becomes."""
        if not rows or rows[0][0] is not None:
            return None
        return rows[0][1][0] or None

    def _changes_nothing(self, rows: list[tuple[Run | None, Row]]) -> bool:
        """Does every run skip the event and stay where it is?"""
        states = iter(self._live)
        for run, (skipped, found, report) in rows:
            if found or report:
                return False
            if run is not None and skipped is not (own := next(states)) and skipped != own:
                return False
        return True

    def _moves(self, rows: list[tuple[Run | None, Row]]) -> tuple[list[tuple[int, ...]], dict[States, Run], bool]:
        """The moves of an event, the states after it, and whether a match ends at it."""
        plan: list[tuple[int, ...]] = []
        live: dict[States, Run] = {}
        accepts = False
        now, position = self._clock(self._now), self._position

        def slot(states: States, clock: Clock, begin: int) -> int:
            run = live.get(states)
            if run is None:
                run = live[states] = Run(len(live), clock, begin)
            return run.slot

        begins = self._program.window is None or _holds(self._program.window, now, now)  # not at a NaN
        for run, (skipped, found, report) in rows:
            if run is None and not begins:
                continue
            source, clock, begin = (moves.START, now, position) if run is None else run
            if run is not None and report:
                plan.append((source, moves.REPORTED, -1, moves.ENDS, begin))
            for label, reached, accept in found:
                target = slot(reached, clock, begin) if reached else -1
                accepts = accepts or accept
                plan.append((source, label, target, moves.ENDS if accept else self._otherwise, begin))
            if run is not None and skipped:
                plan.append((source, moves.SKIPPED, slot(skipped, clock, begin), moves.NOTHING, begin))
        return plan, live, accepts

    def _move(self, plan: list[tuple[int, ...]], n_slots: int, row: int, report: bool) -> None:
        store = self.store
        if n_slots > self._lists.length.shape[1]:
            self._lists = moves.grown_lists(self._lists, 2 * n_slots)
        table = np.array(plan, np.int64).reshape(len(plan), 5)
        now = store.clock.type(self._clock(self._now))
        event = Event(row, now, now, self._position, self._key, report)
        store.n_roots = moves.move_kernel(
            store.arena, store.roots, store.bounds, self._lists, self._side, store.n_roots, table, event
        )
        self._side = 1 - self._side

    def _has_room(self, n_moves: int) -> bool:
        store = self.store
        nodes = store.nodes + n_moves * moves.NODES_OF_A_MOVE
        return nodes <= len(store.arena.row) and store.n_roots + n_moves <= len(store.roots.node)

    def _make_room(self, n_moves: int) -> None:
        """For so many moves; the roots have been listed."""
        store = self.store
        store.more_roots(n_moves)
        while store.nodes + n_moves * moves.NODES_OF_A_MOVE > len(store.arena.row):
            store.make_room(store.clock.type(self._clock(self._now)), self._position)

    # ------------------------------------------------------------ the machine

    def _row(self, states: States, event: Asked) -> Row:
        """What a set of values does: skipping, its moves (label, values, accept), and does a match become known?"""
        row = self._known.find(states, event)
        if row is None:
            self._names_it = False
            row = self._new_row(states, event)
            if not self._names_it:
                self._known.keep(states, event, row, len(self._live))
        return row

    def _new_row(self, states: States, symbol: Symbol) -> Row:
        self._steps.begin()
        try:
            return self._made_row(states, symbol)
        except OutOfSteps:
            raise too_many_steps(self._steps) from None

    def _made_row(self, states: States, symbol: Symbol) -> Row:
        reached: dict[int, tuple[set[Value], bool]] = {}
        report = False
        for value in states:
            for mask, target, accept, _ in self._machine.step(value, symbol):
                if mask == REPORT:
                    report = True
                    continue
                values, accepts = reached.get(mask & self._program.keep, (set(), False))
                if target is not None:
                    values.add(target)
                reached[mask & self._program.keep] = (values, accepts or accept)
        skipped, ends_unmarked = reached.pop(0, (set(), False))
        found = [(self._label[mask], self._named(values), accept) for mask, (values, accept) in sorted(reached.items())]
        if ends_unmarked:
            found.append((self._label[0], frozenset(), True))
        # Most events change nothing, and what has a name needs none.
        return states if skipped == states else self._named(skipped), found, report

    def _named(self, values: Iterable[Value]) -> States:
        """The values, with this event's position for the register that was set by it."""
        kept = undominated(values, self._machine.timed)
        named: States = with_now(kept, Reg(self._position)) if self._machine.timed else kept
        if named is not kept:
            self._clocks[self._position] = self._now
            self._names_it = True  # no other event will do the same
        return named

    def _forget_clocks(self) -> None:
        """Keep the clocks of registers in use. Amortized O(1)."""
        used = {register.number for states in (*self._live, self._start or ()) for register in registers(states)}
        self._clocks = {number: self._clocks[number] for number in used}
        self._most_clocks = 2 * len(used) + capacities.FEW_CLOCKS

    def _clock(self, now: tuple[Clock, int]) -> Clock:
        return now[1] if self.store.by_position else now[0]

    # ------------------------------------------------------------ consumption, and the end of a key

    def drop_runs(self) -> None:
        """See Stepper.drop_runs; the run that has not begun forgets what it has seen."""
        self._live = {}
        if self._start is not None:
            self._start = undominated(self._machine.forget(value) for value in self._start)

    def end_key(self) -> None:
        """Roots of the runs that are matches now that nothing more comes: time has passed."""
        store = self.store
        ended = [run for states, run in self._live.items() if any(self._ends(value) for value in states)]
        store.more_roots(store.n_roots + len(ended))
        while store.nodes + len(ended) * LIST_LENGTH > len(store.arena.row):
            store.grow()
        for run in ended:
            node = moves.merged_node(store.arena, self._lists, self._side, run.slot)
            row = node, store.arena.start[node], self._key, run.begin, self._position
            for column, value in zip(store.roots, row, strict=True):
                column[store.n_roots] = value
            store.n_roots += 1

    def _ends(self, value: Value) -> bool:
        return self._machine.at_end(value) is not None

    # ------------------------------------------------------------ its nodes: those in lists

    def prune(self, now: Any) -> None:
        """See Holder.prune."""
        store, lists = self.store, self._lists
        for run in self._live.values():
            moves.prune_slot(store.arena, lists, self._side, run.slot, now, store.bounds)

    def _used(self) -> AnyArray:
        """bool[slots, LIST_LENGTH]: the entries of lists that hold nodes."""
        lengths = np.zeros(self._lists.length.shape[1], np.int32)
        slots = [run.slot for run in self._live.values()]
        lengths[slots] = self._lists.length[self._side, slots]
        return filled(lengths)

    def held(self) -> AnyArray:
        """See Holder.held."""
        found: AnyArray = self._lists.nodes[self._side][self._used()]
        return found

    def renumber(self, forward: AnyArray) -> None:
        """See Holder.renumber."""
        used, nodes = self._used(), self._lists.nodes[self._side]
        nodes[used] = forward[nodes[used]]


def _inside(window: Window, start: tuple[Clock, int], now: tuple[Clock, int]) -> bool:
    kind = int(window.kind == "events")
    return _holds(window, start[kind], now[kind])


def _holds(window: Window, start: Clock, now: Clock) -> bool:
    length = now - start
    return length < window.size if window.strict else length <= window.size
