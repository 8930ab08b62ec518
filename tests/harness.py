"""Runs a formula through the compiler and an engine, and gives its matches in the oracle's terms."""

from __future__ import annotations

import random
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt
import oracle

from planner import cel
from planner.apart import NOTHING_KNOWN, Demand, Demands
from planner.compile import compile_formula
from planner.formula import Formula
from planner.query import Skip
from runtime.compact_set.chained import events as events_of
from runtime.engine import engine_for
from runtime.program import NULL_CODE, WORD_BITS, Program

Ints = npt.NDArray[np.int64]
Found = dict[Hashable, list[oracle.Match]]


@dataclass(frozen=True)
class Options:
    """What a query says besides its formula and window."""

    strategy: str = "ALL"
    consume: str = "NONE"
    skip: Skip | None = None

    def given(self) -> dict[str, Any]:
        """As keyword arguments of the oracle and the compiler; nothing where nothing was chosen."""
        return {name: value for name, value in vars(self).items() if value != getattr(PLAIN, name)}


PLAIN = Options()


def compiled(
    formula: Formula,
    window: oracle.Window | None = None,
    options: Options = PLAIN,
    demands: Demands = NOTHING_KNOWN,
) -> Program:
    """The formula's Program."""
    return compile_formula(formula, window=window, **options.given(), demands=demands)


def demands_of(formula: Formula, stream: Sequence[oracle.Event]) -> dict[str, tuple[Demand, ...]]:
    """What is known of the types of which no event of the stream has another, too."""
    types = {part.type for part in formula.walk() if isinstance(part, cel.Event) and part.type is not None}
    several = {type for event in stream if len(types & event.true) > 1 for type in event.true}
    return {type: (Demand(0, type),) for type in types - several}


