"""Types that exclude each other: `(A x OR D x) ; B b WHERE x.v < b.v` finds each match on one way, so that runs hold
what they compare."""

from __future__ import annotations

import random
from functools import reduce

import harness
import oracle
import pytest
from harness import Options

import cersql
from planner import cel
from planner.apart import Demand, types_exclude
from planner.formula import Formula
from planner.terms import Comparison, Term

TYPES, ATTRIBUTES, OPERATORS = "ABCD", ("u", "v"), ("=", "<>", "<", "<=")
SCHEMA = {"t": "type STRING, ts LONG, u INT, v INT"}
CHOICE = "FROM t PATTERN (A x OR D x) ; C c WHERE x.v < c.u ORDER BY ts WITHIN 100 RETURN *"


def item(chance: random.Random, name: str) -> Formula:
    """Some types, of which each event of the variable is one, once or in a loop."""
    of = chance.sample(TYPES, chance.choice((1, 1, 2, 2, 3)))
    made = reduce(cel.Or, (cel.Event(type, frozenset({name})) for type in of))
    shape = chance.random()
    if shape < 0.2:
        return cel.Iteration(made)
    return cel.Sequence(made, made) if shape < 0.25 else made


def pattern(chance: random.Random) -> Formula:
    """`(A x OR D x) ; B+ y ; …`, in which events are compared; also as one of two alternatives."""
    names = ["x", "y", "z", "w"][: chance.randint(2, 4)]
    made = item(chance, names[0])
    for name in names[1:]:
        join = cel.Contiguous if chance.random() < 0.15 else cel.Sequence
        made = join(made, item(chance, name))
    for _ in range(chance.choice((1, 1, 2))):
        a, b = chance.sample(names, 2)
        left, right = Term(a, chance.choice(ATTRIBUTES)), Term(b, chance.choice(ATTRIBUTES))
        made = cel.Compare(made, (Comparison(left, chance.choice(OPERATORS), right, "INT"),))
    if chance.random() < 0.2:
        return cel.Or(made, cel.Event(chance.choice(TYPES), frozenset({chance.choice(names)})))
    return made


def stream(chance: random.Random, n: int) -> list[oracle.Event]:
    def event(time: int) -> oracle.Event:
        values = tuple((name, chance.randint(1, 3)) for name in ATTRIBUTES if chance.random() < 0.9)
        return oracle.Event(frozenset({chance.choice(TYPES)}), time, None, values)

    return [event(time) for time in range(n)]


OPTIONS = (Options(), Options(), Options("NXT"), Options("LAST"), Options("NEXT_MATCH"), Options(consume="PARTITION"))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [*range(25), *(pytest.param(n, marks=pytest.mark.exhaustive) for n in range(25, 500))])
def test_engine_and_oracle_agree(seed: int) -> None:
    chance = random.Random(seed)
    window = chance.choice((None, oracle.Window("time", 4), oracle.Window("events", 5)))
    options = chance.choice(OPTIONS)
    formula, events = pattern(chance), stream(chance, 8)
    harness.check(formula, events, window, seed=seed, options=options, knows=True)


def steppers(text: str, schema: dict[str, str] = SCHEMA) -> str:
    return cersql.compile(text, schema).explain("physical").split("run by: ")[1].split("\n")[0]


@pytest.mark.parametrize(
    ("text", "schema", "wanted"),
    [
        (CHOICE, SCHEMA, "registers"),
        (CHOICE.replace("FROM t", "FROM t TYPE type"), {"t": "type INT, ts LONG, u INT, v INT"}, "registers"),
        (CHOICE.replace("FROM t", "FROM a A, a D, a C"), {"a": "ts LONG, u INT, v INT"}, "registers"),
        (CHOICE.replace("FROM t", "FROM r TYPE type, s TYPE type"), dict.fromkeys("rs", SCHEMA["t"]), "registers"),
        # A row can be both: each match that begins with it would be found twice.
        (CHOICE.replace(" ORDER", " DEFINE A AS u > 1, D AS v > 1, C AS TRUE ORDER"), SCHEMA, "general engine"),
        (CHOICE.replace("D x", "(A x FILTER x.u > 1)"), SCHEMA, "general engine"),
    ],
)
def test_runs_hold_values_where_a_row_is_of_one_type(text: str, schema: dict[str, str], wanted: str) -> None:
    assert steppers(text, schema) == wanted


def test_two_demands_exclude_each_other_where_each_way_of_one_does() -> None:
    demands = {
        "A": (Demand(0, "A"), Demand(1, "A")), "B": (Demand(0, "B"), Demand(1, "B")),
        "first": (Demand(0),), "second": (Demand(1),), "third": (Demand(2),), "free": (Demand(),),
    }  # fmt: skip
    apart = {(a, b) for a in demands for b in demands if a < b and types_exclude(demands, a, b)}
    of_sources = {("first", "second"), ("first", "third"), ("second", "third"), ("A", "third"), ("B", "third")}
    assert apart == {("A", "B"), *of_sources}
    assert not types_exclude(demands, "A", "unknown")
