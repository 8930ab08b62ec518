"""The prefixes of a sequence: what each asks for, and its starts, held to the oracle."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import corpus
import harness
import pytest
import test_corpus
from corpus import Case

import cersql
from cersql.api import SchemaCatalog
from cersql.binding.bind import bind
from cersql.binding.prefixes import Step, prefixes
from cersql.statements.planned import Compiled, planned

SCHEMAS = {"events": corpus.SCHEMA}
TABLES = {"Placed": "ts BIGINT, id INT", "Paid": "ts BIGINT, id INT", "Sent": "ts BIGINT, id INT"}


def steps(text: str, schemas: Any = SCHEMAS) -> tuple[Step, ...] | str:
    compiled = cersql.compile(text, schemas)
    return prefixes(compiled.syntax, compiled.query, False)


def shown(pattern: str) -> list[str]:
    found = steps(f"FROM events PATTERN {pattern} ORDER BY ts RETURN *")
    assert not isinstance(found, str), found
    return [" | ".join([step.added, *step.conditions]) for step in found]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("A ; B ; C", ["A", "B", "C"]),
        ("SEQ(A a, B+ b, C)", ["A a", "B+ b", "C"]),
        ("A : B ; C", ["A", ": B", "C"]),
        ("(A OR B) ; (B ; C)", ["A OR B", "B", "C"]),
        ("A? ; B ; C* ; D", ["A? ; B", "C* ; D"]),
        ("A ; B ; C?", ["A", "B ; C?"]),
        ("A a ; B b WHERE a.v > 1 AND (b.v > a.v OR b.v = 2)", ["A a | a.v > 1", "B b | (b.v > a.v OR b.v = 2)"]),
        ("A x ; B b ; A c WHERE A.v > 1 AND b.v BETWEEN 1 AND 2",
         ["A x", "B b | b.v BETWEEN 1 AND 2", "A c | A.v > 1"]),
        ("A a ; B b WHERE [v] AND COUNT(*) > 1", ["A a | [v]", "B b | COUNT(*) > 1"]),
        ("A a ; B b WHERE NOT [v] AND a.v = 1", ["A a | a.v = 1", "B b | NOT [v]"]),
        ("(A a ; B b) FILTER a.v > 1", ["A a | a.v > 1", "B b"]),
        ("(A a ; B b) AS m WHERE m.v > 1", ["A a", "B b | m.v > 1"]),
        ("A ; !B ; C", ["A", "!B ; C"]),
        ("SEQ(!A, B, !C, D, !E) WITHIN 9", ["B", "!C, D", "!A, !E"]),
        ("A a ; !B b ; C c ; D d WHERE b.v = d.v", ["A a", "C c", "D d, !B b | b.v = d.v"]),
        ("A a ; !B b ; C c ; D d WHERE b.v = a.v", ["A a", "!B b ; C c | b.v = a.v", "D d"]),
        ("A ; (B UNLESS X x) ; C", ["A", "B UNLESS X x", "C"]),
    ],
)  # fmt: skip
def test_what_each_step_adds(pattern: str, expected: list[str]) -> None:
    assert shown(pattern) == expected


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("A", "not a sequence"),
        ("A+", "not a sequence"),
        ("NXT(A ; B)", "not a sequence"),
        ("(A ; B) OR C", "not a sequence"),
        ("(A ; B)+", "not a sequence"),
        ("A ; B?", "only one part"),
        ("A ; (B UNLESS X x) ; C c WHERE x.v = c.v", "compares what must not happen inside a part"),
        (" ; ".join(["A"] * 25), "25 parts, and at most 24"),
        ("A ; B WITHIN 10 SLIDE 5", "its windows slide"),
    ],
)
def test_what_has_no_steps(pattern: str, why: str) -> None:
    returned = "COUNT(*)" if "SLIDE" in pattern else "*"
    found = steps(f"FROM events PATTERN {pattern} ORDER BY ts RETURN {returned}")
    assert isinstance(found, str)
    assert why in found


def test_sources_that_the_text_does_not_name_are_those_of_the_whole() -> None:
    found = steps("PATTERN Placed p : Paid q ; Sent WHERE p.id = q.id ORDER BY ts RETURN *", TABLES)
    for step in found:
        assert isinstance(step, Step)
        assert [source.alias for source in bind(step.query, SchemaCatalog(TABLES)).sources] == list(TABLES)


def test_a_where_before_the_pattern_is_of_rows_or_of_events() -> None:
    rows = steps("FROM events WHERE v > 3 PATTERN A a ; B b WHERE b.v > a.v ORDER BY ts RETURN *")
    events = steps("FROM events WHERE a.v > 3 PATTERN A a ; B b ORDER BY ts RETURN *")
    for found, first, filtered in ((rows, (), True), (events, ("a.v > 3",), False)):
        assert not isinstance(found, str)
        assert found[0].conditions == first
        for step in found:
            (source,) = bind(step.query, SchemaCatalog(SCHEMAS)).sources
            assert (source.where is not None) == filtered


def test_rows_of_several_sources_beside_conditions() -> None:
    text = "FROM Placed, Paid WHERE Placed.id > 3 PATTERN Placed p ; Paid q WHERE p.id = q.id ORDER BY ts RETURN *"
    found = steps(text, TABLES)
    assert isinstance(found, str)
    assert "WHERE for the rows of several sources" in found


# ---------------------------------------------------------------- against the oracle


def starts_of_oracle(case: Case) -> set[Any]:
    """The first events of all matches of a query, by its key."""
    compiled, _, events = test_corpus.prepared(case)
    found = harness.expected_matches(compiled.query.formula, events, compiled.query.window, True)
    return {(key, match[0]) for key, matches in found.items() for match in matches}


def n_starts(step: Step, case: Case) -> int:
    """How many matches the engine counts of a step's query."""
    query = bind(step.query, SchemaCatalog(SCHEMAS))
    compiled = Compiled(step.query, query, planned(step.query, query))
    formula = query.formula
    rows = test_corpus.in_order(query, case.rows)
    asked = test_corpus.conditions_of(formula), test_corpus.terms_of(formula)
    events = [test_corpus.event_of(query, row, *asked) for row in rows]
    _, events = test_corpus.by_keys(compiled, rows, events)
    return harness.count(compiled.program, harness.rows_of(compiled.program, events, keyed=True))


