"""Wrong texts: each error's condition, its place, and what it says.

The place is marked in the text by ‸, before the character that the caret must be under.
"""

from __future__ import annotations

import pytest

from cersql.errors import ParseError
from cersql.language.parse import parse


def error_of(text: str) -> ParseError:
    with pytest.raises(ParseError) as raised:
        parse(text)
    return raised.value


def check(marked: str, condition: str, *fragments: str) -> None:
    place = marked.index("‸")
    text = marked.replace("‸", "")
    error = error_of(text)
    before = text[:place]
    assert (error.condition, error.line, error.column) == (
        condition,
        before.count("\n") + 1,
        place - (before.rfind("\n") + 1) + 1,
    ), str(error)
    for fragment in fragments:
        assert fragment in str(error)


CLAUSES = [
    # missing
    ("PATTERN A‸", "MISSING_CLAUSE", "no RETURN clause", "beeline", "->"),
    ("FROM t PATTERN A‸;", "MISSING_CLAUSE", "RETURN", "cut"),
    ("PATTERN A WHERE A.x > 1‸", "MISSING_CLAUSE", "RETURN *"),
    ("FROM t RETURN *‸", "MISSING_CLAUSE", "no PATTERN clause", "PATTERN SEQ(A a, B b)"),
    ("‸", "MISSING_CLAUSE", "PATTERN"),
    ("PATTERN A WHERE A.x > 1‸  \n-- end\n", "MISSING_CLAUSE", "RETURN"),
    # twice
    ("PATTERN A WHERE A.x > 1 ‸WHERE A.y > 2 RETURN *", "DUPLICATE_CLAUSE", "second WHERE", "AND"),
    ("PATTERN A ORDER BY x RETURN *\n  ‸ORDER BY ts LIMIT 1", "DUPLICATE_CLAUSE", "ORDER BY"),
    ("PATTERN A ‸PATTERN B RETURN *", "DUPLICATE_CLAUSE", "second PATTERN"),
    # empty
    ("PATTERN A ‸WHERE RETURN *", "EMPTY_CLAUSE", "WHERE is empty", "a condition"),
    ("PATTERN A ‸RETURN", "EMPTY_CLAUSE", "RETURN is empty"),
    ("‸FROM PATTERN A RETURN *", "EMPTY_CLAUSE", "a table"),
    ("PATTERN A ‸PARTITION BY ORDER BY ts RETURN *", "EMPTY_CLAUSE", "PARTITION BY", "a column"),
    ("PATTERN A ‸WITHIN RETURN *", "EMPTY_CLAUSE", "10 MINUTES"),
    ("‸PATTERN RETURN *", "EMPTY_PATTERN", "The pattern is empty", "SEQ(A a, B b)"),
    ("PATTERN (‸) RETURN *", "EMPTY_PATTERN", "an event type, SEQ(…), (…) or !"),
    ("PATTERN SEQ(‸) RETURN *", "EMPTY_PATTERN"),
    # misspelt
    ("PATTERN A ‸WHER A.x > 1 RETURN *", "MISSPELT_CLAUSE", "WHER is no clause", "Did you mean WHERE?"),
    ("‸PATERN A RETURN *", "MISSPELT_CLAUSE", "Did you mean PATTERN?"),
    ("FROM t ‸PATERN A RETURN *", "MISSPELT_CLAUSE", "Did you mean PATTERN?"),
    ("PATTERN A ‸RETRUN *", "MISSPELT_CLAUSE", "Did you mean RETURN?"),
    ("PATTERN A ‸RETRUN a.x", "MISSPELT_CLAUSE", "Did you mean RETURN?"),
    ("PATTERN A a ‸RETUR a.x", "MISSPELT_CLAUSE", "Did you mean RETURN?"),
    ("PATTERN A WHERE A.x > 1 ‸RETRUN A.y", "MISSPELT_CLAUSE", "Did you mean RETURN?"),
    ("PATTERN A WHERE A.x > 1 ‸PARTITON BY k RETURN *", "MISSPELT_CLAUSE", "Did you mean PARTITION BY?"),
    ("PATTERN A ‸ORDR BY ts RETURN *", "MISSPELT_CLAUSE", "Did you mean ORDER BY?"),
    ("PATTERN A WITHIN 10 MINUTES ‸RETRUN *", "MISSPELT_CLAUSE", "RETURN"),
    ("PATTERN A ‸WITIN 10 MINUTES RETURN *", "MISSPELT_CLAUSE", "WITHIN"),
    ("RETURN * ‸PATERN A", "MISSPELT_CLAUSE", "PATTERN"),
    ("RETURN A.x ‸FORM t PATTERN A", "MISSPELT_CLAUSE", "FROM"),
    ("PATTERN A RETURN A.x ‸LIMT 3", "MISSPELT_CLAUSE", "LIMIT"),
    ("PATTERN A a FILTER a.x > 1 ‸WHER a.y RETURN *", "MISSPELT_CLAUSE", "WHERE"),
    ("DEFINE A AS x > 1 ‸PATTRN A RETURN *", "MISSPELT_CLAUSE", "PATTERN"),
    # other words
    ("‸SELECT a.x FROM t PATTERN A a", "UNKNOWN_CLAUSE", "SELECT", "Write RETURN"),
    ("FROM t PATTERN A ‸MEASURES A.x AS y RETURN *", "UNKNOWN_CLAUSE", "MEASURES", "Write RETURN"),
    ("PATTERN A ‸ONE ROW PER MATCH RETURN *", "UNKNOWN_CLAUSE", "leave it out"),
    ("PATTERN A WITHIN 10 MINUTES ‸SELECT A.x", "UNKNOWN_CLAUSE", "Write RETURN"),
    ("PATTERN A WHERE A.x > 1 ‸SELECT A.x", "UNKNOWN_CLAUSE", "Write RETURN"),
    ("PATTERN A ; B WITHIN 10 MINUTES ; ‸C RETURN *", "TRAILING_TEXT", "(A ; B WITHIN 10 MINUTES) ; C"),
    ('PATTERN ‸"A" RETURN *', "UNEXPECTED_TOKEN", "`A`"),
    ("‸A ; B RETURN *", "UNEXPECTED_TOKEN", "Found A, expected a clause", "FROM t PATTERN"),
    ("PATTERN A RETURN * ; ‸PATTERN B RETURN *", "TRAILING_TEXT", "PATTERN follows the ';'"),
    ("PATTERN A RETURN A.x AS ‸limit", "RESERVED_NAME", "`limit`"),
    ("PATTERN ‸Limit ; B RETURN *", "RESERVED_NAME", "`Limit`"),
    ("PATTERN A RETURN A.x, ‸limit", "RESERVED_NAME", "`limit`"),
    ("PATTERN A RETURN A.x = ‸within.y", "RESERVED_NAME", "`within`"),
]

