"""Why a query runs as it does, and what that costs, as EXPLAIN says it: a line for each decision."""

from __future__ import annotations

from dataclasses import replace

from planner import cel
from planner.acel import Aggregate, Judged, Measured
from planner.formula import Formula
from planner.layout import sees_gaps
from planner.lower import Lowered
from planner.query import Query
from planner.second_pass import COMPETING
from planner.sieve import NO_SIEVE, Sieve
from planner.tabulated import Tabulated
from runtime.chain_cea import EACH, EQUAL_ONES, LATE, NOBODY, ONE, RANGE, RANGES, SEARCHED, Registers
from runtime.marks import is_round
from runtime.program import Later, Program
from runtime.two_stacks import TwoStacks

PASSED_OVER = "by bounds on sums in the compact set those that fail are passed over, at a cost by those that hold"


def why_all_listed(query: Query, later: Later | None, sifts: Sieve) -> tuple[str, ...]:
    """Conditions that only a whole match answers, `SUM(b.x) > 10`, act on matches that are listed: on all of them, or
    on those that a sieve lets pass."""
    if later is not None:
        named = {
            query.strategy: query.strategy in COMPETING or later.strict,
            f"CONSUME BY {query.consume}": query.consume != "NONE",
            "AFTER MATCH SKIP": query.skip is not None,
            "WITH TIMEOUTS": query.timeouts,
        }
        chooses = ", ".join(name for name, is_asked in named.items() if is_asked)
        which = _which(sifts)
        why = f"{which} listed, since WHERE asks about them as a whole; {chooses}: in a second pass, slow"
        return (why, *why_all_listed(replace(query, on_match=()), None, NO_SIEVE))
    having = query.having if query.groups is None else ()
    asks = [clause for clause, on in (("WHERE", query.on_match), ("HAVING", having)) if on]
    if not asks:
        return ()
    verb = "asks" if len(asks) == 1 else "ask"
    why = f"{' and '.join(asks)} {verb} about"
    if sifts.is_sharp:
        return (f"{why} matches as a whole: {PASSED_OVER}",)
    return (f"{_which(sifts)} listed and then filtered, since {why} them as a whole",)


def _which(sifts: Sieve) -> str:
    return "matches within bounds on sums are" if sifts.conditions else "all matches are"


def why_created(formula: Formula, program: Program, sifts: Sieve) -> tuple[str, ...]:
    """What aggregates inside the pattern cost, and numbers of events."""
    found = []
    if program.counted is not None:
        variable, low, high = program.counted
        number = f"{low} and more" if high is None else f"{low} to {high}"
        found.append(f"{number} events of {variable}: told where matches are listed, so that no other is listed")
    for part in formula.walk():
        match part:
            case Aggregate(_, _, marks):
                names = ", ".join(sorted(mark for mark in marks if not is_round(mark)))
                found.append(f"{names} of AGG: computed of each match that is listed, at a cost by its events")
            case Judged(_, _, condition):
                why = f"{condition} asks about a part as a whole"
                if sifts.is_sharp:
                    found.append(f"{why}: {PASSED_OVER}")
                else:
                    found.append(f"{_which(sifts)} listed and then filtered, since {why}")
            case Measured(_, sides, condition) if program.counted is None:
                few = all(side.holds_few for side in sides)
                cost = "few values, so that matches that fail are never listed" if few else "as many values as occur"
                found.append(f"{condition}: runs hold registers, of {cost}")
    return tuple(dict.fromkeys(found))


def why_grouped(query: Query) -> tuple[str, ...]:
    """How groups of matches are summed up."""
    if query.groups is None:
        return ()
    if query.groups.listed:
        return (f"groups are made of matches that are listed, since {query.groups.listed}",)
    cost = (
        "once a node"
        if query.window is None or query.groups.bounds
        else "once a node inside the window of each event that ends matches"
    )
    return (f"groups are summed up in the compact set, {cost}: no match is listed",)


