"""CEL → CEA, one function per operator ([CEL] Theorem 6.2).

⟦φ⟧(i, j) = ⟦A_φ⟧(i, j) for every operator: an automaton begins at i and waits itself, by a TRUE / ∅ loop, for the
first event that it marks. Each function returns a fragment (transitions, initial, final); states are numbered by one
counter, so that two fragments never share one. Iteration does not copy its operand, counted repetition does.

This is the part of CEL whose automata are as large as the formula. What the theorem builds by products and subset
constructions (AND, ALL, what excludes, strategies) is composed of such automata in runtime.automata.machines, where
only the states are made that the data reaches.

Zero copies are no run of an automaton: a fragment says that it `may_be_empty`, and sequences go around it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

from planner import cel
from planner.acel import Aggregate, Judged
from planner.automata.automaton import NOTHING, TRUE, Automaton, Transition, relabel, trim
from planner.errors import PlanError
from planner.formula import Formula
from planner.terms import Predicate

MAX_STATES = 20_000
MAX_TRANSITIONS = 200_000


class Fragment(NamedTuple):
    transitions: list[Transition]
    initial: list[int]
    final: list[int]
    may_be_empty: bool = False


@dataclass
class _Builder:
    limit: int
    n_states: int = 0

    def state(self) -> int:
        self.n_states += 1
        if self.n_states > self.limit:
            raise PlanError(
                "AUTOMATON_LIMIT",
                found=f"more than {self.limit}",
                limit=self.limit,
                hint="Shorten the pattern or its repetitions.",
            )
        return self.n_states - 1

    def build(self, formula: Formula) -> Fragment:
        return self.checked(self._built(formula))

    def checked(self, built: Fragment) -> Fragment:
        """The same. PlanError TRANSITION_LIMIT where it is too large: `;` and loops join all ends to all beginnings."""
        if len(built.transitions) > MAX_TRANSITIONS:
            hint = "Shorten the pattern or its repetitions."
            raise PlanError("TRANSITION_LIMIT", found=len(built.transitions), limit=MAX_TRANSITIONS, hint=hint)
        return built

    def _built(self, formula: Formula) -> Fragment:
        match formula:
            case cel.Event(type, marks):
                return self.event(type, marks)
            case cel.As(inner, variable):
                return bind(self.build(inner), variable)
            case cel.Filter(inner, variable, predicate):
                return restrict(self.build(inner), variable, predicate)
            case cel.FilterAny(inner, sides):
                return reduce(either, [restrict(self.build(inner), *side) for side in sides])
            case cel.Sequence(left, right):
                return sequence(self.build(left), self.build(right))
            case cel.Contiguous(left, right):
                return self.contiguous(self.build(left), self.build(right))
            case cel.Iteration(inner):
                return iteration(self.build(inner))
            case cel.ContiguousIteration(inner):
                return self.contiguous_iteration(self.build(inner))
            case cel.Repeat(inner, low, high, contiguous):
                return self.repeat(inner, low, high, contiguous)
            case cel.Or(left, right):
                return either(self.build(left), self.build(right))
            case Aggregate(inner) | Judged(inner):
                return self.ended(self.build(inner), formula.marks)
        raise TypeError(f"not a formula: {formula!r}")

    def event(self, type: str | None, marks: frozenset[str]) -> Fragment:
        """R: wait, then mark one event (Fig. 5)."""
        wait, done = self.state(), self.state()
        guard = TRUE if type is None else frozenset({type})
        return Fragment([Transition(wait, guard, marks, done), Transition(wait, TRUE, NOTHING, wait)], [wait], [done])

    def contiguous(self, first: Fragment, second: Fragment) -> Fragment:
        """φ : ψ. A new state joins them; only marking transitions come in and go out, so nothing lies between."""
        joint, ends, begins = self.state(), set(first.final), set(second.initial)
        return _joined(
            first,
            second,
            [t._replace(target=joint) for t in first.transitions if t.label and t.target in ends]
            + [t._replace(source=joint) for t in second.transitions if t.label and t.source in begins],
        )

    def ended(self, inner: Fragment, marks: frozenset[str]) -> Fragment:
        """φ with marks on its last event: what ends φ also goes to a new state, the only end, with them."""
        done, ends = self.state(), set(inner.final)
        into = [
            t._replace(label=t.label | marks, target=done) for t in inner.transitions if t.label and t.target in ends
        ]
        return Fragment(inner.transitions + into, inner.initial, [done])

    def contiguous_iteration(self, inner: Fragment) -> Fragment:
        """φ⊕: the same joint, from the end of φ to its own beginning."""
        joint = self.state()
        into = [t._replace(target=joint) for t in inner.transitions if t.label and t.target in inner.final]
        out = [t._replace(source=joint) for t in inner.transitions if t.label and t.source in inner.initial]
        # A round of one event begins and ends with the same transition.
        around = [t._replace(target=joint) for t in out if t.target in inner.final]
        return inner._replace(transitions=inner.transitions + into + out + around)

    def repeat(self, inner: Formula, low: int, high: int | None, contiguous: bool) -> Fragment:
        """φ{n,m} is φ ; (φ ; (…)?)? from the inside out, so that a copy is only ever joined to the next one."""
        join = self.contiguous if contiguous else sequence
        loop = self.contiguous_iteration if contiguous else iteration
        last = self.build(inner)
        rest = loop(last) if high is None else last
        for copies in range((max(low, 1) if high is None else high) - 1, 0, -1):
            rest = join(self.build(inner), rest._replace(may_be_empty=rest.may_be_empty or copies >= low))
            self.checked(rest)
        return rest._replace(may_be_empty=rest.may_be_empty or low == 0)


def bind(inner: Fragment, variable: str) -> Fragment:
    """φ AS x: x is added to every marking transition."""
    return inner._replace(
        transitions=[t._replace(label=t.label | {variable}) if t.label else t for t in inner.transitions]
    )


def restrict(inner: Fragment, variable: str | None, predicate: Predicate) -> Fragment:
    """φ FILTER P(x): P is demanded of every event that is marked with x (with anything, if x is None)."""
    return inner._replace(
        transitions=[
            t._replace(guard=t.guard | {predicate}) if t.label and (variable is None or variable in t.label) else t
            for t in inner.transitions
        ]
    )


def sequence(first: Fragment, second: Fragment) -> Fragment:
    """φ ; ψ: what ends φ also goes on to wait for ψ."""
    return _joined(first, second, _redirected(first, second.initial))


def _joined(first: Fragment, second: Fragment, bridge: list[Transition]) -> Fragment:
    """Two parts in a row, over a bridge; a part that may be empty can be left out, if the other is not."""
    return Fragment(
        first.transitions + second.transitions + bridge,
        first.initial + (second.initial if first.may_be_empty else []),
        second.final + (first.final if second.may_be_empty else []),
        first.may_be_empty and second.may_be_empty,
    )


def iteration(inner: Fragment) -> Fragment:
    """φ+: what ends a round also waits for the next."""
    return inner._replace(transitions=inner.transitions + _redirected(inner, inner.initial))


def either(left: Fragment, right: Fragment) -> Fragment:
    """φ OR ψ: side by side."""
    return Fragment(
        left.transitions + right.transitions,
        left.initial + right.initial,
        left.final + right.final,
        left.may_be_empty or right.may_be_empty,
    )


def _redirected(inner: Fragment, targets: list[int]) -> list[Transition]:
    ends = set(inner.final)
    return [t._replace(target=q) for t in inner.transitions if t.target in ends for q in targets]


def to_cea(formula: Formula, max_states: int = MAX_STATES) -> Automaton:
    """The trimmed CEA of a formula; states and transitions are linear in it but for `;` and `+` (products of borders).

    PlanError AUTOMATON_LIMIT if it needs more than `max_states`.
    """
    builder = _Builder(max_states)
    built = builder.build(formula)
    return trim(Automaton(builder.n_states, tuple(built.transitions), tuple(built.initial), tuple(built.final)))


def automaton_of(formula: Formula, variables: Iterable[str]) -> Automaton:
    """The trimmed CEA whose labels hold only `variables`."""
    return trim(relabel(to_cea(formula), frozenset(variables)))
