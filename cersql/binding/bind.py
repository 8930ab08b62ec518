"""Syntax tree + catalog → bound query: every name resolved, every clause checked, the pattern a CEL formula."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from cersql.binding import advice, emission, mistaken, selection, sliding, source_rows
from cersql.binding import sources as src
from cersql.binding.booleans import OrOf
from cersql.binding.conditions import Conditions
from cersql.binding.expressions import walk
from cersql.binding.formulas import MANY, occurrences
from cersql.binding.groups import GroupedReturns
from cersql.binding.measures import held_by_runs, numbers_of_events, of_aggregates
from cersql.binding.ordering import Clauses
from cersql.binding.returns import Returns
from cersql.binding.row_keys import RowKeys
from cersql.binding.scope import Catalog, PatternNames, Scope, collect, display
from cersql.binding.sources import Sources, Types
from cersql.binding.to_cel import Translator
from cersql.errors import BindError
from cersql.language import syntax
from planner import cel
from planner.acel import Measured
from planner.errors import too_complex
from planner.formula import Formula
from planner.query import Column, Order, Query, Variable, Window
from runtime.errors import CersqlError, Span
from runtime.marks import is_hidden, is_round, member_of, visible_name


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
        raise mistaken.explained(error, query).at(query.text) from None
    except RecursionError:
        raise too_complex().at(query.text, query.clause("PATTERN")) from None


class _Binder:
    def __init__(
        self, query: syntax.Query, catalog: Catalog, given: Sequence[Column] | None, order_by: str | None
    ) -> None:
        self.query, self.catalog, self.default_order = query, catalog, order_by
        selection.refuse(query)
        self._sources: dict[str, tuple[int, ...]] = {}
        self.names: PatternNames = collect(query.pattern, catalog.case_sensitive)
        mistaken.check_aliases(query, self.names)
        self.sources: Sources = src.resolve(query, self.names, catalog, given)
        self.stream = self.sources.columns
        self.scope = Scope(self.names, catalog.case_sensitive)
        keys = RowKeys(query.text, self.stream, self.scope)
        self.clauses = Clauses(query, keys)
        by = self.clauses.partition_by()
        self.sliding = sliding.written(query)
        if self.sliding is not None:
            by = (*by, sliding.KEY)
        self.partition_by = tuple(key.column.name for key in by)
        self.rows = source_rows.sorted_out(query, self.scope, keys, by)
        self.conditions = Conditions(query.text, self.scope, self.stream, self._sources_of, keys, by)
        self.conditions.types = catalog
        streams = any(catalog.is_stream(source.relation) for source in self.sources.items)
        self._drops_on_stream = streams and selection.drops(query)
        self.conditions.decides = selection.must_take(query) or self._drops_on_stream
        self.types = Types(query, self.sources, catalog, self.conditions)

    def bind(self) -> Query:
        query, types = self.query, self._types()
        lists = selection.wants_all(query)
        translator = Translator(self.scope, self.conditions, dict(types), self._window, lambda: self._time, lists)
        formula, asked = self._formula(translator)
        order, window = self._order, self._window(None)
        chosen = selection.bind(query, self.conditions, formula)
        self._check_chosen(chosen, formula, translator)
        counts = occurrences(formula)
        variables = tuple(self._variable(mark, counts[mark]) for mark in self._marks(formula))
        returns, returned = self._returned(translator, formula, variables, chosen.timeouts, asked)
        asks = tuple(of_aggregates(clause, self.conditions, formula) for clause in asked)
        # What PROJECT keeps tells matches apart, whether it is returned or not.
        told = {mark for part in formula.walk() if isinstance(part, cel.Project) for mark in part.keep}
        labelled = {*returns.used, *told, *([chosen.skip.mark] if chosen.skip else [])}
        bound = Query(
            text=query.text,
            formula=formula,
            sources=self.rows.of(self.sources.items),
            columns=self.stream.every,
            made=self.stream.made,
            types=types,
            demands=tuple((type, self.types.demands(type)) for type, _ in types),
            variables=variables,
            partition_by=self.partition_by,
            order_by=order,
            window=window,
            strategy=chosen.strategy,
            consume=chosen.consume,
            skip=chosen.skip,
            timeouts=chosen.timeouts,
            marks=tuple(v.mark for v in variables if not is_hidden(v.mark) or v.mark in labelled),
            limit=query.limit,
            most_at_end=query.most_at_end,
            watermark_us=self.clauses.watermark(),
            emit=emission.bind(query),
            created=translator.rounds.created(formula, variables),
            counts=tuple(numbers_of_events(clause, own, formula) for clause, own in zip(asked, asks, strict=True)),
            asks=asks,
            round_asks=tuple(translator.rounds.asks(asked, formula)),
            having_asks=tuple(of_aggregates(clause, self.conditions, formula) for clause in returns.asked),
            origins=tuple({**translator.origins, **self.types.origins_of_sql}.items()),
            **returned,
        )
        warnings = [
            *self.types.warnings, *self.rows.warnings, *translator.warnings, *self.conditions.warnings,
            *advice.warnings(query, bound, self.scope, self._used_names(returns)),
        ]  # fmt: skip
        return replace(bound, warnings=tuple(dict.fromkeys(warnings)))

    def _formula(self, translator: Translator) -> tuple[Formula, list[OrOf]]:
        """The pattern with WHERE, and what is asked of whole matches."""
        rounds = translator.rounds
        formula = rounds.placed(translator.query(self.query.pattern, self.rows.where))
        rounds.check(formula, selection.choosing(self.query))
        formula = rounds.marked(formula)
        self._bind_unused_definitions()
        return self._decided(formula, translator.on_match)

    def _check_chosen(self, chosen: selection.Selection, formula: Formula, translator: Translator) -> None:
        """What chooses matches must be able to."""
        if self.sliding is not None:
            sliding.check(self.query, self.sliding, chosen, formula)
        if chosen.strategy == "NEXT_MATCH":
            _refuse_undecided(translator.on_match, self.conditions)
            _refuse_either(translator.eithers)

    def _returned(
        self, translator: Translator, formula: Formula, variables: tuple[Variable, ...], timeouts: bool,
        asked: Sequence[OrOf],
    ) -> tuple[Returns, dict[str, Any]]:  # fmt: skip
        """What is computed of matches: conditions on them, RETURN, HAVING; by the fields of Query."""
        query = self.query
        by = tuple(key.name for key in self.conditions.partition_by)
        self.conditions.agreed = tuple(dict.fromkeys(name for name in translator.agreed if name not in by))
        returns = self._returns(variables, by, timeouts, self.conditions.agreed, formula)
        on_match = tuple(returns.condition(clause) for clause in asked)
        returns.used.update(translator.rounds.members())
        n_gathered = len(returns.gathered)
        for own in self._held(returns, variables):  # they decide ties, too
            self.conditions.reads.update(own)
        outputs = tuple(returns.outputs(query.returns))
        having = () if query.having is None else (returns.having(query.having),)
        held = self._held(returns, variables)
        self.conditions.reads.update(self.partition_by)
        return returns, {
            "used": tuple(self._own_order(v, returns.used.get(v.mark, ())) for v in variables),
            "held": held,
            "reads": self._in_order(self.conditions.reads),
            "outputs": outputs,
            "on_match": on_match,
            "having": having,
            "gathered": tuple(returns.gathered),
            "gathered_on_match": n_gathered,
            "computed": tuple(sorted(returns.wanted)),
            "of_events": tuple(returns.of_events),
            "groups": returns.groups,
            "uses_size": returns.uses_size,
        }

    def _decided(self, formula: Formula, clauses: Sequence[OrOf]) -> tuple[Formula, list[OrOf]]:
        """The formula, and what is left of the conditions on the match, where runs must know what holds: on a stream
        what a match drops is known before whole matches are asked (STREAM_LATER)."""
        left = []
        for clause in clauses:
            found = held_by_runs(clause, self.conditions, formula) if self._drops_on_stream else None
            if found is None:
                left.append(clause)
            for sides in found or ():
                formula = Measured(formula, sides, " OR ".join(map(str, sides)))
        return formula, left

    def _returns(
        self, variables: tuple[Variable, ...], by: tuple[str, ...], timeouts: bool, agreed: tuple[str, ...],
        formula: Formula,
    ) -> Returns:  # fmt: skip
        """What lowers RETURN and HAVING: of matches, or of groups of them."""
        given = (self.conditions, variables, by, self.catalog, timeouts, agreed, formula.always_binds())
        if self.query.group_by is None and self.sliding is None:
            return Returns(*given)
        order, windows = self._order[0], None
        if self.sliding is not None:
            type = next(column.type for column in self.stream.every if column.name == order.column)
            windows = sliding.bound(self.sliding, self.clauses, order, type)
        return GroupedReturns(*given, query=self.query, time=order.column, sliding=windows)

    @cached_property
    def _order(self) -> tuple[Order, ...]:
        return self.clauses.order(self.default_order)

    @property
    def _time(self) -> Column:
        """The first column of ORDER BY."""
        name = self._order[0].column
        return next(column for column in self.stream.every if column.name == name)

    def _window(self, window: syntax.Window | None) -> Window | None:
        """A window of the pattern, or the clause's."""
        written = window or self.query.within
        if written is None:
            return None
        if written.slide is not None:  # its end is not in it
            written = replace(written, slide=None, strict=written.unit != "EVENTS")
        return self.clauses.window(written, self._order[0])

    def _used_names(self, returns: Returns) -> frozenset[str] | None:
        """The variables that some clause names; None: all of them."""
        every = returns.uses_size or any(item.star for item in self.query.returns)
        return None if every else frozenset(self.conditions.named)

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
                reads, columns = set(self.conditions.reads), self.stream.state()
                self.types.sql(definition.name.value, definition.name.span)
                self.conditions.reads = reads
                self.stream.restore(columns)

    def _marks(self, formula: Formula) -> list[str]:
        """The variables, in the order of RETURN *; hidden ones last."""
        bound = formula.binds()
        return [v for v in self.names.order if v in bound] + sorted(v for v in bound if is_hidden(v))

    def _variable(self, mark: str, count: int) -> Variable:
        names = self.conditions.columns_of(mark)
        if mark in self.conditions.created:
            view = self.conditions.created[mark]
            named = zip(view.every, view.columns, strict=True)
            own = (self.catalog.common([column], name) for name, column in named if name in names)
            return Variable(display(mark), mark, count < MANY, names, tuple(filter(None, own)), created=True)
        if is_round(mark):
            return Variable(display(mark), mark, False, self.stream.known(self._sources_of(mark)) or (self._time.name,))
        types = (self.stream.type_of(name, self._sources_of(mark)) for name in names)
        return Variable(display(mark), mark, count < MANY, names, tuple(column for column in types if column))

    def _sources_of(self, mark: str) -> tuple[int, ...]:
        """The sources whose rows a variable can be bound to."""
        if mark not in self._sources:
            if is_round(mark):  # the events of a variable, or of any: only their times are read
                own = member_of(mark)
                return self._sources_of(own) if own is not None else tuple(range(len(self.sources.items)))
            types = [visible_name(mark)] if is_hidden(mark) else self._types_of[mark]
            self._sources[mark] = tuple(sorted({i for type in types for i in self.types.origins(type)}))
        return self._sources[mark]

    def _held(self, returns: Returns, variables: Iterable[Variable]) -> tuple[tuple[str, ...], ...]:
        """For each variable, the columns of the stream that RETURN reads of it so far."""
        at = self.query.clause("RETURN")
        return tuple(
            tuple(self.stream.column(name, self._sources_of(v.mark), at).name for name in used)
            for v in variables
            for used in (() if v.created else self._own_order(v, returns.used.get(v.mark, ())),)
        )

    def _own_order(self, variable: Variable, names: Iterable[str]) -> tuple[str, ...]:
        return tuple(name for name in variable.columns if name in names)

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
            for child in syntax.children(part):
                visit(child, around)

        visit(self.query.pattern, ())
        return found

    def _in_order(self, names: Iterable[str]) -> tuple[str, ...]:
        return tuple(c.name for c in self.stream.every if c.name in names)


def _refuse_undecided(clauses: Iterable[OrOf], conditions: Conditions) -> None:
    """A run must take what it can, which the workers decide; aggregates, FIRST and LAST are decided at the end."""
    for clause in clauses:
        if not any(conditions.of_whole(node) for part, _ in clause for node in walk(part.nodes)):
            raise BindError(
                "NOT_SUPPORTED_YET", span=clause[0][0].span,
                construct="Under SKIP TILL NEXT MATCH this condition on several events",
                hint="There it compares values (b.y > a.y + 1), is arithmetic, or speaks of two events, without a "
                "subquery and without functions that give another value each time. (HAVING would ask something else: "
                "which matches stay, and not which events a match takes.)",
            )  # fmt: skip


def _refuse_either(places: Iterable[Span]) -> None:
    """A run under (φ FILTER P) OR (φ FILTER Q) must take what P lets it take, or what Q does; not what either does."""
    for span in places:
        raise BindError(
            "NOT_SUPPORTED_YET", span=span, construct="[attribute] under OR beside SKIP TILL NEXT MATCH",
            hint="A run decides event by event there: of single events compare the values, a.v = b.v OR a.w = b.w.",
        )  # fmt: skip
