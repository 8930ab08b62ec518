"""What a query needs on a stream: how long a row can matter, and when a match is known.

A stream's state are the rows that a later match can mention or look at (runtime.stream.bucket). That is bounded where a
match is decided by the rows of its window before it is known:

- a window of the whole pattern, of time or of events, bounds everything: absences, strategies, consumption;
- without one, a pattern in which no run can wait after its first event spans so many rows at most (`A : B : C`), or as
  many as its runs live (`A : B:+`).

Beside an absence before the match, which looks at rows that were consumed or skipped, these are held as well, and
marked: no match begins there.

START asks where the stream of a key began. In a window that is one row of each key for ever, its first: a match of
START can only begin there, so while one can come, all rows since the beginning are in the window, and afterwards that
row is out of reach of anything, but nothing else is the first.

What looks further back is refused: a strategy that the pattern begins with, NXT(A ; B) ; C, chooses among all matches
since the stream began (behind an event of the match it begins there, in the window). Its choice can be a match that
began before the window, which then has no match; so the window says nothing of what must be known.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, replace
from typing import Any

from planner import cel
from planner.acel import Aggregate, Judged, Measured
from planner.automata.automaton import Automaton
from planner.cel import searching
from planner.emission import on_arrival
from planner.errors import PlanError
from planner.formula import Formula
from planner.layout import longest_path
from planner.physical import PhysicalPlan
from planner.query import Query
from planner.second_pass import COMPETING
from planner.sql import quote
from planner.terms import Window
from runtime import nodes
from runtime.marks import is_hidden, visible_name
from runtime.program import Program

ALLOW_SETTING = "cersql.stream.allowUnbounded"
MOST_SETTING = "cersql.stream.maxRowsPerKey"


@dataclass(frozen=True)
class Holding:
    """`reach`: how far after its first event a match can go (kind 'runs': while runs live); None: for ever. `late`: a
    match is known only when its window has passed; `by_end`: only when that of its last event has. `whole`: all rows
    are held. `spent`: what was skipped or consumed is looked at, too, and marked. `windows`: for so many of them rows
    are held: two where a match waits for one, and asks what was in the one before, or for those that it competes with.
    `first`: and the first row of each key, for ever.
    """

    reach: Window | None
    late: bool
    whole: bool
    windows: int
    spent: bool = False
    by_end: bool = False
    arrival: bool = False
    first: bool = False


def holding(plan: PhysicalPlan, allow_unbounded: bool = False) -> Holding:
    """How long a stream must hold rows. PlanError STREAM_UNBOUNDED where that is for ever and was not allowed."""
    query = plan.query
    # Beside a strategy AFTER MATCH SKIP takes matches as they complete.
    late = (query.skip is not None and query.strategy == "ALL") or query.formula.contains((cel.NotAfter,))
    drops = query.consume != "NONE" or query.skip is not None
    back = _looks_back(query) is not None
    reach = None if back else _reach(plan)
    if reach is None and not allow_unbounded:
        what, hint = _why_unbounded(plan)
        hint = f"{hint} Or let it fail where a key holds too many, SET {MOST_SETTING} = 10000, or allow it by SET "
        raise PlanError("STREAM_UNBOUNDED", what=what, hint=f"{hint}{ALLOW_SETTING} = true.")
    first = reach is not None and searching(query.formula) is not None
    whole = back or (first and drops)  # of one start a key, what it drops is found again
    absent = query.formula.contains((cel.NotBefore,))
    spent = drops and absent and not whole
    before = (late or query.timeouts or drops) and absent
    # What began after it and ended with it, or before, can win against a match; it must be known itself.
    strategy = query.strategy if plan.later is None else plan.later.strategy
    taken = query.skip is not None and query.strategy != "ALL"
    by_end = late and (strategy in COMPETING or taken)
    if by_end and taken and query.timeouts:
        hint = "Leave one of the three out."
        raise PlanError("TIMEOUTS", found="a skip by strategy over a '!' at the end, on a stream,", hint=hint)
    windows = 2 if before or by_end else 1
    return Holding(reach, late, whole, windows, spent, by_end, on_arrival(query, plan.later is not None), first)


def program_of(plan: PhysicalPlan, held: Holding) -> Program:
    """The program for a stream: where `held.spent`, its last guard is satisfied where a match can begin."""
    program = plan.program
    if not held.spent:
        return program
    assert program.machine is not None
    guards = (*program.guards, frozenset({"a match can begin here"}))
    timeouts = None if program.timeouts is None else replace(program.timeouts, guards=guards)
    machine = _beginning_at(program.machine, len(program.guards))
    return replace(program, guards=guards, machine=machine, timeouts=timeouts)


def _beginning_at(node: nodes.Node, guard: int) -> nodes.Node:
    """The tree with that guard on the first event of what no absence stands before."""
    if isinstance(node, nodes.NotBefore | nodes.NotBeforeEach):
        return nodes.BeginsAt(node, guard)
    return node.rebuilt(lambda part: _beginning_at(part, guard))


def _reach(plan: PhysicalPlan) -> Window | None:
    query = plan.query
    window = query.window or _whole_window(query.formula)
    if window is not None:
        return window
    if query.timeouts or not query.formula.is_flat():
        return None
    span = longest_path(plan.automaton)
    if span is not None:
        return Window("events", max(1, span))
    # Pairs of events are made before it is known how far runs go.
    plain = query.strategy == "ALL" and query.consume == "NONE" and query.skip is None and not plan.program.tables
    return Window("runs", 0) if plain and not _waits(plan.automaton) else None


def _whole_window(formula: Formula) -> Window | None:
    """The window of a pattern that is wholly inside one: `(A ; B WITHIN 5 MINUTES)`."""
    match formula:
        case cel.Within(_, window):
            return window
        case cel.As(inner) | cel.Filter(inner) | cel.FilterAny(inner) | cel.Project(inner) | cel.Compare(inner):
            return _whole_window(inner)
        case Aggregate(inner) | Judged(inner) | Measured(inner):
            return _whole_window(inner)
    return None


def _looks_back(query: Query) -> tuple[str, str] | None:
    """What in the query depends on more than the rows of a match's window and the first of all, and a way out."""
    found = tuple(cel.searches(query.formula))
    for node in found:
        if isinstance(node, cel.Strategy):
            chooses = f"{node.name}( ) at the beginning of the pattern chooses among all matches since the stream began"
            hint = f"Write SEMANTICS {node.name}, which chooses among the matches inside the window, or put the event "
            return f"{chooses}, also those that began before the window", f"{hint}before it: A ; {node.name}(…)."
    if not found:
        return None
    if query.window is None and _whole_window(query.formula) is None:
        return "START asks where the stream began", "Bound the pattern by WITHIN, for example WITHIN 1 HOUR."
    drops = query.consume != "NONE" or query.skip is not None
    if query.consume == "ANY" or (drops and not cel.begins_with_start(query.formula)):
        what = "AFTER MATCH SKIP" if query.skip is not None else f"CONSUME BY {query.consume}"
        return f"what {what} dropped, beside START, is known only since the stream began", f"Leave {what} out."
    return None


