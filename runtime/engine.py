"""The engine, one for all programs: a stepper reads events and leaves roots, of which a selector gives matches.

The engine is incremental: a stream may be cut into feeds anywhere and gives the same matches. Enumeration is lazy:
whoever stops reading stops the work. Its whole state is what the store's arena and its holders hold: flat arrays, and
the table of states that were met.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from itertools import pairwise
from typing import assert_never, get_args

import numpy as np

from runtime import nodes
from runtime.arrays import AnyArray, IntArray
from runtime.chain_cea import NOBODY
from runtime.compact_set.matches import Matches
from runtime.compact_set.semirings import Lift
from runtime.compact_set.store import ChainedWalks, PlainWalks, ProductWalks, Store, Walks
from runtime.compact_set.trends import Trends
from runtime.compact_set.within import Within, within_of
from runtime.deferred import Deferred
from runtime.errors import InternalError
from runtime.pcea import Parallel
from runtime.program import Family, Program, check_version
from runtime.ranged import Ranged
from runtime.selection.any_timeouts import DropsOfAll
from runtime.selection.key_events import Dropped
from runtime.selection.late import Late
from runtime.selection.selector import Picking, Selector
from runtime.selection.skipping import Skipping
from runtime.selection.taking import Taking
from runtime.selection.timeouts import Drops, Watch
from runtime.steppers.deferred_stepper import DeferredStepper
from runtime.steppers.each_key import EachKey
from runtime.steppers.general import GeneralStepper
from runtime.steppers.late_stacks_stepper import LateStacksStepper
from runtime.steppers.pcea_stepper import PceaStepper
from runtime.steppers.ranged_stepper import RangedStepper
from runtime.steppers.register_stepper import RegisterStepper
from runtime.steppers.stepper import ALL_REPORT, NO_KEYS, Feed, Stepper
from runtime.steppers.table import TableStepper
from runtime.steppers.two_stacks_stepper import TwoStacksStepper
from runtime.two_stacks import TwoStacks


class Found(Enum):
    """What a step of reading has come to."""

    ROOTS = "there may be roots"
    FED = "a feed, or the part of one key in it, is read"
    ENDED = "a key has ended, and its roots are taken"


class Engine:
    """One program at work on one ordered stream, or on many that follow each other by key.

    ExecutionError PROGRAM_VERSION if this release cannot run the program.
    """

    def __init__(self, program: Program, dropped: Dropped | None = None, chains: bool = False) -> None:
        """`dropped`: watch the program's timeouts, but for the starts that this says were dropped. `chains`: matches
        may come with what they begin with as chains (Matches.beginnings), where they are listed as they are found."""
        check_version(program)
        own = program if dropped is None or program.timeouts is None else program.timeouts
        self._program = own
        self._within = within_of(own)
        self._store = Store(own.window, walks_of(own, self._within, chains and own is program))
        self._stepper = stepper_of(own, self._store, logs=dropped is not None)
        if dropped is None:
            self._selector = selector_of(own)(own, self._store, self._stepper)
        else:
            self._selector = Watch(program, self._store, self._stepper, dropped)
        self._store.holders += [self._stepper, self._selector]
        self._by_key = self._stepper.by_key or self._selector.by_key
        self._key, self._position = 0, -1  # of the last event
        self._watching = Watching(program) if dropped is None and program.timeouts is not None else None

    def feed(
        self,
        symbols: AnyArray,
        times: AnyArray,
        positions: IntArray | None = None,
        keys: IntArray | None = None,
        rows: IntArray | None = None,
        mute: AnyArray | None = None,
    ) -> Iterator[Matches]:
        """Read events in order; yield the matches that end at them, in chunks of bounded size.

        symbols: int64[n] (or int64[n, words + terms + weights]), bit i for guard i; times: int64[n] or float64[n],
        non-decreasing in a key; positions: int64[n] in the key's stream, where a gap stands for events without any
        guard (default: consecutive); keys: int64[n], equal ones adjacent, a new one begins a new stream; rows:
        int64[n], increasing in no particular way, what the matches mention (default: the positions); mute: bool[n], do
        not report the matches that end here. O(n · live states) + output.
        """
        if not len(symbols):
            return
        feed = self._completed(symbols, times, positions, keys, rows, mute)
        yield from self._given(self._read(feed))
        if self._watching is not None:
            yield from self._watching.read(feed)

    def list_new(self, first: int) -> None:
        """From now on list only matches that mention a row which is not below `first`; none such has been read yet. (A
        match of a program with products may be listed without one.) It is not kept with the engine."""
        self._store.list_new(first)

    def count(
        self,
        symbols: AnyArray,
        times: AnyArray,
        positions: IntArray | None = None,
        keys: IntArray | None = None,
        mute: AnyArray | None = None,
    ) -> int:
        """Read events; only count the matches, by nodes where none need be chosen."""
        if not len(symbols):
            return 0
        if self._watching is not None and self._watching.needs_matches:
            return sum(matches.n for matches in self.feed(symbols, times, positions, keys, None, mute))
        feed = self._completed(symbols, times, positions, keys, None, mute)
        total = sum(self._number(found) for found in self._read(feed))
        if self._watching is not None:
            total += sum(matches.n for matches in self._watching.read(feed))
        return total

    def trends(self, lift: Lift, of_row: IntArray, width: int, uncut: bool) -> Trends:
        """What sums up the matches from now on (see `sum_up`); the program's selector lists none to choose."""
        chosen = self._selector.lists_to_count or self._program.counted is not None
        if self._watching is not None or chosen or not self._stepper.sums_up:
            raise InternalError("INTERNAL", detail="matches that are chosen one by one cannot be summed up")
        closes = not (self._stepper.looks_below or self._selector.looks_below)
        found = Trends(self._store, lift, of_row, width, uncut, closes)
        self._store.holders.append(found)
        return found

    def sum_up(
        self,
        trends: Trends,
        symbols: AnyArray,
        times: AnyArray,
        positions: IntArray | None = None,
        keys: IntArray | None = None,
        rows: IntArray | None = None,
        mute: AnyArray | None = None,
    ) -> None:
        """Read events; sum up the matches that end at them."""
        if len(symbols):
            self._sum(trends, self._read(self._completed(symbols, times, positions, keys, rows, mute)))

    def sum_rest(self, trends: Trends) -> None:
        """As `flush`, but sum them up."""
        self._sum(trends, self._end_key(0))

    def _sum(self, trends: Trends, steps: Iterator[Found]) -> None:
        for found in steps:
            if found is Found.ROOTS:
                self._selector.sum_up(trends)

    def flush(self) -> Iterator[Matches]:
        """The stream has ended: yield what only becomes known by that."""
        yield from self._given(self._end_key(0))
        if self._watching is not None:
            yield from self._watching.ended()

    def count_rest(self) -> int:
        """As `flush`, but only how many they are."""
        if self._watching is not None:
            return sum(matches.n for matches in self.flush())
        return sum(self._number(found) for found in self._end_key(0))

    def least_row(self) -> int:
        """No later match mentions a row below this. Compacts the arena; O(nodes)."""
        least = self._selector.least_row()
        return least if self._watching is None else min(least, self._watching.least_row())

    @property
    def stepper(self) -> Stepper:
        """What reads the events, for those who look at it."""
        return self._stepper

    @property
    def nodes(self) -> int:
        """Nodes in the arena, for statistics."""
        return self._store.nodes

    # ------------------------------------------------------------ reading

    def _completed(
        self,
        symbols: AnyArray,
        times: AnyArray,
        positions: IntArray | None,
        keys: IntArray | None,
        rows: IntArray | None,
        mute: AnyArray | None,
    ) -> Feed:
        """The events with nothing left out."""
        times = np.ascontiguousarray(times, np.float64 if np.issubdtype(times.dtype, np.floating) else np.int64)
        keys = NO_KEYS if keys is None else keys
        if positions is None:
            positions = self._stepper.next_positions(self._position, self._key, len(symbols), keys)
        rows = positions if rows is None else rows
        return Feed(
            symbols=self._weighed(symbols, rows),
            times=times,
            positions=positions,
            rows=rows,
            clocks=positions if self._store.by_position else times,
            keys=keys,
            mute=ALL_REPORT if mute is None else mute,
        )

    def _weighed(self, symbols: AnyArray, rows: IntArray) -> AnyArray:
        """Remember what rows weigh; what is left of their symbols is what steppers read."""
        n = self._program.n_weights
        if not n:
            return symbols
        if self._within is not None:
            weights = self._within.weights
            if weights.are_many:
                weights.forget(self.least_row())
            weights.put(rows, symbols[:, -n:])
        own = symbols[:, :-n]
        return np.ascontiguousarray(own[:, 0] if own.shape[1] == 1 else own)

    def _read(self, feed: Feed) -> Iterator[Found]:
        """Read a feed; yields what has been found before it goes on."""
        if not self._by_key:
            yield from self._step(feed)
            self._key = int(feed.keys[-1]) if len(feed.keys) else self._key
            return
        borders = [0, *(np.flatnonzero(np.diff(feed.keys)) + 1).tolist(), len(feed.times)]
        for begin, end in pairwise(borders):
            key = int(feed.keys[begin]) if len(feed.keys) else self._key
            if key != self._key:
                yield from self._end_key(key)
            yield from self._step(feed.part(begin, end))

    def _step(self, feed: Feed) -> Iterator[Found]:
        store, feed = self._store, self._stepper.measured(feed)
        store.begin(feed.clocks)
        for _ in self._stepper.read(feed._replace(rows=self._selector.rows(feed))):
            yield Found.ROOTS
        store.n_roots = 0
        store.now, self._position = feed.clocks[-1], int(feed.positions[-1])
        yield Found.FED

    def _end_key(self, following: int) -> Iterator[Found]:
        """The key that is being read has ended; the next one follows."""
        self._stepper.end_key()
        yield Found.ROOTS
        self._store.n_roots = 0
        yield Found.ENDED
        if self._by_key:
            self._stepper.begin_key(following)
            self._store.forget()
            self._key, self._position = following, -1

    def _given(self, steps: Iterator[Found]) -> Iterator[Matches]:
        """The matches that steps of reading make known; who watches starts hears of them."""
        for found in steps:
            for matches in self._matches(found):
                if self._watching is not None:
                    self._watching.note(matches)
                yield matches

    def _matches(self, found: Found) -> Iterator[Matches]:
        match found:
            case Found.ROOTS:
                return self._selector.take()
            case Found.FED:
                return self._selector.fed()
            case Found.ENDED:
                return self._selector.ended(self._key)
        assert_never(found)

    def _number(self, found: Found) -> int:
        if found is Found.ROOTS:
            return self._selector.count()
        return sum(matches.n for matches in self._matches(found))


