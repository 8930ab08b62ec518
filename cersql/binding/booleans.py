"""The boolean structure of a condition, and its conjunctive form: an AND of ORs.

NOT goes down to the comparisons; each keeps SQL's NULL, for in three-valued logic too NOT (p AND q) is NOT p OR NOT q,
and AND and OR distribute.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from cersql.binding.expressions import Node, Word
from cersql.errors import BindError
from cersql.language.lexer import CLOSING, OPENING
from runtime.errors import Span


@dataclass(frozen=True)
class Bool:
    """The boolean structure: kind 'and', 'or', 'not' (with parts) or 'atom'; `nodes` are all it is made of."""

    kind: str
    parts: tuple[Bool, ...]
    nodes: tuple[Node, ...]

    @property
    def span(self) -> Span:
        return self.nodes[0].span | self.nodes[-1].span

    def leaves(self) -> Iterator[Bool]:
        """The comparisons."""
        if not self.parts:
            yield self
        for part in self.parts:
            yield from part.leaves()

    def conjuncts(self) -> Iterator[Bool]:
        """The sides of the outermost ANDs."""
        if self.kind != "and":
            yield self
            return
        for part in self.parts:
            yield from part.conjuncts()


Side = tuple[Bool, bool]  # a part of the condition, and whether it stands there or its NOT
OrOf = tuple[Side, ...]


MAX_CLAUSES = 256  # the conjunctive form can be exponentially larger than the text
MAX_JOINED = 4096  # conditions on one event each, by AND


def structure(nodes: tuple[Node, ...]) -> Bool:
    """The AND / OR / NOT tree of a condition."""
    for word in ("OR", "AND"):
        parts = _split(nodes, word)
        if len(parts) > 1:
            return Bool(word.lower(), tuple(structure(part) for part in parts), nodes)
    if isinstance(nodes[0], Word) and nodes[0].upper in ("NOT", "!") and len(nodes) > 1:
        return Bool("not", (structure(nodes[1:]),), nodes)
    if _enclosed(nodes):
        inner = structure(nodes[1:-1])
        return Bool(inner.kind, inner.parts, nodes)
    return Bool("atom", (), nodes)


def conjunctive(condition: Bool, whole: Callable[[Bool], bool], positive: bool = True) -> list[OrOf]:
    """The condition (or its NOT) as an AND of ORs; parts for which `whole` holds are not taken apart."""
    if condition.kind == "atom" or whole(condition):
        return [((condition, positive),)]
    if condition.kind == "not":
        return conjunctive(condition.parts[0], whole, not positive)
    sides = [conjunctive(part, whole, positive) for part in condition.parts]
    if (condition.kind == "and") == positive:
        return [clause for side in sides for clause in side]
    check_size(condition, math.prod(map(len, sides)))
    return [tuple(itertools.chain(*choice)) for choice in itertools.product(*sides)]


def check_size(condition: Bool, found: int) -> None:
    """Raises CONDITION_TOO_LARGE if `found` ORs are too many: of `(a AND b) OR (c AND d)` there are four, a OR c …"""
    if found > MAX_CLAUSES:
        raise BindError(
            "CONDITION_TOO_LARGE", span=condition.span, found=found, limit=MAX_CLAUSES,
            hint="Put a part of it into DEFINE, or write the alternatives with OR in the pattern.",
        )  # fmt: skip


def check_length(place: Span, found: int, limit: int, of: str = "") -> None:
    """Raises CONDITION_TOO_LONG if an AND joins too many conditions."""
    if found > limit:
        raise BindError(
            "CONDITION_TOO_LONG", span=place, found=found, limit=limit, of=of,
            hint="Conditions on one event can be put into DEFINE, or be computed as a column in a subquery.",
        )  # fmt: skip


def _split(nodes: tuple[Node, ...], operator: str) -> list[tuple[Node, ...]]:
    """The stretches between the operator at depth 0, outside CASE … END and BETWEEN … AND."""
    parts: list[list[Node]] = [[]]
    depth, between = 0, 0
    for node in nodes:
        upper = node.upper if isinstance(node, Word) else ""
        depth += (upper in OPENING or upper == "CASE") - (upper in CLOSING or (upper == "END" and depth > 0))
        if depth == 0 and upper == "BETWEEN":
            between += 1
        elif depth == 0 and upper == "AND" and between:
            between -= 1
        elif depth == 0 and upper == operator:
            if not parts[-1] or node is nodes[-1]:
                hint = f"{operator} stands between two conditions."
                raise BindError("EMPTY_CONDITION", span=node.span, hint=hint)
            parts.append([])
            continue
        parts[-1].append(node)
    return [tuple(part) for part in parts]


def _enclosed(nodes: tuple[Node, ...]) -> bool:
    """Is the whole one pair of parentheses?"""
    if len(nodes) < 3 or not isinstance(nodes[0], Word) or nodes[0].upper != "(":
        return False
    depth = 0
    for k, node in enumerate(nodes):
        upper = node.upper if isinstance(node, Word) else ""
        depth += (upper in OPENING) - (upper in CLOSING)
        if depth == 0:
            return k == len(nodes) - 1
    return False
