"""Where the command line shows what Spark's errors are about."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from cersql.cli.reports import problem_of


class _Failed(Exception):
    """An error of Spark's that quotes what it read."""

    def __init__(self, fragment: str) -> None:
        super().__init__("[CAST_INVALID_INPUT] The value 'x' cannot be cast.")
        context = SimpleNamespace(
            contextType=lambda: SimpleNamespace(name="SQL"),
            objectType=str,
            startIndex=lambda: 21,
            fragment=lambda: fragment,
        )
        vars(self)["getQueryContext"] = lambda: [context]


@pytest.mark.parametrize(
    ("marked", "fragment"),
    [
        ("FROM t PATTERN A a ; B b WHERE a.v > 1 AND ‸a.v  > a.name ORDER BY ts RETURN *", "`v` > `name`"),
        ("FROM t PATTERN A a ; B b WHERE ‸a.name > b.v ORDER BY ts RETURN *", "CAST(`name` AS DECIMAL(10, 2))"),
        ("FROM t PATTERN A a ORDER BY ts RETURN ‸a.v / a.z", "`__cersql_var0`.`v` / `__cersql_var0`.`z` AS `(v / z)`"),
        ("FROM t PATTERN A a ORDER BY ts RETURN array(‸b[1].`odd name` + 1)", "`__cersql_var0`.`odd name` + 1"),
        ("FROM t DEFINE X AS ‸element_at(array(1), v) > 1 PATTERN X x", "element_at(array(1), v)"),
        # none, or two
        ("FROM t PATTERN A a ORDER BY ts RETURN SUM(b.v / b.z)", "__e.`v` / __e.`z`"),
        ("FROM t PATTERN A a ; B b WHERE a.name > b.v AND b.name > 1 ORDER BY ts RETURN *", "CAST(`name` AS BIGINT)"),
    ],
)
def test_the_place_of_what_spark_read_in_another_form(marked: str, fragment: str) -> None:
    text = marked.replace("‸", "")
    assert problem_of(_Failed(fragment), text).offset == (marked.index("‸") if "‸" in marked else None)
