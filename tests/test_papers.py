"""The papers' worked examples, as printed, through the oracle and through an engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import harness
import oracle

from planner import cel
from planner.cel import As, Contiguous, ContiguousIteration, Event, Filter, Iteration, Or
from planner.formula import Formula
from planner.terms import Predicate


@dataclass(frozen=True)
class Row:
    """A row of one of the papers' streams."""

    type: str
    name: object
    value: int


CONDITIONS = {
    "tmp > 40": lambda row: row.value > 40,
    "hum <= 25": lambda row: row.value <= 25,
    "hum < 30": lambda row: row.value < 30,
    "hum > 60": lambda row: row.value > 60,
    "id = 0": lambda row: row.name == 0,
    "id = 1": lambda row: row.name == 1,
    "name = 'MSFT'": lambda row: row.name == "MSFT",
    "name = 'INTC'": lambda row: row.name == "INTC",
    "name = 'INTL'": lambda row: row.name == "INTL",
    "name = 'AMZN'": lambda row: row.name == "AMZN",
    "price > 100": lambda row: row.value > 100,
    "price < 2000": lambda row: row.value < 2000,
}


def stream_of(rows: Sequence[Row]) -> list[oracle.Event]:
    return [
        oracle.Event(frozenset({row.type, *(sql for sql, holds in CONDITIONS.items() if holds(row))}), n)
        for n, row in enumerate(rows)
    ]


def atom(type: str, *marks: str) -> Event:
    return Event(type, frozenset(marks or {type}))


def sequence(*parts: Formula) -> Formula:
    left = parts[0]
    for part in parts[1:]:
        left = cel.Sequence(left, part)
    return left


def where(formula: Formula, conditions: Sequence[tuple[str, str]]) -> Formula:
    """A FILTER with a conjunction of one condition per variable: as many filters."""
    for variable, sql in conditions:
        formula = Filter(formula, variable, Predicate(sql))
    return formula


def answers(formula: Formula, stream: Sequence[oracle.Event]) -> set[oracle.Match]:
    """The matches, on which engine and oracle agree."""
    harness.check(formula, stream)
    return oracle.evaluate(formula, stream)


def positions(formula: Formula, stream: Sequence[oracle.Event]) -> list[list[int]]:
    """The matches as the CEL paper prints them: sets of positions."""
    return sorted(sorted({p for _, held in mu for p in held}) for _, _, mu in answers(formula, stream))


def bound(formula: Formula, stream: Sequence[oracle.Event]) -> list[Mapping[str, list[int]]]:
    """The matches as variable → positions."""
    found = [{variable: sorted(held) for variable, held in sorted(mu)} for _, _, mu in answers(formula, stream)]
    return sorted(found, key=str)


# ---------------------------------------------------------------- CEL, Section 3, on the stream of Fig. 1

KINDS = "HTHHTTTHH"
IDS = (2, 0, 0, 1, 1, 0, 1, 1, 0)
VALUES = (25, 45, 20, 25, 40, 42, 25, 70, 18)
FIGURE_1 = stream_of([Row(*row) for row in zip(KINDS, IDS, VALUES, strict=True)])

FIRE = [("T", "tmp > 40"), ("H", "hum <= 25"), ("T", "id = 0"), ("H", "id = 0")]
T, H = atom("T"), atom("H")
# `H IN H1` is H with both variables: φ₃'s filter asks H.id = 1 of both.
H1, H2 = As(H, "H1"), As(H, "H2")
RISE = [("H1", "hum < 30"), ("H2", "hum > 60"), ("H", "id = 1"), ("T", "id = 1")]


def test_cel_phi_1() -> None:
    assert positions(where(sequence(T, H), FIRE), FIGURE_1) == [[1, 2], [1, 8], [5, 8]]


def test_cel_phi_1_contiguous() -> None:
    assert positions(where(Contiguous(T, H), FIRE), FIGURE_1) == [[1, 2]]


def test_cel_phi_2() -> None:
    either_order = where(Or(sequence(T, H), sequence(H, T)), FIRE)
    assert positions(either_order, FIGURE_1) == [[1, 2], [1, 8], [2, 5], [5, 8]]


def test_cel_phi_3() -> None:
    formula = where(sequence(H1, Iteration(T), H2), RISE)
    assert positions(formula, FIGURE_1) == [[3, 4, 6, 7], [3, 4, 7], [3, 6, 7]]
    assert {"H": [3, 7], "H1": [3], "H2": [7], "T": [4, 6]} in bound(formula, FIGURE_1)


