"""Greedy node → nodes.Registers: patterns whose comparisons need a few registers, run by a kernel.

The positions and edges are those of planner.greedy; its rule that a run must take what it can is `Runs.greedy`. What a
clause asks of later events is held in a register for each of its sides; a register is forgotten as soon as no way leads
to an event that is compared with it, so that runs which have nothing left to compare are one.

Not every pattern can be run so. `registers_of` then says why, and the general engine (runtime.bound) runs it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from runtime import nodes
from runtime.nodes import Compared, Greedy

_CHECKS = {
    "<": nodes.LESS,
    "<=": nodes.LESS_EQUAL,
    ">": nodes.GREATER,
    ">=": nodes.GREATER_EQUAL,
    "=": nodes.EQUAL,
    "<>": nodes.UNEQUAL,
}
# left op right, with the sides exchanged
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "<>": "<>"}
Op = tuple[int, int, int]  # kind, register, term
Edge = tuple[int, bool, list[Op]]  # source, contiguous, ops


@dataclass
class Clause:
    """A clause and its registers: the first of choice k is `first + k`. `ops[k]`: what an event of choice k does."""

    number: int
    first: int
    n: int
    ops: list[list[Op]]
    checked: list[set[int]]  # by choice: the registers that its events are compared with

    @property
    def registers(self) -> range:
        return range(self.first, self.first + self.n)


@dataclass
class _Builder:
    greedy: Greedy
    keep: int
    clauses: list[Clause] = field(default_factory=list)
    n_registers: int = 0

    def why_not(self) -> str | None:
        """What keeps the pattern from being run with registers; the clauses are ready if it is None."""
        node = self.greedy
        if node.vetoes:
            return "something must not happen in between"
        compared = dict(node.compared)
        if len(compared) != len(node.clauses):
            return "an OR of conditions on several variables"
        for followers in (node.first, *((f.position for f in follow) for follow in node.follow)):
            marks = [node.masks[q] & self.keep for q in followers]
            if len(set(marks)) < len(marks) or 0 in marks:
                return "two ways lead to the same events in the same variables"
        for number, clause in compared.items():
            made = self._clause(number, clause)
            if isinstance(made, str):
                return made
            self.clauses.append(made)
        return None

    def _clause(self, number: int, clause: Compared) -> Clause | str:
        if len(clause.comparisons) != 1 or clause.tests:
            return "an OR of comparisons"
        ((left, op, right),) = clause.comparisons
        if op not in _CHECKS:
            return f"the operator {op}"
        first, n = self.n_registers, len(clause.choices)
        if left.choice == right.choice and not clause.choices[left.choice].pairs:
            return Clause(number, first, 0, [[(nodes.OWN + _CHECKS[op], left.number, right.number)]], [set()])
        self.n_registers += n
        if left.choice == right.choice:
            if left.which == right.which:
                return "a condition on the later of two events alone"
            (early, late, op) = (left, right, op) if left.which == 0 else (right, left, _MIRRORED[op])
            ops = [[(_CHECKS[op], first, late.number), (nodes.SET, first, early.number)]]
            return Clause(number, first, 1, ops, [{first}])
        if any(choice.pairs for choice in clause.choices):
            return "consecutive events of one variable compared with another's"
        if op == "<>" and any(self._can_repeat(number, k) for k in range(n)):
            return "<> with a variable that can be several events"
        a, b = first + left.choice, first + right.choice
        keeps = {"<": (nodes.GREATEST, nodes.LEAST), ">": (nodes.LEAST, nodes.GREATEST)}
        own, other = keeps.get(op[0] if op != "<>" else "", (nodes.SAME, nodes.SAME))
        by_choice = {
            left.choice: [(_CHECKS[_MIRRORED[op]], b, left.number), (own, a, left.number)],
            right.choice: [(_CHECKS[op], a, right.number), (other, b, right.number)],
        }
        ops = [by_choice[k] for k in range(n)]
        return Clause(number, first, n, ops, [{b} if k == left.choice else {a} for k in range(n)])

    def _can_repeat(self, number: int, choice: int) -> bool:
        """Can a choice be made twice in one round of the clause?"""
        binds = {p for p in range(len(self.greedy.masks)) if choice in self._choices(p, number)}
        for p in binds:
            todo, seen = [p], set[int]()
            while todo:
                for f in self.greedy.follow[todo.pop()]:
                    if number in f.inside and f.position not in seen:
                        seen.add(f.position)
                        todo.append(f.position)
            if seen & binds:
                return True
        return False

    def _choices(self, position: int, number: int) -> list[int]:
        """The choices of a clause that an event at the position belongs to; none also where it stands outside."""
        return [k for n, asks in self.greedy.asks[position] if n == number for k, _ in asks]

    def needed(self) -> list[set[int]]:
        """For each position the registers that hold something there and that a later event can be compared with."""
        return [live & held for live, held in zip(self._live(), self._held(), strict=True)]

    def _held(self) -> list[set[int]]:
        """For each position the registers that an event so far can have set."""

        def own(q: int) -> set[int]:
            ops = [op for clause in self.clauses for k in self._choices(q, clause.number) for op in clause.ops[k]]
            return {register for kind, register, _ in ops if nodes.SET <= kind < nodes.OWN}

        found = [own(q) for q in range(len(self.greedy.masks))]
        todo = list(range(len(found)))
        while todo:
            p = todo.pop()
            for f in self.greedy.follow[p]:
                going_on = {r for clause in self.clauses if clause.number in f.inside for r in clause.registers}
                more = (found[p] & going_on) - found[f.position]
                if more:
                    found[f.position] |= more
                    todo.append(f.position)
        return found

    def _live(self) -> list[set[int]]:
        """For each position the registers that a later event can be compared with, or that can still change."""
        found: list[set[int]] = [set() for _ in self.greedy.masks]
        changed = True
        while changed:
            changed = False
            for p, follow in enumerate(self.greedy.follow):
                for f in follow:
                    for clause in self.clauses:
                        if clause.number not in f.inside:
                            continue
                        checked = {r for k in self._choices(f.position, clause.number) for r in clause.checked[k]}
                        more = (checked | (found[f.position] & set(clause.registers))) - found[p]
                        found[p] |= more
                        changed = changed or bool(more)
        return found

    def edge_ops(self, q: int, inside: Iterable[int] | None, needed: set[int]) -> list[Op]:
        """What a run does that takes an event at q; `inside`: the clauses that go on, None from the beginning."""
        ops: list[Op] = []
        for clause in self.clauses:
            if inside is not None and clause.number not in inside:
                ops += [(nodes.RESET, r, 0) for r in clause.registers]
            for k in self._choices(q, clause.number):
                ops += clause.ops[k]
            ops += [(nodes.RESET, r, 0) for r in clause.registers if r not in needed]
        return ops


def _equal_term(ops: list[Op], register: int | None) -> int:
    """The term to which a run's register must be equal for an edge, as it was when the event came; NOBODY: none."""
    for kind, own, term in ops:
        if own == register and kind < nodes.OWN:
            return term if kind == nodes.EQUAL else nodes.NOBODY
    return nodes.NOBODY


