"""The second pass: what chooses among matches, where WHERE asks about whole matches first.

Where a condition cannot be decided event by event (`a.x + b.x > c.x`, an aggregate), all matches are listed, Spark
evaluates the condition, and what is left competes here, in the same task and without a shuffle: by strategy,
consumption and AFTER MATCH SKIP, in this order (runtime.program.Later). Slow, since every match is listed, but right.

A match is sent with its key, the places of its events in the stream and their labels, and how far its start reaches.
Matches that end at one event come one after the other, those of a key in the order of their ends, and keys one after
the other: so what is held is what competes at one end, or for AFTER MATCH SKIP alone one match for each start that is
still open. Only where matches become known late, or all keys are consumed together, those of a key, or all, are held.

WITH TIMEOUTS the first pass gives a row for *every* start, behind the matches of its key. It counts if no match that
WHERE leaves begins there, and nothing dropped the start while its window was open.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from runtime import capacities
from runtime.arrays import AnyArray, IntArray
from runtime.compact_set.matches import Matches
from runtime.program import Later, Program, Window
from runtime.selection import select
from runtime.selection.distinct import CREATED, Distinct

KEY, KIND, UNTIL, PLACES, LABELS = (
    "__cersql_rivals", "__cersql_kind", "__cersql_until", "__cersql_places", "__cersql_labels",
)  # fmt: skip
COLUMNS = (KEY, KIND, UNTIL, PLACES, LABELS)
MATCH, TIMEOUT, WITNESS = 0, 1, 2
"""A match; a start without one; what only says that its start has a match: it was given before (on a stream), or has
gaps where STRICT allows none."""

FOREVER = int(np.iinfo(np.int64).max)

_runs = itertools.count()
_KEYS = 1 << 40  # more keys than a worker can hold rows


class Places(NamedTuple):
    """By row: its place in the stream, and the last place up to which what begins there is inside its window; `own`:
    its position in the stream of its key."""

    at: IntArray | None = None
    until: IntArray | None = None
    own: IntArray | None = None


def first_number() -> int:
    """From where the numbers of keys of a new run over some rows begin: a task of a stream has many runs."""
    return next(_runs) * _KEYS


def columns(matches: Matches, held: AnyArray, places: Places, base: int, witness: bool = False) -> list[pa.Array]:
    """What each match is chosen by, in the order of COLUMNS. `held`: which of its events some variable holds."""
    at = matches.positions if places.at is None else places.at[matches.positions]
    begins = matches.positions[matches.offsets[:-1]]
    until = np.full(matches.n, FOREVER) if places.until is None else places.until[begins]
    kind = np.full(matches.n, TIMEOUT if matches.timeout else WITNESS if witness else MATCH, np.int8)
    if places.own is not None and not matches.timeout:
        kind[_have_gaps(matches, places.own[matches.positions], held)] = WITNESS
    offsets = pa.array(matches.offsets.astype(np.int32))
    return [
        pa.array(matches.key + base, pa.int64()),
        pa.array(kind),
        pa.array(until, pa.int64()),
        pa.ListArray.from_arrays(offsets, pa.array(at, pa.int64())),
        pa.ListArray.from_arrays(offsets, pa.array(matches.labels, pa.int32())),
    ]


def _have_gaps(matches: Matches, positions: IntArray, held: AnyArray) -> AnyArray:
    """bool[n]: is sup not an interval?"""
    of = np.repeat(np.arange(matches.n), np.diff(matches.offsets))[held]
    low, high = np.full(matches.n, FOREVER), np.full(matches.n, -1)
    np.minimum.at(low, of, positions[held])
    np.maximum.at(high, of, positions[held])
    count = np.bincount(of, minlength=matches.n)
    result: AnyArray = (count > 0) & (high - low + 1 != count)
    return result


# ---------------------------------------------------------------- how far a start reaches


def reaches(window: Window | None, clocks: AnyArray, keys: IntArray | None, positions: IntArray | None) -> IntArray:
    """int64[n]: the last event of the same key that is inside the window of each; keys are adjacent."""
    n = len(clocks)
    borders = np.array([n]) if keys is None else np.append(np.flatnonzero(np.diff(keys)) + 1, n)
    index = np.arange(n, dtype=np.int64)
    last = borders[np.searchsorted(borders, index, side="right")] - 1 if n else index
    if window is None:
        return last
    values = clocks
    if window.kind == "events":
        values = index if positions is None else positions
    return _last_inside(values, index, last, window)


def _last_inside(values: AnyArray, low: IntArray, high: IntArray, window: Window) -> IntArray:
    """For each event the last one from `low` to `high` that is inside its window, all by bisection at once."""
    own, low, high = values, low.copy(), high.copy()
    while (low < high).any():
        middle = (low + high + 1) // 2
        length = values[middle] - own
        fits = length < window.size if window.strict else length <= window.size
        low, high = np.where(fits, middle, low), np.where(fits, high, middle - 1)
    return low


def reaches_in_all(
    window: Window | None, clocks: AnyArray, keys: IntArray | None, positions: IntArray | None, at: IntArray
) -> IntArray:
    """The same as places in the stream of all keys, where each event has the place `at`: a start is open until an event
    comes that is out of its window, of whatever key where that is one of time."""
    n = len(clocks)
    if window is None:
        return np.full(n, FOREVER)
    if window.kind == "time":
        order = np.argsort(at)
        found = np.empty(n, np.int64)
        found[order] = at[order][_last_inside(clocks[order], np.arange(n), np.full(n, n - 1), window)]
        return found
    last = reaches(window, clocks, keys, positions)
    after = np.minimum(last + 1, n - 1)
    ends = (after == last) if keys is None else (after == last) | (keys[after] != keys)
    return np.where(ends, FOREVER, at[after] - 1)


# ---------------------------------------------------------------- choosing


class Rival:
    """A match that waits: by what it is chosen, how far its start reaches, and the row that it is."""

    __slots__ = ("key", "match", "row", "until")

    def __init__(self, key: int, match: select.Match, until: int, row: int) -> None:
        self.key, self.match, self.until, self.row = key, match, until, row


class Dropped:
    """What the matches that were given have dropped: starts up to `last`, at the event `end`. In ascending order."""

    def __init__(self) -> None:
        self.lasts: list[int] = []
        self.ends: list[int] = []
        self.begins: list[int] = []

    def note(self, last: int, end: int, begin: int) -> None:
        self.lasts.append(last)
        self.ends.append(end)
        self.begins.append(begin)


def chosen(
    later: Later, program: Program, names: tuple[str, ...], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The columns `names` of the matches that win, and of the starts that timed out."""
    choice = Choosing(later, program.labels, program.variables, names)
    for batch in batches:
        if batch.num_rows:
            yield from choice.read(batch)
    yield from choice.rest()


