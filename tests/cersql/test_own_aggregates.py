"""Aggregate functions of users' own: what they are held to when they are registered, without Spark."""

from __future__ import annotations

import math
import pickle
import threading
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pytest

import cersql
from cersql.binding import own_aggregates
from cersql.binding.own_aggregates import aggregate_named, same
from runtime.errors import CersqlError
from runtime.own import Own

Given = dict[str, Any]
LOCK = threading.Lock()


def given(**changed: Any) -> Given:
    """Arguments of register_aggregate for a sum, but for what is changed."""
    sums: Given = {
        "name": "TALLY", "lift": lambda x: x, "combine": lambda a, b: a + b, "lower": lambda a: a, "identity": 0,
        "type": "DOUBLE",
    }  # fmt: skip
    return {**sums, **changed}


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    yield
    own_aggregates.remove("TALLY")


def own(**changed: Any) -> Own:
    cersql.register_aggregate(**given(**changed))
    found = aggregate_named("TALLY")
    assert found is not None
    assert found.own is not None
    return found.own


def second(a: Any, b: Any) -> Any:
    return b


def mutating(a: list[Any], b: list[Any]) -> list[Any]:
    a.extend(b)
    return a


@pytest.mark.parametrize(
    ("changed", "law", "fragments"),
    [
        ({"combine": lambda a, b: a - b},
         "AGGREGATE_LAW", ("neutral with its identity", "a = 1, combine(identity, a) is -1")),
        ({"combine": lambda a, b: (a + b) / 2, "lift": float, "identity": 0.0}, "AGGREGATE_LAW", ("identity is",)),
        ({"combine": lambda a, b: b if a is None else a if b is None else (a + b) / 2, "identity": None},
         "AGGREGATE_LAW", ("not associative", "a = 1, b = 1, c = 2", "is 1.5, and combine(a, combine(b, c)) is 1.25",
              "holds (sum, number)")),
        ({"combine": lambda a, b: [*a, *b], "lift": lambda x: [x], "identity": []},
         "AGGREGATE_LAW", ("not commutative", "a = [1], b = [2], combine(a, b) is [1, 2]", "COLLECT_LIST")),
        ({"identity": 1}, "AGGREGATE_LAW", ("combine(identity, a) is 2, and a is 1", "0 of a sum")),
        ({"combine": lambda a, b: a + b if min(a, b) < 100 else a, "samples": [100, 200, 300]},
         "AGGREGATE_LAW", ("not commutative", "a = 100, b = 200")),
        ({"combine": mutating, "lift": lambda x: [x], "identity": [], "samples": [1]},
         "AGGREGATE_FUNCTION", ("changes what it is given", "make a new value")),
        ({"lower": lambda s: 1 / s}, "AGGREGATE_FUNCTION", ("lower(identity) raises ZeroDivisionError", "NULL")),
        ({"lift": lambda x: x.nothing}, "AGGREGATE_FUNCTION", ("lift(1) raises AttributeError", "samples=")),
        ({"lift": lambda x: x.nothing, "samples": ["a"]}, "AGGREGATE_FUNCTION", ("lift('a') raises",)),
        ({"lift": lambda: 1}, "AGGREGATE_FUNCTION", ("lift takes no value",)),
        ({"lift": lambda x, *, y: x}, "AGGREGATE_FUNCTION", ("lift takes no value",)),
        ({"lift": 3}, "AGGREGATE_FUNCTION", ("lift is 3",)),
        ({"identity": (n for n in ())}, "AGGREGATE_FUNCTION", ("lower(identity) raises TypeError",)),
        ({"lower": lambda a, held=LOCK: a}, "AGGREGATE_FUNCTION", ("cannot be sent to workers",)),
        ({"type": ""}, "AGGREGATE_TYPE", ("DECIMAL(10,2)",)),
        ({"name": "sum"}, "AGGREGATE_NAME", ("is an aggregate function already", "MY_SUM")),
        ({"name": "Grouping"}, "AGGREGATE_NAME", ("already",)),
        ({"name": "first"}, "AGGREGATE_NAME", ("meaning of its own",)),
        ({"name": "increasing"}, "AGGREGATE_NAME", ("meaning of its own",)),
        ({"name": "upper"}, "AGGREGATE_NAME", ("is a function of Spark's already",)),
        ({"name": "a b"}, "AGGREGATE_NAME", ("is no name of a function",)),
        ({"name": 3}, "AGGREGATE_NAME", ("is no name of a function",)),
    ],
)  # fmt: skip
def test_mistakes(changed: Given, law: str, fragments: tuple[str, ...]) -> None:
    with pytest.raises(CersqlError) as caught:
        cersql.register_aggregate(**given(**changed))
    assert caught.value.condition == law, caught.value
    for fragment in fragments:
        assert fragment in str(caught.value)
    assert aggregate_named("TALLY") is None