PATTERNS = [
    ("PATTERN ‸(A ; B RETURN *", "UNCLOSED", "( is never closed"),
    ("PATTERN ‸(A", "UNCLOSED", "beeline"),
    ("PATTERN A‸) RETURN *", "UNOPENED", ") closes nothing"),
    ("FROM t PATTERN ‸; A RETURN *", "UNEXPECTED_TOKEN", "Found ';', expected an event type"),
    ("PATTERN (A WITHIN 5 MINUTES ‸; B) RETURN *", "BAD_WINDOW", "WITHIN stands last in its parentheses"),
    ("PATTERN A ; !(B)‸) ; C RETURN *", "UNOPENED"),
    ("PATTERN (A ; B‸{2)} ; C RETURN *", "UNCLOSED", "{ is never closed"),
    ("PATTERN SEQ(A, B‸] RETURN *", "UNOPENED"),
    ("PATTERN A WHERE f(A.x‸[1) > 2 RETURN *", "UNCLOSED", "[ is never closed"),
    ("PATTERN A WHERE A.x = ‸'abc RETURN *", "UNCLOSED", "' is never closed"),
    ("PATTERN A WHERE A.x = 1 ‸/* RETURN *", "UNCLOSED", "/* is never closed"),
    ("PATTERN A WHERE A.‸`x = 1 RETURN *", "UNCLOSED", "` is never closed"),
    ("PATTERN A -> ‸RETURN *", "UNEXPECTED_TOKEN", "Found RETURN, expected an event type, SEQ(…), (…) or !."),
    ("RETURN * PATTERN A ->‸", "UNEXPECTED_TOKEN", "Found the end of the text"),
    ("PATTERN SEQ(A, ‸) RETURN *", "UNEXPECTED_TOKEN", "Nothing follows ','"),
    ("PATTERN A‸, B RETURN *", "UNEXPECTED_TOKEN", "SEQ(A, B)"),
    ("PATTERN A ; ‸; B RETURN *", "UNEXPECTED_TOKEN", "Found ';', expected an event type"),
    ("PATTERN ‸* RETURN *", "UNEXPECTED_TOKEN", "Found '*'"),
    ("PATTERN A ‸'x' RETURN *", "UNEXPECTED_TOKEN", "Found 'x'"),
    ("PATTERN A ; ‸5 RETURN *", "UNEXPECTED_TOKEN", "Found 5"),
    ("PATTERN A ‸NOT B RETURN *", "UNEXPECTED_TOKEN", "A ; NOT B ; C"),
    ("PATTERN A ; ‸OR B RETURN *", "UNEXPECTED_TOKEN", "Found OR", "`OR`"),
    ("PATTERN A AS ‸5 RETURN *", "UNEXPECTED_TOKEN", "a variable name after AS"),
    ("PATTERN A FILTER ‸RETURN *", "UNEXPECTED_TOKEN", "a condition after FILTER"),
    ("PATTERN (A FILTER‸) RETURN *", "UNEXPECTED_TOKEN", "a condition after FILTER"),
    ("PATTERN PROJECT(x, A‸) RETURN *", "UNEXPECTED_TOKEN", "PROJECT(x, y : pattern)"),
    ("PATTERN AGG(y : n = SUM(x.a), A‸) RETURN *", "UNEXPECTED_TOKEN", "AGG(y : n = COUNT(x) ; pattern)"),
    ("PATTERN A PART BY ‸x RETURN *", "UNEXPECTED_TOKEN", "PART BY (x.a, y.b)"),
    ("PATTERN A‸(x > 1) -> B RETURN *", "UNEXPECTED_TOKEN", "A FILTER condition"),
    ("PATTERN ‸SQE(A, B) RETURN *", "UNKNOWN_OPERATOR", "Did you mean SEQ(…)?"),
    ("PATTERN ‸PROJEKT(x : B) RETURN *", "UNKNOWN_OPERATOR", "Did you mean PROJECT(…)?"),
    ("PATTERN A ‸UNLES B RETURN *", "UNKNOWN_OPERATOR", "Did you mean UNLESS?"),
    ("PATTERN A a ‸FILTR a.x > 1 RETURN *", "UNKNOWN_OPERATOR", "Did you mean FILTER?"),
    # names
    ("PATTERN SEQ(A ‸limit, B) RETURN *", "RESERVED_NAME", "`limit`"),
    ("PATTERN SEQ(‸From, B) RETURN *", "RESERVED_NAME", "`From`"),
    ("PATTERN A AS ‸filter RETURN *", "RESERVED_NAME", "`filter`"),
    ("PATTERN SEQ(A, ‸Part) RETURN *", "RESERVED_NAME", "`Part`"),
    ("PATTERN (A ‸WHERE A.x > 1) RETURN *", "RESERVED_NAME", "FILTER condition"),
    # commas
    ("PATTERN SEQ(A a ‸AND B b, C c) RETURN *", "COMMA_EXPECTED", "SEQ(A a, B b, C c)", "ALL"),
    ("PATTERN SEQ(A a, B b ‸AND C c) RETURN *", "COMMA_EXPECTED", "the parts of SEQ"),
    ("PATTERN A PART BY (x.a ‸AND y.b) RETURN *", "COMMA_EXPECTED", "PART BY (x.a, y.b)"),
    ("PATTERN A PARTITION BY a ‸AND b RETURN *", "COMMA_EXPECTED", "PARTITION BY a, b"),
    ("PATTERN A ORDER BY a ‸OR b RETURN *", "COMMA_EXPECTED", "ORDER BY a, b"),
    ("FROM a ‸AND b PATTERN A RETURN *", "COMMA_EXPECTED", "FROM a, b"),
    ("DEFINE A AS x > 1 ‸AND B AS y > 1 PATTERN A RETURN *", "COMMA_EXPECTED", "B AS"),
    # loops and numbers
    ("PATTERN ITER(A, ‸0) RETURN *", "BAD_NUMBER", "at least 1", "!p"),
    ("PATTERN ITER(A, ‸x) RETURN *", "UNEXPECTED_TOKEN", "a number of rounds", "ITER(p, 2)"),
    ("PATTERN ITER(A‸) RETURN *", "UNEXPECTED_TOKEN", "a comma"),
    ("PATTERN SEQ(A, ‸2) RETURN *", "UNEXPECTED_TOKEN", "an event type"),
    ("PATTERN A+‸? RETURN *", "RELUCTANT_LOOP", "+? would be a reluctant loop", "(b+)?"),
    ("PATTERN A*‸? RETURN *", "RELUCTANT_LOOP"),
    ("PATTERN A?‸? RETURN *", "RELUCTANT_LOOP"),
    ("PATTERN A{2}‸? RETURN *", "RELUCTANT_LOOP"),
    ("PATTERN A:+‸? RETURN *", "RELUCTANT_LOOP", ":+?"),
    ("PATTERN x{3,‸2} RETURN *", "BAD_NUMBER", "Found 2, expected at least 3", "{2,3}"),
    ("PATTERN x{‸0} RETURN *", "BAD_NUMBER", "Found 0, expected at least 1"),
    ("PATTERN x{0,‸0} RETURN *", "BAD_NUMBER", "at least 1"),
    ("PATTERN x{‸,3} RETURN *", "BAD_NUMBER", "{0,3}"),
    ("PATTERN x{‸} RETURN *", "BAD_NUMBER", "{2}"),
    ("PATTERN x{‸n} RETURN *", "BAD_NUMBER", "Found n, expected a whole number"),
    ("PATTERN x{‸1.5} RETURN *", "BAD_NUMBER", "1.5"),
    ("PATTERN x{‸99999999999} RETURN *", "BAD_NUMBER", "at most"),
    ("PATTERN x{2 ‸3} RETURN *", "UNEXPECTED_TOKEN", "{2,4}"),
    # other languages
    ("PATTERN A ‸| B RETURN *", "FOREIGN_SYNTAX", "'|'", "A OR B"),
    ("PATTERN A ‸|| B RETURN *", "FOREIGN_SYNTAX", "A OR B"),
    ("PATTERN ‸^ A RETURN *", "FOREIGN_SYNTAX", "START(p)"),
    ("PATTERN A ‸$ RETURN *", "FOREIGN_SYNTAX", "'$'"),
    ("PATTERN A B ‸C RETURN *", "FOREIGN_SYNTAX", "A : B : C", "SEQ(A, B, C)"),
    ("PATTERN A B+ ‸C RETURN *", "FOREIGN_SYNTAX", "A : B : C"),
    ("PATTERN (A ; B) ‸x RETURN *", "FOREIGN_SYNTAX", "(p) AS x"),
    ("PATTERN ‸{- A -} RETURN *", "FOREIGN_SYNTAX", "'{-'", "PROJECT"),
    ("PATTERN A ‸{- B -} RETURN *", "FOREIGN_SYNTAX", "'{-'"),
    ("PATTERN ‸PERMUTE(A, B) RETURN *", "FOREIGN_SYNTAX", "ALL(A a, B b)"),
    ("PATTERN a ‸= A RETURN *", "FOREIGN_SYNTAX", "A a"),
    ("PATTERN A ‸=> B RETURN *", "FOREIGN_SYNTAX", "A -> B"),
    ("PATTERN db‸.A RETURN *", "FOREIGN_SYNTAX", "FROM db.t AS T"),
    ("PATTERN A a‸[x > 1] -> B RETURN *", "FOREIGN_SYNTAX", "a FILTER condition"),
    ("PATTERN ‸[every A] RETURN *", "FOREIGN_SYNTAX", "SELECT … FROM PATTERN"),
    (
        "SELECT * FROM t ‸MATCH_RECOGNIZE (ORDER BY ts MEASURES A.x AS x PATTERN (A B+) DEFINE B AS B.x > 1)",
        "MATCH_RECOGNIZE_TEXT",
        "PATTERN A : B:+ : C",
        "RETURN",
    ),
]

