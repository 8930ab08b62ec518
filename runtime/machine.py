"""The automata of composed programs, one class per operator, made state by state where the data leads.

A *value* is a state of the automaton that [CEL] Theorem 6.2 or 7.2 builds for the operator: a nested tuple over the
states of its parts. `step` gives what a value does on one symbol: moves (mask, next value or None, accept). Mask 0
skips the event; BEGIN in a mask says that the match begins here. `accept`: a complex event ends here. The moves are
nondeterministic; runtime.composed makes them deterministic with respect to the masks.

Windows inside a pattern need the time at which a part began: a value then holds a *register* (Reg). Which windows have
closed for which register is part of the deterministic state (`closed`), so that a step needs no clock. Of two values
that differ in a register only, the later one can do all that the earlier one can, and more; `undominated` drops the
earlier. Sets inside values (of vetoes, of rivals) are frozensets, and opaque to that rule: for a veto it is reversed.

This is where the products and subset constructions of the theorems live. They are built lazily since each of them is
exponential in the pattern at worst, and data reaches few of their states.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from runtime import nodes
from runtime.nodes import BEGIN, END, VISIBLE
from runtime.program import ALWAYS, SKIP, WORD_BITS

Value = Any  # nested tuples of hashable things
REPORT = -1  # the mask of a move that takes no event: the run's match, ended earlier, has become known


class Reg(NamedTuple):
    """A register: the event at which a part began. Registers of a state are numbered by age, 0 the oldest."""

    number: int


NOW = Reg(1 << 30)  # the register that is set by the event being read


class Move(NamedTuple):
    mask: int
    next: Value | None
    accept: bool


@dataclass(frozen=True)
class Symbol:
    """An event: which guards it satisfies, and for each register of the state which windows have closed."""

    words: tuple[int, ...]
    closed_of: tuple[int, ...] = ()

    def holds(self, guard: int) -> bool:
        return guard == ALWAYS or bool(self.words[guard // WORD_BITS] >> (guard % WORD_BITS) & 1)

    def closed(self, register: Reg, window: int) -> bool:
        return register is not NOW and bool(self.closed_of[register.number] >> window & 1)


class Machine:
    """Any operator's automaton."""

    may_be_empty = False

    def initial(self) -> list[Value]:
        raise NotImplementedError

    def step(self, value: Value, symbol: Symbol) -> list[Move]:
        raise NotImplementedError

    def forget(self, value: Value) -> Value:
        """The value of a run that has not begun, once all partial matches are dropped (CONSUME BY)."""
        return value

    def at_end(self, value: Value) -> bool:
        """Has a run with this value a match that becomes known when the stream ends?"""
        return False

    def begin(self, value: Value) -> Reg | None:
        """The register of a run's first event, where every start has a run of its own."""
        return None


# ---------------------------------------------------------------- registers and sets of values


def registers(value: Value) -> set[Reg]:
    """All registers that a value mentions."""
    if isinstance(value, Reg):
        return {value}
    if isinstance(value, tuple | frozenset):
        return set().union(*map(registers, value)) if value else set()
    return set()


def renamed(value: Value, names: dict[Reg, Reg]) -> Value:
    if isinstance(value, Reg):
        return names[value]
    if isinstance(value, Rivals):
        return Rivals(*(renamed(part, names) for part in value))
    if isinstance(value, tuple):
        return tuple(renamed(part, names) for part in value)
    if isinstance(value, frozenset):
        return frozenset(renamed(part, names) for part in value)
    return value


def _shape(value: Value, found: list[int]) -> Hashable:
    """The value without its registers, which are appended to `found`; sets stay as they are."""
    if isinstance(value, Reg):
        found.append(value.number)
        return Reg
    if isinstance(value, tuple):
        return tuple(_shape(part, found) for part in value)
    return value


def undominated(values: Iterable[Value]) -> frozenset[Value]:
    """Without values that another one equals but for later registers."""
    by_shape: dict[Hashable, list[tuple[list[int], Value]]] = defaultdict(list)
    for value in values:
        vector: list[int] = []
        by_shape[_shape(value, vector)].append((vector, value))
    kept = set()
    for group in by_shape.values():
        for vector, value in group:
            if not any(v != vector and all(a >= b for a, b in zip(v, vector, strict=True)) for v, _ in group):
                kept.add(value)
    return frozenset(kept)


