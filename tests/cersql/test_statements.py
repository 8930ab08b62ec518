"""Our parts of a statement are found by tokens, and the rest stays byte for byte. No JVM: the session is a fake."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest

from cersql.errors import BindError, ParseError
from cersql.statements.commands import rewrite
from cersql.statements.find import find, is_ours
from cersql.statements.kinds import CreateFunction, CreateView, Embedded, Explain, Whole, queries_of
from runtime.errors import Span
from spark_ext import views

Q = "PATTERN SEQ(A a, B b) RETURN *"


class FakeFrame:
    def __init__(self, session: FakeSession, text: str) -> None:
        self.sparkSession, self.text = session, text

    def createOrReplaceTempView(self, name: str) -> None:  # noqa: N802
        self.sparkSession.views[name.strip("`")] = self.text

    def createTempView(self, name: str) -> None:  # noqa: N802
        assert name.strip("`") not in self.sparkSession.views
        self.createOrReplaceTempView(name)

    def select(self) -> str:
        return "nothing"


class FakeSession:
    """A session, its JVM's session, the state of that and its catalog, all in one."""

    def __init__(self) -> None:
        self.views: dict[str, str] = {}
        self._jsparkSession = self

    def sessionUUID(self) -> str:  # noqa: N802
        return str(id(self))

    def sessionState(self) -> FakeSession:  # noqa: N802
        return self

    def catalog(self) -> FakeSession:
        return self

    def dropTempView(self, name: str) -> None:  # noqa: N802
        del self.views[name]

    def range(self, _: int) -> FakeFrame:
        return FakeFrame(self, "")


class FakePlanned:
    """A query that is planned at once, and shows its text."""

    obstacle = "it is a fake"

    def __init__(self, spark: Any, text: str) -> None:
        self.compiled = self.query = self
        self.partition_by = self.outputs = ()
        self._frame = FakeFrame(spark, text)

    def frame(self, lasting: bool = False) -> FakeFrame:
        return self._frame

    def explain(self) -> str:
        return self._frame.text

    def counted_by(self, columns: Sequence[str], query: Span) -> None:
        return None


def plan(spark: Any, text: str, query: Span) -> Any:
    return FakePlanned(spark, text[query.start : query.end])


def rewritten(spark: FakeSession, sql: str) -> Any:
    return rewrite(spark, sql, plan=plan)  # type: ignore[arg-type]


def parts(sql: str) -> list[str]:
    """The queries found in a statement, as text."""
    found = find(sql)
    if found is None:
        return []
    return [sql[q.start : q.end] for q in queries_of(found)]


@pytest.mark.parametrize(
    "sql",
    [
        Q,
        "pattern seq(A a) return *",
        "PATTERN A ; B b RETURN b.x",
        "PATTERN",
        "PATTERN !",
        "/* a */ -- b\n " + Q,
        "FROM readings PATTERN A a RETURN *",
        "FROM (SELECT * FROM t) AS r PATTERN [A] RETURN *",
        "RETURN T.district, COUNT(*) PATTERN SEQ(Request R, Travel T+) WHERE [driver, rider]",
        "RETURN * PATTERN (A ; B)",
        "WHERE a.x = 'PATTERN' PATTERN A a RETURN a.x",
        "WITHIN 5 MINUTES PATTERN A RETURN *",
        "ORDER BY ts PATTERN Order o RETURN *",
        "WITH x AS (SELECT 1), y(a) AS (SELECT 2) FROM x PATTERN A RETURN *",
        "WITH x AS (SELECT 1) PATTERN A RETURN *",
        "WITH x AS (PATTERN B RETURN *) FROM x PATTERN A RETURN *",
        "SELECT a.custId FROM PATTERN [every a=ServiceOrder -> b=ProductOrder(custId = a.custId)] HAVING x > 1",
        "SELECT a.x FROM readings PATTERN SEQ(A a) WHERE a.x > 1",
        "FROM readings AS r PATTERN A a WHERE a.x IN (SELECT pattern FROM t) RETURN *",
        "FROM (PATTERN A RETURN *) AS r PATTERN B RETURN *",
    ],
)
def test_a_whole_text_is_a_query(sql: str) -> None:
    assert isinstance(find(sql), Whole)
    assert is_ours(sql)
    assert parts(sql) == [re.sub(r"^/\* a \*/ -- b\n ", "", sql)]