OTHERS = [
    ("PATTERN A WITHIN ‸MINUTES RETURN *", "BAD_WINDOW", "Found MINUTES in WITHIN", "10 MINUTES"),
    ("PATTERN A WITHIN 10 ‸MIN RETURN *", "BAD_WINDOW", "Did you mean 10 MINUTES?"),
    ("PATTERN A WITHIN 10 ‸MINTUES RETURN *", "BAD_WINDOW", "Did you mean 10 MINUTES?"),
    ("PATTERN A WITHIN 10 ‸ROWS RETURN *", "BAD_WINDOW", "Did you mean 10 EVENTS?"),
    ("PATTERN A WITHIN ‸5s RETURN *", "BAD_WINDOW", "Write 5 SECONDS"),
    ("PATTERN A WITHIN ‸1.5 EVENTS RETURN *", "BAD_WINDOW", "a whole number of events"),
    ("PATTERN A WITHIN ‸- 5 RETURN *", "BAD_WINDOW", "greater than zero"),
    ("PATTERN A WITHIN ‸<= 5 RETURN *", "BAD_WINDOW", "includes"),
    ("PATTERN A WITHIN ‸'10 minutes' RETURN *", "BAD_WINDOW", "without quotes: 10 minutes"),
    ("PATTERN A WITHIN ‸'00:10' RETURN *", "BAD_WINDOW", "INTERVAL '00:10' MINUTE"),
    ("PATTERN A WITHIN ‸10m RETURN *", "BAD_WINDOW", "Did you mean 10 MINUTES?"),
    ("PATTERN A WITHIN ‸5minuts RETURN *", "BAD_WINDOW", "Did you mean 5 MINUTES?"),
    ("PATTERN A WITHIN INTERVAL '10' ‸RETURN *", "BAD_WINDOW", "INTERVAL '10' MINUTES"),
    ("PATTERN A WITHIN INTERVAL 10 ‸RETURN *", "BAD_WINDOW", "a unit"),
    ("PATTERN A WITHIN 1 HOUR 30 ‸RETURN *", "BAD_WINDOW", "a unit"),
    ("PATTERN A WITHIN 10 MINUTES ‸x RETURN *", "BAD_WINDOW", "nothing more"),
    ("PATTERN (A ; B WITHIN‸) RETURN *", "UNEXPECTED_TOKEN", "after WITHIN"),
    ("PATTERN (A ; B WITHIN 5 ‸FOO) RETURN *", "BAD_WINDOW", "FOO"),
    ("PATTERN A WATERMARK ‸10 RETURN *", "BAD_WINDOW", "WATERMARK 10 MINUTES"),
    ("PATTERN A RETURN * LIMIT ‸-1", "BAD_NUMBER", "Found -1, expected a whole number"),
    ("PATTERN A RETURN * LIMIT ‸abc", "BAD_NUMBER", "Found abc, expected a whole number"),
    ("PATTERN A RETURN * LIMIT ‸1.5", "BAD_NUMBER", "1.5"),
    ("PATTERN A RETURN * LIMIT 5 ‸10", "UNEXPECTED_TOKEN", "Found 10"),
    ("PATTERN A ORDER BY ts ‸tss RETURN *", "UNEXPECTED_TOKEN", "takes columns and expressions"),
    ("PATTERN A PARTITION BY (a‸, b) RETURN *", "UNEXPECTED_TOKEN", "a, b without parentheses"),
    ("PATTERN A PARTITION BY ‸[a] RETURN *", "UNEXPECTED_TOKEN", "Without brackets: PARTITION BY a"),
    ("PATTERN A ORDER BY ts, ‸1 RETURN *", "UNEXPECTED_TOKEN", "takes columns and expressions"),
    ("PATTERN A PARTITION BY hour(ts) AS ‸1 RETURN *", "UNEXPECTED_TOKEN", "a name after AS"),
    ("PATTERN A PARTITION BY hour(ts) AS h ‸i RETURN *", "UNEXPECTED_TOKEN", "a comma"),
    ("PATTERN A PARTITION BY hour(ts) ‸ORDRE BY ts RETURN *", "MISSPELT_CLAUSE", "ORDER BY"),
    ("WHERE a > 1 WHERE b > 1 PATTERN A RETURN *".replace(" WHERE b", " ‸WHERE b"), "DUPLICATE_CLAUSE", "with AND"),
    ("WHERE a > 1 PATTERN A WHERE b > 1 ‸WHERE c > 1 RETURN *", "DUPLICATE_CLAUSE", "with AND"),
    ("PATTERN A ORDER BY ts NULLS ‸RETURN *", "UNEXPECTED_TOKEN", "FIRST or LAST after NULLS"),
    ("FROM a ‸UNION b PATTERN A RETURN *", "UNEXPECTED_TOKEN", "FROM (SELECT … FROM …) AS s"),
    ("FROM a JOIN ‸PATTERN A RETURN *", "UNEXPECTED_TOKEN", "a table to join"),
    ("FROM a JOIN b ‸PATTERN A RETURN *", "UNEXPECTED_TOKEN", "USING (column) or ON condition", "s JOIN t USING (k)"),
    ("FROM a JOIN b ‸JOIN c USING (k) PATTERN A RETURN *", "UNEXPECTED_TOKEN", "USING (column) or ON condition"),
    ("FROM ‸JOIN b USING (k) PATTERN A RETURN *", "UNEXPECTED_TOKEN", "a table, a view"),
    ("FROM a AS x TYPE kind ‸JOIN b USING (k) PATTERN A RETURN *", "UNEXPECTED_TOKEN", "behind the whole join"),
    ("FROM a JOIN b ON a.x = b.x ‸WITIN 5 PATTERN A RETURN *", "MISSPELT_CLAUSE", "WITHIN"),
    ("FROM (SELECT 1) ‸PATTERN A RETURN *", "UNEXPECTED_TOKEN", "an alias for the query"),
    ("FROM (‸) AS q PATTERN A RETURN *", "UNEXPECTED_TOKEN", "a query in the parentheses"),
    ("FROM a, ‸PATTERN A RETURN *", "UNEXPECTED_TOKEN", "a comma too many"),
    ("FROM a AS ‸'x' PATTERN A RETURN *", "UNEXPECTED_TOKEN", "an alias after AS"),
    ("FROM ‸'t' PATTERN A RETURN *", "UNEXPECTED_TOKEN", "a table"),
    ("FROM a.‸5 x PATTERN A RETURN *", "UNEXPECTED_TOKEN", "a name after the dot"),
    ("FROM t TYPE k‸.x PATTERN A RETURN *", "UNEXPECTED_TOKEN", "one name"),
    ("DEFINE A ‸x > 1 PATTERN A RETURN *", "UNEXPECTED_TOKEN", "A AS condition"),
    ("DEFINE A AS ‸PATTERN A RETURN *", "UNEXPECTED_TOKEN", "a condition on the row"),
    ("DEFINE A AS x > 1 B ‸AS y > 1 PATTERN A RETURN *", "UNEXPECTED_TOKEN", "a comma"),
    ("PATTERN A RETURN A.x,‸", "UNEXPECTED_TOKEN", "a comma too many"),
    ("PATTERN A RETURN A.x, ‸, A.y", "UNEXPECTED_TOKEN", "* or an expression"),
    ("PATTERN A RETURN A.x AS ‸'x'", "UNEXPECTED_TOKEN", "`x`"),
    ("PATTERN A RETURN ‸AS x", "UNEXPECTED_TOKEN", "an expression before AS"),
    ("PATTERN A RETURN A.x AS x ‸y", "UNEXPECTED_TOKEN", "a comma or the next clause"),
    ("PATTERN A RETURN ‸DISTINCT A.x", "UNEXPECTED_TOKEN", "SELECT DISTINCT"),
    ("PATTERN A RETURN ‸WITH TIMEOUTS", "UNEXPECTED_TOKEN", "* or an expression"),
    ("PATTERN A RETURN A.x ‸WITH TIMEOUTS, A.y", "UNEXPECTED_TOKEN", "after the last item"),
    ("PATTERN A RETURN * ‸WITH TIMEOUT", "UNEXPECTED_TOKEN", "WITH TIMEOUTS"),
    ("PATTERN A RETURN A.x ‸ORDER ts", "MISSPELT_CLAUSE", "Did you mean ORDER BY?"),
    ("PATTERN A ‸PARTITION k RETURN *", "MISSPELT_CLAUSE", "Did you mean PARTITION BY?"),
    ("WITH x ‸FROM x PATTERN A RETURN *", "UNEXPECTED_TOKEN", "AS (query)"),
    ("WITH x AS (SELECT 1) ‸FORM x PATTERN A RETURN *", "MISSPELT_CLAUSE", "FROM"),
]


