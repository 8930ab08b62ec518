"""AGG, and conditions on parts inside the pattern as a whole: what is computed of each match of such a part.

    AGG(y : s = SUM(a.v) ; A+ a)+       a match of the loop has several matches of the part: its *rounds*
    ((A a ; B+ b) FILTER SUM(b.v) > 5)+

The rounds of one part never overlap, since only loops repeat a part. So marks of ours make them visible: one on the
last event of each round, and one for each variable that is read, on its events inside rounds. `a` above may be bound
outside of the AGG, too, or be dropped by a PROJECT around it. What the engine lists then says which events are whose,
by their places, and Catalyst computes of the arrays what it computes of a whole match (cersql/binding/match_values.py):

    rounds    [{place: 3, var0: [a1, a3]}, {place: 5, var0: [a5]}]       by the places of the ends
    made      [{place: 3, ts: …, s: 4}, {place: 5, ts: …, s: 7}]         the created events, one for each round
    judged    forall(rounds, SUM(…) > 5)                                 what a condition leaves

This is the construction of [ACEL] Theorem 12 with the registers outside of the automaton: a register's value is a
function of the events of its round, which are listed anyway. So types, NULLs and overflow are Spark's own, and any
function is an aggregate. The price: a condition is asked of matches that are listed, also of those that it leaves out.

Marks can tell matches apart that are equal for the user; these are made one again (runtime.selection.distinct).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from cersql.binding.assignments import Assignment, assignments, created_variable
from cersql.binding.attributes import in_terms_of, is_filtered, with_measured
from cersql.binding.booleans import OrOf
from cersql.binding.expressions import Bare, Call, Node, Ref, Word, rendered
from cersql.binding.formulas import MANY, occurrences
from cersql.binding.measures import Clauses, measures
from cersql.binding.own_aggregates import aggregate_named
from cersql.binding.references import CreatedView
from cersql.binding.round_columns import RoundColumns
from cersql.binding.round_marks import also, creators, has_hidden, marked
from cersql.binding.round_values import RoundPlan, RoundValues
from cersql.binding.scope import Names, display
from cersql.errors import BindError
from cersql.language import syntax
from planner import cel
from planner.acel import Aggregate, Judged, Measured
from planner.formula import Formula
from planner.query import Column, Variable
from planner.sql import Sql, quote
from runtime.errors import Span
from runtime.marks import is_hidden


class Rounds(RoundColumns):
    """Finds the rounds of one pattern while it is translated, and says where they cannot be."""

    # ------------------------------------------------------------ translation

    def aggregate(self, part: syntax.Aggregation, inner: Formula) -> Formula:
        """AGG(y : … ; φ)."""
        time = self.time
        written = created_variable(part.assignments)
        mark = self.conditions.scope.aliases.get(written.value)
        assert mark is not None
        if self._is_of_stream(mark):
            hint = "Choose another name for the created events."
            raise BindError("AGG_VARIABLE", span=written.span, name=written.value, hint=hint)
        items = assignments(part.assignments)
        self._check_names(items, time)
        values = self._values(inner)
        lowered, types, written_nodes = [], [], []
        for item in items:
            nodes = values._nodes(item.value)
            written_nodes.append((item.name.value, tuple(nodes)))
            types.append(self._type(values, nodes, item))
            lowered.append((item.name.value, values.lower(nodes, item.value.span)))
        self._create(mark, written, items, tuple(types), time)
        made = self._add(values, inner, part.span, mark)
        made.attributes, made.inner, made.written = tuple(lowered), inner, tuple(written_nodes)
        shown = tuple((item.name.value, " ".join(item.value.value.split())) for item in items)
        return Aggregate(inner, made.number, frozenset({mark}), shown)

    def judge(self, formula: Formula, clause: OrOf, at: Span) -> Formula:
        """φ FILTER P, where P is an OR about all of φ's events together."""
        values = self._values(formula)
        sql = values.condition(clause).wrapped("coalesce(", ", FALSE)")
        made = self._add(values, formula, at, None)
        made.judge, made.measures = sql, None if creators(formula) else measures(clause, self.conditions, formula)
        made.parts = self._of_parts(clause, formula)
        shown = " OR ".join(f"{'' if positive else 'NOT '}{self._shown(part.span)}" for part, positive in clause)
        return Judged(formula, made.number, shown)

    def _of_parts(self, clause: OrOf, formula: Formula) -> Mapping[int, Clauses]:
        """A condition on each created event, y.s > 5, as one on the parts that create it, SUM(b.v) > 5, which runs can
        answer: by the numbers of these. Empty, where it is none."""
        refs = [node for part, _ in clause for node in part.nodes if not isinstance(node, Word)]
        marks = {node.variable if isinstance(node, Ref) else None for node in refs}
        mark = next(iter(marks), None)
        numbers = creators(formula).get(mark or "", ()) if len(marks) == 1 else ()
        found = {}
        for number in numbers:
            made = self.found[number - 1]
            assert made.inner is not None
            names = zip(self.conditions.created[mark or ""].every[1:], made.written, strict=True)
            told = in_terms_of({name: nodes for name, (_, nodes) in names}, clause, self.conditions.scope.fold)
            own = None if told is None or creators(made.inner) else measures(told, self.conditions, made.inner)
            if own is None or not is_filtered(formula, number):
                return {}
            found[number] = own
        return found

    def asks(self, asked: Sequence[OrOf], formula: Formula) -> Iterator[tuple[int, Clauses]]:
        """Conditions as what runs could answer, by the number of the part that each is asked of; `asked`: those on
        whole matches."""
        for made in self.found:
            if made.measures is not None:
                yield made.number, made.measures
            yield from made.parts.items()
        for clause in asked:
            yield from self._of_parts(clause, formula).items()

    def _is_of_stream(self, mark: str) -> bool:
        """Does the pattern bind the variable to events of the stream, anywhere?"""
        names, fold = self.conditions.scope.names, self.conditions.scope.fold
        return fold(mark) in names.of_groups or any(fold(atom.alias or "") == fold(mark) for atom in names.atoms)

    def _shown(self, span: Span) -> str:
        return " ".join(self.conditions.text[span.start : span.end].split())

    def renamed(self, inner: Formula, name: syntax.Name, mark: str) -> Formula | None:
        """φ AS z, where φ binds created events alone: these are in z, too. None where φ binds events of the stream."""
        created = creators(inner)
        if not created:
            return None
        others = inner.binds() - set(created)
        if others:
            raise BindError(
                "MIXED_VARIABLE", span=name.span, name=name.value,
                hint=f"PROJECT({', '.join(map(display, created))} : …) AS {name.value} has created events alone.",
            )  # fmt: skip
        views = [self.conditions.created[own] for own in created]
        if any(view.every != views[0].every for view in views):
            raise BindError("AGG_ATTRIBUTES", span=name.span, name=name.value, hint="Give each its own variable.")
        self.conditions.created[mark] = views[0]
        wanted = {number for numbers in created.values() for number in numbers}
        return also(inner, wanted, mark)

    def _values(self, inner: Formula) -> RoundValues:
        """What lowers expressions on the matches of a part."""
        conditions, counts = self.conditions, occurrences(inner)
        assert conditions.types is not None
        every = [*conditions.scope.names.order]
        marks = sorted(inner.binds(), key=lambda m: (is_hidden(m), every.index(m) if m in every else 0, m))
        variables = tuple(
            Variable(
                display(mark), mark, counts[mark] < MANY, conditions.columns_of(mark), (), mark in conditions.created
            )
            for mark in marks
        )
        by = tuple(key.name for key in conditions.partition_by)
        return RoundValues(
            conditions,
            variables,
            by,
            conditions.types,
            present=inner.always_binds(),
            nodes_of=creators(inner),
            number=len(self.found) + 1,
        )

    def _add(self, values: RoundValues, inner: Formula, at: Span, variable: str | None) -> RoundPlan:
        created = creators(inner)
        reads = tuple(sorted(mark for mark in values.used if mark not in created))
        made = RoundPlan(len(self.found) + 1, values, reads, at, variable)
        self.found.append(made)
        return made

    # ------------------------------------------------------------ what is created

    def _check_names(self, items: Sequence[Assignment], time: Column) -> None:
        taken = Names([time.name], self.conditions.scope.case_sensitive)
        for item in items:
            if item.name.value in taken:
                raise BindError(
                    "AGG_NAME", span=item.name.span, name=item.name.value,
                    hint=f"Its attributes, and the time {time.name}, need names of their own.",
                )  # fmt: skip
            taken = Names([*taken, item.name.value], self.conditions.scope.case_sensitive)

    def _create(
        self, mark: str, written: syntax.Name, items: Sequence[Assignment], types: tuple[Column, ...], time: Column
    ) -> None:
        """What the events of a variable are; several AGGs may have one variable, with the same attributes."""
        scope, catalog = self.conditions.scope, self.conditions.types
        assert catalog is not None
        names = (time.name, *(item.name.value for item in items))
        known = self.conditions.created.get(mark)
        if known is None:
            self.conditions.created[mark] = CreatedView(names, (time, *types), scope.case_sensitive)
            return
        if tuple(map(scope.fold, known.every)) != tuple(map(scope.fold, names)):
            raise BindError(
                "AGG_ATTRIBUTES", span=written.span, name=written.value,
                hint=f"Elsewhere it has {', '.join(known.every[1:])}, in this order: name them so here, or choose "
                "another variable.",
            )  # fmt: skip
        common = [time]
        for old, new, item in zip(known.columns[1:], types, items, strict=True):
            column = catalog.common([old, new], old.name)
            if column is None:
                types_of = f"{old.type.upper()} and {new.type.upper()}"
                hint = "Cast one of them."
                raise BindError("NO_COMMON_TYPE", span=item.name.span, name=item.name.value, types=types_of, hint=hint)
            common.append(column)
        self.conditions.created[mark] = replace(known, columns=tuple(common))

    def _type(self, values: RoundValues, nodes: Sequence[Node], item: Assignment) -> Column:
        """The attribute as a column `y.b`, with Spark's type of it; what Spark has against it comes at its place."""
        conditions, used = self.conditions, dict[str, Column]()

        def column(ref: Ref) -> str:
            own = conditions.row_column(ref.variable, *conditions.named_column(ref))
            used[own.name] = own
            return quote(own.name)

        def inside(node: Node) -> Sql | str | None:
            if isinstance(node, Ref):
                return "NULL" if node.column in (None, "*") else column(node)
            return outside(node) if isinstance(node, Call) else _constant(node)

        def _constant(node: Node) -> str | None:
            key = values._constant_column(node) if isinstance(node, Bare) else None
            if key is None:
                return None
            used[key.name] = key
            return f"first({quote(key.name)})"

        def outside(node: Node) -> Sql | str | None:
            if isinstance(node, Ref):
                variable = values._variable(node)
                of_many = not variable.single and node.index is None
                return f"{'collect_list' if of_many else 'first'}({column(node)})"
            if isinstance(node, Call) and node.column is not None:
                (ref,) = (one for one in node.arguments if isinstance(one, Ref))
                return f"first({column(replace(ref, column=node.column, column_span=node.column_span))})"
            known = aggregate_named(node.function) if isinstance(node, Call) else None
            if isinstance(node, Call) and known is not None and known.asked is not None:
                return known.as_asked(rendered(conditions.text, node.arguments, inside))
            if isinstance(node, Call):
                return rendered(conditions.text, node.nodes, inside, node.span)
            return _constant(node)

        sql = rendered(conditions.text, nodes, outside, item.value.span)
        name = f"{display(item.name.value)}"
        assert conditions.types is not None
        return conditions.types.aggregated(conditions.text, sql, list(used.values()), f"AGG.{name}")

    # ------------------------------------------------------------ the whole

    def placed(self, formula: Formula, inside: bool = False) -> Formula:
        """The formula whose conditions on whole parts are asked by runs where matches are not listed: `inside` of a
        strategy, of AND, and of what must not happen."""
        match formula:
            case cel.Strategy(name) if name != "STRICT":
                inside = True
            case cel.And():
                inside = True
            case Judged(inner, number) if inside and self.found[number - 1].measures is not None:
                clauses, made = self.found[number - 1].measures, self.placed(inner, inside)
                for sides in clauses or ():
                    made = Measured(made, sides, formula.condition)
                return made
            case Judged(inner, number) if inside and self.found[number - 1].parts:
                return with_measured(self.placed(inner, inside), self.found[number - 1].parts, formula.condition)
        negated = {id(part) for part in formula.negated()}
        return formula.rebuilt(lambda part: self.placed(part, inside or id(part) in negated))

    def check(self, formula: Formula, chooses: str | None) -> None:
        """Raises where what is asked of whole parts would have to be known before matches are listed; `chooses`: the
        clause that chooses among them by their positions."""
        for part in formula.walk():
            own = next(_asks(part), None)
            hidden = has_hidden(part)
            match part:
                case cel.Strategy(name, inner) if name != "STRICT" and own is not None:
                    raise self._refused(own, f"It stands inside {name}, which chooses among what it leaves.")
                case cel.As(inner) | cel.Strategy(_, inner) if has_hidden(inner):
                    raise self._hidden(inner, "AS" if isinstance(part, cel.As) else part.name)
                case cel.Filter(inner, None) | cel.Agree(inner, ((None, _), *_)) if has_hidden(inner):
                    raise self._hidden(inner, "A condition on every event")
                case cel.FilterAny(inner, sides) if hidden and any(variable is None for variable, _ in sides):
                    raise self._hidden(inner, "A condition on every event")
            for veto in part.negated():
                for inside in _asks(veto):
                    raise self._refused(inside, "It stands in what must not happen.")
        if chooses is not None and has_hidden(formula):
            raise self._hidden(formula, chooses)

    def _refused(self, part: Aggregate | Judged, why: str) -> BindError:
        kind = "AGG here" if isinstance(part, Aggregate) else f"{part.condition}, a condition on a part as a whole,"
        hint = (
            f"{why} Aggregates are computed of the matches that are listed. Write it in WHERE, if it may stand there."
        )
        return BindError("NOT_SUPPORTED_YET", span=self.found[part.number - 1].span, construct=kind, hint=hint)

    def _hidden(self, formula: Formula, around: str) -> BindError:
        (first, *_) = (p for p in formula.walk() if isinstance(p, Aggregate | Judged))
        return BindError(
            "NOT_SUPPORTED_YET", span=self.found[first.number - 1].span,
            construct=f"{around} around a PROJECT beside AGG, or beside a condition on a part as a whole,",
            hint="Let PROJECT keep all variables there, or do without it.",
        )  # fmt: skip

    def marked(self, formula: Formula) -> Formula:
        """The formula with the marks that make rounds visible."""
        return marked(formula, {made.number: made.reads for made in self.found}, {}) if self.found else formula


def _asks(formula: Formula) -> Iterator[Aggregate | Judged]:
    """What asks something of the matches that are listed: conditions on parts as a whole, and an AND whose sides both
    create events of one variable."""
    for part in formula.walk():
        if isinstance(part, Judged):
            yield part
        if isinstance(part, cel.And) and creators(part.left).keys() & creators(part.right).keys():
            yield next(p for p in part.walk() if isinstance(p, Aggregate))
