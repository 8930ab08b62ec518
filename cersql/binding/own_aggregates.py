"""Aggregate functions that users register: their names, and the laws they are held to.

    cersql.register_aggregate("GEOMEAN", lambda x: (math.log(x), 1), …, type="DOUBLE")

A function is a commutative monoid with a map before it and a function after ([ACEL] Section 4). That it is one cannot
be proved of Python; it is tried on samples, all pairs and triples of some values, and an error names those that
contradict it. The functions live in this process, for all its sessions.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from itertools import islice, pairwise, product
from typing import Any

from cersql.binding.aggregates import REFUSED, TABLE, Aggregate, Parts
from cersql.errors import BindError
from runtime.own import Own

_OWN: dict[str, Aggregate] = {}

Lift = Callable[..., Any]
Combine = Callable[[Any, Any], Any]
Lower = Callable[[Any], Any]
Functions = tuple[Lift, Combine, Lower, Any]  # and the identity

OURS = frozenset({"FIRST", "LAST", "PREV", "NEXT", "INCREASING", "DECREASING"})
"""Words of conditions that are followed by a parenthesis, beside the aggregates."""

POOLS: Mapping[str, tuple[Any, ...]] = {
    "whole numbers": (1, 2, 3, 7, 12),
    "floating numbers": (0.5, 2.0, 3.25, 10.0, 1.0),
    "decimals": (Decimal("0.25"), Decimal("1.50"), Decimal("7.00"), Decimal("2.10")),
    "texts": ("a", "b", "", "abc"),
    "truth values": (True, False),
    "times": (datetime(2024, 1, 2, 3), datetime(2024, 5, 6), datetime(2023, 7, 8)),
    "dates": (date(2024, 1, 2), date(2024, 5, 6), date(2023, 7, 8)),
    "arrays": ([1, 2], [3], [], [2, 2]),
}
"""Samples of our own: of each kind some values that differ."""

MOST_HELD = 8  # what is combined in threes: 512 of them


def aggregate_named(name: str) -> Aggregate | None:
    """An aggregate function of SQL's or of the user's own, by its name in capitals."""
    return TABLE.get(name) or _OWN.get(name)


def is_own(name: str) -> bool:
    return name in _OWN


def add(own: Own) -> None:
    """Known from now on, in the place of one of the same name that was registered before."""
    _OWN[own.name] = Aggregate(_unreachable, values=own.arguments, own=own, asked=_asked(own))


def remove(name: str) -> None:
    _OWN.pop(name.upper(), None)


def _unreachable(parts: Parts) -> str:
    raise AssertionError(f"{parts.function} is computed by Python")


def _asked(own: Own) -> str:
    """What Spark is asked for its type: something with the same arguments, which are aggregated."""
    return f"any_value(IF(struct({{}}) IS NULL, CAST(NULL AS {own.type}), CAST(NULL AS {own.type})))"


def check_name(name: str, taken: Callable[[str], bool]) -> str:
    """The name in capitals; BindError AGGREGATE_NAME for one that means something else. `taken`: Spark's functions."""
    upper = name.upper() if isinstance(name, str) else ""
    if not upper.isidentifier() or not upper.isascii():
        problem = "is no name of a function, which is a word of letters, digits and _"
    elif upper in TABLE or upper in REFUSED or upper in OURS:
        problem = "is an aggregate function already" if upper not in OURS else "has a meaning of its own in conditions"
    elif taken(name):
        problem = "is a function of Spark's already"
    else:
        return upper
    hint = f"Choose another name: MY_{upper}, for example." if upper.isidentifier() else "Write GEOMEAN, for example."
    raise BindError("AGGREGATE_NAME", name=name, problem=problem, hint=hint)