@pytest.mark.parametrize("case", CLAUSES, ids=lambda case: case[0])
def test_clauses(case: tuple[str, ...]) -> None:
    check(*case)


@pytest.mark.parametrize("case", PATTERNS, ids=lambda case: case[0])
def test_patterns(case: tuple[str, ...]) -> None:
    check(*case)


@pytest.mark.parametrize("case", OTHERS, ids=lambda case: case[0])
def test_bodies(case: tuple[str, ...]) -> None:
    check(*case)


def test_the_whole_message() -> None:
    error = error_of("FROM t\nPATTERN A a\nWHER a.x > 1\nRETURN *")
    assert str(error) == (
        "[MISSPELT_CLAUSE] WHER is no clause of a pattern query. (line 3, column 1)\n"
        "Did you mean WHERE?\n\nWHER a.x > 1\n^"
    )
    assert error.sqlstate == "42601"
    assert error.parameters == {"word": "WHER"}


def test_no_name_of_the_grammar_is_shown() -> None:
    for case in (*CLAUSES, *PATTERNS, *OTHERS):
        text = case[0].replace("‸", "")
        try:
            parse(text)
        except ParseError as error:
            shown = str(error)
            for name in ("RPAR", "LPAR", "_COMMA", "QUANT", "$END", "_THEN", "TYPE_REF", "Token("):
                assert name not in shown


