"""Which filters on keys are found in the SQL around a pattern view, and which are not."""

from __future__ import annotations

import pytest

from cersql.statements.parameters import marker_values
from cersql.statements.pushdown import Key, conditions, reading_of, readings
from runtime.errors import Span

KEYS = {
    "k": Key("k", "int"),
    "site": Key("place", "string"),
    "day": Key("day", "date"),
    "date": Key("date", "date"),
    "w": Key("w", "double"),
    "x": Key("x", "string"),
}


def moved(sql: str, args: dict[str, str] | list[str] | None = None) -> list[list[str]]:
    """For each place that reads v: the conditions over the sources' columns."""
    values = marker_values(sql, (), args)
    return [[to for _, to in conditions(reading, sql, KEYS, values)] for reading in readings(sql, ["v", "odd v"])]


def only(sql: str, args: dict[str, str] | list[str] | None = None) -> list[str]:
    (found,) = moved(sql, args)
    return found


# ---------------------------------------------------------------- what is moved


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("k = 7", ["`k` = 7"]),
        ("K=7", ["`k`=7"]),
        ("7 < k", ["7 < `k`"]),
        ("k = -7 AND k <> - 7", ["`k` = -7", "`k` <> - 7"]),
        ("v.k = 7", ["`k` = 7"]),
        ("`v`.`site` = 'north'", ["`place` = 'north'"]),
        ("site LIKE 'n%' AND y > 5", ["`place` LIKE 'n%'"]),
        ("y > 5 AND k IN (1, 2, 3)", ["`k` IN (1, 2, 3)"]),
        ("k BETWEEN 1 AND 5 AND y = 1", ["`k` BETWEEN 1 AND 5"]),
        ("y BETWEEN 1 AND 5 AND k = 1", ["`k` = 1"]),
        ("(y BETWEEN 1 AND 5) AND k BETWEEN 1 AND 5", ["`k` BETWEEN 1 AND 5"]),
        ("NOT k BETWEEN 1 AND 5", ["NOT `k` BETWEEN 1 AND 5"]),
        ("k BETWEEN 1 AND 5 AND site BETWEEN 'a' AND 'b'", ["`k` BETWEEN 1 AND 5", "`place` BETWEEN 'a' AND 'b'"]),
        ("(k = 1 OR k = 2) AND y = 3", ["(`k` = 1 OR `k` = 2)"]),
        ("k = 1 OR k = 2", ["`k` = 1 OR `k` = 2"]),
        ("site IS NULL AND NOT (site = 'a')", ["`place` IS NULL", "NOT (`place` = 'a')"]),
        ("site IS NOT NULL", ["`place` IS NOT NULL"]),
        (
            "day = DATE '2024-01-01' AND date >= DATE'2024-01-01'",
            ["`day` = DATE '2024-01-01'", "`date` >= DATE'2024-01-01'"],
        ),
        (
            "day BETWEEN TIMESTAMP '2024-01-01 00:00:00' AND date",
            ["`day` BETWEEN TIMESTAMP '2024-01-01 00:00:00' AND `date`"],
        ),
        ("w = 1.5D AND w <> k", ["`w` = 1.5D", "`w` <> `k`"]),
        ("k /* (the key) */ = -- 8\n 7 AND y = 1", ["`k` /* (the key) */ = -- 8\n 7"]),
        ("k = 1 GROUP BY y HAVING k = 3", ["`k` = 1"]),
        ("k = 1 ORDER BY k LIMIT 3", ["`k` = 1"]),
        ("k = 1 |> WHERE k = 2", ["`k` = 1"]),
        ("sort = 1 AND k = 1", ["`k` = 1"]),
    ],
)
def test_a_term_that_says_something_about_keys(where: str, expected: list[str]) -> None:
    assert only(f"SELECT * FROM v WHERE {where}") == expected


