"""Conditions to filters: WHERE and FILTER as an AND of ORs, each side about one variable.

The rule of the language (semantics, "Filters"): NOT goes down to the comparisons, and each OR must be TRUE for every
choice of one event for each variable in it. For ORs whose sides speak of one variable each that is
φ FILTER (P(x) OR Q(y)) = (φ FILTER P(x)) OR (φ FILTER Q(y)). A part that speaks of a single variable is never taken
apart: it is one predicate, and Spark's three-valued logic inside it is the user's.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cersql.errors import BindError
from cersql.expressions import AGGREGATES, NEIGHBOURS, Bare, Bool, Call, Node, Ref, Word, read, rendered, structure, walk
from cersql.scope import Names, Scope, display, find_column, unknown_column, unknown_variable
from cersql.syntax import Text
from planner.query import Column
from planner.sql import Sql, quote
from runtime.errors import Span

MAX_CLAUSES = 256


@dataclass(frozen=True)
class Literal:
    """One side of an OR: a predicate on every event of one variable (None: on every event of the match)."""

    variable: str | None
    sql: Sql


Clause = tuple[Literal, ...]


@dataclass(frozen=True)
class Split:
    """A condition taken apart: ORs of predicates, and conjuncts that only the whole match can answer."""

    clauses: tuple[Clause, ...]
    on_match: tuple[tuple[Node, ...], ...]


@dataclass
class Conditions:
    """Lowers the conditions of one query; remembers which columns they read."""

    text: str
    scope: Scope
    columns: tuple[Column, ...]
    columns_of: Callable[[str], tuple[str, ...]]  # the columns of a mark
    constant_columns: tuple[str, ...]  # the same for every event of a match: the partition columns

    def __post_init__(self) -> None:
        self.reads: set[str] = set()

    def split(self, condition: Text, in_scope: frozenset[str], whole: bool) -> Split:
        """`in_scope`: the marks that the filtered formula binds; `whole`: it is the whole pattern, so that conditions
        on the match as a whole may stand in it."""
        nodes = self.nodes(condition, in_scope)
        clauses: list[Clause] = []
        on_match: list[tuple[Node, ...]] = []
        for conjunct in _conjuncts(structure(nodes)):
            if any(self._needs_match(node) for node in walk(conjunct.nodes)):
                if not whole:
                    call = next(node for node in walk(conjunct.nodes) if self._needs_match(node))
                    raise BindError(
                        "NOT_SUPPORTED_YET", span=call.span,
                        construct=f"{self._shown(call)} in a FILTER inside the pattern", hint="Move it to WHERE or HAVING.",
                    )  # fmt: skip
                on_match.append(conjunct.nodes)
            else:
                clauses += self.clauses(conjunct)
        return Split(tuple(clauses), tuple(on_match))

    def nodes(self, condition: Text, in_scope: frozenset[str]) -> tuple[Node, ...]:
        """The nodes of a condition, each name checked."""
        nodes = read(self.text, condition.span, self.scope.variable)
        if not nodes:
            raise BindError("EMPTY_CONDITION", span=condition.span)
        if isinstance(nodes[0], Word) and nodes[0].upper == "[":
            raise BindError(
                "NOT_SUPPORTED_YET", span=nodes[0].span, construct="[attribute], agreement of all events,",
                hint="If every event of the pattern is to agree on it, write PARTITION BY with the column.",
            )  # fmt: skip
        for node in walk(nodes):
            self._check(node, in_scope)
        return nodes

    def _check(self, node: Node, in_scope: frozenset[str]) -> None:
        known = [display(mark) for mark in sorted(in_scope)]
        if isinstance(node, Ref):
            name = self.text[node.span.start : node.span.end].split(".")[0].split("[")[0].strip().strip("`")
            self.scope.check_reference(name, node.span)
            if node.variable not in in_scope:
                raise unknown_variable(display(node.variable), node.span, known)
            if node.column not in (None, "*"):
                assert node.column is not None
                self.column(node.variable, node.column, node.column_span or node.span)
        elif isinstance(node, Call) and node.function in NEIGHBOURS:
            raise BindError("NOT_SUPPORTED_YET", span=node.span, construct=f"{node.function}, a comparison between events,")

    def column(self, mark: str, name: str, span: Span) -> str:
        """A column of a variable in the schema's spelling."""
        known = self.columns_of(mark)
        own = Names(known, self.scope.case_sensitive).get(name)
        if own is None:
            raise unknown_column(name, span, display(mark), known)
        return own

    def _needs_match(self, node: Node) -> bool:
        """Aggregates, FIRST, LAST and x[1] speak of the match as a whole."""
        return isinstance(node, Call) or (isinstance(node, Ref) and isinstance(node.index, int))

    def _shown(self, node: Node) -> str:
        return self.text[node.span.start : node.span.end]

    # ------------------------------------------------------------ clauses

    def clauses(self, condition: Bool) -> list[Clause]:
        """The conjunctive form of a condition without aggregates."""
        found = self._clauses(condition, positive=True)
        if len(found) > MAX_CLAUSES:
            raise BindError(
                "CONDITION_TOO_LARGE", span=condition.span, found=len(found), limit=MAX_CLAUSES,
                hint="Split the alternatives with OR in the pattern.",
            )  # fmt: skip
        return [self._grouped(clause) for clause in found]

    def _clauses(self, condition: Bool, positive: bool) -> list[tuple[tuple[Bool, bool], ...]]:
        """ORs of (part, positive) pairs; parts about at most one variable are left whole."""
        if condition.kind == "atom" or len(self._variables(condition.nodes)) <= 1:
            return [((condition, positive),)]
        if condition.kind == "not":
            return self._clauses(condition.parts[0], not positive)
        sides = [self._clauses(part, positive) for part in condition.parts]
        if (condition.kind == "and") == positive:
            return [clause for side in sides for clause in side]
        size = 1
        for side in sides:
            size *= len(side)
        if size > MAX_CLAUSES:
            raise BindError("CONDITION_TOO_LARGE", span=condition.span, found=size, limit=MAX_CLAUSES)
        return [tuple(itertools.chain(*choice)) for choice in itertools.product(*sides)]

    def _variables(self, nodes: Sequence[Node]) -> list[str]:
        return list(dict.fromkeys(node.variable for node in nodes if isinstance(node, Ref)))

    def _grouped(self, clause: tuple[tuple[Bool, bool], ...]) -> Clause:
        """The sides of an OR put together by variable; sides without any variable join each of the others."""
        sides: dict[str | None, list[Sql]] = {}
        for part, positive in clause:
            variables = self._variables(part.nodes)
            if len(variables) > 1:
                raise BindError(
                    "NOT_SUPPORTED_YET", span=part.span,
                    construct=f"A comparison between events of {display(variables[0])} and {display(variables[1])}",
                    hint="Conditions may compare columns of one variable with each other and with constants.",
                )  # fmt: skip
            sql = self.row_sql(part.nodes)
            sides.setdefault(variables[0] if variables else None, []).append(
                sql if positive else sql.wrapped("NOT (", ")")
            )
        constant = sides.pop(None, [])
        if not sides:
            return (Literal(None, _any_of(constant)),)
        return tuple(Literal(variable, _any_of([*parts, *constant])) for variable, parts in sides.items())

    # ------------------------------------------------------------ text for one row

    def row_sql(self, nodes: Sequence[Node], owners: Names | None = None) -> Sql:
        """A condition on one row: `x.a` becomes the column a."""
        return rendered(self.text, nodes, lambda node: self._row(node))

    def _row(self, node: Node) -> Sql | str | None:
        if isinstance(node, Ref):
            if node.index in ("previous", "next"):
                raise BindError("NOT_SUPPORTED_YET", span=node.span, construct=f"{self._shown(node)}, a neighbouring event,")
            if node.condition is not None:
                return self._bracketed(node)
            if node.column is None or node.column == "*":
                name = display(node.variable)
                first = next(iter(self.columns_of(node.variable)), "x")
                raise BindError(
                    "EVENT_NOT_VALUE", span=node.span, name=name, hint=f"Name one of its columns, {name}.{first}."
                )
            name = self.column(node.variable, node.column, node.column_span or node.span)
            self.reads.add(name)
            return quote(name)
        if isinstance(node, Bare):
            return self._bare(node)
        return None

    def _bare(self, node: Bare) -> str | None:
        """A name without a variable: a partition column, or a mistake that we can name better than Spark."""
        column = find_column(node.names[0], self.columns, self.scope.case_sensitive)
        if column is not None:
            if column.name not in self.constant_columns:
                raise BindError(
                    "UNQUALIFIED_COLUMN", span=node.first, name=node.names[0],
                    hint=f"Say of which variable: {self._example(column.name)}.",
                )  # fmt: skip
            self.reads.add(column.name)
            return ".".join(quote(part) for part in (column.name, *node.names[1:]))
        if len(node.names) > 1:
            raise unknown_variable(node.names[0], node.first, self.scope.known())
        return None

    def _example(self, column: str) -> str:
        known = self.scope.known()
        return f"{known[0]}.{column}" if known else column

    def _bracketed(self, node: Ref) -> Sql:
        """`x[cond]`: a condition on each event of x, with bare column names."""
        assert node.condition is not None
        return self.bare_condition(node.condition, Names((), self.scope.case_sensitive)).wrapped("(", ")")

    def bare_condition(self, condition: Text, owners: Names) -> Sql:
        """A condition on a row whose columns stand bare, or after one of `owners` (DEFINE)."""
        nodes = read(self.text, condition.span, owners.get)

        def replace(node: Node) -> str | None:
            if isinstance(node, Ref) and node.column not in (None, "*"):
                names: tuple[str, ...] = (node.column or "",)
                at = node.column_span or node.span
            elif isinstance(node, Bare):
                names, at = node.names, node.first
            else:
                return None
            column = find_column(names[0], self.columns, self.scope.case_sensitive)
            if column is None:
                if len(names) > 1 or isinstance(node, Ref):
                    raise unknown_column(names[0], at, "the sources", (c.name for c in self.columns))
                return None
            self.reads.add(column.name)
            return ".".join(quote(part) for part in (column.name, *names[1:]))

        if any(isinstance(node, Call) and node.function in AGGREGATES for node in walk(nodes)):
            raise BindError("NOT_SUPPORTED_YET", span=condition.span, construct="An aggregate in a condition on one row")
        return rendered(self.text, nodes, replace, condition.span)


def _conjuncts(condition: Bool) -> list[Bool]:
    if condition.kind == "and":
        return [conjunct for part in condition.parts for conjunct in _conjuncts(part)]
    return [condition]


def _any_of(parts: Sequence[Sql]) -> Sql:
    """P OR Q OR …, each in parentheses if there are several."""
    if len(parts) == 1:
        return parts[0]
    pieces = list(parts[0].wrapped("(", ")").pieces)
    for part in parts[1:]:
        pieces += part.wrapped(" OR (", ")").pieces
    return Sql(tuple(pieces))
