"""Many parts by an operator of two: A ; B ; C as (A ; B) ; C, never so deep that Python's stack would end."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from cersql.language import syntax
from planner import cel
from planner.formula import Formula

WIDTH = 32


def joined(node: Callable[[Formula, Formula], Formula], parts: list[Formula]) -> Formula:
    """Many parts by an associative operator: from the left, but never so deep that Python's stack would end."""
    while len(parts) > WIDTH:
        parts = [reduce(node, parts[i : i + WIDTH]) for i in range(0, len(parts), WIDTH)]
    return reduce(node, parts)


def chained(parts: list[Formula], gaps: list[tuple[Formula, ...]]) -> Formula:
    """A sequence with negated parts in some of its gaps; no deeper than _joined."""

    def fold(at: int) -> Formula:
        formula = parts[at]
        for k in range(at + 1, min(at + WIDTH, len(parts))):
            vetoes = gaps[k - 1]
            formula = cel.Absent(formula, vetoes, parts[k]) if vetoes else cel.Sequence(formula, parts[k])
        return formula

    while len(parts) > 1:
        starts = range(0, len(parts), WIDTH)
        parts, gaps = [fold(at) for at in starts], [gaps[at - 1] for at in starts[1:]]
    return parts[0]


def repeated(part: syntax.Repeat, formula: Formula) -> Formula:
    """A quantifier; `+` and `:+` have nodes of their own, and once is no loop."""
    match part.low, part.high:
        case 1, 1:
            return formula
        case 1, None:
            return (cel.ContiguousIteration if part.contiguous else cel.Iteration)(formula)
    return cel.Repeat(formula, part.low, part.high, part.contiguous)