def _indexes(edges: list[Edge], n: int) -> dict[int, int]:
    """For each position the register that most edges from it want to be equal to something."""
    found: dict[int, int] = {}
    for p in range(n):
        own = [ops for source, _, ops in edges if source == p]
        asked = [r for ops in own for r in {r for kind, r, _ in ops if kind == nodes.EQUAL}]
        usable = [r for r in asked if any(_equal_term(ops, r) != nodes.NOBODY for ops in own)]
        if usable:
            found[p] = max(set(usable), key=lambda r: (usable.count(r), -r))
    return found


def _range(ops: list[Op], register: int, kept: bool) -> tuple[int, int] | None:
    """The check (kind, term) by which an edge takes the runs of an ordered index, (EVERY, 0) if it takes all; None if
    it does more with the register than to check it once and forget it. `kept`: it is needed afterwards."""
    check = (nodes.EVERY, 0)
    old = True  # the register holds what it did before the event
    for kind, own, term in ops:
        if own != register or kind >= nodes.OWN or not old:
            continue
        if kind in (nodes.RESET, nodes.SET):
            old = False
        elif kind > nodes.SET or check[0] != nodes.EVERY:
            return None
        else:
            check = (kind, term)
    return None if old and kept else check


def _ordered(edges: list[list[Edge]], needed: list[set[int]], index: dict[int, int]) -> dict[int, tuple[int, dict]]:
    """The positions whose runs an ordered index finds: the register, and for each edge (by q and place) its range."""
    found: dict[int, tuple[int, dict]] = {}
    for p, registers in enumerate(needed):
        if len(registers) != 1 or p in index:
            continue
        (register,) = registers
        own = {(q, i): edge for q, to in enumerate(edges) for i, edge in enumerate(to) if edge[0] == p}
        ranges = {at: _range(ops, register, register in needed[at[0]]) for at, (_, _, ops) in own.items()}
        if any(contiguous for _, contiguous, _ in own.values()) or None in ranges.values():
            continue
        found[p] = register, ranges
    return found