def arguments_of(name: str, lift: Lift) -> int:
    """How many values of a row lift makes one of."""
    try:
        given = inspect.signature(lift).parameters.values()
    except (TypeError, ValueError):  # such as float, which says nothing of it
        return 1
    needed = [p for p in given if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if any(p.kind is p.KEYWORD_ONLY and p.default is p.empty for p in given) or (not needed and not list(given)):
        raise BindError("AGGREGATE_FUNCTION", name=name, problem="lift takes no value", hint=_LIFT)
    return max(1, len(needed))


def check(name: str, functions: Functions, arguments: int, samples: Sequence[Any]) -> None:
    """Raises BindError where samples contradict what a commutative monoid is. Of the kinds of values of ours those are
    tried that the functions take; where they take none, the error is what the first kind met."""
    _lowered(name, functions[2], functions[3], "identity")
    if samples:
        _Trial(name, functions, arguments).laws(samples)
        return
    problems, tried = [], 0
    for values in _generated(arguments):
        try:
            _Trial(name, functions, arguments).laws(values)
            tried += 1
        except BindError as error:
            if error.condition != "AGGREGATE_FUNCTION" or error.__cause__ is None:
                raise
            problems.append(error)
    if not tried:
        raise problems[0]


_LIFT = "lift takes a value of an event, or several: lambda x: x, lambda x, weight: (x * weight, weight)."
_SAMPLES = "Say on which values it is to be tried: register_aggregate(…, samples=[value, value, …])."


def _generated(arguments: int) -> Iterator[list[Any]]:
    if arguments == 1:
        yield from map(list, POOLS.values())
        return
    for pools in islice(product(POOLS.values(), repeat=arguments), 512):
        yield [tuple(pool[(k + i) % len(pool)] for i, pool in enumerate(pools)) for k in range(4)]


def _lowered(name: str, lower: Lower, held: Any, shown: str) -> None:
    try:
        lower(copy.deepcopy(held))
    except Exception as error:
        hint = "Over no value lower gets the identity: let it give None there, which is NULL."
        raise _raises(name, f"lower({shown})", error, hint if shown == "identity" else _SAMPLES) from error


def _raises(name: str, shown: str, error: Exception, hint: str) -> BindError:
    problem = f"{shown} raises {type(error).__name__}: {error}"
    return BindError("AGGREGATE_FUNCTION", name=name, problem=problem, hint=hint)


class _Trial:
    """One try of the laws on some values."""

    def __init__(self, name: str, functions: Functions, arguments: int) -> None:
        self.name, self.arguments = name, arguments
        self.lift, self.combine, self.lower, self.identity = functions

    def laws(self, values: Sequence[Any]) -> None:
        held = [self.lifted(value) for value in values]
        kept = [*held, *(self.both(a, b) for a, b in pairwise(held))][:MOST_HELD]
        none, both = self.identity, self.both
        for a in kept:
            self.hold("neutral with its identity", (a,), ("combine(identity, a)", both(none, a)), ("a", a), _IDENTITY)
            self.hold("neutral with its identity", (a,), ("combine(a, identity)", both(a, none)), ("a", a), _IDENTITY)
            _lowered(self.name, self.lower, a, f"{a!r}")
        for a, b in product(kept, repeat=2):
            left, right = ("combine(a, b)", both(a, b)), ("combine(b, a)", both(b, a))
            self.hold("commutative", (a, b), left, right, _COMMUTATIVE)
        for a, b, c in product(kept, repeat=3):
            left = "combine(combine(a, b), c)", both(both(a, b), c)
            right = "combine(a, combine(b, c))", both(a, both(b, c))
            self.hold("associative", (a, b, c), left, right, _ASSOCIATIVE)

    def lifted(self, value: Any) -> Any:
        shown = ", ".join(map(repr, value)) if self.arguments > 1 else repr(value)
        try:
            return self.lift(*value) if self.arguments > 1 else self.lift(value)
        except Exception as error:
            raise _raises(self.name, f"lift({shown})", error, _SAMPLES) from error

    def both(self, a: Any, b: Any) -> Any:
        shown, before = f"combine({a!r}, {b!r})", copy.deepcopy((a, b))
        try:
            made = self.combine(a, b)
        except Exception as error:
            raise _raises(self.name, shown, error, _SAMPLES) from error
        if not same((a, b), before):
            hint = "Let it make a new value: several matches go on from the same one."
            problem = f"{shown} changes what it is given"
            raise BindError("AGGREGATE_FUNCTION", name=self.name, problem=problem, hint=hint)
        return made

    def hold(self, law: str, of: Sequence[Any], left: tuple[str, Any], right: tuple[str, Any], hint: str) -> None:
        """Raises AGGREGATE_LAW if both sides differ, with what they are computed of."""
        if not same(left[1], right[1]):
            held = ", ".join(f"{name} = {value!r}" for name, value in zip("abc", of, strict=False))
            told = [f"{shown} is {value!r}" for shown, value in (left, right)]
            raise BindError("AGGREGATE_LAW", name=self.name, law=law, held=held, left=told[0], right=told[1], hint=hint)


_IDENTITY = "identity is what combine changes nothing with: 0 of a sum, 1 of a product, None where combine knows it."
_COMMUTATIVE = "The events of a match are a bag: what depends on their order is computed of COLLECT_LIST in RETURN."
_ASSOCIATIVE = (
    "Hold what can be combined, and divide in lower: a mean holds (sum, number), and lower gives sum / number."
)


def same(a: Any, b: Any) -> bool:
    """Equal, floating numbers nearly: their sums depend on the order."""
    if isinstance(a, float | complex) and isinstance(b, int | float | complex) and not isinstance(b, bool):
        both_nan = a != a and b != b
        return bool(a == b or both_nan or abs(a - b) <= 1e-9 * max(abs(a), abs(b), 1.0))
    if isinstance(b, float | complex) and isinstance(a, int):
        return same(b, a)
    if type(a) is type(b) and isinstance(a, tuple | list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    try:
        return bool(a == b)
    except (TypeError, ValueError):  # an array of numpy's
        return bool((a == b).all())
