"""This file runs the operators whose automata are joins and products: [CEL] Theorem 6.2, and STRICT of Theorem 7.2.

`ALL(A a, B b)`, where each side is a flat automaton with the states 0 and 1, which is final: a value is (left, right,
has the match begun?).

    (0, 0, no)           on an A   skip → (0, 0, no); mark a → (finished, 0, yes)
    (finished, 0, yes)   on a B    skip → (finished, 0, yes); mark b, accept
"""

from __future__ import annotations

from collections import defaultdict

from runtime import nodes
from runtime.automata.machine import REPORT, Machine, Maker, Move, Sighting, Symbol, Value
from runtime.automata.values import Watch, Watches
from runtime.nodes import BEGIN, END, VISIBLE
from runtime.program import SKIP


class FlatMachine(Machine, of=nodes.Flat):
    """The flat automaton. Its masks hold no BEGIN: a run that still waits at the beginning is (state, False)."""

    def __init__(self, node: nodes.Flat, make: Maker) -> None:
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


class BindMachine(Machine, of=nodes.Bind):
    def __init__(self, node: nodes.Bind, make: Maker) -> None:
        self._inner, self._mask = make(node.inner), node.mask
        self.may_be_empty = node.may_be_empty

    def initial(self) -> list[Value]:
        return self._inner.initial()

    def step(self, value: Value, symbol: Symbol) -> list[Move]:
        moves = self._inner.step(value, symbol)
        return [m._replace(mask=m.mask | self._mask) if m.mask != REPORT and m.mask & VISIBLE else m for m in moves]

    def at_end(self, value: Value) -> frozenset[Sighting] | None:
        return self._inner.at_end(value)


class KeepMachine(Machine, of=nodes.Keep):
    """Also used at the top, where it leaves what a user can see; `forget` goes through for that."""

    def __init__(self, node: nodes.Keep, make: Maker) -> None:
        self._inner, self._mask = make(node.inner), node.mask | BEGIN | END

    def initial(self) -> list[Value]:
        return self._inner.initial()

    def step(self, value: Value, symbol: Symbol) -> list[Move]:
        moves = self._inner.step(value, symbol)
        return [m if m.mask == REPORT else m._replace(mask=m.mask & self._mask) for m in moves]

    def at_end(self, value: Value) -> frozenset[Sighting] | None:
        return self._inner.at_end(value)


class RestrictMachine(Machine, of=nodes.Restrict):
    """A value is (inner value, the sides that hold so far, as bits)."""

    def __init__(self, node: nodes.Restrict, make: Maker) -> None:
        self._inner, self._sides = make(node.inner), node.sides
        self.may_be_empty = node.may_be_empty

    def initial(self) -> list[Value]:
        every = (1 << len(self._sides)) - 1
        return [(value, every) for value in self._inner.initial()]

    def step(self, value: Value, symbol: Symbol) -> list[Move]:
        inner, holding = value
        failed = [(i, mask) for i, (mask, guard) in enumerate(self._sides) if not symbol.holds(guard)]
        moves = []
        for move in self._inner.step(inner, symbol):
            left = holding
            if move.mask != REPORT:
                for i, variable in failed:
                    if move.mask & variable:
                        left &= ~(1 << i)
            if left:
                moves.append(move._replace(next=None if move.next is None else (move.next, left)))
        return moves

    def at_end(self, value: Value) -> frozenset[Sighting] | None:
        return self._inner.at_end(value[0])


LEFT, FRONT, RIGHT, JOINT, GAP = "left", "front", "right", "joint", "gap"