# ---------------------------------------------------------------- which stepper, which selector


def stepper_of(program: Program, store: Store, logs: bool = False) -> Stepper:
    """The stepper that runs a program. `logs`: see TableStepper and GeneralStepper."""
    if program.family not in get_args(Family):  # it came from elsewhere, as bytes
        raise InternalError("INTERNAL", detail=f"no engine for the family {program.family!r}")
    match program.family:
        case "plain" | "composed" | "timed":
            return TableStepper(program, store, logs)
        case "bound":
            return GeneralStepper(program, store, logs)
        case "registers" | "skipping":
            return RegisterStepper(program, store, logs)
        case "deferred":
            return DeferredStepper(program, store)
        case "ranged":
            return RangedStepper(program, store)
        case "two stacks":
            waits = isinstance(program.machine, TwoStacks) and program.machine.late != NOBODY
            return (LateStacksStepper if waits else TwoStacksStepper)(program, store)
        case "pcea":
            return PceaStepper(program, store)
        case "any":
            machine = program.machine
            general = bool(program.terms) or (machine is not None and machine.has(nodes.NotBeforeEach))
            return EachKey(store, lambda: (GeneralStepper if general else TableStepper)(program, store))
    assert_never(program.family)


def walks_of(program: Program, within: Within | None, chains: bool = False) -> Walks:
    """How the sets of a program are walked. `chains`: nobody but who gets the matches looks at their events."""
    machine = program.machine
    if isinstance(machine, Parallel | Deferred | Ranged):
        return ProductWalks(len(machine.guard), machine.label_of, within=within)
    if isinstance(machine, TwoStacks):
        return ProductWalks(len(machine.guard), np.arange(len(program.labels), dtype=np.int64), True, within)
    alone = selector_of(program) is Selector and program.most_at_end is None and program.timeouts is None
    return (ChainedWalks if chains and alone else PlainWalks)(within)


