"""Pattern → CEL formula: pure desugaring, no decisions about speed.

Conditions are put on formulas by cersql.binding.filters; negated parts wait in cersql.binding.negations until all of
them are known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce

from cersql.binding import absence, formulas, projection
from cersql.binding.filters import Filters
from cersql.binding.joins import chained, joined, repeated
from cersql.binding.scope import own_alias
from cersql.errors import BindError
from cersql.language import syntax
from cersql.language.operators import INFIX
from planner import cel
from planner.formula import Formula
from planner.terms import Predicate
from runtime.errors import Span
from runtime.marks import (
    PASSED,
    placeholder,
    visible_name,
)


class Translator(Filters):
    """Translates one pattern."""

    def query(self, pattern: syntax.Pattern, where: Sequence[syntax.Text]) -> Formula:
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

    def pattern(self, part: syntax.Pattern, whole: bool = False, edge: bool = False) -> Formula:
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
                return joined(cel.Contiguous, [self.pattern(item) for item in items])
            case syntax.Chain(items, False):
                cut = absence.cut(part)
                return self._cut(cut, edge) if cut else joined(cel.Sequence, [self.pattern(item) for item in items])
            case syntax.Repeat(inner):
                return repeated(part, self.pattern(inner))
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
                around = cel.AROUND.get(function)
                return cel.Strategy(function, formula) if around is None else around(formula)
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

    def _full(self, part: syntax.Pattern, formula: Formula, construct: str) -> Formula:
        """The formula, if it cannot match nothing."""
        if formula.may_be_empty():
            hint = "Let one part of it be there: A+ instead of A*, or no '?'."
            raise BindError("MAY_BE_EMPTY", span=part.span, construct=construct, hint=hint)
        return formula

    def _combination(self, part: syntax.Combination) -> Formula:
        """`A op B op C` as (A op B) op C. Only an alternative may match nothing; what is excluded is negated."""
        kind = cel.BETWEEN[part.operator]
        construct = f"each side of {part.operator}"
        if INFIX[part.operator].excludes:
            first, *others = part.items
            formula = self._full(first, self.pattern(first), construct)
            return reduce(lambda inner, veto: kind(inner, self._veto(veto, construct)), others, formula)
        if kind is cel.Or:
            return joined(kind, [self.pattern(item) for item in part.items])
        return joined(kind, [self._full(item, self.pattern(item), construct) for item in part.items])

    def _next(self, part: syntax.Pattern) -> Formula:
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
        passed: Formula = cel.ContiguousIteration(cel.Event(None, frozenset({PASSED})))
        other = Predicate(f"({self.types[event.type]}) IS NOT TRUE")
        skipping = cel.Filter(cel.Contiguous(passed, event), PASSED, other)
        return cel.Or(cel.Project(skipping, event.marks), event)

    def _windowed(self, inner: syntax.Pattern, window: syntax.Window) -> Formula:
        absence.check_windowed(inner, self.conditions.text[window.span.start : window.span.end])
        formula = self._full(inner, self.pattern(inner), "WITHIN")
        bound = self.windows(window)
        assert bound is not None
        if formulas.of_one_event(formula):
            self.warnings.append("A WITHIN over a single event always holds.")
        return cel.Within(formula, bound)

    # ------------------------------------------------------------ negated parts

    def _veto(self, part: syntax.Pattern, construct: str) -> Formula:
        """A placeholder for a negated part."""
        self.vetoes.append(self._full(part, self.pattern(part), construct))
        return cel.Event(None, frozenset({placeholder(len(self.vetoes) - 1)}))

    def _cut(self, cut: absence.Cut, edge: bool) -> Formula:
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
            if around and k > 0 and parts[k - 1].may_be_empty():
                raise absence.beside_nothing(around[0], "before", k == len(parts))
            if around and k < len(parts) and parts[k].may_be_empty():
                raise absence.beside_nothing(around[0], "after", k == 0)
        formula, window = chained(parts, gaps[:-1]), self.windows(None)
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

    def _vetoes(self, negations: absence.Vetoes) -> tuple[Formula, ...]:
        return tuple(self._veto(negation.inner, "a '!'") for negation in negations)

    # ------------------------------------------------------------ projection

    def _project(self, part: syntax.Project, edge: bool) -> Formula:
        inner = self._full(part.inner, self.pattern(part.inner, edge=edge), "PROJECT")
        variables = inner.binds()
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

    def _loops(self, part: syntax.Pattern, alias: str) -> Formula:
        """`R+ AS x`: the alias belongs to the events, not to the loop."""
        if isinstance(part, syntax.Repeat):
            return repeated(part, self._loops(part.inner, alias))
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
