"""SQL of rounds and of the events that they create, on the arrays of a listed match.

For `AGG(y : s = SUM(a.v) ; A+ a)+` (cersql/binding/rounds.py) these are `rounds`, with the events of each, and `made`,
with an event for each that has the attribute s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from cersql.binding.conditions import Conditions
from cersql.binding.references import CreatedView
from cersql.binding.round_marks import creators, uses
from cersql.binding.round_values import NTH, ROUND, RoundPlan
from planner import cel
from planner.acel import Aggregate, Judged
from planner.formula import Formula
from planner.query import (
    PLACE_FIELD,
    Column,
    Created,
    Folded,
    Step,
    Variable,
    made_column,
    rounds_column,
    variable_column,
)
from planner.sql import Sql, quote
from runtime.marks import member_mark, round_mark


class RoundColumns:
    """The rounds of one pattern, innermost first, and the columns that they become."""

    def __init__(self, conditions: Conditions, time: Callable[[], Column]) -> None:
        self.conditions, self._time = conditions, time
        self.found: list[RoundPlan] = []

    @property
    def time(self) -> Column:
        return self._time()

    def members(self) -> dict[str, set[str]]:
        """Of each mark of ours the columns that are read of its events."""
        found: dict[str, set[str]] = {}
        for made in self.found:
            found[round_mark(made.number)] = {self.time.name}
            for mark in made.reads:
                found[member_mark(made.number, mark)] = set(made.values.used[mark])
        return found

    def created(self, formula: Formula, variables: Sequence[Variable]) -> Created | None:
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

    def _rounds(self, made: RoundPlan, columns: Mapping[str, str]) -> str:
        """SQL of the rounds of a part: each with its place, its time, and the events of the variables that are read."""
        ends, values, time = columns[round_mark(made.number)], made.values, quote(self.time.name)
        fields = [f"'{PLACE_FIELD}', __end.{PLACE_FIELD}", _field(self.time.name, f"__end.{time}")]
        if values.folds:
            fields.append(f"'{NTH}', __i")
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

    def _made(self, made: RoundPlan, rounds: str) -> Sql:
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

    def _repeats(self, formula: Formula) -> bool:
        """Can matches that are equal for the user be listed more than once?"""
        parts = list(formula.walk(only_positive=True))
        if any(isinstance(part, Judged | cel.Project | cel.And) for part in parts):
            return True
        return any(
            isinstance(part, Aggregate)
            and (
                any(len(numbers) > 1 for numbers in creators(formula).values())
                or any(uses(part.inner, mark) < uses(formula, mark) for mark in self.found[part.number - 1].reads)
            )
            for part in parts
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


def _same_on_both_sides(formula: Formula, views: Mapping[str, CreatedView]) -> Iterator[str]:
    """φ AND ψ: of the events that both create, those of the one are those of the other, by their times and attributes.
    That they stand at the same events is seen by runs."""
    for part in formula.walk(only_positive=True):
        if not isinstance(part, cel.And):
            continue
        left, right = creators(part.left), creators(part.right)
        for mark in sorted(left.keys() & right.keys()):
            names = ", ".join(f"__c.{quote(name)}" for name in (PLACE_FIELD, *views[mark].every[1:]))
            sides = (f"array_sort(transform({_every(own[mark])}, __c -> struct({names})))" for own in (left, right))
            yield " <=> ".join(sides)
