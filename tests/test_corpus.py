"""Every case of tests/cases through the front end, the oracle and the engines; Spark runs them in tests/spark_ext."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import Any

import corpus
import exhaustive
import harness
import oracle
import pytest
import sqlglot
import strategies
from corpus import Case, CaseMatch, Row
from hypothesis import assume, given
from hypothesis import strategies as st

import cersql
from planner import cel, terms
from planner.across import Across
from planner.formula import Formula
from planner.terms import Side, Term, parts_of

CASES = corpus.load_cases()

# Cases that the front end refuses for now, with what they need. A case that starts to pass must leave this list.
NOT_YET: dict[str, str] = {}


def cases() -> list[Any]:
    """The cases as parameters; those that wait for something are strict expected failures."""
    return [
        pytest.param(
            case,
            id=case.id,
            marks=[pytest.mark.xfail(reason=f"needs {NOT_YET[case.id]}", raises=cersql.CersqlError, strict=True)]
            if case.id in NOT_YET
            else [],
        )
        for case in CASES
    ]


def in_order(query: Any, rows: tuple[Row, ...]) -> list[Row]:
    """The rows by ORDER BY; NULLs first, unless the query says otherwise."""

    def key(row: Row) -> list[tuple[bool, Any]]:
        return [
            ((row[order.column] is None) == order.nulls_last, 0 if row[order.column] is None else row[order.column])
            for order in query.order_by
        ]

    return sorted(rows, key=key)


def code(sql: str, row: Row) -> int | None:
    """The value of an expression on a row as a whole number that compares alike (numbers with up to three decimals)."""
    value = corpus.evaluate(sqlglot.parse_one(sql, read="spark"), row)
    if isinstance(value, str):
        return int.from_bytes(value.encode().ljust(7, b"\0"))
    return None if value is None else round(value * 1000)


def event_of(query: Any, row: Row, conditions: set[str], terms: set[str]) -> oracle.Event:
    """The row as the oracle sees it: its types, the conditions that are TRUE, and what is compared."""
    types = {name for name, condition in query.types if corpus.holds(condition, row)}
    true = {sql for sql in conditions if corpus.holds(sql, row)}
    key = tuple(row[column] for column in query.partition_by)
    values = tuple((sql, value) for sql in terms if (value := code(sql, row)) is not None)
    return oracle.Event(frozenset(types | true), row[query.order_by[0].column], key, values)


def conditions_of(formula: Formula) -> set[str]:
    """The conditions that the formula's filters ask of events."""
    found = set[str]().union(*map(conditions_of, formula.children()))
    match formula:
        case cel.Filter(_, _, predicate):
            found.add(predicate.sql)
        case cel.FilterAny(_, sides):
            found |= {predicate.sql for _, predicate in sides}
    return found | {side.predicate.sql for side in sides_of(formula) if isinstance(side, terms.Test)}


def sides_of(formula: Formula) -> list[Side]:
    """The sides of the formula's own conditions that compare events."""
    clauses = formula.clauses if isinstance(formula, Across) else ()
    clauses = (formula.sides,) if isinstance(formula, cel.Compare) else clauses
    return [side for clause in clauses for side in clause]


def terms_of(formula: Formula) -> set[str]:
    """What the formula compares of events."""
    found = set[str]().union(*map(terms_of, formula.children()))
    if isinstance(formula, cel.Agree):
        found |= {sql for _, sql in formula.terms}
    for side in sides_of(formula):
        found |= {part.sql for part in parts_of(side) if isinstance(part, Term)}
    return found


def prepared(case: Case) -> tuple[Any, list[Row], list[oracle.Event]]:
    """The compiled case, its rows in order and its events."""
    compiled = cersql.compile(case.query, schemas={"events": corpus.SCHEMA})
    formula = compiled.query.formula
    where = compiled.query.sources[0].where
    rows = [row for row in in_order(compiled.query, case.rows) if where is None or corpus.holds(where.text, row)]
    conditions, terms = conditions_of(formula), terms_of(formula)
    return compiled, rows, [event_of(compiled.query, row, conditions, terms) for row in rows]


def by_keys(compiled: Any, rows: list[Row], events: list[oracle.Event]) -> tuple[list[Row], list[oracle.Event]]:
    """What the engine is fed: the planner's keys besides those of PARTITION BY, without rows that have NULL for one."""
    keys = compiled.plan.query.keys
    kept = []
    for row, event in zip(rows, events, strict=True):
        own = tuple(code(key.sql, row) for key in keys)
        if None not in own:
            kept.append((row, replace(event, key=(*event.key, *own))))
    return [row for row, _ in kept], [event for _, event in kept]


