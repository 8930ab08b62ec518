"""Automaton + window → runtime.program.Program: sets become numbers, states and labels flat arrays."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from planner import cel
from planner.automaton import Automaton, Guard, distinct_guards, relabel, side_by_side
from planner.cel import Predicate
from planner.choice import Choice, contains
from planner.compose import Composer, masks, renumbered
from planner.greedy import greedy_node
from planner.query import Window
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
    """A program, what each bit of its symbol stands for, and its flat automata, side by side."""

    program: rt.Program
    guards: tuple[Guard, ...]
    automaton: Automaton


def lower_composed(choice: Choice, variables: tuple[str, ...]) -> Lowered:
    """The program of a formula whose automaton is composed where it runs. Event guards come before those of filters."""
    composer = Composer()
    tree = greedy_node(choice.formula, composer) if choice.greedy else composer.node(choice.formula)
    if choice.first:
        tree = nodes.First(tree)
    if choice.clause != "ALL":
        tree = nodes.Greatest(choice.clause, tree, clause=True)
    guards, filters = tuple(composer.guards), tuple(composer.filters)
    visible = composer.mask(frozenset(variables))
    # Where projection can leave an event without a variable, matches also differ by their first and last events.
    keep = visible | (nodes.BEGIN | nodes.END if contains(choice.formula, (cel.Project,)) else 0)
    kept = sorted({mask & keep for mask in masks(tree)} | {0})
    names = {name: 1 << (nodes.FIRST_VARIABLE + i) for name, i in composer.variables.items() if name in variables}
    program = rt.Program(
        n_states=0,
        transitions=np.zeros((0, 4), np.int64),
        initial=(),
        final=(),
        guards=tuple(_names(guard) for guard in (*guards, *filters)),
        labels=tuple(frozenset(name for name, bit in names.items() if mask & bit) for mask in kept),
        variables=variables,
        window=lower_window(choice.window),
        rule="any" if choice.consume == "ANY" else "timed" if choice.timed else "composed",
        machine=renumbered(tree, len(guards)),
        masks=tuple(kept),
        keep=keep,
        inner_windows=tuple(w for w in map(lower_window, composer.windows) if w is not None),
        n_event_guards=len(guards),
        consume=choice.consume != "NONE",
        skip=None if choice.skip is None else rt.Skip(choice.skip.to, choice.skip.mark),
        choose=choice.late,
        ends_late=choice.ends_late,
    )
    return Lowered(program, (*guards, *filters), side_by_side(relabel(part, frozenset(variables)) for part in composer.automata))


def lower_window(window: Window | None) -> rt.Window | None:
    """n EVENTS is end − start ≤ n − 1 positions; any other bound stays what it is (see runtime.ecs.inside)."""
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
