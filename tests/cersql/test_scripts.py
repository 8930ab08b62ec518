"""Where the statements of a text end."""

from __future__ import annotations

import pytest

from cersql.language.scripts import split


def statements(text: str) -> list[str]:
    return [text[span.start : span.end] for span in split(text)]


@pytest.mark.parametrize(
    "parts",
    [
        [],
        ["SELECT 1"],
        ["SELECT 1", "SELECT ';' AS x"],
        ["FROM t PATTERN A ; B RETURN *", "SELECT 1"],
        ["RETURN * FROM t PATTERN A ; B", "SELECT 1"],
        ["RETURN * FROM t PATTERN A ; SHOW s ; DROP ; CREATE", "SHOW PATTERNS", "DROP PATTERN VIEW v"],
        ["CREATE OR REPLACE TEMPORARY PATTERN VIEW v AS FROM t PATTERN A ; B WITHIN 5 RETURN *", "FROM t SELECT 1"],
        ["CREATE PATTERN FUNCTION f(n INT) AS PATTERN A ; B WHERE a.x > n RETURN *", "DESCRIBE PATTERN f"],
        ["DESC PATTERN v", "DROP PATTERN FUNCTION f", "SELECT pattern FROM t"],
        ["SELECT * FROM (PATTERN A ; B RETURN *) m", "WITH x AS (SELECT 1) SELECT * FROM x"],
        ["PATTERN (A ; B) ; C RETURN *", "PATTERN A ; B RETURN *"],
        ["BEGIN DECLARE x INT; IF x = 1 THEN SELECT 1; END IF; SELECT CASE WHEN 1 = 1 THEN 2 END; END", "SELECT 2"],
        ["BEGIN WHILE x < 3 DO SET x = x + 1; END WHILE; END", "SELECT if(true, 1, 2)", "SELECT 3"],
        ["SELECT CASE x WHEN 1 THEN 2 END FROM t", "SELECT 2"],
    ],
)
def test_statements_end_where_no_pattern_goes_on(parts: list[str]) -> None:
    assert statements(";\n".join(parts)) == parts
    assert statements(" ;\n\n".join(parts) + ";;\n-- the end; really\n") == parts


def test_comments_and_strings_hide_semicolons() -> None:
    assert statements("-- a; b\nSELECT 1 /* ; */ ; SELECT `;`") == ["SELECT 1", "SELECT `;`"]
