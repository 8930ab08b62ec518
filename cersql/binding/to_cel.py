"""Pattern → CEL formula: pure desugaring, no decisions about speed.

A negated part is translated where it stands, but conditions from outside may still belong to it. So it is first a
placeholder, an atom whose mark is its number, and takes its place in the formula when all conditions are known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import combinations, product

from cersql.binding import absence, formulas, projection
from cersql.binding.arithmetic import Related
from cersql.binding.booleans import MAX_CLAUSES, OrOf
from cersql.binding.clause import Agreement, Clause, Differ, Either, Literal
from cersql.binding.comparisons import EACH, Compared
from cersql.binding.conditions import Conditions
from cersql.binding.formulas import MANY as MANY
from cersql.binding.formulas import comes_last
from cersql.binding.formulas import occurrences as occurrences
from cersql.binding.formulas import together as together
from cersql.binding.rounds import Rounds
from cersql.binding.scope import Scope, display, own_alias
from cersql.errors import BindError
from cersql.language import syntax
from planner import cel
from planner.cel import always_bound
from planner.query import Column
from planner.rewrite.keys import atoms
from planner.sql import Sql, quote
from runtime.errors import Span
from runtime.marks import (
    PASSED,
    absent_mark,
    hidden_last,
    is_hidden,
    is_placeholder,
    placeholder,
    placeholder_number,
    visible_name,
)

WIDTH = 32
_NODES = {"OR": cel.Or, "AND": cel.And, "ALL": cel.All}

Clauses = tuple[tuple[cel.Side, ...], ...]  # an AND of ORs

Windows = Callable[[syntax.Window | None], cel.Window | None]
"""A window inside the pattern, or (for None) that of the clause, in the unit of the clock."""


class Translator:
    """Translates one pattern. Remembers where predicates come from, and conditions left for the whole match."""

    def __init__(
        self, scope: Scope, conditions: Conditions, types: Mapping[str, str], windows: Windows,
        time: Callable[[], Column], lists: bool = False,
    ) -> None:  # fmt: skip
        """`types`: what each type demands of a row; `time`: the column that created events have their time in;
        `lists`: every match is wanted, so that Spark can compute conditions on whole ones."""
        self.scope, self.conditions, self.types, self.windows, self.lists = scope, conditions, types, windows, lists
        self.origins: dict[str, Sql] = {}
        self.warnings: list[str] = []
        self.on_match: list[OrOf] = []
        self.vetoes: list[cel.Formula] = []
        self.across: set[int] = set()  # the negated parts that are compared with what is around them
        self.agreed: list[str] = []
        self.copies = 1  # how many ways to match these make of a pattern
        self.eithers: list[Span] = []  # where an OR of conditions on several events together became an OR of formulas
        self.lifted: list[tuple[syntax.Text, str]] = []  # conditions of single events that speak of others, and whose
        self.projects: list[cel.Project] = []  # kept, so that their identities stay theirs
        self.narrowed: dict[int, projection.Limits] = {}
        self.rounds = Rounds(conditions, time)

    def query(self, pattern: syntax.Pattern, where: Sequence[syntax.Text]) -> cel.Formula:
        """The whole pattern with the conditions of WHERE; from here on PROJECT's columns are what is left of it."""
        try:
            formula = self._full(pattern, self.pattern(pattern, whole=True, edge=True), "a match")
        except BindError as error:
            if error.condition == "UNKNOWN_VARIABLE" and error.span is not None:
                all_of = _filter_of_all(self.conditions.text, pattern, error)
                error.hint = f"{all_of} {error.hint}" if all_of else error.hint
            raise
        for condition, own in self.lifted:
            formula = self.filtered(formula, condition, whole=True, own=own)
        for condition in where:
            formula = self.filtered(formula, condition, whole=True)
        self._narrow(formula, {})
        return self._placed(formula)

    def pattern(self, part: syntax.Pattern, whole: bool = False, edge: bool = False) -> cel.Formula:
        """`whole`: nothing but filters stands around it; `edge`: it is, but for its name and columns, the pattern."""
        own = own_alias(part)
        if own is not None:
            assert isinstance(part, syntax.Alias)
            return self._loops(part.inner, self._canonical(part.name))
        match part:
            case syntax.TypeRef():
                return self._event(part, None)
            case syntax.Alias(inner, name):
                formula = self.pattern(inner, edge=edge)
                return self.rounds.renamed(formula, name, self._canonical(name)) or cel.As(
                    formula, self._canonical(name)
                )
            case syntax.Chain(items, True):
                absence.check_contiguous(items)
                return _joined(cel.Contiguous, [self.pattern(item) for item in items])
            case syntax.Chain(items, False):
                cut = absence.cut(part)
                return self._cut(cut, edge) if cut else _joined(cel.Sequence, [self.pattern(item) for item in items])
            case syntax.Repeat(inner):
                return _repeated(part, self.pattern(inner))
            case syntax.Combination():
                return self._combination(part)
            case syntax.FilterPart(inner, condition, own_columns):
                formula = self.pattern(inner, whole, edge)
                event = self._mark(inner) if own_columns else None
                if event is not None and self.conditions.speaks_of_others(condition, event):
                    self.lifted.append((condition, event))  # Esper's patterns have no rounds in which it would differ
                    return formula
                return self.filtered(formula, condition, whole, event)
            case syntax.Function("NEXT", inner):
                return self._next(inner)
            case syntax.Function(function, inner):
                formula = self._full(inner, self.pattern(inner), f"{function}(…)")
                return cel.Start(formula) if function == "START" else cel.Strategy(function, formula)
            case syntax.Windowed(inner, window):
                return self._windowed(inner, window)
            case syntax.PartBy(inner, keys):
                return self._part_by(part, self.pattern(inner, whole, edge), keys, whole)
            case syntax.Project():
                return self._project(part, edge)
            case syntax.Aggregation(_, inner):
                formula = self._full(inner, self.pattern(inner), "AGG")
                self._narrow(formula, {})
                return self.rounds.aggregate(part, formula)
            case syntax.Negation():
                raise absence.only_absence(part)
        raise TypeError(f"not a part of a pattern: {part!r}")

    def _full(self, part: syntax.Pattern, formula: cel.Formula, construct: str) -> cel.Formula:
        """The formula, if it cannot match nothing."""
        if cel.may_be_empty(formula):
            hint = "Let one part of it be there: A+ instead of A*, or no '?'."
            raise BindError("MAY_BE_EMPTY", span=part.span, construct=construct, hint=hint)
        return formula

    def _combination(self, part: syntax.Combination) -> cel.Formula:
        """`A OR B OR C` as (A OR B) OR C; `A UNLESS B`."""
        if part.operator == "OR":
            return _joined(cel.Or, [self.pattern(item) for item in part.items])
        construct = f"each side of {part.operator}"
        if part.operator == "UNLESS":
            first, *others = part.items
            formula = self._full(first, self.pattern(first), construct)
            return reduce(lambda inner, veto: cel.Unless(inner, self._veto(veto, construct)), others, formula)
        formulas = [self._full(item, self.pattern(item), construct) for item in part.items]
        return _joined(_NODES[part.operator], formulas)

    def _next(self, part: syntax.Pattern) -> cel.Formula:
        """NEXT(R): the first R from here on, ACEL's π_R((X⊕ : R) FILTER X[type ≠ R]) OR R (Appendix A.1).

        The paper prints X+, whose gaps could hide an R; what it says of it, the first one, is X⊕.
        """
        found = own_alias(part) or (part, None)
        if not isinstance(found[0], syntax.TypeRef) or (isinstance(part, syntax.Alias) and part.inner is not found[0]):
            hint = "NEXT(R) and NEXT(R r) are the first R from here on. The strategy on whole patterns is NXT(p)."
            raise BindError("NEXT_OF_TYPE", span=part.span, hint=hint)
        event = self.pattern(part)
        assert isinstance(event, cel.Event)
        if event.type is None:
            return event
        passed: cel.Formula = cel.ContiguousIteration(cel.Event(None, frozenset({PASSED})))
        other = cel.Predicate(f"({self.types[event.type]}) IS NOT TRUE")
        skipping = cel.Filter(cel.Contiguous(passed, event), PASSED, other)
        return cel.Or(cel.Project(skipping, event.marks), event)

    def _windowed(self, inner: syntax.Pattern, window: syntax.Window) -> cel.Formula:
        absence.check_windowed(inner, self.conditions.text[window.span.start : window.span.end])
        formula = self._full(inner, self.pattern(inner), "WITHIN")
        bound = self.windows(window)
        assert bound is not None
        if formulas.of_one_event(formula):
            self.warnings.append("A WITHIN over a single event always holds.")
        return cel.Within(formula, bound)

    # ------------------------------------------------------------ negated parts

    def _veto(self, part: syntax.Pattern, construct: str) -> cel.Formula:
        """A placeholder for a negated part."""
        self.vetoes.append(self._full(part, self.pattern(part), construct))
        return cel.Event(None, frozenset({placeholder(len(self.vetoes) - 1)}))

    def _cut(self, cut: absence.Cut, edge: bool) -> cel.Formula:
        """A sequence with negated parts."""
        for end, found in (("start", cut.leading), ("end", cut.trailing)):
            if found and not edge:
                raise absence.at_edge(found[0], end)
            if found and self.windows(None) is None:
                raise absence.without_window(found[0], end, self._window_to_write())
        leading = self._vetoes(cut.leading)  # in the order of the text
        parts, gaps = [], []
        for part, gap in zip(cut.parts, (*cut.gaps, cut.trailing), strict=True):
            parts.append(self.pattern(part))
            gaps.append(self._vetoes(gap))
        for k, around in enumerate((cut.leading, *cut.gaps, cut.trailing)):
            if around and k > 0 and cel.may_be_empty(parts[k - 1]):
                raise absence.beside_nothing(around[0], "before", k == len(parts))
            if around and k < len(parts) and cel.may_be_empty(parts[k]):
                raise absence.beside_nothing(around[0], "after", k == 0)
        formula, window = _chained(parts, gaps[:-1]), self.windows(None)
        if leading:
            assert window is not None
            formula = cel.NotBefore(leading, formula, window)
        if gaps[-1]:
            assert window is not None
            formula = cel.NotAfter(formula, gaps[-1], window)
        return formula

    def _window_to_write(self) -> str | None:
        """A hint: a WITHIN that fits the clock."""
        example = syntax.Text("INTERVAL 10 MINUTES", Span(0, 0))
        try:
            self.windows(syntax.Window(example, "INTERVAL", False, example.span))
        except BindError as error:
            if error.condition == "WINDOW_UNIT":
                return error.hint
        return "Write WITHIN 10 MINUTES, for example."

    def _vetoes(self, negations: absence.Vetoes) -> tuple[cel.Formula, ...]:
        return tuple(self._veto(negation.inner, "a '!'") for negation in negations)

    def _parts_in(self, formula: cel.Formula) -> Iterator[int]:
        """The numbers of the negated parts of a formula, and of those inside them."""
        for node in cel.walk(formula):
            number = _number(node)
            if number is not None:
                yield number
                yield from self._parts_in(self.vetoes[number])

    def _negated(self, formula: cel.Formula) -> dict[str, frozenset[int]]:
        """The variables that only negated parts of a formula bind, each with those parts."""
        found: dict[str, frozenset[int]] = {}
        for number in self._parts_in(formula) if self.vetoes else ():
            for mark in cel.variables(self.vetoes[number]) - cel.variables(formula):
                found[mark] = found.get(mark, frozenset()) | {number}
        return found

    def _placed(self, formula: cel.Formula) -> cel.Formula:
        """The formula with every negated part in its place."""
        if not self.vetoes:
            return formula
        number = _number(formula)
        if number is None:
            return cel.rebuilt(formula, self._placed)
        veto = cel.rebuilt(self.vetoes[number], self._placed)
        return cel.Candidate(veto, number) if number in self.across else veto

    # ------------------------------------------------------------ filters

    def filtered(
        self, formula: cel.Formula, condition: syntax.Text, whole: bool, own: str | None = None
    ) -> cel.Formula:
        """φ FILTER condition. `own`: the mark whose columns stand bare in it."""
        variables, negated = cel.variables(formula), self._negated(formula)
        self._narrow(formula, negated)
        split = self.conditions.split(condition, variables, negated, whole, own, self._holds_many(formula, whole))
        self.on_match += split.on_match
        alternatives = [part for part in split.clauses if isinstance(part[1], Either)]
        for owner, clause in split.clauses:
            if whole and isinstance(clause, Agreement) and clause.variable is None and clause.name is not None:
                self.agreed.append(clause.name)
            if not isinstance(clause, Either):
                formula = self._owned(formula, owner, clause, condition.span)
        across: dict[int, list[tuple[cel.Side, ...]]] = {}
        for owner, clause in split.across:
            across.setdefault(owner, []).append(self._sides(clause))
        for owner, clauses in across.items():
            formula = self._compared_across(formula, owner, tuple(clauses), condition.span)
        if split.judged and cel.may_be_empty(formula):
            hint = "Let one part of it be there: A+ instead of A*, or ask it in WHERE."
            raise BindError("MAY_BE_EMPTY", span=condition.span, construct="a condition on it as a whole", hint=hint)
        for judged in split.judged:
            formula = self.rounds.judge(formula, judged, condition.span)
        # Last: each side has negated parts of its own, with all that is asked of them.
        for part, clause in alternatives:
            formula = self._owned(formula, part, clause, condition.span)
        return formula

    def _owned(self, formula: cel.Formula, owner: int | None, clause: Clause, at: Span) -> cel.Formula:
        """The formula with a clause that belongs to a negated part, or to itself."""
        if owner is None:
            return self._clause(formula, clause, at)
        self.vetoes[owner] = self._clause(self.vetoes[owner], clause, at)
        return formula

    def _holds_many(self, formula: cel.Formula, whole: bool) -> Callable[[frozenset[str]], bool]:
        """Would runs have to hold the values of many events, to compute with these variables? Where all matches are
        listed anyway Spark can do it better; else runs do."""
        if not whole or not self.lists:
            return lambda _: False
        counts = occurrences(formula)

        def holds(names: frozenset[str]) -> bool:
            many = [name for name in names if counts[name] >= MANY]
            return len(many) > 1 or (len(many) == 1 and not comes_last(formula, many[0], names - {many[0]}))

        return holds

    def _compared_across(self, formula: cel.Formula, owner: int, clauses: Clauses, at: Span) -> cel.Formula:
        """The formula with conditions between a negated part and what is around it."""
        more = _with_clauses(formula, owner, clauses)
        if more is not None:
            return more
        if owner in self.across:
            raise BindError(
                "NOT_SUPPORTED_YET", span=at,
                construct="A second condition between the same negated part and what is around it",
                hint="Join both with AND, in one WHERE or one FILTER.",
            )  # fmt: skip
        self.across.add(owner)
        return cel.Across(formula, owner, clauses)

    def _agreeing(
        self, formula: cel.Formula, terms: tuple[tuple[str | None, str], ...], type: str, at: Span
    ) -> cel.Formula:
        """All events agree; and what must not happen does so only where it agrees with them (semantics, "Filters")."""
        for number in [n for part in cel.walk(formula) if (n := _number(part)) is not None]:
            veto = self.vetoes[number]
            own = tuple(term for term in terms if term[0] is None or term[0] in cel.variables(veto))
            if own:
                self.vetoes[number] = veto = self._agreeing(veto, own, type, at)
                taken = cel.variables(formula)
                if terms[0][0] is None and any(marks <= taken for marks in atoms(veto)):
                    # The name of a type stands for events of the match, too: these get one of their own.
                    veto = self.vetoes[number] = cel.As(veto, absent_mark(number))
                pairs = product(_representatives(veto, terms, taken), _representatives(formula, terms))
                equal = tuple((cel.Comparison(of_veto, "=", around, type),) for of_veto, around in pairs)
                formula = self._compared_across(formula, number, equal, at)
        bound = cel.variables(formula)
        return cel.Agree(formula, tuple(term for term in terms if term[0] is None or term[0] in bound), type)

    def _clause(self, formula: cel.Formula, clause: Clause, at: Span) -> cel.Formula:
        if isinstance(clause, Either):
            return self._either(formula, clause, at)
        if isinstance(clause, Differ):
            return self._differing(formula, clause)
        if isinstance(clause, Agreement):
            if clause.variable is not None:  # what must not happen has nothing to do with it
                return cel.Agree(formula, ((clause.variable, quote(clause.column.name)),), clause.column.type)
            return self._agreeing(formula, ((None, quote(clause.column.name)),), clause.column.type, at)
        if any(not isinstance(side, Literal) or side.of != EACH for side in clause):
            for side in clause:
                if not isinstance(side, Literal):
                    self._warn_never(formula, side)
            return cel.Compare(formula, self._sides(clause))
        literals = [side for side in clause if isinstance(side, Literal)]
        self._warn_apart(formula, [side.variable for side in literals if side.variable is not None])
        for side in literals:
            self.origins.setdefault(side.sql.text, side.sql)
        sides = tuple((side.variable, cel.Predicate(side.sql.text)) for side in literals)
        return cel.Filter(formula, *sides[0]) if len(sides) == 1 else cel.FilterAny(formula, sides)

    def _either(self, formula: cel.Formula, clause: Either, at: Span) -> cel.Formula:
        """φ FILTER (P OR Q) as (φ FILTER P) OR (φ FILTER Q)."""
        self.eithers.append(clause.span)
        self.copies *= len(clause.sides)
        if self.copies > MAX_CLAUSES:
            raise BindError(
                "CONDITION_TOO_LARGE", span=at, found=self.copies, limit=MAX_CLAUSES,
                hint="Each OR beside a [column] or x[column] is two ways to match; move some of them to HAVING.",
            )  # fmt: skip
        made = [formula, *(self._copied(formula, {}) for _ in clause.sides[1:])]
        for k, side in enumerate(clause.sides):
            for part in side:
                made[k] = self._clause(made[k], part, at)
        return _joined(cel.Or, made)

    def _differing(self, formula: cel.Formula, clause: Differ) -> cel.Formula:
        """NOT [k]. Of variables that are one event each, and always there, every two are compared."""
        variables = {own.variable for own in clause.agreements}
        marks = [mark for mark in sorted(cel.variables(formula)) if not is_hidden(mark)]
        if None not in variables:
            marks = sorted(mark for mark in variables if mark is not None)
        counts, present = occurrences(formula), always_bound(formula)
        if None in variables and all(counts[mark] == 1 and mark in present for mark in marks) and len(marks) > 1:
            sides: list[cel.Side] = [
                cel.Comparison(cel.Term(one, sql), "<>", cel.Term(other, sql), own.column.type)
                for own in clause.agreements
                for sql in (quote(own.column.name),)
                for one, other in combinations(marks, 2)
            ]
            # What holds of no event in particular can be asked of any.
            rest = tuple(
                replace(side, variable=marks[0]) if isinstance(side, Literal) and side.variable is None else side
                for side in clause.rest
            )
            return cel.Compare(formula, (*sides, *self._sides(rest)))
        if not clause.whole:
            return self.rounds.judge(formula, clause.clause, clause.span)
        self.on_match.append(clause.clause)
        return formula

    def _copied(self, formula: cel.Formula, numbers: dict[int, int]) -> cel.Formula:
        """The formula with negated parts of its own, which can be filtered apart from those that it was made of.

        `numbers`: the new ones by the old ones.
        """
        if not any(self._parts_in(formula)) and not any(_number(node) is not None for node in cel.walk(formula)):
            return formula
        number = _number(formula)
        if number is not None:
            self.vetoes.append(self._copied(self.vetoes[number], numbers))
            numbers[number] = len(self.vetoes) - 1
            if number in self.across:
                self.across.add(numbers[number])
            return cel.Event(None, frozenset({placeholder(numbers[number])}))
        made = cel.rebuilt(formula, lambda inner: self._copied(inner, numbers))
        if isinstance(made, cel.Across):
            made = replace(made, number=numbers[made.number])
        if isinstance(made, cel.Project):
            self.projects.append(made)
            self.narrowed[id(made)] = self.narrowed[id(formula)]
        return made

    def _sides(self, clause: Clause) -> tuple[cel.Side, ...]:
        """The sides of an OR that compares events."""
        assert isinstance(clause, tuple)
        sides: list[cel.Side] = []
        for side in clause:
            if isinstance(side, Related):
                self.origins.setdefault(side.whole.text, side.whole)
                terms = tuple(cel.Term(event[0], sql.text, event[1]) for event, sql, _ in side.operands)
                types = tuple(type for _, _, type in side.operands)
                sides.append(cel.Related(terms, types, side.relation, side.tabulated))
            elif isinstance(side, Compared):
                self.origins.setdefault(side.whole.text, side.whole)
                left = cel.Term(side.left[0], side.left_sql.text, side.left[1])
                right = cel.Term(side.right[0], side.right_sql.text, side.right[1])
                sides.append(cel.Comparison(left, side.op, right, side.type))
            else:
                assert side.variable is not None
                self.origins.setdefault(side.sql.text, side.sql)
                sides.append(cel.Test(side.variable, cel.Predicate(side.sql.text), side.of))
        return tuple(sides)

    def _warn_never(self, formula: cel.Formula, side: Compared | Related) -> None:
        """A comparison holds where one of its variables is empty: if they are never bound together, it always does."""
        events = (side.left, side.right) if isinstance(side, Compared) else [event for event, _, _ in side.operands]
        variables = list(dict.fromkeys(variable for variable, _ in events))
        pairs = together(formula) if len(variables) > 1 else ()
        pair = next((pair for pair in combinations(variables, 2) if frozenset(pair) not in pairs), None)
        if pair is not None:
            names = " and ".join(map(display, pair))
            self.warnings.append(f"The comparison of {names} always holds, since no match has events of both.")

    def _warn_apart(self, formula: cel.Formula, variables: list[str]) -> None:
        """An OR holds where one of its variables is empty: if two are never bound together, it always does."""
        pairs = together(formula) if len(variables) > 1 else ()
        for pair in combinations(variables, 2):
            if frozenset(pair) not in pairs:
                names = " and ".join(map(display, pair))
                self.warnings.append(
                    f"An OR of conditions on {names} is always true, since no match has events of both: write AND."
                )

    def _part_by(self, part: syntax.PartBy, formula: cel.Formula, keys: syntax.Text, whole: bool) -> cel.Formula:
        """φ PART BY (x.a, y.b): the variables that are listed must reach every event. φ PART BY (a, b): [a, b]."""
        self._narrow(formula, {})
        agreements = self.conditions.part_by_keys(keys, cel.variables(formula))
        if agreements is not None:
            for agreement in agreements:
                formula = self._clause(formula, agreement, keys.span)
            self.agreed += [agreement.name for agreement in agreements if whole and agreement.name is not None]
            return formula
        terms, shown = self.conditions.attributes(keys, cel.variables(formula) | self._negated(formula).keys())
        listed = {variable for variable, _ in terms}
        for marks in atoms(formula):  # what must not happen may be left out, and is then there whatever its values
            if not marks & listed and not any(map(is_placeholder, marks)):
                name = display(min(marks, key=hidden_last))
                raise BindError(
                    "PART_BY_COVERS", span=keys.span, name=name, hint=f"List an attribute of {name} as well: {name}.…"
                )  # fmt: skip
        columns = self.conditions.columns
        assert self.conditions.types is not None
        first, *others = (sql.text for sql in shown)
        *before, last = others or [first]  # Spark casts two at a time
        type = self.conditions.types.common_type(reduce("coalesce({}, {})".format, before, first), last, columns)
        for sql in shown:
            self.origins.setdefault(f"({first}) = ({sql.text})", sql.wrapped(f"({first}) = (", ")"))
        return self._agreeing(formula, terms, type, keys.span)

    # ------------------------------------------------------------ projection

    def _project(self, part: syntax.Project, edge: bool) -> cel.Formula:
        inner = self._full(part.inner, self.pattern(part.inner, edge=edge), "PROJECT")
        variables = cel.variables(inner)
        self._narrow(inner, {})
        narrowed: projection.Limits = {}
        keep: set[str] = set()
        for target in projection.targets(self.conditions.text, part.targets):
            mark = self.scope.variable(target.name)
            mark = self.conditions.check_variable(mark, target.name, target.span, variables)
            # A type's name stands for its aliased events and its bare ones, which are a variable of their own.
            marks = {mark, visible_name(mark)} & variables
            keep |= marks
            if target.columns is not None:
                columns = frozenset(self.conditions.column(mark, *column) for column in target.columns)
                narrowed |= {own: columns | (narrowed.get(own) or frozenset()) for own in marks}
        self.conditions.dropped |= variables - keep
        formula = cel.Project(inner, frozenset(keep))
        self.projects.append(formula)
        self.narrowed[id(formula)] = narrowed
        return formula

    def _narrow(self, formula: cel.Formula, negated: dict[str, frozenset[int]]) -> None:
        """Conditions from here on see what PROJECT has left of the columns inside the formula."""
        if not any(self.narrowed.values()):
            return
        found = projection.limits(formula, self.narrowed)
        for mark, numbers in negated.items():
            (number, *_) = numbers
            found[mark] = projection.limits(self.vetoes[number], self.narrowed).get(mark)
        self.conditions.limits = found

    # ------------------------------------------------------------ atoms

    def _canonical(self, name: syntax.Name) -> str:
        alias = self.scope.aliases.get(name.value)
        assert alias is not None
        return alias

    def _mark(self, part: syntax.Pattern) -> str:
        """The variable of a single event."""
        if isinstance(part, syntax.FilterPart):
            return self._mark(part.inner)
        if isinstance(part, syntax.Alias):
            return self._canonical(part.name)
        assert isinstance(part, syntax.TypeRef)
        return part.name.value if part.name else "ANY"

    def _loops(self, part: syntax.Pattern, alias: str) -> cel.Formula:
        """`R+ AS x`: the alias belongs to the events, not to the loop."""
        if isinstance(part, syntax.Repeat):
            return _repeated(part, self._loops(part.inner, alias))
        assert isinstance(part, syntax.TypeRef)
        return self._event(part, alias)

    def _event(self, part: syntax.TypeRef, alias: str | None) -> cel.Event:
        if part.name is None:
            return cel.Event(None, frozenset({alias or "ANY"}))
        type = part.name.value
        marks = {alias or type}
        if type in self.scope.aliased:
            marks.add(self.scope.mark_of(type))
        return cel.Event(type, frozenset(marks))


