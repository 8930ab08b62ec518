"""A formula as branches, one function for each operator.

`;` and `:` are joins on order and on place, ALL is a join, AND one by equal events, OR a union, {n,m} and ? are unions
of so many joins, what must not happen is an anti-join, and so is a strategy inside the pattern: no rival is greater.
A loop without an end is no finite algebra, unless a window of n EVENTS ends it.

    A a ; B{1,2} b        A⋈B ∪ A⋈B⋈B
    SEQ(A, !B, C)         (A⋈C) ▷ B

Source: [INTER], and Grez, Riveros, Ugarte, Vansummeren (planner.cel) for what it does not have.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

from planner import cel
from planner.across import Across, Candidate
from planner.formula import Formula
from planner.relational import filters
from planner.relational.branch import Absence, Branch, Slot, apart, beside, followed
from planner.relational.conditions import SEARCH, Better, Near, Ordered, Same, Unrelated, guard_of
from planner.terms import Window
from runtime.marks import is_hidden

MOST_BRANCHES = 64
MOST_SLOTS = 12  # events of a join

Branches = list[Branch]


class Relating:
    """Makes branches of formulas, and numbers their events. `most`: so many events fit the window around, if it counts
    them."""

    def __init__(self, most: int | None = None) -> None:
        self.most = most
        self.n_slots = 0

    def of(self, formula: Formula) -> Branches:
        """The branches of a formula; events that another call numbered are others."""
        make = OPERATORS.get(type(formula), _other)
        made = make(self, formula)
        if len(made) > MOST_BRANCHES:
            raise Unrelated(f"the pattern has {len(made)} ways to match, more than {MOST_BRANCHES}")
        if any(len(branch.slots) > MOST_SLOTS for branch in made):
            raise Unrelated(f"a match can have more than {MOST_SLOTS} events")
        return made

    def each(self, formula: Formula, change: Callable[[Branch], Branch]) -> Branches:
        return [change(branch) for branch in self.of(formula)]

    def vetoes(self, formulas: Sequence[Formula], place: Callable[[Branch], Absence]) -> tuple[Absence, ...]:
        """What must not happen, put in its place; a Candidate still waits for its Across."""
        found = []
        for formula in formulas:
            number = formula.number if isinstance(formula, Candidate) else None
            inner = formula.inner if isinstance(formula, Candidate) else formula
            found += [replace(place(branch), number=number) for branch in self.of(inner)]
        return tuple(found)


# ---------------------------------------------------------------- events and what is bound


def _event(made: Relating, formula: cel.Event) -> Branches:
    number = made.n_slots
    made.n_slots += 1
    return [Branch((Slot(number, guard_of(formula.type), formula.marks),), first=(number,), last=(number,))]


def _as(made: Relating, formula: cel.As) -> Branches:
    def named(branch: Branch) -> Branch:
        slots = (replace(s, marks=s.marks | {formula.variable}) if s.marks else s for s in branch.slots)
        return replace(branch, slots=tuple(slots))

    return made.each(formula.inner, named)


def _project(made: Relating, formula: cel.Project) -> Branches:
    def kept(branch: Branch) -> Branch:
        return replace(branch, slots=tuple(replace(s, marks=s.marks & formula.keep) for s in branch.slots))

    return made.each(formula.inner, kept)


# ---------------------------------------------------------------- joins and unions


def _sequence(made: Relating, formula: cel.Sequence | cel.Contiguous) -> Branches:
    contiguous = isinstance(formula, cel.Contiguous)
    return [followed(a, b, contiguous) for a, b in product(made.of(formula.left), made.of(formula.right))]


def _repeat(made: Relating, formula: cel.Repeat) -> Branches:
    high = made.most if formula.high is None else formula.high
    if high is None:
        raise Unrelated("a loop without an end is no finite algebra: write {1,5}, or a window of EVENTS", formula)
    low = 0 if formula.inner.may_be_empty() else formula.low
    found = [Branch()] if low == 0 else []
    copies = [Branch()]
    for n in range(1, high + 1):
        if n > MOST_SLOTS:
            raise Unrelated(f"a loop of up to {high} rounds is a join of more than {MOST_SLOTS} events", formula)
        rounds = [branch for branch in made.of(formula.inner) if branch.slots]
        copies = [followed(before, one, formula.contiguous) for before, one in product(copies, rounds)]
        if len(copies) > MOST_BRANCHES:
            raise Unrelated(f"a loop has more than {MOST_BRANCHES} ways to match", formula)
        found += copies if n >= low else []
    return found


def _iteration(made: Relating, formula: cel.Iteration | cel.ContiguousIteration) -> Branches:
    return _repeat(made, cel.Repeat(formula.inner, 1, None, isinstance(formula, cel.ContiguousIteration)))


def _or(made: Relating, formula: cel.Or) -> Branches:
    found = [*made.of(formula.left), *made.of(formula.right)]
    empty = [branch for branch in found if not branch.slots]
    return [*empty[:1], *(branch for branch in found if branch.slots)]


def _all(made: Relating, formula: cel.All) -> Branches:
    return [beside(a, b) for a, b in product(made.of(formula.left), made.of(formula.right))]


def _and(made: Relating, formula: cel.And) -> Branches:
    pairs = product(made.of(formula.left), made.of(formula.right))
    return [both for a, b in pairs if (both := _both(a, b)) is not None]


def _both(left: Branch, right: Branch) -> Branch | None:
    """The intersection: the same start, end and events of each variable; None if these can never be the same."""
    variables = {v for v in left.variables() | right.variables() if not is_hidden(v)}
    if any(not left.bound(v) or not right.bound(v) for v in variables):
        return None
    same = [Same(left.bound(v), right.bound(v)) for v in sorted(variables)]
    hidden = (replace(s, marks=frozenset(filter(is_hidden, s.marks))) for s in right.slots)
    ends = (Ordered(right.start, "=", left.start), Ordered(right.end, "=", left.end))
    return Branch(
        (*left.slots, *hidden),
        (*left.conditions, *right.conditions, *ends, *same),
        (*left.absences, *right.absences),
        left.first,
        left.last,
        left.before | right.before,
    )


# ---------------------------------------------------------------- what must not happen


def _absent(made: Relating, formula: cel.Absent) -> Branches:
    def between(left: Branch, right: Branch) -> Branch:
        vetoes = made.vetoes(
            formula.vetoes,
            lambda veto: (v := veto.searched(replace(left.end, plus=1))).absent(*apart(left, v), *apart(v, right)),
        )
        return followed(left, right).without(*vetoes)

    return [between(a, b) for a, b in product(made.of(formula.left), made.of(formula.right))]


def _not_before(made: Relating, formula: cel.NotBefore) -> Branches:
    def before(branch: Branch) -> Branch:
        def place(veto: Branch) -> Absence:
            placed = veto.absent()
            if placed.searches:
                raise Unrelated("what must not happen before the match asks where its window begins", formula)
            near = (Near(f, e, formula.window) for f in veto.first for e in branch.last)
            return veto.absent(*apart(veto, branch), *near)

        return branch.without(*made.vetoes(formula.vetoes, place))

    return made.each(formula.inner, before)


def _not_after(made: Relating, formula: cel.NotAfter) -> Branches:
    def after(branch: Branch) -> Branch:
        def place(veto: Branch) -> Absence:
            near = (Near(f, e, formula.window) for f in branch.first for e in veto.last)
            return veto.searched(replace(branch.end, plus=1)).absent(*apart(branch, veto), *near)

        return branch.without(*made.vetoes(formula.vetoes, place))

    return made.each(formula.inner, after)


def _inside(made: Relating, formula: Formula) -> Branches:
    """An operator that leaves out matches of its positive part with a match of the other inside, from start to end."""
    (positive,) = formula.positive()

    def unless(branch: Branch) -> Branch:
        def place(veto: Branch) -> Absence:
            begins, ends = Ordered(veto.start, ">=", branch.start), Ordered(veto.end, "<=", branch.end)
            return veto.searched(branch.start).absent(begins, ends)

        return branch.without(*made.vetoes(formula.negated(), place))

    return made.each(positive, unless)


# ---------------------------------------------------------------- where a search begins, strategies, windows


def _start(made: Relating, formula: cel.Start) -> Branches:
    return made.each(formula.inner, lambda branch: branch.asking(Ordered(branch.start, "=", SEARCH)))


def _strategy(made: Relating, formula: cel.Strategy) -> Branches:
    if formula.name == "STRICT":
        return made.each(formula.inner, Branch.gapless)

    def unrivalled(branch: Branch) -> Branch:
        """No match of the same search and end is greater: an anti-join with all of them."""

        def rival(other: Branch) -> Absence:
            if next(other.numbers(), None) is not None:
                raise Unrelated("what must not happen is compared with events outside of a strategy around it", formula)
            same = Ordered(other.end, "=", branch.end), Ordered(SEARCH, "<=", other.start)
            return other.absent(*same, Better(formula.name, other.bound(), branch.bound()))

        return branch.without(*map(rival, made.of(formula.inner)))

    return made.each(formula.inner, unrivalled)


def _within(made: Relating, formula: cel.Within) -> Branches:
    before = made.most
    made.most = most_events(formula.window, before)
    found = within(made.of(formula.inner), formula.window)
    made.most = before
    return found


def within(branches: Branches, window: Window) -> Branches:
    """What fits the window: no branch with more events, one after the other, than it has."""
    most = most_events(window)
    fitting = (b for b in branches if most is None or b.in_order(b.events) is None or len(b.slots) <= most)
    return [branch.within(window) for branch in fitting]


def most_events(window: Window | None, before: int | None = None) -> int | None:
    """How many events fit a window, if it counts them; `before`: what is known already."""
    if window is None or window.kind != "events":
        return before
    return int(window.size) if before is None else min(before, int(window.size))


# ---------------------------------------------------------------- filters


def _filter(made: Relating, formula: cel.Filter) -> Branches:
    return made.each(formula.inner, lambda branch: filters.filtered(branch, formula.variable, formula.predicate))


def _filter_any(made: Relating, formula: cel.FilterAny) -> Branches:
    return made.each(formula.inner, lambda branch: filters.passing(branch, formula.sides))


def _compare(made: Relating, formula: cel.Compare) -> Branches:
    return made.each(formula.inner, lambda branch: filters.compared(branch, formula.sides))


def _agree(made: Relating, formula: cel.Agree) -> Branches:
    return made.each(formula.inner, lambda branch: filters.agreeing(branch, formula.terms, formula.type))


def _across(made: Relating, formula: Across) -> Branches:
    return made.each(formula.inner, lambda branch: filters.decided(branch, formula.number, formula.clauses))


def _other(made: Relating, formula: Formula) -> Branches:
    if formula.filters and formula.negated():
        return _inside(made, formula)
    raise Unrelated(f"{formula.head()} is computed of matches, one by one", formula)


OPERATORS: dict[type[Formula], Callable[[Relating, Any], Branches]] = {
    cel.Event: _event,
    cel.As: _as,
    cel.Project: _project,
    cel.Sequence: _sequence,
    cel.Contiguous: _sequence,
    cel.Repeat: _repeat,
    cel.Iteration: _iteration,
    cel.ContiguousIteration: _iteration,
    cel.Or: _or,
    cel.All: _all,
    cel.And: _and,
    cel.Absent: _absent,
    cel.NotBefore: _not_before,
    cel.NotAfter: _not_after,
    cel.Start: _start,
    cel.Strategy: _strategy,
    cel.Within: _within,
    cel.Filter: _filter,
    cel.FilterAny: _filter_any,
    cel.Compare: _compare,
    cel.Agree: _agree,
    Across: _across,
}
"""What makes the branches of each operator; one that leaves out matches by what lies inside them needs no line."""
