"""Every stage's print of representative queries, compared with tests/golden/<stage>/."""

from __future__ import annotations

from collections.abc import Callable
from xml.etree import ElementTree

import pytest
from queries import SCHEMAS

import cersql
from cersql.api import SchemaCatalog
from cersql.binding.bind import bind
from cersql.language.parse import parse
from cersql.show.drawing import layers, svg
from cersql.show.explain import STAGES, order_of_effect, show_query
from planner.automata.automaton import Automaton, Transition
from planner.rewrite.rules import RULES

QUERIES = {
    "sequence": (
        "FROM t TYPE type PATTERN A a ; B b WHERE a.v > 1 AND (b.v < 3 OR b.name = 'x') "
        "PARTITION BY k ORDER BY ts, w NULLS LAST WITHIN 10 MINUTES RETURN a.v, b.v + 1 AS next LIMIT 10"
    ),
    "loop": (
        "FROM t PATTERN SEQ(Start a, Step+ b[], End c) WHERE b.v BETWEEN 1 AND 2 "
        "ORDER BY ts WITHIN < 1 HOUR RETURN COUNT(b), MAX(b.v), LAST(b).name HAVING SUM(b.v) > 10"
    ),
    "contiguous": "FROM t PATTERN A a : B:+ b : C c ORDER BY ts RETURN *",
    "alternatives": (
        "FROM orders AS Placed, payments AS Paid PATTERN Placed p ; (Paid q OR Placed r)+ "
        "WHERE p.price > 1 OR q.paid > 2 "
        "ORDER BY ts WITHIN 5 EVENTS RETURN p.id, COUNT(*)"
    ),
    "defined": (
        "FROM ticks DEFINE Up AS x > 1 AND n < 5 PATTERN (Up ; Down)+ AS w "
        "FILTER w.x <> 0 ORDER BY n WITHIN 500 RETURN w"
    ),
    "aggregate": (
        "PATTERN orders o ; (payments p ; payments q) WHERE payments.paid > 1 AND o.price > AVG(payments.paid) "
        "ORDER BY ts RETURN o.id, SUM(payments.paid) AS total"
    ),
}


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("name", QUERIES)
def test_print(name: str, stage: str, golden: Callable[[str, str, str], None]) -> None:
    golden(stage, name, cersql.compile(QUERIES[name], SCHEMAS).explain(stage))


# What rules change, and what candidates refuse.
CHANGED = {
    "pushed-filters": "FROM t PATTERN (A a UNLESS (X ; X)) ; B b WHERE a.v > 1 AND a.v < b.v ORDER BY ts RETURN a.v",
    "absence-outside": "FROM t PATTERN (A a ; B b ; NOT X x) AS w WHERE x.v > a.v ORDER BY ts WITHIN 1 HOUR RETURN w.v",
    "choosing-once": "FROM t PATTERN SEQ(!LAST(A ; B), NXT(MAX(C+ c))) ORDER BY ts WITHIN 1 HOUR RETURN c.v",
    "inside-choices": (
        "FROM t PATTERN A z ; NXT(A y ; !X x ; B b) WHERE x.v >= z.v ORDER BY ts WITHIN 1 HOUR RETURN y.v"
    ),
    "alike-alternatives": (
        "FROM t PATTERN ((A a ; B b) PART BY (v) ; X x) OR (A a ; (B b ; X x) PART BY (v)) ORDER BY ts "
        "WITHIN 1 HOUR RETURN a.v"
    ),
    "a-key": "FROM t PATTERN A a ; B b WHERE a.k = b.k ORDER BY ts WITHIN 1 HOUR RETURN a.v",
    "parallel": "FROM t PATTERN ALL(A a, B b) WHERE a.w = b.v ORDER BY ts WITHIN 1 HOUR SEMANTICS ALL RETURN a.v",
    "a-decided-absence": "FROM t PATTERN A a ; B b ; NOT X ORDER BY ts WITHIN 1 HOUR RETURN a.v",
}