def test_a_semicolon_at_the_end_ends_the_statement() -> None:
    assert parse("RETURN * PATTERN A ;").pattern is not None
    assert parse("PATTERN A ; B RETURN *;;").limit is None


MEANT_ELSEWHERE = [
    # the habits of other languages, in the pattern
    ("PATTERN A a ‸THEN B b RETURN *", "FOREIGN_SYNTAX", "A -> B"),
    ("PATTERN A a ‸followedBy B b RETURN *", "FOREIGN_SYNTAX", "A -> B"),
    ("PATTERN A a ; B b ‸UNTIL C c RETURN *", "FOREIGN_SYNTAX", "SEQ(A, !B, C)"),
    ("PATTERN ‸SEQUENCE(A a, B b) RETURN *", "UNKNOWN_OPERATOR", "Write SEQ(A a, B b)."),
    ("PATTERN ‸MAXIMUM(A a) RETURN *", "UNKNOWN_OPERATOR", "Write MAX(p)."),
    ("PATTERN SEQ A ‸a, B b RETURN *", "FOREIGN_SYNTAX", "Write SEQ(…)."),
    ("PATTERN failed login ‸f ; B RETURN *", "FOREIGN_SYNTAX", "back-ticks: `failed login`"),
    ("PATTERN failed‸-login f ; B RETURN *", "FOREIGN_SYNTAX", "back-ticks: `failed-login`"),
    ("PATTERN ‸{A a ; B b} RETURN *", "UNEXPECTED_TOKEN", "in parentheses: (A ; B)"),
    ("PATTERN A a ;‸; B b RETURN *", "UNEXPECTED_TOKEN", "Nothing follows ';'."),
    ("PATTERN A a ; ‸ORDER BY ts RETURN *", "UNEXPECTED_TOKEN", "Nothing follows ';'."),
    ("PATTERN ‸; A a RETURN *", "UNEXPECTED_TOKEN", "Nothing stands before ';'."),
    # clauses
    ("PATTERN A a ‸ORDERED BY ts RETURN *", "UNKNOWN_CLAUSE", "Write ORDER BY."),
    ("PATTERN A a ORDER BY ts ‸WINDOW 10 MINUTES RETURN *", "UNKNOWN_CLAUSE", "Write WITHIN 10 MINUTES."),
    ("PATTERN A a ORDER BY ts ‸OUTPUT a.v", "UNKNOWN_CLAUSE", "Write RETURN."),
    ("PATTERN A a ORDER BY ts ‸SKIP PAST LAST ROW RETURN *", "UNKNOWN_CLAUSE", "Write AFTER MATCH SKIP"),
    ("PATTERN A a RETURN * LIMIT 5 ‸OFFSET 3", "UNKNOWN_CLAUSE", "LIMIT 10 OFFSET 5"),
    ("PATTERN A a RETURN ‸ALL ROWS PER MATCH", "UNKNOWN_CLAUSE", "SELECT inline(m)"),
    ("FROM t TYPE ‸= kind PATTERN A a RETURN *", "UNEXPECTED_TOKEN", "Write TYPE kind."),
    ("FROM t ‸PATERN A a ; B b RETURN *", "MISSPELT_CLAUSE", "Did you mean PATTERN?"),
    ("PATTERN A a WHERE a.v > 1 ; ‸B b RETURN *", "TRAILING_TEXT", "is written FILTER"),
    ("PATTERN A a ORDER BY ts ; ‸RETURN *", "TRAILING_TEXT", "Leave the ';' out: RETURN"),
    ("PATTERN limit l ; ‸px p RETURN *", "TRAILING_TEXT", "back-ticks: `limit`"),
    # RETURN
    ("PATTERN A a ; B b RETURN a.v ‸b.v", "UNEXPECTED_TOKEN", "between commas"),
    ("PATTERN A a RETURN a.v ‸alias total", "UNEXPECTED_TOKEN", "a name follows AS"),
    # conditions
    ("PATTERN A a WHERE a.v > 1‸, a.w > 1 RETURN *", "UNEXPECTED_TOKEN", "joined with AND"),
    ("PATTERN A a WHERE a.v IN 1‸, 2 RETURN *", "UNEXPECTED_TOKEN", "IN (1, 2)"),
    ("PATTERN A a WHERE a.v BETWEEN 1 ‸, 2 RETURN *", "UNEXPECTED_TOKEN", "BETWEEN low AND high"),
]


@pytest.mark.parametrize(("marked", "condition", "hint"), MEANT_ELSEWHERE)
def test_habits_of_other_languages(marked: str, condition: str, hint: str) -> None:
    check(marked, condition, hint)


@pytest.mark.parametrize(
    "items",
    [
        "INTERVAL '1 02' DAY TO HOUR", "first(a.v) IGNORE NULLS total", "a.v COLLATE UTF8_LCASE", "a.v total",
        "a.v AT TIME ZONE 'UTC'", "a.v IS NOT UNKNOWN", "DATE '2026-01-01' day", "CASE a.v WHEN 1 THEN a.w END x",
        "a.v DIV 2 half", "a.k LIKE a.v", "a.v::INT whole", "(a.v) whole", "EXTRACT(DAY FROM a.ts) day",
    ],
)  # fmt: skip
def test_no_comma_is_missed_in(items: str) -> None:
    parse(f"PATTERN A a RETURN {items}")
