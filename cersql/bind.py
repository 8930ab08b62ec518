"""Syntax tree + catalog → bound query: every name resolved, every clause checked, the pattern a CEL formula."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cached_property

from cersql import sources as src
from cersql import syntax
from cersql.conditions import Conditions
from cersql.errors import BindError
from cersql.ordering import Clauses
from cersql.returns import Returns
from cersql.scope import Catalog, Names, PatternNames, Scope, children, collect, display
from cersql.sources import Sources, Types
from cersql.to_cel import MANY, Translator, filter_warnings, occurrences
from planner import cel
from planner.query import Column, Query, Variable
from runtime.errors import CersqlError

ANY_MATCH = {"ALL", "SKIP TILL ANY MATCH", "SKIP_TILL_ANY_MATCH", "SKIP TILL ANY", "ANY"}


def bind(
    query: syntax.Query,
    catalog: Catalog,
    given: Sequence[Column] | None = None,
    order_by: str | None = None,
) -> Query:
    """The bound query. `given`: the columns of a DataFrame that serves as the source; `order_by`: what to order by if
    the text does not say. Raises BindError with its place in the text."""
    try:
        return _Binder(query, catalog, given, order_by).bind()
    except CersqlError as error:
        raise error.at(query.text) from None


class _Binder:
    def __init__(
        self, query: syntax.Query, catalog: Catalog, given: Sequence[Column] | None, order_by: str | None
    ) -> None:
        self.query, self.catalog, self.default_order = query, catalog, order_by
        _refuse_clauses(query)
        self._columns: dict[str, tuple[str, ...]] = {}
        self.names: PatternNames = collect(query.pattern, catalog.case_sensitive)
        self.sources: Sources = src.resolve(query, self.names, catalog, given)
        self.scope = Scope(self.names, catalog.case_sensitive)
        self.clauses = Clauses(query, self.sources, self.scope, catalog.case_sensitive)
        self.partition_by = self.clauses.partition_by()
        self.conditions = Conditions(query.text, self.scope, self.sources.columns, self._columns_of, self.partition_by)
        self.types = Types(query, self.sources, catalog, self.conditions)

    def bind(self) -> Query:
        query, text = self.query, self.query.text
        translator = Translator(self.scope, self.conditions)
        types = self._types()
        formula = translator.pattern(query.pattern, whole=True)
        for condition in query.where:
            formula = translator.filtered(formula, condition, whole=True)
        self._bind_unused_definitions()
        order = self.clauses.order(self.default_order)
        window = self.clauses.window(order[0])
        counts = occurrences(formula)
        variables = tuple(self._variable(mark, counts[mark]) for mark in self._marks(formula))
        returns = Returns(self.conditions, variables, self.partition_by, self.catalog.type_of)
        outputs = tuple(returns.outputs(query.returns))
        having = [returns.condition(clause) for clause in translator.on_match]
        if query.having is not None:
            having.append(returns.having(query.having))
        self.conditions.reads.update(self.partition_by)
        kept = [v for v in variables if not v.mark.startswith("@") or v.mark in returns.used]
        return Query(
            text=text,
            formula=formula,
            sources=self.sources.items,
            columns=self.sources.columns,
            types=types,
            variables=variables,
            used=tuple(self._in_order(returns.used.get(v.mark, ())) for v in variables),
            partition_by=self.partition_by,
            order_by=order,
            reads=self._in_order(self.conditions.reads),
            outputs=outputs,
            window=window,
            having=tuple(having),
            limit=query.limit,
            uses_size=returns.uses_size,
            marks=tuple(v.mark for v in kept),
            origins=tuple({**translator.origins, **self.types.origins_of_sql}.items()),
            warnings=tuple(dict.fromkeys([*self.types.warnings, *translator.warnings, *filter_warnings(query)])),
        )

    # ------------------------------------------------------------ types and variables

    def _types(self) -> tuple[tuple[str, str], ...]:
        found: dict[str, str] = {}
        for atom in self.names.atoms:
            if atom.type is not None and atom.type not in found:
                found[atom.type] = self.types.sql(atom.type, atom.span)
        return tuple(found.items())

    def _bind_unused_definitions(self) -> None:
        """A mistake in a DEFINE that the pattern does not use is a mistake all the same."""
        for definition in self.query.definitions:
            if self.scope.type_named(definition.name.value) is None:
                reads = set(self.conditions.reads)
                self.types.sql(definition.name.value, definition.name.span)
                self.conditions.reads = reads

    def _marks(self, formula: cel.Formula) -> list[str]:
        """The variables, in the order of RETURN *; hidden ones last."""
        bound = cel.variables(formula)
        return [v for v in self.names.order if v in bound] + sorted(v for v in bound if v.startswith("@"))

    def _variable(self, mark: str, count: int) -> Variable:
        return Variable(display(mark), mark, count < MANY, self._columns_of(mark))

    def _columns_of(self, mark: str) -> tuple[str, ...]:
        """The columns of the sources that a variable can be bound to."""
        if mark not in self._columns:
            types = [mark[1:]] if mark.startswith("@") else self._types_of[mark]
            bound = {i for type in types for i in self.types.origins(type)}
            names = Names((c.name for i in bound for c in self.sources.items[i].columns), self.catalog.case_sensitive)
            self._columns[mark] = tuple(c.name for c in self.sources.columns if c.name in names)
        return self._columns[mark]

    @cached_property
    def _types_of(self) -> dict[str, list[str | None]]:
        """The types whose events each variable can hold."""
        found: dict[str, list[str | None]] = defaultdict(list)

        def visit(part: syntax.Pattern, around: tuple[str, ...]) -> None:
            if isinstance(part, syntax.Alias):
                alias = self.scope.aliases.get(part.name.value)
                assert alias is not None
                around = (*around, alias)
            if isinstance(part, syntax.TypeRef):
                name = part.name.value if part.name else None
                for mark in {*around, name or "ANY"}:
                    found[mark].append(name)
            for child in children(part):
                visit(child, around)

        visit(self.query.pattern, ())
        return found

    def _in_order(self, names: Iterable[str]) -> tuple[str, ...]:
        return tuple(c.name for c in self.sources.columns if c.name in names)


def _refuse_clauses(query: syntax.Query) -> None:
    """Clauses whose meaning is not built yet: an error each, never silence."""
    strategy = query.semantics
    if strategy is not None and " ".join(strategy.value.upper().split()) not in ANY_MATCH:
        raise BindError("NOT_SUPPORTED_YET", span=strategy.span, construct=f"SEMANTICS {strategy.value}")
    if query.consume is not None and query.consume.value.strip().upper() != "NONE":
        raise BindError("NOT_SUPPORTED_YET", span=query.consume.span, construct=f"CONSUME BY {query.consume.value}")
    refused = [
        (query.skip, "AFTER MATCH SKIP"),
        (query.group_by, "GROUP BY over matches"),
        (query.watermark, "WATERMARK"),
    ]
    for clause, construct in refused:
        if clause is not None:
            raise BindError("NOT_SUPPORTED_YET", span=clause.span, construct=construct)
    if query.with_timeouts is not None:
        raise BindError("NOT_SUPPORTED_YET", span=query.with_timeouts, construct="WITH TIMEOUTS")
