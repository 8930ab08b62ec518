"""Equalities of different attributes as a key: `p.order_id = o.id` puts a payment beside its order.

Where equality reaches every event of a match, but by an attribute of each variable, each row goes to every key that it
can have: its `id` if it can be an order, its `order_id` if it can be a payment. There it can be bound to the variables
whose attribute is that key, which is one more condition on the row, and nothing is left to compare. Every match is
found once, under the value that its events share; so this is for SEMANTICS ALL, where matches of different keys, which
can have events in common, do not compete.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from planner import cel
from planner.across import Across, Candidate
from planner.formula import Formula
from planner.query import Link, Query
from planner.sql import quote
from planner.terms import Comparison, Predicate, Side

LINK_COLUMN = "__cersql_link"
Node = tuple[str, str]  # a variable and its attribute
Rewriting = Callable[[Formula], Formula]


@dataclass(frozen=True)
class Equality:
    """`a.x = b.y`, said by a whole clause of a node around the pattern."""

    node: cel.Compare | Across
    clause: tuple[Side, ...]
    side: Comparison

    @property
    def attribute(self) -> tuple[str, str] | None:
        """What is equal, if it is the same of both events, and the type in which it is."""
        return (self.side.left.sql, self.side.type.lower()) if self.side.left.sql == self.side.right.sql else None

    @property
    def variables(self) -> frozenset[str]:
        return frozenset((self.side.left.variable, self.side.right.variable))

    @property
    def ends(self) -> tuple[Node, Node]:
        return (self.side.left.variable, self.side.left.sql), (self.side.right.variable, self.side.right.sql)


@dataclass(frozen=True)
class Linked:
    """An attribute for each variable of the pattern and, by number, of what must not happen; what said so."""

    type: str
    attributes: dict[str, str]
    vetoes: dict[int, dict[str, str]]
    used: list[Equality | Formula]
    alone: bool = False  # one event, of which nothing is asked but by what must not happen: it may have NULL

    def pairs(self) -> Iterator[Node]:
        for attributes in (self.attributes, *self.vetoes.values()):
            yield from attributes.items()


def agreed(node: cel.Agree) -> Linked | None:
    """The attributes of a PART BY that names one for each variable."""
    attributes = {variable: sql for variable, sql in node.terms if variable is not None}
    return Linked(node.type, attributes, {}, [node]) if len(attributes) == len(node.terms) else None


def links(equalities: Iterable[Equality]) -> Iterator[Linked]:
    """Each set of attributes that equalities connect, one a variable. What they reach is the caller's to check."""
    by_type: dict[str, list[Equality]] = defaultdict(list)
    for equality in equalities:
        if isinstance(equality.node, cel.Compare):
            by_type[equality.side.type].append(equality)
    for type, own in by_type.items():
        left = list(own)
        while left:
            attributes = dict(left[0].ends)
            grown = True
            while grown:
                grown = False
                for a, b in (ends for e in left for ends in (e.ends, e.ends[::-1])):
                    if attributes.get(a[0]) == a[1] and b[0] not in attributes:
                        attributes[b[0]] = b[1]
                        grown = True
            used = [e for e in left if all(attributes.get(v) == sql for v, sql in e.ends)]
            left = [e for e in left if e not in used]
            yield Linked(type, attributes, {}, [*used])


def of_one_event(formula: Formula, equalities: Iterable[Equality]) -> Iterator[Linked]:
    """Each attribute of a match's only event that something which must not happen is compared with."""
    events = [part for part in formula.walk(only_positive=True) if isinstance(part, cel.Event)]
    if len(events) > 1 or any(isinstance(part, _SEVERAL) for part in formula.walk(only_positive=True)):
        return
    names = {variable for variable, _ in formula.bindings()}
    found = [end for e in equalities for end in e.ends if end[0] in names & formula.binds()]
    types = {end: e.side.type for e in equalities for end in e.ends}
    for variable, sql in dict.fromkeys(found):
        yield Linked(types[variable, sql], {variable: sql}, {}, [], alone=True)


_SEVERAL = (cel.Iteration, cel.ContiguousIteration, cel.Repeat, cel.Or)


def with_vetoes(linked: Linked, equalities: Iterable[Equality], present: frozenset[str]) -> Linked:
    """The same with the attributes by which what must not happen is equal to something that is always there."""
    vetoes: dict[int, dict[str, str]] = defaultdict(dict)
    used = list(linked.used)
    for equality in equalities:
        if not isinstance(equality.node, Across) or equality.side.type != linked.type:
            continue
        for (v, own), (w, other) in (equality.ends, equality.ends[::-1]):
            known = v in present and linked.attributes.get(v) == own and w not in linked.attributes
            if known and vetoes[equality.node.number].setdefault(w, other) == other:
                used.append(equality)
                break
    return replace(linked, vetoes=dict(vetoes), used=used)


def applied(query: Query, linked: Linked, without: Callable[[Callable[[Formula], Formula]], Formula]) -> Query:
    """The query with the link as a column of its rows and as a condition on them.

    `without(f)`: its formula with f of what the filters around it stand around, and without what the link says.
    """
    column = f"{LINK_COLUMN}{len(query.links)}"
    formula = without(lambda core: _inside(core, linked, column))
    for variable, own in linked.attributes.items():
        formula = cel.Filter(formula, variable, _is_key(own, linked.type, column, "<=>" if linked.alone else "="))
    by: dict[str, set[str | None]] = {sql: set() for _, sql in linked.pairs()}
    for bound, kind in query.formula.bindings():
        for name, sql in linked.pairs():
            if name == bound:
                by[sql].add(kind)
    found = tuple((sql, tuple(sorted(kinds, key=str))) for sql, kinds in by.items())
    return replace(query, formula=formula, links=(*query.links, Link(column, linked.type, found, linked.alone)))


def _is_key(sql: str, type: str, column: str, op: str = "=") -> Predicate:
    return Predicate(f"{f'CAST({sql} AS {type})' if type else sql} {op} {quote(column)}")


def _inside(formula: Formula, linked: Linked, column: str) -> Formula:
    """What must not happen, asked for its key."""
    if isinstance(formula, cel.Event):
        return formula
    if isinstance(formula, Candidate) and formula.number in linked.vetoes:
        inner = formula.inner
        for variable, sql in linked.vetoes[formula.number].items():
            inner = cel.Filter(inner, variable, _is_key(sql, linked.type, column))
        return replace(formula, inner=inner)
    return formula.rebuilt(lambda part: _inside(part, linked, column))
