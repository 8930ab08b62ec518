"""Conditions to filters: WHERE and FILTER as an AND of ORs, each side about one event or comparing two.

The rule of the language (semantics, "Filters"): NOT goes down to the comparisons, and each OR must be TRUE for every
choice of one event for each variable in it. For ORs whose sides speak of one variable each that is φ FILTER (P(x) OR
Q(y)) = (φ FILTER P(x)) OR (φ FILTER Q(y)); an OR with a comparison of two events stays one filter
(cersql/binding/comparisons.py takes the comparison apart, cersql/binding/arithmetic.py computes,
cersql/binding/tabulated.py has Spark decide what is neither). A part all of whose comparisons speak of the same
variable is never taken apart: it is one predicate, and Spark's three-valued logic inside it is the user's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from cersql.binding.arithmetic import Arithmetic, Related
from cersql.binding.booleans import MAX_CLAUSES, MAX_JOINED, Bool, OrOf, check_length, conjunctive, structure
from cersql.binding.columns import Columns, View
from cersql.binding.comparisons import (
    EACH,
    NOT,
    Compared,
    Comparisons,
    Event,
    events_of,
    modes_of,
    plain,
    spelled_out,
)
from cersql.binding.expressions import NEIGHBOURS, Bare, Call, Node, Ref, Together, Word, read, rendered, walk
from cersql.binding.projection import Limits
from cersql.binding.row_keys import Key, RowKeys
from cersql.binding.scope import ExpressionTypes, Names, Scope, display, unknown_column, unknown_variable
from cersql.binding.tabulated import Tabulating
from cersql.binding.together import gathered, together_of
from cersql.errors import BindError
from cersql.language.lexer import strip_quotes
from cersql.language.source import SourceText
from cersql.language.syntax import Definition, Text
from planner.query import SOURCE_COLUMN, Column, Source
from planner.sql import Sql, quote
from runtime.errors import Span


@dataclass(frozen=True)
class Literal:
    """One side of an OR: a predicate on every event of one variable (None: on every event of the match)."""

    variable: str | None
    sql: Sql
    of: str = EACH  # which of two consecutive events, in an OR that compares them


Sides = tuple[Literal | Compared | Related, ...]
"""An OR of conditions on events, each chosen apart."""


@dataclass(frozen=True)
class Agreement:
    """[k], x[k]: every event of the match, or of a variable, has the same value of a column of the stream. `name`: what
    its events call it, None for an expression."""

    column: Column
    name: str | None
    span: Span
    variable: str | None = None


@dataclass(frozen=True)
class Either:
    """An OR of what is said of several events together: each side is an AND of clauses.

    φ FILTER (P OR Q) = (φ FILTER P) OR (φ FILTER Q).
    """

    sides: tuple[tuple[Clause, ...], ...]
    span: Span


@dataclass(frozen=True)
class Differ:
    """NOT [k], NOT x[k]: two events of the match, or of x, have two values, neither of them NULL. Or `rest` holds.

    `clause` is the same for the whole match, where it stands around the whole pattern.
    """

    agreements: tuple[Agreement, ...]
    rest: Sides
    clause: OrOf | None
    span: Span


Clause = Sides | Agreement | Either | Differ
Negated = Mapping[str, frozenset[int]]
"""For each variable that only negated parts bind: which of them."""


@dataclass(frozen=True)
class Split:
    """A condition taken apart: ORs of predicates on events, each with the negated part that it belongs to (None: the
    events of the match); ORs between a negated part and the match around it (`across`); and ORs that only the whole
    match can answer."""

    clauses: tuple[tuple[int | None, Clause], ...]
    across: tuple[tuple[int, Clause], ...]
    on_match: tuple[OrOf, ...]


@dataclass
class Conditions:
    """Lowers the conditions of one query; remembers which columns they read, and which variables are named at all."""

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
    types: ExpressionTypes | None = None  # what Spark says of expressions; set once the columns are known
    decides: bool = False  # does a run need to know what holds, as soon as it takes an event?

    @property
    def columns(self) -> Sequence[Column]:
        """The columns of the stream, of which conditions on a row are made; those, too, that are made later."""
        return self.stream

    def all_columns_of(self, mark: str) -> tuple[str, ...]:
        """The names of a mark's columns, before any PROJECT."""
        return self.stream.known(self.sources_of(mark))

    def view(self, mark: str) -> View:
        return View(self.stream, self.sources_of(mark), self.limits.get(mark))

    def columns_of(self, mark: str) -> tuple[str, ...]:
        """The names of a mark's columns."""
        return self.view(mark).names

    def split(
        self,
        condition: Text,
        in_scope: frozenset[str],
        negated: Negated,
        whole: bool,
        own: str | None = None,
        holds_many: Callable[[frozenset[str]], bool] = lambda _: False,
    ) -> Split:
        """`in_scope`: the marks that the filtered formula binds, `negated`: those of its negated parts; `whole`: it is
        the whole pattern, so that conditions on the match as a whole may stand in it; `own`: the mark whose columns
        stand bare in it; `holds_many`: should Spark compute arithmetic over these variables on whole matches?"""
        nodes = self.nodes(condition, in_scope | negated.keys(), own)
        tree = _spelled_out(structure(nodes))
        found = [clause for part in tree.conjuncts() for clause in conjunctive(part, _about_one)]
        check_length(condition.span, len(found), MAX_JOINED)
        clauses, on_match = self._all_together(found, in_scope, negated, whole)
        across: list[tuple[int, Clause]] = []
        for clause in found:
            if any(together_of(part) for part, _ in clause):
                continue
            owner, mixed = self._owner(clause, negated)
            call = next((n for side, _ in clause for n in walk(side.nodes) if needs_match(n)), None)
            if call is None and mixed:
                assert owner is not None
                across.append((owner, self._tabulated(clause)))
            elif call is None:
                named = frozenset(n.variable for side, _ in clause for n in walk(side.nodes) if isinstance(n, Ref))
                listed = owner is None and whole and not _neighbours(clause) and holds_many(named)
                compared = self._grouped(clause, listed)
                if isinstance(compared, tuple):
                    clauses.append((owner, compared))
                elif owner is None and whole and not _neighbours(clause) and not self._must_decide(clause):
                    on_match.append(clause)  # Spark computes it on whole matches
                else:
                    clauses.append((owner, self._tabulated(clause)))
            elif owner is not None:
                raise BindError(
                    "NOT_SUPPORTED_YET", span=call.span,
                    construct=f"{self._shown(call)}, about the events of a negated part together,",
                )  # fmt: skip
            elif whole:
                self._refuse_neighbours(clause, self._shown(call))
                on_match.append(clause)
            else:
                raise BindError(
                    "NOT_SUPPORTED_YET", span=call.span,
                    construct=f"{self._shown(call)} in a FILTER inside the pattern",
                    hint="If it is to speak of the whole match, write it in WHERE.",
                )  # fmt: skip
        clauses = _joined(clauses)
        check_length(condition.span, len(clauses) + len(across) + len(on_match), MAX_CLAUSES, " on several events")
        return Split(tuple(clauses), tuple(across), tuple(on_match))

    def _must_decide(self, clause: OrOf) -> bool:
        """Must runs know whether it holds, and can they? What they cannot is refused once the strategy is bound."""
        return self.decides and isinstance(self._grouped(clause, tabulated=True), tuple)

    def _tabulated(self, clause: OrOf) -> Sides:
        """The sides of an OR, those tabulated that workers do not know. Raises BindError where that cannot be done."""
        known = self._grouped(clause)
        if isinstance(known, Bool) and _interval(known, self.columns) is None:
            known = self._grouped(clause, tabulated=True)
        if isinstance(known, Bool):
            raise _comparison(known, self.columns)
        return known

    def _refuse_neighbours(self, clause: OrOf, other: str) -> None:
        """A condition on the match as a whole does not speak of consecutive events."""
        for node in _neighbours(clause):
            raise BindError(
                "NOT_SUPPORTED_YET", span=node.span, construct=f"{self._shown(node)} beside {other}",
                hint="Join them with AND, if both are to hold.",
            )  # fmt: skip

    def _all_together(
        self, found: Sequence[OrOf], in_scope: frozenset[str], negated: Negated, whole: bool
    ) -> tuple[list[tuple[int | None, Clause]], list[OrOf]]:
        """The ORs with sides that speak of several events together; those that only the whole match can answer."""
        clauses: list[tuple[int | None, Clause]] = []
        on_match: list[OrOf] = []
        spoken = [clause for clause in found if any(together_of(part) for part, _ in clause)]
        alternatives: dict[int | None, list[OrOf]] = {}
        for clause in spoken:
            owner = self._owner_together(clause, negated)
            if len(clause) == 1 and clause[0][1]:
                (part,) = (together_of(part) for part, _ in clause)
                assert part is not None
                clauses += [(owner, own) for own in self._said(part, in_scope)]
                continue
            about = self._about_whole(clause, in_scope, whole and owner is None)
            if isinstance(about, Differ):
                clauses.append((owner, about))
            elif about:
                on_match.append(clause)
            else:
                alternatives.setdefault(owner, []).append(clause)
        for owner, ors in alternatives.items():
            clauses += [(owner, made) for made in self._either(ors, in_scope)]
        return clauses, on_match

    def _owner_together(self, clause: OrOf, negated: Negated) -> int | None:
        """The negated part that it belongs to; what is said of the match stands for itself."""
        owner, mixed = self._owner(clause, negated)
        for part, positive in clause:
            node = together_of(part)
            if node is not None and (mixed or (owner is not None and (node.of is None or not positive))):
                raise BindError(
                    "NOT_SUPPORTED_YET", span=node.span, construct=f"{self._shown(node)} beside what must not happen",
                    hint="Join the two with AND.",
                )  # fmt: skip
        return owner

    def _about_whole(self, clause: OrOf, in_scope: frozenset[str], whole: bool) -> Differ | bool:
        """Can only the whole match answer it? Or does it say that events differ, which may be asked of two."""
        nodes = [(node, positive) for part, positive in clause if (node := together_of(part)) is not None]
        for node, positive in nodes:
            if not positive and node.kind != "AGREE":
                raise BindError(
                    "NOT_SUPPORTED_YET", span=node.span, construct=f"NOT {self._shown(node)}",
                    hint=f"NOT {node.kind}(x.a) says it of every two neighbours.",
                )  # fmt: skip
        rest = tuple(side for side in clause if together_of(side[0]) is None)
        call = next((n for part, _ in rest for n in walk(part.nodes) if needs_match(n)), None)
        grouped = None if call else self._grouped(rest) if rest else ()
        if isinstance(grouped, tuple) and all(not positive for _, positive in nodes):
            agreements = tuple(own for node, _ in nodes for own in self._agreements(node, in_scope))
            return Differ(agreements, grouped, clause if whole else None, nodes[0][0].span)
        if isinstance(grouped, tuple) and all(positive for _, positive in nodes):
            return False
        self._refuse_neighbours(rest, self._shown(call or nodes[0][0]))
        if not whole or any(node.kind != "AGREE" for node, _ in nodes):
            at = call or nodes[0][0]
            raise BindError(
                "NOT_SUPPORTED_YET", span=at.span, construct=f"{self._shown(at)} in this OR",
                hint="Join the two with AND, or move it to HAVING.",
            )  # fmt: skip
        for node, _ in nodes:
            self._agreements(node, in_scope)  # its names are right
        return True

    def _either(self, ors: Sequence[OrOf], in_scope: frozenset[str]) -> list[Clause]:
        """An AND of ORs as few ORs of ANDs: (P OR Q) AND (P OR R) as P OR (Q AND R), where P is a Together."""
        if not all(ors):
            return []
        spoken = [one for clause in ors for part, _ in clause if (one := together_of(part)) is not None]
        sides = Counter(map(self._key, spoken))
        if not sides:
            grouped = [self._grouped(clause) for clause in ors]
            return [clause for clause in grouped if not isinstance(clause, Bool)]
        most = sides.most_common(1)[0][0]
        node = next(one for one in spoken if self._key(one) == most)
        inside: list[OrOf] = []
        others: list[OrOf] = []
        for clause in ors:
            rest = tuple(side for side in clause if not self._says(side[0], most))
            (others if len(rest) == len(clause) else inside).append(rest)
        said = self._said(node, in_scope)
        if not all(inside):  # it stands alone in one of them, which says it of them all
            return [*said, *self._either(others, in_scope)] if others else [*said]
        made: list[Clause] = [Either((said, tuple(self._either(inside, in_scope))), node.span)]
        return [*made, *self._either(others, in_scope)] if others else made

    def _says(self, part: Bool, key: tuple[str, str | None, tuple[str, ...]]) -> bool:
        node = together_of(part)
        return node is not None and self._key(node) == key

    def _key(self, node: Together) -> tuple[str, str | None, tuple[str, ...]]:
        """The same for two that say the same."""
        written = ("".join(map(self._shown, item)) for item in node.items)
        return node.kind, node.of.variable if node.of else None, tuple(map(self.scope.fold, written))

    def _said(self, node: Together, in_scope: frozenset[str]) -> tuple[Clause, ...]:
        """`[a, b]`, `x[a]` or `x[increasing(a)]` as an AND of clauses."""
        if node.kind == "AGREE":
            return tuple(self._agreements(node, in_scope))
        (call,) = node.items
        compared = self._compared(Bool("atom", (), call), True, modes_of([call]))
        assert compared is not None
        return ((compared,),)

    def _agreements(self, node: Together, in_scope: frozenset[str]) -> list[Agreement]:
        """What agrees in `[a, b]` and `x[a, b]`: columns, and expressions over one row; no name there is a variable's.
        `in_scope` are the variables that they must be of, with what must not happen among them."""
        variable = None if node.of is None else node.of.variable
        marks = [variable] if variable is not None else [*in_scope, *self.scope.names.negated]
        every = [*self.scope.names.order, *self.scope.names.negated]
        marks = sorted(set(marks), key=lambda mark: (mark not in every, every.index(mark) if mark in every else 0))
        return [self._agreement(item, node, marks) for item in node.items if node.kind == "AGREE"]

    def _agreement(self, item: tuple[Node, ...], node: Together, marks: Sequence[str]) -> Agreement:
        variable = None if node.of is None else node.of.variable
        if not item or (isinstance(item[0], Word) and item[0].upper == "["):
            at = item[0].span if item else node.span
            raise BindError("NOT_SUPPORTED_YET", span=at, construct="This in [ ]", hint=_IN_BRACKETS)
        for part in item:
            of_event = isinstance(part, Ref) and part.column is not None and self.stream.find(part.written) is None
            if of_event or (isinstance(part, Word) and part.upper in ("AND", "OR")):
                raise BindError("NOT_SUPPORTED_YET", span=part.span, construct="This in [ ]", hint=_IN_BRACKETS)
        sources = sorted({i for mark in marks for i in self.sources_of(mark)})
        span = item[0].span | item[-1].span
        toks = self.text.within(span)
        if len(toks) == 1 and toks[0].is_name:
            name = self._shared_name(strip_quotes(toks[0].text), span, marks, variable)
            found = Agreement(self.keys.named(name, span, span, "[ ]", sources), name, span, variable)
        else:
            written = Text(self.text[span.start : span.end], span)
            found = Agreement(self.keys.expression(written, "[ ]", sources)[0], None, span, variable)
        self.reads.add(found.column.name)
        return found

    def agreed_columns(self, node: Together) -> list[str]:
        """The columns of `[a, b]` and `x[a, b]`."""
        found = []
        for agreement in self._agreements(node, frozenset(self.scope.names.order)):
            if agreement.name is None:
                raise BindError(
                    "NOT_SUPPORTED_YET", span=agreement.span,
                    construct="An expression in [ ] beside what is asked of the match",
                    hint="Make it a column of the source: FROM (SELECT *, f(x) AS y FROM t) AS t.",
                )  # fmt: skip
            found.append(agreement.name)
        return found

    def _shared_name(self, name: str, span: Span, marks: Iterable[str], variable: str | None) -> str:
        """A column that all events of some variables have."""
        if self.stream.find(name) is None:
            raise unknown_column(name, span, "the sources", self.stream.names)
        for mark in marks:
            known = self.all_columns_of(mark) if variable is None else self.columns_of(mark)
            own = Names(known, self.scope.case_sensitive).get(name)
            if own is None or any(self.stream.own(name, i) is None for i in self.sources_of(mark)):
                error = unknown_column(name, span, display(mark), known)
                if variable is None:
                    error.hint = f"[{name}] asks of every event, also of {display(mark)}. {error.hint}"
                raise error
        return name

    def part_by_keys(self, keys: Text, in_scope: frozenset[str]) -> list[Agreement] | None:
        """`a, b` of PART BY (a, b): what all events agree on; None if it is `x.a, y.b`, one for each variable."""
        nodes = read(self.text, keys.span, lambda name: None, self.scope.fold)
        names = [node for node in nodes if isinstance(node, Bare)]
        of_variables = [len(node.names) > 1 and self.scope.variable(node.names[0]) is not None for node in names]
        if not names or any(of_variables) or len(names) * 2 - 1 != len(nodes):
            return None
        together = Together("AGREE", tuple((name,) for name in names), None, keys.span)
        return self._agreements(together, in_scope)

    def attributes(
        self, keys: Text, in_scope: frozenset[str]
    ) -> tuple[tuple[tuple[str | None, str], ...], tuple[Sql, ...]]:
        """`x.a, y.b` as (variable, SQL), and the same with their places."""
        nodes = self.nodes(keys, in_scope)
        found: list[tuple[str | None, str]] = []
        shown = []
        for k, node in enumerate(nodes):
            if k % 2 and isinstance(node, Word) and node.upper == ",":
                continue
            if k % 2 or not isinstance(node, Ref) or node.index is not None or node.condition is not None:
                hint = "Write attributes with commas between them: PART BY (x.a, y.b)."
                raise BindError("NOT_SUPPORTED_YET", span=node.span, construct="This in PART BY", hint=hint)
            sql = self.row_sql([node])
            found.append((node.variable, sql.text))
            shown.append(sql)
        return tuple(found), tuple(shown)

    def _owner(self, clause: OrOf, negated: Negated) -> tuple[int | None, bool]:
        """The negated part that an OR belongs to, if it names a variable of one; and does a side compare it with the
        match around it?"""
        refs = [node for side, _ in clause for node in walk(side.nodes) if isinstance(node, Ref)]
        inside = [ref for ref in refs if ref.variable in negated]
        if not inside:
            return None, False
        owners = negated[inside[0].variable]
        for ref in inside:
            if negated[ref.variable] != owners or len(owners) > 1:
                other = inside[0] if ref is not inside[0] else ref
                raise BindError(
                    "TWO_NEGATED_PARTS", span=ref.span, first=other.written, second=ref.written,
                    hint="Each negated part has conditions of its own: join them with AND, and give every part a name. "
                    "One that stands inside another is compared with it by a FILTER in that.",
                )  # fmt: skip
        for side, _ in clause:
            found = [node for node in walk(side.nodes) if isinstance(node, Ref)]
            outside = next((ref for ref in found if ref.variable not in negated), None)
            within = next((ref for ref in found if ref.variable in negated), None)
            if outside is not None and within is not None:
                (owner,) = owners
                return owner, True
        outside = next((ref for ref in refs if ref.variable not in negated), None)
        if outside is not None:
            raise BindError(
                "NEGATED_OR", span=inside[0].span, negated=inside[0].written, other=outside.written,
                hint="Write the alternatives in the pattern, each with a condition of its own: one with "
                f"!({inside[0].written} …), OR one with the other condition.",
            )  # fmt: skip
        (owner,) = owners
        return owner, False

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
        return gathered(nodes, self._inside, self._is_flag)

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
        return self.stream.column(self.column(mark, name, span), self.sources_of(mark), span)

    def _shown(self, node: Node) -> str:
        return self.text[node.span.start : node.span.end]

    # ------------------------------------------------------------ clauses

    def _grouped(self, clause: OrOf, listed: bool = False, tabulated: bool = False) -> Sides | Bool:
        """The sides of an OR, those about one event put together; sides without a variable join each of the others.

        A side about several events that is neither a comparison of two nor arithmetic is given back instead, or
        `tabulated` if it can be. `listed`: arithmetic is given back, too."""
        modes = modes_of([part.nodes for part, _ in clause])
        sides: dict[Event | None, list[Sql]] = {}
        compared: list[Compared | Related] = []
        for part, positive in clause:
            events = events_of(part.nodes, modes)
            trend = any(isinstance(node, Call) for node in part.nodes)
            if len(events) > 1 or trend:
                found = self._compared(part, positive, modes) or self._related(part, positive, modes, listed, tabulated)
                if found is None:
                    return part
                compared.append(found)
                continue
            sql = self.row_sql(part.nodes)
            sides.setdefault(events[0] if events else None, []).append(sql if positive else sql.wrapped("NOT (", ")"))
        constant = sides.pop(None, [])
        if constant and not sides and compared:
            first = compared[0]
            sides[
                first.left if isinstance(first, Compared) else first.operands[0][0]
            ] = []  # what holds of no event in particular can be asked of any
        if not sides and not compared:
            return (Literal(None, any_of(constant)),)
        literals = [
            Literal(event[0], any_of([*parts, *constant]), event[1])
            for event, parts in sides.items()
            if event is not None
        ]
        return (*compared, *literals)

    def _compared(self, part: Bool, positive: bool, modes: Mapping[str, str]) -> Compared | None:
        types = self.types
        assert types is not None
        columns = self.columns
        comparisons = Comparisons(
            self.row_sql, lambda sql: types.type_of(sql, columns), lambda a, b: types.common_type(a, b, columns)
        )
        return comparisons.compared(part, positive, modes)

    def _related(
        self, part: Bool, positive: bool, modes: Mapping[str, str], listed: bool, tabulated: bool
    ) -> Related | None:
        """A part of a condition (or its NOT) as arithmetic over events, or tabulated, if Spark takes it at all."""
        if any(isinstance(node, Call) for node in walk(part.nodes)):
            return None
        types, columns = self.types, self.columns
        assert types is not None
        types.check(self.text, self.row_sql(part.nodes), columns)
        if listed:
            return None
        arithmetic = Arithmetic(
            self.row_sql,
            lambda sql: types.type_of(sql, columns),
            lambda a, b: types.common_type(a, b, columns),
            types.ansi,
        )
        shown = rendered(self.text, part.nodes, lambda _: None).text
        if positive:
            made = arithmetic.related(part.nodes, lambda op: op, modes, shown)
        else:
            made = arithmetic.related(part.nodes, NOT.__getitem__, modes, f"NOT ({shown})")
        return self._tabulating.related(part.nodes, positive, modes) if made is None and tabulated else made

    @cached_property
    def _tabulating(self) -> Tabulating:
        def steady(sql: Sql) -> bool:
            assert self.types is not None
            return self.types.computed(self.text, sql, self.columns).steady

        return Tabulating(self.text, self._row, self.row_sql, steady)

    # ------------------------------------------------------------ text for one row

    def row_sql(self, nodes: Sequence[Node]) -> Sql:
        """A condition on one row: `x.a` becomes the column a."""
        return rendered(self.text, nodes, self._row)

    def _row(self, node: Node) -> Sql | str | None:
        if isinstance(node, Ref):
            if node.condition is not None:
                view, owner = self.view(node.variable), display(node.variable)
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
                    hint="Conditions that look at other events stand in WHERE.",
                )  # fmt: skip
            if isinstance(node, Ref) and (node.condition is not None or node.index is not None):
                construct = f"{self._shown(node)} in a condition on one row"
                raise BindError("NOT_SUPPORTED_YET", span=node.span, construct=construct)
            asked, of = view, owner
            if isinstance(node, Ref) and node.column is not None:
                names: tuple[str, ...] = (node.column,)
                at = node.column_span or node.span
                asked = owners[node.variable]
                if asked.find(node.column) is None and view.find(node.written) is not None:
                    # A struct that is called like the type or the source: price.amount.
                    names, asked = (node.written, node.column), view
                elif asked.sources != view.sources and len(asked.columns.items) > 1:
                    of = node.written
            elif isinstance(node, Ref):
                names, at = (node.written,), node.span
            elif isinstance(node, Bare):
                names, at = node.names, node.first
            else:
                return None
            name = asked.find(names[0])
            if name is None:
                elsewhere = self.stream.find(names[0])
                if len(names) > 1 or isinstance(node, Ref) or elsewhere is not None:
                    raise unknown_column(names[0], at, of, asked.names)
                return None
            column = asked.column(name, at)
            self.reads.add(column.name)
            value = ".".join(quote(part) for part in (column.name, *names[1:]))
            if asked.sources == view.sources:
                return value
            # A source's own column: of rows of other sources nothing is known, whatever they call theirs.
            return f"IF({SOURCE_COLUMN} = {asked.sources[0]}, {value}, NULL)"

        return rendered(self.text, nodes, replace, condition.span)


