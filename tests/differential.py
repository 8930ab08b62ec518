"""Random streams with keys, and queries over them: what the oracle says, and what Spark is asked.

A query runs over several small streams at once, as the values of a column of PARTITION BY, or over one of them. How
Spark lays the work out is drawn too: none of that may show. CERSQL_DIFFERENTIAL=50 runs that many rounds of queries.
"""

from __future__ import annotations

import math
import os
import random
from collections import Counter
from collections.abc import Hashable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import oracle
import sparks
import strategies
from pyspark.sql import DataFrame, SparkSession

import planner.layout
import spark_ext.source_rows
from planner import cel
from planner.formula import Formula

ROUNDS = int(os.environ.get("CERSQL_DIFFERENTIAL", "6"))
USUAL = ROUNDS if "CERSQL_DIFFERENTIAL" in os.environ else 2  # the rounds after these are run where it may take long
QUERIES = 12  # a round is one Spark job
STREAMS = 5
LIMIT = 300  # complex events in one set of the oracle

# The order of columns matters: it decides ties.
SCHEMA = "v double, stream int, ts bigint, type string, k_int int, k_string string, k_double double, id bigint"
KEYS: dict[str, tuple[Any, ...]] = {
    "k_int": (0, 7, None),
    "k_string": ("", "é", None, "a b"),
    "k_double": (0.0, -0.0, math.nan, None, 1.5),
}

Row = dict[str, Any]
Expected = Counter[tuple[Hashable, ...]]


@dataclass(frozen=True)
class Trial:
    """A query, what it is about, and how it is run."""

    formula: Formula
    window: oracle.Window | None
    streams: tuple[int, ...]
    key: str | None
    order: str
    slice_windows: int
    sort: str
    drop: bool

    @property
    def keys(self) -> list[str]:
        return (["stream"] if len(self.streams) > 1 else []) + ([self.key] if self.key else [])

    def text(self) -> str:
        return self.clothed(strategies.query_text(self.formula, self.window, keyed=False))

    def clothed(self, text: str) -> str:
        """The text with this trial's source, order and keys."""
        lines = text.splitlines()
        source = f"(SELECT * FROM events WHERE stream IN ({', '.join(map(str, self.streams))})) AS events"
        clauses = {"FROM events": f"FROM {source}", "ORDER BY ts, id": f"ORDER BY {self.order}"}
        lines = [clauses.get(line, line) for line in lines]
        if self.keys:
            lines.insert(1, f"PARTITION BY {', '.join(self.keys)}")
        return "\n".join(lines)


# ---------------------------------------------------------------- drawing


def draw_formula(chance: random.Random, leaves: int, marks: dict[str | None, list[str]]) -> Formula:
    """A formula with so many atoms. An atom of a type is always bare, or always has an alias: a filter on the bare
    name covers all of them."""
    if leaves == 1:
        type = chance.choice([*strategies.TYPES, *strategies.TYPES, None])
        return cel.Event(type, frozenset({chance.choice(marks[type])}))
    kind = chance.choice(["sequence"] * 4 + ["contiguous", "or", "loop", "loop", "tight loop", "as", "filter"])
    if kind in ("sequence", "contiguous", "or"):
        cut = chance.randint(1, leaves - 1)
        left, right = (draw_formula(chance, n, marks) for n in (cut, leaves - cut))
        return {"sequence": cel.Sequence, "contiguous": cel.Contiguous, "or": cel.Or}[kind](left, right)
    inner = draw_formula(chance, leaves - 1, marks)
    match kind:
        case "loop":
            return cel.Iteration(inner)
        case "tight loop":
            return cel.ContiguousIteration(inner)
        case "as":
            return cel.As(inner, chance.choice(strategies.VARIABLES))
    variable = chance.choice([None, *sorted(inner.binds())])
    return cel.Filter(inner, variable, chance.choice(strategies.PREDICATES))


def draw_rows(chance: random.Random, least: int = 5, most: int = 11) -> list[Row]:
    """A few streams of so many rows in one table; times tie often, some are negative."""
    rows: list[Row] = []
    for stream in range(STREAMS):
        now = chance.choice((-20, -3, 0))
        kinds = [chance.choice(strategies.KINDS) for _ in range(3)] + ["A", "-"]
        for _ in range(chance.randint(least, most)):
            now += chance.choice((0, 0, 1, 1, 2, 7))
            row = {"v": chance.choice((None, *range(10))), "stream": stream, "ts": now, "type": chance.choice(kinds)}
            row |= {name: chance.choice(values) for name, values in KEYS.items()}
            rows.append({**row, "id": len(rows)})
    chance.shuffle(rows)
    return rows


