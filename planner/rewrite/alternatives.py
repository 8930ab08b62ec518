"""An OR of chains that differ in their conditions alone is one chain with an OR of conditions.

(((A ; B) PART BY (x)) ; C) OR (A ; ((B ; C) PART BY (x)))   is   A ; B ; C where a.x = b.x OR b.x = c.x

[CHAIN] Proposition 9 shows that equalities cannot keep two such ways apart; one way that asks either is found once, so
that runs can hold what it compares.
"""

from __future__ import annotations

from functools import reduce
from itertools import combinations, product
from typing import NamedTuple

from planner import cel
from planner.formula import Formula
from planner.terms import Comparison, Side, Term

MOST_CLAUSES = 8  # of one chain
Clause = tuple[Side, ...]


class Chain(NamedTuple):
    """Single events, one after the other; `near[k]`: does item k + 1 come at once? `clauses`: all must hold."""

    items: tuple[Formula, ...]
    near: tuple[bool, ...] = ()
    clauses: tuple[Clause, ...] = ()

    def formula(self) -> Formula:
        made = self.items[0]
        for near, item in zip(self.near, self.items[1:], strict=True):
            made = cel.Contiguous(made, item) if near else cel.Sequence(made, item)
        return reduce(cel.Compare, self.clauses, made)


def alike_alternatives(formula: Formula) -> Formula:
    """Without alternatives that differ in their conditions alone. A variable in these is one event of the chain, so
    that "one side holds for all events" and "for all events one side holds" are the same."""
    formula = formula.rebuilt(alike_alternatives)
    if not isinstance(formula, cel.Or):
        return formula
    left: list[Formula] = []
    for part in _alternatives(formula):
        for k, other in enumerate(left):
            made = _either(other, part)
            if made is not None:
                left[k] = made
                break
        else:
            left.append(part)
    return formula if len(left) == len(_alternatives(formula)) else reduce(cel.Or, left)


def _alternatives(formula: Formula) -> list[Formula]:
    if isinstance(formula, cel.Or):
        return [*_alternatives(formula.left), *_alternatives(formula.right)]
    return [formula]


def _either(left: Formula, right: Formula) -> Formula | None:
    """Both as one chain; None if they are no chains, or differ in more than conditions."""
    a, b = _chain(left), _chain(right)
    if a is None or b is None or (a.items, a.near) != (b.items, b.near):
        return None
    if any(not _is_single(side, a.items) for clause in (*a.clauses, *b.clauses) for side in clause):
        return None
    if len(a.clauses) * len(b.clauses) > MOST_CLAUSES:
        return None
    clauses = [tuple(dict.fromkeys((*one, *other))) for one, other in product(a.clauses, b.clauses)]
    return a._replace(clauses=tuple(clauses)).formula()


def _is_single(side: Side, items: tuple[Formula, ...]) -> bool:
    """Does a side compare events of variables that are one item of the chain each?"""
    if not isinstance(side, Comparison):
        return False
    return all(
        term.of == "each" and sum(term.variable in item.binds() for item in items) == 1
        for term in (side.left, side.right)
    )


def _chain(formula: Formula) -> Chain | None:
    match formula:
        case cel.Sequence(left, right) | cel.Contiguous(left, right):
            a, b = _chain(left), _chain(right)
            if a is None or b is None:
                return None
            near = (*a.near, isinstance(formula, cel.Contiguous), *b.near)
            return Chain(a.items + b.items, near, a.clauses + b.clauses)
        case cel.Compare(inner, sides):
            own = _chain(inner)
            return None if own is None else own._replace(clauses=(*own.clauses, sides))
        case cel.Agree(inner, terms, type):
            own = _chain(inner)
            agreed = None if own is None else _agreed(own.items, terms, type)
            return None if own is None or agreed is None else own._replace(clauses=(*own.clauses, *agreed))
    return Chain((formula,)) if is_event(formula) else None


def is_event(formula: Formula) -> bool:
    """Is it one event, perhaps with names and filters?"""
    while isinstance(formula, cel.As | cel.Filter):
        formula = formula.inner
    return isinstance(formula, cel.Event)


def _agreed(items: tuple[Formula, ...], terms: tuple[tuple[str | None, str], ...], type: str) -> list[Clause] | None:
    """That events agree, as equalities of two each; None if a variable does not tell an event, or only one agrees."""
    own: list[Term] = []
    for variable, sql in terms:
        if variable is not None:
            own.append(Term(variable, sql))
            continue
        for k, item in enumerate(items):
            others = frozenset[str]().union(*(other.binds() for n, other in enumerate(items) if n != k))
            names = sorted(item.binds() - others)
            if not names:
                return None
            own.append(Term(names[0], sql))
    if len(own) < 2:
        return None
    return [(Comparison(a, "=", b, type),) for a, b in combinations(own, 2)]
