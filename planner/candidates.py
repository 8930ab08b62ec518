"""Which stepper runs a program: the candidates in one list, the fastest first.

Each is asked in turn, and gives a program or a Refusal. The first program is the one that runs. What refused before it
is kept with it, so that EXPLAIN tells every reason, and no second place decides the same.

    (A ; B WHERE a.v < b.v) UNLESS (C ; C)
      flat table: refused, since it has an operator that is more than a sequence, a loop, an OR or a filter
      parallel runs: refused, since it is no ALL of 2 to 8 single events
      deferred runs: refused, since what must not happen is more than an event
      runs in order: refused, since what must not happen is more than an event
      two stacks: refused, since events are compared, so that runs hold values
      registers: refused, since what must not happen is more than an event
      composed table: refused, since events are compared, and a state would hold their values
      general engine: runs it
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from planner import cel
from planner.acel import Aggregate, Judged
from planner.across import Across
from planner.apart import Demands, guards_exclude
from planner.automata.automaton import distinct_guards, relabel, side_by_side
from planner.automata.cea import automaton_of
from planner.automata.compose import Composer
from planner.automata.counted import counted
from planner.automata.deferred import deferred_of
from planner.automata.pcea import masks_of, parallel, pcea_of, picture
from planner.automata.position_parts import NoPositions
from planner.automata.positions import branches, positions_of
from planner.automata.ranged import ranged_of
from planner.automata.register_runs import RunBuilder
from planner.automata.register_twins import with_twins
from planner.automata.registers import Runs, registers_of, runs_of
from planner.automata.simple import (
    Surrounded,
    apart_by_number,
    excludes_several,
    gathered,
    is_simple,
    strictly,
    surrounded,
    watched,
)
from planner.automata.two_stacks import two_stacks_of
from planner.choice import AROUND, Choice, choice, searches_each_window
from planner.errors import PlanError
from planner.formula import Formula
from planner.lower import Lowered, lower, lower_composed, lower_skip, lower_window, program_of, with_timeouts
from planner.query import Skip, Window
from planner.refusal import Refusal
from planner.rewrite.across import is_split
from planner.rewrite.rules import Rewritten, rewritten
from planner.watching import Watched, is_watched
from runtime import nodes
from runtime.chain_cea import EACH, EQUAL_ONES, ONE, RANGES, Registers
from runtime.nodes import Node
from runtime.position_automaton import PositionAutomaton
from runtime.program import PICKING, Family, Program


@dataclass(frozen=True)
class Asked:
    """What a program has to do. `written`: the formula before any rule; `variables`: those that labels hold, with
    `timeouts` in their order of appearance; `timeouts`: it also tells of starts that none of the matches began at;
    `demands`: what is known of types, by which they exclude each other; `sums`: matches are summed up, not listed."""

    written: Formula
    window: Window | None
    variables: tuple[str, ...]
    strategy: str = "ALL"
    consume: str = "NONE"
    skip: Skip | None = None
    timeouts: bool = False
    demands: Demands = field(default_factory=dict)
    sums: bool = False

    @cached_property
    def rewritten(self) -> Rewritten:
        return rewritten(self.written, as_written=self.strategy == "NEXT_MATCH")

    @property
    def formula(self) -> Formula:
        return self.rewritten.formula

    @cached_property
    def choice(self) -> Choice:
        """Window, strategy, consumption and skipping around the formula."""
        return choice(self.formula, self.window, self.strategy, self.consume, self.skip)

    @cached_property
    def watched(self) -> Watched | None:
        """What is watched beside it. PlanError TIMEOUTS where that is not built."""
        if not self.timeouts:
            return None
        if self.formula.contains((Across,)) and not is_watched(self.formula):
            hint = "Leave WITH TIMEOUTS out, or write only sequences, loops and OR around it."
            raise PlanError("TIMEOUTS", found="comparisons with what must not happen, in such a pattern,", hint=hint)
        return Watched(self.formula, self.window, self.strategy == "NEXT_MATCH")

    @cached_property
    def in_order(self) -> InOrder | Refusal:
        """Its runs, where they hold values."""
        return in_order(self)


Candidate = Callable[[Asked], Lowered | Refusal]
TIMEOUTS = Refusal("WITH TIMEOUTS looks on, at every run")


def flat_table(asked: Asked) -> Lowered | Refusal:
    """One automaton as large as the formula, built here and determinized where it runs."""
    if asked.strategy != "ALL" or asked.consume != "NONE" or asked.skip is not None:
        return Refusal("matches compete, are consumed or skipped")
    found = None if asked.watched is not None or asked.sums else counted(asked.formula, asked.variables)
    formula = asked.formula if found is None else found.formula
    if not formula.is_flat():
        return Refusal("an operator that is more than a sequence, a loop, an OR or a filter")
    automaton = automaton_of(formula, asked.variables)
    program = lower(automaton, asked.window, asked.variables)
    if found is not None:
        program = replace(program, counted=(found.variable, found.low, found.high))
    made = Lowered(program, distinct_guards(automaton.transitions), automaton)
    return made if asked.watched is None else with_timeouts(made, asked.watched)


def parallel_runs(asked: Asked) -> Lowered | Refusal:
    """A hierarchical ALL, as a PCEA."""
    chosen, variables = asked.choice, asked.variables
    if asked.watched is not None:
        return TIMEOUTS
    if not chosen.compares:
        return Refusal("it is no ALL of events that are compared")
    if chosen.family != "bound" or chosen.timed or chosen.next_match or chosen.clause != "ALL":
        return Refusal("matches compete, are consumed or have windows inside")
    pcea = pcea_of(chosen.formula)
    if isinstance(pcea, Refusal):
        return pcea
    composer = Composer()
    machine, own = parallel(pcea, composer), masks_of(pcea, composer)
    tree = nodes.Flat(np.zeros((0, 4), np.int64), own[1:], (), ())
    program = program_of(composer, tree, variables, projects=False, window=lower_window(chosen.window), family="pcea")
    if any(not own[1 << i] & program.keep for i in range(len(pcea.atoms))):
        return Refusal("an event without a variable")
    numbers = {mask: i for i, mask in enumerate(program.masks)}
    machine = replace(machine, label_of=np.array([numbers[mask & program.keep] for mask in own], np.int64))
    automaton = relabel(picture(pcea), frozenset(variables))
    return Lowered(replace(program, machine=machine), tuple(composer.guards), automaton, tuple(composer.terms))


def is_watched_by_runs(asked: Asked) -> bool:
    """WITH TIMEOUTS: do runs that hold values tell how far each start comes? Where a run is all that it has taken."""
    chosen = asked.choice
    chooses = chosen.next_match or chosen.ends_late or chosen.clause != "ALL" or chosen.skip is not None
    if chooses or chosen.consume != "NONE" or not is_simple(asked.formula):
        return False
    return not asked.formula.contains((Across, *AROUND, Aggregate, Judged))


class InOrder(NamedTuple):
    """A pattern whose runs hold values: its program, but for the machine, the places and edges of its runs, and what
    registers do with them: `plain`, and `machine`, where runs wait once for each kind of edge. `watch`: with runs for
    each start, which show how far it comes (WITH TIMEOUTS)."""

    program: Program
    composer: Composer
    made: RunBuilder
    plain: Registers
    machine: Registers
    watch: Registers | None = None

    @property
    def looks(self) -> int:
        """At how many of the runs that wait an event looks at the most (runtime.chain_cea)."""
        return int(self.machine.looks.max(initial=ONE))

    def lowered(self, machine: Node, family: Family) -> Lowered:
        """The program with this machine."""
        composer = self.composer
        guards = (*composer.guards, *composer.filters)
        automata = side_by_side(tuple(relabel(part, frozenset(self.program.variables)) for part in composer.automata))
        program = replace(self.program, machine=machine, family=family)
        if self.watch is not None:
            program = replace(program, timeouts=replace(self.program, machine=self.watch, family="registers"))
        return Lowered(program, guards, automata, tuple(composer.terms))


def in_order(asked: Asked) -> InOrder | Refusal:
    """Runs that hold a few values each, or that an absence before or after the match concerns."""
    chosen = asked.choice
    if asked.watched is not None and not is_watched_by_runs(asked):
        return TIMEOUTS
    formula, window = chosen.formula, chosen.window
    skips = chosen.skip is not None and chosen.by == "ALL"  # other skips are done to what the engine gives
    if chosen.clause in PICKING or skips:
        match formula:
            case cel.Within(inner, own):
                formula, window = inner, own
    if chosen.family not in ("bound", "timed") or chosen.late != "ALL" or chosen.clause not in ("ALL", *PICKING):
        return Refusal("matches compete by MAX, or are consumed in all keys")
    if chosen.first is not None and not skips:
        return Refusal(
            f"of the matches of each start, those that {chosen.by} chooses at their end are taken one by one"
        )
    if isinstance(formula, cel.Strategy) and formula.name == "STRICT":
        formula = strictly(formula.inner) or formula
    parts = surrounded(gathered(formula))
    if parts is None or parts.formula.contains(AROUND) or (window or parts.window) != (parts.window or window):
        return Refusal("what must not happen before or after a part, or in other windows")
    if (parts.before or parts.after) and (chosen.consume != "NONE" or chosen.skip is not None):
        return Refusal("what is consumed or skipped beside an absence before or after the match")
    parts = parts._replace(formula=apart_by_number(parts.formula))
    if excludes_several(parts.formula) and not chosen.compares:
        return Refusal("what must not happen meanwhile is more than an event, and no events are compared")
    if not (parts.before or parts.after or skips or asked.sums):
        bare, meanwhile = watched(parts.formula)
        parts = parts._replace(formula=bare, meanwhile=meanwhile)
    if is_split(chosen.formula):
        return Refusal("what must not happen is compared with events outside of a strategy or negated part around it")
    if not is_simple(parts.formula, in_runs=not chosen.next_match):
        return Refusal("an operator that is more than a sequence, a loop or an OR")

    def made(branching: bool) -> InOrder | Refusal:
        return _in_order(asked, parts, window or parts.window, skips, branching)

    found = made(branching=False)
    if not chosen.compares and not chosen.formula.contains(AROUND) and RANGES < _looks(found) <= EACH:
        return Refusal("each start that waits in a window inside the pattern would be looked at")
    if _looks(found) < EACH or chosen.next_match or not branches(parts.formula):
        return found
    return min(found, made(branching=True), key=_looks)


def _looks(made: InOrder | Refusal) -> int:
    """A refusal is worse than all."""
    return EACH + 1 if isinstance(made, Refusal) else made.looks


def _in_order(
    asked: Asked, parts: Surrounded, window: Window | None, skips: bool, branching: bool
) -> InOrder | Refusal:
    chosen, variables = asked.choice, asked.variables
    composer, family = Composer(), "skipping" if skips else "registers"
    try:
        positions = positions_of(parts, composer, branching)
    except NoPositions as why:
        return Refusal(str(why))
    program = program_of(
        composer, positions, variables, projects=False, window=lower_window(window),
        family=family, consume=chosen.consume != "NONE", pick=chosen.clause, skip=lower_skip(chosen),
        ends_late=chosen.ends_late,
    )  # fmt: skip
    assert isinstance(program.machine, PositionAutomaton)
    machine = replace(program.machine, apart=_apart(composer, asked.demands))
    labels = {mask: i for i, mask in enumerate(program.masks)}
    runs = Runs(chosen.next_match, skips)
    made = runs_of(machine, program.keep, runs, len(composer.terms))
    if isinstance(made, Refusal):
        return made
    plain, twins = registers_of(made, labels, runs), with_twins(made, runs.apart)
    found = InOrder(program, composer, made, plain, plain if twins is made else registers_of(twins, labels, runs))
    if asked.watched is None:
        return found
    runs = Runs(apart=True, shows=True)
    shown = runs_of(machine, program.keep, runs, len(composer.terms))
    return shown if isinstance(shown, Refusal) else found._replace(watch=registers_of(shown, labels, runs))


def _apart(composer: Composer, demands: Demands) -> frozenset[tuple[int, int]]:
    """The pairs of guards that no event satisfies both, by their numbers."""
    guards = list(composer.guards.items())
    return frozenset((i, k) for a, i in guards for b, k in guards if guards_exclude(demands, a, b))


NOTHING = Refusal("nothing to hold: no events are compared")


def _holds(asked: Asked) -> bool:
    """Do runs hold anything, in a pattern that registers can run?"""
    chosen = asked.choice
    return chosen.compares or (chosen.clause == "ALL" and chosen.formula.contains((*AROUND, cel.Within)))


def deferred_runs(asked: Asked) -> Lowered | Refusal:
    """Runs whose values are asked for later on, and that catch up then."""
    if not _holds(asked):
        return NOTHING
    found = asked.in_order
    if isinstance(found, Refusal):
        return found
    program = found.program
    if program.consume or program.pick != "ALL" or program.skip is not None:
        return Refusal("matches compete, are consumed or skipped")
    if found.plain.meanwhile:
        return Refusal("what must not happen meanwhile is several events")
    if found.looks not in (EACH, EQUAL_ONES):
        return Refusal("registers find by an index what waits")
    machine = deferred_of(found.made, found.plain, len(program.labels))
    return machine if isinstance(machine, Refusal) else found.lowered(machine, "deferred")


def ranged_runs(asked: Asked) -> Lowered | Refusal:
    """Runs that hold one value at a time, and go on with it many at once."""
    if not _holds(asked):
        return NOTHING
    found = asked.in_order
    if isinstance(found, Refusal):
        return found
    program = found.program
    if program.consume or program.pick != "ALL" or program.skip is not None:
        return Refusal("matches compete, are consumed or skipped")
    if found.plain.meanwhile:
        return Refusal("what must not happen meanwhile is several events")
    if found.looks not in (EACH, EQUAL_ONES):
        return Refusal("registers find by an index what waits")
    machine = ranged_of(found.made, found.plain, len(program.labels))
    return machine if isinstance(machine, Refusal) else found.lowered(machine, "ranged")


def two_stacks(asked: Asked) -> Lowered | Refusal:
    """The greatest match of each end, or the matches of each start after which something has not happened, in a window
    that slides over runs which hold nothing."""
    chosen = asked.choice
    if chosen.compares:
        return Refusal("events are compared, so that runs hold values")
    if chosen.clause not in PICKING and not chosen.ends_late:
        return Refusal("no match competes by NXT or LAST, or waits for its window to close")
    if chosen.next_match:
        return Refusal("a run takes the first event that it can, and is then not there any more")
    found = asked.in_order
    if isinstance(found, Refusal):
        return found
    program = found.program
    if program.window is None or program.consume or program.skip is not None or program.inner_windows:
        return Refusal("matches are consumed or skipped, or have windows inside, or none around them")
    if chosen.ends_late and asked.sums:
        return Refusal("matches that wait are summed up, which is done start by start")
    labels = {mask: i for i, mask in enumerate(program.masks)}
    machine = two_stacks_of(found.made, labels, later=program.pick == "LAST")
    if isinstance(machine, Refusal):
        return machine
    return found._replace(program=replace(program, pick="ALL")).lowered(machine, "two stacks")


def registers(asked: Asked) -> Lowered | Refusal:
    """Runs that hold a few values each, or that an absence before or after the match concerns."""
    if not _holds(asked):
        return NOTHING
    found = asked.in_order
    return found if isinstance(found, Refusal) else found.lowered(found.machine, found.program.family)


def composed_table(asked: Asked) -> Lowered | Refusal:
    """Flat automata joined by operators, whose states are made where the data leads."""
    if asked.choice.compares:
        return Refusal("events are compared, so that states would hold values")
    if searches_each_window(asked.choice.formula):
        return Refusal("what must not happen before the match asks where its search begins")
    return lower_composed(asked.choice, asked.variables, asked.watched)


def general_engine(asked: Asked) -> Lowered | Refusal:
    """Any program, event by event."""
    return lower_composed(asked.choice, asked.variables, asked.watched)


CANDIDATES: tuple[tuple[str, Candidate], ...] = (
    ("flat table", flat_table),
    ("parallel runs", parallel_runs),
    ("deferred runs", deferred_runs),
    ("runs in order", ranged_runs),
    ("two stacks", two_stacks),
    ("registers", registers),
    ("composed table", composed_table),
    ("general engine", general_engine),
)


def first_that_runs(asked: Asked) -> Lowered:
    """The program of the first candidate that has one, with what the others said."""
    refusals: list[tuple[str, Refusal]] = []
    for name, candidate in CANDIDATES:
        made = candidate(asked)
        if isinstance(made, Lowered):
            return made._replace(stepper=name, refusals=tuple(refusals), rewritten=asked.rewritten)
        refusals.append((name, made))
    raise AssertionError("the last candidate runs any program")
