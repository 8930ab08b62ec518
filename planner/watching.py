"""WITH TIMEOUTS: what watches how far every start comes, beside the program that finds the matches."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from planner import cel
from planner.across import Across
from planner.automata.compose import Composer
from planner.automata.positions import position_node
from planner.automata.simple import gathered, is_around, is_simple
from planner.choice import compares, searches_each_window
from planner.formula import Formula
from planner.query import Window
from runtime import nodes
from runtime.clauses import Deciding


class Watched(NamedTuple):
    """The rewritten formula and the window whose runs are watched, whatever is chosen among its matches.

    `next_match`: the runs are those of SKIP TILL NEXT MATCH.
    """

    formula: Formula
    window: Window | None
    next_match: bool = False


class Watch(NamedTuple):
    """What watches how far every start comes: the tree, and the window that the engine cuts by."""

    tree: nodes.Node
    window: Window | None
    projects: bool
    ends_late: bool
    family: str


def is_watched(formula: Formula) -> bool:
    """Can it be told how far runs come which what must not happen ends by comparisons? That the positions say."""
    formula = gathered(formula)
    while isinstance(formula, (cel.NotBefore, cel.NotAfter)) or (isinstance(formula, Across) and is_around(formula)):
        formula = formula.inner
    return is_simple(formula)


def watching(watched: Watched, composer: Composer) -> Watch:
    """One run for each start and state, NXT-best; a trailing absence has its window inside, and goes around that."""
    formula, window = watched.formula, watched.window
    projects, positions = formula.contains((cel.Project,)), watched.next_match or formula.contains((Across,))
    if positions:
        formula = gathered(formula)
    family = "bound" if compares(formula) or searches_each_window(formula) else "timed"
    after: list[Deciding] = []  # by what the match is compared with what follows it
    before: list[Across] = []
    while isinstance(formula, Across) and is_around(formula):
        if is_around(formula, cel.NotAfter):
            after.append(composer.deciding(formula))
        else:
            before.append(formula)
        formula = formula.inner

    def runs(part: Formula) -> nodes.Node:
        for across in before:
            part = replace(across, inner=part)
        made = _shown(position_node(part, composer, watched.next_match) if positions else composer.node(part))
        for deciding in after:  # runs that differ in what is compared later stay apart
            made = nodes.Across(made, deciding, shows=True)
        return nodes.First(made, shows=True)

    if isinstance(formula, cel.NotAfter):
        vetoes = tuple(map(composer.node, formula.vetoes))
        tree: nodes.Node = nodes.NotAfter(runs(formula.inner), vetoes, composer.window(formula.window))
        for deciding in after:
            tree = nodes.Across(tree, deciding, shows=True)
        return Watch(tree, None, projects, ends_late=True, family=family)
    return Watch(runs(formula), window, projects, ends_late=False, family=family)


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
