"""Texts whose runs hold values while they wait, held to the oracle and to registers, which look at each value.

All short streams at once (each is a key of one feed), then at random in every way in which a stream can be fed; long
ones against the same query run by registers.
"""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from typing import Any
from unittest import mock

import harness
import numpy as np
import oracle
from harness import Options
from small import shrunk

import cersql
from planner import candidates
from runtime.engine import engine_for
from runtime.program import NULL_CODE, Program

SCHEMA = {"t": "type STRING, x INT, y INT, ts INT"}
WINDOWS = ("", "WITHIN 3", "WITHIN < 4", "WITHIN 5 EVENTS")
Letter = tuple[str, int | None, int | None]


def compiled(pattern: str, rest: str = "") -> cersql.Compiled:
    return cersql.compile(f"FROM t PATTERN {pattern} ORDER BY ts {rest} RETURN *", SCHEMA)


def why_not(pattern: str, rest: str, way: str) -> str:
    """Why EXPLAIN says that a way of running does not run a pattern."""
    told = compiled(pattern, rest).explain("physical")
    refusal = re.search(f"not by {way}: (.*)", told)
    assert refusal is not None, told
    return refusal[1]


def types_of(pattern: str) -> list[str]:
    return [kind for kind in "ABCDE" if re.search(rf"\b{kind}\b", pattern)] or ["A"]


def compared(pattern: str) -> set[str]:
    """The types of which events are compared."""
    names = set(re.findall(r"\b([A-Za-z]\w*)(?:\[[^]]*\])?\.[xy]", pattern))
    types = {kind for kind, name in re.findall(r"\b([A-E])[^\s,]* (\w+)", pattern) if name in names}
    return types | (names & set("ABCDE")) | ({"A"} if "ANY" in pattern else set())


def event(kind: str, time: int, x: int | None, y: int | None, key: int = 0) -> oracle.Event:
    held = tuple((f"`{name}`", value) for name, value in (("x", x), ("y", y)) if value is not None)
    true = {kind, "`x` = `y`"} if x is not None and x == y else {kind}
    return oracle.Event(frozenset(true), time, key, held)


# ---------------------------------------------------------------- everything short


def all_short(letters: list[Letter], most: int) -> Iterator[list[oracle.Event]]:
    """All streams of the greatest length of which there are not more than so many; each is a key."""
    length = max(n for n in range(3, 9) if len(letters) ** n <= most)
    for key, word in enumerate(itertools.product(letters, repeat=length)):
        yield [event(kind, time, x, y, key) for time, (kind, x, y) in enumerate(word)]


def all_streams_agree(text: str, rest: str, letters: list[Letter], most: int, family: str) -> None:
    """The engine finds in all short streams what the oracle does, and counts as much."""
    query = compiled(text, rest).query
    program = harness.compiled(query.formula, query.window, Options())
    assert program.family == family
    streams = list(all_short(letters, most))
    rows = harness.rows_of(program, [e for own in streams for e in own], keyed=True)
    found = harness.unique(harness.run_whole(program, rows))
    counted = harness.count(program, rows)
    assert counted == sum(map(len, found.values()))
    assert counted or rest or len(streams[0]) < len(types_of(text))  # so many streams are too short for five types
    for key, own in enumerate(streams):
        wanted = oracle.evaluate(query.formula, own, query.window)
        assert found.get(key, set()) == wanted, harness.difference(text, {key: found.get(key, set())}, {key: wanted})


# ---------------------------------------------------------------- at random


def stream(
    chance: random.Random, pattern: str, n: int, values: Sequence[int | None] = (1, 1, 1, 2, None),
    others: Sequence[int | None] = (1, 1, 2, None),
) -> list[oracle.Event]:  # fmt: skip
    """Events with NULLs, of two keys, some at one time."""
    now, found, kinds = 0, [], types_of(pattern)
    for _ in range(n):
        now += chance.choice((0, 0, 1))
        x, y = chance.choice(values), chance.choice(others)
        found.append(event(chance.choice(kinds), now, x, y, chance.choice((0, 0, 1))))
    return found