def _why_unbounded(plan: PhysicalPlan) -> tuple[str, str]:
    """What keeps rows for ever, and how to bound it."""
    back = _looks_back(plan.query)
    if back is not None:
        return back
    if plan.program.tables and not _waits(plan.automaton):
        pairs = f"any two rows can be asked about, since Spark computes {plan.tabulated[0].related} pair by pair"
        return pairs, "Bound the pattern by WITHIN, for example WITHIN 1 HOUR."
    waiting = _waiting(plan.automaton) if plan.query.formula.is_flat() else None
    where = f"after {waiting}, it" if waiting else "it"
    return f"{where} can wait for ever for what comes next", "Bound the pattern by WITHIN, for example WITHIN 1 HOUR."


def _waits(automaton: Automaton) -> bool:
    """Is there a state after the first event from which a run can skip events?"""
    started = {t.target for t in automaton.transitions if t.label}
    return any(not t.label and t.source in started for t in automaton.transitions)


def _waiting(automaton: Automaton) -> str | None:
    """The variables of an event after which a run can wait."""
    waits = {t.source for t in automaton.transitions if not t.label and t.source == t.target}
    for t in automaton.transitions:
        shown = sorted(v for v in t.label if not is_hidden(v))
        shown = shown or sorted(name for name in map(visible_name, t.label) if name.isidentifier())  # of types
        if t.label and t.target in waits and shown:
            return " and ".join(shown)
    return None


# ---------------------------------------------------------------- what the state means


def meaning(query: Query, arrival: bool) -> tuple[Any, ...]:
    """The query but for RETURN, HAVING and the names of variables: equal for queries that can share a state.

    `arrival`: matches are given as they arrive (planner.emission). It belongs to it: rows are read that would wait.
    """
    names: dict[str, str] = {}
    formula = _unnamed(query.formula, names)
    skip = None if query.skip is None else (query.skip.to, names.get(query.skip.mark or "", ""))
    return (
        formula, query.window, query.strategy, query.consume, skip, query.timeouts, query.partition_by, query.keys,
        query.order_by, query.types, *(["arrival"] if arrival else []), *_rows(query),
    )  # fmt: skip


def _rows(query: Query) -> tuple[Any, ...]:
    """What is asked of the sources' rows, and computed of them, if anything is."""
    where = tuple(source.where.text if source.where else None for source in query.sources)
    own = [{quote(column.name) for column in source.columns} for source in query.sources]
    texts = ((made.name, tuple(sql and sql.text for sql in made.by)) for made in query.made)
    computed = tuple((name, by) for name, by in texts
                     if any(sql not in known for sql, known in zip(by, own, strict=True) if sql))  # fmt: skip
    return tuple(part for part in (computed, where if any(where) else ()) if part)


def _unnamed(value: Any, names: dict[str, str]) -> Any:
    """A formula as nested tuples, its variables by their order of appearance."""

    def number(name: str | None) -> str | None:
        return None if name is None else names.setdefault(name, f"variable {len(names)}")

    match value:
        case cel.Event(name, marks):
            return "Event", name, tuple(number(mark) for mark in sorted(marks))
        case cel.Project(inner, keep):
            return "Project", _unnamed(inner, names), tuple(sorted(number(mark) or "" for mark in keep))
        case cel.FilterAny(inner, sides) | cel.Agree(inner, sides):
            own = tuple((number(mark), str(what)) for mark, what in sides)
            return value.__class__.__name__, _unnamed(inner, names), own, getattr(value, "type", None)
    if isinstance(value, tuple):
        return tuple(_unnamed(part, names) for part in value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        # What was `shown` to people names the variables, too.
        names_of = (field.name for field in dataclasses.fields(value) if field.name not in ("shown", "pairs"))
        fields = [(name, getattr(value, name)) for name in names_of]
        parts = (number(part) if field == "variable" else _unnamed(part, names) for field, part in fields)
        return value.__class__.__name__, *parts
    return value
