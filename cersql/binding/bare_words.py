"""Words in expressions that nothing gives a meaning: `a.state = passive`, where the text 'passive' was meant.

With a session Spark says so, which also knows the session's own variables; this is for cersql.compile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain

from cersql.binding.event_values import BOUNDS, TIMEOUTS
from cersql.binding.expressions import NILADIC, UNIT_FIRST, Bare, Call, Node, Ref, Word, read
from cersql.binding.scope import Names, Scope, collect
from cersql.errors import BindError, nearest
from cersql.language import syntax
from cersql.language.source import SourceText
from planner.query import Query
from runtime.errors import Span

# Words behind which an operand stands, or before which one has ended.
_AROUND = frozenset("AND OR NOT IN IS LIKE ILIKE RLIKE REGEXP BETWEEN CASE WHEN THEN ELSE END DIV DISTINCT".split())


def check(query: syntax.Query, bound: Query, case_sensitive: bool) -> None:
    """Raises for the first one. The query has been bound, so all names of columns in it are right."""
    scope = Scope(collect(query.pattern, case_sensitive), case_sensitive)
    given = (output.name for output in bound.outputs if output.name is not None)
    made = [name for variable in bound.variables if variable.created for name in variable.columns]
    known = Names([*(column.name for column in bound.columns), *made, *given, *BOUNDS, *TIMEOUTS], case_sensitive)
    for place, variable in _expressions(query, scope):
        for name, span in _words(query.text, place, variable, scope.fold):
            if name not in known and name.upper() not in NILADIC:
                near = nearest(name, known)
                column = f"Did you mean the column {near}? " if near else ""
                hint = f"{column}If it is a text, put it in quotes: '{name}'."
                raise BindError("BARE_WORD", span=span, name=name, hint=hint)


def _expressions(query: syntax.Query, scope: Scope) -> Iterator[tuple[Span, Callable[[str], str | None]]]:
    """The expressions of a query, in the order of the clauses, and what is a variable in each."""
    for definition in query.definitions:
        yield definition.condition.span, _none
    of_match = [item.expression for item in query.returns if not item.star]
    of_match += [query.having] if query.having is not None else []
    rows = [query.rows] if query.rows is not None else []
    for text in chain(rows, _filters(query.pattern), query.where, of_match):
        yield text.span, scope.variable


def _none(name: str) -> None:
    """No name is a variable: columns stand bare."""


def _filters(part: syntax.Pattern) -> Iterator[syntax.Text]:
    for inner in syntax.children(part):
        yield from _filters(inner)
    if isinstance(part, syntax.FilterPart):
        yield part.condition


def _words(
    text: SourceText, place: Span, variable: Callable[[str], str | None], fold: Callable[[str], str]
) -> Iterator[tuple[str, Span]]:
    """The names without a dot that stand where an operand does."""
    yield from _among(text, read(text, place, variable, fold), fold)


def _among(text: SourceText, nodes: Sequence[Node], fold: Callable[[str], str]) -> Iterator[tuple[str, Span]]:
    for i, node in enumerate(nodes):
        if isinstance(node, Call):
            for inner in (node.arguments, *(key.nodes for key in node.order), node.where):
                yield from _among(text, inner, fold)
        elif isinstance(node, Ref) and node.condition is not None:
            yield from _words(text, node.condition.span, _none, fold)
        elif isinstance(node, Bare) and len(node.names) == 1 and _is_operand(nodes, i):
            yield node.names[0], node.span


def _is_operand(nodes: Sequence[Node], i: int) -> bool:
    """Whether an operator, a comma or nothing stands on each side: not so in SQL's own `OVERLAY(a PLACING b FROM 1)`,
    `x IS UNKNOWN` and `timestampadd(QUARTER, …)`."""
    before = nodes[i - 1] if i else None
    after = nodes[i + 1] if i + 1 < len(nodes) else None
    if not _divides(before, (")", "]", ".")) or not _divides(after, ("(", "[", ".")):
        return False
    words = [node.token.upper if isinstance(node, Word) else "" for node in nodes[max(0, i - 2) : i]]
    return words[-1:] != ["IS"] and words != ["IS", "NOT"] and not (words[:1] and words[0] in UNIT_FIRST)


def _divides(node: Node | None, never: tuple[str, ...]) -> bool:
    if node is None:
        return True
    if not isinstance(node, Word):
        return False
    return (node.token.kind == "op" and node.token.text not in never) or node.upper in _AROUND