def bound(
    query: Any, rows: list[Row], events: list[oracle.Event], matches: dict[Hashable, Any], keyed: bool
) -> list[CaseMatch]:
    """Matches as the case writes them: the user's variables with the ids of their events."""
    ids: dict[Hashable, list[int]] = {}
    for row, event in zip(rows, events, strict=True):
        ids.setdefault(event.key if keyed else None, []).append(row["id"])
    shown = [v for v in query.variables if not v.mark.startswith("@")]
    found = []
    for key, listed in matches.items():
        for _, _, mu in listed:
            held = dict(mu)
            found.append(corpus.case_match({v.name: [ids[key][p] for p in held.get(v.mark, ())] for v in shown}))
    return found


def same(found: list[CaseMatch], case: Case) -> None:
    """The same matches, each once."""
    shown = [sorted(map(sorted, matches)) for matches in (found, case.matches)]
    assert shown[0] == shown[1]


def check_oracle(case: Case) -> None:
    """The oracle finds the case's matches."""
    compiled, rows, events = prepared(case)
    keyed = bool(compiled.query.partition_by)
    query = compiled.query
    options = harness.Options(query.strategy, query.consume, query.skip)
    matches = harness.expected_matches(query.formula, events, query.window, keyed, options=options)
    same(bound(compiled.query, rows, events, matches, keyed), case)


@pytest.mark.parametrize("case", cases())
def test_oracle(case: Case) -> None:
    check_oracle(case)


@pytest.mark.parametrize("case", cases())
def test_engine(case: Case) -> None:
    compiled, rows, events = prepared(case)
    rows, events = by_keys(compiled, rows, events)
    keyed = bool(compiled.query.partition_by or compiled.plan.query.keys)
    for found in harness.every_way(compiled.program, events, keyed, seed=1).values():
        same(bound(compiled.query, rows, events, found, keyed), case)
    fed = harness.rows_of(compiled.program, events, keyed)
    assert harness.count(compiled.program, fed) == len(case.matches)


def says_the_same(formula: Formula) -> bool:
    """Whether the formula's text means it: a filter on a bare type's name would cover its aliased atoms too."""
    if isinstance(formula, cel.Filter):
        atoms = list(exhaustive.atoms(formula))
        aliased = {atom.type or "ANY" for atom in atoms if (atom.type or "ANY") not in atom.marks}
        chosen = formula.binds() if formula.variable is None else {formula.variable}
        if aliased & chosen:
            return False
    return all(map(says_the_same, formula.children()))


@given(strategies.formulas(4), strategies.streams(max_size=8, keys=(0, 1, None)), strategies.windows(), st.booleans())
@strategies.examples(40)
def test_a_failure_is_printed_as_a_case(
    formula: Formula, rows: list[strategies.Row], window: oracle.Window | None, keyed: bool
) -> None:
    """The printed entry can be pasted: its text compiles to a formula with the same matches."""
    assume(says_the_same(formula))
    printed = strategies.as_case(formula, rows, window, keyed)
    (case,) = corpus.parse_cases("printed", printed)
    check_oracle(case)


def test_cases_are_well_formed() -> None:
    names = [case.id for case in CASES]
    assert len(names) == len(set(names)) >= 30
    assert set(NOT_YET) <= set(names)
    for case in CASES:
        if "PROJECT" not in case.query and not case.query.startswith("SELECT"):  # may hide what tells two apart
            assert len(set(case.matches)) == len(case.matches), f"{case.id} lists a match twice"
        ids = {row["id"] for row in case.rows}
        assert all(set(held) <= ids for match in case.matches for _, held in match), case.id


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("v > 5", [False, False, True]),
        ("NOT v > 5", [False, True, False]),
        ("v IS NULL", [True, False, False]),
        ("v IS NOT NULL AND v <> 7", [False, True, False]),
        ("v IN (5, 6)", [False, True, False]),
        ("NOT v IN (5, NULL)", [False, False, False]),
        ("v > 5 OR type = 'A'", [True, True, True]),
        ("v <=> NULL", [True, False, False]),
        ("v BETWEEN 5 AND 6", [False, True, False]),
    ],
)
def test_the_evaluator_has_sqls_nulls(sql: str, expected: list[bool]) -> None:
    rows = [{"v": None, "type": "A"}, {"v": 5.0, "type": "A"}, {"v": 7.0, "type": "A"}]
    assert [corpus.holds(sql, row) for row in rows] == expected
