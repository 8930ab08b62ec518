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

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from cersql.binding.assignments import Assignment, assignments, created_variable
from cersql.binding.attributes import in_terms_of, is_filtered, with_measured
from cersql.binding.booleans import OrOf
from cersql.binding.conditions import Conditions
from cersql.binding.expressions import Bare, Call, Node, Ref, Word, rendered
from cersql.binding.formulas import MANY, occurrences
from cersql.binding.measures import Clauses, measures
from cersql.binding.own_aggregates import aggregate_named
from cersql.binding.references import CreatedView
from cersql.binding.returns import Returns
from cersql.binding.scope import Names, display
from cersql.errors import BindError
from cersql.language import syntax
from planner import cel
from planner.query import (
    PLACE_FIELD,
    Column,
    Created,
    Folded,
    Step,
    Variable,
    folded_column,
    made_column,
    rounds_column,
    variable_column,
)
from planner.sql import Sql, quote
from runtime.errors import Span
from runtime.marks import is_hidden, is_round, member_mark, round_mark
from runtime.own import Own

ROUND = "__r"  # a round, where something is computed of it
_NTH = "__nth"  # its field with its number, from 0


@dataclass
class RoundValues(Returns):
    """Lowers expressions on one round: its variables are fields of a struct. `nodes_of`: for each variable of created
    events the aggregations inside the part that they come from."""

    nodes_of: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    number: int = 0
    folds: list[Folded] = field(default_factory=list)  # of users' own functions, for each round

    def _folded(self, own: Own, values: Sql) -> str:
        """Computed of all rounds at once, before what is computed of each."""
        column = folded_column(self.number, len(self.folds))
        every = values.wrapped(f"transform({quote(rounds_column(self.number))}, {ROUND} -> ", ")")
        self.folds.append(Folded(column, every, own, each=True))
        return f"get({quote(column)}, {ROUND}.{_NTH})"

    def _column(self, variable: Variable) -> str:
        return f"{ROUND}.{super()._column(variable)}"

    def _is_listed(self, mark: str) -> bool:
        """The engine lists the events of a match, of which those of a round are a part."""
        return False

    def _bare(self, node: Bare) -> str | None:
        if self._is_of_match(node):
            raise BindError(
                "NOT_SUPPORTED_YET", span=node.span, construct="match_start or match_end of a part of the match",
                hint="FIRST(x.ts) and LAST(x.ts) are the times of the events of x there.",
            )  # fmt: skip
        return super()._bare(node)

    def _gather(
        self, variables: Sequence[Variable], value: Callable[[Mapping[str, str]], Sql],
        expressions: Sequence[Sequence[Node]],
    ) -> str:  # fmt: skip
        at = next((node for nodes in expressions for node in nodes), None)
        raise BindError(
            "NOT_SUPPORTED_YET", span=None if at is None else at.span,
            construct="A UDF or a subquery in AGG, or in a condition on a part as a whole,",
            hint="Compute it in the source, FROM (SELECT *, f(x) AS y FROM t) AS t, or in RETURN.",
        )  # fmt: skip

    def _of_no_variable(self, call: Call) -> str:
        found = super()._of_no_variable(call)
        if not self.uses_size:
            return found
        self.uses_size = False
        places, taken = [], set[int]()
        for variable in self.variables:
            own = self.nodes_of.get(variable.mark)
            if is_hidden(variable.mark) or (own is not None and taken >= set(own)):
                continue
            # An event of several variables is one; what one AGG creates is another than what another does there.
            taken |= set(own or ())
            kind = f"{own[0]}" if own else "0"
            places.append(f"transform({self._list(variable)}, __e -> struct({kind}, __e.{PLACE_FIELD}))")
        return f"CAST(size(array_distinct(concat({', '.join(places)}))) AS BIGINT)"


@dataclass
class _Round:
    """One AGG, or one condition. `attributes`: (name, SQL on a round); `judge`: the condition."""

    number: int
    values: RoundValues
    reads: tuple[str, ...]  # variables of the stream that are read
    span: Span
    variable: str | None = None
    attributes: tuple[tuple[str, Sql], ...] = ()
    judge: Sql | None = None
    measures: Clauses | None = None  # the condition, if runs can answer it themselves
    parts: Mapping[int, Clauses] = field(default_factory=dict)  # or parts inside, of each event that they create
    inner: cel.Formula | None = None
    written: tuple[tuple[str, tuple[Node, ...]], ...] = ()  # the attributes, as they are written


