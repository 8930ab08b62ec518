"""The general engine: composed programs whose runs compare events (automata/comparing.py), in Python, event by event.

States hold attributes of events, so there is no table of them; they live as long as a run is in them. Runs in equal
states share one compact set of partial matches, as everywhere, so the cost is by live states: for a comparison with an
earlier event by the different values that are waiting, never by partial matches. Roughly 10⁵ steps of a state a second.

A register (see runtime.automata.machine) is here the position of the event itself, and its clock is looked up.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from runtime.arrays import AnyArray, IntArray
from runtime.automata.machine import REPORT, OutOfSteps, Reg, Steps, Symbol, Value
from runtime.automata.machines import machine_of, too_many_steps
from runtime.automata.values import registers, undominated, with_now
from runtime.compact_set.matches import Matches
from runtime.errors import ExecutionError
from runtime.program import FORMAT, NULL_CODE, Program, Window
from runtime.selection import select
from runtime.steppers.rows_known import Asked, KnownRows, Row, States

CHUNK = 4096  # matches in one batch
Clock = int | float


class Node:
    """A set of partial matches: an event before which `left` came (`right` is None), or the union of two sets.

    `start` is the clock of the latest beginning in it; unions keep the greater on the left. None is the beginning.
    `least` is that of the earliest, and `n` how many they are, MANY if that or more: a set is counted when it is made,
    so that 2ⁿ matches cost as many additions as it has nodes.
    """

    __slots__ = ("label", "least", "left", "n", "right", "row", "start")

    def __init__(self, row: int, label: int, left: Node | None, right: Node | None, start: Clock) -> None:
        self.row, self.label, self.left, self.right, self.start = row, label, left, right, start
        if left is None:
            self.n, self.least = 1, start
        elif right is None:
            self.n, self.least = left.n, left.least
        else:
            self.n, self.least = min(left.n + right.n, MANY), min(left.least, right.least)


UNION = -1  # the label of a union
MANY = 1 << 63  # more than a BIGINT


def union(a: Node, b: Node) -> Node:
    if a.start < b.start:
        a, b = b, a
    return Node(0, UNION, a, b, a.start)


class BoundEngine:
    """See runtime.engine.Engine."""

    def __init__(self, program: Program) -> None:
        assert program.machine is not None
        self._program = program
        self._steps = Steps()
        self._machine = machine_of(program.machine, self._steps)
        self._label = {mask: i for i, mask in enumerate(program.masks)}
        self._holds = program.skip is not None or program.choose != "ALL"
        self._quiet = self._event((0,) * program.words, (None,) * len(program.terms))
        self._known = KnownRows()  # of any key
        self._most_live = 16 * program.max_subsets
        self._key, self._position = 0, -1
        self._begin_key()

    def _begin_key(self) -> None:
        self._start: States | None = undominated(self._machine.initial())
        self._live: dict[States, Node] = {}
        self._clocks: dict[int, tuple[Clock, int]] = {}  # of registers: time and position
        self._most_clocks = CHUNK
        self._now: tuple[Clock, int] = (0, -1)
        self._position = -1
        self._held = select.Held(self._program)
        self._rows: dict[int, int] = {}  # by position, where matches are held: they are chosen by positions

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
        """See Engine.feed; symbols is int64[n, words + terms]."""
        out = Output(self._program)
        for _ in self._read(symbols, times, positions, keys, rows, mute, out):
            yield from out.full()
        yield from out.rest()

    def _read(
        self,
        symbols: AnyArray,
        times: AnyArray,
        positions: IntArray | None,
        keys: IntArray | None,
        rows: IntArray | None,
        mute: AnyArray | None,
        out: Output,
    ) -> Iterator[None]:
        """Read the events; what ends at one of them is in `out` when this yields."""
        words = self._program.words
        table = (symbols if symbols.ndim == 2 else symbols[:, None]).tolist()
        n = len(table)
        own_keys = [self._key] * n if keys is None else keys.tolist()
        clocks = times.tolist()
        at = None if positions is None else positions.tolist()
        own_rows = None if rows is None else rows.tolist()
        for i in range(n):
            if own_keys[i] != self._key:
                self._end_key(out)
                self._begin_key()
                self._key = own_keys[i]
            position = self._position + 1 if at is None else at[i]
            if position > self._position + 1:
                self._now = (clocks[i], position - 1)
                self._step(self._quiet, 0, out, mute is not None and bool(mute[i]))
            values = tuple(None if code == NULL_CODE else code for code in table[i][words:])
            self._now = (clocks[i], position)
            self._position = position
            row = position if own_rows is None else own_rows[i]
            self._step(self._event(tuple(table[i][:words]), values), row, out, mute is not None and bool(mute[i]))
            yield

    def count(
        self,
        symbols: AnyArray,
        times: AnyArray,
        positions: IntArray | None = None,
        keys: IntArray | None = None,
        mute: AnyArray | None = None,
    ) -> int:
        """See Engine.count."""
        out = Tally(self._program)
        for _ in self._read(symbols, times, positions, keys, None, mute, out):
            pass
        return out.n

    def flush(self) -> Iterator[Matches]:
        """See Engine.flush."""
        out = Output(self._program)
        self._end_key(out)
        self._begin_key()
        yield from out.rest()

    def drop_runs(self) -> None:
        """Drop all partial matches (CONSUME BY)."""
        self._live = {}
        if self._start is not None:
            self._start = undominated(self._machine.forget(value) for value in self._start)

    def least_row(self) -> int:
        """See Engine.least_row."""
        rows = [node.row for node in _all_nodes(self._live.values()) if node.label != UNION]
        if self._holds:
            rows = [self._rows[p] for p in {*rows, *(p for match in self._held.matches() for p in match.positions)}]
        return min(rows, default=int(np.iinfo(np.int64).max))

    # ------------------------------------------------------------ one event

    def _event(self, words: tuple[int, ...], codes: tuple[int | None, ...]) -> Asked:
        return Asked(words, codes, self.has_closed)

    def has_closed(self, register: Reg, window: int) -> bool:
        return not _inside(self._program.inner_windows[window], self._clocks[register.number], self._now)

    def _step(self, event: Asked, row: int, out: Output, mute: bool) -> None:
        program = self._program
        if len(self._clocks) > self._most_clocks:
            self._forget_clocks()
        live: dict[States, Node] = {}
        accepted: list[Node] = []
        start = None
        since = self._since()
        held: list[tuple[States, Node | None]] = [*self._live.items()]
        if self._start is not None:
            held.append((self._start, None))
        for states, node in held:
            if node is not None and since is not None and not since.holds(node.start):
                continue
            skipped, moves, report = self._row(states, event)
            if report and node is not None and not mute:
                self._output([node], out, None)
            if skipped and node is not None:
                _put(live, skipped, node)
            elif skipped:
                start = skipped
            if moves and self._holds:
                self._rows[self._position] = row
            at = self._position if self._holds else row
            for label, reached, accept in moves:
                begun = Node(at, label, node, None, self._clock(self._now) if node is None else node.start)
                self._took(begun)
                if reached:
                    _put(live, reached, begun)
                if accept:
                    accepted.append(begun)
        if len(live) > self._most_live:
            hint = (
                "Bound the pattern by WITHIN, or compare fewer different values: fewer variables, or = in place of <>."
            )
            raise ExecutionError("STATE_LIMIT", found=len(live), limit=self._most_live, hint=hint)
        self._live, self._start = live, start
        if accepted:
            if not mute:
                self._output(accepted, out, self._now)
            if program.consume:
                self.drop_runs()

    def _took(self, run: Node) -> None:
        """A run has taken an event (runtime.selection.bound_timeouts looks on)."""

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
        moves = [(self._label[mask], self._named(values), accept) for mask, (values, accept) in sorted(reached.items())]
        if ends_unmarked:
            moves.append((self._label[0], frozenset(), True))
        # Most events change nothing, and what has a name needs none.
        return states if skipped == states else self._named(skipped), moves, report

    def _named(self, values: Iterable[Value]) -> States:
        """The values, with this event's position for the register that was set by it."""
        kept = undominated(values, self._machine.timed)
        named: States = with_now(kept, Reg(self._position)) if self._machine.timed else kept
        if named is not kept:
            self._clocks[self._position] = self._now
            self._names_it = True  # no other event will do the same
        return named

    def _used(self) -> set[int]:
        """The registers that a run mentions."""
        return {register.number for states in (*self._live, self._start or ()) for register in registers(states)}

    def _forget_clocks(self) -> None:
        """Keep the clocks of registers in use. Amortized O(1)."""
        used = self._used()
        self._clocks = {number: self._clocks[number] for number in used}
        self._most_clocks = 2 * len(used) + CHUNK

    def _clock(self, now: tuple[Clock, int]) -> Clock:
        window = self._program.window
        return now[1] if window is not None and window.kind == "events" else now[0]

    def _fits(self, start: Clock) -> bool:
        since = self._since()
        return since is None or since.holds(start)

    # ------------------------------------------------------------ output

    def _output(self, nodes: Iterable[Node], out: Output, now: tuple[Clock, int] | None) -> None:
        """The matches of nodes: given out, or held back until the key ends. `now`: inside the window of that moment."""
        since = None if now is None else self._since()
        for node in nodes:
            if not self._holds:
                out.add_set(node, since, self._key)
                continue
            for rows, labels in _matches(node, since):
                names = tuple(self._program.labels[label] for label in labels)
                self._held.add(select.Match(rows, labels, names))

    def _since(self) -> Since | None:
        """Where the window of this moment begins."""
        window = self._program.window
        return None if window is None else Since(self._clock(self._now), window)

    def _end_key(self, out: Output) -> None:
        """The stream of a key has ended."""
        for states, node in self._live.items():
            if any(self._machine.at_end(value) is not None for value in states):
                self._output([node], out, None)
        if self._holds:
            for match in self._held.chosen():
                out.add((self._rows[p] for p in match.positions), match.labels, self._key)

    # ------------------------------------------------------------ snapshots

    def snapshot(self) -> bytes:
        """The state. Codes of terms must mean the same to whoever restores it."""
        used = self._used()
        numbers, nodes = _numbered(self._live.values())
        return pickle.dumps(
            {
                "format": FORMAT,
                "nodes": nodes,
                "live": [(states, numbers[id(node)]) for states, node in self._live.items()],
                "start": self._start,
                "clocks": {number: self._clocks[number] for number in used},
                "key": self._key,
                "position": self._position,
                "held": (list(self._held.matches()), self._rows),
            }
        )

    def restore(self, data: bytes) -> None:
        """Go on where `snapshot` was taken. ExecutionError SNAPSHOT_VERSION for another format."""
        state = pickle.loads(data)
        if state["format"] != FORMAT:
            raise ExecutionError("SNAPSHOT_VERSION", found=state["format"], expected=FORMAT)
        nodes: list[Node] = []
        for row, label, left, right, start in state["nodes"]:
            nodes.append(Node(row, label, _of(nodes, left), _of(nodes, right), start))
        self._live = {states: nodes[number] for states, number in state["live"]}
        self._start, self._clocks = state["start"], state["clocks"]
        self._key, self._position = state["key"], state["position"]
        held, self._rows = state["held"]
        for match in held:
            self._held.add(match)


