"""Random queries of all operators, strategies, consumption and skipping: what the oracle says of one, as a Trial.

tests/differential.py has the streams, keys and layouts.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass

import differential as plain
import oracle
import strategies
from harness import Options
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from planner.formula import Formula

SCHEMAS = {"events": {name: type.upper() for name, type in (part.split() for part in plain.SCHEMA.split(", "))}}


@dataclass(frozen=True)
class Trial(plain.Trial):
    """A query with all that it can ask for."""

    options: Options = strategies.PLAIN

    def text(self) -> str:
        return self.clothed(strategies.query_text(self.formula, self.window, keyed=False, options=self.options))


def expected(trial: Trial, rows: list[plain.Row]) -> plain.Expected:
    """As plain.expected. The query's strategy, consumption and skipping act in each partition by itself."""
    parts: dict[Hashable, list[plain.Row]] = {}
    for row in plain.in_order(trial, [row for row in rows if row["stream"] in trial.streams]):
        parts.setdefault(tuple(plain.group(row[key]) for key in trial.keys), []).append(row)
    found: plain.Expected = Counter()
    for key, own in parts.items():
        events = [strategies.Row(row["type"], row["v"], row["ts"], None).event() for row in own]
        asked = trial.options.given()
        for start, end, mu in oracle.evaluate(trial.formula, events, trial.window, plain.LIMIT, **asked):
            held = frozenset((name, tuple(sorted(own[p]["id"] for p in positions))) for name, positions in mu)
            found[(key, own[start]["ts"], own[end]["ts"], held)] += 1
    return found


Drawn = tuple[Trial, plain.Expected]


def clothed(asked: strategies.Asked, formula: Formula, chance: random.Random, sorts: tuple[str, ...]) -> Trial:
    """A formula as a query with the window and options of `asked`, and some streams, key, order and layout."""
    return Trial(
        formula=formula,
        window=asked.window,
        streams=tuple(range(plain.STREAMS)) if chance.random() < 0.6 else (chance.randrange(plain.STREAMS),),
        key=chance.choice((None, None, *plain.KEYS)),
        order=chance.choice(("ts", "ts, id", "ts, v NULLS LAST", "ts, k_double, id")),
        slice_windows=chance.choice((1, 2, 64)),
        sort=chance.choice(sorts),
        drop=chance.random() < 0.7,
        options=asked.options,
    )


def drawn(
    trials: Callable[[list[plain.Row]], st.SearchStrategy[Drawn | None]],
    rows: list[plain.Row],
    number: int,
    most: int,
    tries: int,
) -> list[Drawn]:
    """`most` queries of round `number`, a third of which may find nothing, out of `tries` that are drawn."""
    found: list[Drawn] = []

    @seed(number)
    @settings(
        max_examples=tries, deadline=None, database=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(trials(rows))
    def gather(one: Drawn | None) -> None:
        if one is not None and len(found) < most and (one[1] or len(found) < most // 3):
            found.append(one)

    gather()
    assert len(found) == most
    return found
