"""cersql.compile: all stages without any Spark."""

from __future__ import annotations

import subprocess
import sys

import pytest
from queries import SCHEMAS

import cersql

QUERY = "FROM t PATTERN A a ; B+ b WHERE a.v > 1 PARTITION BY k ORDER BY ts WITHIN 10 MINUTES RETURN a, COUNT(b)"


def test_stages_agree() -> None:
    compiled = cersql.compile(QUERY, SCHEMAS)
    assert compiled.query.text == QUERY
    assert compiled.query.marks == ("a", "b")
    assert compiled.program is compiled.plan.program
    assert compiled.program.variables == ("a", "b")
    assert compiled.program.window is not None
    assert compiled.program.window.size == 600_000_000
    assert compiled.plan.query is compiled.query


def test_hidden_variables_only_where_they_are_asked_for() -> None:
    text = "FROM t PATTERN A x ; A y ORDER BY ts RETURN {}"
    assert cersql.compile(text.format("x"), SCHEMAS).query.marks == ("x", "y")
    assert cersql.compile(text.format("COUNT(A)"), SCHEMAS).query.marks == ("x", "y", "@A")


def test_default_order() -> None:
    text = "FROM t PATTERN A a RETURN a"
    assert cersql.compile(text, SCHEMAS, order_by="ts").query.order_by[0].column == "ts"
    with pytest.raises(cersql.BindError) as raised:
        cersql.compile(text, SCHEMAS)
    assert raised.value.condition == "ORDER_MISSING"
    with pytest.raises(cersql.BindError) as raised:
        cersql.compile(text, SCHEMAS, order_by="time")
    assert raised.value.condition == "UNKNOWN_COLUMN"
    assert "ORDER BY (as configured)" in str(raised.value)


def test_unknown_stage() -> None:
    with pytest.raises(ValueError, match="there are syntax, cel"):
        cersql.compile(QUERY, SCHEMAS).explain("plan")


def test_ctes_stand_before_each_relation() -> None:
    class Catalog(cersql.api.SchemaCatalog):
        def relation(self, statement: str):  # type: ignore[no-untyped-def]
            return super().relation(statement.removeprefix("WITH q AS (SELECT 1) "))

    tree = cersql.parse.parse("WITH q AS (SELECT 1) FROM t PATTERN A a ORDER BY ts RETURN *")
    query = cersql.bind.bind(tree, Catalog(SCHEMAS))
    assert query.sources[0].relation == "WITH q AS (SELECT 1) SELECT * FROM `t`"


def test_no_spark_is_started_nor_imported() -> None:
    program = (
        "import sys, cersql; "
        f"cersql.compile({QUERY!r}, {{'t': {{'ts': 'timestamp', 'type': 'string', 'k': 'int', 'v': 'int'}}}}); "
        "print([m for m in ('pyspark', 'py4j', 'numba') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