def _put(live: dict[States, Node], states: States, node: Node) -> None:
    other = live.get(states)
    live[states] = node if other is None else union(other, node)


def _inside(window: Window, start: tuple[Clock, int], now: tuple[Clock, int]) -> bool:
    kind = int(window.kind == "events")
    length = now[kind] - start[kind]
    return length < window.size if window.strict else length <= window.size


class Since(NamedTuple):
    """The window of a moment: which beginnings does it hold?"""

    now: Clock
    window: Window

    def holds(self, start: Clock) -> bool:
        length = self.now - start
        return length < self.window.size if self.window.strict else length <= self.window.size


def _n_matches(root: Node, since: Since | None) -> int:
    """How many matches of a node the window holds. Only nodes that it cuts are looked into, each once."""
    if since is None or since.holds(root.least):
        return root.n
    known: dict[int, int] = {}
    todo = [root]
    while todo:
        node = todo[-1]
        parts = [part for part in (node.left, node.right) if part is not None and since.holds(part.start)]
        waits = [part for part in parts if id(part) not in known and not since.holds(part.least)]
        if waits:
            todo += waits
            continue
        todo.pop()
        known[id(node)] = sum(part.n if since.holds(part.least) else known[id(part)] for part in parts)
    return known[id(root)]


def _matches(node: Node, since: Since | None) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """The rows and labels of every match of a node, one after the other."""
    todo: list[tuple[Node | None, Any]] = [(node, None)]
    while todo:
        at, tail = todo.pop()
        if at is None:
            rows, labels = [], []
            while tail is not None:
                row, label, tail = tail
                rows.append(row)
                labels.append(label)
            yield tuple(rows), tuple(labels)
        elif since is not None and not since.holds(at.start):
            continue
        elif at.label == UNION:
            todo += [(at.right, tail), (at.left, tail)]
        else:
            todo.append((at.left, (at.row, at.label, tail)))


