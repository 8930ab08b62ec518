"""WHERE before PATTERN: which rows of the sources are read at all, as everyone reads it.

    FROM trades WHERE price > 0 PATTERN A a ; B b WHERE a.id = b.id …

The first WHERE is of rows, the second of the pattern. Clauses may stand in any order, so a WHERE that stands alone
before PATTERN can be either; the names in it say which. With several sources each condition of its AND is about the
rows of one of them, or about all rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from cersql.binding.booleans import Bool, structure
from cersql.binding.comparisons import unwrapped
from cersql.binding.expressions import NILADIC, Bare, Call, Node, Ref, Word, read, rendered, walk
from cersql.binding.row_keys import Key, RowKeys
from cersql.binding.scope import Scope, unknown_column
from cersql.errors import BindError, ParseError
from cersql.language import syntax
from planner.query import Source
from planner.sql import Sql, quote


@dataclass(frozen=True)
class Rows:
    """What WHERE says: of the pattern, and of each source's rows."""

    where: tuple[syntax.Text, ...]
    filters: tuple[Sql | None, ...] = ()
    warnings: tuple[str, ...] = ()

    def of(self, sources: Sequence[Source]) -> tuple[Source, ...]:
        filters = self.filters or (None,) * len(sources)
        return tuple(replace(source, where=sql) for source, sql in zip(sources, filters, strict=True))


def sorted_out(query: syntax.Query, scope: Scope, keys: RowKeys, partition_by: Sequence[Key]) -> Rows:
    """Which condition is of rows and which of the pattern."""
    written = query.rows
    if written is None:
        return Rows(query.where)
    found = _Written(query, scope, keys, partition_by, written)
    events = list(found.events())
    if events and query.where:
        raise ParseError(
            "DUPLICATE_CLAUSE", span=query.clause("WHERE"), clause="WHERE",
            hint=f"The one before PATTERN speaks of events, too ({found.shown(events[0])}): join them with AND.",
        )  # fmt: skip
    if not events:
        return Rows(query.where, found.filters())
    for node in found.columns():
        raise BindError(
            "ROWS_AND_EVENTS", span=node.span, row=found.shown(node), event=found.shown(events[0]),
            hint="Write one WHERE before PATTERN for the rows, and one after it for the events.",
        )  # fmt: skip
    return Rows((written,), (), tuple(found.warnings(events)))