@pytest.mark.parametrize("stage", ["rewritten", "physical"])
@pytest.mark.parametrize("name", CHANGED)
def test_print_of_what_is_changed_and_refused(name: str, stage: str, golden: Callable[[str, str, str], None]) -> None:
    golden(stage, name, cersql.compile(CHANGED[name], SCHEMAS).explain(stage))


def test_every_rule_has_an_example() -> None:
    shown = "".join(cersql.compile(text, SCHEMAS).explain("rewritten") for text in CHANGED.values())
    assert all(rule.__name__ in shown for rule in RULES)


def test_default_is_what_a_user_asks_for_first() -> None:
    compiled = cersql.compile(QUERIES["sequence"], SCHEMAS)
    parts = ("cel", "automaton", "physical")
    assert compiled.explain() == "\n\n".join(f"== {part} ==\n{compiled.explain(part)}" for part in parts)
    assert compiled.explain("dot").startswith("digraph")


@pytest.mark.parametrize("stage", ["mermaid", "svg"])
@pytest.mark.parametrize("name", ["sequence", "loop", "contiguous", "defined"])
def test_drawing(name: str, stage: str, golden: Callable[[str, str, str], None]) -> None:
    golden(stage, name, cersql.compile(QUERIES[name], SCHEMAS).explain(stage))


def test_a_drawing_is_well_formed() -> None:
    text = "FROM t PATTERN (A a ; B+ b)+ WHERE b.name = '<&>\"' AND a.v > 1 WITHIN 5 EVENTS ORDER BY ts RETURN *"
    compiled = cersql.compile(text, SCHEMAS)
    picture = ElementTree.fromstring(compiled.explain("svg"))
    states = {node.text for node in picture.iter("{http://www.w3.org/2000/svg}text") if (node.text or "")[0] == "q"}
    assert states == {f"q{q}" for q in range(compiled.plan.automaton.n_states)}
    assert "#60;#38;#62;" in compiled.explain("mermaid")


def test_layers_and_states_without_a_way_to_them() -> None:
    none = frozenset[str]()
    edges = tuple(Transition(p, none, none, q) for p, q in ((0, 1), (0, 2), (1, 3), (3, 0), (4, 4)))
    automaton = Automaton(5, edges, (0,), (3,))
    assert layers(automaton) == [[0], [1, 2], [3], [4]]
    assert ElementTree.fromstring(svg(automaton)).tag.endswith("svg")
    assert ElementTree.fromstring(svg(Automaton(0, (), (), ()))).tag.endswith("svg")


def test_an_unknown_stage() -> None:
    with pytest.raises(ValueError) as raised:
        cersql.compile(QUERIES["loop"], SCHEMAS).explain("svgs")
    assert "mermaid, svg" in str(raised.value)


def test_order_of_effect() -> None:
    compiled = cersql.compile(
        "RETURN a.v HAVING COUNT(*) > 1 LIMIT 3 ORDER BY ts WITHIN 5 EVENTS PARTITION BY k WHERE a.v > 1 "
        "PATTERN A a ; B b FROM t",
        SCHEMAS,
    )
    assert "order of effect: partition by, pattern, where, within, return, having, limit" in compiled.explain("cel")


def test_what_is_said_of_the_selection() -> None:
    def shown(clauses: str) -> str:
        tree = parse(f"FROM t PATTERN A a ; B b {clauses}")
        query = bind(tree, SchemaCatalog(SCHEMAS))
        return show_query(query, order_of_effect(tree, query))

    chosen = shown("SEMANTICS MAX CONSUME BY ANY ORDER BY ts RETURN * WITH TIMEOUTS")
    assert "semantics: MAX\nconsume by: ANY\nwith timeouts\n" in chosen
    assert "order of effect: pattern, semantics, consume by, return" in chosen
    skips = shown("AFTER MATCH SKIP TO FIRST b ORDER BY ts RETURN *")
    assert "after match skip: TO FIRST b\n" in skips
    assert "order of effect: pattern, after match skip, return" in skips