class Choosing:
    """One run of the second pass, over one partition."""

    def __init__(
        self, later: Later, labels: tuple[frozenset[str], ...], variables: tuple[str, ...], names: tuple[str, ...]
    ) -> None:
        self._later, self._labels, self._variables = later, labels, variables
        self._in_all = later.consume == "ANY"
        self._whole = later.ends_late or self._in_all  # are the matches of a key, or of all, held?
        self._by_start = later.skip is not None and later.skip.waits
        self._rows = _Rows(names)
        self._key: int | None = None  # of what waits
        self._end = -1  # of the last match that was read
        self._dropped = -1  # the last place at which no match of the key may begin any more
        self._waiting: list[Rival] = []  # those of one end; of a key, or of all keys
        self._best: dict[int, Rival] = {}  # by start, for AFTER MATCH SKIP alone
        self._most = capacities.HELD_MATCHES
        self._timeouts: list[Rival] = []  # that wait until all keys are read
        self._matched: set[tuple[int, int]] = set()
        self._drops: dict[int, Dropped] = defaultdict(Dropped)
        self._given: list[int] = []  # rows
        self._distinct = (
            None if later.distinct is None else Distinct(frozenset(later.distinct), labels, later.ends_late)
        )

    def read(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """What this batch makes known."""
        row = self._rows.add(batch)
        created = None if self._distinct is None else batch.column(CREATED).to_pylist()
        read = zip(*(batch.column(name).to_pylist() for name in COLUMNS), strict=True)
        for number, (key, kind, until, places, labels) in enumerate(read, row):
            match = select.Match(tuple(places), tuple(labels), tuple(self._labels[i] for i in labels))
            rival = Rival(key, match, until, number)
            if kind == TIMEOUT:
                self._time_out(rival)
                continue
            if self._later.timeouts:
                self._matched.add((key, match.begin))
            if (
                self._distinct is not None
                and created is not None
                and not self._distinct.is_new(key, match, created[number - row])
            ):
                continue
            if kind == MATCH:
                self._compete(rival)
        if self._by_start and not self._whole and self._best:
            self._skip(self._end)
        yield from self._output()
        self._rows.keep([*self._waiting, *self._best.values(), *self._timeouts])

    def rest(self) -> Iterator[pa.RecordBatch]:
        """What the end of the partition makes known."""
        self._settle()
        for rival in self._timeouts:
            self._decide(rival)
        self._timeouts = []
        yield from self._output()

    def _output(self) -> Iterator[pa.RecordBatch]:
        if self._given:
            yield from self._rows.take(sorted(self._given))
        self._given = []

    @property
    def held(self) -> int:
        """How many matches wait."""
        return len(self._waiting) + len(self._best) + len(self._timeouts)

    # ------------------------------------------------------------ matches

    def _compete(self, rival: Rival) -> None:
        later = self._later
        if later.strategy == "ALL" and later.consume == "NONE" and later.skip is None:
            self._given.append(rival.row)
            return
        if rival.key != self._key:
            if not self._in_all:
                self._settle()
                self._dropped = -1
            self._key = rival.key
        elif self._waiting and not self._whole and rival.match.end != self._waiting[0].match.end:
            self._settle()
        self._end = rival.match.end
        if rival.match.begin <= self._dropped and not self._whole:
            return
        if self._by_start:
            begin = rival.match.begin
            held = self._best.get(begin)
            self._best[begin] = rival if held is None else self._longer(held, rival)
            return
        self._waiting.append(rival)
        if len(self._waiting) > self._most and not self._whole:
            self._reduce()

    def _longer(self, a: Rival, b: Rival) -> Rival:
        """Of two matches of one start that which AFTER MATCH SKIP would take."""
        return a if select.longest([a.match, b.match], self._variables) is a.match else b

    def _reduce(self) -> None:
        """Leave out what can no longer be chosen among the matches of one end."""
        later = self._later
        if later.skip is None:
            self._waiting = self._strongest(self._waiting)
        else:  # no two of one start can be taken
            by_start: dict[int, list[Rival]] = defaultdict(list)
            for rival in self._waiting:
                by_start[rival.match.begin].append(rival)
            self._waiting = [r for rivals in by_start.values() for r in self._taken(rivals, -1)]
        self._most = capacities.HELD_MATCHES + 2 * len(self._waiting)

    def _settle(self) -> None:
        """Choose among what waits: of one end, or one end after the other."""
        if self._by_start:
            self._skip(None)
        waiting, self._waiting = self._waiting, []
        for _, rivals in itertools.groupby(sorted(waiting, key=_end), key=_end):
            self._choose([rival for rival in rivals if rival.match.begin > self._dropped])
        self._most = capacities.HELD_MATCHES

    def _choose(self, rivals: list[Rival]) -> None:
        """Of the matches that end at one event."""
        later = self._later
        if later.skip is not None:
            for rival in self._taken(rivals, self._dropped):
                self._drop(rival, select.last_dropped(rival.match, later.skip))
            return
        winners = self._strongest(rivals)
        self._given += [rival.row for rival in winners]
        if winners and later.consume != "NONE":
            self._note(winners[0], winners[0].match.end)

    def _strongest(self, rivals: list[Rival]) -> list[Rival]:
        return [rivals[i] for i in select.winners([r.match.support for r in rivals], self._later.strategy)]

    def _taken(self, rivals: list[Rival], dropped: int) -> list[Rival]:
        assert self._later.skip is not None
        by_match = {id(rival.match): rival for rival in rivals}
        taken = select.taken((r.match for r in rivals), self._later.skip, self._variables, dropped)
        return [by_match[id(match)] for match in taken]

    def _skip(self, end: int | None) -> None:
        """AFTER MATCH SKIP alone, among the starts whose window had closed before this place (None: all)."""
        skip = self._later.skip
        assert skip is not None
        for begin in sorted(self._best):
            if end is not None and self._best[begin].until >= end:
                break
            rival = self._best.pop(begin)
            if begin > self._dropped:
                self._drop(rival, select.last_dropped(rival.match, skip))

    def _drop(self, rival: Rival, last: int) -> None:
        self._given.append(rival.row)
        self._note(rival, last)

    def _note(self, rival: Rival, last: int) -> None:
        self._dropped = last
        if self._later.timeouts:
            self._drops[0 if self._in_all else rival.key].note(last, rival.match.end, rival.match.begin)

    # ------------------------------------------------------------ timeouts

    def _time_out(self, rival: Rival) -> None:
        if self._in_all:
            self._timeouts.append(rival)
            return
        if rival.key == self._key:
            self._settle()
        self._decide(rival)

    def _decide(self, rival: Rival) -> None:
        begin = rival.match.begin
        if (rival.key, begin) not in self._matched and not self._is_dropped(rival, begin):
            self._given.append(rival.row)

    def _is_dropped(self, rival: Rival, begin: int) -> bool:
        drops = self._drops.get(0 if self._in_all else rival.key)
        at = bisect_left(drops.lasts, begin) if drops is not None else 0
        if drops is None or at == len(drops.lasts):
            return False
        if self._by_start:
            return drops.begins[at] < begin
        return drops.ends[at] <= rival.until


def _end(rival: Rival) -> int:
    return rival.match.end


class _Rows:
    """Rows of which some are held: by number, from batch to batch."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = list(names)
        self._batches: list[pa.RecordBatch] = []
        self._n = 0

    def add(self, batch: pa.RecordBatch) -> int:
        """The number of its first row."""
        self._batches.append(batch.select(self._names))
        self._n += batch.num_rows
        return self._n - batch.num_rows

    def take(self, rows: list[int]) -> Iterator[pa.RecordBatch]:
        yield from pa.Table.from_batches(self._batches).take(pa.array(rows, pa.int64())).to_batches()

    def keep(self, held: list[Rival]) -> None:
        """Forget the rows of others, and number these anew; not each time, since that copies what is held."""
        if held and self._n <= capacities.HELD_MATCHES + 2 * len(held):
            return
        held.sort(key=lambda rival: rival.row)
        if held:
            self._batches = list(self.take([rival.row for rival in held]))
        else:
            self._batches = []
        self._n = len(held)
        for row, rival in enumerate(held):
            rival.row = row
