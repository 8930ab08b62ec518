"""Esper's SELECT … FROM PATTERN […], and the papers' texts, as they stand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from queries import bound, check_error, check_place, filters

import cersql
from cersql.api import SchemaCatalog
from cersql.binding.bind import bind
from cersql.language.parse import parse
from planner.across import Across
from planner.query import Query
from planner.terms import Window
from runtime.errors import CersqlError

TABLES = {
    name: {"ts": "timestamp", "id": "int", "price": "double", "name": "string", "s": "struct<f:int>"} for name in "ABCD"
}


def query(pattern: str, rest: str = "", items: str = "*") -> Query:
    return bound(f"SELECT {items} FROM PATTERN [{pattern}] {rest} ORDER BY ts", TABLES)


def meaning(found: Query) -> tuple[str, str, int | None]:
    return found.strategy, found.consume, found.limit


@pytest.mark.parametrize(
    ("pattern", "formula", "expected"),
    [
        ("every a=A -> b=B", "(a ; b)", ("NEXT_MATCH", "NONE", None)),
        ("every (a=A -> b=B)", "(a ; b)", ("NXT", "PARTITION", None)),
        ("every a=A -> every b=B", "(a ; b)", ("ALL", "NONE", None)),
        ("a=A -> b=B", "(a ; b)", ("NXT", "PARTITION", 1)),
        ("A -> B", "(A ; B)", ("NXT", "PARTITION", 1)),
        ("every a=A", "a", ("ALL", "NONE", None)),
        ("EVERY (a=A or b=B)", "[a] OR [b]", ("ALL", "NONE", None)),
        ("a=A", "a", ("NXT", "PARTITION", 1)),
        ("every a=A -> (b=B or c=C)", "(a ; [b] OR [c])", ("NEXT_MATCH", "NONE", None)),
        ("every a=A -> b=B or c=C", "(a ; [b] OR [c])", ("NEXT_MATCH", "NONE", None)),
        ("every (a=A -> b=B -> c=C)", "((a ; b) ; c)", ("NXT", "PARTITION", None)),
        ("every a=A(price > 1) -> b=B(id = 2, name = 'x')", "(a | a: price > 1 ; b | b: id = 2 | b: name = 'x')",
         ("NEXT_MATCH", "NONE", None)),
        ("every A(price > 1)", "A | A: price > 1", ("ALL", "NONE", None)),
        ("every b=B()", "b", ("ALL", "NONE", None)),
        ("every a=A(s.f = 1 or price > 2)", "a | a: s.f = 1 or price > 2", ("ALL", "NONE", None)),
        ("every a=A(a.price > 1 and Price < 5)", "a | a: price > 1 | a: price < 5", ("ALL", "NONE", None)),
    ],
)  # fmt: skip
def test_the_places_of_every(pattern: str, formula: str, expected: tuple[str, str, int | None]) -> None:
    found = query(pattern)
    assert (filters(found.formula), meaning(found)) == (formula, expected)


def test_and_and_not() -> None:
    assert query("every (a=A and b=B)").formula == bound("PATTERN A a ALL B b ORDER BY ts RETURN *", TABLES).formula
    assert query("every (a=A -> b=B and c=C)").formula == (
        bound("PATTERN A a ; (B b ALL C c) ORDER BY ts RETURN *", TABLES).formula
    )
    absent = query("every a=A -> (b=B and not c=C(price > 1))")
    assert absent.strategy == "NEXT_MATCH"
    assert absent.formula == (
        bound("PATTERN SEQ(A a, !(C c FILTER c.price > 1), B b) ORDER BY ts RETURN *", TABLES).formula
    )


@pytest.mark.parametrize(
    ("pattern", "size"),
    [
        ("every a=A -> b=B where timer:within(10 sec)", 10_000_000),
        ("every (a=A -> b=B where timer:within(10))", 10_000_000),
        ("every (a=A -> b=B -> c=C) where timer:within(1 min 30 seconds)", 90_000_000),
        ("every ((a=A -> b=B) where timer : within (500 msec))", 500_000),
        ("(a=A -> b=B) where timer:within(2 days)", 172_800_000_000),
    ],
)
def test_windows(pattern: str, size: int) -> None:
    assert query(pattern).window == Window("time", size)


def test_a_window_of_a_part() -> None:
    found = query("every (a=A -> (b=B -> c=C) where timer:within(10 sec))")
    assert found.window == Window("time", 10_000_000)  # the second of two
    nested = query("every (a=A -> (b=B -> c=C) where timer:within(10 sec) -> d=D)")
    inner = bound("PATTERN A a ; (B b ; C c WITHIN 10 SECONDS) ; D d ORDER BY ts RETURN *", TABLES)
    assert (nested.window, nested.formula) == (None, inner.formula)


def test_the_clauses_around_it() -> None:
    found = query(
        "every a=A -> b=B", "WHERE a.price > 1 HAVING sum(a.price + b.price) > 100 PARTITION BY id LIMIT 3",
        "a.id, sum(a.price + b.price) AS total",
    )  # fmt: skip
    assert [output.name for output in found.outputs] == ["id", "total"]
    assert (found.partition_by, found.limit, len(found.having)) == (("id",), 3, 1)
    assert filters(found.formula) == "(a ; b) | a: price > 1"
    assert query("a=A", "LIMIT 5").limit == 1
    assert query("a=A", "LIMIT 0").limit == 0


def test_conditions_of_an_event_on_others() -> None:
    where = bound("PATTERN A a ; (C c ALL B b) WHERE b.id = a.id AND b.price > 1 ORDER BY ts RETURN *", TABLES)
    assert query("every (a=A -> c=C and b=B(id = a.id and price > 1))").formula == where.formula
    absent = query("every (a=A -> (b=B and not c=C(id = a.id)))")
    assert isinstance(absent.formula, Across)


def test_leading_ctes_and_semicolon() -> None:
    tree = parse("WITH x AS (SELECT 1) SELECT * FROM PATTERN [every a=A] ORDER BY ts;")
    assert tree.ctes is not None
    assert tree.ctes.value == "WITH x AS (SELECT 1)"


S = "SELECT a.id FROM PATTERN "


@pytest.mark.parametrize(
    ("marked", "condition", "fragment"),
    [
        (S + "[a=A -> ‸every b=B] ORDER BY ts", "NOT_SUPPORTED_YET", "'every' after '->'"),
        (S + "[every a=A -> b=B -> ‸every c=C] ORDER BY ts", "NOT_SUPPORTED_YET", "'every' after '->'"),
        (S + "[‸every (a=A -> b=B) -> c=C] ORDER BY ts", "NOT_SUPPORTED_YET", "several events, before '->'"),
        (S + "[‸every a=A or b=B] ORDER BY ts", "NOT_SUPPORTED_YET", "'every' inside the pattern"),
        (S + "[every a=A -> (‸b=B and c=C)] ORDER BY ts", "NOT_SUPPORTED_YET", "'and' after 'every a=A ->'"),
        (S + "[every (‸a=A and not b=B)] ORDER BY ts", "NOT_SUPPORTED_YET", "'and not' that is not after"),
        (S + "[a=A -> ‸not b=B] ORDER BY ts", "NOT_SUPPORTED_YET", "'not' without an 'and'"),
        (S + "[every a=A -> ((‸b=B -> c=C) and not d=D)] ORDER BY ts", "NOT_SUPPORTED_YET", "beside other than one"),
        (S + "[(‸every a=A -> b=B) where timer:within(5)] ORDER BY ts", "NOT_SUPPORTED_YET", "ends the whole pattern"),
        (S + "[every (a=A -> ‸b=B where timer:within(5) -> c=C)] ORDER BY ts", "NOT_SUPPORTED_YET", "on one event"),
        (S + "[a=A -> ‸timer:interval(10 sec)] ORDER BY ts", "NOT_SUPPORTED_YET", "A timer as an event"),
        (S + "[every a=A -> b=B(id = ‸c.id)] ORDER BY ts", "UNKNOWN_VARIABLE", "There is no variable c"),
        (S + "[every a=A -> b=B(id = a.‸ids)] ORDER BY ts", "UNKNOWN_COLUMN", "mean id?"),
        (S + "[every a=A -> b=B(‸c.id = 1)] ORDER BY ts", "UNKNOWN_VARIABLE", ""),
        (S + "[every a=A(price > 1,‸)] ORDER BY ts", "UNEXPECTED_TOKEN", "a condition"),
        (S + "[every a=‸] ORDER BY ts", "UNEXPECTED_TOKEN", "an event type"),
        (S + "[every a=A ‸b=B] ORDER BY ts", "UNEXPECTED_TOKEN", "'->', AND, OR or ']'"),
        (S + "[every a=A ->‸] ORDER BY ts", "UNEXPECTED_TOKEN", "an event"),
        (S + "[‸-> a=A] ORDER BY ts", "UNEXPECTED_TOKEN", "an event"),
        (S + "[(a=A ‸b=B)] ORDER BY ts", "UNEXPECTED_TOKEN", "')'"),
        (S + "[a=A where ‸within(5)] ORDER BY ts", "UNEXPECTED_TOKEN", "'timer'"),
        (S + "[a=A where timer:within ‸5] ORDER BY ts", "UNEXPECTED_TOKEN", "'(' and a duration"),
        (S + "[a=A where timer:within(5 ‸parsecs)] ORDER BY ts", "UNEXPECTED_TOKEN", "a unit"),
        (S + "[a=A where timer:within(‸x)] ORDER BY ts", "UNEXPECTED_TOKEN", "a number"),
        (S + "[a=A where timer:within(‸)] ORDER BY ts", "UNEXPECTED_TOKEN", "a duration"),
        (S + "[" + "every " * 100 + "‸every a=A] ORDER BY ts", "TOO_DEEP", "100"),
        (S + "[every a=A] ‸AS x ORDER BY ts", "UNEXPECTED_TOKEN", "a clause"),
        (S + "[every a=A] ORDER BY ts ‸RETURN a", "DUPLICATE_CLAUSE", "RETURN"),
        (S + "[every a=A -> b=B] ‸SEMANTICS ALL ORDER BY ts", "DUPLICATE_CLAUSE", "SEMANTICS"),
        (S + "[every (a=A -> b=B)] ‸CONSUME BY NONE ORDER BY ts", "DUPLICATE_CLAUSE", "CONSUME BY"),
        (S + "[every a=A -> b=B where timer:within(5)] ‸WITHIN 5 MINUTES ORDER BY ts", "DUPLICATE_CLAUSE", "WITHIN"),
        ("SELECT a.id FROM ‸PATTERN [] ORDER BY ts", "EMPTY_PATTERN", ""),
        ("‸SELECT FROM PATTERN [every a=A] ORDER BY ts", "EMPTY_CLAUSE", ""),
        ("FROM PATTERN ‸[every a=A] RETURN *", "UNEXPECTED_TOKEN", "SELECT … FROM PATTERN"),
        ("FROM A PATTERN ‸[every a=A] RETURN *", "FOREIGN_SYNTAX", "SELECT … FROM PATTERN"),
    ],
)  # fmt: skip
def test_errors(marked: str, condition: str, fragment: str) -> None:
    check_error(marked, condition, fragment, schemas=TABLES)


WORDS = "every every -> -> and or not a= b= A B a=A b=B ( ) , A(price > 1) where timer:within( 5 sec ) . 'x' ->".split()


@given(st.lists(st.sampled_from(WORDS), max_size=10))
def test_any_text_is_read_or_refused_with_its_place(words: list[str]) -> None:
    text = f"SELECT * FROM PATTERN [{' '.join(words)}] ORDER BY ts"
    refused = None
    try:
        bound(text, TABLES)
    except CersqlError as error:
        refused = error
    assert refused is None or refused.line == 1


# ---------------------------------------------------------------- the papers' texts

EVENT = {"ts": "timestamp", "job_id": "int", "period": "double"}
ORDER = {"ts": "timestamp", "custId": "int", "name": "string", "price": "double"}
RIDE = {"ts": "timestamp", "driver": "int", "rider": "int", "district": "string", "duration": "double"}
PAPERS = {
    "JobStart": EVENT, "Mapper": EVENT, "JobEnd": EVENT, "ServiceOrder": ORDER, "ProductOrder": ORDER,
    "Request": RIDE, "Travel": RIDE, "Cancel": RIDE,
    "Measurement": {"ts": "timestamp", "patient": "int", "rate": "double", "activity": "string"},
    "SELL": {"ts": "timestamp", "name": "string", "price": "double"},
}  # fmt: skip


def paper(text: str) -> Query:
    return bind(parse(text), SchemaCatalog(PAPERS), order_by="ts")


def test_the_papers_texts_as_they_stand() -> None:
    """What they give is in spark_ext/test_comparisons_spark.py."""
    sase = paper(
        "PATTERN SEQ(JobStart a, Mapper+ b[], JobEnd c)\nWHERE a.job_id = b[i].job_id AND a.job_id = c.job_id\n"
        "RETURN AVG(b[].period), MAX(b[].period)"
    )
    assert shown(sase).split("\n")[:2] == ["FILTER a: job_id = c: job_id", "  FILTER a: job_id = b: job_id"]
    esper = paper(
        "SELECT a.custId, sum(a.price + b.price)\n"
        "FROM PATTERN [every a=ServiceOrder -> b=ProductOrder(custId = a.custId)]\n"
        "WHERE a.name in (b.name) HAVING sum(a.price + b.price) > 100"
    )
    assert shown(esper).split("\n")[:2] == ["FILTER a: name = b: name", "  FILTER b: custId = a: custId"]
    hamlet = paper(
        "RETURN T.district, COUNT(*), SUM(T.duration)\nPATTERN SEQ(Request R, Travel T+, Cancel C)\n"
        "WHERE [driver, rider]"
    )
    assert shown(hamlet).split("\n")[:2] == ["AGREE every event: rider", "  AGREE every event: driver"]
    cogra = COGRA.format("'passive'")
    assert shown(paper(cogra)).split("\n")[:3] == [
        "FILTER M: activity = 'passive'",
        "  FILTER M[earlier]: rate < M[later]: rate",
        "    AGREE every event: patient",
    ]
    text = COGRA.format("passive")
    with pytest.raises(CersqlError) as raised:
        cersql.compile(text, PAPERS, order_by="ts")
    check_place(raised.value, text, text.index("passive"), "BARE_WORD", "'passive'")


COGRA = """RETURN patient, MIN(M.rate), MAX(M.rate)
PATTERN Measurement M+
SEMANTICS contiguous
WHERE [patient] AND M.rate < NEXT(M).rate AND M.activity = {}"""


def shown(query: Query) -> str:
    return query.formula.show().replace("`", "")


def test_the_papers_texts_without_comparisons() -> None:
    sase = paper("PATTERN SEQ(JobStart a, Mapper+ b[], JobEnd c)\nRETURN AVG(b[].period), MAX(b[].period)")
    assert filters(sase.formula) == "((a ; b+) ; c)"
    esper = paper(
        "SELECT a.custId, sum(a.price + b.price)\nFROM PATTERN [every a=ServiceOrder -> b=ProductOrder(price > 1)]\n"
        "HAVING sum(a.price + b.price) > 100"
    )
    assert (filters(esper.formula), esper.strategy) == ("(a ; b | b: price > 1)", "NEXT_MATCH")
    hamlet = paper(
        "RETURN T.district, COUNT(*), SUM(T.duration)\nPATTERN SEQ(Request R, Travel T+, Cancel C)\n"
        "PARTITION BY driver, rider"
    )
    assert filters(hamlet.formula) == "((R ; T+) ; C)"
    cogra = paper(
        "RETURN patient, MIN(M.rate), MAX(M.rate)\nPATTERN Measurement M+\nSEMANTICS contiguous\n"
        "PARTITION BY patient WHERE M.activity = 'passive'"
    )
    assert (filters(cogra.formula), cogra.strategy) == ("M+ | M: activity = 'passive'", "STRICT")


def test_core_as_it_stands() -> None:
    core = paper(
        "PATTERN (SELL AS msft ; SELL AS intel ; SELL AS amzn)\n"
        "FILTER msft[name = 'MSFT'] AND msft[price > 100] AND intel[name = 'INTC']\n"
        "   AND amzn[name = 'AMZN'] AND amzn[price < 2000]\nRETURN intel.price"
    )
    assert filters(core.formula) == (
        "((msft ; intel) ; amzn) | msft: (name = 'MSFT') | msft: (price > 100) | intel: (name = 'INTC')"
        " | amzn: (name = 'AMZN') | amzn: (price < 2000)"
    )


def test_syntax_is_shown_as_ours() -> None:
    compiled = cersql.compile("SELECT * FROM PATTERN [every a=A(price > 1)] ORDER BY ts", TABLES)
    assert compiled.explain("syntax") == "FilterPart 'price > 1' own_columns\n  Alias a\n    TypeRef A"