def why_tabulated(asked: tuple[Tabulated, ...], query: Query) -> tuple[str, ...]:
    """Which pairs of rows Spark looks at."""
    which = " ".join(
        ("of one key",) * bool(query.partition_by or query.keys) + ("within the window",) * in_window(query)
    )
    pairs = f"the pairs of rows {which}" if which else "all pairs of rows, since there is no key and no window of time"
    return tuple(
        f"Spark tabulates {related} over {pairs}, before runs look it up: a cost by the pairs that meet"
        for related, _ in asked
    )


def in_window(query: Query) -> bool:
    """Can only rows meet that are no farther apart than a window of whole time units?"""
    window, clock = query.window, query.column(query.order_by[0].column).type
    if window is None or window.kind != "time" or clock in ("float", "double"):
        return False
    return isinstance(window.size, int) and window.size < 1 << 61


def why_compared(made: Lowered, asked: tuple[Tabulated, ...]) -> tuple[str, ...]:
    """How events are compared, and what that costs."""
    if not made.terms:
        if made.program.family == "timed" and made.program.inner_windows and made.program.skip is None:
            return ("each start in a window has runs of its own: a cost by the starts that wait in the window",)
        if isinstance(made.program.machine, TwoStacks):
            if made.program.machine.late != NOBODY:
                return ("matches wait in two stacks for what must not happen: a constant cost per event",)
            return ("the greatest match of each end is found by two stacks: a constant cost per event",)
        if made.program.family != "registers":
            return ()
        what = " and ".join(_kept(made.program))
        return (f"{what} is kept in registers, {_cost(made.program.machine)}",)
    codes = {term.sql for related, _ in asked for term in related.terms}
    names = [sql for sql, _ in made.terms if sql not in codes]
    names += dict.fromkeys(str(related) for related, _ in asked)
    shown = ", ".join(names[:3]) + (", …" if len(names) > 3 else "")
    if made.program.family == "pcea":
        return (f"runs for each event of ALL go side by side, joined by {shown}: a logarithmic cost per event",)
    watch = made.program.timeouts
    if watch is not None and watch.family == "registers":
        cost = "a cost by the starts that wait in the window"
        return (f"events are compared by {shown} in registers, of each start: {cost}",)
    if made.program.family == "deferred":
        return (f"events are compared by {shown} in runs that catch up: a logarithmic cost per event",)
    if made.program.family == "ranged":
        return (f"events are compared by {shown} in runs in the order of a value: a cost by a power of the logarithm",)
    if made.program.family in ("registers", "skipping"):
        picks = f"; where a match ends, {made.program.pick} looks at all that its window holds"
        picked = picks if made.program.pick != "ALL" else ""
        return (f"events are compared by {shown} in registers, {_cost(made.program.machine)}{picked}",)
    cost = "slow, at a cost by the values that wait in the window"
    return (f"events are compared by {shown} in the general engine; {cost}",)


def _kept(program: Program) -> list[str]:
    """What runs hold that compare no events."""
    machine = program.machine
    assert isinstance(machine, Registers)
    windows = ["where windows inside the pattern begin"] if program.inner_windows else []
    absent = len(machine.veto_guard) or len(machine.early.guard) or not windows
    return [*windows, *["what must not happen"] * bool(absent)]


def _cost(machine: object) -> str:
    """What an event costs where runs wait with a value."""
    assert isinstance(machine, Registers)
    if machine.special[LATE] != NOBODY:
        return "a cost by the starts that wait for their windows to close"
    return LOOKS[int(machine.looks.max(initial=ONE))]


LOOKS = {
    ONE: "found by an index: a constant cost per event",
    RANGE: "found by an ordered index: a logarithmic cost per event",
    RANGES: "found by an index in order of two values: a cost by a power of the logarithm",
    EQUAL_ONES: "found by an index: a cost by the values that wait beside an equal one in the window",
    SEARCHED: "found by a search: at the most a cost by what happened in the window",
    EACH: "a cost by the values that wait in the window",
}


def sees_other_keys(query: Query) -> str | None:
    """What in the query could see events with other values of an attribute on which its matches agree."""
    if query.consume != "NONE" or query.skip is not None:
        return "consumption and skipping speak of all starts"
    if sees_gaps(query):
        return "positions in the whole stream matter"
    if query.formula.contains((cel.Strategy,)):
        return "a strategy inside the pattern chooses among all events"
    return None
