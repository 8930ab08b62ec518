"""The values of a statement as literals, where no JVM can be asked."""

from __future__ import annotations

import datetime
import decimal
from typing import Any

import pytest

from spark_ext.arguments import of_values
from spark_ext.errors import SparkError

CONNECT: Any = object()


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "NULL"),
        (True, "TRUE"),
        (-5, "-5"),
        (0.1, "0.1D"),
        (1e300, "1e+300D"),
        (float("-inf"), "CAST('-inf' AS DOUBLE)"),
        ("a b", "'a b'"),
        (decimal.Decimal("1E+2"), "100BD"),
        (datetime.date(2024, 1, 2), "DATE '2024-01-02'"),
        (datetime.datetime(2024, 1, 2, 3, tzinfo=datetime.UTC), "TIMESTAMP '2024-01-02T03:00:00+00:00'"),
    ],
)
def test_values(value: object, expected: str) -> None:
    assert of_values(CONNECT, [value]) == [expected]
    assert of_values(CONNECT, {"p": value}) == {"p": expected}


@pytest.mark.parametrize("value", [datetime.timedelta(1), b"x", [1], {"a": 1}, decimal.Decimal("NaN"), object()])
def test_what_has_no_literal(value: object) -> None:
    with pytest.raises(SparkError) as caught:
        of_values(CONNECT, [value])
    assert str(caught.value) == (
        f"[ARGUMENT_TYPE] Through Spark Connect an argument cannot be a {type(value).__name__} here.\n"
        "Write it into the text."
    )