def test_the_final_semicolon_and_outer_parentheses_are_not_part_of_a_query() -> None:
    assert parts(f"  {Q} ;; ") == [Q]
    assert parts(f"({Q});") == [Q]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (f"SELECT * FROM ({Q})", [Q]),
        (f"SELECT m.* FROM t JOIN ( {Q} ) AS m ON m.a = t.a", [Q]),
        (f"SELECT * FROM t, ({Q}) m", [Q]),
        (f"SELECT * FROM t WHERE x IN ({Q})", [Q]),
        (f"SELECT * FROM f(TABLE({Q}))", [Q]),
        (f"SELECT * FROM f(TABLE ({Q}) PARTITION BY k)", [Q]),
        (f"WITH m AS ({Q}) SELECT * FROM m", [Q]),
        (f"WITH m (a, b) AS ({Q}), n AS ({Q}) SELECT * FROM m JOIN ({Q}) p", [Q, Q, Q]),
        (f"WITH m AS ({Q}) SELECT pattern x FROM t pattern JOIN m", [Q]),
        (f"INSERT INTO t SELECT * FROM ({Q})", [Q]),
        (f"CREATE VIEW v AS SELECT * FROM ({Q})", [Q]),
        (f"CREATE TABLE t AS ({Q})", [Q]),
        (f"SELECT * FROM (SELECT * FROM (SELECT * FROM ({Q}))) WHERE y IN (1, (2))", [Q]),
        (f"SELECT * FROM (({Q}) AS a JOIN ({Q}) AS b)", [Q, Q]),
        (f"SELECT pattern p FROM ({Q})", [Q]),
        (f"SELECT 'it''s (PATTERN A)', `(PATTERN A)` /* (PATTERN A) */ FROM ({Q}) -- (PATTERN A)", [Q]),
        (f"INSERT INTO t {Q}", [Q]),
        (f"INSERT INTO t (a, b) FROM r {Q};", [f"FROM r {Q}"]),
        (f"CREATE TABLE t USING parquet AS {Q}", [Q]),
        (f"CREATE VIEW v AS FROM r {Q}", [f"FROM r {Q}"]),
        (f"CACHE TABLE t AS WITH x AS (SELECT 1) FROM x {Q}", [f"WITH x AS (SELECT 1) FROM x {Q}"]),
        ("SELECT * FROM (FROM r PATTERN A RETURN *)", ["FROM r PATTERN A RETURN *"]),
        ("SELECT * FROM (RETURN * PATTERN A FROM r)", ["RETURN * PATTERN A FROM r"]),
        ("SELECT * FROM (SELECT a.x FROM PATTERN [every a=A])", ["SELECT a.x FROM PATTERN [every a=A]"]),
        (f"EXPLAIN {Q}", [Q]),
        (f"EXPLAIN FORMATTED FROM r {Q};", [f"FROM r {Q}"]),
        (f"explain extended SELECT * FROM ({Q})", [Q]),
        (f"SELECT 1 UNION ALL ({Q})", [Q]),
        (f"FROM ({Q}) SELECT a", [Q]),
        (f"FROM pattern p JOIN ({Q}) q SELECT *", [Q]),
    ],
)
def test_queries_inside_other_sql(sql: str, expected: list[str]) -> None:
    assert isinstance(find(sql), Embedded | Explain)
    assert parts(sql) == expected


