"""The statements about patterns, through spark.sql."""

from __future__ import annotations

import datetime
import decimal
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import SparkSession
from sparks import taught, together, view

import cersql

EVENTS = [(i, "ABC"[(i * 7) % 3], i % 2, i // 2, float((i * 5) % 9)) for i in range(24)]
QUERY = "FROM ev PATTERN A a ; B b PARTITION BY k ORDER BY ts, id WITHIN 6 RETURN k, a.id AS x, b.id AS y"


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    found = taught(spark)
    view(found, "ev", EVENTS, "id INT, type STRING, k INT, ts INT, v DOUBLE")
    yield found
    for name, kind, scope, _ in found.sql("SHOW PATTERNS").collect():
        found.sql(f"DROP PATTERN {kind} {'global_temp.' if scope == 'GLOBAL' else ''}`{name}`")


def refused(spark: SparkSession, sql: str, **arguments: Any) -> str:
    with pytest.raises(AnalysisException) as caught:
        spark.sql(sql, **arguments)
    return str(caught.value).strip()


def test_views_everywhere(session: SparkSession) -> None:
    view(session, "names", [(0, "even"), (1, "odd")], "k INT, name STRING")
    created = session.sql(f"/* a view */ CREATE TEMPORARY PATTERN VIEW `my view` AS ({QUERY}); ")
    assert created.collect() == []
    assert created.columns == []
    session.sql(
        "CREATE PATTERN VIEW over AS FROM (SELECT *, 'A' AS type FROM `my view`) AS v PATTERN A a ORDER BY x, y RETURN a.x AS x"  # noqa: E501
    )
    session.sql("CREATE TABLE kept USING parquet AS SELECT x FROM `my view`")
    try:
        session.sql(f"INSERT INTO kept SELECT x FROM ({QUERY})")
        session.sql(f"INSERT INTO kept {QUERY.replace('k, a.id AS x, b.id AS y', 'a.id AS x')}")
        plain, *others = (
            sorted(row["x"] for row in rows)
            for rows in together(
                [
                    session.sql(sql)
                    for sql in (
                        QUERY,
                        "SELECT x FROM `my view`",
                        "SELECT x FROM over",
                        "SELECT v.x FROM `my view` v JOIN names USING (k) WHERE name <> 'none'",
                        f"WITH m AS ({QUERY}), n AS (SELECT * FROM m) SELECT x FROM n",
                        f"SELECT x FROM ({QUERY}) WHERE k = 0 UNION ALL SELECT x FROM `my view` WHERE k = 1",
                        "SELECT k, x FROM `my view` |> WHERE k >= 0",
                        "SELECT x FROM kept",
                    )
                ]
            )
        )
    finally:
        session.sql("DROP TABLE kept")
    assert plain
    *others, kept = others
    assert all(other == plain for other in others)
    assert kept == sorted(plain * 3)


def test_a_view_that_is_not_called_temporary_is_told_to_be(
    session: SparkSession, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    session.sql(f"CREATE TEMPORARY PATTERN VIEW v AS {QUERY}")
    session.sql(f"CREATE OR REPLACE GLOBAL TEMPORARY PATTERN VIEW v AS {QUERY}")
    assert not [told for told in caplog.messages if "session alone" in told]
    session.sql(f"CREATE OR REPLACE PATTERN VIEW v AS {QUERY}")
    (told,) = [told for told in caplog.messages if "session alone" in told]
    assert told.startswith("v is a view of this session alone, as with TEMPORARY.")
    assert "--init" in told
    caplog.clear()
    (tmp_path / "catalog.sql").write_text(f"CREATE PATTERN VIEW w AS {QUERY};")
    assert cersql.patterns(session).load(tmp_path / "catalog.sql") == ["w"]
    assert not [told for told in caplog.messages if "session alone" in told]


def test_names_that_are_taken(session: SparkSession) -> None:
    session.sql(f"CREATE PATTERN VIEW v AS {QUERY}")
    assert "[TEMP_TABLE_OR_VIEW_ALREADY_EXISTS]" in refused(session, f"CREATE PATTERN VIEW V AS {QUERY}")
    session.sql(f"CREATE OR REPLACE PATTERN VIEW V AS {QUERY.replace(', b.id AS y', '')}")
    assert session.table("v").columns == ["k", "x"]
    assert [row.name for row in session.sql("SHOW PATTERNS").collect()] == ["V"]


def test_show_patterns(session: SparkSession) -> None:
    shown = session.sql("SHOW PATTERNS")
    assert (shown.columns, shown.collect()) == (["name", "kind", "scope", "definition"], [])
    session.sql(f"CREATE PATTERN VIEW alpha AS {QUERY} ;")
    session.sql(f"CREATE GLOBAL TEMPORARY PATTERN VIEW beta AS {QUERY}")
    session.sql("CREATE PATTERN FUNCTION gamma AS PATTERN A a ORDER BY ts RETURN a.id")
    rows = [tuple(row) for row in session.sql("show patterns").collect()]
    assert rows == [
        ("alpha", "VIEW", "SESSION", f"CREATE PATTERN VIEW alpha AS {QUERY}"),
        ("gamma", "FUNCTION", "SESSION", "CREATE PATTERN FUNCTION gamma AS PATTERN A a ORDER BY ts RETURN a.id"),
        ("beta", "VIEW", "GLOBAL", f"CREATE GLOBAL TEMPORARY PATTERN VIEW beta AS {QUERY}"),
    ]
    likes = (
        ("*a", "alpha gamma beta"), ("AL*|be*", "alpha beta"), ("a", ""), ("al.ha", "alpha"), ("xq?alpha", ""),
        ("[ag]*", "alpha gamma"), ("(|beta", "beta"),
    )  # fmt: skip
    for like, names in likes:
        assert [row.name for row in session.sql(f"SHOW PATTERNS LIKE '{like}'").collect()] == names.split(), like
    for like in ("al.ha", "alp?ha", "x?alpha", "[b-z]*", "alpha | x", " alpha", "*"):  # as Spark, where both have it
        shown = {row.viewName for row in session.sql(f"SHOW VIEWS LIKE '{like}'").collect()} - {"ev"}
        found = {row.name for row in session.sql(f"SHOW PATTERNS LIKE '{like}'").collect()} - {"beta", "gamma"}
        assert found == shown, like
    assert [row.name for row in session.newSession().sql("SHOW PATTERNS").collect()] == ["beta"]


def test_describe_pattern(session: SparkSession) -> None:
    session.sql(f"CREATE PATTERN VIEW v AS {QUERY}")
    facts = session.sql("DESCRIBE PATTERN v")
    assert facts.columns == ["section", "name", "value"]
    rows = [tuple(row) for row in facts.collect()]
    assert rows[:3] == [("column", "k", "int"), ("column", "x", "int"), ("column", "y", "int")]
    assert ("query", "text", QUERY) in rows
    assert ("query", "source ev", "SELECT * FROM `ev`") in rows
    assert ("query", "within", "6") in rows
    assert any(section == "plan" and name == "layout" for section, name, _ in rows)
    assert [tuple(row) for row in session.sql("desc pattern extended `V`;").collect()] == rows
    session.sql(
        "CREATE PATTERN FUNCTION f(p INT, q STRING DEFAULT 'x') AS PATTERN A a WHERE a.v > p ORDER BY ts RETURN q AS q"
    )
    assert [tuple(row) for row in session.sql("DESCRIBE PATTERN f").collect()] == [
        ("parameter", "(table)", "TABLE(…) [PARTITION BY …] [ORDER BY …]"),
        ("parameter", "p", "INT"),
        ("parameter", "q", "STRING DEFAULT 'x'"),
        ("query", "text", "PATTERN A a WHERE a.v > p ORDER BY ts RETURN q AS q"),
    ]
    assert refused(session, "DESCRIBE PATTERN w").splitlines()[0] == (
        "[UNKNOWN_PATTERN] There is no pattern view or function w. There are: v, f. SQLSTATE: 42704 (line 1, pos 17)"
    )
    view(session, "pattern", [(1,)], "v INT")
    assert session.sql("DESCRIBE pattern v").collect()  # that of the pattern view, which is asked first
    assert session.sql("DESCRIBE TABLE pattern").collect()[0].col_name == "v"


def test_drop(session: SparkSession) -> None:
    session.sql(f"CREATE PATTERN VIEW v AS {QUERY}")
    assert refused(session, "DROP PATTERN FUNCTION v").splitlines() == [
        "[UNKNOWN_PATTERN] There is no pattern function v. There are: (none). SQLSTATE: 42704 (line 1, pos 22)",
        "",
        "== SQL ==",
        "DROP PATTERN FUNCTION v",
        "----------------------^^^",
    ]
    session.sql("DROP PATTERN VIEW V")
    assert "[TABLE_OR_VIEW_NOT_FOUND]" in refused(session, "SELECT * FROM v")
    session.sql("DROP PATTERN VIEW IF EXISTS v")
    session.sql("CREATE TEMPORARY VIEW v AS SELECT 1 AS x")
    assert "[UNKNOWN_PATTERN]" in refused(session, "DROP PATTERN VIEW v")  # no pattern view
    assert session.table("v").count() == 1


def test_explain(session: SparkSession) -> None:
    for sql in (f"EXPLAIN {QUERY}", f"EXPLAIN FORMATTED SELECT * FROM ({QUERY})"):
        (row,) = session.sql(sql).collect()
        assert "== automaton ==" in row.plan
        assert "== Physical Plan ==" in row.plan
    assert "== Optimized Logical Plan ==" in session.sql(f"EXPLAIN EXTENDED {QUERY};").collect()[0].plan
    found = session.sql(f"EXPLAIN {QUERY.replace('WITHIN 6', 'WITHIN :w')}", args={"w": 3}).collect()[0].plan
    assert "within: 3" in found


# ---------------------------------------------------------------- parameters


FILTERED = (
    "FROM ev PATTERN A a ; B{:n} b WHERE a.v > :v PARTITION BY k ORDER BY ts, id WITHIN :w RETURN k, a.id AS x LIMIT :l"
)


def test_values_in_every_place(session: SparkSession) -> None:
    args = {"n": 1, "v": 2.5, "w": 6, "l": 3}
    written = FILTERED.replace(":n", "1").replace(":v", "2.5D").replace(":w", "6").replace(":l", "300")
    everything = {tuple(row) for row in session.sql(written).collect()}
    in_order = FILTERED
    for name in ("n", "v", "w", "l"):
        in_order = in_order.replace(f":{name}", "?")
    frames = [
        session.sql(FILTERED, args=args),
        session.sql(in_order, args=[1, 2.5, 6, 3]),
        session.sql(f"SELECT * FROM ({FILTERED}) WHERE x >= :least", args={**args, "least": 0}),
        session.sql(
            f"SELECT ? AS z, * FROM ({in_order}) WHERE x >= ? AND x & ? = 0", args=[7, 1, 2.5, 6, 3, 0, 0]
        ).drop("z"),
        cersql.sql(session, FILTERED, args),
        cersql.sql(session, in_order, [1, 2.5, 6, 3]),
        cersql.sql(session, f"SELECT * FROM ({in_order}) WHERE x >= ?", [1, 2.5, 6, 3, 0]),
        cersql.match(session.table("ev"), FILTERED.removeprefix("FROM ev "), args),
    ]
    for rows in together(frames):
        assert len(rows) == 3
        assert {(row["k"], row["x"]) for row in rows} <= everything


def test_kinds_of_values(session: SparkSession) -> None:
    values = {
        "s": "it's ?", "i": 5, "b": True, "n": None, "f": 0.1, "d": datetime.date(2024, 1, 2),
        "t": datetime.datetime(2024, 1, 2, 3, 4, 5), "c": decimal.Decimal("1.50"), "a": [1, 2],
    }  # fmt: skip
    query = (
        f"FROM ev PATTERN A a WHERE a.id = 0 ORDER BY ts RETURN {', '.join(f':{name} AS {name}' for name in values)}"
    )
    (ours,) = cersql.sql(session, query, values).collect()
    (spark,) = session.sql(query, args=values).collect()
    assert ours == spark
    assert {name: ours[name] for name in values} == values


def test_values_of_views_stay_in_them(session: SparkSession) -> None:
    session.sql(f"CREATE PATTERN VIEW v AS {QUERY.replace('WITHIN 6', 'WITHIN :w')}", args={"w": 3})
    assert "WITHIN 3" in session.sql("SHOW PATTERNS").collect()[0].definition
    session.sql(f"CREATE OR REPLACE PATTERN VIEW v AS {QUERY.replace('WITHIN 6', 'WITHIN ?')}", args=[3])
    assert "WITHIN 3" in session.sql("SHOW PATTERNS").collect()[0].definition


def test_errors_of_values(session: SparkSession) -> None:
    assert refused(session, "FROM ev PATTERN A a\nWHERE a.v > :p ORDER BY ts RETURN a.id").splitlines() == [
        "[UNBOUND_PARAMETER] The parameter :p has no value. Give its value: spark.sql(text, args={'p': …}). "
        "SQLSTATE: 42P02 (line 2, pos 12)",
        "",
        "== SQL ==",
        "FROM ev PATTERN A a",
        "WHERE a.v > :p ORDER BY ts RETURN a.id",
        "------------^^^",
    ]
    message = refused(
        session, "FROM ev PATTERN A a WHERE a.v > :p AND boom.x > 1 ORDER BY ts RETURN a.id", args={"p": 12345}
    )
    assert "(line 1, pos 39)" in message
    assert ":p AND boom" in message
    assert "12345" not in message


def test_execute_immediate_and_scripts(session: SparkSession) -> None:
    session.sql(f"CREATE PATTERN VIEW v AS {QUERY}")
    query = QUERY.replace("WITHIN 6", "WITHIN ?")
    expected = sorted(session.sql("SELECT * FROM v").collect())
    for sql in (
        f"EXECUTE IMMEDIATE '{query}' USING 6",
        f"EXECUTE IMMEDIATE '{query.replace('?', ':w')}' USING 6 AS w",
        f"EXECUTE IMMEDIATE 'SELECT * FROM ({query}) WHERE x >= ?' USING 6, 0",
        f"EXECUTE IMMEDIATE 'SELECT * FROM ({query.replace('?', ':w')}) WHERE x >= :x' USING 6 AS w, 0 AS x",
        "EXECUTE IMMEDIATE 'SELECT * FROM v WHERE k >= ?' USING 0",
        "BEGIN DECLARE n INT DEFAULT 0; SELECT * FROM v WHERE k >= n; END",
    ):
        assert sorted(session.sql(sql).collect()) == expected, sql


# ---------------------------------------------------------------- saved


def test_saved_and_loaded(session: SparkSession, tmp_path: Path) -> None:
    session.sql(f"CREATE PATTERN VIEW v AS {QUERY} -- the end")
    session.sql("CREATE PATTERN FUNCTION f(p INT) AS PATTERN A a ; B WHERE a.v > p ORDER BY ts, id RETURN a.id AS x")
    session.sql(
        "CREATE PATTERN VIEW w AS FROM (SELECT x, 'A' AS type FROM f(TABLE(ev), 2)) AS s PATTERN A a ORDER BY x RETURN a.x"  # noqa: E501
    )
    found = cersql.patterns(session)
    assert list(found) == ["v", "f", "w"]
    assert len(found) == 3
    assert "F" in found
    assert repr(found) == "<Patterns: v (view), f (function), w (view)>"
    assert found["V"].startswith("CREATE PATTERN VIEW v")
    with pytest.raises(KeyError):
        found["nosuch"]
    file = tmp_path / "patterns.sql"
    found.save(file)
    other = session.newSession()
    view(other, "ev", EVENTS, "id INT, type STRING, k INT, ts INT, v DOUBLE")
    assert cersql.patterns(other).load(file) == ["v", "f", "w"]
    a, b = together([session.table("w"), other.table("w")])
    assert sorted(map(repr, a)) == sorted(map(repr, b)) != []
    assert cersql.patterns(other).load(file) == []
    assert [path.name for path in tmp_path.iterdir()] == ["patterns.sql"]
    file.write_text(
        file.read_text() + "\nCREATE PATTERN VIEW bad AS\nFROM ev PATTERN A a WHERE boom.x > 1 ORDER BY ts RETURN a.id;"
    )
    with pytest.raises(cersql.CersqlError) as caught:
        cersql.patterns(other).load(file)
    assert caught.value.text == file.read_text()
    assert caught.value.line == len(file.read_text().splitlines())


def test_what_was_replaced_is_saved_before_what_is_made_of_it(session: SparkSession, tmp_path: Path) -> None:
    session.sql(f"CREATE GLOBAL TEMPORARY PATTERN VIEW base AS {QUERY}")
    over = "FROM (SELECT x, 'A' AS type FROM {}) AS s PATTERN A a ORDER BY x RETURN a.x AS x"
    session.sql(f"CREATE PATTERN VIEW one AS {over.format('global_temp.base')}")
    session.sql(f"CREATE PATTERN VIEW two AS {over.format('`one`')}")
    session.sql(f"CREATE OR REPLACE PATTERN VIEW one AS {over.format('global_temp.base')} LIMIT 3")
    file = tmp_path / "patterns.sql"
    cersql.patterns(session).save(file)
    text = file.read_text()
    assert text.index("VIEW base") < text.index("VIEW one") < text.index("VIEW two")
    for name in ("PATTERN VIEW two", "PATTERN VIEW one", "PATTERN VIEW global_temp.base"):
        session.sql(f"DROP {name}")
    assert sorted(cersql.patterns(session).load(file)) == ["base", "one", "two"]
    file.chmod(0o640)
    cersql.patterns(session).save(file)
    assert file.stat().st_mode & 0o777 == 0o640
    with pytest.raises(FileNotFoundError):
        cersql.patterns(session).save(tmp_path / "nosuch" / "patterns.sql")
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError):
        cersql.patterns(session).save(tmp_path / "folder")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "patterns.sql"]


def test_the_same_names_in_two_sessions(session: SparkSession) -> None:
    other = session.newSession()
    view(other, "ev", EVENTS, "id INT, type STRING, k INT, ts INT, v DOUBLE")
    session.sql(f"CREATE PATTERN VIEW v AS {QUERY}")
    other.sql(f"CREATE PATTERN VIEW v AS {QUERY.replace('RETURN k, ', 'RETURN ')} LIMIT 1")
    assert (session.table("v").columns, other.table("v").columns) == (["k", "x", "y"], ["x", "y"])
    other.sql("DROP PATTERN VIEW v")
    assert (list(cersql.patterns(session)), list(cersql.patterns(other))) == (["v"], [])
    assert session.sql("SELECT * FROM v WHERE k = 1").columns == ["k", "x", "y"]
    session.sql("DROP VIEW v")
    assert session.sql("SHOW PATTERNS").collect() == []


def test_what_only_contains_the_word_is_sparks(session: SparkSession) -> None:
    with pytest.raises(ParseException, match="PARSE_SYNTAX_ERROR"):
        session.sql("CREATE TABLE pattern view AS SELECT 1")
    assert (
        session.sql("SELECT 'DROP PATTERN VIEW v' AS pattern -- SHOW PATTERNS").collect()[0].pattern
        == "DROP PATTERN VIEW v"
    )


@pytest.mark.parametrize(
    ("sql", "says", "at"),
    [
        ("FROM ev PATTERN A a ORDER BY ts RETURN a.ts LIMIT 2147483648", "[BAD_NUMBER]", "2147483648"),
        ("FROM ev PATTERN A a WHERE a.type = 'A ORDER BY ts RETURN a.ts", "[UNCLOSED] ' is never closed", "'A ORDER"),
        ("FROM ev PATTERN A a ; B b WHERE b.v > a.v + ORDER BY ts RETURN a.ts", "ends too early", " ORDER"),
        ("SHOW PATERNS", "[MISSPELT_CLAUSE]", "PATERNS"),
        ("CREATE PATERN VIEW w AS FROM ev PATTERN A a ORDER BY ts RETURN a.ts", "[MISSPELT_CLAUSE]", "PATERN"),
        ("CREATE FUNCTION h(x INT) AS PATTERN A a WHERE a.v > x RETURN a.ts", "PATTERN FUNCTION", "FUNCTION"),
        (f"SELECT * FROM ({QUERY}) m WHERE m.xx = 1", "xx", "m.xx"),
        (f"SELECT *\nFROM (\n{QUERY})\nm GROUPP BY x", "GROUPP", "GROUPP"),
    ],
)
def test_mistakes_are_shown_where_they_are(session: SparkSession, sql: str, says: str, at: str) -> None:
    with pytest.raises(AnalysisException) as caught:
        session.sql(sql)
    assert says in str(caught.value)
    found = re.search(r"line (\d+),? pos(?:ition)? (\d+)", str(caught.value))
    assert found is not None
    offset = sql.index(at)
    before = sql[:offset].split("\n")
    assert int(found[1]) == len(before)
    assert int(found[2]) in (len(before[-1]), len(before[-1]) + 1)  # Spark counts from 0 in the one and 1 in the other


def test_the_state_of_an_error_is_the_one_in_its_text(session: SparkSession) -> None:
    for sql in (
        "DROP PATTERN VIEW nobody",
        "CREATE PATTERN FUNCTION f(p NOSUCH) AS PATTERN A a WHERE a.v > p RETURN a.id",
        "FROM nowhere PATTERN A a RETURN *",
        "FROM ev PATTERN A a WHERE nothing(a.v) ORDER BY ts RETURN *", "FROM ev PATTERN A a WHERE a.v > :v RETURN *",
    ):  # fmt: skip
        with pytest.raises(AnalysisException) as caught:
            session.sql(sql)
        assert re.findall(r"SQLSTATE: (\w{5})", str(caught.value)) == [caught.value.getSqlState()], sql
