"""Pattern → CEL formula: pure desugaring, no decisions about speed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import reduce
from itertools import combinations, product

from cersql import syntax
from cersql.booleans import OrOf
from cersql.conditions import Clause, Conditions
from cersql.errors import BindError
from cersql.scope import Scope, display, own_alias
from planner import cel
from planner.sql import Sql

WIDTH = 32
MANY = 2  # occurrences beyond one are not told apart


class Translator:
    """Translates one pattern. Remembers where predicates come from, and conditions left for the whole match."""

    def __init__(self, scope: Scope, conditions: Conditions) -> None:
        self.scope = scope
        self.conditions = conditions
        self.origins: dict[str, Sql] = {}
        self.warnings: list[str] = []
        self.on_match: list[OrOf] = []

    def pattern(self, part: syntax.Pattern, whole: bool = False) -> cel.Formula:
        """`whole`: nothing but filters stands around it."""
        own = own_alias(part)
        if own is not None:
            assert isinstance(part, syntax.Alias)
            return self._loops(part.inner, self._canonical(part.name))
        match part:
            case syntax.TypeRef():
                return self._event(part, None)
            case syntax.Alias(inner, name):
                return cel.As(self.pattern(inner), self._canonical(name))
            case syntax.Chain(items, contiguous):
                node = cel.Contiguous if contiguous else cel.Sequence
                return _joined(node, [self.pattern(item) for item in items])
            case syntax.Repeat(inner, 1, None, contiguous):
                return (cel.ContiguousIteration if contiguous else cel.Iteration)(self.pattern(inner))
            case syntax.Repeat(inner, 1, 1):
                return self.pattern(inner)
            case syntax.Combination("OR", items):
                return _joined(cel.Or, [self.pattern(item) for item in items])
            case syntax.FilterPart(inner, condition):
                return self.filtered(self.pattern(inner, whole), condition, whole)
        raise BindError("NOT_SUPPORTED_YET", span=part.span, construct=_construct(part))

    def filtered(self, formula: cel.Formula, condition: syntax.Text, whole: bool) -> cel.Formula:
        """φ FILTER condition."""
        split = self.conditions.split(condition, cel.variables(formula), whole)
        self.on_match += split.on_match
        for clause in split.clauses:
            formula = self._clause(formula, clause)
        return formula

    def _clause(self, formula: cel.Formula, clause: Clause) -> cel.Formula:
        self._warn_apart(formula, [side.variable for side in clause if side.variable is not None])
        sides: list[cel.Formula] = []
        for side in clause:
            self.origins.setdefault(side.sql.text, side.sql)
            sides.append(cel.Filter(formula, side.variable, cel.Predicate(side.sql.text)))
        return reduce(cel.Or, sides)

    def _warn_apart(self, formula: cel.Formula, variables: list[str]) -> None:
        """An OR holds where one of its variables is empty: if two are never bound together, it always does."""
        pairs = together(formula)
        for pair in combinations(variables, 2):
            if frozenset(pair) not in pairs:
                names = " and ".join(map(display, pair))
                self.warnings.append(
                    f"An OR of conditions on {names} is always true, since no match has events of both: write AND."
                )

    def _canonical(self, name: syntax.Name) -> str:
        alias = self.scope.aliases.get(name.value)
        assert alias is not None
        return alias

    def _loops(self, part: syntax.Pattern, alias: str) -> cel.Formula:
        """`R+ AS x`: the alias belongs to the events, not to the loop."""
        match part:
            case syntax.TypeRef():
                return self._event(part, alias)
            case syntax.Repeat(inner, 1, None, contiguous):
                return (cel.ContiguousIteration if contiguous else cel.Iteration)(self._loops(inner, alias))
            case syntax.Repeat(inner, 1, 1):
                return self._loops(inner, alias)
        raise BindError("NOT_SUPPORTED_YET", span=part.span, construct=_construct(part))

    def _event(self, part: syntax.TypeRef, alias: str | None) -> cel.Event:
        if part.name is None:
            return cel.Event(None, frozenset({alias or "ANY"}))
        type = part.name.value
        marks = {alias or type}
        if type in self.scope.aliased:
            marks.add(self.scope.mark_of(type))
        return cel.Event(type, frozenset(marks))


def _joined(node: Callable[[cel.Formula, cel.Formula], cel.Formula], parts: list[cel.Formula]) -> cel.Formula:
    """Many parts by an associative operator: from the left, but never so deep that Python's stack would end."""
    while len(parts) > WIDTH:
        parts = [reduce(node, parts[i : i + WIDTH]) for i in range(0, len(parts), WIDTH)]
    return reduce(node, parts)