class Rounds:
    """The rounds of one pattern, innermost first."""

    def __init__(self, conditions: Conditions, time: Callable[[], Column]) -> None:
        self.conditions, self._time = conditions, time
        self.found: list[_Round] = []

    @property
    def time(self) -> Column:
        return self._time()

    # ------------------------------------------------------------ translation

    def aggregate(self, part: syntax.Aggregation, inner: cel.Formula) -> cel.Formula:
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
        return cel.Aggregate(inner, made.number, frozenset({mark}), shown)

    def judge(self, formula: cel.Formula, clause: OrOf, at: Span) -> cel.Formula:
        """φ FILTER P, where P is an OR about all of φ's events together."""
        values = self._values(formula)
        sql = values.condition(clause).wrapped("coalesce(", ", FALSE)")
        made = self._add(values, formula, at, None)
        made.judge, made.measures = sql, None if creators(formula) else measures(clause, self.conditions, formula)
        made.parts = self._of_parts(clause, formula)
        shown = " OR ".join(f"{'' if positive else 'NOT '}{self._shown(part.span)}" for part, positive in clause)
        return cel.Judged(formula, made.number, shown)

    def _of_parts(self, clause: OrOf, formula: cel.Formula) -> Mapping[int, Clauses]:
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

    def _is_of_stream(self, mark: str) -> bool:
        """Does the pattern bind the variable to events of the stream, anywhere?"""
        names, fold = self.conditions.scope.names, self.conditions.scope.fold
        return fold(mark) in names.of_groups or any(fold(atom.alias or "") == fold(mark) for atom in names.atoms)

    def _shown(self, span: Span) -> str:
        return " ".join(self.conditions.text[span.start : span.end].split())

    def renamed(self, inner: cel.Formula, name: syntax.Name, mark: str) -> cel.Formula | None:
        """φ AS z, where φ binds created events alone: these are in z, too. None where φ binds events of the stream."""
        created = creators(inner)
        if not created:
            return None
        others = cel.variables(inner) - set(created)
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
        return _also(inner, wanted, mark)

    def _values(self, inner: cel.Formula) -> RoundValues:
        """What lowers expressions on the matches of a part."""
        conditions, counts = self.conditions, occurrences(inner)
        assert conditions.types is not None
        every = [*conditions.scope.names.order]
        marks = sorted(cel.variables(inner), key=lambda m: (is_hidden(m), every.index(m) if m in every else 0, m))
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
            present=cel.always_bound(inner),
            nodes_of=creators(inner),
            number=len(self.found) + 1,
        )

    def _add(self, values: RoundValues, inner: cel.Formula, at: Span, variable: str | None) -> _Round:
        created = creators(inner)
        reads = tuple(sorted(mark for mark in values.used if mark not in created))
        made = _Round(len(self.found) + 1, values, reads, at, variable)
        self.found.append(made)
        return made

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

    def placed(self, formula: cel.Formula, inside: bool = False) -> cel.Formula:
        """The formula whose conditions on whole parts are asked by runs where matches are not listed: `inside` of a
        strategy, of AND, and of what must not happen."""
        match formula:
            case cel.Strategy(name) if name != "STRICT":
                inside = True
            case cel.And():
                inside = True
            case cel.Judged(inner, number) if inside and self.found[number - 1].measures is not None:
                clauses, made = self.found[number - 1].measures, self.placed(inner, inside)
                for sides in clauses or ():
                    made = cel.Measured(made, sides, formula.condition)
                return made
            case cel.Judged(inner, number) if inside and self.found[number - 1].parts:
                return with_measured(self.placed(inner, inside), self.found[number - 1].parts, formula.condition)
        negated = {id(part) for part in cel.negated(formula)}
        return cel.rebuilt(formula, lambda part: self.placed(part, inside or id(part) in negated))

    def check(self, formula: cel.Formula, chooses: str | None) -> None:
        """Raises where what is asked of whole parts would have to be known before matches are listed; `chooses`: the
        clause that chooses among them by their positions."""
        for part in cel.walk(formula):
            own = next(_asks(part), None)
            hidden = _has_hidden(part)
            match part:
                case cel.Strategy(name, inner) if name != "STRICT" and own is not None:
                    raise self._refused(own, f"It stands inside {name}, which chooses among what it leaves.")
                case cel.As(inner) | cel.Strategy(_, inner) if _has_hidden(inner):
                    raise self._hidden(inner, "AS" if isinstance(part, cel.As) else part.name)
                case cel.Filter(inner, None) | cel.Agree(inner, ((None, _), *_)) if _has_hidden(inner):
                    raise self._hidden(inner, "A condition on every event")
                case cel.FilterAny(inner, sides) if hidden and any(variable is None for variable, _ in sides):
                    raise self._hidden(inner, "A condition on every event")
            for veto in cel.negated(part):
                for inside in _asks(veto):
                    raise self._refused(inside, "It stands in what must not happen.")
        if chooses is not None and _has_hidden(formula):
            raise self._hidden(formula, chooses)

    def _refused(self, part: cel.Aggregate | cel.Judged, why: str) -> BindError:
        kind = "AGG here" if isinstance(part, cel.Aggregate) else f"{part.condition}, a condition on a part as a whole,"
        hint = (
            f"{why} Aggregates are computed of the matches that are listed. Write it in WHERE, if it may stand there."
        )
        return BindError("NOT_SUPPORTED_YET", span=self.found[part.number - 1].span, construct=kind, hint=hint)

    def _hidden(self, formula: cel.Formula, around: str) -> BindError:
        (first, *_) = (p for p in cel.walk(formula) if isinstance(p, cel.Aggregate | cel.Judged))
        return BindError(
            "NOT_SUPPORTED_YET", span=self.found[first.number - 1].span,
            construct=f"{around} around a PROJECT beside AGG, or beside a condition on a part as a whole,",
            hint="Let PROJECT keep all variables there, or do without it.",
        )  # fmt: skip

    def marked(self, formula: cel.Formula) -> cel.Formula:
        """The formula with the marks that make rounds visible."""
        return _marked(formula, {made.number: made.reads for made in self.found}, {}) if self.found else formula

    def members(self) -> dict[str, set[str]]:
        """Of each mark of ours the columns that are read of its events."""
        found: dict[str, set[str]] = {}
        for made in self.found:
            found[round_mark(made.number)] = {self.time.name}
            for mark in made.reads:
                found[member_mark(made.number, mark)] = set(made.values.used[mark])
        return found

    def created(self, formula: cel.Formula, variables: Sequence[Variable]) -> Created | None:
        """What is computed of the matches of the whole pattern, whose variables these are."""
        if not self.found:
            return None
        columns = {variable.mark: quote(variable_column(i)) for i, variable in enumerate(variables)}
        steps: list[Step | Folded] = []
        for made in self.found:
            if round_mark(made.number) not in columns:  # of a negated part
                continue
            steps.append(
                Step(rounds_column(made.number), Sql(((self._rounds(made, columns), made.span.start, False),)))
            )
            steps += made.values.folds
            rounds = quote(rounds_column(made.number))
            if made.judge is not None:
                steps.append(Step(None, made.judge.wrapped(f"forall({rounds}, {ROUND} -> ", ")")))
            else:
                steps.append(Step(made_column(made.number), self._made(made, rounds)))
        steps += [Step(None, Sql(((sql, 0, False),))) for sql in _same_on_both_sides(formula, self.conditions.created)]
        nodes = creators(formula)
        held = []
        identity = []
        for variable in variables:
            if variable.created:
                every, names = _every(nodes[variable.mark]), variable.columns
                fields = ", ".join(_field(name, f"__c.{quote(name)}") for name in names)
                events = f"transform({every}, __c -> named_struct({fields}))"
                sql = f"get({events}, 0)" if variable.single else events
                held.append((columns[variable.mark].strip("`"), Sql(((sql, 0, False),))))
                placed = f"transform({every}, __c -> named_struct('{PLACE_FIELD}', __c.{PLACE_FIELD}, {fields}))"
                identity.append(_field(variable.name, placed))
        made_by = {number for numbers in nodes.values() for number in numbers}
        size = " + ".join(f"size({quote(made_column(n))})" for n in sorted(made_by)) or "0"
        same = f"named_struct({', '.join(identity or [_field('none', 'CAST(array() AS ARRAY<INT>)')])})"
        return Created(
            tuple(steps), tuple(held), size, same if self._repeats(formula) else None,
            any(isinstance(step, Step) and step.column is None for step in steps),
        )  # fmt: skip

    def _rounds(self, made: _Round, columns: Mapping[str, str]) -> str:
        """SQL of the rounds of a part: each with its place, its time, and the events of the variables that are read."""
        ends, values, time = columns[round_mark(made.number)], made.values, quote(self.time.name)
        fields = [f"'{PLACE_FIELD}', __end.{PLACE_FIELD}", _field(self.time.name, f"__end.{time}")]
        if values.folds:
            fields.append(f"'{_NTH}', __i")
        for i, variable in enumerate(values.variables):
            if variable.mark not in values.used:
                continue
            if variable.created:
                every = _every(values.nodes_of[variable.mark])
            else:
                every = columns[member_mark(made.number, variable.mark)]
            place = f"__m.{PLACE_FIELD}"
            after = f"(__i = 0 OR {place} > get({ends}, __i - 1).{PLACE_FIELD})"
            own = f"filter({every}, __m -> {place} <= __end.{PLACE_FIELD} AND {after})"
            fields.append(_field(variable_column(i), f"get({own}, 0)" if variable.single else own))
        return f"transform({ends}, (__end, __i) -> named_struct({', '.join(fields)}))"

    def _made(self, made: _Round, rounds: str) -> Sql:
        """SQL of the events that a part creates."""
        assert made.variable is not None
        view = self.conditions.created[made.variable]
        opening = f"transform({rounds}, {ROUND} -> named_struct('{PLACE_FIELD}', {ROUND}.{PLACE_FIELD}, "
        opening += _field(self.time.name, f"{ROUND}.{quote(self.time.name)}")
        pieces: list[tuple[str, int, bool]] = [(opening, made.span.start, False)]
        for name, column, (_, sql) in zip(view.every[1:], view.columns[1:], made.attributes, strict=True):
            cast = sql.wrapped("CAST(", f" AS {column.type})") if self._several(made.variable) else sql
            pieces += cast.wrapped(f", {_field(name, '')}", "").pieces
        return Sql((*pieces, ("))", made.span.start, False)))

    def _several(self, variable: str) -> bool:
        return sum(made.variable == variable for made in self.found) > 1

    def _repeats(self, formula: cel.Formula) -> bool:
        """Can matches that are equal for the user be listed more than once?"""
        parts = list(cel.walk(formula, cel.positive))
        if any(isinstance(part, cel.Judged | cel.Project | cel.And) for part in parts):
            return True
        return any(
            isinstance(part, cel.Aggregate)
            and (
                any(len(numbers) > 1 for numbers in creators(formula).values())
                or any(_uses(part.inner, mark) < _uses(formula, mark) for mark in self.found[part.number - 1].reads)
            )
            for part in parts
        )


