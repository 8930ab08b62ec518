"""Equalities that hold between all events of a match become keys: Spark distributes the stream by them.

`[k]`, PART BY around the whole pattern, and `a.k = b.k AND a.k = c.k` say that every event of a match has one value.
Then the matches of each value are those of its own rows, as under PARTITION BY, and nothing is left to compare.
([CHAIN] Section 3 has PART-BY as an operator of its own; here it is a way to run it.)

Not done where the pattern can see events of other values: `:`, windows of events, START, nested strategies, CONSUME BY,
AFTER MATCH SKIP, WITH TIMEOUTS; and where equality does not reach every event, since a variable may be empty, or is
compared with no other, or a negated part does not mention it. Rows whose value is NULL agree with nothing, and go.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations

from planner import cel
from planner.compose import rebuilt
from planner.query import Key, Query

AROUND = (cel.Compare, cel.Agree, cel.Across, cel.Filter, cel.FilterAny, cel.As)  # filters around the whole pattern


@dataclass(frozen=True)
class Keyed:
    """The query without the comparisons that became `keys`, and what EXPLAIN says about it."""

    query: Query
    reasons: tuple[str, ...] = ()


def keyed(query: Query, obstacle: str | None) -> Keyed:
    """Move equalities that reach every event into the keys. `obstacle`: why events of other keys could be seen."""
    around = tuple(_around(query.formula))
    agreements = [node for node in around if isinstance(node, cel.Agree)]
    equalities = [equality for node in around for equality in _equalities(node)]
    if not agreements and not equalities:
        return Keyed(query)
    if obstacle is not None:
        return Keyed(query, (f"equality of all events is no key here, since {obstacle}",))
    keys: list[Key] = []
    gone: list[Equality | cel.Formula] = []
    for node in agreements:
        if _covers(node.terms, query.formula) and len({sql for _, sql in node.terms}) == 1:
            keys.append(Key(node.terms[0][1], node.type))
            gone.append(node)
    for key, used in _classes(equalities, query):
        keys.append(key)
        gone += used
    if not keys:
        return Keyed(query, ("equalities do not reach every event by one attribute, so they are no key",))
    shown = ", ".join(dict.fromkeys(key.sql for key in keys))
    changed = replace(query, formula=_without(query.formula, gone), keys=tuple(dict.fromkeys(keys)))
    return Keyed(changed, (f"equal in every match, so a key as PARTITION BY has them: {shown}",))


@dataclass(frozen=True)
class Equality:
    """`a.x = b.y`, said by a whole clause of a node around the pattern."""

    node: cel.Compare | cel.Across
    clause: tuple[cel.Comparison | cel.Test, ...]
    side: cel.Comparison

    @property
    def variables(self) -> frozenset[str]:
        return frozenset((self.side.left.variable, self.side.right.variable))


def _around(formula: cel.Formula) -> Iterator[cel.Formula]:
    """The filters around the whole pattern."""
    while isinstance(formula, AROUND):
        yield formula
        formula = formula.inner


def _without(formula: cel.Formula, gone: list[Equality | cel.Formula]) -> cel.Formula:
    """The formula without what is gone; a negated part of which nothing is left to compare is an ordinary one."""
    if not isinstance(formula, AROUND):
        return formula
    inner = _without(formula.inner, gone)
    clauses = [e.clause for e in gone if isinstance(e, Equality) and e.node is formula]
    if isinstance(formula, cel.Across) and clauses:
        left = tuple(clause for clause in formula.clauses if clause not in clauses)
        return replace(formula, inner=inner, clauses=left) if left else _ordinary(inner, formula.number)
    return inner if clauses or any(formula is node for node in gone) else replace(formula, inner=inner)


def _ordinary(formula: cel.Formula, number: int) -> cel.Formula:
    match formula:
        case cel.Candidate(inner, own) if own == number:
            return inner
        case cel.Event():
            return formula
    return rebuilt(formula, lambda part: _ordinary(part, number))


def _equalities(node: cel.Formula) -> Iterator[Equality]:
    clauses = node.clauses if isinstance(node, cel.Across) else (node.sides,) if isinstance(node, cel.Compare) else ()
    for clause in clauses:
        side = clause[0]
        if len(clause) > 1 or not isinstance(side, cel.Comparison) or side.op != "=":
            continue
        if {side.left.of, side.right.of} == {"each"} and side.left.variable != side.right.variable:
            assert isinstance(node, cel.Across | cel.Compare)
            yield Equality(node, clause, side)


def _covers(terms: tuple[tuple[str | None, str], ...], formula: cel.Formula) -> bool:
    """Do the variables of the terms reach every event, those of negated parts too?"""
    named = {variable for variable, _ in terms}
    return None in named or all(marks & named for marks in atoms(formula))


def atoms(formula: cel.Formula, more: frozenset[str] = frozenset()) -> Iterator[frozenset[str]]:
    """The marks that each atom's events get, by AS around them too."""
    if isinstance(formula, cel.Event):
        yield formula.marks | more
        return
    if isinstance(formula, cel.As):
        more |= {formula.variable}
    for part in cel.children(formula):
        yield from atoms(part, more)


def _classes(equalities: list[Equality], query: Query) -> Iterator[tuple[Key, list[Equality]]]:
    """Each attribute whose equalities connect all events, with the comparisons that say so."""
    by_attribute: dict[tuple[str, str], list[Equality]] = {}
    for equality in equalities:
        side = equality.side
        if side.left.sql == side.right.sql:
            by_attribute.setdefault((side.left.sql, side.type), []).append(equality)
    present = always_bound(query.formula)
    for (sql, type), own in by_attribute.items():
        edges = {equality.variables for equality in own}
        variables = frozenset[str]().union(*edges)
        if not _covers(tuple((v, sql) for v in variables), query.formula) or not _connected(edges, variables & present):
            continue
        loose = {v for v in variables - present if not any(frozenset((v, other)) in edges for other in present)}
        if loose:
            continue
        if query.strategy == "NEXT_MATCH" and any(frozenset(pair) not in edges for pair in combinations(variables, 2)):
            continue  # a run decides on an event before the one that connects the two has come
        yield Key(sql, type), own


def _connected(edges: set[frozenset[str]], variables: frozenset[str]) -> bool:
    """Do equalities connect the variables among themselves?"""
    if not variables:
        return False
    reached = {min(variables)}
    while True:
        more = {v for edge in edges if edge <= variables and edge & reached for v in edge} - reached
        if not more:
            return reached == variables
        reached |= more


def always_bound(formula: cel.Formula) -> frozenset[str]:
    """The variables of which every match has an event."""
    match formula:
        case cel.Event(_, marks):
            return marks
        case cel.As(inner, variable):
            return always_bound(inner) | {variable}
        case cel.Project(inner, keep):
            return always_bound(inner) & keep
        case cel.Or(left, right):
            return always_bound(left) & always_bound(right)
        case cel.Repeat(inner, low):
            return always_bound(inner) if low else frozenset()
    return frozenset[str]().union(*map(always_bound, cel.positive(formula)))
