"""The compact set of one engine: its arena, the roots that wait to be listed, and room for more.

Whoever holds nodes (a stepper its runs, a selector the matches that it chooses from) is a *holder*. When the arena is
full, all holders drop what has left the window, what they still reach is moved together, and they learn the new
numbers. The arena grows where more than half of it is alive, so compacting is amortized O(1).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np

from runtime import capacities
from runtime.arrays import AnyArray, IntArray, grown
from runtime.compact_set import chained, enumeration, newest, products, tecs
from runtime.compact_set.ends import Ends
from runtime.compact_set.matches import Matches
from runtime.compact_set.within import Within
from runtime.errors import ExecutionError
from runtime.program import Window

NOTHING = int(np.iinfo(np.int64).max)  # the least row of what mentions none


class Holder(Protocol):
    """Who holds nodes."""

    def prune(self, now: Any) -> None:
        """Drop what has left the window at the clock `now`."""

    def held(self) -> AnyArray:
        """int32[n]: the nodes that it holds."""

    def renumber(self, forward: AnyArray) -> None:
        """Node x is now forward[x]."""


class Store:
    """`roots` of which the first `n_roots` are filled; `whole`: what is held leaves the window as a whole, or not at
    all, so that no part of a set is cut off where the arena is compacted; `now`: the clock of the last event."""

    _first_new: int | None = None  # only matches with such a row, or a greater one, are listed; None: all …
    _fresh = 1  # … and nodes below this mention none

    def __init__(self, window: Window | None, walks: Walks | None = None) -> None:
        self.measure(window)
        self.clock = np.dtype(np.int64)
        self.whole = False
        self.holders: list[Holder] = []
        self.n_roots = 0
        self.now: Any = 0
        self.arena = tecs.new_arena(capacities.NODES, self.clock)
        self.roots = tecs.new_roots(capacities.ROOTS, self.clock)
        self._walks = PlainWalks() if walks is None else walks
        self._crowded = self._stuck = -1  # the events before which there was no room for nodes, and for roots

    def measure(self, window: Window | None) -> None:
        """This is the window; before anything is read."""
        self.by_position, self.unbounded = window is None or window.kind == "events", window is None
        self._size = NOTHING if window is None else window.size  # with fractions, perhaps, where clocks have them
        self.bounds = tecs.Bounds(np.int64(self._size), strict=bool(window and window.strict))

    def __getstate__(self) -> dict[str, Any]:
        """Between two feeds, with as many nodes as there are and some room; without roots, which are made again."""
        size = self.nodes
        arena = tecs.Arena._make(
            column if name == "size" else column[: size + max(capacities.FEW_NODES, size // 4)]
            for name, column in self.arena._asdict().items()
        )
        return dict(self.__dict__, arena=arena, roots=None, n_roots=0, _first_new=None)

    def __setstate__(self, known: dict[str, Any]) -> None:
        self.__dict__.update(known)
        self.roots = tecs.new_roots(capacities.FEW_NODES, self.clock)

    def begin(self, clocks: AnyArray) -> None:
        """A feed begins, whose clocks are these; the first one shows their type."""
        self._crowded = -1
        if clocks.dtype != self.clock:
            self.clock = clocks.dtype
            self.bounds = self.bounds._replace(width=self.clock.type(self._size))
            self.arena = tecs.new_arena(len(self.arena.row), self.clock)
            self.roots = tecs.new_roots(len(self.roots.node), self.clock)

    @property
    def space(self) -> tecs.Space:
        """What kernels write and ask."""
        return tecs.Space(self.arena, self.roots, self.bounds)

    @property
    def nodes(self) -> int:
        """Nodes in the arena, for statistics."""
        return int(self.arena.size[0])

    # ------------------------------------------------------------ room

    def make_room(self, now: Any, at: int) -> None:
        """Compact before event `at`, and double the arena if more than half of it is alive (so that compacting is
        amortized O(1)), or if what compacting left was not enough for this one event of many live states."""
        self.compact(now)
        if at == self._crowded or 2 * self.arena.size[0] > len(self.arena.row) - capacities.SPARE_NODES:
            self.grow()
        self._crowded = at

    def grow(self) -> None:
        """Room for as many nodes again."""
        self.arena = tecs.grown_arena(self.arena, 2 * len(self.arena.row))

    def listed_before(self, at: int, for_roots: bool) -> None:
        """The kernel stopped before event `at`, and its roots have been listed; if it stopped there for want of roots
        the last time, too, then bring more."""
        if for_roots and at == self._stuck:
            self.more_roots(2 * len(self.roots.node))
        self._stuck = at if for_roots else -1

    def more_roots(self, capacity: int) -> None:
        """Room for so many roots, and those that are there."""
        if capacity > len(self.roots.node):
            self.roots = tecs.Roots._make(grown(column, capacity) for column in self.roots)

    def add_root(self, node: int, key: int, begin: int, end: int) -> None:
        """A root of what is known late: time has passed, and the window is looked at where its latest start was."""
        row = node, self.arena.start[node], key, begin, end
        for column, value in zip(self.roots, row, strict=True):
            column[self.n_roots] = value
        self.n_roots += 1

    def compact(self, now: Any | None = None) -> int:
        """Drop every node that no holder reaches inside the window, at `now` or the last event. Returns the least row
        that is still mentioned. O(nodes)."""
        now = self.clock.type(self.now if now is None else now)
        for holder in self.holders:
            holder.prune(now)
        nodes = np.concatenate([np.zeros(0, np.int32), *(holder.held() for holder in self.holders)])
        forward, bounds = np.zeros(self.nodes, np.int32), self.bounds
        if self.whole:
            now, bounds = self.arena.start[: self.nodes].max(), bounds._replace(width=self._ever)
        tecs.mark_kernel(self.arena, nodes, len(nodes), now, bounds, forward)
        least = int(tecs.slide_kernel(self.arena, forward))
        self._fresh = int(forward[: self._fresh].max(initial=0)) + 1
        for holder in self.holders:
            holder.renumber(forward)
        return least

    def forget(self) -> None:
        """Empty the arena; nobody holds a node."""
        tecs.empty(self.arena)
        self._fresh = 1

    @property
    def _ever(self) -> Any:
        """The width of a window that nothing leaves."""
        return np.float64(np.inf) if self.clock == np.float64 else np.int64(NOTHING)

    # ------------------------------------------------------------ output

    def list_new(self, first: int) -> None:
        """From now on list only matches with a row that is not below `first`; no node mentions such a one yet. Of sets
        with products others are listed, too."""
        self._first_new, self._fresh = first, self.nodes

    def listed(self) -> Iterator[Matches]:
        """The matches of all roots, in chunks that stay small whatever there is to list."""
        return self._chunks(None)

    def first_listed(self, most: int) -> Iterator[Matches]:
        """Of the matches of each end any so many. Of a set that goes on in vain at most a chunk is walked."""
        return self._chunks(Ends(most))

    def _chunks(self, ends: Ends | None) -> Iterator[Matches]:
        size = self.nodes
        if self._first_new is not None and self.n_roots:
            self._keep_new(self._first_new)
        if self.n_roots:
            yield from self._walked(ends)
        self.arena.size[0] = size  # without the parts of nodes

    def _keep_new(self, first: int) -> None:
        """Leave of the roots the parts with new rows."""
        n = self.nodes - self._fresh
        while self.nodes + n > len(self.arena.row):
            self.grow()
        part = np.empty(n, np.int32)
        newest.part_kernel(self.arena, self._fresh, first, part)
        self.n_roots = newest.keep_kernel(self.space, self._fresh, part, self.n_roots)

    def _walked(self, ends: Ends | None) -> Iterator[Matches]:
        self._walks.begin()
        # Few roots have few matches, mostly: chunks begin small, since to make a large one takes longer than that.
        events, root = min(capacities.CHUNK_EVENTS, capacities.EVENTS_OF_A_ROOT * self.n_roots), 0
        result = tecs.LISTING_FULL
        while result != tecs.FINISHED:
            probes = ends is not None and ends.is_full
            listing = new_listing(events, root, 1 if probes else capacities.CHUNK_MATCHES)
            result = self._walks.go_on(self, listing)
            n, root = int(listing.state[0]), int(listing.state[1])
            if n == 0:
                events *= 2  # a single match is longer than the chunk, if there is one
                continue
            end = int(listing.offsets[n])
            found = Matches(n, listing.offsets[: n + 1], listing.row[:end], listing.label[:end], listing.key[:n],
                            beginnings=self._walks.beginnings(n))  # fmt: skip
            if probes and ends is not None and ends.is_of_last(found):
                self._walks.begin()  # with the next root
                continue
            if not probes:
                events = max(events, min(capacities.CHUNK_EVENTS, 4 * events))
            if ends is not None:
                found = ends.bounded(found)
            if found.n:
                yield found

    def counted(self) -> int:
        """The number of matches of all roots. ExecutionError COUNT_OVERFLOW if no BIGINT can hold it."""
        if self.n_roots == 0:
            return 0
        total = self._walks.count(self)
        if total < 0:
            raise ExecutionError("COUNT_OVERFLOW", hint="Bound the pattern with WITHIN, or its loops by conditions.")
        return total


def new_listing(events: int, root: int, most: int = capacities.CHUNK_MATCHES) -> tecs.Listing:
    """Room for a chunk of at most so many matches with so many events in all, from that root on."""
    most = min(events, most)
    return tecs.Listing(
        offsets=np.zeros(most + 1, np.int64),
        row=np.empty(events, np.int64),
        label=np.empty(events, np.int32),
        key=np.empty(most, np.int64),
        state=np.array([0, root], np.int64),
    )


# ---------------------------------------------------------------- walks


class Walks(Protocol):
    """How sets are walked: those of unions and outputs, or those with products."""

    def begin(self) -> None: ...

    def go_on(self, store: Store, listing: tecs.Listing) -> int: ...

    def beginnings(self, n: int) -> chained.Beginnings | None: ...

    def count(self, store: Store) -> int: ...


class _Whole:
    """Lists matches with all their events."""

    def beginnings(self, n: int) -> chained.Beginnings | None:
        """How the n matches begin that have just been listed, where that is not among their events."""
        return None


class _Counting(_Whole):
    """Counts by walking small sets, and node by node where a set is large."""

    def __init__(self, whole: bool = False) -> None:
        self._walk, self._whole = tecs.new_walk(capacities.WALK), whole
        self._counts = tecs.new_counts(1, whole)

    def count(self, store: Store) -> int:
        """The number of matches of all roots, or OVERFLOW."""
        total, at = np.zeros(1, np.int64), 0
        if len(self._counts.number) < len(store.arena.row):
            self._counts = tecs.new_counts(len(store.arena.row), self._whole)
        while at != store.n_roots:
            at = tecs.count_kernel(store.space, at, store.n_roots, self._walk.stack_node, self._counts, total)
            if at == tecs.OVERFLOW:
                return at
            if at != store.n_roots:
                self._walk = tecs.grown_walk(self._walk)
        return int(total[0])


class PlainWalks(_Counting):
    """Walks of sets without products. `within`: the bounds that matches are within, if there are any."""

    def __init__(self, within: Within | None = None) -> None:
        super().__init__()
        self.within = within

    def begin(self) -> None:
        self._walk.top[0] = 0
        if self.within is not None:
            self.within.begin()

    def go_on(self, store: Store, listing: tecs.Listing) -> int:
        return self._listed(store, listing)

    def _listed(self, store: Store, listing: tecs.Listing, chains: chained.Chains | None = None) -> int:
        while True:
            bound = None
            if self.within is not None:
                bound = self.within.bound(len(store.arena.row), len(self._walk.path_row))
            result: int = enumeration.enumerate_kernel(store.space, self._walk, store.n_roots, listing, bound, chains)
            if result != tecs.WALK_FULL:
                return result
            self._walk = tecs.grown_walk(self._walk)

    def count(self, store: Store) -> int:
        return super().count(store) if self.within is None else self.within.count(store.space, store.n_roots)


class ChainedWalks(PlainWalks):
    """The same, which list what matches share at their beginnings as chains."""

    def __init__(self, within: Within | None = None) -> None:
        super().__init__(within)
        self._chains = chained.new_chains(capacities.CHAINS)

    def begin(self) -> None:
        super().begin()
        chained.forget(self._chains)

    def go_on(self, store: Store, listing: tecs.Listing) -> int:
        self._chains = chained.for_matches(self._chains, len(store.arena.row), len(listing.key))
        while True:
            result = self._listed(store, listing, chains=self._chains)
            if result != tecs.CHAINS_FULL:
                return result
            self._chains = chained.grown_chains(self._chains)

    def beginnings(self, n: int) -> chained.Beginnings | None:
        return chained.beginnings(self._chains, n)


class ProductWalks(_Counting):
    """Walks of sets with products. `label_of`: of the label of a node, or of several of one event taken together as
    bits, the label in the program; `longest`: the events of most matches; `whole`: the window cuts off no part of a
    root; `within`: the bounds that matches are within, by the labels of nodes."""

    def __init__(self, longest: int, label_of: IntArray, whole: bool = False, within: Within | None = None) -> None:
        super().__init__(whole)
        self._within = within
        self._products = products.new_product_walk(capacities.WALK, max(1, longest))
        self._label_of = label_of

    def begin(self) -> None:
        self._products.top[0] = 0
        if self._within is not None:
            self._within.begin()

    def go_on(self, store: Store, listing: tecs.Listing) -> int:
        while True:
            bound = None
            if self._within is not None:
                room = max(len(self._products.stack_node), len(self._products.path))
                bound = self._within.bound(len(store.arena.row), 1 + room)
            result: int = products.enumerate_products(
                store.space, self._products, store.n_roots, self._label_of, listing, bound
            )
            if result != tecs.WALK_FULL:
                return result
            self._products = products.grown_product_walk(self._products)
