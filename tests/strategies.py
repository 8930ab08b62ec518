"""Hypothesis strategies: formulas, streams, windows. And how a failing example is printed, as a corpus entry."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

import oracle
from hypothesis import settings
from hypothesis import strategies as st

from planner import cel

TYPES = ("A", "B", "C")
VARIABLES = ("x", "y", "z")
# Overlapping conditions: each says something about the next.
PREDICATES = tuple(cel.Predicate(sql) for sql in ("v > 3", "v > 6", "v <= 6", "v IS NULL"))
KINDS = ("A", "B", "C", "AB", "BC", "ABC", "-")  # values of the column `type`; each letter is a type that accepts it


@dataclass(frozen=True)
class Row:
    """A row of the corpus's table."""

    kind: str
    v: int | None
    ts: int
    key: int | None

    def event(self) -> oracle.Event:
        """The row with what is true of it."""
        v = self.v
        conditions = {
            "v > 3": v is not None and v > 3,
            "v > 6": v is not None and v > 6,
            "v <= 6": v is not None and v <= 6,
            "v IS NULL": v is None,
        }
        true = {letter for letter in self.kind if letter in TYPES} | {sql for sql, holds in conditions.items() if holds}
        return oracle.Event(frozenset(true), self.ts, self.key)


def examples(count: int) -> settings:
    """Settings with so many examples; twenty times as many under HYPOTHESIS_PROFILE=thorough."""
    return settings(max_examples=count * (20 if os.environ.get("HYPOTHESIS_PROFILE") == "thorough" else 1))


def atoms() -> st.SearchStrategy[cel.Formula]:
    """R, R AS x, ANY, and several marks at once."""
    types = st.sampled_from((*TYPES, None))
    bare = types.map(lambda type: cel.Event(type, frozenset({type or "ANY"})))
    aliased = st.builds(cel.Event, types, st.sampled_from(VARIABLES).map(lambda v: frozenset({v})))
    several = st.builds(cel.Event, types, st.sets(st.sampled_from(VARIABLES), min_size=1).map(frozenset))
    return st.one_of(bare, bare, aliased, aliased, several)


@st.composite
def filters(draw: st.DrawFn, inner: st.SearchStrategy[cel.Formula]) -> cel.Formula:
    formula = draw(inner)
    variable = draw(st.one_of(st.none(), st.sampled_from(sorted(cel.variables(formula)))))
    return cel.Filter(formula, variable, draw(st.sampled_from(PREDICATES)))


def larger(inner: st.SearchStrategy[cel.Formula]) -> st.SearchStrategy[cel.Formula]:
    return st.one_of(
        st.builds(cel.Sequence, inner, inner),
        st.builds(cel.Contiguous, inner, inner),
        st.builds(cel.Or, inner, inner),
        st.builds(cel.Iteration, inner),
        st.builds(cel.ContiguousIteration, inner),
        st.builds(cel.As, inner, st.sampled_from(VARIABLES)),
        filters(inner),
    )


def formulas(max_leaves: int = 8) -> st.SearchStrategy[cel.Formula]:
    return st.recursive(atoms(), larger, max_leaves=max_leaves)


@st.composite
def streams(draw: st.DrawFn, max_size: int = 30, keys: Sequence[int | None] = (0,)) -> list[Row]:
    """Rows in order; times tie often and jump at times; some kinds are drawn more often than others."""
    kinds = draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=4))
    row = st.tuples(
        st.sampled_from((*kinds, "-")),
        st.one_of(st.none(), st.integers(0, 9)),
        st.sampled_from((0, 0, 1, 1, 2, 7)),
        st.sampled_from(keys),
    )
    rows, now = [], 0
    for kind, v, step, key in draw(st.lists(row, max_size=max_size)):
        now += step
        rows.append(Row(kind, v, now, key))
    return rows


def windows() -> st.SearchStrategy[oracle.Window | None]:
    return st.one_of(
        st.none(),
        st.builds(oracle.Window, st.just("time"), st.integers(1, 12), st.booleans()),
        st.builds(oracle.Window, st.just("events"), st.integers(1, 12)),
    )