def without(values: Iterable[Value], rivals: Iterable[Value]) -> frozenset[Value]:
    """The values that no rival equals or dominates."""
    held: dict[Hashable, list[list[int]]] = defaultdict(list)
    for rival in rivals:
        vector: list[int] = []
        held[_shape(rival, vector)].append(vector)
    kept = []
    for value in values:
        own: list[int] = []
        others = held.get(_shape(value, own), ())
        if not any(all(a >= b for a, b in zip(v, own, strict=True)) for v in others):
            kept.append(value)
    return frozenset(kept)


class Reached(NamedTuple):
    """Where a set of values goes: the next values, and whether one of the moves accepts."""

    values: set[Value]
    accept: bool


def spread(machine: Machine, values: Iterable[Value], symbol: Symbol) -> dict[int, Reached]:
    """Δ of [CEL] Theorem 7.2: what a set of values reaches, by mask."""
    reached: dict[int, Reached] = {}
    for value in values:
        for mask, target, accept in machine.step(value, symbol):
            old = reached.get(mask)
            if old is None:
                old = reached[mask] = Reached(set(), False)
            if target is not None:
                old.values.add(target)
            if accept and not old.accept:
                reached[mask] = Reached(old.values, True)
    return reached


def merged(parts: Iterable[Reached]) -> Reached:
    values: set[Value] = set()
    accept = False
    for part in parts:
        values |= part.values
        accept = accept or part.accept
    return Reached(values, accept)


class Watch:
    """The deterministic automaton of π_∅(ψ): has a match of ψ been seen since the watch began? ([CEL] 6.2, UNLESS.)"""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self.initial = undominated(machine.initial())

    def advance(self, values: frozenset[Value], symbol: Symbol) -> frozenset[Value] | None:
        """The next set, or None once a match has ended."""
        reached = merged(spread(self._machine, values, symbol).values())
        return None if reached.accept else undominated(reached.values)


class Watches:
    """Several at once; a state is a tuple of sets."""

    def __init__(self, machines: Iterable[Machine]) -> None:
        self._watches = [Watch(machine) for machine in machines]
        self.initial = tuple(watch.initial for watch in self._watches)

    def advance(self, values: tuple[frozenset[Value], ...], symbol: Symbol) -> tuple[frozenset[Value], ...] | None:
        found = []
        for watch, held in zip(self._watches, values, strict=True):
            after = watch.advance(held, symbol)
            if after is None:
                return None
            found.append(after)
        return tuple(found)


# ---------------------------------------------------------------- one class per operator


class FlatMachine(Machine):
    """The flat automaton. Its masks hold no BEGIN: a run that still waits at the beginning is (state, False)."""

    def __init__(self, node: nodes.Flat) -> None:
        self.may_be_empty = node.may_be_empty
        self._final = frozenset(node.final)
        self._initial = node.initial
        self._out: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
        for source, guard, label, target in node.transitions.tolist():
            self._out[source].append((guard, 0 if label == SKIP else node.masks[label], target))

    def initial(self) -> list[Value]:
        return [(state, False) for state in self._initial]

    def step(self, value: Value, symbol: Symbol) -> list[Move]:
        state, begun = value
        moves = []
        for guard, mask, target in self._out[state]:
            if symbol.holds(guard):
                goes_on = (target, begun or mask != 0) if target in self._out else None
                accept = mask != 0 and target in self._final
                if goes_on is not None or accept:
                    moves.append(Move(mask | BEGIN if mask and not begun else mask, goes_on, accept))
        return moves


class BindMachine(Machine):
    def __init__(self, node: nodes.Bind) -> None:
        self._inner, self._mask = machine_of(node.inner), node.mask
        self.may_be_empty = node.may_be_empty

    def initial(self) -> list[Value]:
        return self._inner.initial()

    def step(self, value: Value, symbol: Symbol) -> list[Move]:
        moves = self._inner.step(value, symbol)
        return [m._replace(mask=m.mask | self._mask) if m.mask != REPORT and m.mask & VISIBLE else m for m in moves]

    def at_end(self, value: Value) -> bool:
        return self._inner.at_end(value)