@pytest.mark.parametrize(
    "where",
    [
        "k = 1 OR y = 2",
        "k = 1 AND y = 2 OR site = 'a'",
        "NOT (k = 1 AND y = 2)",
        "CASE WHEN k = 1 THEN k = 2 END",
        "k + 1 = 2",
        "k - 1 = 2",
        "-k = 2",
        "k % 2 = 0",
        "abs(k) = 2",
        "k(1) = 2",
        "site || 'x' = 'ax'",
        "lower(site) = 'a'",
        "site = y",
        "k = y",
        "k = '7'",
        "k IN ('1', 'a')",
        "k LIKE '7%'",
        "site = 7",
        "site = k",
        "site IN (1, 'a')",
        "day = '2024-01-01'",
        "day = site",
        "DATE(site) = day",
        "date(site) = date(site)",
        "k = date '2024-01-01'",
        "site = X'1F'",
        "x = X'1F'",
        'site = "north"',
        "site LIKE 'a\\\\'",
        "site RLIKE '('",
        "site COLLATE UTF8_LCASE = 'a'",
        "k = (SELECT 1)",
        "k IN (SELECT y FROM t)",
        "EXISTS (SELECT 1 FROM t WHERE t.k = 1)",
        "rand() < k",
        "t.k = 1",
        "v.k.y = 1",
        "k[0] = 1",
        "k:field = 1",
        "k::string = '1'",
        "k <=> 1",
        "k = :p",
        "k = ?",
        "1 = 1",
        "TRUE",
        "k = sort",
        "k = 1 OR sort = 2",
        "k = 1 OR v.limit = 2",
        "NOT offset = k",
    ],
)
def test_what_stays(where: str) -> None:
    assert only(f"SELECT * FROM v WHERE {where}") == []


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT * FROM v AS a WHERE a.k = 1 AND v.k = 2", [["`k` = 1"]]),
        ("SELECT * FROM v a WHERE k = 1", [["`k` = 1"]]),
        ("SELECT * FROM `V` WHERE k = 1", [["`k` = 1"]]),
        ("SELECT * FROM `odd v` WHERE `odd v`.k = 1", [["`k` = 1"]]),
        ("WITH m AS (SELECT * FROM v WHERE k = 1) SELECT * FROM m WHERE k = 2", [["`k` = 1"]]),
        ("SELECT * FROM (SELECT * FROM v WHERE k = 1) WHERE k = 2", [["`k` = 1"]]),
        ("SELECT * FROM (SELECT * FROM v) WHERE k = 2", [[]]),
        ("SELECT * FROM (SELECT * FROM v LIMIT 5) WHERE k = 2", [[]]),
        (
            "SELECT * FROM v WHERE k = 1 UNION SELECT * FROM v WHERE k = 2 UNION ALL SELECT * FROM v",
            [["`k` = 1"], ["`k` = 2"], []],
        ),
        ("SELECT * FROM t WHERE y IN (SELECT y FROM v WHERE k = 1) AND k = 2", [["`k` = 1"]]),
        ("SELECT * FROM v WHERE y IN (SELECT y FROM t WHERE k = 1)", [[]]),
        ("SELECT * FROM v WHERE k = 1 AND y IN (SELECT y FROM v WHERE k = 2)", [["`k` = 1"], ["`k` = 2"]]),
        ("SELECT (SELECT max(y) FROM v WHERE k = 1) FROM t WHERE k = 2", [["`k` = 1"]]),
        ("INSERT INTO t SELECT * FROM v WHERE k = 1", [["`k` = 1"]]),
        # joins: only comparisons of qualified columns
        ("SELECT * FROM v JOIN t ON v.y = t.y WHERE v.k = 1 AND k = 2 AND t.k = 3", [["`k` = 1"]]),
        ("SELECT * FROM t JOIN v USING (y) WHERE v.k IN (1, 2)", [["`k` IN (1, 2)"]]),
        ("SELECT * FROM t, v AS m, u WHERE m.k = 1", [["`k` = 1"]]),
        ("SELECT * FROM t LEFT JOIN v ON t.k = v.k WHERE v.k = 1", [["`k` = 1"]]),
        ("SELECT * FROM t LEFT JOIN v ON t.k = v.k WHERE v.k IS NULL", [[]]),
        ("SELECT * FROM t LEFT JOIN v ON t.k = v.k WHERE v.k = 1 OR v.k = 2", [[]]),
        ("SELECT * FROM t LEFT JOIN v ON t.k = v.k WHERE NOT v.k = 1", [[]]),
        ("SELECT * FROM t LEFT JOIN v ON t.k = v.k AND v.k = 5 WHERE t.y = 1", [[]]),
        ("SELECT * FROM v a JOIN v b ON a.k = b.k WHERE a.k = 1 AND b.k < 5", [["`k` = 1"], ["`k` < 5"]]),
        ("SELECT * FROM v NATURAL JOIN t WHERE k = 1", [[]]),
        ("SELECT * FROM v SEMI JOIN t ON v.k = t.sort WHERE v.k = 1", [["`k` = 1"]]),
        ("SELECT * FROM t LEFT ANTI JOIN v ON t.k = v.k WHERE v.k = 1", [[]]),
        ("SELECT * FROM v, LATERAL (SELECT v.k + 1 AS z) WHERE v.k = 1", [[]]),
        # what stands between the view and the WHERE
        ("SELECT * FROM v TABLESAMPLE (5 ROWS) WHERE k = 1", [[]]),
        ("SELECT * FROM v AS a TABLESAMPLE (5 ROWS) WHERE k = 1", [[]]),
        ("SELECT * FROM v PIVOT (sum(y) FOR k IN (1, 2)) WHERE site = 'a'", [[]]),
        ("SELECT * FROM v JOIN t PIVOT (sum(y) FOR q IN (1, 2)) WHERE v.k = 1", [[]]),
        ("SELECT * FROM v LATERAL VIEW explode(array(1)) e AS k WHERE k = 1", [[]]),
        ("SELECT * FROM v AS m (site, k) WHERE k = 1", [[]]),
        ("FROM v SELECT * WHERE k = 1", [[]]),
        ("FROM v a, t INSERT INTO p SELECT * WHERE a.k = 1 AND y = 2 INSERT INTO q SELECT *", [[]]),
        ("FROM v |> WHERE k = 1", [[]]),
        # what is no reading
        ("WITH v AS (SELECT 1 AS k) SELECT * FROM v WHERE k = 1", []),
        ("WITH v(k) AS (SELECT 1) SELECT * FROM v WHERE k = 1", []),
        ("WITH t AS (SELECT 1), v (k, y) AS (SELECT 1, 2) SELECT * FROM v WHERE k = 1", []),
        ("WITH RECURSIVE v(k) MAX RECURSION LEVEL 9 AS (SELECT 1) SELECT * FROM v WHERE k = 1", []),
        ("SELECT * FROM (WITH v AS (SELECT 1 AS k) SELECT * FROM v WHERE k = 1)", []),
        ("SELECT * FROM db.v WHERE k = 1", []),
        ("SELECT * FROM v.t WHERE k = 1", []),
        ("SELECT * FROM v(1) WHERE k = 1", []),
        ("SELECT a, v FROM t WHERE k = 1", []),
        ("SELECT a IS DISTINCT FROM v, b FROM t WHERE v.k = 1", []),
        ("SELECT * FROM t GROUP BY k, v", []),
        ("SELECT * FROM t WHERE v = 'FROM v WHERE k = 1' -- FROM v WHERE k = 1", []),
        ("INSERT INTO v SELECT * FROM t WHERE k = 1", []),
    ],
)
def test_where_a_view_is_read(sql: str, expected: list[list[str]]) -> None:
    assert moved(sql) == expected