# ---------------------------------------------------------------- a failure as a corpus entry


def pattern_text(formula: cel.Formula) -> str:
    """The formula as cersql text. What has no text of its own is written as something that means the same."""
    match formula:
        case cel.Event(type, marks):
            name, variables = type or "ANY", sorted(marks)
            if variables == [name]:
                return name
            text = f"{name} AS {variables[0]}"
            for variable in variables[1:]:
                text = f"({text}) AS {variable}"
            return f"({text})" if len(variables) > 1 else text
        case cel.As(cel.Event() as inner, variable):  # `R AS x` would mark x alone
            return f"({pattern_text(inner)} OR {pattern_text(inner)}) AS {variable}"
        case cel.As(inner, variable):
            return f"({pattern_text(inner)}) AS {variable}"
        case cel.Iteration(inner):
            return f"({pattern_text(inner)})+"
        case cel.ContiguousIteration(inner):
            return f"({pattern_text(inner)}):+"
        case cel.Sequence(left, right):
            return f"(({pattern_text(left)}) ; ({pattern_text(right)}))"
        case cel.Contiguous(left, right):
            return f"(({pattern_text(left)}) : ({pattern_text(right)}))"
        case cel.Or(left, right):
            return f"(({pattern_text(left)}) OR ({pattern_text(right)}))"
        case cel.Filter(inner, variable, predicate):
            names = [variable] if variable else sorted(cel.variables(inner))
            conditions = [re.sub(r"\bv\b", f"{name}.v", predicate.sql) for name in names]
            return f"(({pattern_text(inner)}) FILTER {' AND '.join(conditions)})"
    raise TypeError(f"not a formula: {formula!r}")


def query_text(formula: cel.Formula, window: oracle.Window | None, keyed: bool) -> str:
    used = [type for type in TYPES if cel.show(formula).find(f"{type} / ") >= 0]
    defined = [f"{type} AS type IN ({', '.join(repr(k) for k in KINDS if type in k)})" for type in used]
    lines = ["FROM events", f"PATTERN {pattern_text(formula)}"]
    if defined:
        lines.append(f"DEFINE {', '.join(defined)}")
    if keyed:
        lines.append("PARTITION BY key")
    lines.append("ORDER BY ts, id")
    if window is not None:
        lines.append(f"WITHIN {'< ' if window.strict else ''}{window.size}{' EVENTS' * (window.kind == 'events')}")
    return "\n".join([*lines, "RETURN *"])


def as_case(formula: cel.Formula, rows: Sequence[Row], window: oracle.Window | None, keyed: bool = False) -> str:
    """A failing example, ready to be pasted into a file of tests/cases. The expected matches are the oracle's."""
    ids: dict[object, list[int]] = {}
    for id, row in enumerate(rows):
        ids.setdefault(row.key if keyed else None, []).append(id)
    events = [row.event() for row in rows]
    if keyed:
        found = oracle.evaluate_partitioned(formula, events, window, limit=5000)
    else:
        found = {None: oracle.evaluate(formula, events, window, limit=5000)}
    shown = []
    for key, matches in found.items():
        for _, _, mu in matches:
            held = [f"{variable} = {[ids[key][p] for p in sorted(positions)]}" for variable, positions in sorted(mu)]
            shown.append(f"    {{ {', '.join(held)} }},")
    query = query_text(formula, window, keyed)
    stream = [
        f'    "{row.kind} {"NULL" if row.v is None else row.v} {row.ts} {"NULL" if row.key is None else row.key}",'
        for row in rows
    ]
    return "\n".join(
        [
            "# For a file in tests/cases:",
            "[[case]]",
            'name = "found-by-hypothesis"',
            f'query = """\n{query}\n"""',
            'columns = ["type", "v", "ts", "key"]',
            "stream = [",
            *stream,
            "]",
            "matches = [",
            *sorted(shown),
            "]",
        ]
    )