class KeepMachine(Machine):
    """Also used at the top, where it leaves what a user can see; `forget` goes through for that."""

    def __init__(self, node: nodes.Keep) -> None:
        self._inner, self._mask = machine_of(node.inner), node.mask | BEGIN | END

    def initial(self) -> list[Value]:
        return self._inner.initial()

    def step(self, value: Value, symbol: Symbol) -> list[Move]:
        moves = self._inner.step(value, symbol)
        return [m if m.mask == REPORT else m._replace(mask=m.mask & self._mask) for m in moves]

    def at_end(self, value: Value) -> bool:
        return self._inner.at_end(value)


class RestrictMachine(Machine):
    """A value is (inner value, the sides that hold so far, as bits)."""

    def __init__(self, node: nodes.Restrict) -> None:
        self._inner, self._sides = machine_of(node.inner), node.sides
        self.may_be_empty = node.may_be_empty

    def initial(self) -> list[Value]:
        every = (1 << len(self._sides)) - 1
        return [(value, every) for value in self._inner.initial()]

    def step(self, value: Value, symbol: Symbol) -> list[Move]:
        inner, holding = value
        failed = [(i, mask) for i, (mask, guard) in enumerate(self._sides) if not symbol.holds(guard)]
        moves = []
        for mask, target, accept in self._inner.step(inner, symbol):
            left = holding
            if mask != REPORT:
                for i, variable in failed:
                    if mask & variable:
                        left &= ~(1 << i)
            if left:
                moves.append(Move(mask, None if target is None else (target, left), accept))
        return moves

    def at_end(self, value: Value) -> bool:
        return self._inner.at_end(value[0])


LEFT, FRONT, RIGHT, JOINT, GAP = "left", "front", "right", "joint", "gap"


class JoinMachine(Machine):
    """φ ; χ and its kin. ('left', v) runs φ; then comes χ: 'right' at any time, 'joint' at once, 'gap' under watches.

    'front': φ was empty, so that χ begins the match.
    """

    def __init__(self, node: nodes.Join) -> None:
        self._left, self._right = machine_of(node.left), machine_of(node.right)
        self.may_be_empty = node.may_be_empty
        self._watches = Watches(machine_of(veto) for veto in node.vetoes)
        tag = JOINT if node.contiguous else RIGHT
        self._entries: list[Value] = [
            (GAP, value, self._watches.initial) if node.vetoes else (tag, value) for value in self._right.initial()
        ]

    def initial(self) -> list[Value]:
        found: list[Value] = [(LEFT, value) for value in self._left.initial()]
        if self._left.may_be_empty:
            found += [(FRONT, value) for value in self._right.initial()]
        return found

    def step(self, value: Value, symbol: Symbol) -> list[Move]:
        if value[0] == LEFT:
            return self._step_left(value[1], symbol)
        if value[0] == GAP:
            return self._step_gap(value[1], value[2], symbol)
        moves = []
        for mask, target, accept in self._right.step(value[1], symbol):
            if value[0] == JOINT and not mask & BEGIN:
                continue
            tag = FRONT if value[0] == FRONT and not mask & BEGIN else RIGHT
            kept = mask if value[0] == FRONT else mask & ~BEGIN
            moves.append(Move(kept, None if target is None else (tag, target), accept))
        return moves

    def _step_left(self, inner: Value, symbol: Symbol) -> list[Move]:
        moves = []
        for mask, target, accept in self._left.step(inner, symbol):
            if target is not None:
                moves.append(Move(mask, (LEFT, target), False))
            if accept:
                moves += [Move(mask, entry, False) for entry in self._entries]
                if self._right.may_be_empty:
                    moves.append(Move(mask, None, True))
        return moves

    def _step_gap(self, inner: Value, watched: tuple[frozenset[Value], ...], symbol: Symbol) -> list[Move]:
        after = self._watches.advance(watched, symbol)
        moves = []
        for mask, target, accept in self._right.step(inner, symbol):
            if mask & BEGIN:
                moves.append(Move(mask & ~BEGIN, None if target is None else (RIGHT, target), accept))
            elif after is not None and target is not None:
                moves.append(Move(mask, (GAP, target, after), False))
        return moves