_IN_BRACKETS = "Write columns, or expressions over them, with commas between them: [driver, rider]."


def needs_match(node: Node) -> bool:
    """Aggregates, FIRST, LAST, x[1] and [k] speak of the match as a whole."""
    if isinstance(node, Together):
        return True
    return (isinstance(node, Call) and node.function not in NEIGHBOURS) or (
        isinstance(node, Ref) and isinstance(node.index, int)
    )


def free_variables(nodes: Sequence[Node]) -> list[str]:
    """The variables of which a condition is asked event by event, in order of appearance."""
    return list(dict.fromkeys(node.variable for node in nodes if isinstance(node, Ref) and not needs_match(node)))


def _comparison(condition: Bool, columns: Sequence[Column]) -> BindError:
    variables = dict.fromkeys(node.variable for node in walk(condition.nodes) if isinstance(node, Ref))
    names = " and ".join(map(display, variables))
    otherwise = (
        "Here it compares values (a.x < b.x), is arithmetic over numbers and times (+ - * / %, abs, least, greatest, "
        "sqrt, datediff, timestampdiff), or speaks of two events, without a subquery and without functions that give "
        "another value each time."
    )
    return BindError(
        "NOT_SUPPORTED_YET", span=condition.span, construct=f"This condition on events of {names}",
        hint=_interval(condition, columns) or otherwise,
    )  # fmt: skip


