"""Automaton + window → runtime.program.Program: sets become numbers, states and labels flat arrays."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np

from planner import cel
from planner.automata.automaton import Automaton, Guard, distinct_guards, relabel, side_by_side
from planner.automata.compose import Composer, masks, renumbered
from planner.automata.pcea import masks_of, parallel, pcea_of, picture
from planner.automata.positions import gathered, greedy_node, is_around, is_simple, positions_of, strictly, surrounded
from planner.automata.registers import Runs, registers_of
from planner.cel import Predicate
from planner.choice import COMPARES, REGISTERS, Choice, absence_outside, contains, searches_each_window
from planner.query import Skip, Window
from planner.rewrite.across import inside_choices, is_split
from planner.rewrite.filters import push_filters
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
    compares the SQL and the type."""

    program: rt.Program
    guards: tuple[Guard, ...]
    automaton: Automaton
    terms: tuple[tuple[str, str], ...] = ()
    why_general: str | None = None


class Watched(NamedTuple):
    """WITH TIMEOUTS: the formula and window whose runs are watched, whatever is chosen among its matches; `greedy`: the
    runs of SKIP TILL NEXT MATCH."""

    formula: cel.Formula
    window: Window | None
    greedy: bool = False


def lower_pcea(choice: Choice, variables: tuple[str, ...]) -> Lowered | str:
    """The program of a hierarchical ALL; or why it is none."""
    if choice.rule != "bound" or choice.timed or choice.greedy or choice.clause != "ALL":
        return "matches compete, are consumed or have windows inside"
    pcea = pcea_of(choice.formula)
    if isinstance(pcea, str):
        return pcea
    composer = Composer()
    machine, own = parallel(pcea, composer), masks_of(pcea, composer)
    tree = nodes.Flat(np.zeros((0, 4), np.int64), own[1:], (), ())
    program = _composed(composer, tree, variables, projects=False, window=lower_window(choice.window), rule="pcea")
    if any(not own[1 << i] & program.keep for i in range(len(pcea.atoms))):
        return "an event without a variable"
    numbers = {mask: i for i, mask in enumerate(program.masks)}
    machine = replace(machine, label_of=np.array([numbers[mask & program.keep] for mask in own], np.int64))
    automaton = relabel(picture(pcea), frozenset(variables))
    return Lowered(replace(program, machine=machine), tuple(composer.guards), automaton, tuple(composer.terms))


def lower_registers(choice: Choice, variables: tuple[str, ...]) -> Lowered | str:
    """The program of a formula whose comparisons need a few registers only; or why it is none."""
    formula, window = choice.formula, choice.window
    skips = choice.skip is not None and choice.by == "ALL"  # other skips are done to what the engine gives
    if choice.clause in rt.PICKING or skips:
        match formula:
            case cel.Within(inner, own):
                formula, window = inner, own
    if choice.rule not in ("bound", "timed") or choice.late != "ALL" or choice.clause not in ("ALL", *rt.PICKING):
        return "matches compete by MAX, or are consumed in all keys"
    if choice.first is not None and not skips:
        return f"of the matches of each start, those that {choice.by} chooses at their end are taken one by one"
    if isinstance(formula, cel.Strategy) and formula.rule == "STRICT":
        formula = strictly(formula.inner) or formula
    parts = surrounded(gathered(formula))
    if parts is None or contains(parts.formula, REGISTERS) or (window or parts.window) != (parts.window or window):
        return "a window inside the pattern"
    if (parts.before or parts.after) and (choice.consume != "NONE" or choice.skip is not None):
        return "what is consumed or skipped beside an absence before or after the match"
    if is_split(choice.formula):
        return "what must not happen is compared with events outside of a strategy or negated part around it"
    if not is_simple(parts.formula):
        return "an operator that is more than a sequence, a loop or an OR"
    composer, rule = Composer(), "skipping" if skips else "registers"
    program = _composed(
        composer, positions_of(parts, composer), variables, projects=False, window=lower_window(window or parts.window),
        rule=rule, consume=choice.consume != "NONE", pick=choice.clause, skip=lower_skip(choice),
        ends_late=choice.ends_late,
    )  # fmt: skip
    assert isinstance(program.machine, nodes.Greedy)
    labels = {mask: i for i, mask in enumerate(program.masks)}
    made = registers_of(program.machine, program.keep, labels, Runs(choice.greedy, skips))
    if isinstance(made, str):
        return made
    guards = (*composer.guards, *composer.filters)
    automata = side_by_side(tuple(relabel(part, frozenset(variables)) for part in composer.automata))
    return Lowered(replace(program, machine=made), guards, automata, tuple(composer.terms))