class LoopMachine(Machine):
    """A value is (copies completed, as far as that matters, how the copy came in, value of the copy)."""

    def __init__(self, node: nodes.Loop) -> None:
        self._inner, self._high = machine_of(node.inner), node.high
        self.may_be_empty = node.may_be_empty
        self._low = 0 if node.inner.may_be_empty else node.low
        self._tag = JOINT if node.contiguous else RIGHT

    def initial(self) -> list[Value]:
        return [(0, FRONT, value) for value in self._inner.initial()]

    def step(self, value: Value, symbol: Symbol) -> list[Move]:
        copies, tag, inner = value
        moves = []
        for mask, target, accept in self._inner.step(inner, symbol):
            if tag == JOINT and not mask & BEGIN:
                continue
            kept = mask if tag == FRONT else mask & ~BEGIN
            if target is not None:
                moves.append(Move(kept, (copies, FRONT if tag == FRONT and not mask & BEGIN else RIGHT, target), False))
            if accept:
                done = copies + 1
                if self._high is None or done < self._high:
                    count = min(done, self._low) if self._high is None else done
                    moves += [Move(kept, (count, self._tag, entry), False) for entry in self._inner.initial()]
                if done >= self._low:
                    moves.append(Move(kept, None, True))
        return moves


class EitherMachine(Machine):
    def __init__(self, node: nodes.Either) -> None:
        self._sides = machine_of(node.left), machine_of(node.right)
        self.may_be_empty = node.may_be_empty

    def initial(self) -> list[Value]:
        return [(side, value) for side in (0, 1) for value in self._sides[side].initial()]

    def step(self, value: Value, symbol: Symbol) -> list[Move]:
        side, inner = value
        return [m if m.next is None else m._replace(next=(side, m.next)) for m in self._sides[side].step(inner, symbol)]


class BothMachine(Machine):
    """The product whose sides mark alike, BEGIN included, and end together; the planner's own marks may differ."""

    def __init__(self, node: nodes.Both) -> None:
        self._left, self._right = machine_of(node.left), machine_of(node.right)
        self._compared = ~node.hidden

    def initial(self) -> list[Value]:
        return [(a, b) for a in self._left.initial() for b in self._right.initial()]

    def step(self, value: Value, symbol: Symbol) -> list[Move]:
        right: dict[int, list[Move]] = defaultdict(list)
        for move in self._right.step(value[1], symbol):
            right[move.mask & self._compared].append(move)
        moves = []
        for a in self._left.step(value[0], symbol):
            for b in right[a.mask & self._compared]:
                both = None if a.next is None or b.next is None else (a.next, b.next)
                if both is not None or (a.accept and b.accept):
                    moves.append(Move(a.mask | b.mask, both, a.accept and b.accept))
        return moves


FINISHED = "finished"


class InterleaveMachine(Machine):
    """The product in which each side waits, runs and rests by itself; a value is (left, right, begun?)."""

    def __init__(self, node: nodes.Interleave) -> None:
        self._sides = machine_of(node.left), machine_of(node.right)

    def initial(self) -> list[Value]:
        return [(a, b, False) for a in self._sides[0].initial() for b in self._sides[1].initial()]

    def step(self, value: Value, symbol: Symbol) -> list[Move]:
        begun = value[2]
        moves = []
        for left, a, ends_a in self._options(0, value[0], symbol):
            for right, b, ends_b in self._options(1, value[1], symbol):
                mask = left | right
                after = begun or bool(mask & BEGIN)
                if begun:
                    mask &= ~BEGIN
                if a == FINISHED and b == FINISHED:
                    if ends_a or ends_b:
                        moves.append(Move(mask, None, True))
                else:
                    moves.append(Move(mask, (a, b, after), False))
        return moves

    def _options(self, side: int, value: Value, symbol: Symbol) -> list[tuple[int, Value, bool]]:
        """(mask, next value, does the side end here) for each thing that a side can do."""
        if value == FINISHED:
            return [(0, FINISHED, False)]
        found = []
        for mask, target, accept in self._sides[side].step(value, symbol):
            if target is not None:
                found.append((mask, target, False))
            if accept:
                found.append((mask, FINISHED, True))
        return found