def _has_hidden(formula: cel.Formula) -> bool:
    """Can an event be listed that no variable holds, only marks of ours? Where PROJECT leaves out what rounds read, or
    the end of one."""
    rounds, project = cel.Aggregate | cel.Judged, (cel.Project,)
    for part in cel.walk(formula, cel.positive):
        if isinstance(part, cel.Project) and any(isinstance(p, rounds) for p in cel.walk(part, cel.positive)):
            return True
        if isinstance(part, rounds) and cel.contains(part.inner, project):
            return True
    return False


def _uses(formula: cel.Formula, mark: str) -> int:
    """How often a formula binds a variable."""
    return sum(
        (isinstance(part, cel.Event) and mark in part.marks) or (isinstance(part, cel.As) and part.variable == mark)
        for part in cel.walk(formula, cel.positive)
    )


def _every(numbers: Sequence[int]) -> str:
    """SQL of the events that some aggregations create, in the order of their places."""
    first, *others = (quote(made_column(number)) for number in numbers)
    if not others:
        return first
    x, y = f"__x.{PLACE_FIELD}", f"__y.{PLACE_FIELD}"
    order = f"CASE WHEN {x} < {y} THEN -1 WHEN {x} > {y} THEN 1 ELSE 0 END"
    return f"array_sort(concat({', '.join([first, *others])}), (__x, __y) -> {order})"