def agree_at_random(text: str, rests: Sequence[str], streams: list[list[oracle.Event]], small: bool) -> int:
    """How many matches there are, found in every way, and by the oracle."""
    total = 0
    for seed, events in enumerate(streams):
        query = compiled(text, rests[seed % len(rests)]).query
        try:
            with shrunk() if small else nullcontext():
                total += harness.check(query.formula, events, query.window, seed % 2 > 0, seed, 3_000)
        except oracle.TooLarge:
            continue
        except AssertionError as error:
            raise AssertionError(f"{text} {rests[seed % len(rests)]}") from error
    return total


# ---------------------------------------------------------------- long streams, beside registers


def by_registers(pattern: str, rest: str) -> Program:
    """What compiles a query as if nothing but registers could run it."""
    others = tuple(own for own in candidates.CANDIDATES if own[0] not in ("deferred runs", "runs in order"))
    with mock.patch.object(candidates, "CANDIDATES", others):
        program = compiled(pattern, rest).program
    assert program.family == "registers"
    return program


def long_rows(program: Program, pattern: str, n: int, distinct: int, n_keys: int) -> dict[str, np.ndarray]:
    """n events of a pattern's types, as an engine is fed them."""
    random = np.random.default_rng(n + distinct)
    kinds = np.array(types_of(pattern))[random.integers(0, len(types_of(pattern)), n)]
    columns = {name: np.where(random.random(n) < 0.05, NULL_CODE, random.integers(0, distinct, n)) for name in "xy"}
    symbols = np.zeros((n, 1 + len(program.terms)), np.int64)
    for bit, guard in enumerate(program.guards):
        own = np.ones(n, bool)
        for part in guard:
            own &= (kinds == part) if part in "ABCDE" else (columns["x"] == columns["y"])
        symbols[:, 0] |= own.astype(np.int64) << bit
    for k, term in enumerate(program.terms):
        symbols[:, 1 + k] = columns[term.strip("`")]
    keys = np.sort(random.integers(0, n_keys, n))
    times = np.concatenate(
        [np.sort(random.integers(0, own // 2 + 1, own)) for own in np.bincount(keys, minlength=n_keys)]
    )
    return {"symbols": symbols, "times": times.astype(np.int64), "keys": keys, "rows": np.arange(n)}


def matches(program: Program, rows: dict[str, np.ndarray], cuts: list[int]) -> set[tuple[Any, ...]]:
    """What an engine finds: (key, positions, labels) of each match, none of them twice."""
    engine, found = engine_for(program), list[tuple[Any, ...]]()
    for begin, end in itertools.pairwise([0, *cuts, len(rows["keys"])]):
        for m in engine.feed(**{name: column[begin:end] for name, column in rows.items()}):
            for k in range(m.n):
                held = slice(m.offsets[k], m.offsets[k + 1])
                labels = tuple(tuple(sorted(program.labels[label])) for label in m.labels[held].tolist())
                found.append((int(m.key[k]), tuple(m.positions[held].tolist()), labels))
        if cuts:
            engine.least_row()
    assert len(set(found)) == len(found)
    return set(found)


def agree_with_registers(text: str, rest: str, n: int, distinct: int, n_keys: int) -> int:
    """How many matches there are in a long stream: by registers, whole, cut in arrays that were small, and counted."""
    program, other = compiled(text, rest).program, by_registers(text, rest)
    rows = long_rows(program, text, n, distinct, n_keys)
    wanted = matches(other, rows, [])
    assert matches(program, rows, []) == wanted
    with shrunk():
        assert matches(program, rows, sorted(random.Random(n_keys).sample(range(n), 9))) == wanted
    assert engine_for(program).count(rows["symbols"], rows["times"], None, rows["keys"]) == len(wanted)
    return len(wanted)
