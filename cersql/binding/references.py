"""The names in conditions: which variable, column and key each means, and the SQL of a condition on one row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from cersql.binding.about import refuse_windows
from cersql.binding.columns import Columns, View
from cersql.binding.comparisons import (
    plain,
)
from cersql.binding.expressions import Bare, Call, Node, Ref, Said, Word, read, rendered, walk
from cersql.binding.projection import Limits
from cersql.binding.row_keys import Key, RowKeys
from cersql.binding.scope import ExpressionTypes, Names, Scope, display, unknown_column, unknown_variable
from cersql.binding.together import gathered
from cersql.errors import BindError
from cersql.language.lexer import Token
from cersql.language.source import SourceText
from cersql.language.syntax import Definition, Text
from planner.query import SOURCE_COLUMN, Column, Source
from planner.sql import Sql, quote
from runtime.errors import Span

_NEIGHBOUR = (
    "DEFINE asks one row. Neighbours of a loop are compared in WHERE: PATTERN ANY:+ x WHERE x[i].v > x[i-1].v, or "
    "x.v > PREV(x.v)."
)
_OF_OTHERS = {"PREV": _NEIGHBOUR, "NEXT": _NEIGHBOUR}


@dataclass(frozen=True)
class CreatedView:
    """The columns of the events that AGG creates: the time, under the name of ORDER BY's first column, then the
    attributes. `columns`: of each its type, as a column of no source (`y.b`). `limit`: what PROJECT has left of them.
    """

    every: tuple[str, ...]
    columns: tuple[Column, ...]
    case_sensitive: bool
    limit: frozenset[str] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        return self.every if self.limit is None else tuple(name for name in self.every if name in self.limit)

    def find(self, name: str) -> str | None:
        return Names(self.names, self.case_sensitive).get(name)

    def column(self, name: str, span: Span) -> Column:
        return self.columns[self.every.index(name)]


@dataclass
class References:
    """Checks and lowers the names of one query; remembers which columns are read, and which variables are named."""

    text: SourceText
    scope: Scope
    stream: Columns
    sources_of: Callable[[str], tuple[int, ...]]  # from which sources the events of a mark can be
    keys: RowKeys
    partition_by: tuple[Key, ...] = ()
    agreed: tuple[str, ...] = ()  # columns of the events on which every match agrees
    limits: Limits = field(default_factory=dict)  # what PROJECT has left of them, where we are
    dropped: set[str] = field(default_factory=set)  # the marks that some PROJECT so far did not keep
    reads: set[str] = field(default_factory=set)
    named: set[str] = field(default_factory=set)
    warnings: list[str] = field(default_factory=list)
    created: dict[str, CreatedView] = field(default_factory=dict)  # by the variables of AGG
    types: ExpressionTypes | None = None  # what Spark says of expressions; set once the columns are known

    @property
    def columns(self) -> Sequence[Column]:
        """The columns of the stream, of which conditions on a row are made; those, too, that are made later."""
        return self.stream

    def all_columns_of(self, mark: str) -> tuple[str, ...]:
        """The names of a mark's columns, before any PROJECT."""
        if mark in self.created:
            return self.created[mark].every
        return self.stream.known(self.sources_of(mark))

    def view(self, mark: str) -> View | CreatedView:
        if mark in self.created:
            return replace(self.created[mark], limit=self.limits.get(mark))
        return View(self.stream, self.sources_of(mark), self.limits.get(mark))

    def columns_of(self, mark: str) -> tuple[str, ...]:
        """The names of a mark's columns."""
        return self.view(mark).names

    def nodes(self, condition: Text, in_scope: frozenset[str], own: str | None = None) -> tuple[Node, ...]:
        """The nodes of a condition, each name checked."""
        nodes = read(self.text, condition.span, self.scope.variable, self.scope.fold)
        if own is not None:
            nodes = tuple(self._owned(node, own) for node in nodes)
        if not nodes:
            raise BindError("EMPTY_CONDITION", span=condition.span, hint="Write for example a.x > 1.")
        nodes = self.keys.recognized(self.one_variable(plain(self.gathered(nodes))), self.partition_by)
        refuse_windows(nodes)
        self._refuse_unknown(nodes, in_scope)
        for node in walk(nodes):
            self._check(node, in_scope)
        return nodes

    def gathered(self, nodes: Sequence[Node]) -> tuple[Node, ...]:
        """The nodes, with what is said of several events together."""
        found: list[Node] = []
        for node in gathered(nodes, self._inside, self._is_flag):
            created = isinstance(node, Ref) and node.condition is not None and node.variable in self.created
            found += self._spelled_out(node) if created and isinstance(node, Ref) else [node]
        return tuple(found)

    def _spelled_out(self, ref: Ref) -> list[Node]:
        """`y[b > 5]` of a created event as (y.b > 5)."""
        assert ref.condition is not None
        own = Names(self.columns_of(ref.variable), self.scope.case_sensitive)
        begin, end = ref.condition.span.start, ref.condition.span.end
        found: list[Node] = [Said(Token("op", "(", ref.span.start, begin))]
        for node in self._inside(ref):
            column = own.get(node.names[0]) if isinstance(node, Bare) else None
            if isinstance(node, Bare) and column is None:
                raise unknown_column(node.names[0], node.first, display(ref.variable), own)
            if isinstance(node, Bare):
                node = Ref(ref.variable, None, column, node.span, node.first, None, ref.written)
            found.append(node)
        return [*found, Said(Token("op", ")", end, ref.span.end))]

    def _inside(self, ref: Ref) -> tuple[Node, ...]:
        """The nodes of the condition in `x[condition]`, whose columns stand bare."""
        assert ref.condition is not None
        return read(self.text, ref.condition.span, lambda name: None, self.scope.fold)

    def _is_flag(self, ref: Ref, name: Bare) -> bool:
        """Is it a BOOLEAN column of x? Then `x[flag]` is a condition on each x."""
        own = self.view(ref.variable).find(name.names[0])
        if own is None or len(name.names) > 1 or self.row_column(ref.variable, own, name.span).type != "boolean":
            return False
        self.warnings.append(
            f"{self._shown(ref)} asks that {own} is TRUE for each {ref.written}, which can be written "
            f"{ref.written}[{own} = TRUE]. If all are to have one value: "
            f"MIN({ref.written}.{own}) = MAX({ref.written}.{own})."
        )
        return True

    def one_variable(self, nodes: tuple[Node, ...]) -> tuple[Node, ...]:
        """`m.rate < NEXT(M).rate` in a pattern where every M is called m: both speak of m."""
        if not any(isinstance(node, Ref) and node.index in ("previous", "next") for node in nodes):
            return nodes
        return tuple(
            replace(node, variable=self.scope.sole_alias(node.variable)) if isinstance(node, Ref) else node
            for node in nodes
        )

    def _refuse_unknown(self, nodes: Sequence[Node], in_scope: Iterable[str]) -> None:
        """Raises for `mstf[price > 1]`, where no variable and no column is called so."""
        for name, bracket, inside in zip(nodes, nodes[1:], nodes[2:], strict=False):
            opens = isinstance(bracket, Word) and bracket.upper == "["
            index = isinstance(inside, Word) and inside.token.kind in ("number", "string")
            if not isinstance(name, Bare) or len(name.names) > 1 or not opens or index:
                continue
            if self.stream.find(name.names[0]) is None:
                raise unknown_variable(name.names[0], name.first, self.scope.shown(in_scope))

    def speaks_of_others(self, condition: Text, own: str) -> bool:
        """Does a condition on one event, `B(price > a.price)`, name other variables?"""
        nodes = read(self.text, condition.span, self.scope.variable, self.scope.fold)
        return any(isinstance(node, Ref) and node.variable != own for node in walk(nodes))

    def _check(self, node: Node, in_scope: frozenset[str]) -> None:
        if isinstance(node, Ref):
            self.check_ref(node, in_scope, neighbours=True)

    def _owned(self, node: Node, own: str) -> Node:
        """A bare column in a condition on one event, `B(price > 1)`, as a reference to that event."""
        if not isinstance(node, Bare):
            return node
        column = Names(self.columns_of(own), self.scope.case_sensitive).get(node.names[0])
        return node if column is None else Ref(own, None, column, node.first, node.first, None, display(own))

    def check_ref(self, ref: Ref, in_scope: Iterable[str], neighbours: bool = False) -> None:
        """Its variable is in scope and says one thing, its column exists; only where `neighbours` it may be one."""
        self.check_variable(ref.variable, ref.written, ref.span, in_scope)
        if ref.index in ("previous", "next") and not neighbours:
            raise BindError("NOT_SUPPORTED_YET", span=ref.span, construct=f"{self._shown(ref)}, a neighbouring event,")
        if ref.column not in (None, "*"):
            assert ref.column is not None
            self.row_column(ref.variable, ref.column, ref.column_span or ref.span)

    def check_variable(self, mark: str | None, written: str, span: Span, in_scope: Iterable[str]) -> str:
        """The mark, if it says one thing and is in scope."""
        self.scope.check_reference(written, span)
        if mark is None or mark not in in_scope:
            if mark is not None and self.scope.is_negated(mark):
                raise BindError(
                    "NEGATED_VARIABLE", span=span, name=written,
                    hint="What must not happen can have conditions in WHERE, and is nowhere else.",
                )  # fmt: skip
            error = unknown_variable(written, span, self.scope.shown(in_scope))
            if mark in self.dropped:
                error.hint = f"PROJECT drops {written}; to keep it, name it before the ':'. {error.hint}"
            raise error
        self.named.add(mark)
        return mark

    def column(self, mark: str, name: str, span: Span) -> str:
        """A column of a variable in the schema's spelling."""
        known = self.columns_of(mark)
        own = Names(known, self.scope.case_sensitive).get(name)
        if own is None:
            error = unknown_column(name, span, display(mark), known)
            if name in Names(self.all_columns_of(mark), self.scope.case_sensitive):
                error.hint = f"PROJECT keeps only some columns of {display(mark)}. It has: {', '.join(known)}."
            raise error
        return own

    def row_column(self, mark: str, name: str, span: Span) -> Column:
        """The column of the stream that holds a variable's column, with its type in the variable's sources."""
        return self.view(mark).column(self.column(mark, name, span), span)

    def _shown(self, node: Node) -> str:
        return self.text[node.span.start : node.span.end]

    # ------------------------------------------------------------ text for one row

    def row_sql(self, nodes: Sequence[Node]) -> Sql:
        """A condition on one row: `x.a` becomes the column a."""
        return rendered(self.text, nodes, self._row)

    def _row(self, node: Node) -> Sql | str | None:
        if isinstance(node, Ref) and node.variable in self.created:
            raise BindError(
                "NOT_SUPPORTED_YET", span=node.span, construct=f"{self._shown(node)}, of a created event, here",
                hint="It can stand in comparisons in WHERE, HAVING and FILTER, and in aggregates.",
            )  # fmt: skip
        if isinstance(node, Ref):
            if node.condition is not None:
                view, owner = self.view(node.variable), display(node.variable)
                assert isinstance(view, View)
                return self.bare_condition(node.condition, {}, view, owner).wrapped("(", ")")
            column = self.row_column(node.variable, *self.named_column(node))
            self.reads.add(column.name)
            return quote(column.name)
        if isinstance(node, Bare):
            return self._bare(node)
        return None

    def named_column(self, ref: Ref) -> tuple[str, Span]:
        """The one column that a reference names; EVENT_NOT_VALUE for whole events."""
        if ref.column is None or ref.column == "*":
            first = next(iter(self.columns_of(ref.variable)), "x")
            raise BindError(
                "EVENT_NOT_VALUE", span=ref.span, name=self._shown(ref),
                hint=f"Name one of its columns: {ref.written}.{first}, for example.",
            )  # fmt: skip
        return ref.column, ref.column_span or ref.span

    def _bare(self, node: Bare) -> str | None:
        name = self.constant_column(node)
        if name is None:
            return None
        column = next(key.column for key in self.partition_by if key.name == name)
        self.reads.add(column.name)
        return ".".join(quote(part) for part in (column.name, *node.names[1:]))

    def constant_column(self, node: Bare) -> str | None:
        """The item of PARTITION BY, or the column on which the match agrees, that a name without a variable means; None
        if it can only be Spark's (current_date).

        Any other column, and a dotted name, is a mistake that we can name better than Spark.
        """
        known = [*(key.name for key in self.partition_by), *self.agreed]
        constant = Names(known, self.scope.case_sensitive).get(node.names[0])
        if constant is not None:
            return constant
        name = self.stream.find(node.names[0])
        if name is not None:
            owners = [mark for mark in self.scope.names.order if self.view(mark).find(name) is not None]
            example = f"{owners[0]}.{name}" if owners else name
            raise BindError(
                "UNQUALIFIED_COLUMN", span=node.first, name=node.names[0], hint=f"Say of which variable: {example}."
            )
        if len(node.names) > 1:
            raise unknown_variable(node.names[0], node.first, self.scope.known())
        return None

    def constant_type(self, name: str) -> Column:
        """The column of the stream for what constant_column names."""
        for key in self.partition_by:
            if key.name == name:
                return key.column
        sources = {i for mark in self.scope.names.order for i in self.sources_of(mark)}
        return self.stream.column(name, sources, None)

    def row_condition(self, definition: Definition, sources: Sequence[Source], alias: int | None) -> Sql:
        """The condition of DEFINE: its columns stand bare, or after its own name or a source's; `alias`: the only
        source whose rows it is asked of."""
        every = tuple(range(len(sources))) if alias is None else (alias,)
        owners = {source.alias: View(self.stream, (i,)) for i, source in enumerate(sources)}
        if alias is None:
            owners = {definition.name.value: View(self.stream, every), **owners}
        owner = "the sources" if alias is None else sources[alias].alias
        return self.bare_condition(definition.condition, owners, View(self.stream, every), owner)

    def bare_condition(
        self,
        condition: Text,
        owners: Mapping[str, View],
        view: View,
        owner: str = "the sources",
    ) -> Sql:
        """A condition on a row of `view` whose columns stand bare, or after one of `owners` (DEFINE, x[cond])."""
        known = Names(owners, self.scope.case_sensitive)
        nodes = read(self.text, condition.span, known.get, self.scope.fold)
        if not nodes:
            raise BindError("EMPTY_CONDITION", span=condition.span, hint="Write for example price > 10.")
        refuse_windows(nodes)

        def replace(node: Node) -> str | None:
            if isinstance(node, Call):
                raise BindError(
                    "NOT_SUPPORTED_YET", span=node.span, construct=f"{node.function} in a condition on one row",
                    hint=_OF_OTHERS.get(node.function, "Conditions that look at other events stand in WHERE."),
                )  # fmt: skip
            if isinstance(node, Ref) and (node.condition is not None or node.index is not None):
                construct = f"{self._shown(node)} in a condition on one row"
                raise BindError("NOT_SUPPORTED_YET", span=node.span, construct=construct)
            return self._of_row(node, owners, view, owner) if isinstance(node, Ref | Bare) else None

        return rendered(self.text, nodes, replace, condition.span)

    def _of_row(self, node: Ref | Bare, owners: Mapping[str, View], view: View, owner: str) -> str | None:
        """SQL of a column in such a condition; None of a bare word that is none."""
        asked, of = view, owner
        if isinstance(node, Bare):
            names, at = node.names, node.first
        elif node.column is None:
            names, at = (node.written,), node.span
        else:
            names, at, asked = (node.column,), node.column_span or node.span, owners[node.variable]
            if asked.find(node.column) is None and view.find(node.written) is not None:
                # A struct that is called like the type or the source: price.amount.
                names, asked = (node.written, node.column), view
            elif asked.sources != view.sources and len(asked.columns.items) > 1:
                of = node.written
        name = asked.find(names[0])
        if name is None:
            if len(names) > 1 or isinstance(node, Ref) or self.stream.find(names[0]) is not None:
                raise unknown_column(names[0], at, of, asked.names)
            return None
        column = asked.column(name, at)
        self.reads.add(column.name)
        value = ".".join(quote(part) for part in (column.name, *names[1:]))
        if asked.sources == view.sources:
            return value
        # A source's own column: of rows of other sources nothing is known, whatever they call theirs.
        return f"IF({SOURCE_COLUMN} = {asked.sources[0]}, {value}, NULL)"