def test_a_mean_is_one_that_holds_a_sum_and_a_number() -> None:
    mean = own(lift=lambda x: (x, 1), combine=lambda a, b: (a[0] + b[0], a[1] + b[1]), identity=(0, 0),
               lower=lambda s: s[0] / s[1] if s[1] else None)  # fmt: skip
    assert [mean.folded(values) for values in ([], [1, 2, 6], [Decimal(1)])] == [None, 3.0, 1.0]


def test_of_several_arguments() -> None:
    weighted = own(lift=lambda x, w: (x * w, w), combine=lambda a, b: (a[0] + b[0], a[1] + b[1]), identity=(0, 0),
                   lower=lambda s: s[0] / s[1] if s[1] else None)  # fmt: skip
    assert weighted.arguments == 2
    assert weighted.folded([(1, 3), (5, 1)]) == 2.0


@pytest.mark.parametrize(
    ("combine", "identity"),
    [(max, -math.inf), (lambda a, b: a * b, 1), (lambda a, b: a | b, frozenset()), (lambda a, b: {**a, **b}, {})],
)
def test_of_our_samples_those_are_tried_that_fit(combine: Callable[[Any, Any], Any], identity: Any) -> None:
    lift = {frozenset: lambda x: frozenset([x]), dict: lambda x: {repr(x): 1}}.get(type(identity), lambda x: x)
    own(lift=lift, combine=combine, identity=identity, lower=lambda a: None)


@pytest.mark.parametrize(
    ("type", "value", "result"),
    [
        ("DOUBLE", 3, 3.0), ("INT", 3, 3), ("BIGINT", True, ValueError), ("INT", 1 << 31, ValueError),
        ("INT", 2.0, ValueError), ("DOUBLE", "3", ValueError), ("STRING", 3, ValueError), ("STRING", "a", "a"),
        ("DECIMAL(4,2)", 1.005, Decimal("1.01")), ("DECIMAL(4,2)", 100, ValueError), ("BOOLEAN", 1, True),
        ("BOOLEAN", "x", ValueError), ("DECIMAL(4,2)", math.nan, ValueError),
        ("ARRAY<INT>", [1], [1]), ("INT", None, None), ("DECIMAL(4,2)", "1", ValueError),
    ],
)  # fmt: skip
def test_what_comes_out_is_of_the_type_or_an_error(type: str, value: Any, result: Any) -> None:
    made = own(type=type, lower=lambda _: None)
    if result is ValueError:
        with pytest.raises(CersqlError, match="AGGREGATE_RESULT"):
            made.fitting(value)
    else:
        found = made.fitting(value)
        assert (found, found.__class__) == (result, result.__class__)


def test_runs_hold_what_has_no_hash() -> None:
    spread = own(lift=lambda x: [x, x], combine=lambda a, b: [min(a[0], b[0]), max(a[1], b[1])] if a and b else a or b,
                 identity=[], lower=lambda s: s[1] - s[0] if s else None, type="INT")  # fmt: skip
    monoid = pickle.loads(pickle.dumps(spread)).register
    held = monoid.combine(monoid.combine(monoid.identity, monoid.lift(3)), monoid.lift(7))
    assert (monoid.lower(held), monoid.lower(monoid.identity)) == (4, None)
    assert {held, monoid.combine(monoid.lift(7), monoid.lift(3))} == {pickle.loads(pickle.dumps(held))}


def test_a_name_is_replaced_where_it_is_registered_again() -> None:
    assert own(lower=lambda a: 1).folded([1]) == 1.0
    assert own(lower=lambda a: 2).folded([1]) == 2.0


@pytest.mark.parametrize(
    ("a", "b", "equal"),
    [(0.1 + 0.2, 0.3, True), (1, 1.0, True), ((1, [2.0]), (1, [2.0 + 1e-12]), True), (math.nan, math.nan, True),
     ((1,), (1, 2), False), ({"a": 0.3}, {"a": 0.1 + 0.2}, True), ("a", 1, False), (1, 2.0, False)],
)  # fmt: skip
def test_floating_numbers_are_nearly_equal(a: Any, b: Any, equal: bool) -> None:
    assert same(a, b) == same(b, a) == equal