def _interval(condition: Bool, columns: Sequence[Column]) -> str | None:
    """What to write for `b.ts - a.ts <= 60`; with a session Spark objects to it first."""
    times = {column.name.casefold(): column.type for column in columns if column.type.startswith(("timestamp", "date"))}
    named = [node.column for node in condition.nodes if isinstance(node, Ref)]
    tokens = [node.token for node in condition.nodes if isinstance(node, Word)]
    numbers = [token.text for token in tokens if token.kind == "number"]
    if len(numbers) != 1 or "-" not in (token.text for token in tokens):
        return None
    if not named or not all(name and name.casefold() in times for name in named):
        return None
    unit = "DAYS" if {times[name.casefold()] for name in named if name} == {"date"} else "SECONDS"
    return f"The difference of two times is an interval: compare it with INTERVAL {numbers[0]} {unit}, for example."


def _spelled_out(tree: Bool) -> Bool:
    """BETWEEN and IN about several events as comparisons."""
    if tree.parts:
        return replace(tree, parts=tuple(map(_spelled_out, tree.parts)))
    refs = {(node.variable, node.index) for node in tree.nodes if isinstance(node, Ref)}
    return spelled_out(tree) if len(refs) > 1 else tree


def _about_one(condition: Bool) -> bool:
    """Do all comparisons speak of the same variable, or all of none? `a.x > 1 AND 1 = 0` does not: the second holds or
    fails also where there is no a."""
    about = {tuple(free_variables(leaf.nodes)) for leaf in condition.leaves()}
    if any(together_of(leaf) or any(map(_is_neighbour, leaf.nodes)) for leaf in condition.leaves()):
        return False
    return len(about) == 1 and len(next(iter(about))) <= 1


