"""Aggregates over all matches, by semirings, are those over the matches of the oracle: every stepper, cut anywhere."""

from __future__ import annotations

import itertools
import random
from collections import defaultdict
from collections.abc import Iterable
from decimal import Decimal, localcontext
from typing import Any

import families
import harness
import numpy as np
import oracle
import pyarrow as pa
import pytest
from small import shrunk

from runtime import capacities
from runtime.compact_set import semirings
from runtime.engine import engine_for, selector_of
from runtime.errors import ExecutionError
from runtime.marks import FIRST_EVENT, LAST_EVENT, is_hidden
from runtime.partition.grouping import FOUND, Grouping
from runtime.program import Program
from runtime.task import GroupedBy, Summed, Trend

VALUES = ("whole", "wide", "real", "word")


def table_of(chance: random.Random, n: int) -> pa.Table:
    """Rows with NULLs, large and negative values."""

    def some(value: Any) -> Any:
        return value if chance.random() < 0.8 else None

    return pa.table({
        "whole": pa.array([some(chance.choice((-3, 0, 1, 2, 10**18))) for _ in range(n)], pa.int64()),
        "wide": pa.array([some(Decimal(chance.choice((-(10**30), -7, 0, 2, 10**25 + 1)))) for _ in range(n)],
                         pa.decimal128(38, 0)),
        "real": pa.array([some(chance.choice((-1.5, 0.25, 3.0))) for _ in range(n)], pa.float64()),
        "word": pa.array([some(chance.choice(("", "b", "ba", "é"))) for _ in range(n)], pa.string()),
        "g": pa.array([some(chance.choice("uvw")) for _ in range(n)], pa.string()),
        "h": pa.array([chance.choice((1.0, -0.0, 0.0)) for _ in range(n)], pa.float64()),
    })  # fmt: skip


def trend_of(mark: str, groups: Iterable[tuple[str, str]]) -> Trend:
    """All aggregates over one variable, by these (column, mark)."""
    sums = [Summed("COUNT", None, None, ("n",), "COUNT(*)"), Summed("COUNT", mark, None, ("events",), f"COUNT({mark})")]
    for column in VALUES:
        sums.append(Summed("COUNT", mark, column, (f"count {column}",), ""))
        sums += [Summed(f, mark, column, (f"{f} {column}",), "") for f in ("MIN", "MAX")]
    sums += [Summed("SUM", mark, column, (f"SUM {column}",), f"SUM({column})") for column in ("whole", "wide")]
    sums.append(Summed("SUM OF DOUBLE", mark, "real", ("SUM real",), ""))
    sums.append(Summed("AVG OF DOUBLE", mark, "whole", ("s", "m", "power"), ""))
    sums.append(Summed("AVG", mark, "wide", ("total", "number"), ""))
    named = enumerate(groups)
    return Trend(tuple(GroupedBy(column, own, f"by{i}", column) for i, (column, own) in named), tuple(sums))


def slowly(trend: Trend, table: pa.Table, matches: Iterable[tuple[int, int, dict[str, set[int]]]]) -> dict[Any, Any]:
    """The same over matches that are listed: (first row, last row, rows by variable)."""
    columns = table.to_pydict()
    found: dict[Any, list[Any]] = defaultdict(list)
    for first, last, bound in matches:
        at = {FIRST_EVENT: [first], LAST_EVENT: [last]}
        rows = [at.get(group.mark) or sorted(bound.get(group.mark, ())) for group in trend.groups]
        named = zip(trend.groups, rows, strict=True)
        key = tuple(columns[group.column][own[0]] if own else None for group, own in named)
        found[key].append(bound)
    return {key: tuple(_slow(summed, columns, held) for summed in trend.sums) for key, held in found.items()}


def _slow(summed: Summed, columns: dict[str, list[Any]], held: list[dict[str, set[int]]]) -> Any:
    if summed.mark is None:
        return len(held)
    rows = [row for bound in held for row in sorted(bound.get(summed.mark, ()))]
    if summed.column is None:
        return len(rows)
    values = [value for row in rows if (value := columns[summed.column][row]) is not None]
    if summed.function == "COUNT":
        return len(values)
    if summed.function.startswith("AVG"):
        return sum(values) / len(values) if values else None
    if not values:
        return None
    with localcontext(prec=60):
        return {"MIN": min, "MAX": max}.get(summed.function, sum)(values)