def test_cel_phi_3_contiguous() -> None:
    formula = where(sequence(H1, ContiguousIteration(T), H2), RISE)
    assert positions(formula, FIGURE_1) == [[3, 4, 7], [3, 6, 7]]


def test_cel_phi_2_with_all() -> None:
    """φ′₂: T ALL H gives what φ₂ gives, and nothing more: no event is both T and H."""
    assert positions(where(cel.All(T, H), FIRE), FIGURE_1) == [[1, 2], [1, 8], [2, 5], [5, 8]]


def test_cel_phi_4() -> None:
    """π_T(φ₃) prints {4, 6}, {4} and {6}; three matches of ours, since all start at 3 and end at 7."""
    formula = cel.Project(where(sequence(H1, Iteration(T), H2), RISE), frozenset({"T"}))
    assert positions(formula, FIGURE_1) == [[4], [4, 6], [6]]
    assert {(s, e) for s, e, _ in oracle.evaluate(formula, FIGURE_1)} == {(3, 7)}


# ---------------------------------------------------------------- CEL, Section 7

PHI_1 = where(sequence(T, H), FIRE)
PHI_3 = where(sequence(H1, Iteration(T), H2), RISE)


def test_cel_strict() -> None:
    """STRICT(φ₁) is φ′₁."""
    assert positions(cel.Strategy("STRICT", PHI_1), FIGURE_1) == [[1, 2]]


def test_cel_nxt() -> None:
    assert positions(cel.Strategy("NXT", PHI_1), FIGURE_1) == [[1, 2], [1, 8]]
    assert positions(cel.Strategy("NXT", PHI_3), FIGURE_1) == [[3, 4, 6, 7]]


def test_cel_last() -> None:
    assert positions(cel.Strategy("LAST", PHI_1), FIGURE_1) == [[1, 2], [5, 8]]
    assert positions(cel.Strategy("LAST", PHI_3), FIGURE_1) == [[3, 4, 6, 7]]


def test_cel_max() -> None:
    assert positions(cel.Strategy("MAX", PHI_1), FIGURE_1) == [[1, 2], [1, 8], [5, 8]]
    assert positions(cel.Strategy("MAX", PHI_3), FIGURE_1) == [[3, 4, 6, 7]]


def test_cel_strategies_as_a_clause() -> None:
    for rule, last in (("NXT", [[1, 2], [1, 8]]), ("LAST", [[1, 2], [5, 8]]), ("STRICT", [[1, 2]])):
        options = harness.Options(rule)
        harness.check(PHI_1, FIGURE_1, options=options)
        found = oracle.evaluate(PHI_1, FIGURE_1, strategy=rule)
        assert sorted([s, e] for s, e, _ in found) == last


# ---------------------------------------------------------------- CEL, Fig. 8


def test_cel_figure_8() -> None:
    """U ; [(V+ ; W) OR W] on U V V W: the answer at 3."""
    u, v, w = atom("U"), atom("V"), atom("W")
    stream = stream_of([Row(type, None, 0) for type in "UVVW"])
    formula = sequence(u, Or(sequence(Iteration(v), w), w))
    assert positions(formula, stream) == [[0, 1, 2, 3], [0, 1, 3], [0, 2, 3], [0, 3]]
    assert {end for _, end, _ in oracle.evaluate(formula, stream)} == {3}


# ---------------------------------------------------------------- ACEL, Example 2, on the stream of Example 1

STOCKS = stream_of(
    [
        Row("SELL", "MSFT", 101),
        Row("SELL", "MSFT", 102),
        Row("SELL", "INTL", 80),
        Row("BUY", "INTL", 80),
        Row("SELL", "AMZN", 1900),
        Row("SELL", "INTL", 81),
        Row("BUY", "AMZN", 1920),
        Row("BUY", "MSFT", 101),
        Row("BUY", "INTL", 79),
        Row("SELL", "INTL", 80),
    ]
)


def example_2(intel: str) -> Formula:
    three = sequence(atom("SELL", "msft"), atom("SELL", "intel"), atom("SELL", "amzn"))
    conditions = [("msft", "name = 'MSFT'"), ("msft", "price > 100"), ("intel", f"name = '{intel}'")]
    return where(three, [*conditions, ("amzn", "name = 'AMZN'"), ("amzn", "price < 2000")])


def test_acel_example_2_as_printed() -> None:
    """The printed filter says INTC and the printed stream INTL, so nothing matches."""
    assert bound(example_2("INTC"), STOCKS) == []


def test_acel_example_2_as_meant() -> None:
    assert bound(example_2("INTL"), STOCKS) == [
        {"amzn": [4], "intel": [2], "msft": [0]},
        {"amzn": [4], "intel": [2], "msft": [1]},
    ]