def _number(formula: cel.Formula) -> int | None:
    """Which negated part it holds the place of."""
    if isinstance(formula, cel.Event) and formula.type is None:
        (mark, *_) = formula.marks
        return placeholder_number(mark)
    return None


def _representatives(
    formula: cel.Formula, terms: tuple[tuple[str | None, str], ...], taken: frozenset[str] = frozenset()
) -> list[cel.Term]:
    """Attributes of events of a formula that agree, of which one is always there, else all; by no taken name."""
    own: list[cel.Term] = []
    names = cel.variables(formula) - taken
    for variable, sql in terms:
        if variable is None:
            marks = sorted(names, key=hidden_last)
            own += [cel.Term(mark, sql) for mark in marks]
        elif variable in names:
            own.append(cel.Term(variable, sql))
    present = always_bound(formula)
    return next(([term] for term in own if term.variable in present), own)


def _filter_of_all(text: str, part: syntax.Pattern, error: BindError) -> str | None:
    """A hint for `A a ; B b FILTER a.x > 1`, where FILTER binds B b alone and does not know a."""
    place, name = error.span, str(error.parameters.get("name")).casefold()
    assert place is not None

    def shown(item: syntax.Pattern) -> str:
        return " ".join(text[item.span.start : item.span.end].split())

    for k, item in enumerate(part.items if isinstance(part, syntax.Chain) else ()):
        if isinstance(item, syntax.FilterPart) and item.condition.span.start <= place.start < item.condition.span.end:
            assert isinstance(part, syntax.Chain)
            before = part.items[:k]
            if name in {word.casefold() for other in before for word in _names_in(other)}:
                whole = (" : " if part.contiguous else " ; ").join(map(shown, (*before, item.inner)))
                return f"FILTER binds {shown(item.inner)} alone. Write ({whole}) FILTER …, or WHERE."
    return next((hint for child in syntax.children(part) if (hint := _filter_of_all(text, child, error))), None)


