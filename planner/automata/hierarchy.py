"""This file finds the q-tree of an ALL with equalities, if that is a hierarchical query ([PCEA] Section 4).

The parts of ALL are the atoms of a conjunctive query and the values that equalities share its variables. It is
hierarchical if the sets of parts in which two values occur are disjoint or one holds the other; then the values form
trees with the parts as leaves. EXPLAIN shows them, and planner.automata.pcea makes an automaton of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from planner import cel
from planner.formula import Formula
from planner.terms import Comparison
from runtime.marks import is_hidden

AROUND = (cel.Compare, cel.Agree, cel.Filter, cel.FilterAny, cel.As)
Node = tuple[str, str]  # a variable and its attribute


@dataclass(frozen=True)
class Value:
    """One value of a match: the attributes that are equal to it, and the parts (by number) that have one.

    `types`: those in which it is compared.
    """

    attributes: tuple[Node, ...]
    parts: frozenset[int]
    types: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return " = ".join(f"{variable}.{sql.strip('`')}" for variable, sql in self.attributes)


@dataclass(frozen=True)
class Branch:
    """An inner node of the compact q-tree: values that just these parts share, and what hangs below.

    The root of a query that is not connected has no values (Theorem 4.1, "the general case").
    """

    values: tuple[Value, ...]
    parts: frozenset[int]
    branches: tuple[Branch, ...]
    leaves: tuple[int, ...]


def hierarchy(formula: Formula) -> str | None:
    """The q-tree as text, or why there is none; None if the formula is no ALL with equalities."""
    clauses: list[Comparison] = []
    while isinstance(formula, AROUND):
        clauses += _equalities(formula)
        formula = formula.inner
    if not isinstance(formula, cel.All):
        return None
    parts = list(_parts(formula))
    values = [value for value in values_of(clauses, parts) if len(value.parts) > 1]
    if not values:
        return None
    crossing = crossing_values(values)
    if crossing is not None:
        b, a = crossing
        shared = ", ".join(_name(parts[i]) for i in sorted(a.parts & b.parts))
        return f"ALL is not hierarchical: {b} and {a} meet in {shared}, and neither is in all parts of the other"
    return f"ALL is hierarchical, its q-tree: {_shown(q_tree(values, len(parts)), parts)}"


def crossing_values(values: list[Value]) -> tuple[Value, Value] | None:
    """Two values that keep the query from being hierarchical, or None if it is."""
    for n, a in enumerate(values):
        for b in values[:n]:
            both = a.parts & b.parts
            if both and both not in (a.parts, b.parts):
                return b, a
    return None


def q_tree(values: list[Value], n_parts: int) -> Branch:
    """The compact q-tree of a hierarchical query: every branch but perhaps the root has values and two children."""
    whole = frozenset(range(n_parts))
    owners = {value.parts for value in values if len(value.parts) > 1}

    def branch(own: frozenset[int]) -> Branch:
        inside = {parts for parts in owners if parts < own}
        greatest = [parts for parts in inside if not any(parts < other for other in inside)]
        return Branch(
            tuple(value for value in values if value.parts == own),
            own,
            tuple(branch(parts) for parts in sorted(greatest, key=lambda parts: (-len(parts), min(parts)))),
            tuple(sorted(own.difference(*greatest))),
        )

    return branch(whole)


def _equalities(node: Formula) -> list[Comparison]:
    if not isinstance(node, cel.Compare) or len(node.sides) != 1:
        return []
    (side,) = node.sides
    wanted = isinstance(side, Comparison) and side.op == "=" and {side.left.of, side.right.of} == {"each"}
    return [side] if wanted and isinstance(side, Comparison) else []


def _parts(formula: Formula) -> Iterator[Formula]:
    if isinstance(formula, cel.All):
        yield from _parts(formula.left)
        yield from _parts(formula.right)
    else:
        yield formula


def _name(part: Formula) -> str:
    return ", ".join(sorted(v for v in part.binds() if not is_hidden(v))) or "a part without variables"


def values_of(clauses: list[Comparison], parts: list[Formula]) -> list[Value]:
    """The values of a match that these equalities name, also those of one part alone."""
    groups: list[set[Node]] = []
    for clause in clauses:
        ends = {(clause.left.variable, clause.left.sql), (clause.right.variable, clause.right.sql)}
        touched = [group for group in groups if group & ends]
        groups = [group for group in groups if not group & ends] + [ends.union(*touched)]
    return [
        Value(
            tuple(sorted(group)),
            frozenset(i for i, part in enumerate(parts) if {v for v, _ in group} & part.binds()),
            frozenset(clause.type for clause in clauses if (clause.left.variable, clause.left.sql) in group),
        )
        for group in sorted(groups, key=sorted)
    ]


def _shown(branch: Branch, parts: list[Formula]) -> str:
    """The tree in brackets, the values of a branch before what hangs below."""
    shown = [_shown(inner, parts) for inner in branch.branches] + [_name(parts[i]) for i in branch.leaves]
    text = ", ".join(shown)
    for value in reversed(branch.values):
        text = f"({value}: {text})"
    return text