def quickly(trend: Trend, program: Program, rows: harness.Rows, table: pa.Table, cuts: list[int]) -> dict[Any, Any]:
    """By the engine, without listing a match."""
    engine, grouping = engine_for(program), Grouping(trend, program, table)
    trends = engine.trends(grouping.lift(), grouping.of_row, grouping.width, uncut=False)
    numbers = np.arange(len(rows))
    for begin, end in itertools.pairwise([0, *sorted(cuts), len(rows)]):
        engine.sum_up(trends, *rows.cut(begin, end), numbers[begin:end])
        if cuts:
            engine.least_row()
    engine.sum_rest(trends)
    batch = grouping.batch(trends.found)
    assert batch.column(FOUND).to_pylist() == [1] * len(batch)
    found = {}
    for row in batch.to_pylist():
        key = tuple(row[group.name] for group in trend.groups)
        assert key not in found
        found[key] = tuple(_lowered(summed, [row[name] for name in summed.names]) for summed in trend.sums)
    return found


def _lowered(summed: Summed, values: list[Any]) -> Any:
    if summed.function.startswith("AVG"):
        return values[0] / values[1] if values[1] else None
    return values[0]


def same(found: dict[Any, Any], wanted: dict[Any, Any]) -> None:
    assert set(found) == set(wanted)
    for key, values in wanted.items():
        for one, other in zip(found[key], values, strict=True):
            if isinstance(other, float) or (isinstance(other, Decimal) and abs(other) != other.to_integral_value()):
                assert float(one) == pytest.approx(float(other), rel=1e-9)
            else:
                assert one == other, key


def groups_of(program: Program, formula_singles: list[str]) -> list[list[tuple[str, str]]]:
    found: list[list[tuple[str, str]]] = [[], [("g", LAST_EVENT)], [("h", LAST_EVENT), ("g", LAST_EVENT)]]
    if program.ends_late:
        found = [[]]
    if program.family != "pcea":
        found.append([("g", FIRST_EVENT), *found[-1]])
    for single in formula_singles:
        found.append([("g", single)])
        found.append([*found[-1], ("h", single)])
    return found


SUMMED_UP = [case for case in families.cases() if case[0] not in ("two stacks", "counted")]


@pytest.mark.breadth(8)
@pytest.mark.parametrize(("family", "text"), SUMMED_UP)
def test_semirings_and_listed_matches_agree(family, text):
    agree(family, text)


@pytest.mark.parametrize("text", ["ALL(A p, A q, B r) WHERE p.x = q.x AND q.x = r.x WITHIN 9"])
def test_products_of_several_groups_each(text):
    agree("pcea", text)


def agree(family, text):
    """On some streams, by all groups that one can ask for."""
    made, options = families.compiled(text)
    query = made.query
    program = harness.compiled(query.formula, query.window, options)
    if selector_of(program).lists_to_count:
        with pytest.raises(Exception, match="one by one"):
            engine_for(program).trends(*[None] * 4)
        return
    chance, total = random.Random(text), 0
    for seed in range(60):
        if total and seed >= 6:
            break
        events = families.stream(chance, text, (9, 12, 14)[seed % 3], 2 + seed % 2)
        try:
            expected = harness.expected_matches(query.formula, events, query.window, True, 2000, options)
        except oracle.TooLarge:
            continue
        rows = harness.rows_of(program, events, keyed=True)
        names, table = rows.names, table_of(chance, len(rows))
        assert rows.keys is not None
        of_key = {names[int(key)]: np.flatnonzero(rows.keys == key) for key in set(rows.keys.tolist())}
        matches = [
            (of_key[key][first], of_key[key][last], {v: {of_key[key][p] for p in held} for v, held in mu})
            for key, found in expected.items() for first, last, mu in found
        ]  # fmt: skip
        total += len(matches)
        shown = [v for v in query.variables if not is_hidden(v.mark)]
        singles, variables = [v.mark for v in shown if v.single], [v.mark for v in shown]
        for groups in groups_of(program, singles[:2] + singles[-1:]):
            trend = trend_of(chance.choice(variables), groups)
            wanted = slowly(trend, table, matches)
            same(quickly(trend, program, rows, table, []), wanted)
            with shrunk():
                same(quickly(trend, program, rows, table, harness.random_cuts(seed, len(rows))), wanted)
    assert total or "a.x + b.y" in text  # which the oracle knows by another name


# ---------------------------------------------------------------- more matches than anyone can list


