"""A condition on each event that AGG creates, as one on the part that creates it.

    NXT(AGG(y : s = SUM(b.v) ; φ) FILTER y.s > 5)     is   NXT(AGG(y : s = SUM(b.v) ; φ FILTER SUM(b.v) > 5))

Both leave the same matches wherever nothing between the two chooses among matches, since FILTER asks every event of y
by itself. Runs can answer the second, where no match is listed (cersql.binding.measures).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cersql.binding.booleans import Bool, OrOf
from cersql.binding.expressions import Node, Ref
from cersql.binding.measures import Clauses
from planner import cel
from planner.acel import Aggregate, Measured
from planner.formula import Formula


def in_terms_of(written: Mapping[str, tuple[Node, ...]], clause: OrOf, fold: Callable[[str], str]) -> OrOf | None:
    """The condition with what attributes are, `written`, in their place; None where one is more than one call."""
    known = {fold(name): nodes[0] if len(nodes) == 1 else None for name, nodes in written.items()}

    def told(part: Bool) -> Bool | None:
        nodes = [known.get(fold(node.column or "")) if isinstance(node, Ref) else node for node in part.nodes]
        parts = [told(inner) for inner in part.parts]
        if None in nodes or None in parts:
            return None
        return Bool(part.kind, tuple(filter(None, parts)), tuple(node for node in nodes if node is not None))

    found = []
    for part, positive in clause:
        own = told(part)
        if own is None:
            return None
        found.append((own, positive))
    return tuple(found)


def is_filtered(formula: Formula, number: int) -> bool:
    """Is a filter around it of each event that the aggregation of this number creates the same as one inside? Not where
    a strategy chooses in between."""
    if isinstance(formula, cel.Strategy) and formula.name != "STRICT":
        return not any(isinstance(part, Aggregate) and part.number == number for part in formula.walk())
    return all(is_filtered(part, number) for part in formula.positive())


def with_measured(formula: Formula, parts: Mapping[int, Clauses], shown: str) -> Formula:
    """The formula whose aggregations of these numbers create what fulfils their conditions only."""
    made = formula.rebuilt(lambda part: with_measured(part, parts, shown), only_positive=True)
    if not isinstance(made, Aggregate) or made.number not in parts:
        return made
    inner = made.inner
    for sides in parts[made.number]:
        inner = Measured(inner, sides, shown)
    return Aggregate(inner, made.number, made.marks, made.attributes)
