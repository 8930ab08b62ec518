"""Builds the tree of a pattern, from the bottom up, for the rules of grammar.lark."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from cersql.errors import ParseError
from cersql.language import syntax
from cersql.language.lexer import MAX_DEPTH
from cersql.language.operators import CALLS
from cersql.language.pattern_tokens import Quantifier
from runtime.errors import Span


@dataclass(frozen=True)
class Part:
    """A node while it is built: with the parentheses around it, its height, and the first word between its
    operands, if it has one."""

    node: syntax.Pattern
    span: Span
    height: int
    closed: bool = False
    conjunction: Span | None = None


_MAX_HEIGHT = 3 * MAX_DEPTH


class Build:
    """lark calls these while it parses, bottom up, so that no deep text can exhaust Python's stack."""

    def _make(self, make: Any, span: Span, *parts: Part, **more: Any) -> Part:
        height = 1 + max((part.height for part in parts), default=0)
        if height > _MAX_HEIGHT:
            raise ParseError("TOO_DEEP", span=span, limit=_MAX_HEIGHT)
        return Part(make(span), span, height, **more)

    def _joined(self, parts: list[Part], make: Any, **more: Any) -> Part:
        return self._make(make, parts[0].span | parts[-1].span, *parts, **more)

    def start(self, children: list[Any]) -> Part:
        part: Part = children[0]
        return part

    def infix(self, children: list[Any]) -> Part:
        """`p OR q OR r`: operands, with the word between every two of them."""
        parts, word = children[::2], children[1].value
        items = tuple(part.node for part in parts)
        return self._joined(parts, lambda s: syntax.Combination(word.value, items, span=s), conjunction=word.span)

    def chain(self, parts: list[Part]) -> Part:
        return self._joined(parts, lambda s: syntax.Chain(tuple(p.node for p in parts), contiguous=False, span=s))

    def contiguous(self, parts: list[Part]) -> Part:
        return self._joined(parts, lambda s: syntax.Chain(tuple(p.node for p in parts), contiguous=True, span=s))

    def negation(self, children: list[Any]) -> Part:
        mark, part = children
        return self._make(lambda s: syntax.Negation(part.node, span=s), mark.value.span | part.span, part)

    def type_ref(self, children: list[Any]) -> Part:
        terminal = children[0].value
        return self._make(lambda s: syntax.TypeRef(terminal.value, span=s), terminal.span)

    def _postfix(self, children: list[Any], make: Any) -> Part:
        part, terminal = children[0], children[1].value
        return self._make(lambda s: make(part.node, terminal.value, s), part.span | terminal.span, part)

    def repeat(self, children: list[Any]) -> Part:
        def make(inner: syntax.Pattern, q: Quantifier, span: Span) -> syntax.Pattern:
            return syntax.Repeat(inner, q.low, q.high, q.contiguous, span=span)

        return self._postfix(children, make)

    def alias(self, children: list[Any]) -> Part:
        return self._postfix(children, lambda inner, name, span: syntax.Alias(inner, name, span=span))

    def filter(self, children: list[Any]) -> Part:
        return self._postfix(children, lambda inner, text, span: syntax.FilterPart(inner, text, span=span))

    def part_by(self, children: list[Any]) -> Part:
        return self._postfix(children, lambda inner, keys, span: syntax.PartBy(inner, keys, span=span))

    def listed(self, parts: list[Part]) -> list[Part]:
        return parts

    # -------------------------------------------------------- parentheses; the last two children are [WINDOW] RPAR

    def _close(self, children: list[Any], part: Part, whole: Any = None) -> Part:
        """The part in its parentheses: the window around it, then `whole(part, span)` (a function) around both."""
        span = children[0].value.span | children[-1].value.span
        window = children[-2].value if children[-2] is not None else None
        if window is not None:
            within = part.span | window.span
            part = self._make(lambda s: syntax.Windowed(part.node, window.value, span=s), within, part)
        if whole is not None:
            inner = part.node
            part = self._make(lambda s: whole(inner, s), span, part)
        return replace(part, span=span, closed=True, conjunction=None)

    def group(self, children: list[Any]) -> Part:
        return self._close(children, children[1])

    def sequence(self, children: list[Any]) -> Part:
        parts: list[Part] = children[2]
        for part in parts:
            _check_comma(part)
        return self._listed(children, lambda items, s: syntax.Chain(items, contiguous=False, span=s))

    def negated_sequence(self, children: list[Any]) -> Part:
        """NSEQ(A, B, C) of the simple event algebra: SEQ(A, !B, C)."""
        parts: list[Part] = children[2]
        span = children[0].value.span | children[-1].value.span
        if len(parts) != 3:
            raise ParseError("NSEQ_PARTS", span=span, found=len(parts), hint="NSEQ(A, B, C) is SEQ(A, !B, C).")
        for part in parts:
            _check_comma(part)
        first, negated, last = parts
        absent = self._make(lambda s: syntax.Negation(negated.node, span=s), negated.span, negated)
        items = (first.node, absent.node, last.node)
        made = self._make(lambda s: syntax.Chain(items, contiguous=False, span=s), span, first, absent, last)
        return self._close(children, made)

    def iteration(self, children: list[Any]) -> Part:
        """ITER(B, 2) of the simple event algebra: B{2}."""
        number, part = children[3].value.value, children[2]
        repeated = self._make(
            lambda s: syntax.Repeat(part.node, number.low, number.high, number.contiguous, span=s), part.span, part
        )
        return self._close(children, repeated)

    def combination(self, children: list[Any]) -> Part:
        operator = CALLS[children[0].value.value].means
        return self._listed(children, lambda items, s: syntax.Combination(operator, items, span=s))

    def _listed(self, children: list[Any], make: Any) -> Part:
        """SEQ, ALL or ANY of a list; of one pattern it is that pattern."""
        parts: list[Part] = children[2]
        if len(parts) == 1:
            return self._close(children, parts[0])
        span = children[0].value.span | children[-1].value.span
        items = tuple(part.node for part in parts)
        return self._close(children, self._make(lambda s: make(items, s), span, *parts))

    def function(self, children: list[Any]) -> Part:
        name = children[0].value.value
        return self._close(children, children[2], lambda p, s: syntax.Function(name, p, span=s))

    def project(self, children: list[Any]) -> Part:
        targets = children[2].value.value
        return self._close(children, children[3], lambda p, s: syntax.Project(targets, p, span=s))

    def aggregation(self, children: list[Any]) -> Part:
        assignments = children[2].value.value
        return self._close(children, children[3], lambda p, s: syntax.Aggregation(assignments, p, span=s))


def _check_comma(part: Part) -> None:
    """Raises for `SEQ(A a AND B b, C)`: two events can never be one, so a comma was meant."""
    node = part.node
    if part.closed or part.conjunction is None or not isinstance(node, syntax.Combination) or node.operator != "AND":
        return
    variables = [_single_variable(item) for item in node.items]
    if None in variables or len(set(variables)) == 1:
        return
    raise ParseError(
        "COMMA_EXPECTED",
        span=part.conjunction,
        found="AND",
        items="the parts of SEQ",
        hint="Write SEQ(A a, B b, C c). AND asks both sides to be the same events; in any order is A ALL B.",
    )


def _single_variable(node: syntax.Pattern) -> str | None:
    """The variable of `Type`, `Type x`, `Type+ x`; None for everything else."""
    name: syntax.Name | None = None
    while isinstance(node, syntax.Alias | syntax.Repeat):
        if isinstance(node, syntax.Alias):
            name = name or node.name
        node = node.inner
    if not isinstance(node, syntax.TypeRef):
        return None
    name = name or node.name
    return name.value.casefold() if name else "any"
