"""Events that AGG creates, and conditions on all of a complex event, for the oracle: [ACEL] Section 5, word by word.

An occurrence in μ is the position of an event, or a `Created`: the aggregation that made it, and its time. Aggregates
are SQL's, as the semantics page asks: NULL (None) is skipped, over no event COUNT is 0 and the others are NULL.
Of expressions only `FN(x.a)`, `COUNT(x)`, `COUNT(*)`, `x.a` and numbers are read here, in comparisons joined by OR.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import product
from typing import Any, NamedTuple

from planner.acel import Aggregate


class Created(NamedTuple):
    """What the aggregation of this number creates at this time."""

    number: int
    time: int
    values: tuple[tuple[str, Any], ...]


Value = Callable[[int, str], Any]  # of the event at a position, a column
Held = Iterable[tuple[str, Any]]  # (variable, occurrence)

_AGGREGATE = re.compile(r"(\w+)\((\*|\w+)(?:\.(\w+))?\)")
_ATTRIBUTE = re.compile(r"(\w+)\.(\w+)")
_COMPARISON = re.compile(r"\s*(.+?)\s*(<=|>=|<>|=|<|>)\s*(.+?)\s*")

FUNCTIONS: dict[str, Callable[[list[Any]], Any]] = {
    "SUM": lambda values: sum(values) if values else None,
    "MIN": lambda values: min(values, default=None),
    "MAX": lambda values: max(values, default=None),
    "AVG": lambda values: sum(values) / len(values) if values else None,
    "RANGE": lambda values: max(values) - min(values) if values else None,
    "COUNT": len,
    "COLLECT_LIST": tuple,
}


def aggregate(text: str, mu: Held, value: Value) -> Any:
    """`SUM(x.a)` over the occurrences of x in μ."""
    found = _AGGREGATE.fullmatch(text.strip())
    assert found is not None, text
    function, variable, column = found.groups()
    if variable == "*":
        return len({occurrence for name, occurrence in mu if not name.startswith("@")})
    held = sorted({o for name, o in mu if name == variable}, key=time)
    if column is None:
        return len(held)
    values = [attribute(occurrence, column, value) for occurrence in held]
    return FUNCTIONS[function]([v for v in values if v is not None])


def time(occurrence: Any) -> int:
    return occurrence.time if isinstance(occurrence, Created) else int(occurrence)


def attribute(occurrence: Any, column: str, value: Value) -> Any:
    return dict(occurrence.values)[column] if isinstance(occurrence, Created) else value(occurrence, column)


def created(agg: Aggregate, mu: Held, end: int, value: Value) -> Created:
    """Agg_y[b ← …](C): one event at time end(C)."""
    mu = list(mu)
    return Created(agg.number, end, tuple((name, aggregate(what, mu, value)) for name, what in agg.attributes))


def holds(condition: str, mu: Held, value: Value) -> bool:
    """An OR of comparisons: TRUE for every choice of one occurrence for each variable outside of aggregates; it holds
    where one of them has none."""
    mu = list(mu)
    sides = condition.split(" OR ")
    outside = {variable for side in sides for variable, _ in _ATTRIBUTE.findall(_AGGREGATE.sub("", side))
               if not variable.isdigit()}  # fmt: skip
    names = sorted(outside)
    choices = [sorted({o for name, o in mu if name == variable}, key=repr) for variable in names]
    return all(
        any(_true(side, dict(zip(names, picked, strict=True)), mu, value) for side in sides)
        for picked in product(*choices)
    )


def _true(side: str, picked: dict[str, Any], mu: Sequence[tuple[str, Any]], value: Value) -> bool:
    found = _COMPARISON.fullmatch(side)
    assert found is not None, side
    left, op, right = found.groups()
    a, b = (_term(text, picked, mu, value) for text in (left, right))
    if a is None or b is None:
        return False
    return {"=": a == b, "<>": a != b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[op]


def _term(text: str, picked: dict[str, Any], mu: Sequence[tuple[str, Any]], value: Value) -> Any:
    if _AGGREGATE.fullmatch(text):
        return aggregate(text, mu, value)
    found = _ATTRIBUTE.fullmatch(text)
    if found is None or text[0].isdigit():
        return float(text)
    return attribute(picked[found[1]], found[2], value)


def counted(occurrences: Iterable[Created]) -> frozenset[Hashable]:
    """Created events as they count where complex events are compared: (time, attribute values), each with how often."""
    return frozenset(Counter((o.time, o.values) for o in occurrences).items())