def lower_composed(choice: Choice, variables: tuple[str, ...], watched: Watched | None = None) -> Lowered:
    """The program of a formula whose automaton is composed where it runs. Event guards come before those of filters."""
    composer = Composer()
    tree = greedy_node(choice.formula, composer) if choice.greedy else composer.node(choice.formula)
    if choice.first is not None:
        tree = nodes.First(tree, rule=choice.first)
    if choice.clause != "ALL":
        tree = nodes.Greatest(choice.clause, tree, clause=True)
    automata = tuple(relabel(part, frozenset(variables)) for part in composer.automata)
    watch = None if watched is None else watching(watched, composer)
    program = _composed(
        composer,
        tree,
        variables,
        projects=contains(choice.formula, (cel.Project,)),
        window=lower_window(choice.window),
        rule=choice.rule,
        consume=choice.consume != "NONE",
        skip=lower_skip(choice),
        choose=choice.late,
        ends_late=choice.ends_late,
    )
    if watch is not None:
        program = _with_timeouts(program, watch, composer)
    return Lowered(program, (*composer.guards, *composer.filters), side_by_side(automata), tuple(composer.terms))


def _composed(
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
        **more,
    )


# ---------------------------------------------------------------- WITH TIMEOUTS


class Watch(NamedTuple):
    """What watches how far every start comes: the tree, and the window that the engine cuts by."""

    tree: nodes.Node
    window: Window | None
    projects: bool
    ends_late: bool
    rule: str


def with_timeouts(made: Lowered, watched: Watched) -> Lowered:
    """A flat program beside the composed one that watches it; they read the same symbols."""
    composer = Composer(guards={guard: i for i, guard in enumerate(made.guards)})
    program = _with_timeouts(made.program, watching(watched, composer), composer)
    guards = (*composer.guards, *composer.filters)
    return Lowered(replace(program, guards=tuple(map(_names, guards))), guards, made.automaton)


def _with_timeouts(program: rt.Program, watch: Watch, composer: Composer) -> rt.Program:
    made = _composed(
        composer,
        watch.tree,
        program.variables,
        projects=watch.projects,
        window=lower_window(watch.window),
        rule=watch.rule,
        ends_late=watch.ends_late,
    )
    more = tuple(label for label in dict.fromkeys(made.labels) if label not in program.labels)
    return replace(program, labels=(*program.labels, *more), timeouts=made)


def is_watched(formula: cel.Formula) -> bool:
    """Can it be told how far runs come which what must not happen ends by comparisons? That the positions say."""
    formula = gathered(push_filters(absence_outside(inside_choices(formula))))
    while isinstance(formula, (cel.NotBefore, cel.NotAfter)) or (
        isinstance(formula, cel.Across) and is_around(formula)
    ):
        formula = formula.inner
    return is_simple(formula)


def watching(watched: Watched, composer: Composer) -> Watch:
    """One run for each start and state, NXT-best; a trailing absence has its window inside, and goes around that."""
    formula, window = absence_outside(watched.formula), watched.window
    projects, positions = contains(formula, (cel.Project,)), watched.greedy or contains(formula, (cel.Across,))
    if positions:
        formula = gathered(formula)
    rule = "bound" if contains(formula, COMPARES) or searches_each_window(formula) else "timed"
    after: list[nodes.Deciding] = []  # by what the match is compared with what follows it
    before: list[cel.Across] = []
    while isinstance(formula, cel.Across) and is_around(formula):
        if is_around(formula, cel.NotAfter):
            after.append(composer.deciding(formula))
        else:
            before.append(formula)
        formula = formula.inner

    def runs(part: cel.Formula) -> nodes.Node:
        for across in before:
            part = replace(across, inner=part)
        made = _shown(greedy_node(part, composer, watched.greedy) if positions else composer.node(part))
        for deciding in after:  # runs that differ in what is compared later stay apart
            made = nodes.Across(made, deciding, shows=True)
        return nodes.First(made, shows=True)

    if isinstance(formula, cel.NotAfter):
        vetoes = tuple(map(composer.node, formula.vetoes))
        tree: nodes.Node = nodes.NotAfter(runs(formula.inner), vetoes, composer.window(formula.window))
        for deciding in after:
            tree = nodes.Across(tree, deciding, shows=True)
        return Watch(tree, None, projects, ends_late=True, rule=rule)
    return Watch(runs(formula), window, projects, ends_late=False, rule=rule)


def _shown(node: nodes.Node) -> nodes.Node:
    """An absence before the whole match shows the matches that it vetoes."""
    match node:
        case nodes.Bind() | nodes.Restrict() | nodes.Keep() | nodes.Compare() | nodes.Agree():
            return replace(node, inner=_shown(node.inner))
        case nodes.Across():
            return replace(node, inner=_shown(node.inner), shows=True)
        case nodes.NotBefore() | nodes.NotBeforeEach():
            return replace(node, shows=True)
    return node


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