def _field(name: str, value: str) -> str:
    """A field of a named_struct."""
    return f"'{name.replace(chr(92), chr(92) * 2).replace(chr(39), chr(92) + chr(39))}', {value}"


def _asks(formula: cel.Formula) -> Iterator[cel.Aggregate | cel.Judged]:
    """What asks something of the matches that are listed: conditions on parts as a whole, and an AND whose sides both
    create events of one variable."""
    for part in cel.walk(formula):
        if isinstance(part, cel.Judged):
            yield part
        if isinstance(part, cel.And) and creators(part.left).keys() & creators(part.right).keys():
            yield next(p for p in cel.walk(part) if isinstance(p, cel.Aggregate))


def _same_on_both_sides(formula: cel.Formula, views: Mapping[str, CreatedView]) -> Iterator[str]:
    """φ AND ψ: of the events that both create, those of the one are those of the other, by their times and attributes.
    That they stand at the same events is seen by runs."""
    for part in cel.walk(formula, cel.positive):
        if not isinstance(part, cel.And):
            continue
        left, right = creators(part.left), creators(part.right)
        for mark in sorted(left.keys() & right.keys()):
            names = ", ".join(f"__c.{quote(name)}" for name in (PLACE_FIELD, *views[mark].every[1:]))
            sides = (f"array_sort(transform({_every(own[mark])}, __c -> struct({names})))" for own in (left, right))
            yield " <=> ".join(sides)


