"""Runs wait at a position once for each kind of edge that leads on, and hold there what edges of that kind look at.

    A a ; (B+ PART BY (y)) AS b ; C      a B goes on with the runs whose y is its own, a C with all of them
    with twins                           the runs at B1, which hold y, wait for a B; those at its twin B2, which hold
                                         nothing and so are one, wait for a C

Without a twin a C would look at each of the values that wait. A twin takes the same events, over the same edges; where
a match ends, it ends once, at the position itself. So each match is still found on one way.
"""

from __future__ import annotations

from dataclasses import replace

from planner.automata.register_clauses import NotByRegisters
from planner.automata.register_flow import asked_by
from planner.automata.register_indexes import indexes, looks_at, ordered_places
from planner.automata.register_runs import RunBuilder
from runtime.chain_cea import EACH, NOBODY
from runtime.position_automaton import Follow, PositionAutomaton

MOST_TWINS = 4  # of one automaton


def with_twins(made: RunBuilder, apart: bool) -> RunBuilder:
    """The runs of the automaton with twins where these make an edge look at less, or as they are.

    `apart`: every start has runs of its own, which are as many at a twin.
    """
    if made.greedy or apart:
        return made
    for _ in range(MOST_TWINS):
        found = _kinds(made)
        if found is None:
            break
        position, alone = found
        try:
            made = RunBuilder(_split(made.automaton, position, alone), made.keep, False, made.n_terms)
        except NotByRegisters:
            break
    return made


def _kinds(made: RunBuilder) -> tuple[int, tuple[Follow, ...]] | None:
    """A position, and what follows it over the edges that look at each run though they need less than runs hold."""
    if made.late != NOBODY:
        return None
    index = indexes(made.edges, made.needed, made.sure)
    ordered = ordered_places(made, index)
    checked = {edge.source for edge in made.veto_edges if edge.ops}
    for p in sorted(set(range(len(made.automaton.masks))) - checked):
        own = [edge for edge in made.edges if edge.source == p]
        less = set()
        for edge in own:
            needs = asked_by(edge.ops, made.live[edge.to] | made.ends[edge.to]) & made.needed[p]
            if needs != made.needed[p] and looks_at(made, edge, index, ordered, apart=False) == EACH:
                less.add((edge.to, edge.contiguous))
        alone = tuple(f for f in made.automaton.follow[p] if (f.position, f.contiguous) in less)
        if alone and len(alone) < len(made.automaton.follow[p]):
            return p, alone
    return None


def _split(automaton: PositionAutomaton, p: int, alone: tuple[Follow, ...]) -> PositionAutomaton:
    """The automaton with a twin of position p, which `alone` follows instead."""
    twin = len(automaton.masks)

    def both(follow: tuple[Follow, ...]) -> tuple[Follow, ...]:
        return (*follow, *(f._replace(position=twin) for f in follow if f.position == p))

    follow = [both(own) for own in automaton.follow]
    follow[p] = both(tuple(f for f in automaton.follow[p] if f not in alone))
    return replace(
        automaton,
        guards=(*automaton.guards, automaton.guards[p]),
        masks=(*automaton.masks, automaton.masks[p]),
        first=(*automaton.first, twin) if p in automaton.first else automaton.first,
        follow=(*follow, both(alone)),
        asks=(*automaton.asks, automaton.asks[p]),
        undecided=(*automaton.undecided, automaton.undecided[p]),
        lacks=(*automaton.lacks, automaton.lacks[p]),
        branches=(*automaton.branches, automaton.branches[p]),
        starts=automaton.starts | ({twin} if p in automaton.starts else set()),
    )
