"""Sets of which only the complex events count whose weights come to enough, and to no more: within bounds.

    B{2,500}, as B+ within bounds     each B weighs 1: 2 to 500
    SUM(b.x) > 1000                   each B weighs its x: more than 1000      (runtime.sieve)

The automaton of `A ; B+ ; C` has three states, that of `A ; B{2,500} ; C` five hundred. So loops with great numbers run
as loops without, and matches with too few or too many rounds are left out where they are listed; and so are matches
that fail a condition on a sum. A node has an *interval*: the least and the most that a complex event below it weighs. A
walk that has met events of weight m from the end of the match on turns back at a node where m and the least are too
much, or m and the most too little. The least and the most are there, so where a sum has one bound, what a walk goes on
with ends in a match. Where it has two, or there are several conditions, that may be none: not each sum in between is
there.

Counting adds, for each node that a root reaches, how many complex events have 0, 1, 2, … events of a label: a
polynomial of the degree of the greatest number. That is a step for each round of an automaton that is written out.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from runtime.arrays import AnyArray, grown
from runtime.compact_set.tecs import BOTTOM, MOST, OVERFLOW, PRODUCT, UNION, inside
from runtime.compact_set.weights import MOST_EXACT, SLACK, Limits, Weights
from runtime.jit import inlined, kernel

# Those of its child with its event; of either side; of both; of its child; of either side and of both.
EVENT, EITHER, BOTH, CHILD, LOOSELY = range(5)
OWN, LOW, HIGH, SIZE = 0, 1, 2, 3  # what the event of a node weighs, its interval, and that of sizes, from 0 on


class Bound(NamedTuple):
    """The conditions, what events weigh for them, and the intervals of nodes, which are valid where `stamp` is
    `serial`: nodes keep theirs while roots are listed. `now`: the bounds of the root that is walked; `met`: what the
    first events of the path weigh, by how many they are."""

    of_event: AnyArray  # float64[conditions, labels]
    of_label: AnyArray  # bool[terms, labels]
    term: AnyArray  # int64[terms]: of which condition it is
    row: AnyArray  # int64[rows], ascending
    value: AnyArray  # float64[rows, terms]
    low: AnyArray  # float64[2, conditions], as in Limits
    high: AnyArray  # float64[2, conditions]
    exact: AnyArray  # bool[conditions]
    now: AnyArray  # float64[2, conditions]
    of_node: AnyArray  # float64[nodes, conditions, 4]: OWN, LOW, HIGH, SIZE
    met: AnyArray  # float64[path, conditions]
    rest: AnyArray  # float64[cells, conditions, 3]: of a walk through products, LOW and HIGH of what they still ask for
    stamp: AnyArray  # int64[nodes]
    serial: AnyArray  # int64[1]


def new_bound(of_event: AnyArray, limits: Limits, weights: Weights) -> Bound:
    """The intervals of no node are known, and the weights of no row."""
    n = len(of_event)
    return Bound(
        of_event=of_event,
        of_label=weights.of_label,
        term=weights.term,
        row=weights.row,
        value=weights.value,
        low=limits.low,
        high=limits.high,
        exact=weights.exact,
        now=np.zeros((2, n)),
        of_node=np.zeros((1, n, 4)),
        met=np.zeros((1, n)),
        rest=np.zeros((1, n, 3)),
        stamp=np.zeros(1, np.int64),
        serial=np.zeros(1, np.int64),
    )


def for_nodes(bound: Bound, nodes: int) -> Bound:
    """The same with room for the intervals of so many nodes."""
    if nodes <= len(bound.stamp):
        return bound
    return bound._replace(of_node=grown(bound.of_node, nodes), stamp=grown(bound.stamp, nodes))


def for_path(bound: Bound, room: int) -> Bound:
    """The same for paths of so many events."""
    if room <= len(bound.met):
        return bound
    return bound._replace(met=grown(bound.met, room), rest=grown(bound.rest, room))


def for_rows(bound: Bound, weights: Weights, limits: Limits) -> Bound:
    """The same with the weights of these rows. A condition on what is no number has no bounds."""
    low, high = np.where(weights.known, limits.low, -np.inf), np.where(weights.known, limits.high, np.inf)
    return bound._replace(row=weights.row, value=weights.value, low=low, high=high, exact=weights.exact)


# ---------------------------------------------------------------- intervals


@inlined
def is_known(bound, node):
    return bound.stamp[node] == bound.serial[0]


@inlined
def kind_of(arena, node, now, bounds):
    """What the complex events of a node are."""
    if arena.label[node] < UNION:
        return BOTH if arena.label[node] == PRODUCT else LOOSELY
    if arena.label[node] != UNION:
        return EVENT
    return EITHER if inside(arena.start[arena.right[node]], now, bounds) else CHILD


@inlined
def place_of(rows, row):
    """Where a row stands among those that are known. O(1) where none is left out between it and the first."""
    at = row - rows[0]
    if at < len(rows) and rows[at] == row:
        return at
    return np.searchsorted(rows, row)


@inlined
def weigh(bound, node, row, label):
    """Write what the event of a node weighs."""
    for k in range(len(bound.of_event)):
        bound.of_node[node, k, OWN] = bound.of_event[k, label]
    if len(bound.term) > 0:
        at = place_of(bound.row, row)
        for t in range(len(bound.term)):
            if bound.of_label[t, label]:
                bound.of_node[node, bound.term[t], OWN] += bound.value[at, t]


@inlined
def know(bound, node, child, right, kind):
    """Write the interval of a node, from those of its children."""
    for k in range(len(bound.of_event)):
        of_node, below = bound.of_node[node, k], bound.of_node[child, k]
        least, most, size = below[LOW], below[HIGH], below[SIZE]
        if kind == EITHER:
            other = bound.of_node[right, k]
            least, most, size = min(least, other[LOW]), max(most, other[HIGH]), max(size, other[SIZE])
        elif kind == BOTH:
            other = bound.of_node[right, k]
            least, most, size = least + other[LOW], most + other[HIGH], size + other[SIZE]
        elif kind == LOOSELY:
            other = bound.of_node[right, k]
            least = min(least, other[LOW], least + other[LOW])
            most, size = max(most, other[HIGH], most + other[HIGH]), size + other[SIZE]
        elif kind == EVENT:
            own = of_node[OWN]
            least, most, size = least + own, most + own, size + abs(own)
        of_node[LOW], of_node[HIGH], of_node[SIZE] = least, most, size
    bound.stamp[node] = bound.serial[0]


@kernel
def measured(space, bound, root, now, todo):
    """Make the intervals of a node and of all below it known. False if `todo`, which holds nodes meanwhile, is too
    short. O(nodes), once for each."""
    arena = space.arena
    bound.stamp[BOTTOM] = bound.serial[0]  # which weighs nothing
    todo[0] = root
    top = 1
    while top > 0:
        node = todo[top - 1]
        if is_known(bound, node):
            top -= 1
            continue
        if top + 2 > len(todo):
            return False
        child, right = arena.child[node], arena.right[node]
        kind = kind_of(arena, node, now, space.bounds)
        if not is_known(bound, child):
            todo[top] = child
            top += 1
        elif kind in (EITHER, BOTH, LOOSELY) and not is_known(bound, right):
            todo[top] = right
            top += 1
        else:
            if kind == EVENT:
                weigh(bound, node, arena.row[node], arena.label[node])
            know(bound, node, child, right, kind)
            top -= 1
    return True


@kernel
def opened(space, bound, root, todo):
    """Take the bounds of a root, whose interval is known then. False if there is no room to measure it."""
    roots, node = space.roots, space.roots.node[root]
    if root > 0 and roots.clock[root] < roots.clock[root - 1]:
        bound.serial[0] += 1  # what has left the window of the root before may be in that of this one
    if not measured(space, bound, node, roots.clock[root], todo):
        return False
    for k in range(len(bound.of_event)):
        size = bound.of_node[node, k, SIZE]
        if bound.exact[k] and size < MOST_EXACT:
            bound.now[0, k], bound.now[1, k] = bound.low[1, k], bound.high[1, k]
        else:
            bound.now[0, k], bound.now[1, k] = bound.low[0, k] - SLACK * size, bound.high[0, k] + SLACK * size
        bound.met[0, k] = 0.0
    return True


@inlined
def one_fits(bound, node, depth, k):
    met, of_node = bound.met[depth, k], bound.of_node[node, k]
    return met + of_node[LOW] <= bound.now[1, k] and met + of_node[HIGH] >= bound.now[0, k]


@inlined
def can_fit(bound, node, depth):
    """May what is below a node bring the first events of the path, so many, inside the bounds?"""
    fits = one_fits(bound, node, depth, 0)  # there is one, mostly
    for k in range(1, len(bound.of_event)):
        fits = fits and one_fits(bound, node, depth, k)
    return fits


@inlined
def can_fit_beside(bound, node, depth, then):
    """The same where products still ask for the cells from `then` on."""
    fits = True
    for k in range(len(bound.of_event)):
        met, of_node, rest = bound.met[depth, k], bound.of_node[node, k], bound.rest[then + 1, k]
        fits = fits and met + of_node[LOW] + rest[LOW] <= bound.now[1, k]
        fits = fits and met + of_node[HIGH] + rest[HIGH] >= bound.now[0, k]
    return fits


@inlined
def put_off(bound, node, cell, then):
    """Cell number `cell` asks for a node, before those from `then` on."""
    for k in range(len(bound.of_event)):
        of_node, rest, made = bound.of_node[node, k], bound.rest[then + 1, k], bound.rest[cell + 1, k]
        made[LOW], made[HIGH] = of_node[LOW] + rest[LOW], of_node[HIGH] + rest[HIGH]


@inlined
def meet(bound, node, depth):
    """Put the event of a node behind the first ones of the path."""
    for k in range(len(bound.of_event)):
        bound.met[depth + 1, k] = bound.met[depth, k] + bound.of_node[node, k, OWN]


# ---------------------------------------------------------------- counting


class Numbers(NamedTuple):
    """`weight[label]` is 1 for labels whose events are counted; there must be `low` to `high` of them, or (`is_open`)
    `low` and more."""

    weight: AnyArray  # int64[labels]
    low: Any  # int64
    high: Any  # int64
    is_open: Any  # bool


def new_numbers(weight: AnyArray, low: int, high: int | None) -> Numbers:
    """`high` None: as many as there are."""
    return Numbers(weight, np.int64(low), np.int64(MOST // 2 if high is None else high), high is None)


class Polynomials(NamedTuple):
    """How many complex events of a node have 0, 1, … counted events, in row `place[node]`, valid where `stamp` is
    `serial`. MOST stands for as many or more. Where there is no greatest number the last one is of all from
    there on."""

    number: AnyArray  # int64[rows, degree + 1]
    place: AnyArray  # int32[nodes]
    stamp: AnyArray  # int64[nodes]
    serial: AnyArray  # int64[1]


def new_polynomials(rows: int, degree: int, nodes: int) -> Polynomials:
    """For so many nodes, of which so many are met at a time."""
    return Polynomials(
        number=np.zeros((rows, degree + 1), np.int64),
        place=np.zeros(nodes, np.int32),
        stamp=np.zeros(nodes, np.int64),
        serial=np.zeros(1, np.int64),
    )


@inlined
def plus(a, b):
    """The sum, or MOST."""
    return a + b if a <= MOST - b else MOST


@inlined
def fill(arena, found, node, both, numbers):
    """Write the polynomial of a node into its row, from those of its children."""
    row, left = found.place[node], found.place[arena.child[node]]
    degree = found.number.shape[1] - 1
    shift = numbers.weight[arena.label[node]] if arena.label[node] != UNION else np.int64(0)
    for k in range(degree + 1):
        found.number[row, k] = found.number[left, k - shift] if k >= shift else 0
        if numbers.is_open and k == degree and shift > 0:  # which stands for more, too
            found.number[row, k] = plus(found.number[row, k], found.number[left, k])
        if both:
            found.number[row, k] = plus(found.number[row, k], found.number[found.place[arena.right[node]], k])


@kernel
def polynomial(space, found, todo, root, now, numbers):
    """Make the polynomial of a root known. False if there is no room for it. O(nodes · degree)."""
    arena, serial = space.arena, found.serial[0]
    found.place[BOTTOM], found.stamp[BOTTOM] = 0, serial
    rows = 1
    todo[0] = root
    top = 1
    while top > 0:
        node = todo[top - 1]
        if found.stamp[node] == serial:
            top -= 1
            continue
        if top + 2 > len(todo) or rows == len(found.number):
            return False
        child, right = arena.child[node], arena.right[node]
        both = arena.label[node] == UNION and inside(arena.start[right], now, space.bounds)
        if found.stamp[child] != serial:
            todo[top] = child
            top += 1
        elif both and found.stamp[right] != serial:
            todo[top] = right
            top += 1
        else:
            found.place[node], found.stamp[node] = rows, serial
            fill(arena, found, node, both, numbers)
            rows += 1
            top -= 1
    return True


@kernel
def count_bounded(space, begin, n_roots, found, todo, numbers, total):
    """Add the number of matches of the roots to total[0]. Returns the root for which there was no room, n_roots, or
    OVERFLOW."""
    roots = space.roots
    for k in range(len(found.number[0])):
        found.number[0, k] = 1 if k == 0 else 0
    for root in range(begin, n_roots):
        found.serial[0] += 1
        if not polynomial(space, found, todo, roots.node[root], roots.clock[root], numbers):
            return root
        row = found.place[roots.node[root]]
        for k in range(numbers.low, found.number.shape[1]):
            total[0] = plus(total[0], found.number[row, k])
        if total[0] == MOST:
            return OVERFLOW
    return n_roots
