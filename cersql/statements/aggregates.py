"""Aggregate functions that users register, each held to the laws of a commutative monoid before it is known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cersql.binding import own_aggregates
from cersql.binding.own_aggregates import Combine, Lift, Lower
from cersql.errors import BindError
from runtime.own import Own
from spark_ext import folding


def register(
    name: str, lift: Lift, combine: Combine, lower: Lower, identity: Any, type: str, samples: Sequence[Any]
) -> None:
    """See cersql.register_aggregate."""
    upper = own_aggregates.check_name(name, folding.is_function)
    given: dict[str, object] = {"lift": lift, "combine": combine, "lower": lower}
    for word, function in given.items():
        if not callable(function):
            problem = f"{word} is {function!r}, and no function"
            raise BindError("AGGREGATE_FUNCTION", name=name, problem=problem)
    written = folding.type_of(type) if isinstance(type, str) and type.strip() else None
    if written is None:
        hint = "Write it as Spark does: DOUBLE, BIGINT, DECIMAL(10,2), ARRAY<STRING>, …"
        raise BindError("AGGREGATE_TYPE", name=name, type=type, hint=hint)
    arguments = own_aggregates.arguments_of(name, lift)
    own_aggregates.check(name, (lift, combine, lower, identity), arguments, samples)
    try:
        packed = folding.packed((lift, combine, lower, identity))
    except Exception as error:  # whatever a user's object raises
        problem = f"its functions cannot be sent to workers: {error}"
        raise BindError("AGGREGATE_FUNCTION", name=name, problem=problem) from error
    own_aggregates.add(Own(upper, written, arguments, packed))