def _names_in(part: syntax.Pattern) -> Iterator[str]:
    """The types and variables that a part speaks of."""
    for inner in syntax.walk(part):
        if isinstance(inner, syntax.Alias | syntax.TypeRef) and inner.name is not None:
            yield inner.name.value


def _with_clauses(formula: cel.Formula, number: int, clauses: Clauses) -> cel.Formula | None:
    """The formula with more clauses in its comparison with a negated part, if only filters stand around that."""
    match formula:
        case cel.Across(inner, own, known) if own == number:
            return cel.Across(inner, own, (*known, *clauses))
        case cel.Compare(inner) | cel.Agree(inner) | cel.Across(inner) | cel.Filter(inner) | cel.FilterAny(inner):
            changed = _with_clauses(inner, number, clauses)
            return None if changed is None else replace(formula, inner=changed)
    return None


def _repeated(part: syntax.Repeat, formula: cel.Formula) -> cel.Formula:
    """A quantifier; `+` and `:+` have nodes of their own, and once is no loop."""
    match part.low, part.high:
        case 1, 1:
            return formula
        case 1, None:
            return (cel.ContiguousIteration if part.contiguous else cel.Iteration)(formula)
    return cel.Repeat(formula, part.low, part.high, part.contiguous)


def _joined(node: Callable[[cel.Formula, cel.Formula], cel.Formula], parts: list[cel.Formula]) -> cel.Formula:
    """Many parts by an associative operator: from the left, but never so deep that Python's stack would end."""
    while len(parts) > WIDTH:
        parts = [reduce(node, parts[i : i + WIDTH]) for i in range(0, len(parts), WIDTH)]
    return reduce(node, parts)


def _chained(parts: list[cel.Formula], gaps: list[tuple[cel.Formula, ...]]) -> cel.Formula:
    """A sequence with negated parts in some of its gaps; no deeper than _joined."""

    def fold(at: int) -> cel.Formula:
        formula = parts[at]
        for k in range(at + 1, min(at + WIDTH, len(parts))):
            vetoes = gaps[k - 1]
            formula = cel.Absent(formula, vetoes, parts[k]) if vetoes else cel.Sequence(formula, parts[k])
        return formula

    while len(parts) > 1:
        starts = range(0, len(parts), WIDTH)
        parts, gaps = [fold(at) for at in starts], [gaps[at - 1] for at in starts[1:]]
    return parts[0]