def creators(formula: cel.Formula) -> dict[str, tuple[int, ...]]:
    """The variables that hold created events, each with the numbers of the aggregations that create them."""
    found: dict[str, tuple[int, ...]] = {}
    for part in cel.positive(formula)[:1] if isinstance(formula, cel.And) else cel.positive(formula):
        for mark, numbers in creators(part).items():  # of AND, whose sides create the same
            found[mark] = tuple(dict.fromkeys((*found.get(mark, ()), *numbers)))
    match formula:
        case cel.Aggregate(_, number, marks):
            for mark in sorted(m for m in marks if not is_round(m)):
                found[mark] = (*found.get(mark, ()), number)
        case cel.Project(_, keep):
            return {mark: numbers for mark, numbers in found.items() if mark in keep}
    return found


def _also(formula: cel.Formula, numbers: set[int], mark: str) -> cel.Formula:
    """The formula whose aggregations of these numbers create events of one more variable."""
    match formula:
        case cel.Event():
            return formula
        case cel.Aggregate(inner, number, marks) if number in numbers:
            return replace(formula, inner=_also(inner, numbers, mark), marks=marks | {mark})
    made = cel.rebuilt(formula, lambda part: _also(part, numbers, mark), only_positive=True)
    return replace(made, keep=made.keep | {mark}) if isinstance(made, cel.Project) else made


def _marked(
    formula: cel.Formula, reads: Mapping[int, tuple[str, ...]], wanted: Mapping[str, frozenset[str]]
) -> cel.Formula:
    """The formula with our marks. `reads`: the variables that each round reads; `wanted`: what marks, besides, the
    events of a variable get."""
    match formula:
        case cel.Event(_, marks):
            return replace(formula, marks=marks.union(*(wanted.get(mark, frozenset()) for mark in marks)))
        case cel.As(inner, variable):
            made: cel.Formula = cel.As(_marked(inner, reads, wanted), variable)
            for mark in sorted(wanted.get(variable, ())):
                made = cel.As(made, mark)
            return made
        case cel.Project(inner, keep):
            inside = _marked(inner, reads, {mark: more for mark, more in wanted.items() if mark in keep})
            return cel.Project(inside, keep | {mark for mark in cel.variables(inside) if is_round(mark)})
        case cel.Aggregate(inner, number) | cel.Judged(inner, number):
            own = {mark: wanted.get(mark, frozenset()) | {member_mark(number, mark)} for mark in reads[number]}
            inside = _marked(inner, reads, {**wanted, **own})
            return replace(formula, inner=inside, marks=formula.marks | {round_mark(number)})
    negated = {id(part) for part in cel.negated(formula)}
    return cel.rebuilt(formula, lambda part: _without(part) if id(part) in negated else _marked(part, reads, wanted))


def _without(formula: cel.Formula) -> cel.Formula:
    """What must not happen, without events that nobody can see."""
    made = cel.rebuilt(formula, _without)
    return made.inner if isinstance(made, cel.Aggregate) else made
