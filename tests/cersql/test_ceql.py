"""CEQL, CORE's SELECT … FROM S WHERE pattern …: what each text means, in ours; its matches are in cases/ceql.toml."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from queries import bound, check_error, check_place

import cersql
from cersql.api import SchemaCatalog
from cersql.binding.bind import bind
from cersql.language import scripts
from cersql.language.parse import parse
from cersql.language.source import SourceText
from cersql.statements.find import find
from cersql.statements.kinds import Embedded, Whole
from cersql.statements.parameters import fill_markers
from planner.query import Query
from runtime.errors import CersqlError, Span

COLUMNS = {
    "ts": "timestamp", "t": "bigint", "type": "string", "name": "string", "symbol": "string", "price": "double",
    "n": "int",
}  # fmt: skip
W = "IN ('tinyint', 'smallint', 'int', 'bigint')"
TABLES = {"S": COLUMNS, "T": COLUMNS, "untyped": {"ts": "timestamp", "t": "bigint", "price": "double"}}


def meaning(text: str) -> Query:
    """What the engine is told, without the places in the text."""
    query = bind(parse(text), SchemaCatalog(TABLES), order_by="ts")
    return replace(query, text="", origins=(), warnings=())


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        # SELECT
        ("SELECT * FROM S WHERE A; B", "FROM S PATTERN A; B RETURN *"),
        ("SELECT ALL * FROM S WHERE A; B", "FROM S PATTERN A; B RETURN *"),
        ("SELECT ANY * FROM S WHERE A; B", "FROM S PATTERN A; B SEMANTICS NXT RETURN *"),
        ("SELECT NEXT * FROM S WHERE A; B", "FROM S PATTERN A; B SEMANTICS NXT RETURN *"),
        ("SELECT LAST x FROM S WHERE A AS x; B", "FROM S PATTERN PROJECT(x : A x; B) SEMANTICS LAST RETURN *"),
        ("SELECT max FROM S WHERE A AS max; B", "FROM S PATTERN PROJECT(`max` : A AS `max`; B) RETURN *"),
        ("SELECT MAX max FROM S WHERE A AS max; B",
         "FROM S PATTERN PROJECT(`max` : A AS `max`; B) SEMANTICS MAX RETURN *"),
        ("SELECT STRICT NONE FROM S WHERE A; B", "FROM S PATTERN PROJECT( : A; B) SEMANTICS STRICT RETURN *"),
        ("SELECT x[name, price], B, x FROM S WHERE A AS x; B",
         "FROM S PATTERN PROJECT(x(name, price), B : A x; B) RETURN *"),
        # WHERE
        ("SELECT * FROM S WHERE (A AS x; B:+; C+ AS y)", "FROM S PATTERN A x; B:+; C+ y RETURN *"),
        ("SELECT * FROM S WHERE A; B : C; D", "FROM S PATTERN (A; B) : (C; D) RETURN *"),
        ("SELECT * FROM S WHERE A; B OR C : D", "FROM S PATTERN (A; B) OR (C : D) RETURN *"),
        ("SELECT * FROM S WHERE ((A))+ ; (B OR C) :+", "FROM S PATTERN A+; (B OR C):+ RETURN *"),
        ("SELECT * FROM S WHERE (A; B) AS w; A", "FROM S PATTERN (A; B) AS w; A RETURN *"),
        ("SELECT * FROM S WHERE A AS x AS y; B", "FROM S PATTERN (A AS x) AS y; B RETURN *"),
        ("SELECT * FROM S WHERE START; LIMITS AS seq", "FROM S PATTERN `START`; LIMITS AS `seq` RETURN *"),
        ("SELECT * FROM S WHERE NOT (A); B", "FROM S PATTERN PROJECT( : ANY UNLESS A); B RETURN *"),
        ("SELECT * FROM S WHERE !(A) : B", "FROM S PATTERN PROJECT( : ANY UNLESS A) : B RETURN *"),
        ("SELECT * FROM S WHERE B; NOT(A FILTER A[n = 1] FILTER A[n < 2])+",
         "FROM S PATTERN B; PROJECT( : ANY UNLESS (A FILTER A[n = 1] FILTER A[n < 2]))+ RETURN *"),
        ("SELECT * FROM S WHERE A ALL B OR C", "FROM S PATTERN A ALL (B OR C) RETURN *"),
        ("SELECT * FROM S WHERE A; B UNLESS C", "FROM S PATTERN (A; B) UNLESS C RETURN *"),
        ("SELECT * FROM S WHERE A; B UNLESS C[n > 1]", "FROM S PATTERN (A; B) UNLESS (C FILTER C[n > 1]) RETURN *"),
        # FILTER
        ("SELECT * FROM S WHERE A AS x; B FILTER x[n > 1] AND B[price < 2]",
         "FROM S PATTERN (A x; B) FILTER x[n > 1] AND B[price < 2] RETURN *"),
        ("SELECT * FROM S WHERE A AS x; B FILTER (x[n > 1] OR B[price < 2])",
         "FROM S PATTERN (A x; B) FILTER x[n > 1] OR B[price < 2] RETURN *"),
        ("SELECT * FROM S WHERE A AS x FILTER x[n > 1] OR x[price < 2]",
         "FROM S PATTERN A x FILTER x[n > 1] OR x[price < 2] RETURN *"),
        ("SELECT * FROM S WHERE A+ AS x; B FILTER (x[n > 1] OR x[n < 0]) AND B[n = 1]",
         "FROM S PATTERN (((A+ x; B) FILTER x[n > 1]) OR ((A+ x; B) FILTER x[n < 0])) FILTER B[n = 1] RETURN *"),
        ("SELECT * FROM S WHERE A FILTER A[n > 1] OR B", "FROM S PATTERN (A FILTER A[n > 1]) OR B RETURN *"),
        ("SELECT * FROM S WHERE A FILTER A[n > 1] OR (B; C)", "FROM S PATTERN (A FILTER A[n > 1]) OR (B; C) RETURN *"),
        ("SELECT * FROM S WHERE A FILTER A[n > 1]; B FILTER B[n > 2]",
         "FROM S PATTERN ((A FILTER A[n > 1]); B) FILTER B[n > 2] RETURN *"),
        # conditions
        ("SELECT * FROM S WHERE A FILTER A[n == 1 AND (price <> 2 OR NOT price >= 3)]",
         "FROM S PATTERN A FILTER A[n == 1 AND (price <> 2 OR NOT price >= 3)] RETURN *"),
        ("SELECT * FROM S WHERE A FILTER A[n + 1 IN RANGE (n * 2, price - 1) AND n > 0]",
         "FROM S PATTERN A FILTER A[n + 1 BETWEEN n * 2 AND price - 1 AND n > 0] RETURN *"),
        ("SELECT * FROM S WHERE A FILTER A[n IN {1, 2} OR n NOT IN {5}]",
         "FROM S PATTERN A FILTER A[n IN (1, 2) OR n NOT IN (5)] RETURN *"),
        ("SELECT * FROM S WHERE A FILTER A[n IN {3..9} OR n NOT IN {3 .. 9} OR price IN {1.5..2.5}]",
         "FROM S PATTERN A FILTER A[n BETWEEN 3 AND 9 OR n NOT BETWEEN 3 AND 9 OR price BETWEEN 1.5 AND 2.5] RETURN *"),
        ("SELECT * FROM S WHERE A FILTER A[n IN {3..} AND n IN {..9} OR n NOT IN {3..} AND n NOT IN {..9}]",
         "FROM S PATTERN A FILTER A[n >= 3 AND n <= 9 OR n < 3 AND n > 9] RETURN *"),
        ("SELECT * FROM S WHERE A FILTER A[name LIKE 'x\\d.*' AND name IN {'it''s', 'a\\b'}]",
         r"FROM S PATTERN A FILTER A[name RLIKE 'x\\d.*' AND name IN ('it\'s', 'a\\b')] RETURN *"),
        ("SELECT * FROM S WHERE A FILTER A[name LIKE <<a|b+>> OR name = <<c>> OR name != <<d>>]",
         r"FROM S PATTERN A FILTER A[name RLIKE '\\A(?:a|b+)\\z' OR name RLIKE '\\A(?:c)\\z' "
         r"OR name NOT RLIKE '\\A(?:d)\\z'] RETURN *"),
        ("SELECT * FROM S WHERE A FILTER A[n / 2.0 > 1 AND n div 2 > 1]",
         "FROM S PATTERN A FILTER A[n / 2.0 > 1 AND n div 2 > 1] RETURN *"),
        ("SELECT * FROM S WHERE A FILTER A[n IN RANGE (n / 2, price * 1.0)]",
         "FROM S PATTERN A FILTER A[n BETWEEN n / 2 AND price * 1.0] RETURN *"),
        ("SELECT * FROM S WHERE A FILTER A[-n * 2 / t - 7 / 2 > 1 AND n % 2 = 1]",
         f"FROM S PATTERN A FILTER A[if(typeof(n) {W} AND typeof(t) {W}, CAST(-n AS BIGINT) * 2 div CAST(t AS BIGINT), "
         f"-n * 2 / t) - if(typeof(n) {W} AND typeof(t) {W}, 7 div 2, 7 / 2) > 1 AND n % 2 = 1] RETURN *"),
        ("SELECT * FROM S WHERE A FILTER A[5 IN RANGE (2, (n / 2 + 7) / 3)]",
         f"FROM S PATTERN A FILTER A[5 BETWEEN 2 AND if(typeof(n) {W}, "
         "CAST(CAST(n AS BIGINT) div 2 + 7 AS BIGINT) div 3, (n / 2 + 7) / 3)] RETURN *"),
        ("SELECT * FROM S WHERE A FILTER A[7 / 2 = 3]", "FROM S PATTERN A FILTER A[(7 div 2) = 3] RETURN *"),
        # the other clauses
        ("SELECT * FROM S WHERE A; B WITHIN 4 EVENTS", "FROM S PATTERN A; B WITHIN 5 EVENTS RETURN *"),
        ("SELECT * FROM S WHERE A; B WITHIN 10 [t]", "FROM S PATTERN A; B ORDER BY t WITHIN < 10 RETURN *"),
        ("SELECT * FROM S WHERE A; B WITHIN 2 HOURS 1 MINUTE 5 SECONDS",
         "FROM S PATTERN A; B WITHIN 2 HOURS 1 MINUTE 5 SECONDS RETURN *"),
        ("SELECT * FROM S WHERE A; B PARTITION BY [name]",
         "FROM S WHERE name IS NOT NULL PATTERN A; B PARTITION BY name RETURN *"),
        ("SELECT * FROM S WHERE A; B PARTITION BY [name, symbol], [n] WITHIN 10 [t] CONSUME BY PARTITION LIMIT 0;",
         "FROM S WHERE coalesce(name, symbol) IS NOT NULL AND n IS NOT NULL PATTERN A; B "
         "PARTITION BY coalesce(name, symbol), n ORDER BY t WITHIN < 10 CONSUME BY PARTITION RETURN * LIMIT 0"),
        ("SELECT * FROM S WHERE A; B CONSUME BY ANY ORDER BY ts, t",
         "FROM S PATTERN A; B CONSUME BY ANY ORDER BY ts, t RETURN *"),
        ("select * from S where A as x; B filter x[n > 1] within 4 events consume by none",
         "FROM S PATTERN (A x; B) FILTER x[n > 1] WITHIN 5 EVENTS CONSUME BY NONE RETURN *"),
        # streams
        ("SELECT S>A FROM S WHERE S>A; S>B FILTER S>B[n > 1]",
         "FROM S PATTERN PROJECT(A : (A; B) FILTER B[n > 1]) RETURN *"),
        ("SELECT * FROM db.S AS U WHERE U>A; B", "FROM db.S AS U PATTERN A; B RETURN *"),
        ("SELECT * FROM untyped TYPE price WHERE A; B", "FROM untyped TYPE price PATTERN A; B RETURN *"),
        ("SELECT * FROM S, T WHERE A; B", "FROM S TYPE type, T TYPE type PATTERN A; B RETURN *"),
        ("SELECT * FROM S, T, s WHERE A; B", "FROM S TYPE type, T TYPE type PATTERN A; B RETURN *"),
        ("SELECT * FROM untyped, S WHERE untyped; B", "FROM untyped, S TYPE type PATTERN untyped; B RETURN *"),
        # no SQL can stand here, so that these are CEQL, too
        ("SELECT * FROM S WHERE A", "FROM S PATTERN A RETURN *"),
        ("SELECT A, B FROM S WHERE (A OR B)", "FROM S PATTERN PROJECT(A, B : A OR B) RETURN *"),
        ("SELECT * FROM S WHERE S>A -- WHERE B", "FROM S PATTERN A RETURN *"),
        ("SELECT Return, End FROM S WHERE Return; (End OR Case)+ FILTER Return[n > 1]",
         "FROM S PATTERN PROJECT(`Return`, `End` : (`Return`; (`End` OR `Case`)+) FILTER `Return`[n > 1]) RETURN *"),
        ("SELECT * FROM S WHERE A; B PARTITION BY [return] WITHIN 3 [having]",
         "FROM S WHERE `return` IS NOT NULL PATTERN A; B PARTITION BY `return` ORDER BY `having` WITHIN < 3 RETURN *"),
        ("SELECT * FROM S WHERE Between OR Like", "FROM S PATTERN `Between` OR `Like` RETURN *"),
    ],
)  # fmt: skip
def test_what_it_means_in_ours(theirs: str, ours: str) -> None:
    columns = {**COLUMNS, "return": "string", "having": "bigint"}
    tables = {**TABLES, "S": columns, "db.S": COLUMNS}
    found, expected = (
        replace(bind(parse(text), SchemaCatalog(tables), order_by="ts"), text="", origins=(), warnings=())
        for text in (theirs, ours)
    )
    assert found.formula == expected.formula
    for name in ("sources", "types", "order_by", "partition_by", "window", "strategy", "consume", "limit", "variables"):
        assert getattr(found, name) == getattr(expected, name), name
    assert [output.name for output in found.outputs] == [output.name for output in expected.outputs]


def test_the_example_of_the_docs() -> None:
    page = (Path(__file__).parents[2] / "docs/coming-from.md").read_text(encoding="utf-8")
    theirs, ours = re.findall(r"```sql\n(.*?)```", page[page.index("## CEQL (CORE)") :], re.DOTALL)[:2]
    tables = {"Stock": {**COLUMNS, "account": "int", "stock_time": "bigint"}}
    found, expected = (bind(parse(text), SchemaCatalog(tables)) for text in (theirs, ours))
    assert (found.formula, found.window, found.order_by) == (expected.formula, expected.window, expected.order_by)
    assert (found.partition_by, found.consume) == (expected.partition_by, expected.consume) == (("account",), "ANY")


def test_limit_is_of_each_end() -> None:
    query = meaning("SELECT * FROM S WHERE A; B LIMIT 3")
    assert (query.limit, query.most_at_end) == (None, 3)
    compiled = cersql.compile("SELECT * FROM S WHERE A; B LIMIT 3", TABLES, order_by="ts")
    assert compiled.program.most_at_end == 3
    assert "limit: 3 of the matches that end together" in compiled.explain("cel")
    none = meaning("SELECT * FROM S WHERE A; B LIMIT 0")
    assert (none.limit, none.most_at_end) == (0, None)


def test_types_of_one_of_several_streams() -> None:
    query = meaning("SELECT * FROM S, T WHERE S>A; B FILTER A[n > 1]")
    assert dict(query.types) == {
        "S>A": "(__cersql_source = 0 AND `type` = 'A')",
        "B": "(__cersql_source = 0 AND `type` = 'B') OR (__cersql_source = 1 AND `type` = 'B')",
    }
    both = meaning("SELECT A FROM S, T WHERE A; B FILTER S>A[n > 1] AND T>A[n > 2]")
    assert both.formula == meaning(
        "SELECT S>A, T>A FROM S, T WHERE (S>A OR T>A); B FILTER S>A[n > 1] AND T>A[n > 2]"
    ).formula  # fmt: skip
    assert {name for name, _ in both.types} == {"S>A", "T>A", "B"}


def test_a_type_called_like_a_source() -> None:
    query = bind(parse("SELECT * FROM S, T WHERE T; B"), SchemaCatalog(TABLES), order_by="ts")
    (advice,) = query.warnings
    assert advice == "T is the name of a source and of a type. Here it is the type: the rows whose type is T."
    condition = "(__cersql_source = 0 AND `type` = 'T') OR (__cersql_source = 1 AND `type` = 'T')"
    assert dict(query.types)["T"] == condition
    sole = bind(parse("SELECT * FROM S WHERE A; s"), SchemaCatalog(TABLES), order_by="ts")
    assert dict(sole.types)["s"] == "`type` = 's'"


def test_not_is_no_advice_on_unless() -> None:
    query = bind(parse("SELECT * FROM S WHERE NOT (A); B"), SchemaCatalog(TABLES), order_by="ts")
    assert not query.warnings
    assert bound("FROM t PATTERN PROJECT( : ANY UNLESS A) ; B ORDER BY ts RETURN *").warnings


Q = "SELECT * FROM S WHERE "


@pytest.mark.parametrize(
    ("marked", "condition", "fragments"),
    [
        (Q + "(A AS a‸, B AS b) CONSUME BY NONE", "UNEXPECTED_TOKEN", ["A; B"]),
        (Q + "A; B FILTER A[n] ‸= B[n]", "UNEXPECTED_TOKEN", ["WHERE a.x = b.x"]),
        (Q + "A; B LIMIT ‸3000000000", "BAD_NUMBER", ["at most"]),
        (Q + "A; B PARTITION BY [name] WITHIN ‸3 EVENTS", "OTHER_MEANING", ["events of all keys", "WITHIN 4 [n]"]),
        (Q + "A FILTER A[abs(n) ‸/ 2 > 1]", "OTHER_MEANING", ["drops the remainder", "x div y"]),
        (Q + "A FILTER A[n BETWEEN t ‸/ 2 AND 7]", "OTHER_MEANING", ["x * 1.0 / y"]),
        (Q + "A FILTER A[S.n ‸/ 2 > 1]", "OTHER_MEANING", ["x * 1.0 / y"]),
        (Q + "A; B‸{2}", "UNEXPECTED_TOKEN", ["PATTERN SEQ(A a, B{2,3} b)"]),
        (Q + "A ‸-> B", "UNEXPECTED_TOKEN", ["queries of ours"]),
        (Q + "A‸*; B", "UNEXPECTED_TOKEN", ["queries of ours"]),
        ("‸" + Q + "x > 3", "UNKNOWN_CLAUSE", ["SELECT … FROM (PATTERN"]),
        ("‸SELECT a FROM S PATTERN A a", "UNKNOWN_CLAUSE", ["SELECT … FROM (PATTERN"]),
        (Q + "A; B LIMIT ‸x", "BAD_NUMBER", []),
        (Q + "A; B LIMIT 0 ‸1", "UNEXPECTED_TOKEN", ["the next clause"]),
        (Q + "A; ‸; B WITHIN 3 EVENTS", "UNEXPECTED_TOKEN", ["an event type"]),
        (Q + "A; B WITHIN ‸3", "BAD_WINDOW", ["WITHIN 100 EVENTS"]),
        (Q + "A; B;‸ WITHIN 3 EVENTS", "UNEXPECTED_TOKEN", ["the end of the pattern"]),
        (Q + "(A; B ‸C) WITHIN 3 EVENTS", "UNEXPECTED_TOKEN", ["')' or an operator"]),
        (Q + "A; B ‸) WITHIN 3 EVENTS", "UNOPENED", []),
        (Q + "(A AS a‸, B AS b) WITHIN 3 EVENTS", "UNEXPECTED_TOKEN", ["PATTERN ALL(A a, B b)"]),
        (Q + "A; B FILTER A[n > 1] AND ‸NOT B[n > 1]", "UNEXPECTED_TOKEN", ["a[NOT price > 10]"]),
        (Q + "A AS a; B AS b FILTER a[n] ‸= b[n] WITHIN 3 EVENTS", "UNEXPECTED_TOKEN", ["WHERE a.x = b.x"]),
        ("‸" + Q + "A LIKE B", "UNKNOWN_CLAUSE", []),
        ("‸CHECK { SELECT * FROM S WHERE A; B }", "UNKNOWN_CLAUSE", ["SELECT NONE … LIMIT 1"]),
        ("‸DECLARE EVENT A(n int)", "UNKNOWN_CLAUSE", ["nothing is declared"]),
        ("‸CREATE STREAM S(A, B)", "UNKNOWN_CLAUSE", ["nothing is declared"]),
        ("‸CREATE QUARANTINE { FIXED_TIME 2 seconds { S } }", "UNKNOWN_CLAUSE", ["WATERMARK 2 SECONDS"]),
        (Q + "A AS ‸; B WITHIN 3 EVENTS", "UNEXPECTED_TOKEN", ["a variable after AS"]),
        (Q + "NOT ‸A; B CONSUME BY NONE", "UNEXPECTED_TOKEN", ["NOT (R) is one event"]),
        (Q + "NOT (A ‸; B) CONSUME BY NONE", "UNEXPECTED_TOKEN", ["it takes one type"]),
        (Q + "NOT (A ‸AS x); B", "UNEXPECTED_TOKEN", ["it takes one type"]),
        (Q + "B; NOT (A FILTER ‸B[n > 1])", "UNEXPECTED_TOKEN", ["A[…]"]),
        (Q + "A; B FILTER ‸C[n > 1]", "UNKNOWN_VARIABLE", ["In scope are: A, B"]),
        (Q + "A; B FILTER A‸.n > 1 CONSUME BY NONE", "UNEXPECTED_TOKEN", ["a[price > 10]"]),
        (Q + "A; B FILTER A[n > 1] AND n > ‸1", "UNEXPECTED_TOKEN", ["a[price > 10]"]),
        (Q + "A; B FILTER A[‸]", "UNEXPECTED_TOKEN", ["a condition"]),
        (Q + "A FILTER A[n LIKE ‸name]", "UNEXPECTED_TOKEN", ["a regular expression in quotes"]),
        (Q + "A FILTER A[n LIKE ‸<<x]", "UNCLOSED", ["<<"]),
        (Q + "A FILTER A[n IN {‸}]", "UNEXPECTED_TOKEN", ["values in braces"]),
        (Q + "A FILTER A[n IN RANGE ‸1]", "UNEXPECTED_TOKEN", ["IN RANGE (10, 20)"]),
        (Q + "A FILTER A[n IN RANGE (1‸)]", "UNEXPECTED_TOKEN", ["two bounds"]),
        (Q + "A FILTER A[n IN RANGE (1, 2‸, 3)]", "UNEXPECTED_TOKEN", ["two bounds"]),
        (Q + "A; B WITHIN ‸TIMESTAMP [t] CONSUME BY NONE", "BAD_WINDOW", ["stands for a number", "WITHIN 10 [t]"]),
        (Q + "A; B WITHIN ‸0 [t]", "BAD_WINDOW", ["at least 1"]),
        (Q + "A; B WITHIN 3 [t, ‸n]", "UNEXPECTED_TOKEN", []),
        (Q + "A; B WITHIN 3 [‸tt]", "UNKNOWN_COLUMN", ["Did you mean t?"]),
        (Q + "A; B WITHIN 3 EVENTS ‸4", "UNEXPECTED_TOKEN", ["the next clause"]),
        (Q + "A; B WITHIN ‸1.5 EVENTS", "BAD_NUMBER", ["a whole number"]),
        (Q + "A; B WITHIN 3 [t] ‸ORDER BY ts", "DUPLICATE_CLAUSE", ["t is the time"]),
        (Q + "A; B WITHIN 3 ‸PARSECS", "BAD_WINDOW", []),
        (Q + "A; B PARTITION BY ‸name WITHIN 3 [t]", "UNEXPECTED_TOKEN", ["[a, b] is one key"]),
        (Q + "A; B PARTITION BY [name]‸] WITHIN 3 [t]", "UNOPENED", []),
        (Q + "A; B PARTITION BY [name ‸n] WITHIN 3 [t]", "UNEXPECTED_TOKEN", ["the name of an attribute"]),
        (Q + "A; B PARTITION BY [‸nam] WITHIN 3 [t]", "UNKNOWN_COLUMN", ["Did you mean name?"]),
        (Q + "A; B CONSUME BY ‸SOME", "BAD_CLAUSE", ["ANY"]),
        (Q + "A; B WITHIN 3 EVENTS ‸WHERE C", "DUPLICATE_CLAUSE", ["WHERE"]),
        (Q + "A; B WITHIN 3 EVENTS ‸HAVING x > 1", "UNEXPECTED_TOKEN", ["a clause of CEQL"]),
        (Q + "A; B ‸CONSUME BY", "EMPTY_CLAUSE", ["CONSUME BY"]),
        ("SELECT a‸.x FROM S WHERE A AS a; B", "UNEXPECTED_TOKEN", ["no expressions"]),
        ("SELECT a‸.x FROM S WHERE A AS a; B CONSUME BY NONE", "UNEXPECTED_TOKEN", ["no expressions"]),
        ("SELECT ‸c FROM S WHERE A AS a; B", "UNKNOWN_VARIABLE", []),
        ("SELECT * FROM S, T WHERE ‸U>A; S>B CONSUME BY NONE", "UNEXPECTED_TOKEN", ["one of FROM: S, T"]),
        ("SELECT * FROM S WHERE A; B FILTER ‸SS>A[n > 1]", "UNEXPECTED_TOKEN", ["Did you mean S?"]),
        (Q + "(" * 101 + "A; B" + ")" * 101, "TOO_DEEP", []),
        (Q + "A" + "+" * 102 + "; B", "TOO_DEEP", ["100"]),
        (Q + "A+ ‸FILTER " + " AND ".join(["(A[n = 1] OR A[n = 2])"] * 7), "NOT_SUPPORTED_YET", ["64 ways"]),
    ],
)  # fmt: skip
def test_errors(marked: str, condition: str, fragments: list[str]) -> None:
    if "‸" not in marked:
        with pytest.raises(CersqlError) as raised:
            parse(marked)
        assert raised.value.condition == condition
        return
    check_error(marked, condition, *fragments, schemas=TABLES)


def test_a_with_before_it() -> None:
    tree = parse("WITH x AS (SELECT 1) SELECT * FROM x WHERE A; B")
    assert tree.ctes is not None
    assert (tree.ctes.value, tree.ceql) == ("WITH x AS (SELECT 1)", True)


@pytest.mark.parametrize(
    "where",
    [
        "A; B FILTER A[‸nn > 1]",
        "A; B FILTER A[t / ‸nn > 1]",
        "A AS x; B UNLESS C[‸nn > 1]",
        "NOT (A FILTER A[‸nn > 1])",
    ],
)
def test_columns_that_there_are_not(where: str) -> None:
    text = f"{Q}{where} CONSUME BY NONE"
    with pytest.raises(CersqlError) as raised:
        cersql.compile(text.replace("‸", ""), TABLES, order_by="ts")
    check_place(raised.value, text.replace("‸", ""), text.index("‸"), "BARE_WORD", "Did you mean the column n?")


def test_an_error_is_shown_in_the_text_that_was_written() -> None:
    text = "SELECT *\nFROM S\nWHERE A AS x;\n  B\nFILTER x[n > 1]\n  AND y[n > 2]\nWITHIN 3 [t]"
    with pytest.raises(CersqlError) as raised:
        bind(parse(text), SchemaCatalog(TABLES))
    error = raised.value
    assert (error.text, error.line, error.column) == (text, 6, 7)
    assert str(error).endswith("  AND y[n > 2]\n      ^")


# ---------------------------------------------------------------- what is SQL stays SQL


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM t WHERE (a)",
        "SELECT * FROM t WHERE (a OR b)",
        "SELECT * FROM t WHERE NOT (a)",
        "SELECT * FROM S WHERE S > a",
        "SELECT a FROM t WHERE v:x",
        "SELECT a b c FROM t WHERE v:x ; y",
        "SELECT * FROM t WHERE a; DROP TABLE t",
        "SELECT * FROM t WHERE a; SELECT 1",
        "SELECT * FROM t WHERE a; SET x = 1",
        "SELECT * FROM t WHERE a > 1; b",
        "SELECT * FROM t WHERE f(a); b",
        "SELECT * FROM t WHERE CAST(a AS INT)",
        "SELECT * FROM t WHERE a + b",
        "SELECT count(*) FILTER (WHERE a) FROM t WHERE a LIMIT 3 x",
        "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY v) FROM t WHERE a x",
        "SELECT a, rank() OVER (PARTITION BY b) FROM t WHERE a x",
        "SELECT * FROM t JOIN u WHERE a; b",
        "DECLARE event DECIMAL(3, 1) DEFALT 3",
        "CREATE STREAM x",
        "UPDATE t SET a = 1 WHERE b; c",
    ],
)
def test_what_may_be_sql_is_left_to_spark(text: str) -> None:
    assert find(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM S WHERE A; B",
        "SELECT * FROM S WHERE A AS x",
        "SELECT * FROM S WHERE A+",
        "SELECT * FROM S WHERE A :+",
        "SELECT * FROM S WHERE (A OR B) CONSUME BY NONE",
        "SELECT * FROM S WHERE A WITHIN 3 EVENTS",
        "SELECT * FROM S WHERE A PARTITION BY [name]",
        "SELECT * FROM S WHERE A FILTER S>A[n > 1]",
        "WITH x AS (SELECT 1) SELECT * FROM S WHERE A; B;",
    ],
)
def test_what_cannot_be_sql_is_found(text: str) -> None:
    whole = text.removesuffix(";")
    assert find(text) == Whole(Span(0, len(whole)))
    inner = f"SELECT count(*) AS n, m.a FROM ({whole}) AS m"
    assert find(inner) == Embedded((Span(32, 32 + len(whole)),), False)
    assert isinstance(find(f"INSERT INTO u {whole}"), Embedded) or whole.startswith("WITH")


@pytest.mark.parametrize(
    ("text", "clause"),
    [
        ("CHECK { SELECT * FROM S WHERE A; B }", "CHECK"),
        ("create stream S { EVENT A { n:int }, EVENT B { n:int } }", "CREATE STREAM"),
        ("DECLARE EVENT A(n int)", "DECLARE EVENT"),
        ("CREATE QUARANTINE { DIRECT { S } }", "CREATE QUARANTINE"),
    ],
)
def test_statements_of_core_that_have_no_equal(text: str, clause: str) -> None:
    assert find(text) == Whole(Span(0, len(text)))
    with pytest.raises(CersqlError) as raised:
        parse(text)
    assert str(raised.value).startswith(f"[UNKNOWN_CLAUSE] {clause} is no clause")


def test_semicolons_of_scripts() -> None:
    ceql = "SELECT * FROM S WHERE A AS x; B AS y\nFILTER x[n > 1]"
    statements = [ceql, "SELECT * FROM t WHERE a", "CREATE PATTERN VIEW v AS " + ceql, "SHOW TABLES", ceql]
    text = ";\n".join(statements) + ";"
    assert [text[span.start : span.end] for span in scripts.split(text)] == statements


def test_parameters() -> None:
    text = SourceText("SELECT * FROM S WHERE A+ :B AS b FILTER A[n > :least AND n < :most] WITHIN 3 EVENTS")
    filled = fill_markers(text, [Span(0, len(text))], {"least": "1", "most": "-2", "B": "7"})
    assert filled.text == "SELECT * FROM S WHERE A+ :B AS b FILTER A[n > 1 AND n < (-2)] WITHIN 3 EVENTS"


WORDS = "A B AS x ; : :+ + ( ) OR NOT ( FILTER A[n > 1] x[n / 2] AND UNLESS ALL S>A [ ] 'x' LIKE WITHIN 3".split()


@given(st.lists(st.sampled_from(WORDS), max_size=10))
def test_any_text_is_read_or_refused_with_its_place(words: list[str]) -> None:
    text = f"SELECT * FROM S WHERE {' '.join(words)} CONSUME BY NONE"
    refused = None
    try:
        meaning(text)
    except CersqlError as error:
        refused = error
    assert refused is None or (refused.line == 1 and refused.text == text)
