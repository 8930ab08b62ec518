"""FROM, TYPE and DEFINE: where the rows come from, and what an event type demands of a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cersql.binding.columns import Columns
from cersql.binding.conditions import Conditions
from cersql.binding.scope import Catalog, Names, PatternNames, find_column
from cersql.errors import BindError, suggestion
from cersql.language import syntax
from cersql.language.clauses import letters_apart
from planner.apart import Demand
from planner.query import SOURCE_COLUMN, Column, Source
from planner.sql import Sql, literal, quote
from runtime.errors import Span

DEFAULT_TYPE_COLUMNS = ("type", "event_type")


@dataclass(frozen=True)
class Sources:
    """The sources of a query and the columns of their stream."""

    items: tuple[Source, ...]
    columns: Columns

    def of_alias(self, name: str, case_sensitive: bool) -> int | None:
        """The source whose alias is `name`."""
        aliases = Names((source.alias for source in self.items), case_sensitive)
        own = aliases.get(name)
        return None if own is None else [source.alias for source in self.items].index(own)


def resolve(query: syntax.Query, names: PatternNames, catalog: Catalog, given: Sequence[Column] | None) -> Sources:
    """The sources of FROM; without FROM the DataFrame that was handed in, or the types that name tables."""
    if query.sources and given is not None:
        raise BindError(
            "FROM_BESIDE_DATAFRAME",
            span=query.clause("FROM") or query.sources[0].span,
            hint="Leave FROM out, or run the text with cersql.sql.",
        )
    if query.sources:
        items = [_source(query, source, catalog) for source in query.sources]
        _check_aliases(query, items, catalog)
    elif given is not None:
        _check_columns(given, query.pattern.span, "the DataFrame", catalog)
        items = [_with_type_column(Source("events", None, tuple(given)), None, query, catalog, sole=True)]
    else:
        items = _from_types(query, names, catalog)
    return Sources(tuple(items), Columns(items, catalog))


def _statement(query: syntax.Query, body: str) -> str:
    return f"{query.ctes.value} {body}" if query.ctes else body


def _source(query: syntax.Query, source: syntax.Source, catalog: Catalog) -> Source:
    if source.table is not None:
        statement, alias = _statement(query, f"SELECT * FROM {_quoted(source.table)}"), source.table[-1].value
        span = source.table[0].span | source.table[-1].span
        shown = ".".join(part.value for part in source.table)
    else:
        assert source.subquery is not None
        statement, alias, span = _statement(query, source.subquery.value), "events", source.subquery.span
        shown = "the join" if source.joins else "the subquery"
    columns = catalog.relation(statement)
    if columns is None:
        for table in source.joins:
            if catalog.relation(_statement(query, f"SELECT * FROM {_quoted(table)}")) is None:
                shown, span = ".".join(part.value for part in table), table[0].span | table[-1].span
                break
        raise BindError("UNKNOWN_SOURCE", span=span, name=shown, hint=suggestion(shown, catalog.tables(), "There are"))
    if source.alias is not None:
        alias = source.alias.value
    _check_columns(columns, span, shown, catalog, bool(source.joins))
    return _with_type_column(
        Source(alias, statement, columns), source.type_column, query, catalog, sole=len(query.sources) == 1
    )


def _quoted(table: Sequence[syntax.Name]) -> str:
    return ".".join(quote(part.value) for part in table)


def _check_columns(columns: Sequence[Column], span: Span, shown: str, catalog: Catalog, joins: bool = False) -> None:
    """Two columns of one name could not be told apart in a condition."""
    seen: set[str] = set()
    fold = Names((), catalog.case_sensitive).fold
    for column in columns:
        if fold(column.name) in seen:
            hint = "Name the columns in a subquery: FROM (SELECT … AS …) AS events."
            if joins:
                hint = f"Join by USING ({quote(column.name)}), which gives it once, or name the columns in a subquery."
            raise BindError("DUPLICATE_COLUMN", span=span, name=column.name, source=shown, hint=hint)
        seen.add(fold(column.name))


def _with_type_column(
    source: Source, written: syntax.Name | None, query: syntax.Query, catalog: Catalog, sole: bool
) -> Source:
    if written is not None:
        column = find_column(written.value, source.columns, catalog.case_sensitive)
        if column is None:
            raise BindError(
                "UNKNOWN_COLUMN", span=written.span, name=written.value, owner=source.alias,
                hint=suggestion(written.value, (c.name for c in source.columns), "It has"),
            )  # fmt: skip
        return Source(source.alias, source.relation, source.columns, column.name)
    if (sole or query.ceql) and not query.definitions:
        for name in DEFAULT_TYPE_COLUMNS:
            column = find_column(name, source.columns, catalog.case_sensitive)
            if column is not None:
                return Source(source.alias, source.relation, source.columns, column.name)
    return source


def _check_aliases(query: syntax.Query, items: Sequence[Source], catalog: Catalog) -> None:
    fold = Names((), catalog.case_sensitive).fold
    seen: set[str] = set()
    for item, written in zip(items, query.sources, strict=True):
        if fold(item.alias) in seen:
            raise BindError(
                "SAME_SOURCE_NAME", span=written.span, name=item.alias, hint="Give each source an alias: table AS Name."
            )
        seen.add(fold(item.alias))


def _from_types(query: syntax.Query, names: PatternNames, catalog: Catalog) -> list[Source]:
    """Without FROM, each type of the pattern that names a table or view is a source."""
    items: dict[str, Source] = {}
    for atom in names.atoms:
        if atom.type is None or atom.type in items:
            continue
        columns = catalog.relation(_statement(query, f"SELECT * FROM {quote(atom.type)}"))
        if columns is not None:
            _check_columns(columns, atom.span, atom.type, catalog)
            items[atom.type] = Source(atom.type, _statement(query, f"SELECT * FROM {quote(atom.type)}"), columns)
    if not items:
        at = query.clause("PATTERN") or query.pattern.span
        types = ", ".join(dict.fromkeys(atom.type for atom in names.atoms if atom.type)) or "ANY"
        raise BindError(
            "NO_SOURCE", span=at, types=types,
            hint=f"Write FROM table before PATTERN. {suggestion(types, catalog.tables(), 'There are')}",
        )  # fmt: skip
    return list(items.values())


# ---------------------------------------------------------------- types


@dataclass
class Types:
    """What each type name of the pattern demands of a row, and which sources it can come from."""

    query: syntax.Query
    sources: Sources
    catalog: Catalog
    conditions: Conditions

    def __post_init__(self) -> None:
        self.warnings: list[str] = []
        self.origins_of_sql: dict[str, Sql] = {}
        self._defined = Names((d.name.value for d in self.query.definitions), self.catalog.case_sensitive)
        seen: set[str] = set()
        for definition in self.query.definitions:
            name = definition.name
            if self._defined.fold(name.value) in seen:
                hint = "Join the conditions with OR, or give the second type a name of its own."
                raise BindError("DEFINED_TWICE", span=name.span, name=name.value, hint=hint)
            seen.add(self._defined.fold(name.value))

    def origins(self, type: str | None) -> tuple[int, ...]:
        """The sources whose rows a type can accept."""
        every = tuple(range(len(self.sources.items)))
        if type is None:
            return every
        alias = self._of_alias(type)
        if alias is not None:
            return (alias,)
        of_stream = self._of_stream(type)
        if of_stream is not None:
            return of_stream[:1]
        if type in self._defined:
            return every
        typed = tuple(i for i in every if self.sources.items[i].type_column is not None)
        return typed or every

    def demands(self, type: str) -> tuple[Demand, ...]:
        """What is known of each way in which a row can be of a type."""
        alias, of_stream = self._of_alias(type), self._of_stream(type)
        if alias is not None:
            return (Demand(alias),)
        if type in self._defined:
            return (Demand(),)
        if of_stream is not None:
            return (Demand(*of_stream),)
        typed = [i for i, source in enumerate(self.sources.items) if source.type_column is not None]
        return tuple(Demand(i, type) for i in typed) or (Demand(),)

    def sql(self, type: str, span: Span) -> str:
        """The condition of a type on a row."""
        alias = self._of_alias(type)
        parts = [] if alias is None or len(self.sources.items) == 1 else [f"{SOURCE_COLUMN} = {alias}"]
        own = self._defined.get(type)
        if own is not None:
            definition = next(d for d in self.query.definitions if self._defined.get(d.name.value) == own)
            condition = self.conditions.row_condition(definition, self.sources.items, alias)
            self.origins_of_sql[condition.text] = condition
            return " AND ".join([*parts, f"({condition.text})"])
        if alias is not None:
            return " AND ".join(parts) or "TRUE"
        of_stream = self._of_stream(type)
        if of_stream is not None:
            return self._equals(*of_stream)
        typed = [i for i, source in enumerate(self.sources.items) if source.type_column is not None]
        if typed:
            return " OR ".join(self._equals(i, type) for i in typed)
        return self._undefined(type, span)

    def _of_alias(self, type: str) -> int | None:
        """The source that the type is. In CEQL, whose WHERE names types alone, only one that has no types."""
        source = self.sources.of_alias(type, self.catalog.case_sensitive)
        typed = source is not None and self.sources.items[source].type_column is not None
        return None if self.query.ceql and typed else source

    def _of_stream(self, type: str) -> tuple[int, str] | None:
        """The source and the type that CEQL's `S>A` names, where S has types."""
        stream, mark, own = type.partition(">")
        source = self.sources.of_alias(stream, self.catalog.case_sensitive) if self.query.ceql and mark else None
        return (source, own) if source is not None and self.sources.items[source].type_column is not None else None

    def _equals(self, i: int, type: str) -> str:
        source = self.sources.items[i]
        assert source.type_column is not None
        column = self.sources.columns.column(source.type_column, (i,), None)
        self.conditions.reads.add(column.name)
        value = quote(column.name)
        if column.type.startswith("string") and column.type != "string":
            value = f"{value} COLLATE UTF8_BINARY"
        elif column.type != "string":
            value = f"CAST({value} AS STRING)"
        test = f"{value} = {literal(type)}"
        return test if len(self.sources.items) == 1 else f"({SOURCE_COLUMN} = {i} AND {test})"

    def _undefined(self, type: str, span: Span) -> str:
        """A name that is neither defined nor a source."""
        defined = [d.name.value for d in self.query.definitions]
        aliases = [source.alias for source in self.sources.items]
        if not defined:
            sole = len(aliases) == 1
            raise BindError(
                "NO_TYPE_COLUMN" if sole else "UNKNOWN_TYPE", span=span, name=type, source=aliases[0],
                hint="Name the column that holds the event types, FROM table TYPE column, or write DEFINE "
                f"{type} AS condition." if sole else suggestion(type, aliases, "The types are"),
            )  # fmt: skip
        # Names of one or two letters are all that close to each other: there it says nothing.
        long = [d for d in defined if min(len(d), len(type)) > 2]
        near = [d for d in long if letters_apart(type.casefold(), d.casefold(), 2) <= 2]
        if near:
            raise BindError("UNKNOWN_TYPE", span=span, name=type, hint=suggestion(type, defined, "Defined are"))
        self.warnings.append(f"{type} is neither defined nor a source: it matches every row.")
        return "TRUE"
