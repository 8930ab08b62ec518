"""Random queries of all operators, strategies, consumption and skipping: what the oracle says of one, as a Trial.

tests/differential.py has the streams, keys and layouts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass

import differential as plain
import oracle
import strategies
from harness import Options

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