class JoinMachine(Machine, of=nodes.Join):
    """φ ; χ and its kin. ('left', v) runs φ; then comes χ: 'right' at any time, 'joint' at once, 'gap' under watches.

    'front': φ was empty, so that χ begins the match.
    """

    def __init__(self, node: nodes.Join, make: Maker) -> None:
        self._left, self._right = make(node.left), make(node.right)
        self.may_be_empty = node.may_be_empty
        self._watches = Watches(make(veto) for veto in node.vetoes)
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
        for mask, target, accept, seen in self._right.step(value[1], symbol):
            if value[0] == JOINT and not mask & BEGIN:
                continue
            tag = FRONT if value[0] == FRONT and not mask & BEGIN else RIGHT
            kept = mask if value[0] == FRONT else mask & ~BEGIN
            moves.append(Move(kept, None if target is None else (tag, target), accept, seen))
        return moves

    def _step_left(self, inner: Value, symbol: Symbol) -> list[Move]:
        moves = []
        for mask, target, accept, seen in self._left.step(inner, symbol):
            if target is not None:
                moves.append(Move(mask, (LEFT, target), False, seen))
            if accept:
                moves += [Move(mask, entry, False, seen) for entry in self._entries]
                if self._right.may_be_empty:
                    moves.append(Move(mask, None, True, seen))
        return moves

    def _step_gap(self, inner: Value, watched: tuple[frozenset[Value], ...], symbol: Symbol) -> list[Move]:
        after, sighted = self._watches.advance(watched, symbol)
        moves = []
        for mask, target, accept, seen in self._right.step(inner, symbol):
            if mask & BEGIN:
                moves.append(Move(mask & ~BEGIN, None if target is None else (RIGHT, target), accept, seen))
            elif after is not None and target is not None:
                moves.append(Move(mask, (GAP, target, after), False, seen | sighted))
        return moves


class LoopMachine(Machine, of=nodes.Loop):
    """A value is (copies completed, as far as that matters, how the copy came in, value of the copy)."""

    def __init__(self, node: nodes.Loop, make: Maker) -> None:
        self._inner, self._high = make(node.inner), node.high
        self.may_be_empty = node.may_be_empty
        self._low = 0 if node.inner.may_be_empty else node.low
        self._tag = JOINT if node.contiguous else RIGHT

    def initial(self) -> list[Value]:
        return [(0, FRONT, value) for value in self._inner.initial()]

    def step(self, value: Value, symbol: Symbol) -> list[Move]:
        copies, tag, inner = value
        moves = []
        for mask, target, accept, seen in self._inner.step(inner, symbol):
            if tag == JOINT and not mask & BEGIN:
                continue
            kept = mask if tag == FRONT else mask & ~BEGIN
            if target is not None:
                state = (copies, FRONT if tag == FRONT and not mask & BEGIN else RIGHT, target)
                moves.append(Move(kept, state, False, seen))
            if accept:
                done = copies + 1
                if self._high is None or done < self._high:
                    count = min(done, self._low) if self._high is None else done
                    moves += [Move(kept, (count, self._tag, entry), False, seen) for entry in self._inner.initial()]
                if done >= self._low:
                    moves.append(Move(kept, None, True, seen))
        return moves


class EndingMachine(Machine, of=nodes.Ending):
    """What ends goes no further with the mask; what goes on does so without it. A value is that of φ."""

    def __init__(self, node: nodes.Ending, make: Maker) -> None:
        self._inner, self._mask = make(node.inner), node.mask

    def initial(self) -> list[Value]:
        return self._inner.initial()

    def step(self, value: Value, symbol: Symbol) -> list[Move]:
        moves = []
        for move in self._inner.step(value, symbol):
            if move.next is not None:
                moves.append(move._replace(accept=False))
            if move.accept:
                moves.append(move._replace(mask=move.mask | self._mask, next=None))
        return moves


class EitherMachine(Machine, of=nodes.Either):
    def __init__(self, node: nodes.Either, make: Maker) -> None:
        self._sides = make(node.left), make(node.right)
        self.may_be_empty = node.may_be_empty

    def initial(self) -> list[Value]:
        return [(side, value) for side in (0, 1) for value in self._sides[side].initial()]

    def step(self, value: Value, symbol: Symbol) -> list[Move]:
        side, inner = value
        return [m if m.next is None else m._replace(next=(side, m.next)) for m in self._sides[side].step(inner, symbol)]


class BothMachine(Machine, of=nodes.Both):
    """The product whose sides mark alike, BEGIN included, and end together; the planner's own marks may differ."""

    def __init__(self, node: nodes.Both, make: Maker) -> None:
        self._left, self._right = make(node.left), make(node.right)
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
                    moves.append(Move(a.mask | b.mask, both, a.accept and b.accept, a.seen | b.seen))
        return moves


FINISHED = "finished"


