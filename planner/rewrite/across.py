"""A comparison with a negated part is placed where it acts: inside the choices that bind its variables.

    NXT(A a ; NOT X x ; B) WHERE x.v > a.v       is   NXT((A a ; NOT X x ; B) WHERE x.v > a.v)
    C c ; NXT(A ; NOT X x ; B) WHERE x.v > c.v   stays, and what NXT chooses from is pending

A condition that mentions a negated part belongs to that part (semantics, "Negated parts"). On the way to the part there
can be *choices*. A strategy chooses among the matches that the part leaves. A negated part around it prevents by those.
A choice makes complex events of its own, and the match around it has no part in them.

A variable that a choice binds means events of what is chosen. Any other variable means events of the match around it,
which may be known later. So a comparison goes inside all choices that bind all of its variables, and stays outside of
all if they bind none. In between it is split, and each choice below it is `Pending`: still to be made.
"""

from __future__ import annotations

from dataclasses import replace

from planner import cel
from planner.across import Across, Candidate, Pending
from planner.formula import Formula
from planner.terms import parts_of


def inside_choices(formula: Formula) -> Formula:
    """The formula with each comparison at the outermost place where a variable of it is bound."""
    if isinstance(formula, Across):
        placed = _placed(formula)
        if not isinstance(placed, Across) or placed.number != formula.number:  # it went inside; here is another
            return inside_choices(placed)
        formula = placed
    return formula.rebuilt(inside_choices)


def _placed(across: Across) -> Formula:
    steps = way(across.inner, across.number)
    inside = _inside_choices_of(steps)
    if not inside or any(isinstance(part, Pending) and part.number == across.number for part in steps):
        return across
    own = [across.inner.binds(), *(steps[i].binds() for i in inside)]
    levels = [level for name in _names(across) if (level := level_of(name, own)) is not None]
    outermost = min(levels, default=len(inside))
    made = steps[-1]
    for i in range(len(steps) - 1, -1, -1):
        if i < len(steps) - 1:
            made = _with(steps[i], steps[i + 1], made)
        level = inside.index(i) + 1 if i in inside else 0
        if level > outermost:
            made = Pending(made, across.number, level - outermost)
        elif level and level == outermost:
            made = replace(across, inner=made)
    return made if outermost else replace(across, inner=made)


def level_of(name: str | None, own: list[frozenset[str]]) -> int | None:
    """The innermost part that binds a variable; `own`: what each of them binds. None: only the negated part does."""
    return max((level for level, names in enumerate(own) if name in names), default=None)


def way(formula: Formula, number: int) -> list[Formula]:
    """From the formula down to the operator that holds the negated part."""
    if number in candidates(formula.negated()):
        return [formula]
    for part in formula.children():
        found = way(part, number)
        if found:
            return [formula, *found]
    return []


def _inside_choices_of(steps: list[Formula]) -> list[int]:
    """Which of the steps of a way stand directly inside a choice: in a strategy, or as what must not happen."""
    found = []
    for i in range(1, len(steps)):
        above, part = steps[i - 1], steps[i]
        chosen = isinstance(above, cel.Strategy) and above.name != "STRICT"
        negated = not isinstance(part, Candidate) and any(part is veto for veto in above.negated())
        if chosen or negated or isinstance(above, Candidate):
            found.append(i)
    return found


def _names(across: Across) -> frozenset[str | None]:
    """The variables of its conditions."""
    return frozenset(part.variable for clause in across.clauses for side in clause for part in parts_of(side))


def _with(formula: Formula, part: Formula, made: Formula) -> Formula:
    """The formula with `made` in place of a direct part."""
    return formula.rebuilt(lambda own: made if own is part else own)


def candidates(vetoes: tuple[Formula, ...]) -> frozenset[int]:
    return frozenset(veto.number for veto in vetoes if isinstance(veto, Candidate))


def is_split(formula: Formula) -> bool:
    """Is some negated part compared with events that choices around it do not bind?"""
    return formula.contains((Pending,))


def holds(formula: Formula, number: int) -> bool:
    """Is the negated part of this number in it, or the formula itself?"""
    return (isinstance(formula, Candidate) and formula.number == number) or bool(way(formula, number))
