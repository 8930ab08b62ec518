"""cersql.compile: all stages without any Spark."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from queries import SCHEMAS, check_place

import cersql
from cersql.api import SchemaCatalog
from cersql.binding.bind import bind
from cersql.language.parse import parse

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
    class Catalog(SchemaCatalog):
        def relation(self, statement: str):  # type: ignore[no-untyped-def]
            return super().relation(statement.removeprefix("WITH q AS (SELECT 1) "))

    tree = parse("WITH q AS (SELECT 1) FROM t PATTERN A a ORDER BY ts RETURN *")
    query = bind(tree, Catalog(SCHEMAS))
    assert query.sources[0].relation == "WITH q AS (SELECT 1) SELECT * FROM `t`"


# ---------------------------------------------------------------- schemas


def test_a_schema_may_be_ddl() -> None:
    ddl = (
        "ts TIMESTAMP NOT NULL, type: string, `odd, ``name` INT COMMENT 'a, b', v Decimal(10, 2), n LONG,\n"
        "s STRUCT<f: INT, g: ARRAY<MAP<STRING, INT>>>, i INTERVAL DAY TO SECOND, d NUMERIC"
    )
    columns = cersql.compile("FROM t PATTERN A a ORDER BY ts RETURN *", {"t": ddl}).query.columns
    assert {column.name: column.type for column in columns} == {
        "ts": "timestamp", "type": "string", "odd, `name": "int", "v": "decimal(10,2)", "n": "bigint",
        "s": "struct<f:int,g:array<map<string,int>>>", "i": "interval day to second", "d": "decimal(10,0)",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("schemas", "error", "fragment"),
    [
        ("t (id INT)", TypeError, "schemas is a str, expected {'trades': "),
        ({"t": [("id", "int")]}, TypeError, "the schema of t is a list"),
        ({"t": {"id": int}}, TypeError, "a column of t is 'id': <class 'int'>"),
        ({"t": "id"}, ValueError, "'id' in the schema of t is no column with a type, expected {'trades'"),
        ({"t": "id INT,"}, ValueError, "'' in the schema of t"),
        ({"t": "id INTT"}, ValueError, "'INTT' is no type of Spark's; did you mean int?"),
        ({"t": {"id": "nothing"}}, ValueError, "'nothing' is no type of Spark's"),
    ],
)
def test_what_is_no_schema(schemas: Any, error: type[Exception], fragment: str) -> None:
    with pytest.raises(error) as raised:
        cersql.compile("FROM t PATTERN A a ORDER BY id RETURN *", schemas)
    assert fragment in str(raised.value)


def test_types_have_other_names() -> None:
    text = "FROM t DEFINE A AS n > 1 PATTERN A a ; A b ORDER BY n WITHIN 5 RETURN *"
    for type in ("decimal", "INTEGER", "Numeric(5, 1)", "real"):
        assert cersql.compile(text, {"t": {"n": type}}).program.window


# ---------------------------------------------------------------- bare words


@pytest.mark.parametrize(
    "marked",
    [
        "FROM t PATTERN A M+ WHERE M.v > 1 AND M.name = ‸passive WITHIN 5 MINUTES ORDER BY ts RETURN *",
        "FROM t PATTERN A a WHERE a[v > 1 AND name = ‸passive] ORDER BY ts RETURN *",
        "FROM t PATTERN A a FILTER a.name IN ('x', ‸passive) ORDER BY ts RETURN *",
        "FROM t PATTERN A ; !B b ; C WHERE NOT b.name = ‸passive ORDER BY ts RETURN *",
        "FROM t DEFINE A AS v > 1 AND ‸passive = name PATTERN A a ORDER BY ts RETURN *",
        "FROM t PATTERN A a ORDER BY ts RETURN a.v, upper(‸passive)",
        "FROM t PATTERN A a ORDER BY ts RETURN MAX(a.v + ‸passive)",
        "FROM t PATTERN A a ORDER BY ts RETURN a.v HAVING COUNT(*) > ‸passive",
    ],
)
def test_a_word_without_a_meaning_proposes_quotes(marked: str) -> None:
    text = marked.replace("‸", "")
    with pytest.raises(cersql.BindError) as raised:
        cersql.compile(text, SCHEMAS)
    check_place(raised.value, text, marked.index("‸"), "BARE_WORD", "passive is neither", "in quotes: 'passive'.")


@pytest.mark.parametrize(
    "expression",
    [
        "current_date", "K + a.v", "timestampadd(QUARTER, 1, a.ts)", "OVERLAY(a.name PLACING 'x' FROM 1)",
        "a.v > 1 IS UNKNOWN", "a.v > 1 IS NOT UNKNOWN", "EXTRACT(week FROM a.ts)", "filter(a.arr, x -> x > 1)",
        "CAST(a.v AS STRING)", "a.ts + INTERVAL 5 DAYS", "substring(a.name FROM 2 FOR 3)", "trim(BOTH FROM a.name)",
        "CASE WHEN a.v > 1 THEN TRUE ELSE NULL END", "a.s.f", "DATE '2024-01-01'", "a.name COLLATE UNICODE",
        "a.v > (SELECT max(other) FROM elsewhere)", "match_end", "a.end", "count(*)", "a.v BETWEEN 1 AND k",
    ],
)  # fmt: skip
def test_words_that_have_one(expression: str) -> None:
    text = f"FROM t PATTERN A a PARTITION BY k ORDER BY ts RETURN {expression} AS x"
    assert cersql.compile(text, SCHEMAS)


def test_no_spark_is_started_nor_imported() -> None:
    program = (
        "import sys, cersql; "
        f"cersql.compile({QUERY!r}, {{'t': {{'ts': 'timestamp', 'type': 'string', 'k': 'int', 'v': 'int'}}}}); "
        "print([m for m in ('pyspark', 'py4j', 'numba') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "marked",
    [
        "FROM t DEFINE A AS ‸nmae = 'x' PATTERN A a ORDER BY ts RETURN *",
        "FROM t PATTERN A a WHERE a.k > ‸nmae ORDER BY ts RETURN *",
        "FROM t PATTERN A a ORDER BY ts RETURN a.k, upper(‸nmae)",
        "FROM t PATTERN A a ORDER BY ts RETURN a.v HAVING COUNT(*) > ‸Nmae",
    ],
)
def test_a_column_called_like_a_word_is_proposed(marked: str) -> None:
    text = marked.replace("‸", "")
    with pytest.raises(cersql.BindError) as raised:
        cersql.compile(text, SCHEMAS)
    check_place(raised.value, text, marked.index("‸"), "BARE_WORD", "Did you mean the column name? If it is a text")


def test_attributes_of_created_events_stand_bare_in_their_brackets() -> None:
    text = "FROM t PATTERN (AGG(y : n = COUNT(a) ; A+ a ; B))+ WHERE y[n > 1] AND y[increasing(n)] ORDER BY ts RETURN y"
    assert cersql.compile(text, {"t": "ts TIMESTAMP, type STRING"}).query.on_match


def test_a_pyspark_that_does_not_fit_is_refused_by_name(tmp_path: Path) -> None:
    """Also where it lacks what we import; and what needs no Spark needs none that fits."""
    (tmp_path / "pyspark").mkdir()
    (tmp_path / "pyspark" / "__init__.py").write_text('__version__ = "3.5.0"\n')
    path = os.pathsep.join([str(tmp_path), str(Path(cersql.__file__).parent.parent)])

    def run(script: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-P", "-W", "ignore", "-c", f"import cersql; {script}"]
        environment = {**os.environ, "PYTHONPATH": path}
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)

    for script in ("cersql.session('x')", "cersql.enable(None)", "from cersql.cli import main; main.main(['demo'])"):
        told = run(script).stderr
        assert "cersql needs pyspark ~=4.3, and this is pyspark 3.5.0" in told, script
    compiled = run("cersql.compile('FROM t PATTERN A ORDER BY ts RETURN *', {'t': 'ts INT, type STRING'})")
    assert compiled.returncode == 0, compiled.stderr
