"""Any machine, in Python, event by event: the general stepper, for composed programs whose runs compare events.

States hold attributes of events (automata/comparing.py), so there is no table of them; they live as long as a run is in
them. Runs in equal states share one list of the compact set, as everywhere, so the cost is by live states: for a
comparison with an earlier event by the different values that are waiting, never by partial matches. Roughly 10⁵ steps
of a state a second.

A clock (see runtime.automata.machine) is here the position of the event that set it, and its time is looked up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from runtime import capacities
from runtime.arrays import AnyArray
from runtime.automata.machine import MOST_EVENT_STEPS, REPORT, Clock, OutOfSteps, Steps, Symbol, Value
from runtime.automata.machines import machine_of, too_many_states, too_many_steps
from runtime.automata.values import clocks_of, undominated, with_now
from runtime.compact_set.store import Store
from runtime.errors import ExecutionError
from runtime.program import NULL_CODE, Program, Window
from runtime.steppers import moves
from runtime.steppers.rows_known import Asked, KnownRows, Row, States
from runtime.steppers.stepper import Feed, Stepper
from runtime.steppers.union_lists import LIST_LENGTH, filled, merged_node, prune

Instant = int | float


class Run(NamedTuple):
    """The runs in one state: the slot of their list, the latest instant and the position at which one of them began."""

    slot: int
    start: Instant
    begin: int


class Moves(NamedTuple):
    """What an event does: the moves of runs (see moves.py), the states after it, that of the run that has not begun,
    and whether a match ends here."""

    plan: list[tuple[int, ...]]
    live: dict[States, Run]
    start: States | None
    accepts: bool


class GeneralStepper(Stepper):
    """Runs a composed program. `logs`: every move is a root, so that runs can be watched."""

    by_key = True

    def __init__(self, program: Program, store: Store, logs: bool = False) -> None:
        super().__init__(store)
        assert program.machine is not None
        self._program, self._logs = program, logs
        self._steps, self._made_steps = Steps(), 0  # of an event in one state, in all states before it
        self._machine = machine_of(program.machine, self._steps)
        self._label = {mask: i for i, mask in enumerate(program.masks)}
        self._quiet = self._event((0,) * program.words, (None,) * len(program.terms))
        self._known = KnownRows()  # of any key
        self._most_live = 16 * program.max_subsets
        self._lists = moves.new_lists(capacities.SLOTS)
        self._waiting: list[tuple[int, ...]] = []  # moves that wait to be done, …
        self._events: list[tuple[int, ...]] = []  # the events that they belong to …
        self._event_clocks: list[Instant] = []  # … and their clocks
        self._most_slots = 0  # of these
        self._held: list[int] = []  # the slots that are filled before they are done
        self.begin_key(0)

    def begin_key(self, key: int) -> None:
        """See Stepper.begin_key."""
        self._key, self._position = key, -1
        self._start: States | None = undominated(self._machine.initial())
        self._live: dict[States, Run] = {}  # by decreasing start
        self._clocks: dict[int, tuple[Instant, int]] = {}  # time and position at which they were set
        self._most_clocks = capacities.FEW_CLOCKS
        self._now: tuple[Instant, int] = (0, -1)
        self._held = []

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
                yield from self._done(self._moves(self._quiet), 0, mute[i])
            values = tuple([None if code == NULL_CODE else code for code in symbol[words:]])
            self._now, self._position = (clocks[i], at[i]), at[i]
            made = self._moves(self._event(tuple(symbol[:words]), values))
            if made is not None:
                yield from self._done(made, rows[i], mute[i])
        if self._events:
            yield from self._move()
        yield
        self._listed()

    def _event(self, words: tuple[int, ...], codes: tuple[int | None, ...]) -> Asked:
        return Asked(words, codes, self.has_closed)

    def has_closed(self, clock: Clock, window: int) -> bool:
        return not _inside(self._program.inner_windows[window], self._clocks[clock.number], self._now)

    def _moves(self, event: Asked) -> Moves | None:
        """What an event does to all runs; None if every run skips it and stays where it is, as most do."""
        start, changes, rows = self._start, False, list[tuple[Run | None, Row]]()
        self._made_steps = 0
        if start is not None:
            row = self._row(start, event)
            rows.append((None, row))
            changes = bool(row[1])
        for states, run in self._live.items():
            row = self._row(states, event)
            rows.append((run, row))
            changes = changes or bool(row[1]) or row[2] or (row[0] is not states and row[0] != states)
        skipped = rows[0][1][0] or None if start is not None else None
        if changes and self._drop_old():
            return self._moves(event)
        if not changes:
            self._start = skipped
            return None
        return self._made(rows, skipped)

    def _drop_old(self) -> bool:
        """Drop the states whose runs have all left the window: are there any?"""
        window = self._program.window
        if window is None or not self._live:
            return False
        now = self._instant(self._now)
        if _holds(window, next(reversed(self._live.values())).start, now):
            return False
        self._live = {states: run for states, run in self._live.items() if _holds(window, run.start, now)}
        return True

    def _made(self, rows: list[tuple[Run | None, Row]], start: States | None) -> Moves:
        """The moves of an event, from what each run does; `start`: what the run that has not begun becomes."""
        plan: list[tuple[int, ...]] = []
        live: dict[States, Run] = {}
        accepts = False
        now, position = self._instant(self._now), self._position

        def slot(states: States, since: Instant, begin: int) -> int:
            run = live.get(states)
            if run is None:
                run = live[states] = Run(len(live), since, begin)
            return run.slot

        begins = self._program.window is None or _holds(self._program.window, now, now)  # not at a NaN
        for run, (skipped, found, report) in rows:
            if run is None and not begins:
                continue
            source, since, begin = (moves.START, now, position) if run is None else run
            if run is not None and report:
                plan.append((source, moves.REPORTED, -1, True, begin))
            for label, reached, accept in found:
                target = slot(reached, since, begin) if reached else -1
                accepts = accepts or accept
                plan.append((source, label, target, accept, begin))
            if run is not None and skipped:
                plan.append((source, moves.SKIPPED, slot(skipped, since, begin), False, begin))
        if len(live) > self._most_live:
            hint = (
                "Bound the pattern by WITHIN, or compare fewer different values: fewer variables, or = in place of <>."
            )
            raise ExecutionError("STATE_LIMIT", found=len(live), limit=self._most_live, hint=hint)
        return Moves(plan, live, start, accepts)

    def _done(self, made: Moves | None, row: int, mute: bool) -> Iterator[None]:
        """Put the moves of an event behind those that wait; where they are many, all are done."""
        if made is None:
            return
        self._waiting += made.plan
        self._events.append((len(made.plan), len(made.live), row, self._position, not mute))
        self._event_clocks.append(self._instant(self._now))
        self._most_slots = max(self._most_slots, len(made.live))
        self._live, self._start = made.live, made.start
        if made.accepts and self._program.consume:
            self.drop_runs()
        if len(self._clocks) > self._most_clocks:
            self._forget_clocks()
        if len(self._waiting) >= capacities.MANY_MOVES:
            yield from self._move()

    def _move(self) -> Iterator[None]:
        """Do all moves that wait; yields where there is no room for them before the roots that are there are listed.

        To call a kernel takes as long as to find out some ten moves, so it is not called for each event.
        """
        store = self.store
        if not self._has_room(len(self._waiting)):
            yield
            self._listed()
            self._make_room(len(self._waiting))
        if self._most_slots > self._lists.length.shape[1]:
            self._lists = moves.grown_lists(self._lists, 2 * self._most_slots)
        queue = moves.Queue(
            events=np.array(self._events, np.int64).reshape(-1, 5),
            clocks=np.array(self._event_clocks, store.clock),
            moves=np.array(self._waiting, np.int64).reshape(-1, 5),
        )
        self._waiting, self._events, self._event_clocks, self._most_slots = [], [], [], 0
        moves.move_kernel(store.space, self._lists, queue, self._key, self._logs)
        store.n_roots = int(self._lists.state[moves.N_ROOTS])
        self._held = [run.slot for run in self._live.values()]

    def _listed(self) -> None:
        """The roots that were there are dealt with."""
        self.store.n_roots = self._lists.state[moves.N_ROOTS] = 0

    def _has_room(self, n_moves: int) -> bool:
        store = self.store
        nodes = store.nodes + n_moves * moves.NODES_OF_A_MOVE
        return nodes <= len(store.arena.row) and store.n_roots + n_moves <= len(store.roots.node)

    def _make_room(self, n_moves: int) -> None:
        """For so many moves; the roots have been listed."""
        store = self.store
        store.more_roots(n_moves)
        while store.nodes + n_moves * moves.NODES_OF_A_MOVE > len(store.arena.row):
            store.make_room(store.clock.type(self._event_clocks[0]), self._position)

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
            row = self._made_row(states, symbol)
        except OutOfSteps:
            raise too_many_steps(self._steps) from None
        self._made_steps += self._steps.most - self._steps.left
        if self._made_steps > MOST_EVENT_STEPS:
            raise too_many_states(MOST_EVENT_STEPS)
        return row

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
        """The values, with this event's position for the clock that was set by it."""
        kept = undominated(values, self._machine.timed)
        named: States = with_now(kept, Clock(self._position)) if self._machine.timed else kept
        if named is not kept:
            self._clocks[self._position] = self._now
            self._names_it = True  # no other event will do the same
        return named

    def _forget_clocks(self) -> None:
        """Keep the clocks in use. Amortized O(1)."""
        used = {clock.number for states in (*self._live, self._start or ()) for clock in clocks_of(states)}
        self._clocks = {number: self._clocks[number] for number in used}
        self._most_clocks = 2 * len(used) + capacities.FEW_CLOCKS

    def _instant(self, now: tuple[Instant, int]) -> Instant:
        return now[1] if self.store.by_position else now[0]

    # ------------------------------------------------------------ consumption, and the end of a key

    def drop_runs(self) -> None:
        """See Stepper.drop_runs; the run that has not begun forgets what it has seen."""
        self._live = {}
        if not self._events:
            self._held = []
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
            node = merged_node(store.arena, self._lists, self._side, run.slot)
            store.add_root(node, self._key, run.begin, self._position)

    def _ends(self, value: Value) -> bool:
        return self._machine.at_end(value) is not None

    # ------------------------------------------------------------ its nodes: those in lists

    def prune(self, now: Any) -> None:
        """See Holder.prune."""
        store, lists = self.store, self._lists
        for slot in self._held:
            prune(store.arena, lists, self._side, slot, now, store.bounds)

    @property
    def _side(self) -> int:
        """Where the lists are."""
        return int(self._lists.state[moves.SIDE])

    def _used(self) -> AnyArray:
        """bool[slots, LIST_LENGTH]: the entries of lists that hold nodes."""
        lengths = np.zeros(self._lists.length.shape[1], np.int32)
        lengths[self._held] = self._lists.length[self._side, self._held]
        return filled(lengths)

    def held(self) -> AnyArray:
        """See Holder.held."""
        found: AnyArray = self._lists.nodes[self._side][self._used()]
        return found

    def renumber(self, forward: AnyArray) -> None:
        """See Holder.renumber."""
        used, nodes = self._used(), self._lists.nodes[self._side]
        nodes[used] = forward[nodes[used]]


def _inside(window: Window, start: tuple[Instant, int], now: tuple[Instant, int]) -> bool:
    kind = int(window.kind == "events")
    return _holds(window, start[kind], now[kind])


def _holds(window: Window, start: Instant, now: Instant) -> bool:
    length = now - start
    return length < window.size if window.strict else length <= window.size