def drawn(seed: int) -> tuple[str, list[str], Case]:
    """A query, its prefixes written by hand, and rows."""
    draw = random.Random(seed)
    n = draw.randint(2, 4)
    loops = [draw.choice(["", "", "+", ":+"]) for _ in range(n)]
    joints = [draw.choice(["; ", "; ", "; ", ": "]) for _ in range(n)]
    vetoes = [draw.random() < 0.3 and k > 0 and joints[k] == "; " for k in range(n)]
    parts = [f"{draw.choice('ABC')}{loops[k]} x{k}" for k in range(n)]
    conditions = []
    for _ in range(draw.randint(0, 3)):
        i, j = sorted(draw.sample(range(n), 2))
        of_first = draw.random() < 0.3
        said = f"x{i}.v > {draw.randint(0, 3)}" if of_first else f"x{i}.v {draw.choice(['<', '=', '<>'])} x{j}.v"
        conditions.append((i if of_first else j, said))
    late = {}  # the part at which a veto's condition is known
    for k in range(1, n):
        if vetoes[k] and draw.random() < 0.6:
            late[k] = draw.randint(k, n - 1)
            conditions.append((late[k], f"n{k}.v = x{late[k]}.v"))
    window = draw.choice(["", "WITHIN 4", "WITHIN 3 EVENTS", "WITHIN < 5"])

    def written(length: int) -> str:
        pattern = ""
        for k in range(length):
            veto = f"!D n{k} ; " if vetoes[k] and late.get(k, 0) < length else ""
            pattern += f"{joints[k] if k else ''}{veto}{parts[k]} "
        where = " AND ".join(said for at, said in conditions if at < length)
        clauses = f"{f'WHERE {where}' if where else ''} PARTITION BY key ORDER BY ts, id {window}"
        return f"FROM events PATTERN {pattern} {clauses} RETURN *"

    rows = []
    for i in range(draw.randint(3, 9)):
        value = draw.choice([None, 0.0, 1.0, 2.0, 3.0])
        rows.append(
            {"id": i, "type": draw.choice("AABBCCD"), "ts": i // 2, "v": value, "key": draw.choice([0, 1, None])}
        )
    every = [written(length) for length in range(1, n + 1)]
    return every[-1], every, Case("drawn", str(seed), every[-1], tuple(rows), ())


@pytest.mark.parametrize("seed", range(60))
def test_the_starts_of_each_step_are_those_of_the_oracle(seed: int) -> None:
    text, every, case = drawn(seed)
    found = steps(text)
    assert not isinstance(found, str), text
    assert len(found) == len(every)
    expected = [len(starts_of_oracle(replace(case, query=prefix))) for prefix in every]
    assert [n_starts(step, case) for step in found] == expected, text
    assert expected == sorted(expected, reverse=True)