def test_values_of_parameters() -> None:
    assert only("SELECT * FROM v WHERE k = :p AND site = :q", {"p": "7", "q": "'a'"}) == ["`k` = 7", "`place` = 'a'"]
    assert only("SELECT ? & y FROM v WHERE k BETWEEN ? AND ?", ["5", "-1", "1"]) == ["`k` BETWEEN (-1) AND 1"]
    assert only("SELECT * FROM v WHERE day = :p", {"p": "DATE '2024-01-01'"}) == ["`day` = DATE '2024-01-01'"]
    assert only("SELECT * FROM v WHERE k = :p AND site = :q", {"p": "'7'", "q": "CAST(1 AS STRING)"}) == []
    assert only("SELECT * FROM v JOIN t WHERE v.k = :p", {"p": "NULL"}) == []


def test_global_views() -> None:
    sql = "SELECT * FROM global_temp.v WHERE v.k = 1 AND site = 'a'"
    (reading,) = readings(sql, ["v"])
    assert (reading.is_global, reading.view) == (True, "v")
    assert sql[reading.name.start : reading.name.end] == "global_temp.v"
    assert [to for _, to in conditions(reading, sql, KEYS, {})] == ["`k` = 1", "`place` = 'a'"]
    (reading,) = readings("SELECT global_temp.v.y FROM global_temp.v WHERE k = 1", ["v"])
    assert reading.obstacle is not None
    assert only("SELECT m.y FROM global_temp.v m WHERE k = 1") == ["`k` = 1"]


def test_the_obstacle_is_said() -> None:
    (reading,) = readings("SELECT * FROM v TABLESAMPLE (5 ROWS) WHERE k = 1", ["v"])
    assert reading.obstacle == "TABLESAMPLE stands between the view and the filter"


def test_a_query_in_parentheses_is_read_like_a_view() -> None:
    def of(sql: str) -> list[str] | None:
        query = Span(sql.index("PATTERN"), sql.index("*)") + 1)
        reading = reading_of(sql, query)
        return None if reading is None else [to for _, to in conditions(reading, sql, KEYS, {})]

    q = "PATTERN A RETURN *"
    assert of(f"SELECT * FROM ({q}) WHERE k = 1") == ["`k` = 1"]
    assert of(f"SELECT * FROM ({q}) AS m WHERE m.k = 1 AND y = 2") == ["`k` = 1"]
    assert of(f"SELECT * FROM t JOIN ({q}) AS m ON t.y = m.y WHERE m.k = 1") == ["`k` = 1"]
    assert of(f"SELECT * FROM ({q}) TABLESAMPLE (1 ROWS) WHERE k = 1") == []
    assert of(f"SELECT * FROM f(TABLE({q})) WHERE k = 1") is None
    assert of(f"WITH m AS ({q}) SELECT * FROM m WHERE k = 1") is None
    assert of(f"SELECT * FROM t WHERE y IN ({q}) AND k = 1") is None
