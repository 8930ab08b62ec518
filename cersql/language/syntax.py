"""The syntax tree: what the user wrote, clause by clause, each part with its place in the text.

Nothing is resolved here. Scalar expressions stay raw text (`Text`); `cersql/binding/expressions.py` takes them apart.
Nodes are immutable and compare by value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from cersql.language.operators import INFIX
from cersql.language.source import SourceText
from runtime.errors import Span


@dataclass(frozen=True)
class Name:
    """An identifier as Spark reads it: `value` without back-ticks; `quoted` if it had them."""

    value: str
    span: Span
    quoted: bool = False


@dataclass(frozen=True)
class Text:
    """A stretch of the user's text that is left as it is: a condition, an item, a subquery."""

    value: str
    span: Span


# ---------------------------------------------------------------- patterns


@dataclass(frozen=True)
class Pattern:
    """A pattern, or a part of one. Fields that are patterns, or tuples of them, are its parts: `children`, `walk` and
    `changed` below find them by that, so a node declares its parts by having them."""

    span: Span = field(kw_only=True)


@dataclass(frozen=True)
class TypeRef(Pattern):
    """A type name, or ANY (`name` is None): one event."""

    name: Name | None


@dataclass(frozen=True)
class Alias(Pattern):
    """`p AS x`; also `Type x`, `Type+ x`, `Type+ x[]`, `Type x+` (an Alias inside a Repeat)."""

    inner: Pattern
    name: Name


@dataclass(frozen=True)
class Chain(Pattern):
    """Two or more parts, one after the other: SEQ, `;`, `->`, or with `contiguous` `:`."""

    items: tuple[Pattern, ...]
    contiguous: bool


@dataclass(frozen=True)
class Repeat(Pattern):
    """`p+` is (1, None), `p*` (0, None), `p?` (0, 1), `p{n}` (n, n), `p{n,}` (n, None); `:` before: contiguous."""

    inner: Pattern
    low: int
    high: int | None
    contiguous: bool


@dataclass(frozen=True)
class Combination(Pattern):
    """Two or more operands of one infix operator, by its word (`operator`) in the table of operators.

    `A OR B OR C` has three; what groups to the left, as the one that excludes does, has two. ANY(a, b) is an OR.
    """

    operator: str
    items: tuple[Pattern, ...]


@dataclass(frozen=True)
class Negation(Pattern):
    """`!p`, `NOT p`: an operand of a sequence that must not happen."""

    inner: Pattern


@dataclass(frozen=True)
class FilterPart(Pattern):
    """`p FILTER condition`. `own_columns`: as in Esper's `Type(condition)`, bare columns are those of the event."""

    inner: Pattern
    condition: Text
    own_columns: bool = False


@dataclass(frozen=True)
class PartBy(Pattern):
    """`p PART BY (x.a, y.b)`."""

    inner: Pattern
    keys: Text


@dataclass(frozen=True)
class Function(Pattern):
    """START, STRICT, NXT, LAST, MAX, NEXT (`function`, upper case) around a pattern."""

    function: str
    inner: Pattern


@dataclass(frozen=True)
class Project(Pattern):
    """`PROJECT(targets : p)`; targets are raw."""

    targets: Text
    inner: Pattern


@dataclass(frozen=True)
class Aggregation(Pattern):
    """`AGG(assignments ; p)`; assignments are raw."""

    assignments: Text
    inner: Pattern


@dataclass(frozen=True)
class Windowed(Pattern):
    """`(p WITHIN w)` inside a pattern."""

    inner: Pattern
    window: Window


def children(part: Pattern) -> tuple[Pattern, ...]:
    """The direct parts: of `A ; (B OR C)+` they are `A` and `(B OR C)+`."""
    return tuple(item for value in vars(part).values() for item in _in(value))


def _in(value: Any) -> tuple[Pattern, ...]:
    return tuple(item for item in (value if isinstance(value, tuple) else (value,)) if isinstance(item, Pattern))


