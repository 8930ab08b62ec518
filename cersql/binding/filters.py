"""Conditions on formulas: φ FILTER P, [column], PART BY.

A condition is split into clauses, an AND of ORs (cersql.binding.conditions), each of which belongs to the formula, to
one of its negated parts, or lies between the two:

    (A ; !B ; C) FILTER A.v > 1 AND B.v > 2 AND B.w > C.w     the first is A's, the second B's, the third lies across
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from itertools import combinations, product

from cersql.binding.arithmetic import Related
from cersql.binding.booleans import MAX_CLAUSES
from cersql.binding.clause import Agreement, Clause, Differ, Either, Literal
from cersql.binding.comparisons import EACH, Compared
from cersql.binding.formulas import MANY, comes_last, occurrences, together
from cersql.binding.joins import joined
from cersql.binding.negations import Negations, number_of
from cersql.binding.scope import display
from cersql.errors import BindError
from cersql.language import syntax
from planner import cel, terms
from planner.across import Across
from planner.formula import Formula
from planner.rewrite.keys import atoms
from planner.sql import quote
from planner.terms import Comparison, Predicate, Side, Term, Test
from runtime.errors import Span
from runtime.marks import (
    absent_mark,
    hidden_last,
    is_hidden,
    is_placeholder,
)

Clauses = tuple[tuple[Side, ...], ...]  # an AND of ORs


class Filters(Negations):
    """Puts conditions on the formulas of one pattern."""

    # ------------------------------------------------------------ whose a condition is

    def filtered(self, formula: Formula, condition: syntax.Text, whole: bool, own: str | None = None) -> Formula:
        """φ FILTER condition. `own`: the mark whose columns stand bare in it."""
        variables, negated = formula.binds(), self._negated(formula)
        self._narrow(formula, negated)
        split = self.conditions.split(condition, variables, negated, whole, own, self._holds_many(formula, whole))
        self.on_match += split.on_match
        alternatives = [part for part in split.clauses if isinstance(part[1], Either)]
        for owner, clause in split.clauses:
            if whole and isinstance(clause, Agreement) and clause.variable is None and clause.name is not None:
                self.agreed.append(clause.name)
            if not isinstance(clause, Either):
                formula = self._owned(formula, owner, clause, condition.span)
        across: dict[int, list[tuple[Side, ...]]] = {}
        for owner, clause in split.across:
            across.setdefault(owner, []).append(self._sides(clause))
        for owner, clauses in across.items():
            formula = self._compared_across(formula, owner, tuple(clauses), condition.span)
        if split.judged and formula.may_be_empty():
            hint = "Let one part of it be there: A+ instead of A*, or ask it in WHERE."
            raise BindError("MAY_BE_EMPTY", span=condition.span, construct="a condition on it as a whole", hint=hint)
        for judged in split.judged:
            formula = self.rounds.judge(formula, judged, condition.span)
        # Last: each side has negated parts of its own, with all that is asked of them.
        for part, clause in alternatives:
            formula = self._owned(formula, part, clause, condition.span)
        return formula

    def _owned(self, formula: Formula, owner: int | None, clause: Clause, at: Span) -> Formula:
        """The formula with a clause that belongs to a negated part, or to itself."""
        if owner is None:
            return self._clause(formula, clause, at)
        self.vetoes[owner] = self._clause(self.vetoes[owner], clause, at)
        return formula

    def _holds_many(self, formula: Formula, whole: bool) -> Callable[[frozenset[str]], bool]:
        """Would runs have to hold the values of many events, to compute with these variables? Where all matches are
        listed anyway Spark can do it better; else runs do."""
        if not whole or not self.lists:
            return lambda _: False
        counts = occurrences(formula)

        def holds(names: frozenset[str]) -> bool:
            many = [name for name in names if counts[name] >= MANY]
            return len(many) > 1 or (len(many) == 1 and not comes_last(formula, many[0], names - {many[0]}))

        return holds

    def _compared_across(self, formula: Formula, owner: int, clauses: Clauses, at: Span) -> Formula:
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
        return Across(formula, owner, clauses)

    # ------------------------------------------------------------ clauses

    def _clause(self, formula: Formula, clause: Clause, at: Span) -> Formula:
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
        sides = tuple((side.variable, Predicate(side.sql.text)) for side in literals)
        return cel.Filter(formula, *sides[0]) if len(sides) == 1 else cel.FilterAny(formula, sides)

    def _either(self, formula: Formula, clause: Either, at: Span) -> Formula:
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
        return joined(cel.Or, made)

    def _differing(self, formula: Formula, clause: Differ) -> Formula:
        """NOT [k]. Of variables that are one event each, and always there, every two are compared."""
        variables = {own.variable for own in clause.agreements}
        marks = [mark for mark in sorted(formula.binds()) if not is_hidden(mark)]
        if None not in variables:
            marks = sorted(mark for mark in variables if mark is not None)
        counts, present = occurrences(formula), formula.always_binds()
        if None in variables and all(counts[mark] == 1 and mark in present for mark in marks) and len(marks) > 1:
            sides: list[Side] = [
                Comparison(Term(one, sql), "<>", Term(other, sql), own.column.type)
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

    def _sides(self, clause: Clause) -> tuple[Side, ...]:
        """The sides of an OR that compares events."""
        assert isinstance(clause, tuple)
        sides: list[Side] = []
        for side in clause:
            if isinstance(side, Related):
                self.origins.setdefault(side.whole.text, side.whole)
                operands = tuple(Term(event[0], sql.text, event[1]) for event, sql, _ in side.operands)
                types = tuple(type for _, _, type in side.operands)
                sides.append(terms.Related(operands, types, side.relation, side.tabulated, side.spelled))
            elif isinstance(side, Compared):
                self.origins.setdefault(side.whole.text, side.whole)
                left = Term(side.left[0], side.left_sql.text, side.left[1])
                right = Term(side.right[0], side.right_sql.text, side.right[1])
                sides.append(Comparison(left, side.op, right, side.type))
            else:
                assert side.variable is not None
                self.origins.setdefault(side.sql.text, side.sql)
                sides.append(Test(side.variable, Predicate(side.sql.text), side.of))
        return tuple(sides)

    def _warn_never(self, formula: Formula, side: Compared | Related) -> None:
        """A comparison holds where one of its variables is empty: if they are never bound together, it always does."""
        events = (side.left, side.right) if isinstance(side, Compared) else [event for event, _, _ in side.operands]
        variables = list(dict.fromkeys(variable for variable, _ in events))
        pairs = together(formula) if len(variables) > 1 else ()
        pair = next((pair for pair in combinations(variables, 2) if frozenset(pair) not in pairs), None)
        if pair is not None:
            names = " and ".join(map(display, pair))
            self.warnings.append(f"The comparison of {names} always holds, since no match has events of both.")

    def _warn_apart(self, formula: Formula, variables: list[str]) -> None:
        """An OR holds where one of its variables is empty: if two are never bound together, it always does."""
        pairs = together(formula) if len(variables) > 1 else ()
        for pair in combinations(variables, 2):
            if frozenset(pair) not in pairs:
                names = " and ".join(map(display, pair))
                self.warnings.append(
                    f"An OR of conditions on {names} is always true, since no match has events of both: write AND."
                )

    # ------------------------------------------------------------ agreement

    def _part_by(self, part: syntax.PartBy, formula: Formula, keys: syntax.Text, whole: bool) -> Formula:
        """φ PART BY (x.a, y.b): the variables that are listed must reach every event. φ PART BY (a, b): [a, b]."""
        self._narrow(formula, {})
        agreements = self.conditions.part_by_keys(keys, formula.binds())
        if agreements is not None:
            for agreement in agreements:
                formula = self._clause(formula, agreement, keys.span)
            self.agreed += [agreement.name for agreement in agreements if whole and agreement.name is not None]
            return formula
        terms, shown = self.conditions.attributes(keys, formula.binds() | self._negated(formula).keys())
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

    def _agreeing(self, formula: Formula, terms: tuple[tuple[str | None, str], ...], type: str, at: Span) -> Formula:
        """All events agree; and what must not happen does so only where it agrees with them (semantics, "Filters")."""
        for number in [n for part in formula.walk() if (n := number_of(part)) is not None]:
            veto = self.vetoes[number]
            own = tuple(term for term in terms if term[0] is None or term[0] in veto.binds())
            if own:
                self.vetoes[number] = veto = self._agreeing(veto, own, type, at)
                taken = formula.binds()
                if terms[0][0] is None and any(marks <= taken for marks in atoms(veto)):
                    # The name of a type stands for events of the match, too: these get one of their own.
                    veto = self.vetoes[number] = cel.As(veto, absent_mark(number))
                pairs = product(_representatives(veto, terms, taken), _representatives(formula, terms))
                equal = tuple((Comparison(of_veto, "=", around, type),) for of_veto, around in pairs)
                formula = self._compared_across(formula, number, equal, at)
        bound = formula.binds()
        return cel.Agree(formula, tuple(term for term in terms if term[0] is None or term[0] in bound), type)


def _representatives(
    formula: Formula, terms: tuple[tuple[str | None, str], ...], taken: frozenset[str] = frozenset()
) -> list[Term]:
    """Attributes of events of a formula that agree, of which one is always there, else all; by no taken name."""
    own: list[Term] = []
    names = formula.binds() - taken
    for variable, sql in terms:
        if variable is None:
            marks = sorted(names, key=hidden_last)
            own += [Term(mark, sql) for mark in marks]
        elif variable in names:
            own.append(Term(variable, sql))
    present = formula.always_binds()
    return next(([term] for term in own if term.variable in present), own)


def _with_clauses(formula: Formula, number: int, clauses: Clauses) -> Formula | None:
    """The formula with more clauses in its comparison with a negated part, if only filters stand around that."""
    match formula:
        case Across(inner, own, known) if own == number:
            return Across(inner, own, (*known, *clauses))
        case cel.Compare(inner) | cel.Agree(inner) | Across(inner) | cel.Filter(inner) | cel.FilterAny(inner):
            changed = _with_clauses(inner, number, clauses)
            return None if changed is None else replace(formula, inner=changed)
    return None