def _neighbours(clause: OrOf) -> list[Node]:
    return [node for part, _ in clause for node in walk(part.nodes) if _is_neighbour(node)]


def _is_neighbour(node: Node) -> bool:
    """`x[i-1]`, INCREASING."""
    if isinstance(node, Ref):
        return node.index in ("previous", "next")
    return isinstance(node, Call) and node.function in NEIGHBOURS


def refuse_windows(nodes: Sequence[Node]) -> None:
    """Functions OVER rows: Spark would count the rows that it reads, before there is any match."""
    for node in nodes:
        if isinstance(node, Word) and node.upper == "OVER":
            raise BindError(
                "NOT_SUPPORTED_YET", span=node.span, construct="A window function (OVER) in a condition",
                hint="Compute it in a subquery: FROM (SELECT *, … OVER (…) AS w FROM t) AS t.",
            )  # fmt: skip


MANY_CLAUSES = 32  # from so many on those about one variable are made one filter: filters nest


def _joined(clauses: list[tuple[int | None, Clause]]) -> list[tuple[int | None, Clause]]:
    """Of very many ANDs those on each event of one variable as one: `a.x > 1 AND a.x <> 2 AND a.x <> 3 …`."""
    if len(clauses) < MANY_CLAUSES:
        return clauses
    found: list[tuple[int | None, Clause]] = []
    places: dict[tuple[int | None, str | None], list[Sql]] = {}
    for owner, clause in clauses:
        side = clause[0] if isinstance(clause, tuple) and len(clause) == 1 else None
        if not isinstance(side, Literal) or side.of != EACH:
            found.append((owner, clause))
        elif (owner, side.variable) in places:
            places[owner, side.variable].append(side.sql)
        else:
            places[owner, side.variable] = [side.sql]
            found.append((owner, clause))
    for k, (owner, clause) in enumerate(found):
        side = clause[0] if isinstance(clause, tuple) and len(clause) == 1 else None
        if isinstance(side, Literal) and side.of == EACH:
            found[k] = owner, (replace(side, sql=_all_of(places[owner, side.variable])),)
    return found


def _all_of(parts: Sequence[Sql]) -> Sql:
    """P AND Q AND …, each in parentheses if there are several."""
    return _connected(parts, "AND")


def any_of(parts: Sequence[Sql]) -> Sql:
    """P OR Q OR …, each in parentheses if there are several."""
    return _connected(parts, "OR")


def _connected(parts: Sequence[Sql], operator: str) -> Sql:
    if len(parts) == 1:
        return parts[0]
    pieces = list(parts[0].wrapped("(", ")").pieces)
    for part in parts[1:]:
        pieces += part.wrapped(f" {operator} (", ")").pieces
    return Sql(tuple(pieces))