def _near(contiguous: list[bool]) -> int:
    return nodes.ONLY_NEAR if contiguous and all(contiguous) else int(any(contiguous))


class Runs(NamedTuple):
    """How runs behave: `greedy` ones must take what they can, those `apart` are some for each start."""

    greedy: bool = False
    apart: bool = False


def registers_of(greedy: Greedy, keep: int, labels: dict[int, int], runs: Runs) -> nodes.Registers | str:
    """The node for runtime.registers, or what keeps the pattern from being run so.

    `labels`: the number of the label for each mask, of which `keep` are the bits that tell matches apart.
    """
    builder = _Builder(greedy, keep)
    why = builder.why_not()
    if why is not None:
        return why
    needed = builder.needed()
    edges: dict[int, list[Edge]] = defaultdict(list)
    for q in greedy.first:
        edges[q].append((nodes.FROM_START, False, builder.edge_ops(q, None, needed[q])))
    for p, follow in enumerate(greedy.follow):
        for f in follow:
            edges[f.position].append((p, f.contiguous, builder.edge_ops(f.position, f.inside, needed[f.position])))
    n = len(greedy.masks)
    flat = [edge for q in range(n) for edge in edges[q]]
    ops = [op for _, _, own in flat for op in own]
    index = _indexes(flat, n)
    # Of an ordered index a union of runs is taken, and none can be taken out.
    ordered = {} if runs.greedy or runs.apart else _ordered([edges[q] for q in range(n)], needed, index)
    numbers = {p: x for x, p in enumerate(ordered)}
    ranges = [
        ordered[source][1][q, i] if source in ordered else (nodes.EVERY, 0)
        for q in range(n)
        for i, (source, _, _) in enumerate(edges[q])
    ]

    def ints(values: Iterable[int]) -> np.ndarray:
        return np.array(list(values), np.int64)

    return nodes.Registers(
        guard=ints(greedy.guards),
        label=ints(labels[mask & keep] for mask in greedy.masks),
        last=ints(p in greedy.last for p in range(n)),
        goes_on=ints(bool(follow) for follow in greedy.follow),
        near=ints(_near([f.contiguous for f in follow]) for follow in greedy.follow),
        edge_of=np.concatenate([[0], np.cumsum([len(edges[q]) for q in range(n)])]).astype(np.int64),
        source=ints(source for source, _, _ in flat),
        contiguous=ints(contiguous for _, contiguous, _ in flat),
        wanted=ints(_equal_term(own, index.get(source)) for source, _, own in flat),
        index_of=ints(index.get(p, nodes.NOBODY) for p in range(n)),
        ordered_of=ints(numbers.get(p, nodes.NOBODY) for p in range(n)),
        sorted_by=ints(ordered[p][0] if p in ordered else nodes.NOBODY for p in range(n)),
        range_kind=ints(kind for kind, _ in ranges),
        range_term=ints(term for _, term in ranges),
        holds=ints(map(len, needed)),
        op_of=np.concatenate([[0], np.cumsum([len(own) for _, _, own in flat])]).astype(np.int64),
        op_kind=ints(kind for kind, _, _ in ops),
        op_register=ints(register for _, register, _ in ops),
        op_term=ints(term for _, _, term in ops),
        n_registers=builder.n_registers + runs.apart,
        greedy=runs.greedy,
        apart=runs.apart,
    )