class UnlessMachine(Machine):
    """φ with a watch from its first event on; a value is (inner value, watched set or None before the match begins)."""

    def __init__(self, node: nodes.Unless) -> None:
        self._inner, self._watch = machine_of(node.inner), Watch(machine_of(node.veto))

    def initial(self) -> list[Value]:
        return [(value, None) for value in self._inner.initial()]

    def step(self, value: Value, symbol: Symbol) -> list[Move]:
        inner, watched = value
        after = self._watch.advance(self._watch.initial if watched is None else watched, symbol)
        moves = []
        for mask, target, accept in self._inner.step(inner, symbol):
            if watched is None and not mask & BEGIN:
                moves.append(Move(mask, (target, None), False))
            elif after is not None:
                moves.append(Move(mask, None if target is None else (target, after), accept))
        return moves


class StartMachine(Machine):
    """A value is (inner value, begun?); the first event must begin the match."""

    def __init__(self, node: nodes.Start) -> None:
        self._inner = machine_of(node.inner)

    def initial(self) -> list[Value]:
        return [(value, False) for value in self._inner.initial()]

    def step(self, value: Value, symbol: Symbol) -> list[Move]:
        inner, begun = value
        return [
            m if m.next is None else m._replace(next=(m.next, True))
            for m in self._inner.step(inner, symbol)
            if begun or m.mask & BEGIN
        ]


class StrictMachine(Machine):
    """[CEL] Theorem 7.2: nothing marked yet (1), marking (2), marked (3); no way back."""

    def __init__(self, node: nodes.Strict) -> None:
        self._inner = machine_of(node.inner)

    def initial(self) -> list[Value]:
        return [(value, 1) for value in self._inner.initial()]

    def step(self, value: Value, symbol: Symbol) -> list[Move]:
        inner, phase = value
        moves = []
        for mask, target, accept in self._inner.step(inner, symbol):
            if mask == REPORT:
                moves.append(Move(mask, None, accept))
                continue
            marked = mask & VISIBLE
            if marked and phase == 3:
                continue
            after = 2 if marked else 3 if phase == 2 else phase
            moves.append(Move(mask, None if target is None else (target, after), accept))
        return moves

    def at_end(self, value: Value) -> bool:
        return self._inner.at_end(value[0])


class Rivals(NamedTuple):
    """What the runs that compete with a run can be at, by how their positions compare with its own so far.

    `equal` holds the run's own values too: [CEL] Theorem 7.2 compares runs of the same output only, but runs that mark
    other variables, or began elsewhere, can have the same positions, and win later.
    """

    equal: frozenset[Value]
    ahead: frozenset[Value]
    behind: frozenset[Value] = frozenset()  # LAST only: under NXT and MAX who is behind stays behind


def compete(
    machine: Machine, rule: str, own: Reached, marked: bool, rivals: Rivals, symbol: Symbol
) -> tuple[frozenset[Value], Rivals, bool]:
    """One event of a run that marks it or does not: its values, its rivals, and does it accept as a winner?"""
    equal = spread(machine, rivals.equal, symbol)
    ahead = spread(machine, rivals.ahead, symbol)
    behind = spread(machine, rivals.behind, symbol)
    if marked:
        winners = merged(ahead.values() if rule == "NXT" else _marked(ahead))
        peers = merged(_marked(equal))
        losers = merged([*behind.values(), *_unmarked(equal), *_unmarked(ahead)])
    else:
        winners = merged([*ahead.values(), *_marked(equal), *_marked(behind)])
        peers = merged(_unmarked(equal))
        losers = merged(_unmarked(behind))
    following = Rivals(
        equal=without(undominated(peers.values), winners.values),
        ahead=undominated(winners.values),
        behind=frozenset() if rule != "LAST" else without(undominated(losers.values), peers.values | winners.values),
    )
    return without(undominated(own.values), winners.values), following, own.accept and not winners.accept