@pytest.mark.parametrize(
    "sql",
    [
        "",
        " ; ",
        "SELEC 1",
        "SELECT pattern FROM t WHEREE x",
        "SELECT t.pattern p FROM t WHEREE x",
        "SELECT 'PATTERN SEQ(A)' FROMM t",
        "SELECT 1 -- PATTERN SEQ(A)\n FROMM t x y",
        "SELECT 1 /* (PATTERN A /* b */ ) */ FROMM t x y",
        "SELECT `PATTERN` (x) y z",
        "CREATE TABLE t (pattern STRING, x INTT)",
        "ALTER TABLE t ADD COLUMNS pattern STRINGG x",
        "SELECT regexp_like(pattern, 'x') FROMM t x y",
        "UPDATE pattern p SETT x = 1",
        "SELECT * FROM patterns p WHEREE x = 1",
        "SELECT pat FROM patternz JOIN t ONN x",
        "SELECT 'unclosed PATTERN A",
        "INSERT INTO pattern (a) VALUS (1)",
        "RETURN x",
        "CREATE OR REPLACE VIEW pattern AS SELEC 1",
    ],
)
def test_ordinary_sql_is_not_ours(sql: str) -> None:
    assert find(sql) is None
    assert not is_ours(sql)
    assert rewritten(FakeSession(), sql) is None


def test_every_refused_text_is_ours_if_the_caller_says_so() -> None:
    assert find("SELEC a FROM b;", every=True) == Whole(Span(0, 14))
    assert find("SELECT * FROM (PATTERN A RETURN *)", every=True) == Embedded((Span(15, 33),), lasting=False)
    with pytest.raises(ParseError):
        find("SELECT 'unclosed", every=True)


@pytest.mark.parametrize(
    ("sql", "name", "replace"),
    [
        (f"CREATE PATTERN VIEW v AS {Q}", "v", False),
        (f"create or replace pattern view v as {Q};", "v", True),
        (f"CREATE OR REPLACE TEMPORARY PATTERN VIEW `odd ``name` AS ({Q})", "odd `name", True),
        (f"CREATE TEMP PATTERN VIEW Pattern AS {Q}", "Pattern", False),
        (f"CREATE GLOBAL TEMPORARY PATTERN VIEW v AS {Q}", "v", False),
        (f"CREATE OR REPLACE GLOBAL TEMP PATTERN VIEW v AS {Q}", "v", True),
    ],
)
def test_create_pattern_view(sql: str, name: str, replace: bool) -> None:
    found = find(sql)
    assert isinstance(found, CreateView)
    assert (found.name.value, found.replace, found.is_global, parts(sql)) == (name, replace, "GLOBAL" in sql, [Q])
    assert found.says_temporary == ("TEMP" in sql or "GLOBAL" in sql)


def test_the_query_of_a_view_may_have_any_order_of_clauses() -> None:
    assert parts(f"CREATE PATTERN VIEW v AS FROM r {Q}") == [f"FROM r {Q}"]