def draw_window(chance: random.Random) -> oracle.Window | None:
    match chance.choice(("none", "time", "time", "strict", "events")):
        case "none":
            return None
        case "events":
            return oracle.Window("events", chance.randint(1, 8))
        case kind:
            return oracle.Window("time", chance.randint(1, 9), strict=kind == "strict")


def draw(chance: random.Random, rows: list[Row]) -> tuple[Trial, Expected]:
    """A query that the oracle can afford, and what the oracle says."""
    while True:
        marks: dict[str | None, list[str]] = {
            type: [type] if chance.random() < 0.5 else list(strategies.VARIABLES) for type in strategies.TYPES
        }
        trial = Trial(
            formula=draw_formula(chance, chance.randint(1, 5), marks | {None: list(strategies.VARIABLES)}),
            window=draw_window(chance),
            streams=tuple(range(STREAMS)) if chance.random() < 0.6 else (chance.randrange(STREAMS),),
            key=chance.choice((None, None, *KEYS)),
            order=chance.choice(("ts", "ts, id", "ts, v NULLS LAST", "ts, k_double, id")),
            slice_windows=chance.choice((1, 2, 64)),
            sort=chance.choice(("auto", "worker", "spark")),
            drop=chance.random() < 0.7,
        )
        try:
            return trial, expected(trial, rows)
        except oracle.TooLarge:
            continue


# ---------------------------------------------------------------- the oracle's side


def comparable(value: Any, nulls_last: bool = False) -> tuple[Any, ...]:
    """A value as Spark orders it: NULL first (or last), NaN after all numbers, -0.0 as 0.0."""
    if value is None:
        return (2 if nulls_last else 0,)
    if isinstance(value, str):
        return 1, value.encode()
    return 1, math.isnan(value), 0.0 if math.isnan(value) else value + 0


def in_order(trial: Trial, rows: list[Row]) -> list[Row]:
    """By ORDER BY, then by what the pattern reads, in schema order, then by all columns, since RETURN * reads them."""
    columns = [name.split()[0] for name in SCHEMA.split(", ")]
    text = trial.text()
    pattern = [c for c in columns if (c == "v" and ".v" in text) or (c == "type" and "type IN" in text)]
    order = [item.split()[0] for item in trial.order.split(", ")]

    def key(row: Row) -> list[tuple[Any, ...]]:
        by = [comparable(row[name], nulls_last=f"{name} NULLS LAST" in trial.order) for name in order]
        return by + [comparable(row[name]) for name in pattern + columns]

    return sorted(rows, key=key)


def group(value: Any) -> Hashable:
    """A key as GROUP BY sees it."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    return value


def expected(trial: Trial, rows: list[Row]) -> Expected:
    """The rows of the result: the keys, start and end, and each variable's events."""
    parts: dict[Hashable, list[Row]] = {}
    for row in in_order(trial, [row for row in rows if row["stream"] in trial.streams]):
        parts.setdefault(tuple(group(row[key]) for key in trial.keys), []).append(row)
    found: Expected = Counter()
    for key, own in parts.items():
        events = [strategies.Row(row["type"], row["v"], row["ts"], None).event() for row in own]
        for start, end, mu in oracle.evaluate(trial.formula, events, trial.window, LIMIT):
            held = frozenset((name, tuple(sorted(own[p]["id"] for p in positions))) for name, positions in mu)
            found[(key, own[start]["ts"], own[end]["ts"], held)] += 1
    return found


# ---------------------------------------------------------------- Spark's side


@contextmanager
def laid_out(session: SparkSession, trial: Trial) -> Iterator[None]:
    """The choices of the plan that a result must not depend on."""
    with ExitStack() as stack:
        stack.enter_context(sparks.patched(planner.layout, "SLICE_WINDOWS", trial.slice_windows))
        stack.enter_context(sparks.settings(session, cersql__sort=trial.sort, spark__sql__shuffle__partitions=3))
        if not trial.drop:
            stack.enter_context(sparks.patched(spark_ext.source_rows, "drop_sql", lambda plan: None))
        yield


def frame(session: SparkSession, trial: Trial) -> DataFrame:
    with laid_out(session, trial):
        return session.sql(trial.text())


def shown(trial: Trial, row: dict[str, Any]) -> tuple[Hashable, ...]:
    """A row of the result in the oracle's terms."""
    without = (*trial.keys, "match_start", "match_end")
    key = tuple(group(row[name]) for name in trial.keys)
    return key, row["match_start"], row["match_end"], sparks.bound(row, without=without)


def difference(trial: Trial, have: Expected, want: Expected, rows: list[Row]) -> str:
    lines = [f"\n{trial.text()}", str(trial), f"missing: {list((want - have).items())[:4]}"]
    lines.append(f"too many: {list((have - want).items())[:4]}")
    lines += [str(tuple(row.values())) for row in in_order(trial, rows) if row["stream"] in trial.streams]
    return "\n".join(lines)
