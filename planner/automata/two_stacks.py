"""This file decides which patterns are run by two stacks in a window: RunBuilder → TwoStacks.

    SEQ(A, !C, B) WITHIN 10 SEMANTICS NXT    of each end the greatest match
    SEQ(A, B, !C) WITHIN 10                  of each start the matches after which something has not happened

Runs hold no values, nothing must follow at once, and what must not happen is one event that ends runs or moves them,
whatever they have seen. Then an event does the same to all runs at a place.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from planner.automata.register_flow import Edge
from planner.automata.register_runs import RunBuilder
from planner.refusal import Refusal
from runtime.chain_cea import FROM_START, LACKS, NOBODY
from runtime.two_stacks import TwoStacks

MOST_PLACES = 12  # what an event costs grows by their square


def two_stacks_of(made: RunBuilder, labels: dict[int, int], later: bool) -> TwoStacks | Refusal:
    """The node for runtime.steppers.two_stacks, or why another way chooses.

    `labels`: the number of the label of each mask that is kept; `later`: LAST, else NXT.
    """
    automaton, edges = made.automaton, made.edges
    if len(_places(made)) > MOST_PLACES:
        return Refusal(f"runs wait at more than {MOST_PLACES} places")
    if any(edge.contiguous for edge in edges):
        return Refusal("what follows at once")
    if made.early_edges:
        return Refusal("something must not happen before the match")
    stopping = (*made.veto_edges, *made.late_edges)
    if any(kind != LACKS for edge in edges for kind, _, _ in edge.ops) or any(edge.ops for edge in stopping):
        return Refusal("runs hold what they have seen")
    if made.late != NOBODY and all(edge.source == FROM_START for edge in edges):
        return Refusal("each event is a match, which only waits: no event looks at others")
    positions = range(len(automaton.masks))
    place = _places(made)
    lacks = [_lacks(edges, q) for q in positions]
    return TwoStacks(
        guard=_ints(automaton.guards),
        label=_ints(labels[mask & made.keep] for mask in automaton.masks),
        last=_ints(q in automaton.last for q in positions),
        to=_ints(place.get(q, NOBODY) for q in positions),
        lacks_of=_ends(lacks),
        lacks=_ints(guard for own in lacks for guard in own),
        edge_of=_ends([edge for edge in edges if edge.to == q] for q in positions),
        source=_ints(place[edge.source] for edge in edges),
        veto_guard=_ints(made.veto_guards),
        veto_from=_ints(place[edge.source] for edge in made.veto_edges),
        veto_to=_ints(NOBODY if edge.to == NOBODY else place[edge.to] for edge in made.veto_edges),
        n_places=len(place),
        later=later,
        late=NOBODY if made.late == NOBODY else place[made.late],
    )


def _places(made: RunBuilder) -> dict[int, int]:
    """The numbers of the places where runs wait: 0 where nothing has begun, and none after which nothing comes."""
    waiting = [p for p, follow in enumerate(made.follow) if follow or p == made.late]
    return {p: i for i, p in enumerate([FROM_START, *waiting])}


def _lacks(edges: Iterable[Edge], q: int) -> list[int]:
    """The guards that an event at a position must not satisfy: the same over all edges that lead there."""
    return sorted({guard for edge in edges if edge.to == q for _, _, guard in edge.ops})


def _ints(values: Iterable[Any]) -> np.ndarray:
    return np.array(list(values), np.int64)


def _ends(parts: Iterable[list[Any]]) -> np.ndarray:
    """Where each of several runs of numbers begins, and the last ends."""
    return np.concatenate([[0], np.cumsum(_ints(map(len, parts)))]).astype(np.int64)