@dataclass(frozen=True)
class _Written:
    """A WHERE before PATTERN."""

    query: syntax.Query
    scope: Scope
    keys: RowKeys
    partition_by: Sequence[Key]
    written: syntax.Text

    @property
    def nodes(self) -> tuple[Node, ...]:
        return read(self.query.text, self.written.span, self.scope.variable, self.scope.fold)

    def shown(self, node: Node) -> str:
        return " ".join(self.query.text[node.span.start : node.span.end].split())

    def events(self) -> Iterator[Node]:
        """What can only be said of events: variables, aggregates, `[k]`. Beside a second WHERE a source's alias is the
        source, though a type is called so, too."""
        nodes = self.nodes
        for node in walk(nodes):
            if isinstance(node, Call):
                yield node
            if isinstance(node, Ref) and not self._is_column(node):
                source = self.query.where and node.index is None and node.condition is None and node.column is not None
                if not source or self.keys.alias(node.written) is None:
                    yield node
        for leaf in self._agreements():
            yield Bare((self.query.text[leaf.span.start : leaf.span.end],), leaf.span, leaf.span)

    def _agreements(self) -> Iterator[Bool]:
        """`[k]`."""
        nodes = self.nodes
        for leaf in structure(nodes).leaves() if nodes else ():
            first = unwrapped(leaf.nodes)[0]
            if isinstance(first, Word) and first.upper == "[":
                yield leaf

    def _is_column(self, node: Ref) -> bool:
        """`v > 1` beside a variable v: an event is no value, so it is the column."""
        alone = node.index is None and node.condition is None and node.column is None
        return alone and self.keys.columns.find(node.written) is not None

    def columns(self) -> Iterator[Node]:
        """What can only be said of rows: columns that can differ from event to event, sources."""
        constant = {self.scope.fold(key.name) for key in self.partition_by}
        agreed = [leaf.span for leaf in self._agreements()]
        for node in walk(self.nodes):
            if any(span.start <= node.span.start < span.end for span in agreed):
                continue
            first = node.names[0] if isinstance(node, Bare) else node.written if isinstance(node, Ref) else None
            if first is None or (isinstance(node, Ref) and not self._is_column(node)):
                continue
            source = isinstance(node, Bare) and len(node.names) > 1 and self.keys.alias(first) is not None
            if source or (self.keys.columns.find(first) is not None and self.scope.fold(first) not in constant):
                yield node

    def warnings(self, events: Sequence[Node]) -> Iterator[str]:
        for node in events:
            if isinstance(node, Ref) and self.keys.alias(node.written) is not None:
                yield (
                    f"WHERE before PATTERN speaks of {node.written}, which is an event of the pattern here, so that it "
                    f"asks of such events; to read fewer rows write FROM (SELECT * FROM … WHERE …) AS {node.written}."
                )
                return

    # ------------------------------------------------------------ of rows

    def filters(self) -> tuple[Sql | None, ...]:
        """For each source, what is asked of its rows."""
        text, columns = self.query.text, self.keys.columns
        nodes = read(text, self.written.span, lambda name: None, self.scope.fold)
        for node in walk(nodes):
            if isinstance(node, Word) and node.upper == "OVER":
                raise BindError("ROW_EXPRESSION", span=node.span, clause="WHERE", construct="a window function, OVER,")
        if len(columns.items) == 1:
            return (rendered(text, nodes, lambda node: self._column(node, 0), self.written.span),)
        asked: list[list[Sql]] = [[] for _ in columns.items]
        for part in structure(nodes).conjuncts():
            for i in self._sources(part):
                asked[i].append(rendered(text, part.nodes, lambda node, i=i: self._column(node, i)))  # type: ignore[misc]
        return tuple(_all_of(parts) if parts else None for parts in asked)

    def _sources(self, part: Bool) -> Sequence[int]:
        """Of whose rows one condition is asked: those of the source that it names, else of all."""
        first: tuple[int, Node] | None = None
        for node in walk(part.nodes):
            own = self._qualifier(node.names) if isinstance(node, Bare) else None
            if own is None:
                continue
            if first is not None and first[0] != own:
                raise BindError(
                    "ROWS_OF_SOURCES", span=node.span, first=self.shown(first[1]), second=self.shown(node),
                    hint="Compare events: name them in the pattern, and write WHERE a.x = b.y after it.",
                )  # fmt: skip
            first = own, node
        return range(len(self.keys.columns.items)) if first is None else (first[0],)

    def _qualifier(self, names: Sequence[str]) -> int | None:
        """The source before the dot, if that is no struct."""
        alias = self.keys.alias(names[0]) if len(names) > 1 else None
        if alias is None:
            return None
        columns = self.keys.columns
        struct = columns.find(names[0]) is not None and columns.own(names[1], alias) is None
        return None if struct else alias

    def _column(self, node: Node, source: int) -> str | None:
        if not isinstance(node, Bare):
            return None
        columns, names = self.keys.columns, node.names
        qualified = self._qualifier(names) is not None
        names = names[1:] if qualified else names
        own = columns.own(names[0], source)
        if own is not None:
            return ".".join(quote(part) for part in (own.name, *names[1:]))
        if len(names) == 1 and not qualified and columns.find(names[0]) is None and names[0].upper() in NILADIC:
            return None
        alias = columns.items[source].alias
        error = unknown_column(names[0], node.span if qualified else node.first, alias, columns.known([source]))
        having = [item.alias for i, item in enumerate(columns.items) if columns.own(names[0], i) is not None]
        if having:
            error.hint = f"This asks of every row, also of those of {alias}; to ask of {having[0]} alone write " \
                f"{having[0]}.{names[0]}."  # fmt: skip
        raise error


def _all_of(parts: Sequence[Sql]) -> Sql:
    if len(parts) == 1:
        return parts[0]
    pieces = list(parts[0].wrapped("(", ")").pieces)
    for part in parts[1:]:
        pieces += part.wrapped(" AND (", ")").pieces
    return Sql(tuple(pieces))
