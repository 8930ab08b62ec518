"""Which formulas a position automaton can be made of, and how they are made ready for that.

SEQ(!X, A a, B b, !Y) AS w   gathered: what must not happen before and after the whole stands around it,
                             !Y (!X (SEQ(A a, B b) AS w))
STRICT(A ; B+)               strictly: A : B:+
ALL((A a ; B b), C c) WHERE …   any_order: the chains a, b and c, and the comparisons inside
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from types import UnionType
from typing import NamedTuple

from planner import cel
from planner.acel import Aggregate, Judged
from planner.across import Across
from planner.formula import Formula
from planner.query import Window
from planner.rewrite.across import holds, way
from planner.terms import parts_of
from runtime.marks import is_hidden


def gathered(formula: Formula) -> Formula:
    """The absences before and after the whole put around it, before inside after; As and filters move inside them."""
    before: dict[Window, tuple[Formula, ...]] = {}
    after: dict[Window, tuple[Formula, ...]] = {}
    across: list[Across] = []

    def bare(part: Formula) -> Formula:
        match part:
            case cel.As(inner) | cel.Filter(inner) | cel.FilterAny(inner) | cel.Compare(inner) | cel.Agree(inner):
                return replace(part, inner=bare(inner))
            case cel.NotBefore(vetoes, inner, window):
                before[window] = before.get(window, ()) + vetoes
                return bare(inner)
            case cel.NotAfter(inner, vetoes, window):
                after[window] = after.get(window, ()) + vetoes
                return bare(inner)
            case Across(inner):
                if is_around(part):
                    across.append(part)
                    return bare(inner)
                return replace(part, inner=bare(inner))
        return part

    whole = bare(formula)
    for window, vetoes in before.items():
        whole = cel.NotBefore(vetoes, whole, window)
    for window, vetoes in after.items():
        whole = cel.NotAfter(whole, vetoes, window)
    for part in across:
        whole = replace(part, inner=whole)
    return whole


def is_around(across: Across, sides: type | UnionType = cel.NotBefore | cel.NotAfter) -> bool:
    """Does it decide about what must not happen before or after the whole?"""
    around = [part for part in way(across.inner, across.number) if isinstance(part, sides)]
    return any(holds(veto, across.number) for part in around for veto in part.negated())


SIMPLE = (
    cel.Event, cel.As, cel.Filter, cel.FilterAny, cel.Compare, cel.Agree, cel.Sequence, cel.Contiguous, cel.Iteration,
    cel.ContiguousIteration, cel.Repeat, cel.Or, Aggregate, Judged,
)  # fmt: skip


def is_simple(formula: Formula, in_runs: bool = False) -> bool:
    """Is it made of types, sequences, loops, OR, ALL of a few events, filters, and what must not happen in between?
    `in_runs`: and of what runs that hold registers can do besides."""
    match formula:
        case cel.All():
            return any_order(formula) is not None
        case cel.Absent(left, _, right):
            return is_simple(left, in_runs) and is_simple(right, in_runs)
        case Across(inner):
            return is_simple(inner, in_runs)
    possible = isinstance(formula, SIMPLE) or (in_runs and formula.in_runs)
    return possible and all(is_simple(part, in_runs) for part in formula.children())


def strictly(formula: Formula) -> Formula | None:
    """STRICT(φ) as φ with `:` in place of `;`, where φ is simple; None where it is not, or has an ALL."""
    match formula:
        case cel.Event():
            return formula
        case cel.Sequence(left, right) | cel.Contiguous(left, right):
            a, b = strictly(left), strictly(right)
            return cel.Contiguous(a, b) if a and b else None
        case cel.Or(left, right) | cel.And(left, right):
            a, b = strictly(left), strictly(right)
            return replace(formula, left=a, right=b) if a and b else None
        case cel.Iteration(inner) | cel.ContiguousIteration(inner):
            made = strictly(inner)
            return cel.ContiguousIteration(made) if made else None
        case cel.Repeat(inner):
            made = strictly(inner)
            return replace(formula, inner=made, contiguous=True) if made else None
        case (
            cel.As() | cel.Filter() | cel.FilterAny() | cel.Compare() | cel.Agree() | Aggregate() | Judged()
            | cel.Unless()
        ):  # fmt: skip
            made = strictly(formula.inner)
            return replace(formula, inner=made) if made else None
    return None


MOST_IN_ANY_ORDER = 4  # events in an ALL that is written out: 149 positions


class AnyOrder(NamedTuple):
    """ALL of chains of single events (`A ; B`, or one), and the comparisons inside it."""

    chains: tuple[tuple[Formula, ...], ...]
    clauses: tuple[cel.Compare | cel.Agree, ...]

    @property
    def events(self) -> tuple[Formula, ...]:
        return tuple(event for chain in self.chains for event in chain)


def any_order(formula: Formula, most: int = MOST_IN_ANY_ORDER) -> AnyOrder | None:
    """The chains of an ALL, of `most` events at the most, with a variable of its own for each.

    The hidden variable of a type may be that of several: `ALL(R AS r1, R AS r2)` has `@R` twice, which marks no event
    that r1 and r2 do not tell apart; a condition on it speaks of both.
    """
    match formula:
        case cel.All(left, right):
            return _both(any_order(left, most), any_order(right, most), left.binds() & right.binds(), most)
        case cel.Sequence(left, right):
            both = _both(any_order(left, most), any_order(right, most), left.binds() & right.binds(), most)
            return both._replace(chains=(both.events,)) if both and len(both.chains) == 2 else None
        case cel.Compare(inner) | cel.Agree(inner) if isinstance(
            inner, cel.All | cel.Sequence | cel.Compare | cel.Agree
        ):
            own = any_order(inner, most)
            named = not isinstance(formula, cel.Agree) or all(variable is not None for variable, _ in formula.terms)
            return own._replace(clauses=(*own.clauses, formula)) if own and named else None
        case cel.Event():
            return AnyOrder(((formula,),), ())
        case cel.As(inner) | cel.Filter(inner):
            own = any_order(inner)
            return AnyOrder(((formula,),), ()) if own and len(own.events) == 1 and not own.clauses else None
    return None


def _both(a: AnyOrder | None, b: AnyOrder | None, shared: frozenset[str], most: int) -> AnyOrder | None:
    """The chains and comparisons of two parts, of which none speaks of what both parts bind."""
    if a is None or b is None or any(not is_hidden(variable) for variable in shared):
        return None
    clauses = a.clauses + b.clauses
    if shared and any(variable is None or variable in shared for clause in clauses for variable in _named(clause)):
        return None
    return AnyOrder(a.chains + b.chains, clauses) if len(a.events) + len(b.events) <= most else None


def _named(clause: cel.Compare | cel.Agree) -> list[str | None]:
    if isinstance(clause, cel.Agree):
        return [variable for variable, _ in clause.terms]
    return [part.variable for side in clause.sides for part in parts_of(side)]


class Surrounded(NamedTuple):
    """A `gathered` formula, and the absences before and after the whole, all in this window (None: there are none).
    `meanwhile`: what must not happen while a match goes on, each of several events."""

    formula: Formula
    window: Window | None
    before: tuple[Formula, ...] = ()
    after: tuple[Formula, ...] = ()
    meanwhile: tuple[Formula, ...] = ()


def surrounded(formula: Formula) -> Surrounded | None:
    """The parts of a gathered formula; what compares the absences with the whole stays around that. None if they have
    several windows."""
    match formula:
        case cel.NotBefore(vetoes, inner, window):
            found = surrounded(inner)
            if found is None or found.window not in (None, window):
                return None
            return found._replace(window=window, before=(*found.before, *vetoes))
        case cel.NotAfter(inner, vetoes, window):
            found = surrounded(inner)
            if found is None or found.window not in (None, window):
                return None
            return found._replace(window=window, after=(*found.after, *vetoes))
        case Across(inner) if is_around(formula):
            found = surrounded(inner)
            return None if found is None else found._replace(formula=replace(formula, inner=found.formula))
    return Surrounded(formula, None)


AROUND_THE_WHOLE = (
    cel.As | cel.Filter | cel.FilterAny | cel.Compare | cel.Agree | cel.Project | cel.Within | cel.Start | Across
)


def watched(formula: Formula) -> tuple[Formula, tuple[Formula, ...]]:
    """A formula without what must not happen between the first event of the whole and its last, and that, where it is
    several events: `((A ; B) UNLESS (C ; C)) WHERE A.x = B.x` is `(A ; B) WHERE A.x = B.x`, and `C ; C`."""
    match formula:
        case cel.And(left, right):
            a, b = watched(left), watched(right)
            return cel.And(a[0], b[0]), a[1] + b[1]
        case cel.Unless(inner, veto):
            inner, found = watched(inner)
            return (inner, (*found, veto)) if is_several(veto) else (cel.Unless(inner, veto), found)
    if isinstance(formula, AROUND_THE_WHOLE):
        inner, found = watched(formula.inner)
        return replace(formula, inner=inner), found
    return formula, ()


def is_several(veto: Formula) -> bool:
    """Is what must not happen at least two events, and are none of them compared?"""
    return veto.is_flat() and least_events(veto) > 1


def excludes_several(formula: Formula) -> bool:
    """Is there something that must not happen meanwhile, and is several events?"""
    return any(isinstance(part, cel.Unless) and is_several(part.veto) for part in formula.walk(only_positive=True))


def apart_by_number(formula: Formula) -> Formula:
    """With an exception of its own for what must not happen as one event, and for each that is several: `A UNLESS (C OR
    (D ; E))` is `(A UNLESS C) UNLESS (D ; E)`."""
    formula = formula.rebuilt(apart_by_number)
    if isinstance(formula, cel.Unless):
        alternatives, inner = list(_alternatives(formula.veto)), formula.inner
        if any(map(is_several, alternatives)):
            for one in alternatives:
                inner = cel.Unless(inner, one)
            return inner
    return formula


def _alternatives(veto: Formula) -> Iterator[Formula]:
    """What must not happen is none of these."""
    match veto:
        case cel.Or(left, right):
            yield from _alternatives(left)
            yield from _alternatives(right)
        case cel.As(inner):
            yield from (replace(veto, inner=one) for one in _alternatives(inner))
        case _:
            yield veto


def least_events(formula: Formula) -> int:
    """How many events a match of a flat formula has at least."""
    match formula:
        case cel.Event():
            return 1
        case cel.Sequence(left, right) | cel.Contiguous(left, right):
            return least_events(left) + least_events(right)
        case cel.Or(left, right):
            return min(least_events(left), least_events(right))
        case cel.Repeat(inner, low):
            return low * least_events(inner)
    return min(map(least_events, formula.children()))
