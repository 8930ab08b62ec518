"""Window, strategy, consumption and skipping, put around the formula: where each of them takes effect.

A strategy under the window chooses among the matches inside it, so the window goes inside the strategy and needs
a clock; otherwise the engine cuts by the start that every node knows. What becomes known only after its window has
passed (a trailing absence) is chosen from at the end, match by match.
"""

from __future__ import annotations

from dataclasses import dataclass

from planner import cel
from planner.acel import Measured
from planner.across import Across
from planner.automata.simple import gathered
from planner.cel import searching
from planner.errors import PlanError
from planner.formula import Formula
from planner.query import Skip, Window

COMPARES = (cel.Compare, cel.Agree, Across)
AROUND = (cel.NotBefore, cel.NotAfter)
CLOCKS = (cel.Within, *AROUND)  # what remembers when a window began
MAX_NESTED = 8  # strategies


@dataclass(frozen=True)
class Choice:
    """What a composed program is made from. `window`: what the engine itself cuts by. `first`: one run for each start
    and end, the greatest by that strategy.

    `clause`: the strategy of the query (ALL: none). `late`: a strategy (ALL: none) that chooses at the end of the
    partition. `ends_late`: some matches become known only after their last event. `next_match`: SKIP TILL NEXT MATCH,
    which finds matches in another way and leaves nothing to choose. `by`: the strategy by which AFTER MATCH SKIP takes
    matches as they complete (ALL: it waits for the greatest end).
    """

    formula: Formula
    window: Window | None
    first: str | None = None
    clause: str = "ALL"
    late: str = "ALL"
    ends_late: bool = False
    consume: str = "NONE"
    skip: Skip | None = None
    next_match: bool = False
    by: str = "ALL"

    @property
    def family(self) -> str:
        """The engine (see runtime.program.Program)."""
        if self.consume == "ANY":
            return "any"
        if self.compares or searches_each_window(self.formula):
            return "bound"
        return "timed" if self.timed else "composed"

    @property
    def compares(self) -> bool:
        """Are events compared with each other?"""
        return compares(self.formula)

    @property
    def timed(self) -> bool:
        """Does it need clocks, or what is run with them (runtime.steppers.clocks)?"""
        chooses = self.first is not None or self.consume != "NONE" or self.late != "ALL"
        return chooses or self.formula.contains(CLOCKS)


def compares(formula: Formula) -> bool:
    """Do runs hold values of events? Counting them takes none."""
    return formula.contains(COMPARES) or any(
        isinstance(part, Measured) and any(one.sql is not None for one in part.registers) for part in formula.walk()
    )


def choice(formula: Formula, window: Window | None, strategy: str, consume: str, skip: Skip | None) -> Choice:
    """Window, strategy, consumption and skipping around a rewritten formula (semantics, "Selection strategies" ff.)."""
    if window is None and strategy == "ALL" and skip is None:
        match formula:
            case cel.Within(inner, own):
                formula, window = inner, own
    ends_late = formula.contains((cel.NotAfter,))
    if strategy == "STRICT":
        formula, strategy = cel.Strategy("STRICT", formula), "ALL"
    if strategy == "NEXT_MATCH":
        if formula.contains((cel.All,)):
            raise TypeError(f"not a formula for skip till next match: {formula!r}")
        held = None if ends_late else window
        by = skip_by(strategy) if skip is not None else "ALL"
        if consumes_all(skip) and not ends_late:
            consume = "PARTITION"
        return Choice(gathered(formula), held, ends_late=ends_late, consume=consume, skip=skip, next_match=True, by=by)
    if ends_late and skip is not None:
        return Choice(formula, None, ends_late=True, skip=skip, by=strategy)
    if ends_late:  # NotAfter holds the window itself
        return Choice(formula, None, late=strategy, ends_late=True, consume=consume)
    if skip is not None and strategy != "ALL" and consumes_all(skip):
        return Choice(_within(formula, window), None, clause=strategy, consume="PARTITION", skip=skip, by=strategy)
    if skip is not None:
        first = "NXT" if strategy == "ALL" else strategy
        return Choice(_within(formula, window), None, first=first, skip=skip, by=strategy)
    if strategy != "ALL":
        return Choice(_within(formula, window), None, clause=strategy, consume=consume)
    return Choice(formula, window, consume=consume)


def skip_by(strategy: str) -> str:
    """By what AFTER MATCH SKIP takes matches beside a strategy. Skip till next match says how runs go on, and leaves
    the earliest of those that end together."""
    return "NXT" if strategy == "NEXT_MATCH" else strategy


def consumes_all(skip: Skip | None) -> bool:
    """Does a match that is taken as it completes drop all starts up to its end, as CONSUME BY PARTITION does?"""
    return skip is not None and skip.to == "PAST LAST ROW"


def check_nesting(formula: Formula) -> None:
    """PlanError NESTING_LIMIT where strategies lie in strategies too deep: each holds the runs of those inside twice,
    as its own and as their rivals."""
    found = _nested(formula)
    if found > MAX_NESTED:
        hint = "Match the inner part in a pattern view, and choose among its rows."
        raise PlanError("NESTING_LIMIT", found=found, limit=MAX_NESTED, hint=hint)


def _nested(formula: Formula) -> int:
    """How many strategies lie in each other."""
    inside = max(map(_nested, formula.children()), default=0)
    return inside + int(isinstance(formula, cel.Strategy) and formula.name != "STRICT")


def _within(formula: Formula, window: Window | None) -> Formula:
    return formula if window is None else cel.Within(formula, window)


def searches_each_window(formula: Formula) -> bool:
    """Is there an absence before the match that asks where its window begins (planner.automata.compose)?"""
    return any(isinstance(part, cel.NotBefore) and any(map(searching, part.vetoes)) for part in formula.walk())