def _marked(reached: dict[int, Reached]) -> list[Reached]:
    return [part for mask, part in reached.items() if mask & VISIBLE]


def _unmarked(reached: dict[int, Reached]) -> list[Reached]:
    return [part for mask, part in reached.items() if not mask & VISIBLE]


class GreatestMachine(Machine):
    """NXT, LAST, MAX ([CEL] Theorem 7.2). A value is (the values of the runs with this output, their Rivals).

    A value that a rival ahead has too is dropped: whatever it goes on with, the rival can do, and wins. Values with
    registers are compared as `undominated` does, so that a rival which leaves the window earlier hides nothing.
    """

    def __init__(self, node: nodes.Greatest) -> None:
        self._inner, self._rule, self._clause = machine_of(node.inner), node.rule, node.clause

    def initial(self) -> list[Value]:
        values = undominated(self._inner.initial())
        return [(values, Rivals(values, frozenset()))]

    def step(self, value: Value, symbol: Symbol) -> list[Move]:
        values, rivals = value
        moves = []
        for mask, own in spread(self._inner, values, symbol).items():
            left, after, accept = compete(self._inner, self._rule, own, bool(mask & VISIBLE), rivals, symbol)
            if left or accept:
                moves.append(Move(mask, (left, after) if left else None, accept))
        return moves

    def forget(self, value: Value) -> Value:
        return (value[0], Rivals(value[0], frozenset())) if self._clause else value


class FirstMachine(Machine):
    """NXT among the runs of one start. (values, None, None) before it begins; then (values, Rivals, register)."""

    def __init__(self, node: nodes.First) -> None:
        self._inner, self._shows = machine_of(node.inner), node.shows

    def initial(self) -> list[Value]:
        return [(undominated(self._inner.initial()), None, None)]

    def step(self, value: Value, symbol: Symbol) -> list[Move]:
        values, rivals, register = value
        moves = []
        reached = spread(self._inner, values, symbol)
        if rivals is None:
            waiting = reached.pop(0, None)
            if waiting is not None and waiting.values:
                moves.append(Move(0, (undominated(waiting.values), None, None), False))
            first, second = merged(_marked(reached)), merged(_unmarked(reached))
        for mask, own in reached.items():
            marked = bool(mask & VISIBLE)
            if rivals is not None:
                left, after, accept = compete(self._inner, "NXT", own, marked, rivals, symbol)
            elif marked:
                left, accept = undominated(own.values), own.accept
                after = Rivals(undominated(first.values), frozenset())
            else:
                left, accept = without(undominated(own.values), first.values), own.accept and not first.accept
                after = Rivals(without(undominated(second.values), first.values), undominated(first.values))
            if left or accept or self._shows:
                moves.append(Move(mask, (left, after, register or NOW) if left else None, accept))
        return moves

    def begin(self, value: Value) -> Reg | None:
        register: Reg | None = value[2]
        return register


class WithinMachine(Machine):
    """A value is (inner value, register of its beginning or None)."""

    def __init__(self, node: nodes.Within) -> None:
        self._inner, self._window = machine_of(node.inner), node.window

    def initial(self) -> list[Value]:
        return [(value, None) for value in self._inner.initial()]

    def step(self, value: Value, symbol: Symbol) -> list[Move]:
        inner, register = value
        if register is not None and symbol.closed(register, self._window):
            return []
        moves = []
        for mask, target, accept in self._inner.step(inner, symbol):
            since = NOW if mask & BEGIN else register
            moves.append(Move(mask, None if target is None else (target, since), accept))
        return moves


