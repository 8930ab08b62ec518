"""This file composes programs: formula → runtime.nodes, where the automaton is a product or a subset construction.

Maximal subformulas that planner.automata.cea can build stay flat automata; what joins them becomes a node, of which
runtime.automata.machines make the states that the data reaches. `ALL(A a, B b) ; C c` becomes

    Join
      Interleave
        Flat    0 -[A / a]-> 1
        Flat    0 -[B / b]-> 1
      Flat      0 -[C / c]-> 1
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import reduce
from itertools import product
from typing import NamedTuple

import numpy as np

from planner import cel
from planner.acel import Aggregate, Judged, Measured
from planner.across import Across, Candidate, Pending
from planner.automata.automaton import Automaton, Guard, Label, distinct_guards, trim
from planner.automata.cea import to_cea
from planner.cel import searching
from planner.errors import PlanError
from planner.formula import Formula
from planner.rewrite.across import level_of, way
from planner.terms import Comparison, Predicate, Register, Related, Side, Term, Test, Window, parts_of
from runtime import clauses, nodes
from runtime import program as rt
from runtime.clauses import NEGATED, Choice, Clause, Compared, Deciding, Measure, Operand, Profiles
from runtime.marks import is_hidden
from runtime.nodes import BEGIN, END, FIRST_VARIABLE, VISIBLE
from runtime.position_automaton import PositionAutomaton
from runtime.relations import Relation


@dataclass
class Composer:
    """Numbers variables, guards and inner windows while it translates. Event guards come first in the end."""

    variables: dict[str, int] = field(default_factory=dict)
    guards: dict[Guard, int] = field(default_factory=dict)
    filters: dict[Guard, int] = field(default_factory=dict)
    windows: dict[Window, int] = field(default_factory=dict)
    terms: dict[tuple[str, str], int] = field(default_factory=dict)  # (SQL, the type it is compared in)
    numbers: set[int] = field(
        default_factory=set
    )  # terms whose codes must be their values: relations compute with them
    tables: dict[int, tuple[int, int]] = field(default_factory=dict)  # the terms of what is tabulated, by its number
    decides: dict[int, Deciding] = field(default_factory=dict)  # by the number of a negated part
    automata: list[Automaton] = field(default_factory=list)

    def mask(self, names: Label) -> int:
        return reduce(
            lambda mask, name: mask | 1 << (FIRST_VARIABLE + self.variables.setdefault(name, len(self.variables))),
            sorted(names),
            0,
        )

    def window(self, window: Window) -> int:
        return self.windows.setdefault(window, len(self.windows))

    def node(self, formula: Formula) -> nodes.Node:
        """`(A ; B) AND C` becomes Both(Flat A ; B, Flat C): what is flat as a whole, else an operator of its parts."""
        if formula.is_flat():
            return self.flat(formula)
        if formula.node is not None:
            return formula.node(*map(self.node, formula.children()))
        return self.condition(formula) or self.operator(formula)

    def condition(self, formula: Formula) -> nodes.Node | None:
        """The node of what asks something of matches, or binds them; None for any other."""
        match formula:
            case cel.As(inner, variable):
                return nodes.Bind(self.node(inner), self.mask(frozenset({variable})))
            case cel.Filter(inner, variable, predicate):
                return nodes.Restrict(self.node(inner), (self.side(variable, predicate),))
            case cel.FilterAny(inner, sides):
                return nodes.Restrict(self.node(inner), tuple(self.side(*side) for side in sides))
            case cel.Compare(inner, sides):
                return nodes.Compare(self.node(inner), self.compared(sides))
            case Measured(inner):
                return self.measured(formula, self.node(inner))
            case Across(inner):
                deciding = self.deciding(formula)
                return nodes.Across(self.node(inner), deciding)
            case Candidate(inner, number):
                return nodes.Candidate(self.node(inner), number, self.decides[number].profiles)
            case Pending(inner, number, level):
                return nodes.Pending(self.node(inner), self.decides[number], level)
            case cel.Agree(inner, terms, type):
                return nodes.Agree(
                    self.node(inner),
                    tuple(
                        (VISIBLE if v is None else self.mask(frozenset({v})), self.term(sql, type)) for v, sql in terms
                    ),
                )
        return None

    def operator(self, formula: Formula) -> nodes.Node:
        """The node of an operator that says more than which its parts are."""
        match formula:
            case Aggregate(inner) | Judged(inner):
                return nodes.Ending(self.node(inner), self.mask(formula.marks))
            case cel.Project(inner, keep):
                return nodes.Keep(self.node(inner), self.mask(keep & inner.binds()))
            case cel.Sequence(left, right):
                return nodes.Join(self.node(left), self.node(right))
            case cel.Contiguous(left, right):
                return nodes.Join(self.node(left), self.node(right), contiguous=True)
            case cel.Absent(left, vetoes, right):
                return nodes.Join(self.node(left), self.node(right), vetoes=tuple(map(self.node, vetoes)))
            case cel.Iteration(inner):
                return nodes.Loop(self.node(inner), 1, None)
            case cel.ContiguousIteration(inner):
                return nodes.Loop(self.node(inner), 1, None, contiguous=True)
            case cel.Repeat(inner, low, high, contiguous):
                return nodes.Loop(self.node(inner), low, high, contiguous)
            case cel.And(left, right):
                hidden = frozenset(v for v in formula.binds() if is_hidden(v))
                return nodes.Both(self.node(left), self.node(right), self.mask(hidden))
            case cel.Strategy("STRICT", inner):
                return nodes.Strict(self.node(inner))
            case cel.Strategy(name, inner):
                return nodes.Greatest(name, self.node(inner))
            case cel.Within(inner, window):
                return nodes.Within(self.node(inner), self.window(window))
            case cel.NotBefore(vetoes, inner, window):
                return self.not_before(vetoes, self.node(inner), window)
            case cel.NotAfter(inner, vetoes, window):
                return nodes.NotAfter(self.node(inner), tuple(map(self.node, vetoes)), self.window(window))
        raise TypeError(f"not a formula: {formula!r}")

    def not_before(
        self, vetoes: tuple[Formula, ...], inner: nodes.Node, window: Window
    ) -> nodes.NotBefore | nodes.NotBeforeEach:
        made = tuple(map(self.node, vetoes))
        if not any(map(searching, vetoes)):
            return nodes.NotBefore(made, inner, self.window(window))
        self.guards.setdefault(frozenset(), len(self.guards))  # a window can begin at any event
        return nodes.NotBeforeEach(made, inner, self.window(window))

    def flat(self, formula: Formula) -> nodes.Flat:
        automaton = trim(to_cea(formula))
        self.automata.append(automaton)
        labels = tuple(dict.fromkeys(t.label for t in automaton.transitions if t.label))
        number = {label: i for i, label in enumerate(labels)}
        for guard in distinct_guards(automaton.transitions):
            self.guards.setdefault(guard, len(self.guards))
        rows = [
            (t.source, self.guards[t.guard], number[t.label], t.target)
            if t.label
            else (t.source, rt.ALWAYS, rt.SKIP, t.target)
            for t in automaton.transitions
        ]
        return nodes.Flat(
            np.array(rows, np.int64).reshape(len(rows), 4),
            tuple(map(self.mask, labels)),
            automaton.initial,
            automaton.final,
            formula.may_be_empty(),
        )

    def term(self, sql: str, type: str) -> int:
        return self.terms.setdefault((sql, type), len(self.terms))

    def compared(self, sides: tuple[Side, ...]) -> Compared:
        in_a_row = _in_a_row(sides)
        number = {variable: i for i, variable in enumerate(in_a_row)}

        def operand(part: Term | Test, what: int) -> Operand:
            return Operand(number[part.variable], _which(part.of, in_a_row[part.variable]), what)

        comparisons, related, tests = [], [], []
        for side in sides:
            if isinstance(side, Test):
                tests.append(operand(side, self.side(side.variable, side.predicate)[1]))
            elif isinstance(side, Related):
                numbers = zip(side.terms, self.numbers_of(side), strict=True)
                related.append((tuple(operand(term, number) for term, number in numbers), side.relation))
            else:
                left, right = (operand(part, self.term(part.sql, side.type)) for part in (side.left, side.right))
                comparisons.append((left, side.op, right))
        choices = tuple(Choice(self.mask(frozenset({v})), many) for v, many in in_a_row.items())
        return Compared(choices, tuple(comparisons), tuple(tests), tuple(related))

    def measured(self, formula: Measured, inner: nodes.Node) -> nodes.Measured:
        registers = formula.registers
        made = []
        for one in registers:
            mask = VISIBLE if one.variable is None else self.mask(frozenset({one.variable}))
            term, key, *_ = (*(self.term(sql, type) for sql, type in one.terms), -1, -1)
            self.numbers |= {term, key} - {-1}
            of_floats = [type in ("float", "double") for type in (one.type, one.key_type)]
            made.append(clauses.Register(one.function, mask, term, of_floats[0], key, of_floats[1], one.scale, one.own))
        sides = tuple(
            Measure(registers.index(side.left), side.op, other=registers.index(side.right))
            if isinstance(side.right, Register)
            else Measure(registers.index(side.left), side.op, side.right)
            for side in formula.sides
        )
        return nodes.Measured(inner, tuple(made), sides, formula.condition)

    def numbers_of(self, side: Related) -> tuple[int, ...]:
        """The terms that a relation computes with, or looks up."""
        found = tuple(self.term(term.sql, type) for term, type in zip(side.terms, side.types, strict=True))
        table = side.relation.table
        if table is None:
            self.numbers.update(found)
        else:
            left, right = found
            self.tables[table] = left, right
        return found

    def deciding(self, across: Across) -> Deciding:
        """What is looked at of the events inside and outside of the negated part; known before the part is composed."""
        number = across.number
        choices_around = [p for p in way(across.inner, number) if isinstance(p, Pending) and p.number == number]
        own = [part.binds() for part in (across.inner, *choices_around)]
        looked = _Looked(self)
        clauses = [looked.clause(sides) for sides in across.clauses]
        profiles = Profiles(
            choices=tuple(Choice(self.mask(frozenset({v})), many) for v, many in looked.choices),
            terms=tuple(tuple(terms) for terms, _ in looked.choices.values()),
            guards=tuple(tuple(guards) for _, guards in looked.choices.values()),
            levels=tuple(NEGATED if (at := level_of(v, own)) is None else at for v, _ in looked.choices),
        )
        self.decides[number] = Deciding(number, profiles, tuple(map(looked.placed, clauses)))
        return self.decides[number]

    def side(self, variable: str | None, predicate: Predicate) -> tuple[int, int]:
        """(mask of the variable, guard); guards of filters are numbered from -2 down until event guards are known."""
        mask = VISIBLE if variable is None else self.mask(frozenset({variable}))
        guard = self.filters.setdefault(frozenset({predicate}), len(self.filters))
        return mask, -2 - guard


class _Look(NamedTuple):
    """What an operand looks at: of which events, the earlier or later, a term (kind 0) or guard (1), by its number."""

    key: tuple[str, int]
    which: int
    kind: int
    what: int


_Sides = tuple[list[tuple[_Look, str, _Look]], list[_Look], list[tuple[tuple[_Look, ...], Relation]]]


@dataclass
class _Looked:
    """All that the clauses of an Across look at, while they are read: (variable, events in a row) → terms, guards."""

    composer: Composer
    choices: dict[tuple[str, int], tuple[list[int], list[int]]] = field(default_factory=dict)

    def clause(self, sides: tuple[Side, ...]) -> _Sides:
        """An OR: comparisons, tests, relations."""
        composer, in_a_row = self.composer, _in_a_row(sides)

        def look(part: Term | Test, kind: int, what: int) -> _Look:
            key = part.variable, in_a_row[part.variable]
            numbers = self.choices.setdefault(key, ([], []))[kind]
            if what not in numbers:
                numbers.append(what)
            return _Look(key, _which(part.of, in_a_row[part.variable]), kind, what)

        def term(part: Term, type: str) -> _Look:
            return look(part, 0, composer.term(part.sql, type))

        comparisons = [(term(s.left, s.type), s.op, term(s.right, s.type)) for s in sides if isinstance(s, Comparison)]
        tests = [look(s, 1, composer.side(s.variable, s.predicate)[1]) for s in sides if isinstance(s, Test)]
        related = [
            (tuple(look(t, 0, n) for t, n in zip(s.terms, composer.numbers_of(s), strict=True)), s.relation)
            for s in sides
            if isinstance(s, Related)
        ]
        return comparisons, tests, related

    def placed(self, clause: _Sides) -> Clause:
        """The same, with operands by their places in the profiles; once all clauses are read."""
        comparisons, tests, related = clause
        index = {key: i for i, key in enumerate(self.choices)}

        def at(look: _Look) -> Operand:
            terms, guards = self.choices[look.key]
            number = guards.index(look.what) + len(terms) if look.kind else terms.index(look.what)
            return Operand(index[look.key], look.which, number)

        return Clause(
            tuple((at(left), op, at(right)) for left, op, right in comparisons),
            tuple(map(at, tests)),
            tuple((tuple(map(at, looks)), relation) for looks, relation in related),
        )


MAX_LABELS = 1 << 14  # sets of variables that one event may be put into
OF_THREE = ("first", "middle", "last")


def _in_a_row(sides: tuple[Side, ...]) -> dict[str, int]:
    """The variables of an OR, and how many consecutive events of each it speaks of."""
    found: dict[str, int] = {}
    for side in sides:
        for part in parts_of(side):
            many = 1 if part.of == "each" else 3 if part.of in OF_THREE else 2
            found[part.variable] = max(found.get(part.variable, 1), many)
    return found


def _which(of: str, in_a_row: int) -> int:
    """Of so many consecutive events; 'each' beside the earlier of two is the later."""
    if in_a_row == 1:
        return 0
    return OF_THREE.index(of) if of in OF_THREE else int(of != "earlier")


def masks(node: nodes.Node) -> frozenset[int]:
    """All masks that moves of the node can bear, other than those that mark nothing; a superset."""
    match node:
        case nodes.Flat(_, own):
            return _begun(frozenset(own))
        case PositionAutomaton(_, own):
            return _begun(frozenset(own))
        case nodes.Bind(inner, mask):
            return frozenset(m | mask if m & VISIBLE else m for m in masks(inner))
        case nodes.Ending(inner, mask):
            within = masks(inner)
            return within | {m | mask for m in (*within, 0, BEGIN)}
        case nodes.Keep(inner, mask):
            return frozenset(m & (mask | BEGIN | END) for m in masks(inner))
        case nodes.Join(left, right) | nodes.Either(left, right):
            return _begun(masks(left) | masks(right))
        case nodes.Both(left, right, hidden):
            alike: dict[int, list[int]] = defaultdict(list)
            for mask in masks(right):
                alike[mask & ~hidden].append(mask)
            return _united((a, b) for a in masks(left) for b in alike[a & ~hidden])
        case nodes.Interleave(left, right):
            a, b = masks(left), masks(right)
            return _begun(a | b | _united(product(a, b)))
        case nodes.Loop(inner):
            return _begun(masks(inner))
        case nodes.NotAfter(inner):
            return frozenset(m | end for m in masks(inner) for end in (0, END))
    return masks(node.inner)  # type: ignore[attr-defined]


def _united(pairs: Iterable[tuple[int, int]]) -> frozenset[int]:
    """The masks of events that two parts take at once. PlanError LABEL_LIMIT where they are too many to number."""
    found = set()
    for a, b in pairs:
        found.add(a | b)
        if len(found) > MAX_LABELS:
            hint = "Give ALL fewer parts: match some of them in a subquery first, or join their results."
            raise PlanError("LABEL_LIMIT", found=f"more than {MAX_LABELS}", limit=MAX_LABELS, hint=hint)
    return frozenset(found)


def _begun(found: frozenset[int]) -> frozenset[int]:
    return frozenset(m for mask in found for m in (mask & ~BEGIN, mask | BEGIN))


def renumbered(node: nodes.Node, n_event_guards: int) -> nodes.Node:
    """The tree with the guards of filters (numbered -2, -3, …) put after the event guards."""
    return node.with_guards(lambda guard: n_event_guards - 2 - guard)
