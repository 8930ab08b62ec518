"""Aggregates over all matches of roots, group by group, by the semirings of semirings.py: no match is listed.

The values of a node are computed once, from those of its children. Nodes are numbered in the order in which they were
made, so where no window cuts anything off, they are computed in that order, a plain loop: a stream costs O(nodes),
however many matches it has. What is below a node whose values are known is not asked any more, and goes when the arena
is compacted: of a million times B in `A ; B+ ; C` a few nodes are held, those that runs go on from. Where a window
bounds matches, what lies inside it differs from root to root, and the nodes below a root are computed for each clock
anew: O(nodes inside the window) for each event that ends matches, as counting costs (tecs.node_count).

Matches of one node can belong to different groups, where these are told apart by an event that is not the last (GROUP
BY a.k of the first event). So a node has not one cell of values but one for each *key*, in ascending order; an event
that tells groups apart adds a number of its own to the keys of its matches: with the groups of `a` numbered 1, 2, … and
those of `c` 10, 20, …, a match of the group (2, 3) has the key 32. What only the last event says (the partition, the
attributes of the last variable) is added at the root, so that most nodes have one cell. Cells are never changed: an
event that adds nothing shares those of its child.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from runtime import capacities
from runtime.arrays import AnyArray, IntArray, grown
from runtime.compact_set.semirings import (
    Cells,
    Lift,
    Shape,
    add_cell,
    copy_cell,
    extend_cell,
    grown_cells,
    multiply_cells,
    new_cells,
)
from runtime.compact_set.store import Store
from runtime.compact_set.tecs import BOTTOM, LOOSE, UNION, close_kernel, inside
from runtime.jit import inlined, kernel

DONE = -1
ROOM, STACK, TABLE = 0, 1, 2  # what is lacking
FREE = -1  # of the table of groups


class Known(NamedTuple):
    """The cells of each node, n[node] of them from first[node] on, where `stamp` is `state[SERIAL]`; `state` is
    (cells in use, serial, groups in use)."""

    first: IntArray  # int64[nodes]
    n: IntArray  # int64[nodes]
    stamp: IntArray  # int64[nodes]
    state: IntArray  # int64[3]


USED, SERIAL, GROUPS = 0, 1, 2


class Groups(NamedTuple):
    """The values of each group. `slot[h]` is the cell of the group whose hash is h, FREE for none; `of_row`: what the
    last event of a match adds to its key, times `width`, which is more than any key of a node."""

    cells: Cells
    slot: IntArray  # int64[power of two]
    of_row: IntArray  # int64[rows]
    width: int


@inlined
def same_cells(known, node, child):
    """A node has the cells of its child."""
    known.first[node], known.n[node] = known.first[child], known.n[child]


@inlined
def shift_of(lift, row, label, is_first):
    """What an event adds to the keys of its matches."""
    shift = np.int64(0)
    for g in range(lift.shifts.shape[1]):
        if lift.shifts[label, g]:
            shift += lift.shift[row, g]
    if is_first and len(lift.begins) > 0 and lift.opens[label]:
        shift += lift.begins[row]
    return shift


@inlined
def adds(lift, label):
    """Do events of this label change any value?"""
    for k in range(lift.counts.shape[1]):
        if lift.counts[label, k]:
            return True
    return has_picks(lift, label)


@inlined
def has_picks(lift, label):
    """Do events of this label change what is least or greatest?"""
    found = False
    for k in range(lift.picks.shape[1]):
        found = found or lift.picks[label, k]
    return found


@inlined
def extended(arena, known, cells, lift, node):
    """The cells of an output."""
    row, label, child = arena.row[node], arena.label[node], arena.child[node]
    shift = shift_of(lift, row, label, child == BOTTOM)
    if shift == 0 and not adds(lift, label):
        same_cells(known, node, child)
        return
    used = known.state[USED]
    for j in range(known.n[child]):
        copy_cell(cells, known.first[child] + j, cells, used + j)
        cells.key[used + j] += shift
        extend_cell(lift, cells, used + j, row, label)
    known.first[node], known.n[node] = used, known.n[child]
    known.state[USED] = used + known.n[child]


@inlined
def united(known, cells, lift, node, left, right):
    """The cells of a union: merged by their keys."""
    used, a, b = known.state[USED], known.first[left], known.first[right]
    to, a_end, b_end = used, a + known.n[left], b + known.n[right]
    while a < a_end or b < b_end:
        if b == b_end or (a < a_end and cells.key[a] <= cells.key[b]):
            copy_cell(cells, a, cells, to)
            if b < b_end and cells.key[a] == cells.key[b]:
                add_cell(lift, cells, b, cells, to)
                b += 1
            a += 1
        else:
            copy_cell(cells, b, cells, to)
            b += 1
        to += 1
    known.first[node], known.n[node] = used, to - used
    known.state[USED] = to


@inlined
def most_products(known, left, right, loose):
    """The most cells of a product."""
    return (known.n[left] + loose) * (known.n[right] + loose)


@inlined
def multiplied(known, cells, lift, node, left, right, loose):
    """The cells of a product: each with each, those of one key together, in order. O(n²) for n keys. Of a loose one,
    `loose` 1, those of both sides, too."""
    used, scratch = known.state[USED], known.state[USED] + most_products(known, left, right, loose)
    n = 0
    for i in range(-loose, known.n[left]):
        for j in range(-loose, known.n[right]):
            if i < 0 and j < 0:
                continue
            if i < 0 or j < 0:
                copy_cell(cells, known.first[right] + j if i < 0 else known.first[left] + i, cells, scratch)
            else:
                multiply_cells(lift, cells, known.first[left] + i, known.first[right] + j, scratch)
            key, at = cells.key[scratch], used + n
            while at > used and cells.key[at - 1] > key:
                at -= 1
            if at > used and cells.key[at - 1] == key:
                add_cell(lift, cells, scratch, cells, at - 1)
                continue
            for k in range(used + n, at, -1):
                copy_cell(cells, k - 1, cells, k)
            copy_cell(cells, scratch, cells, at)
            n += 1
    known.first[node], known.n[node] = used, n
    known.state[USED] = used + n


@inlined
def value(arena, known, cells, lift, node, both):
    """Compute a node whose children are known; `both`: of a union, its right side is inside the window. False: there
    is no room for its cells."""
    left, right, label = arena.child[node], arena.right[node], arena.label[node]
    need = known.n[left] + known.n[right]
    if label < UNION:
        need = most_products(known, left, right, np.int64(label == LOOSE)) + 1
    if known.state[USED] + need > len(cells.key):
        return False
    if label >= 0:
        extended(arena, known, cells, lift, node)
    elif label < UNION:
        multiplied(known, cells, lift, node, left, right, np.int64(label == LOOSE))
    elif both:
        united(known, cells, lift, node, left, right)
    else:
        same_cells(known, node, left)
    known.stamp[node] = known.state[SERIAL]
    return True


@kernel
def values_kernel(arena, known, cells, lift, begin, end):
    """Compute the nodes from `begin` to `end`, whole. Returns the first one for which there was no room, or `end`."""
    for node in range(begin, end):
        if not value(arena, known, cells, lift, node, True):
            return node
    return end


@inlined
def value_inside(space, known, cells, lift, root, now, stack):
    """Compute what a root reaches inside the window, children first. DONE, or what is lacking."""
    arena, serial = space.arena, known.state[SERIAL]
    top = 1
    stack[0] = root
    while top > 0:
        node = stack[top - 1]
        if top + 2 >= len(stack):
            return STACK
        label, child, right = arena.label[node], arena.child[node], arena.right[node]
        both = label < UNION or (label == UNION and inside(arena.start[right], now, space.bounds))
        before = top
        if known.stamp[child] != serial:
            stack[top] = child
            top += 1
        if both and known.stamp[right] != serial:
            stack[top] = right
            top += 1
        if top > before:
            continue
        if not value(arena, known, cells, lift, node, both):
            return ROOM
        top -= 1
    return DONE


@inlined
def group_of(known, groups, key):
    """The cell of a group, a new one if it was not met before; -1 if the table is full."""
    mask = len(groups.slot) - 1
    at = (key ^ (key >> 15)) & mask
    while groups.slot[at] != FREE:
        if groups.cells.key[groups.slot[at]] == key:
            return groups.slot[at]
        at = (at + 1) & mask
    cell = known.state[GROUPS]
    if 2 * (cell + 1) > len(groups.slot) or cell + 1 > len(groups.cells.key):
        return -1
    groups.slot[at] = cell
    groups.cells.key[cell] = key
    known.state[GROUPS] = cell + 1
    return cell


@kernel
def rehash_kernel(groups, n):
    """Put the first n cells of groups into an empty table."""
    mask = len(groups.slot) - 1
    for cell in range(n):
        at = (groups.cells.key[cell] ^ (groups.cells.key[cell] >> 15)) & mask
        while groups.slot[at] != FREE:
            at = (at + 1) & mask
        groups.slot[at] = cell


@kernel
def add_kernel(space, known, cells, lift, groups, stack, at):
    """Add the matches of the roots from at[0] on, of the root the cells from at[1] on, to their groups. at[2]: how many
    roots; at[3]: is nothing cut off by windows, so that all nodes are known. Returns DONE or what is lacking."""
    arena, roots = space.arena, space.roots
    while at[0] < at[2]:
        root, now = roots.node[at[0]], roots.clock[at[0]]
        if at[3] == 0:
            if at[1] == 0 and (at[0] == 0 or at[4] == 1 or roots.clock[at[0] - 1] != now):
                known.state[SERIAL] += 1
                known.state[USED] = 1
                known.stamp[BOTTOM] = known.state[SERIAL]
            at[4] = 0
            if known.stamp[root] != known.state[SERIAL]:
                lacking = value_inside(space, known, cells, lift, root, now, stack)
                if lacking != DONE:
                    return lacking
        last = root
        while arena.label[last] < 0:
            last = arena.child[last]
        own = groups.of_row[arena.row[last]] * groups.width
        while at[1] < known.n[root]:
            cell = known.first[root] + at[1]
            before = known.state[GROUPS]
            group = group_of(known, groups, own + cells.key[cell])
            if group < 0:
                return TABLE
            if group == before:
                key = groups.cells.key[group]
                copy_cell(cells, cell, groups.cells, group)
                groups.cells.key[group] = key
            else:
                add_cell(lift, cells, cell, groups.cells, group)
            at[1] += 1
        at[0] += 1
        at[1] = 0
    return DONE


@kernel
def mark_cells(known, n_nodes, used):
    """used[cell] = 1 for every cell of the first n nodes."""
    for node in range(n_nodes):
        for j in range(known.n[node]):
            used[known.first[node] + j] = 1


class Trends:
    """Sums up the roots of an engine; a holder of its store, to follow its nodes.

    `of_row`: the group of a match by its last row, from 0; `width`: more than any sum of shifts. `uncut`: no match
    leaves the window, whatever it is (windows that slide are keys). `closes`: nobody looks below a node; so where none
    is cut off, nodes whose values are known are leaves, and memory is that of the runs, not of the stream.
    """

    def __init__(
        self, store: Store, lift: Lift, of_row: IntArray, width: int, uncut: bool = False, closes: bool = False
    ) -> None:
        self._store, self._lift, self._closes = store, lift, closes
        _, n_exact, n_primes = lift.exact.shape
        shape = Shape(n_exact, n_primes, lift.size.shape[1] - n_exact, lift.rank.shape[1])
        self._whole = uncut or store.unbounded
        self._cells = new_cells(capacities.CELLS, shape)
        self._cells.residue[0, 0], self._cells.part[0, 0] = 1, 1.0  # ⊥: one match without events
        first, n, stamp = (np.zeros(capacities.NODES, np.int64) for _ in range(3))
        self._known = Known(first, n, stamp, np.array([1, 1, 0], np.int64))
        self._known.n[BOTTOM] = 1
        self._known.stamp[BOTTOM] = 1
        self._groups = Groups(
            new_cells(capacities.GROUPS, shape), np.full(2 * capacities.GROUPS, FREE, np.int64), of_row, width
        )
        self._stack = np.zeros(capacities.WALK, np.int32)
        self._done, self._emptied = 1, -1  # nodes that are known, where all are; of which arena

    def take(self) -> None:
        """Add the matches of the roots to their groups."""
        store = self._store
        at = np.array([0, 0, store.n_roots, int(self._whole), 0], np.int64)
        self._fit()
        if self._whole:
            self._compute()
        while True:
            lacking = add_kernel(store.space, self._known, self._cells, self._lift, self._groups, self._stack, at)
            if lacking == DONE:
                return
            self._bring(lacking)
            at[4] = int(lacking != TABLE)  # the walk below this root begins again

    @property
    def found(self) -> Cells:
        """The values of all groups; the key of each is of_row · width and the shifts."""
        n = int(self._known.state[GROUPS])
        return Cells._make(column[:n] for column in self._groups.cells)

    @contextmanager
    def passing(self, node: int) -> Iterator[None]:
        """The nodes from this one on are gone afterwards."""
        self._fit()
        if self._whole:
            self._compute(node)
        used = int(self._known.state[USED])
        yield
        self._known.stamp[node:] = 0
        if self._whole:
            self._done = node
            self._known.state[USED] = used

    def _forget(self) -> None:
        """The arena was emptied."""
        self._done = 1
        self._known.stamp[1:] = 0
        self._known.state[USED] = 1

    # ------------------------------------------------------------ room

    def _fit(self) -> None:
        """Room for all nodes that the arena can hold; none is known of one that was emptied."""
        size, times = len(self._store.arena.row), int(self._store.arena.size[1])
        if times != self._emptied:
            self._emptied = times
            self._forget()
        if len(self._known.n) < size:
            self._known = Known._make([*(grown(column, size) for column in self._known[:3]), self._known.state])

    def _compute(self, end: int | None = None) -> None:
        """All nodes before `end`, or all."""
        end = self._store.nodes if end is None else end
        while self._done < end:
            self._done = int(values_kernel(self._store.arena, self._known, self._cells, self._lift, self._done, end))
            if self._done < end:
                self._bring(ROOM)

    def _bring(self, lacking: int) -> None:
        if lacking == ROOM:
            self._cells = grown_cells(self._cells, 2 * len(self._cells.key))
        elif lacking == STACK:
            self._stack = np.zeros(2 * len(self._stack), np.int32)
        else:
            groups = self._groups
            more = grown_cells(groups.cells, 2 * len(groups.cells.key))
            self._groups = groups._replace(cells=more, slot=np.full(2 * len(groups.slot), FREE, np.int64))
            rehash_kernel(self._groups, int(self._known.state[GROUPS]))

    # ------------------------------------------------------------ a holder of nodes

    def prune(self, now: Any) -> None:
        """See Holder.prune: what is not known yet is computed while its children are there."""
        if self._whole:
            self._fit()
            self._compute()
            if self._closes:
                held = [holder.held() for holder in self._store.holders if holder is not self]
                close_kernel(self._store.arena, np.concatenate(held).astype(np.int64))

    def held(self) -> AnyArray:
        """See Holder.held."""
        return np.zeros(0, np.int32)

    def renumber(self, forward: AnyArray) -> None:
        """See Holder.renumber: a union that became its left side has moved to where that is, which came first."""
        if not self._whole:
            self._known.stamp[:] = 0
            return
        moved = np.flatnonzero(forward > np.maximum.accumulate(np.concatenate([[0], forward[:-1]])))
        known, n = self._known, len(moved) + 1
        for column in known[:2]:
            column[1:n] = column[moved]
        known.stamp[1:n], known.stamp[n:] = known.state[SERIAL], 0
        self._done = n
        used = np.zeros(int(known.state[USED]), np.int64)
        mark_cells(known, n, used)
        kept = np.flatnonzero(used)
        places = np.cumsum(used) - 1
        known.first[:n] = places[known.first[:n]]
        for array in self._cells:
            array[: len(kept)] = array[kept]
        known.state[USED] = len(kept)