class NotBeforeMachine(Machine):
    """Before the match begins: (inner value, for each veto its runs with their registers, {latest start of a veto}).

    Afterwards (inner value, None, {…}). The match may end once the last veto before it has left the window.
    """

    def __init__(self, node: nodes.NotBefore) -> None:
        self._inner, self._window, self._shows = machine_of(node.inner), node.window, node.shows
        self._vetoes = [WithinMachine(nodes.Within(veto, node.window)) for veto in node.vetoes]
        self._waiting = tuple(undominated(veto.initial()) for veto in self._vetoes)

    def initial(self) -> list[Value]:
        return [(value, self._waiting, frozenset()) for value in self._inner.initial()]

    def step(self, value: Value, symbol: Symbol) -> list[Move]:
        inner, watched, seen = value
        last = frozenset(register for register in seen if not symbol.closed(register, self._window))
        moves = []
        for mask, target, accept in self._inner.step(inner, symbol):
            if watched is not None and not mask & BEGIN:
                moves.append(Move(mask, (target, *self._watch(watched, last, symbol)), False))
            else:
                free = accept and not last
                if target is not None or free or (accept and self._shows):
                    moves.append(Move(mask, None if target is None else (target, None, last), free))
        return moves

    def _watch(
        self, watched: tuple[frozenset[Value], ...], last: frozenset[Reg], symbol: Symbol
    ) -> tuple[tuple[frozenset[Value], ...], frozenset[Reg]]:
        """Each veto's runs after this event, and the latest start of one that has ended."""
        after, starts = [], set(last)
        for veto, values in zip(self._vetoes, watched, strict=True):
            reached = set()
            for value in values:
                for mask, target, accept in veto.step(value, symbol):
                    if target is not None:
                        reached.add(target)
                    if accept:
                        starts.add(NOW if mask & BEGIN else value[1])
            after.append(undominated(reached))
        return tuple(after), frozenset([max(starts)] if starts else [])


class NotAfterMachine(Machine):
    """('run', inner value, register) until φ ends; then ('wait', watched sets, register) until the window closes."""

    def __init__(self, node: nodes.NotAfter) -> None:
        self._inner, self._window = machine_of(node.inner), node.window
        self._watches = Watches(machine_of(veto) for veto in node.vetoes)

    def initial(self) -> list[Value]:
        return [("run", value, None) for value in self._inner.initial()]

    def step(self, value: Value, symbol: Symbol) -> list[Move]:
        kind, inner, register = value
        closed = register is not None and symbol.closed(register, self._window)
        if kind == "wait":
            if closed:
                return [Move(REPORT, None, True)]
            after = self._watches.advance(inner, symbol)
            return [] if after is None else [Move(0, ("wait", after, register), False)]
        if closed:
            return []
        moves = []
        for mask, target, accept in self._inner.step(inner, symbol):
            since = NOW if mask & BEGIN else register
            if target is not None or not accept:  # the latter only where what is given up is shown
                moves.append(Move(mask, None if target is None else ("run", target, since), False))
            if accept:
                moves.append(Move(mask | END, ("wait", self._watches.initial, since), False))
        return moves

    def at_end(self, value: Value) -> bool:
        return value[0] == "wait"

    def begin(self, value: Value) -> Reg | None:
        register: Reg | None = value[2]
        return register


def _greedy(node: nodes.Greedy) -> Machine:
    from runtime.greedy import GreedyMachine  # it builds on this module

    return GreedyMachine(node)


MACHINES: dict[type[nodes.Node], Callable[[Any], Machine]] = {
    nodes.Flat: FlatMachine,
    nodes.Bind: BindMachine,
    nodes.Keep: KeepMachine,
    nodes.Restrict: RestrictMachine,
    nodes.Join: JoinMachine,
    nodes.Loop: LoopMachine,
    nodes.Either: EitherMachine,
    nodes.Both: BothMachine,
    nodes.Interleave: InterleaveMachine,
    nodes.Unless: UnlessMachine,
    nodes.Start: StartMachine,
    nodes.Strict: StrictMachine,
    nodes.Greatest: GreatestMachine,
    nodes.First: FirstMachine,
    nodes.Within: WithinMachine,
    nodes.NotBefore: NotBeforeMachine,
    nodes.NotAfter: NotAfterMachine,
    nodes.Greedy: _greedy,
}


def machine_of(node: nodes.Node) -> Machine:
    """The machine of a node and, inside it, those of its parts."""
    return MACHINES[type(node)](node)