def _all_nodes(roots: Iterable[Node]) -> Iterator[Node]:
    """Every node once, those below before those above."""
    seen: set[int] = set()
    todo = [(node, False) for node in roots]
    while todo:
        node, below_done = todo.pop()
        if below_done:
            yield node
        elif id(node) not in seen:
            seen.add(id(node))
            todo.append((node, True))
            todo += [(below, False) for below in (node.left, node.right) if below is not None]


def _numbered(roots: Iterable[Node]) -> tuple[dict[int, int], list[tuple[Any, ...]]]:
    """Numbers by identity, and each node as data that names those below it by number (-1: none)."""
    numbers: dict[int, int] = {}
    found = []
    for node in _all_nodes(roots):
        below = (-1 if part is None else numbers[id(part)] for part in (node.left, node.right))
        found.append((node.row, node.label, *below, node.start))
        numbers[id(node)] = len(found) - 1
    return numbers, found


def _of(nodes: list[Node], number: int) -> Node | None:
    return None if number < 0 else nodes[number]


class Output:
    """Matches on their way out, in batches of bounded size; the sets among them are listed when they are asked for."""

    def __init__(self, program: Program) -> None:
        self._sets: list[tuple[Node, Since | None, int]] = []
        self._rows: list[int] = []
        self._labels: list[int] = []
        self._offsets = [0]
        self._keys: list[int] = []

    def add(self, rows: Iterable[int], labels: Iterable[int], key: int) -> None:
        self._rows += rows
        self._labels += labels
        self._offsets.append(len(self._rows))
        self._keys.append(key)

    def add_set(self, node: Node, since: Since | None, key: int) -> None:
        """The matches of a node that the window holds."""
        self._sets.append((node, since, key))

    def full(self) -> Iterator[Matches]:
        """The batches that are full."""
        sets, self._sets = self._sets, []
        for node, since, key in sets:
            for rows, labels in _matches(node, since):
                self.add(rows, labels, key)
                if len(self._keys) >= CHUNK:
                    yield from self._batch()
        if len(self._keys) >= CHUNK:
            yield from self._batch()

    def rest(self) -> Iterator[Matches]:
        """All."""
        yield from self.full()
        yield from self._batch()

    def _batch(self) -> Iterator[Matches]:
        if self._keys:
            yield Matches(
                n=len(self._keys),
                offsets=np.array(self._offsets, np.int64),
                positions=np.array(self._rows, np.int64),
                labels=np.array(self._labels, np.int32),
                key=np.array(self._keys, np.int64),
            )
        self._rows, self._labels, self._offsets, self._keys = [], [], [0], []


class Tally(Output):
    """Matches that are only counted."""

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self.n = 0

    def add(self, rows: Iterable[int], labels: Iterable[int], key: int) -> None:
        self._count(1)

    def add_set(self, node: Node, since: Since | None, key: int) -> None:
        self._count(_n_matches(node, since))

    def _count(self, n: int) -> None:
        self.n += n
        if self.n >= MANY:
            raise ExecutionError("COUNT_OVERFLOW", hint="Bound the pattern with WITHIN, or its loops by conditions.")