def loop(n: int, trend: Trend, values: list[Any] | None = None) -> dict[str, Any]:
    """A+ a ; B b over n times A and one B: 2ⁿ − 1 matches."""
    made, _ = families.compiled("A+ a ; B b")
    program = harness.compiled(made.query.formula, None)
    table = pa.table({"x": pa.array((values or [1] * n) + [0], pa.int64())})
    a, b = (1 << program.guards.index(frozenset({name})) for name in "AB")
    symbols = np.array([a] * n + [b])
    rows = harness.Rows(symbols, np.arange(n + 1))
    engine, grouping = engine_for(program), Grouping(trend, program, table)
    trends = engine.trends(grouping.lift(), grouping.of_row, grouping.width, uncut=False)
    engine.sum_up(trends, *rows.cut(0, n + 1), np.arange(n + 1))
    engine.sum_rest(trends)
    (row,) = grouping.batch(trends.found).to_pylist()
    return row


@pytest.mark.parametrize("text", ["A+ a ; B b", "(A+ a ; B b) UNLESS C", "A+ a ; B b WHERE a.y = b.y"])
def test_memory_is_that_of_the_runs(text: str) -> None:
    """What is below a node is forgotten once its values are known."""
    made, options = families.compiled(text)
    program, n = harness.compiled(made.query.formula, None, options), 300_000
    trend = Trend((), (Summed("MAX", "a", "x", ("most",), ""),))
    table = pa.table({"x": pa.array(np.arange(n) % 1000 - 5 * (np.arange(n) == n - 1))})
    bit = {kind: sum(1 << i for i, names in enumerate(program.guards) if kind in names) for kind in "AB"}
    symbols = np.array([[bit["A"]] * (n - 1) + [bit["B"]], *[[7] * n] * len(program.terms)]).T.copy()
    engine, grouping = engine_for(program), Grouping(trend, program, table)
    trends = engine.trends(grouping.lift(), grouping.of_row, grouping.width, uncut=False)
    engine.sum_up(trends, symbols if program.terms else symbols[:, 0].copy(), np.arange(n))
    engine.sum_rest(trends)
    assert grouping.batch(trends.found).to_pylist()[0]["most"] == 999
    assert len(engine.stepper.store.arena.row) <= max(2 * capacities.NODES, 1 << 10) < n


NUMBER = Summed("COUNT", None, None, ("n",), "COUNT(*)")
SUM = Summed("SUM", "a", "x", ("s",), "SUM(a.x)")
MEAN = Summed("AVG OF DOUBLE", "a", "x", ("s", "m", "power"), "AVG(a.x)")


@pytest.mark.parametrize("n", [1, 2, 30, 31, 62, 63, 64, 100, 117])
def test_numbers_are_exact(n):
    """Each A is in half of the 2ⁿ subsets."""
    values = [(-1) ** k * (k + 1) for k in range(n)]
    row = loop(n, Trend((), (NUMBER, SUM)), values)
    assert row["n"] == 2**n - 1
    assert row["s"] == sum(values) * 2 ** (n - 1)


@pytest.mark.parametrize("n", [127, 128, 154, 1000])
def test_beyond_38_digits_is_an_error(n):
    with pytest.raises(ExecutionError) as caught:
        loop(n, Trend((), (NUMBER,)))
    assert caught.value.condition == "TREND_OVERFLOW"
    assert "COUNT(*) does not fit DECIMAL(38) in the group of all matches" in str(caught.value)
    assert "WITHIN" in str(caught.value)


def test_the_error_names_the_group():
    by = GroupedBy("x", "b", "by", "b.x")
    with pytest.raises(ExecutionError, match=r"in the group b\.x = 0"):
        loop(130, Trend((by,), (SUM,)))


@pytest.mark.parametrize("n", [10, 1000, 20_000])
def test_a_mean_needs_no_digits(n):
    """2²⁰⁰⁰⁰ is more than a float can hold; the mean of all is that of one."""
    row = loop(n, Trend((), (MEAN, Summed("MAX", "a", "x", ("most",), ""))), list(range(n)))
    assert row["s"] / row["m"] == pytest.approx((n - 1) / 2, rel=1e-6)
    assert row["most"] == n - 1


def test_more_groups_than_can_be_numbered():
    n = 2**7
    table = pa.table({"x": pa.array(range(n), pa.int64())})
    made, _ = families.compiled("A a ; B b")
    groups = [GroupedBy("x", "a", f"by{i}", "a.x") for i in range(9)]
    with pytest.raises(ExecutionError) as caught:
        Grouping(Trend(tuple(groups), ()), harness.compiled(made.query.formula, None), table)
    assert caught.value.condition == "TREND_GROUPS"


def test_primes():
    assert all(all(p % d for d in range(2, int(p**0.5) + 1)) for p in semirings.PRIMES)
    assert np.prod([float(p) for p in semirings.PRIMES]) > 8 * semirings.LIMIT > 1e40
