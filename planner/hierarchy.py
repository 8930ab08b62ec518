"""Is an ALL with equalities a hierarchical query ([PCEA] Section 4), and what is its q-tree?

The parts of ALL are the atoms of a conjunctive query and the values that equalities share its variables. It is
hierarchical if the sets of parts in which two values occur are disjoint or one holds the other; then the values form
trees with the parts as leaves. This says so in EXPLAIN; how the pattern runs does not depend on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from planner import cel

AROUND = (cel.Compare, cel.Agree, cel.Filter, cel.FilterAny, cel.As)
Node = tuple[str, str]  # a variable and its attribute


@dataclass(frozen=True)
class Value:
    """One value of a match: the attributes that are equal to it, and the parts (by number) that have one."""

    attributes: tuple[Node, ...]
    parts: frozenset[int]

    def __str__(self) -> str:
        return " = ".join(f"{variable}.{sql.strip('`')}" for variable, sql in self.attributes)


def hierarchy(formula: cel.Formula) -> str | None:
    """The q-tree as text, or why there is none; None if the formula is no ALL with equalities."""
    clauses: list[cel.Comparison] = []
    while isinstance(formula, AROUND):
        clauses += _equalities(formula)
        formula = formula.inner
    if not isinstance(formula, cel.All):
        return None
    parts = list(_parts(formula))
    values = [value for value in _values(clauses, parts) if len(value.parts) > 1]
    if not values:
        return None
    for n, a in enumerate(values):
        for b in values[:n]:
            both = a.parts & b.parts
            if both and both not in (a.parts, b.parts):
                shared = ", ".join(_name(parts[i]) for i in sorted(both))
                return (
                    f"ALL is not hierarchical: {b} and {a} meet in {shared}, and neither is in all parts of the other"
                )
    return f"ALL is hierarchical, its q-tree: {_tree(frozenset(range(len(parts))), values, parts)}"


def _equalities(node: cel.Formula) -> list[cel.Comparison]:
    if not isinstance(node, cel.Compare) or len(node.sides) != 1:
        return []
    (side,) = node.sides
    wanted = isinstance(side, cel.Comparison) and side.op == "=" and {side.left.of, side.right.of} == {"each"}
    return [side] if wanted and isinstance(side, cel.Comparison) else []


def _parts(formula: cel.Formula) -> Iterator[cel.Formula]:
    if isinstance(formula, cel.All):
        yield from _parts(formula.left)
        yield from _parts(formula.right)
    else:
        yield formula


def _name(part: cel.Formula) -> str:
    return ", ".join(sorted(v for v in cel.variables(part) if not v.startswith("@"))) or "a part without variables"


def _values(clauses: list[cel.Comparison], parts: list[cel.Formula]) -> list[Value]:
    groups: list[set[Node]] = []
    for clause in clauses:
        ends = {(clause.left.variable, clause.left.sql), (clause.right.variable, clause.right.sql)}
        touched = [group for group in groups if group & ends]
        groups = [group for group in groups if not group & ends] + [ends.union(*touched)]
    return [
        Value(
            tuple(sorted(group)),
            frozenset(i for i, part in enumerate(parts) if {v for v, _ in group} & cel.variables(part)),
        )
        for group in sorted(groups, key=sorted)
    ]


def _tree(within: frozenset[int], values: list[Value], parts: list[cel.Formula]) -> str:
    """The values and parts inside these parts, the greatest values outermost."""
    left, shown = within, []
    for value in sorted(values, key=lambda v: (-len(v.parts), min(v.parts))):
        if value.parts <= left:
            inside = [other for other in values if other is not value and other.parts <= value.parts]
            shown.append(f"({value}: {_tree(value.parts, inside, parts)})")
            left -= value.parts
    return ", ".join([*shown, *(_name(parts[i]) for i in sorted(left))])
