"""What PARTITION BY, ORDER BY and `[ ]` name: columns, and expressions over one row.

    PARTITION BY id, date(ts) AS day, payload.user.id

An expression is computed by Spark in each source, over that source's columns, and is a column of the stream from there
on. RETURN and WHERE know it by the name that AS gives it, or as it is written in the clause.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cersql.binding.columns import Columns, keeps, key_types
from cersql.binding.expressions import NILADIC, Bare, Call, Node, Ref, Word, read, rendered
from cersql.binding.scope import Names, Scope, unknown_column
from cersql.errors import BindError, suggestion
from cersql.language import syntax
from cersql.language.lexer import Token, strip_quotes
from cersql.language.source import SourceText
from planner.query import Column
from planner.sql import Sql, quote
from runtime.errors import Span

# Types without an order, alone or inside a struct or array.
_NO_ORDER = re.compile(r"(?:^|[<:,])(?:map<|variant\b|interval(?! )|geography\b|geometry\b)")
# What Spark says of them it cannot say over Connect, nor without Spark.
_UNSTEADY = frozenset(
    "RAND RANDN RANDOM RANDSTR UNIFORM UUID SHUFFLE MONOTONICALLY_INCREASING_ID SPARK_PARTITION_ID "
    "INPUT_FILE_NAME".split()
)


@dataclass(frozen=True)
class Key:
    """An item of PARTITION BY. `name`: by what the query can speak of it; `shown`: what RETURN * calls it; `words`: how
    it is written, if it is an expression without a name."""

    name: str
    shown: str
    column: Column
    words: tuple[str, ...] = ()


@dataclass
class RowKeys:
    """Binds such items of one query."""

    text: SourceText
    columns: Columns
    scope: Scope

    @property
    def _every(self) -> range:
        return range(len(self.columns.items))

    def key(self, item: syntax.RowKey, clause: str) -> Key:
        if not isinstance(item, syntax.Computed):
            plain = self._plain(item, clause)
            if plain is not None:
                return Key(plain.name, plain.name, plain)
            span = item[0].span | item[-1].span
            item = syntax.Computed(syntax.Text(self.text[span.start : span.end], span))
        words = self._words(self.text.within(item.expression.span))
        column, shown = self.expression(item.expression, clause, self._every, item.alias)
        if item.alias is not None:
            return Key(item.alias.value, item.alias.value, column)
        return Key(column.name, shown, column, words)

    def named(self, name: str, span: Span, whole: Span, clause: str, sources: Iterable[int] | None = None) -> Column:
        """The column of a name, which every row (of some sources) must have."""
        if sources is None:
            if self.columns.find(name) is None:
                hint = suggestion(name, self.columns.names, f"{clause} needs a column; there are")
                raise BindError("UNKNOWN_COLUMN", span=span, name=name, owner="the sources", hint=hint)
            sources = self._every
            column = self.columns.everywhere(name, span, clause)
        else:
            column = self.columns.column(name, sources, span)
        self._check(name, column.type, whole, clause)
        self.columns.check_kept(name, sources, column, whole, clause)
        return column

    def _plain(self, parts: tuple[syntax.Name, ...], clause: str) -> Column | None:
        """A column, bare or after a source's alias; None for a field of a struct."""
        first, name = parts[0], parts[-1]
        whole = first.span | name.span
        if len(parts) == 1:
            return self.named(name.value, name.span, whole, clause)
        alias, is_column = self.alias(first.value), self.columns.find(first.value) is not None
        if alias is not None and len(parts) == 2 and not (is_column and self.columns.own(name.value, alias) is None):
            return self.named(name.value, name.span, whole, clause)
        if is_column or alias is not None:
            return None
        if self.scope.variable(first.value) is not None:
            raise self._of_variable(first.value, first.span, clause, name.value)
        raise unknown_column(first.value, first.span, "the sources", self.columns.names)

    def _of_variable(self, name: str, span: Span, clause: str, column: str) -> BindError:
        return BindError(
            "UNKNOWN_COLUMN", span=span, name=name, owner="the sources",
            hint=f"{clause} speaks of all rows, not of the events of a variable: write {clause} {column}.",
        )  # fmt: skip

    def alias(self, name: str) -> int | None:
        """The source whose alias it is."""
        aliases = [source.alias for source in self.columns.items]
        own = Names(aliases, self.scope.case_sensitive).get(name)
        return None if own is None else aliases.index(own)

    # ------------------------------------------------------------ expressions

    def expression(
        self, written: syntax.Text, clause: str, sources: Iterable[int], alias: syntax.Name | None = None
    ) -> tuple[Column, str]:
        """The column of an expression over the rows of some sources, and what Spark calls it."""
        nodes = read(self.text, written.span, lambda name: None, self.scope.fold)
        self._check_nodes(nodes, written, clause)
        catalog, sources = self.columns.catalog, sorted(sources)
        by: list[Sql | None] = [None] * len(self.columns.items)
        parts, shown = [], ""
        for i in sources:
            by[i] = own = self._over(nodes, written, i, clause)
            found = catalog.computed(self.text, own, self.columns.items[i].columns)
            if not found.steady:
                raise self._unsteady(written.span, clause)
            parts.append(found.column)
            shown = shown or found.column.name
        label = " ".join(written.value.split())
        column = self.columns.add(alias.value if alias else label, parts, by)
        types = dict(zip((part.type for part in parts), (self.columns.items[i].alias for i in sources), strict=True))
        listed = " and ".join(f"{type.upper()} in {source}" for type, source in types.items())
        if column is None:
            hint = "Cast it to one type."
            raise BindError("NO_COMMON_TYPE", span=written.span, name=label, types=listed, hint=hint)
        self._check(label, column.type, written.span, clause)
        for type in types:
            if not keeps(type, column.type, order=clause == "ORDER BY"):
                raise key_types(label, listed, column.type, written.span, clause)
        return column, shown

    def _over(self, nodes: Sequence[Node], written: syntax.Text, source: int, clause: str) -> Sql:
        """The expression over the columns of one source."""

        def replace(node: Node) -> str | None:
            if not isinstance(node, Bare):
                return None
            names = node.names
            alias = self.alias(names[0]) if len(names) > 1 else None
            if alias is not None and (
                self.columns.own(names[1], alias) is not None or self.columns.own(names[0], source) is None
            ):
                names = names[1:]
            own = self.columns.own(names[0], source)
            if own is not None:
                return ".".join(quote(part) for part in (own.name, *names[1:]))
            if self.columns.find(names[0]) is None and self.scope.variable(names[0]) is not None and len(names) > 1:
                raise self._of_variable(names[0], node.first, clause, names[1])
            if len(node.names) == 1 and names[0].upper() in NILADIC:
                return None
            error = unknown_column(names[0], node.span if alias is not None else node.first,
                                   self.columns.items[source].alias, self.columns.known([source]))  # fmt: skip
            if len(self.columns.items) > 1:
                error.hint = (
                    f"{clause} asks of every row, also of those of {self.columns.items[source].alias}. {error.hint}"
                )
            raise error

        return rendered(self.text, nodes, replace, written.span)

    def _check_nodes(self, nodes: Sequence[Node], written: syntax.Text, clause: str) -> None:
        for k, node in enumerate(nodes):
            if isinstance(node, Call):
                raise BindError("ROW_EXPRESSION", span=node.span, clause=clause, construct=node.function)
            if isinstance(node, Word) and node.upper == "OVER":
                raise BindError("ROW_EXPRESSION", span=node.span, clause=clause, construct="a window function, OVER,")
            called = isinstance(node, Word) and k + 1 < len(nodes) and _text(nodes[k + 1]) == "("
            if called and isinstance(node, Word) and node.token.upper in _UNSTEADY:
                raise self._unsteady(node.span, clause)
        if not any(isinstance(node, Bare) and node.names[0].upper() not in NILADIC for node in nodes):
            shown = " ".join(written.value.split())
            hint = f"{clause} takes columns and expressions over them; a number is no column."
            raise BindError("CONSTANT_KEY", span=written.span, clause=clause, found=shown, hint=hint)

    def _unsteady(self, span: Span, clause: str) -> BindError:
        return BindError(
            "UNSTEADY_KEY", span=span, clause=clause, found=" ".join(self.text[span.start : span.end].split()),
            hint="Write it into a table first, and read that.",
        )  # fmt: skip

    def _check(self, name: str, type: str, span: Span, clause: str) -> None:
        if _NO_ORDER.search(type):
            raise BindError("NOT_ORDERABLE", span=span, name=name, type=type, clause=clause)

    # ------------------------------------------------------------ the same expression elsewhere

    def _words(self, toks: Iterable[Token]) -> tuple[str, ...]:
        """An expression such that two that only differ in case, back-ticks and blanks are the same."""
        return tuple(self.scope.fold(strip_quotes(token.text)) if token.is_name else token.text for token in toks)

    def recognized(self, nodes: Sequence[Node], keys: Iterable[Key]) -> tuple[Node, ...]:
        """The nodes of an expression on a match, with what PARTITION BY has computed as references to that."""
        found = tuple(nodes)
        for key in keys:
            if key.words:
                found = self._recognized(found, key)
        return found

    def _recognized(self, nodes: tuple[Node, ...], key: Key) -> tuple[Node, ...]:
        words = [self._words(self.text.within(node.span)) for node in nodes]
        made: list[Node] = []
        k = 0
        while k < len(nodes):
            end = self._ends(nodes, words, k, key)
            if end is None:
                made.append(nodes[k])
                k += 1
                continue
            span = nodes[k].span | nodes[end - 1].span
            made.append(Bare((key.name,), span, span))
            k = end
        return tuple(made)

    def _ends(self, nodes: Sequence[Node], words: Sequence[tuple[str, ...]], k: int, key: Key) -> int | None:
        """Behind which node the key's expression ends that begins at node k; None if none does."""
        end, left = k, key.words
        while left and end < len(nodes) and words[end] == left[: len(words[end])] and not isinstance(nodes[end], Ref):
            left, end = left[len(words[end]) :], end + 1
        if left or end == k:
            return None
        before = _text(nodes[k - 1]) if k else "("
        after = _text(nodes[end]) if end < len(nodes) else ")"
        if end - k == 1 or _is_call(key.words):
            return None if before == "." or after == "(" else end
        return end if before in ("(", ",") and after in (")", ",") else None


def _text(node: Node) -> str:
    return node.token.text if isinstance(node, Word) else ""


def _is_call(words: Sequence[str]) -> bool:
    """`f(…)`, whatever stands around it."""
    if len(words) < 3 or words[1] != "(":
        return False
    depth = 0
    for k, word in enumerate(words[1:], 1):
        depth += (word == "(") - (word == ")")
        if depth == 0:
            return k == len(words) - 1
    return False