@pytest.mark.parametrize(
    ("sql", "condition", "at"),
    [
        (f"CREATE GLOBAL PATTERN FUNCTION f AS {Q}", "NOT_SUPPORTED_YET", "GLOBAL"),
        ("CREATE PATTERN FUNCTION f", "UNEXPECTED_TOKEN", ""),
        ("CREATE PATTERN FUNCTION AS PATTERN A RETURN *", "UNEXPECTED_TOKEN", "PATTERN A"),
        ("CREATE PATTERN FUNCTION f(x) AS PATTERN A RETURN *", "UNEXPECTED_TOKEN", ")"),
        ("CREATE PATTERN FUNCTION f(x INT DEFAULT) AS PATTERN A RETURN *", "UNEXPECTED_TOKEN", ")"),
        ("CREATE PATTERN FUNCTION f(x INT,) AS PATTERN A RETURN *", "UNEXPECTED_TOKEN", ")"),
        ("CREATE PATTERN FUNCTION f(5 INT) AS PATTERN A RETURN *", "UNEXPECTED_TOKEN", "5 INT"),
        ("CREATE PATTERN FUNCTION f(x INT, X INT) AS PATTERN A RETURN *", "DUPLICATE_PARAMETER", "X INT"),
        ("CREATE PATTERN FUNCTION f(x INT AS PATTERN A RETURN *", "UNCLOSED", "(x INT"),
        ("CREATE PATTERN PROCEDURE f AS PATTERN A RETURN *", "UNEXPECTED_TOKEN", "PROCEDURE"),
        ("DROP PATTERN v", "UNEXPECTED_TOKEN", "v"),
        ("DROP PATTERN VIEW", "UNEXPECTED_TOKEN", ""),
        ("DROP PATTERN VIEW IF EXISTS v w", "UNEXPECTED_TOKEN", "w"),
        ("DROP PATTERN VIEW db.v", "UNEXPECTED_TOKEN", ".v"),
        ("SHOW PATTERNS v", "UNEXPECTED_TOKEN", "v"),
        ("SHOW PATTERNS LIKE v", "UNEXPECTED_TOKEN", "v"),
        ("SHOW PATTERN VIEWS", "UNEXPECTED_TOKEN", "VIEWS"),
        ("SHOW PATTERN FUNCTIONS", "UNEXPECTED_TOKEN", "FUNCTIONS"),
        ("DESCRIBE PATTERN v x y", "UNEXPECTED_TOKEN", "x y"),
        (f"EXPLAIN CREATE PATTERN VIEW v AS {Q}", "NOT_SUPPORTED_YET", "CREATE"),
        (f"CREATE PATTERN VIEW IF NOT EXISTS v AS {Q}", "NOT_SUPPORTED_YET", "IF"),
        (f"CREATE PATTERN VIEW v (a) AS {Q}", "NOT_SUPPORTED_YET", "(a)"),
        (f"CREATE PATTERN VIEW db.v AS {Q}", "UNEXPECTED_TOKEN", ".v"),
        ("CREATE PATTERN VIEW 'v' AS PATTERN A", "UNEXPECTED_TOKEN", "'v'"),
        (f"CREATE PATTERN VIEW v {Q}", "UNEXPECTED_TOKEN", "PATTERN SEQ"),
        (f"SELECT * FROM t WHERE x = ({Q})", "UNEXPECTED_TOKEN", "PATTERN SEQ"),
        ("SELECT * FROM t MATCH_RECOGNIZE (PATTERN (A B+) DEFINE A AS x > 1)", "MATCH_RECOGNIZE_TEXT", "MATCH"),
        (f"SELECT * FROM ({Q}) MATCH_RECOGNIZE (PATTERN (A))", "MATCH_RECOGNIZE_TEXT", "MATCH"),
        ("FROM readings PATERN SEQ(A a) RETURN *", "MISSPELT_CLAUSE", "PATERN"),
        ("RETURN * PATTRAN (A ; B)", "MISSPELT_CLAUSE", "PATTRAN"),
        ("FROM readings MATCH (A a ; B b) RETURN *", "UNKNOWN_CLAUSE", "MATCH"),
        ("MATCH A ; B FROM readings RETURN *", "UNKNOWN_CLAUSE", "MATCH"),
        ("RETURN * PATTREN A", "MISSPELT_CLAUSE", "PATTREN"),
        ("SELECT a.x FROM readings PATTERNS [A]", "MISSPELT_CLAUSE", "PATTERNS"),
        ("SELECT * FROM (PATERN SEQ(A a) RETURN *)", "MISSPELT_CLAUSE", "PATERN"),
        ("SELECT a.x FROM PATERN [every a=A]", "MISSPELT_CLAUSE", "PATERN"),
        (f"SELECT * FROM ({Q}", "UNCLOSED", f"({Q}"),
        ("PATTERN SEQ(A a) WHERE a.x = 'b", "UNCLOSED", "'b"),
    ],
)
def test_errors_name_the_construct_and_its_place(sql: str, condition: str, at: str) -> None:
    with pytest.raises(ParseError) as caught:
        find(sql)
    error = caught.value
    assert error.condition == condition
    assert error.text == sql
    assert error.span is not None
    assert sql[error.span.start :].startswith(at)
    assert is_ours(sql)