def selector_of(program: Program) -> type[Selector]:
    """What chooses among the matches of a program."""
    if program.skip is not None and not program.skip.waits:
        return Taking
    late = program.ends_late or program.family == "bound"
    chooses_late = program.choose != "ALL" or program.skip is not None
    if program.most_at_end is not None and chooses_late:
        raise InternalError("INTERNAL", detail="matches that are chosen late are not bounded at each end")
    if program.choose != "ALL" or (program.skip is not None and late):
        return Late
    if program.skip is not None:
        return Skipping
    return Picking if program.pick != "ALL" else Selector


# ---------------------------------------------------------------- WITH TIMEOUTS


class Watching:
    """The starts that time out, found by a second engine over the same events; and what drops them."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._of_all = DropsOfAll(program, self._watched) if program.family == "any" else None
        self._drops = Drops(program)
        self._engine = Engine(program, self._drops.of_key)

    @property
    def needs_matches(self) -> bool:
        return self._of_all is not None or self._drops.needs_matches

    def note(self, matches: Matches) -> None:
        """Matches that were given."""
        (self._drops if self._of_all is None else self._of_all).note(matches)

    def read(self, feed: Feed) -> Iterator[Matches]:
        """The events that were read."""
        if self._of_all is not None:
            self._of_all.read(feed)
            return iter(())
        return self._engine.feed(feed.symbols, feed.times, feed.positions, keys_of(feed), feed.rows)

    def ended(self) -> Iterator[Matches]:
        """The stream has ended."""
        return self._engine.flush() if self._of_all is None else self._of_all.timeouts()

    def _watched(self, feed: Feed, dropped: Dropped) -> Iterator[Matches]:
        engine = Engine(self._program, dropped)
        yield from engine.feed(feed.symbols, feed.times, feed.positions, keys_of(feed), feed.rows)
        yield from engine.flush()

    def least_row(self) -> int:
        return self._engine.least_row() if self._of_all is None else self._of_all.least_row()


def keys_of(feed: Feed) -> IntArray | None:
    return feed.keys if len(feed.keys) else None


def engine_for(program: Program, chains: bool = False) -> Engine:
    """The engine that runs this program. ExecutionError PROGRAM_VERSION if this release cannot."""
    return Engine(program, chains=chains)
