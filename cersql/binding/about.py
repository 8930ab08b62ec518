"""What a condition speaks of: single events, neighbours, or the match as a whole."""

from __future__ import annotations

from collections.abc import Sequence

from cersql.binding.booleans import Bool, OrOf
from cersql.binding.expressions import NEIGHBOURS, Call, Node, Ref, Together, Word, walk
from cersql.binding.together import together_of
from cersql.errors import BindError


def needs_match(node: Node) -> bool:
    """Aggregates, FIRST, LAST, x[1] and [k] speak of the match as a whole."""
    if isinstance(node, Together):
        return True
    return (isinstance(node, Call) and node.function not in NEIGHBOURS) or (
        isinstance(node, Ref) and isinstance(node.index, int)
    )


def free_variables(nodes: Sequence[Node]) -> list[str]:
    """The variables of which a condition is asked event by event, in order of appearance."""
    return list(dict.fromkeys(node.variable for node in nodes if isinstance(node, Ref) and not needs_match(node)))


def about_one(condition: Bool) -> bool:
    """Do all comparisons speak of the same variable, or all of none? `a.x > 1 AND 1 = 0` does not: the second holds or
    fails also where there is no a."""
    about = {tuple(free_variables(leaf.nodes)) for leaf in condition.leaves()}
    if any(together_of(leaf) or any(map(is_neighbour, leaf.nodes)) for leaf in condition.leaves()):
        return False
    return len(about) == 1 and len(next(iter(about))) <= 1


def neighbours(clause: OrOf) -> list[Node]:
    return [node for part, _ in clause for node in walk(part.nodes) if is_neighbour(node)]


def is_neighbour(node: Node) -> bool:
    """`x[i-1]`, INCREASING."""
    if isinstance(node, Ref):
        return node.index in ("previous", "next")
    return isinstance(node, Call) and node.function in NEIGHBOURS


def refuse_windows(nodes: Sequence[Node]) -> None:
    """Functions OVER rows: Spark would count the rows that it reads, before there is any match."""
    for node in nodes:
        if isinstance(node, Word) and node.upper == "OVER":
            raise BindError(
                "NOT_SUPPORTED_YET", span=node.span, construct="A window function (OVER) in a condition",
                hint="Compute it in a subquery: FROM (SELECT *, … OVER (…) AS w FROM t) AS t.",
            )  # fmt: skip
