"""Automaton + window → runtime.program.Program: sets become numbers, states and labels flat arrays."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np

from planner import cel
from planner.automata.automaton import Automaton, Guard, distinct_guards, relabel, side_by_side
from planner.automata.compose import Composer, masks, renumbered
from planner.automata.positions import position_node
from planner.choice import Choice
from planner.query import Skip, Window
from planner.refusal import Refusal
from planner.rewrite.rules import Rewritten
from planner.terms import Predicate
from planner.watching import Watch, Watched, watching
from runtime import nodes
from runtime import program as rt


def lower(automaton: Automaton, window: Window | None, variables: tuple[str, ...]) -> rt.Program:
    """The program of an automaton whose labels name only `variables`. Numbers follow the order of construction."""
    guards = distinct_guards(automaton.transitions)
    bit = {guard: i for i, guard in enumerate(guards)}
    labels = tuple(dict.fromkeys(t.label for t in automaton.transitions if t.label))
    number = {label: i for i, label in enumerate(labels)}
    rows = [
        (t.source, bit[t.guard], number[t.label], t.target) if t.label else (t.source, rt.ALWAYS, rt.SKIP, t.target)
        for t in automaton.transitions
    ]
    return rt.Program(
        n_states=automaton.n_states,
        transitions=np.array(rows, np.int64).reshape(len(rows), 4),
        initial=automaton.initial,
        final=automaton.final,
        guards=tuple(_names(guard) for guard in guards),
        labels=labels,
        variables=variables,
        window=lower_window(window),
    )


class Lowered(NamedTuple):
    """A program, what each bit of its symbol stands for, its flat automata, side by side, and for each term that it
    compares the SQL and the type. `stepper`: what runs it; `refusals`: what was asked before, by name, and why it does
    not; `rewritten`: what the program was made from."""

    program: rt.Program
    guards: tuple[Guard, ...]
    automaton: Automaton
    terms: tuple[tuple[str, str], ...] = ()
    stepper: str = ""
    refusals: tuple[tuple[str, Refusal], ...] = ()
    rewritten: Rewritten | None = None


def lower_composed(choice: Choice, variables: tuple[str, ...], watched: Watched | None = None) -> Lowered:
    """The program of a formula whose automaton is composed where it runs. Event guards come before those of filters."""
    composer = Composer()
    tree = position_node(choice.formula, composer) if choice.next_match else composer.node(choice.formula)
    if choice.first is not None:
        tree = nodes.First(tree, strategy=choice.first)
    if choice.clause != "ALL":
        tree = nodes.Greatest(choice.clause, tree, clause=True)
    automata = tuple(relabel(part, frozenset(variables)) for part in composer.automata)
    watch = None if watched is None else watching(watched, composer)
    program = program_of(
        composer,
        tree,
        variables,
        projects=choice.formula.contains((cel.Project,)),
        window=lower_window(choice.window),
        family=choice.family,
        consume=choice.consume != "NONE",
        skip=lower_skip(choice),
        choose=choice.late,
        ends_late=choice.ends_late,
    )
    if watch is not None:
        program = _with_timeouts(program, watch, composer)
    return Lowered(program, (*composer.guards, *composer.filters), side_by_side(automata), tuple(composer.terms))


def program_of(
    composer: Composer, tree: nodes.Node, variables: tuple[str, ...], projects: bool, **more: Any
) -> rt.Program:
    """The program of a tree, once the composer has met all that any tree of the query asks for."""
    guards, filters = tuple(composer.guards), tuple(composer.filters)
    visible = composer.mask(frozenset(variables))
    # Where projection can leave an event without a variable, matches also differ by their first and last events.
    keep = visible | (nodes.BEGIN | nodes.END if projects else 0)
    kept = sorted({mask & keep for mask in masks(tree)} | {0})
    names = {name: 1 << (nodes.FIRST_VARIABLE + i) for name, i in composer.variables.items() if name in variables}
    return rt.Program(
        n_states=0,
        transitions=np.zeros((0, 4), np.int64),
        initial=(),
        final=(),
        guards=tuple(_names(guard) for guard in (*guards, *filters)),
        labels=tuple(frozenset(name for name, bit in names.items() if mask & bit) for mask in kept),
        variables=variables,
        machine=renumbered(tree, len(guards)),
        masks=tuple(kept),
        keep=keep,
        inner_windows=tuple(w for w in map(lower_window, composer.windows) if w is not None),
        n_event_guards=len(guards),
        terms=tuple(sql for sql, _ in composer.terms),
        numbers=tuple(sorted(composer.numbers)),
        tables=tuple((number, *terms) for number, terms in composer.tables.items()),
        **more,
    )


# ---------------------------------------------------------------- WITH TIMEOUTS


def with_timeouts(made: Lowered, watched: Watched) -> Lowered:
    """A flat program beside the composed one that watches it; they read the same symbols."""
    composer = Composer(guards={guard: i for i, guard in enumerate(made.guards)})
    program = _with_timeouts(made.program, watching(watched, composer), composer)
    guards = (*composer.guards, *composer.filters)
    return Lowered(replace(program, guards=tuple(map(_names, guards))), guards, made.automaton)


def _with_timeouts(program: rt.Program, watch: Watch, composer: Composer) -> rt.Program:
    made = program_of(
        composer,
        watch.tree,
        program.variables,
        projects=watch.projects,
        window=lower_window(watch.window),
        family=watch.family,
        ends_late=watch.ends_late,
    )
    more = tuple(label for label in dict.fromkeys(made.labels) if label not in program.labels)
    return replace(program, labels=(*program.labels, *more), timeouts=made)


def lower_skip(choice: Choice) -> rt.Skip | None:
    return None if choice.skip is None else rt_skip(choice.skip, choice.by)


def rt_skip(skip: Skip, by: str) -> rt.Skip:
    return rt.Skip(cast(rt.SkipTo, skip.to), skip.mark, cast(rt.Strategy, by))


def lower_window(window: Window | None) -> rt.Window | None:
    """n EVENTS is end − start ≤ n − 1 positions; any other bound stays what it is (see tecs.inside)."""
    if window is None:
        return None
    if window.kind == "events":
        return rt.Window("events", int(window.size) - 1)
    return rt.Window("time", window.size, window.strict)


def integral(window: Window) -> Window:
    """The same bound for a clock of whole numbers: < 1.5 and ≤ 1.5 are ≤ 1, < 2 is ≤ 1."""
    if window.kind == "events":
        return window
    size = math.ceil(window.size) - 1 if window.strict else math.floor(window.size)
    return Window("time", size)


def _names(guard: Guard) -> frozenset[str]:
    return frozenset(part.sql if isinstance(part, Predicate) else part for part in guard)