def symbols_of(program: Program, stream: Sequence[oracle.Event]) -> Ints:
    """The symbol of every event: bit i is set iff all of guard i is true. int64[n], or int64[n, words]."""
    symbols = np.zeros((len(stream), program.words + len(program.terms) + program.n_weights), np.int64)
    for row, event in enumerate(stream):
        for n, sql in enumerate(program.terms):
            value = event.value(sql)
            symbols[row, program.words + n] = NULL_CODE if value is None else value
        for bit, guard in enumerate(program.guards):
            if guard <= event.true:
                symbols[row, bit // WORD_BITS] |= 1 << (bit % WORD_BITS)
    return symbols if symbols.shape[1] > 1 else symbols[:, 0]


def times_of(stream: Sequence[oracle.Event]) -> npt.NDArray[Any]:
    exact = all(isinstance(event.time, int) for event in stream)
    return np.array([event.time for event in stream], np.int64 if exact else np.float64)


@dataclass
class Rows:
    """A stream as an engine is fed it, rows of one key adjacent. `ids` numbers the keys."""

    symbols: Ints
    times: npt.NDArray[Any]
    positions: Ints | None = None
    keys: Ints | None = None
    names: list[Hashable] = field(default_factory=lambda: [None])

    def __len__(self) -> int:
        return len(self.times)

    def cut(self, start: int, stop: int) -> tuple[Any, ...]:
        """Arguments of feed for the rows [start, stop)."""
        part = slice(start, stop)
        return (
            self.symbols[part],
            self.times[part],
            None if self.positions is None else self.positions[part],
            None if self.keys is None else self.keys[part],
        )


def rows_of(program: Program, stream: Sequence[oracle.Event], keyed: bool = False, drop: bool = False) -> Rows:
    """The stream as rows. `keyed`: by key, else the keys are ignored. `drop`: without rows that satisfy no guard."""
    parts = oracle.split(stream) if keyed else {None: list(stream)}
    events = [event for part in parts.values() for event in part]
    positions = np.array([n for part in parts.values() for n in range(len(part))], np.int64)
    keys = np.array([n for n, part in enumerate(parts.values()) for _ in part], np.int64)
    symbols = symbols_of(program, events)
    rows = Rows(symbols, times_of(events), None, keys if keyed else None, list(parts))
    if program.family == "any":  # all keys in the order of the whole stream
        ids = {key: n for n, key in enumerate(parts)}
        whole = np.array([ids[event.key if keyed else None] for event in stream], np.int64)
        return Rows(symbols_of(program, stream), times_of(stream), None, whole if keyed else None, list(parts))
    if drop:
        kept = symbols != 0 if symbols.ndim == 1 else (symbols[:, : program.words] != 0).any(axis=1)
        rows = Rows(symbols[kept], rows.times[kept], positions[kept], keys[kept] if keyed else None, rows.names)
    return rows


def decode(program: Program, rows: Rows, batches: Iterable[Any]) -> Found:
    """The engine's batches of matches as matches of the oracle, by key."""
    found: Found = {}
    for batch in batches:
        for k in range(batch.n):
            part = slice(int(batch.offsets[k]), int(batch.offsets[k + 1]))
            positions, labels = batch.positions[part].tolist(), batch.labels[part].tolist()
            if batch.beginnings is not None:
                chains = list(reversed(events_of(batch.beginnings, int(batch.beginnings.of[k]))))
                positions = batch.beginnings.row[chains].tolist() + positions
                labels = batch.beginnings.label[chains].tolist() + labels
            assert positions == sorted(set(positions)), f"events of a match out of order: {positions}"
            bound: dict[str, set[int]] = {}
            for position, label in zip(positions, labels, strict=True):
                for variable in program.labels[label]:
                    bound.setdefault(variable, set()).add(position)
            mu = frozenset((v, frozenset(held)) for v, held in bound.items() if not v.startswith("@"))
            key = rows.names[int(batch.key[k])] if rows.keys is not None else None
            found.setdefault(key, []).append((positions[0], positions[-1], mu))
    return found


def unique(found: Found) -> dict[Hashable, set[oracle.Match]]:
    """The matches as sets; fails if one is listed twice."""
    for key, matches in found.items():
        twice = [match for match in matches if matches.count(match) > 1] if len(set(matches)) < len(matches) else []
        assert not twice, f"listed twice (key {key!r}): {twice[0]}"
    return {key: set(matches) for key, matches in found.items()}


def run_whole(program: Program, rows: Rows, chains: bool = False) -> Found:
    """All rows in one feed."""
    engine = engine_for(program, chains)
    return decode(program, rows, chain(engine.feed(*rows.cut(0, len(rows))), engine.flush()))


def run_cut(program: Program, rows: Rows, cuts: Iterable[int], compact: bool = False, chains: bool = False) -> Found:
    """Cut before each row in `cuts`; with `compact` the compact set is compacted at each cut."""
    engine = engine_for(program, chains)

    def batches() -> Iterator[Any]:
        for start, stop in pairwise([0, *sorted(cuts), len(rows)]):
            yield from engine.feed(*rows.cut(start, stop))
            if compact:
                engine.least_row()
        yield from engine.flush()

    return decode(program, rows, batches())


def count(program: Program, rows: Rows) -> int:
    """How many matches the engine counts, with those that only the end of the stream makes known."""
    engine = engine_for(program)
    return int(engine.count(*rows.cut(0, len(rows)))) + sum(batch.n for batch in engine.flush())


def matches_of(
    formula: Formula,
    stream: Sequence[oracle.Event],
    window: oracle.Window | None = None,
    options: Options = PLAIN,
) -> set[oracle.Match]:
    """The engine's matches of the formula in one stream, all rows at once."""
    program = compiled(formula, window, options)
    return unique(run_whole(program, rows_of(program, stream))).get(None, set())


def random_cuts(seed: int, length: int) -> list[int]:
    """Some borders between `length` rows; now and then the same border twice (an empty batch)."""
    chance = random.Random(seed)
    return [chance.randint(0, length) for _ in range(chance.randint(0, 5))]


def every_way(program: Program, stream: Sequence[oracle.Event], keyed: bool, seed: int) -> dict[str, Found]:
    """The same stream fed in every way that must not matter."""
    rows = rows_of(program, stream, keyed)
    sparse = rows_of(program, stream, keyed, drop=True)
    return {
        "whole": run_whole(program, rows),
        "one row at a time": run_cut(program, rows, range(1, len(rows))),
        "cut": run_cut(program, rows, random_cuts(seed, len(rows))),
        "cut and compacted": run_cut(program, rows, random_cuts(seed + 1, len(rows)), compact=True),
        "rows without a condition dropped": run_whole(program, sparse),
        "with chains": run_whole(program, rows, chains=True),
        "with chains, cut and compacted": run_cut(program, rows, random_cuts(seed + 3, len(rows)), True, True),
        "dropped, cut and compacted": run_cut(program, sparse, random_cuts(seed + 2, len(sparse)), compact=True),
    }


def expected_matches(
    formula: Formula,
    stream: Sequence[oracle.Event],
    window: oracle.Window | None = None,
    keyed: bool = False,
    limit: int | None = None,
    options: Options = PLAIN,
) -> dict[Hashable, set[oracle.Match]]:
    """The oracle's matches by key (None: one stream), without the keys that have none."""
    if keyed:
        found = oracle.evaluate_partitioned(formula, stream, window, limit, **options.given())
    else:
        found = {None: oracle.evaluate(formula, stream, window, limit, **options.given())}
    return {key: matches for key, matches in found.items() if matches}


def check(
    formula: Formula,
    stream: Sequence[oracle.Event],
    window: oracle.Window | None = None,
    keyed: bool = False,
    seed: int = 0,
    limit: int | None = None,
    options: Options = PLAIN,
    knows: bool | None = None,
) -> int:
    """Engine and oracle agree, however the stream is fed. Returns the number of matches.

    `knows`: is the planner told which types exclude each other? None: for about half of all formulas.
    """
    expected = expected_matches(formula, stream, window, keyed, limit, options)
    told = crc32(repr(formula).encode()) % 2 == 1 if knows is None else knows
    demands = demands_of(formula, stream) if told else NOTHING_KNOWN
    program = compiled(formula, window, options, demands)
    for way, found in every_way(program, stream, keyed, seed).items():
        actual = unique(found)
        assert actual == expected, difference(way, actual, expected)
    total = sum(map(len, expected.values()))
    for drop in (False, True):
        counted = count(program, rows_of(program, stream, keyed, drop))
        assert counted == total, f"count() says {counted}, there are {total} matches (dropped: {drop})"
    return total


def difference(way: str, actual: dict[Hashable, set[oracle.Match]], expected: dict[Hashable, set[oracle.Match]]) -> str:
    """Which matches are missing and which are too many."""
    lines = [f"engine and oracle differ ({way}):"]
    for key in {*actual, *expected}:
        have, want = actual.get(key, set()), expected.get(key, set())
        for title, matches in (("missing", want - have), ("too many", have - want)):
            for start, end, mu in sorted(matches, key=lambda m: m[:2])[:5]:
                shown = {variable: sorted(held) for variable, held in sorted(mu)}
                lines.append(f"  {title}: key {key!r}, {start}..{end}, {shown}")
    return "\n".join(lines)