def test_a_create_view_without_a_query_ends_too_early() -> None:
    with pytest.raises(ParseError) as caught:
        find("CREATE PATTERN VIEW v AS")
    assert caught.value.condition == "UNEXPECTED_TOKEN"
    assert caught.value.span == Span(24, 24)


# ---------------------------------------------------------------- with a session


def test_a_whole_query_needs_no_view() -> None:
    spark = FakeSession()
    df = rewritten(spark, f" {Q};")
    assert isinstance(df, FakeFrame)
    assert df.text == Q
    assert spark.views == {}


def test_the_rest_of_the_statement_stays_byte_for_byte() -> None:
    spark = FakeSession()
    sql = f"SELECT\t'é (PATTERN A)' AS `x`\r\nFROM (  {Q} -- end\n ) m, (\n{Q}) /* n */ n WHERE  y = :p ;\n"
    text = rewritten(spark, sql)
    assert isinstance(text, str)
    first, second = re.findall(r"`__cersql_\d+\u2028`", text)
    # … and where it was, so that Spark's errors are at the places of the statement as it was written.
    reads = [f"SELECT * FROM {name}".ljust(len(Q)) for name in (first, second)]
    assert text == sql.replace(Q, reads[0], 1).replace(Q, reads[1], 1)
    assert spark.views == {first.strip("`"): Q, second.strip("`"): Q}


def test_explain_keeps_its_mode() -> None:
    found = find(f"EXPLAIN FORMATTED {Q}")
    assert found == Explain("FORMATTED", Span(18, 18 + len(Q)), Whole(Span(18, 18 + len(Q))))
    embedded = find(f"explain SELECT * FROM ({Q})")
    assert isinstance(embedded, Explain)
    assert (embedded.mode, embedded.inner) == (None, Embedded((Span(23, 23 + len(Q)),), lasting=False))


def test_old_private_views_go_and_those_of_views_stay() -> None:
    spark = FakeSession()
    rewritten(spark, f"CREATE TEMPORARY VIEW v AS SELECT * FROM ({Q})")
    lasting = set(spark.views)
    for _ in range(views.KEPT_VIEWS + 10):
        rewritten(spark, f"SELECT * FROM ({Q})")
    assert len(spark.views) == views.KEPT_VIEWS + 1
    assert lasting < set(spark.views)


def test_errors_of_a_query_point_into_the_whole_text() -> None:
    def fail(spark: Any, text: str, query: Span) -> Any:
        at = text.index("boom", query.start, query.end)
        raise BindError("UNKNOWN_VARIABLE", name="boom", span=Span(at, at + 4))

    sql = "SELECT *\nFROM (PATTERN A a WHERE boom.x > 1 RETURN *)"
    with pytest.raises(BindError) as caught:
        rewrite(FakeSession(), sql, plan=fail)  # type: ignore[arg-type]
    assert (caught.value.line, caught.value.column) == (2, 25)
    assert str(caught.value).endswith("                        ^")


def test_what_two_tokens_say_together_stays_together() -> None:
    found = find("CREATE PATTERN FUNCTION f(a ARRAY<ARRAY<INT>> DEFAULT array(), b INT DEFAULT 8 >> 3) AS PATTERN A a")
    assert isinstance(found, CreateFunction)
    assert [(p.type, p.default) for p in found.parameters] == [("ARRAY<ARRAY<INT>>", "array()"), ("INT", "8 >> 3")]