def occurrences(formula: cel.Formula) -> Counter[str]:
    """How many events each variable can hold, by the pattern: 1, or MANY."""
    match formula:
        case cel.Event(_, marks):
            return Counter(dict.fromkeys(marks, 1))
        case cel.As(inner, variable):
            found = occurrences(inner)
            found[variable] = _size(inner)
            return found
        case cel.Filter(inner):
            return occurrences(inner)
        case cel.Iteration(inner) | cel.ContiguousIteration(inner):
            return Counter(dict.fromkeys(occurrences(inner), MANY))
        case cel.Sequence(left, right) | cel.Contiguous(left, right):
            return _merged(occurrences(left), occurrences(right), lambda a, b: a + b)
        case cel.Or(left, right):
            return _merged(occurrences(left), occurrences(right), max)
    raise TypeError(f"not a formula: {formula!r}")


def together(formula: cel.Formula) -> frozenset[frozenset[str]]:
    """The pairs of variables that some match can bind both of (each with itself too), by the shape of the formula."""
    match formula:
        case cel.Sequence(left, right) | cel.Contiguous(left, right):
            across = (cel.variables(left), cel.variables(right))
            return together(left) | together(right) | {frozenset(pair) for pair in product(*across)}
        case cel.Iteration(inner) | cel.ContiguousIteration(inner):
            return frozenset(frozenset(pair) for pair in product(cel.variables(inner), repeat=2))
        case cel.Or(left, right):
            return together(left) | together(right)
        case cel.As(inner, variable):
            return together(inner) | {frozenset({variable, other}) for other in cel.variables(formula)}
        case cel.Filter(inner):
            return together(inner)
        case cel.Event(_, marks):
            return frozenset(frozenset(pair) for pair in product(marks, repeat=2))
    raise TypeError(f"not a formula: {formula!r}")


def filter_warnings(query: syntax.Query) -> list[str]:
    """`A ; B b FILTER b.x > 1` filters b's part alone, which is easily read otherwise."""
    part = query.pattern
    if not isinstance(part, syntax.Chain) or not isinstance(part.items[-1], syntax.FilterPart):
        return []
    last = part.items[-1]
    before = query.text[part.items[-2].span.end : last.span.start]
    if "(" in before or "," in before:  # in parentheses, or SEQ's operand: no doubt what it binds
        return []
    written = " ".join(query.text[last.inner.span.start : last.inner.span.end].split())
    return [f"FILTER binds {written} alone; for a condition on the whole pattern write WHERE, or (…) FILTER."]


def _size(formula: cel.Formula) -> int:
    """The greatest number of events of a match: 1, or MANY."""
    match formula:
        case cel.Event():
            return 1
        case cel.As(inner) | cel.Filter(inner):
            return _size(inner)
        case cel.Or(left, right):
            return max(_size(left), _size(right))
    return MANY


def _capped(n: int) -> int:
    return min(n, MANY)


def _merged(a: Counter[str], b: Counter[str], join: Callable[[int, int], int]) -> Counter[str]:
    return Counter({v: _capped(join(a[v], b[v])) for v in [*a, *b]})


def _construct(part: syntax.Pattern) -> str:
    """A part of a pattern as an error names it."""
    match part:
        case syntax.Combination(operator, _):
            return operator
        case syntax.Negation():
            return "! (absence)"
        case syntax.Repeat(_, low, high, contiguous):
            if (low, high) == (0, None):
                shown = "*"
            elif (low, high) == (0, 1):
                shown = "?"
            else:
                bound = f"{low}" if low == high else f"{low},{'' if high is None else high}"
                shown = "{" + bound + "}"
            return f"The quantifier {':' if contiguous else ''}{shown}"
        case syntax.Function(name, _):
            return f"{name}(…)"
        case syntax.PartBy():
            return "PART BY"
        case syntax.Project():
            return "PROJECT"
        case syntax.Aggregation():
            return "AGG"
        case syntax.Windowed():
            return "WITHIN inside a pattern"
    return type(part).__name__
