"""A text that is read once, and asked for the tokens of its places."""

from __future__ import annotations

from typing import Any

import pytest

import cersql
from cersql.errors import ParseError
from cersql.language import lexer, source
from cersql.language.parse import parse
from cersql.language.source import SourceText
from cersql.statements.ctes import visible
from cersql.statements.find import find
from cersql.statements.kinds import queries_of
from cersql.statements.parameters import check_no_markers, fill
from cersql.statements.pushdown import reading_of
from runtime.errors import Span

QUERY = (
    "FROM t PATTERN SEQ(A a, B+ b) WHERE a.v > 1 AND b.v = a.v AND [k] PARTITION BY k, date(ts) AS day ORDER BY ts "
    "AFTER MATCH SKIP TO FIRST b RETURN a.v + 1 AS more, SUM(b.v)"
)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that are read meanwhile."""
    found: list[str] = []

    def counted(text: str, *places: Any) -> list[lexer.Token]:
        found.append(str(text))
        return lexer.tokens(text, *places)

    monkeypatch.setattr(source, "tokens", counted)
    return found


def test_it_is_the_text() -> None:
    text = SourceText("PATTERN A")
    assert text == "PATTERN A"
    assert text[8:] == "A"
    assert type(text[8:]) is str
    assert SourceText.of(text) is text
    assert SourceText.of("PATTERN A").tokens == text.tokens


def test_the_tokens_of_a_place_are_those_of_the_lexer() -> None:
    text = SourceText("SELECT 'a' /* ( */ , f(x[1], t.1) FROM (PATTERN A -- )\n) AS m;;")
    for first in (token for token in text.tokens if token.text != "."):
        for last in text.tokens[text.tokens.index(first) :]:
            place = first.span | last.span
            assert text.within(place) == lexer.tokens(text, place.start, place.end)
    assert text.within(Span(0, len(text))) == list(text.tokens)
    assert text.within(Span(7, 7)) == []
    assert text.statement == list(text.tokens[:-2])


def test_brackets() -> None:
    text = SourceText("f ( a [ 1 ] ) ) [")
    assert text.closings == {1: 6, 3: 5}
    assert text.depths == (0, 0, 1, 1, 2, 1, 0, -1, -1)
    assert lexer.closing(text.tokens, 1) == 6
    assert lexer.closing(text.tokens, 8) is None


def test_what_is_never_closed() -> None:
    assert not SourceText("a 'b'").is_unclosed
    text = SourceText("a 'b")
    assert text.is_unclosed
    for _ in range(2):
        with pytest.raises(ParseError, match="UNCLOSED"):
            text.within(Span(0, 1))


def test_a_query_is_read_once(reads: list[str]) -> None:
    cersql.compile(QUERY, {"t": "ts TIMESTAMP, k INT, v INT, type STRING"})
    assert reads == [QUERY]


def test_a_statement_is_read_once(reads: list[str]) -> None:
    sql = f"WITH w AS (SELECT 1) SELECT * FROM ({QUERY}) AS m JOIN w WHERE m.k = 1;"
    filled = fill(SourceText(sql), [])
    queries = queries_of(find(filled.text))
    check_no_markers(filled.text, queries)
    for query in queries:
        assert not visible(filled.text, query)
        assert reading_of(filled.text, query) is not None
        assert parse(filled.text, start=query.start, end=query.end).text == sql
    assert reads == [sql]