class InterleaveMachine(Machine, of=nodes.Interleave):
    """The product in which each side waits, runs and rests by itself; a value is (left, right, begun?)."""

    def __init__(self, node: nodes.Interleave, make: Maker) -> None:
        self._sides = make(node.left), make(node.right)

    def initial(self) -> list[Value]:
        return [(a, b, False) for a in self._sides[0].initial() for b in self._sides[1].initial()]

    def step(self, value: Value, symbol: Symbol) -> list[Move]:
        begun = value[2]
        moves = []
        for left, a, ends_a, seen_a in self._options(0, value[0], symbol):
            for right, b, ends_b, seen_b in self._options(1, value[1], symbol):
                mask, seen = left | right, seen_a | seen_b
                after = begun or bool(mask & BEGIN)
                if begun:
                    mask &= ~BEGIN
                if a == FINISHED and b == FINISHED:
                    if ends_a or ends_b:
                        moves.append(Move(mask, None, True, seen))
                else:
                    moves.append(Move(mask, (a, b, after), False, seen))
        return moves

    def _options(self, side: int, value: Value, symbol: Symbol) -> list[Move]:
        """What a side can do; `accept`: it ends here."""
        if value == FINISHED:
            return [Move(0, FINISHED, False)]
        found = []
        for move in self._sides[side].step(value, symbol):
            if move.next is not None:
                found.append(move._replace(accept=False))
            if move.accept:
                found.append(move._replace(next=FINISHED))
        return found


class UnlessMachine(Machine, of=nodes.Unless):
    """φ with a watch from its first event on; a value is (inner value, watched set or None before the match begins)."""

    def __init__(self, node: nodes.Unless, make: Maker) -> None:
        self._inner, self._watch = make(node.inner), Watch(make(node.veto))

    def initial(self) -> list[Value]:
        return [(value, None) for value in self._inner.initial()]

    def step(self, value: Value, symbol: Symbol) -> list[Move]:
        inner, watched = value
        after, sighted = self._watch.advance(self._watch.initial if watched is None else watched, symbol)
        moves = []
        for mask, target, accept, seen in self._inner.step(inner, symbol):
            if watched is None and not mask & BEGIN:
                moves.append(Move(mask, (target, None), False, seen))
            elif after is not None:
                moves.append(Move(mask, None if target is None else (target, after), accept, seen | sighted))
        return moves


class StartMachine(Machine, of=nodes.Start):
    """A value is (inner value, begun?); the first event must begin the match."""

    def __init__(self, node: nodes.Start, make: Maker) -> None:
        self._inner = make(node.inner)

    def initial(self) -> list[Value]:
        return [(value, False) for value in self._inner.initial()]

    def step(self, value: Value, symbol: Symbol) -> list[Move]:
        inner, begun = value
        return [
            m if m.next is None else m._replace(next=(m.next, True))
            for m in self._inner.step(inner, symbol)
            if begun or m.mask & BEGIN
        ]


class BeginsAtMachine(Machine, of=nodes.BeginsAt):
    def __init__(self, node: nodes.BeginsAt, make: Maker) -> None:
        self._inner, self._guard = make(node.inner), node.guard

    def initial(self) -> list[Value]:
        return self._inner.initial()

    def step(self, value: Value, symbol: Symbol) -> list[Move]:
        moves = self._inner.step(value, symbol)
        if symbol.holds(self._guard):
            return moves
        return [move for move in moves if move.mask == REPORT or not move.mask & BEGIN]

    def at_end(self, value: Value) -> frozenset[Sighting] | None:
        return self._inner.at_end(value)


class StrictMachine(Machine, of=nodes.Strict):
    """[CEL] Theorem 7.2: nothing marked yet (1), marking (2), marked (3); no way back."""

    def __init__(self, node: nodes.Strict, make: Maker) -> None:
        self._inner = make(node.inner)

    def initial(self) -> list[Value]:
        return [(value, 1) for value in self._inner.initial()]

    def step(self, value: Value, symbol: Symbol) -> list[Move]:
        inner, phase = value
        moves = []
        for move in self._inner.step(inner, symbol):
            if move.mask == REPORT:
                moves.append(move._replace(next=None))
                continue
            marked = move.mask & VISIBLE
            if marked and phase == 3:
                continue
            after = 2 if marked else 3 if phase == 2 else phase
            moves.append(move._replace(next=None if move.next is None else (move.next, after)))
        return moves

    def at_end(self, value: Value) -> frozenset[Sighting] | None:
        return self._inner.at_end(value[0])