def happening(part: Pattern) -> tuple[Pattern, ...]:
    """The direct parts whose events are in a match: of `A OR B` both, of what excludes the first, of `!A` none."""
    if isinstance(part, Negation):
        return ()
    if isinstance(part, Combination) and INFIX[part.operator].excludes:
        return part.items[:1]
    return children(part)


def walk(part: Pattern) -> Iterator[Pattern]:
    """The pattern and all that is in it, each before its parts."""
    yield part
    for child in children(part):
        yield from walk(child)


def changed(part: Pattern, change: Callable[[Pattern], Pattern]) -> Pattern:
    """The same node with its direct parts changed: `A+` with `A` made `B` is `B+`."""
    new: dict[str, Any] = {}
    for name, value in vars(part).items():
        if _in(value):
            new[name] = tuple(map(change, value)) if isinstance(value, tuple) else change(value)
    return replace(part, **new)


# ---------------------------------------------------------------- clauses


@dataclass(frozen=True)
class Window:
    """`WITHIN [<] amount [unit]`.

    `unit` is 'EVENTS', 'INTERVAL' (then `amount` is a whole Spark interval literal, for example
    `INTERVAL 10 MINUTES` or `INTERVAL '1 02' DAY TO HOUR`) or None for a plain number. `strict` is the `<`. `slide`:
    `SLIDE amount [unit]` behind it, as a window.
    """

    amount: Text
    unit: str | None
    strict: bool
    span: Span
    slide: Window | None = None


@dataclass(frozen=True)
class Source:
    """One entry of FROM: a (multi-part) table name or a subquery (text without the parentheses).

    `joins`: it was written as a join of these tables, and of subqueries; its subquery is what that stands for.
    """

    table: tuple[Name, ...] | None
    subquery: Text | None
    alias: Name | None
    type_column: Name | None
    span: Span
    joins: tuple[tuple[Name, ...], ...] = ()


@dataclass(frozen=True)
class Definition:
    """`A AS condition` of DEFINE."""

    name: Name
    condition: Text


@dataclass(frozen=True)
class Computed:
    """An expression over one row in PARTITION BY or ORDER BY, and the name that AS gives it."""

    expression: Text
    alias: Name | None = None


RowKey = tuple[Name, ...] | Computed
"""A column, with what stands before its dots, or more than a column."""


@dataclass(frozen=True)
class OrderItem:
    """One column or expression of ORDER BY; `nulls` is 'FIRST', 'LAST' or None."""

    column: RowKey
    descending: bool
    nulls: str | None
    span: Span


@dataclass(frozen=True)
class ReturnItem:
    """`expression [AS alias]`; the bare `*` is an item of its own (`star`)."""

    expression: Text
    alias: Name | None
    star: bool = False


@dataclass(frozen=True)
class Query:
    """A whole query. `text` is the statement that all spans point into.

    `clauses` keeps the span of each clause's keyword by kind ('PATTERN', 'WHERE', 'RETURN', …), for errors. `rows`: a
    WHERE before PATTERN, of the sources' rows or of the pattern by the names in it. `ceql`: the text says in our words
    what a query of CORE's says; there each source is a stream of events of several types, and `S>A` is an A of S.
    `most_at_end`: of the matches that end at one event any so many, CORE's LIMIT.
    """

    text: SourceText
    pattern: Pattern
    returns: tuple[ReturnItem, ...]
    sources: tuple[Source, ...] = ()
    ctes: Text | None = None
    definitions: tuple[Definition, ...] = ()
    where: tuple[Text, ...] = ()
    rows: Text | None = None
    partition_by: tuple[RowKey, ...] = ()
    order_by: tuple[OrderItem, ...] = ()
    watermark: Text | None = None
    emit: Text | None = None
    within: Window | None = None
    semantics: Text | None = None
    consume: Text | None = None
    skip: Text | None = None
    with_timeouts: Span | None = None
    group_by: Text | None = None
    having: Text | None = None
    limit: int | None = None
    ceql: bool = False
    most_at_end: int | None = None
    clauses: tuple[tuple[str, Span], ...] = ()

    def clause(self, kind: str) -> Span | None:
        """The place of a clause's keyword."""
        return dict(self.clauses).get(kind)
