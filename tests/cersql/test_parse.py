"""Texts to trees. Trees are compared as s-expressions, without their places; places are tested on their own."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cersql.errors import ParseError
from cersql.language import syntax
from cersql.language.parse import parse


def sexp(node: syntax.Pattern) -> str:
    """A pattern as one line."""
    match node:
        case syntax.TypeRef(name):
            return name.value if name else "<any>"
        case syntax.Alias(inner, name):
            return f"(as {name.value} {sexp(inner)})"
        case syntax.Chain(items, contiguous):
            return f"({':' if contiguous else ';'} {' '.join(map(sexp, items))})"
        case syntax.Repeat(inner, low, high, contiguous):
            return f"({':' if contiguous else ''}{low}..{'' if high is None else high} {sexp(inner)})"
        case syntax.Combination(operator, items):
            return f"({operator.lower()} {' '.join(map(sexp, items))})"
        case syntax.Negation(inner):
            return f"(not {sexp(inner)})"
        case syntax.FilterPart(inner, condition):
            return f"(filter {sexp(inner)} <{condition.value}>)"
        case syntax.PartBy(inner, keys):
            return f"(part {sexp(inner)} <{keys.value}>)"
        case syntax.Function(function, inner):
            return f"({function.lower()} {sexp(inner)})"
        case syntax.Project(targets, inner):
            return f"(project <{targets.value}> {sexp(inner)})"
        case syntax.Aggregation(assignments, inner):
            return f"(agg <{assignments.value}> {sexp(inner)})"
        case syntax.Windowed(inner, window):
            return f"(within {sexp(inner)} {window_text(window)})"
    raise AssertionError(node)


def window_text(window: syntax.Window | None) -> str:
    assert window is not None
    return (
        f"{'< ' if window.strict else ''}{window.amount.value}{'' if window.unit in (None, 'INTERVAL') else ' EVENTS'}"
    )


def pattern(text: str) -> str:
    return sexp(parse(f"PATTERN {text} RETURN *").pattern)


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        # types and variables
        ("A", "A"),
        ("`odd name` x", "(as x odd name)"),
        ("ANY", "<any>"),
        ("any x", "(as x <any>)"),
        ("`ANY`", "ANY"),
        ("A AS x", "(as x A)"),
        ("A x", "(as x A)"),
        ("A+ x", "(as x (1.. A))"),
        ("A+ x[]", "(as x (1.. A))"),
        ("A x[]", "(as x A)"),
        ("A x+", "(1.. (as x A))"),
        ("A{2} AS x", "(as x (2..2 A))"),
        ("A{2} x", "(as x (2..2 A))"),
        ("(A ; B) AS x", "(as x (; A B))"),
        ("A AS x AS y", "(as y (as x A))"),
        ("A `x y`", "(as x y A)"),
        # quantifiers
        ("A*", "(0.. A)"),
        ("A?", "(0..1 A)"),
        ("A{2,}", "(2.. A)"),
        ("A{2,4}", "(2..4 A)"),
        ("A{0,1}", "(0..1 A)"),
        ("A:+", "(:1.. A)"),
        ("A:*", "(:0.. A)"),
        ("A:{2}", "(:2..2 A)"),
        ("A :{2,3} x", "(as x (:2..3 A))"),
        ("(b+)?", "(0..1 (1.. b))"),
        ("A++", "(1.. (1.. A))"),
        # chains
        ("SEQ(A a, B b, C c)", "(; (as a A) (as b B) (as c C))"),
        ("A ; B -> C", "(; A B C)"),
        ("A : B : C", "(: A B C)"),
        ("A : B ; C : D", "(; (: A B) (: C D))"),
        ("A ; (B ; C)", "(; A (; B C))"),
        ("(A ; B) ; C", "(; (; A B) C)"),
        ("SEQ(A, SEQ(B, C))", "(; A (; B C))"),
        ("SEQ(A ; B, C)", "(; (; A B) C)"),
        ("SEQ(A)", "A"),
        ("A:+ : B", "(: (:1.. A) B)"),
        # combinations
        ("A OR B OR C", "(or A B C)"),
        ("A AND B", "(and A B)"),
        ("A ALL B ALL C", "(all A B C)"),
        ("ALL(A, B)", "(all A B)"),
        ("ANY(A, B ; C)", "(or A (; B C))"),
        ("A UNLESS B", "(unless A B)"),
        ("A UNLESS B UNLESS C", "(unless (unless A B) C)"),
        ("A OR B ALL C AND D UNLESS E ; F : G+", "(or A (all B (and C (unless D (; E (: F (1.. G)))))))"),
        ("A+ : B ; C UNLESS D AND E ALL F OR G", "(or (all (and (unless (; (: (1.. A) B) C) D) E) F) G)"),
        ("(A OR B) ; C", "(; (or A B) C)"),
        ("A ALL ALL(B, C)", "(all A (all B C))"),
        ("A ALL (B)", "(all A B)"),
        ("SEQ(A OR B, C)", "(; (or A B) C)"),
        ("SEQ((A a AND B b), C)", "(; (and (as a A) (as b B)) C)"),
        ("SEQ((A ; B) AND (C ; D), E)", "(; (and (; A B) (; C D)) E)"),
        # negation
        ("SEQ(A, !B, C)", "(; A (not B) C)"),
        ("A ; NOT B b ; C", "(; A (not (as b B)) C)"),
        ("A ; !(B ; C)+", "(; A (not (1.. (; B C))))"),
        ("!B FILTER x > 1 ; C", "(; (not (filter B <x > 1>)) C)"),
        # functions
        ("START(A ; B)", "(start (; A B))"),
        ("strict(A) ; nxt(B) ; Last(C) ; MAX(D)", "(; (strict A) (nxt B) (last C) (max D))"),
        ("PROJECT(x, y(a, b) : A x ; B y)", "(project <x, y(a, b)> (; (as x A) (as y B)))"),
        ("PROJECT(x : A x : B)", "(project <x> (: (as x A) B))"),
        ("AGG(y : n = SUM(x.a), m = COUNT(x) ; A x ; B)", "(agg <y : n = SUM(x.a), m = COUNT(x)> (; (as x A) B))"),
        # filters and keys
        ("A a FILTER a.x > 1", "(filter (as a A) <a.x > 1>)"),
        ("A ; B b FILTER b.x > 1 AND NOT b.y = 2 OR b.z", "(; A (filter (as b B) <b.x > 1 AND NOT b.y = 2 OR b.z>))"),
        ("A a FILTER a.x > 1 ; B", "(; (filter (as a A) <a.x > 1>) B)"),
        ("A a FILTER a.x > 1 : B", "(: (filter (as a A) <a.x > 1>) B)"),
        ("A a FILTER a.x::int > 1 -> B", "(; (filter (as a A) <a.x::int > 1>) B)"),
        ("(A a FILTER a.x > 1) AND B", "(and (filter (as a A) <a.x > 1>) B)"),
        ("SEQ(A a FILTER a.x > 1, B)", "(; (filter (as a A) <a.x > 1>) B)"),
        ("A a FILTER exists(a.l, v -> v > 1) UNLESS B", "(unless (filter (as a A) <exists(a.l, v -> v > 1)>) B)"),
        ("A a FILTER a.x LIKE ALL ('a', 'b') ALL B", "(all (filter (as a A) <a.x LIKE ALL ('a', 'b')>) B)"),
        ("A a FILTER a.x IS DISTINCT FROM 2 AS y", "(as y (filter (as a A) <a.x IS DISTINCT FROM 2>))"),
        ("A a FILTER a.x > 1 FILTER a.y", "(filter (filter (as a A) <a.x > 1>) <a.y>)"),
        (
            "A a FILTER COUNT(a) FILTER (WHERE a.x) > 1 AS y",
            "(as y (filter (as a A) <COUNT(a) FILTER (WHERE a.x) > 1>))",
        ),
        ("(A a ; B b) PART BY (a.x, b.y)", "(part (; (as a A) (as b B)) <a.x, b.y>)"),
        ("A a FILTER a.x > 1 PART BY (a.x)", "(part (filter (as a A) <a.x > 1>) <a.x>)"),
        # windows
        ("(A ; B WITHIN 5 MINUTES) ; C", "(; (within (; A B) INTERVAL 5 MINUTES) C)"),
        ("(A ; B WITHIN < 100 EVENTS)", "(within (; A B) < 100 EVENTS)"),
        ("(A a FILTER a.x > 1 WITHIN 5)", "(within (filter (as a A) <a.x > 1>) 5)"),
        ("SEQ(A, B WITHIN 5)", "(within (; A B) 5)"),
        ("NXT(A ; B WITHIN 5)", "(nxt (within (; A B) 5))"),
        # operators are names elsewhere
        ("Start ; Last", "(; Start Last)"),
        ("SEQ seq -> Max max", "(; (as seq SEQ) (as max Max))"),
        ("Order ORDER ; Group", "(; (as ORDER Order) Group)"),
        ("Order o -> partition p", "(; (as o Order) (as p partition))"),
        ("`OR` OR `limit`", "(or OR limit)"),
        ("A any ; B start", "(; (as any A) (as start B))"),
        ("A /* ; B */ ; -- C\n D", "(; A D)"),
    ],
)
def test_patterns(text: str, tree: str) -> None:
    assert pattern(text) == tree


def test_pattern_places() -> None:
    text = "PATTERN (A a ; B b)+ AS w -> !C FILTER C.x > 1 RETURN *"
    chain = parse(text).pattern

    def part(node: syntax.Pattern | syntax.Text | syntax.Name) -> str:
        return text[node.span.start : node.span.end]

    assert isinstance(chain, syntax.Chain)
    assert part(chain) == "(A a ; B b)+ AS w -> !C FILTER C.x > 1"
    first, second = chain.items
    assert isinstance(first, syntax.Alias)
    assert (part(first), part(first.name), part(first.inner)) == ("(A a ; B b)+ AS w", "w", "(A a ; B b)+")
    assert isinstance(second, syntax.Negation)
    assert isinstance(second.inner, syntax.FilterPart)
    assert (part(second), part(second.inner.condition)) == ("!C FILTER C.x > 1", "C.x > 1")


# ---------------------------------------------------------------- clauses


FULL = """
FROM db.`odd t` AS t TYPE kind, (SELECT * FROM u WHERE x IN (1, 2)) q, v
PATTERN SEQ(A a, B+ b)
DEFINE A AS price > 10 AND f(x, y), `B` AS B.price < 5
WHERE [id, k] AND a.x < b[i].x
PARTITION BY t.id, `k k`
ORDER BY ts ASC NULLS FIRST, seq DESC, n NULLS LAST
WATERMARK 10 SECONDS
EMIT ON WATERMARK
WITHIN < 1 HOUR 30 MINUTES
SEMANTICS SKIP TILL ANY MATCH
CONSUME BY NONE
AFTER MATCH SKIP TO LAST b
RETURN *, a.x AS x, sum(b.x) total, a.y + 1 WITH TIMEOUTS
GROUP BY a.x, a.y
HAVING COUNT(*) > 1
LIMIT 10;
"""


def test_a_query_with_every_clause() -> None:
    q = parse(FULL)
    assert sexp(q.pattern) == "(; (as a A) (as b (1.. B)))"
    first, second, third = q.sources
    assert first.table is not None
    assert [n.value for n in first.table] == ["db", "odd t"]
    assert (first.alias and first.alias.value, first.type_column and first.type_column.value) == ("t", "kind")
    assert second.subquery is not None
    assert second.subquery.value == "SELECT * FROM u WHERE x IN (1, 2)"
    assert (second.table, second.alias and second.alias.value) == (None, "q")
    assert (third.alias, third.type_column) == (None, None)
    assert [(d.name.value, d.condition.value) for d in q.definitions] == [
        ("A", "price > 10 AND f(x, y)"),
        ("B", "B.price < 5"),
    ]
    assert [w.value for w in q.where] == ["[id, k] AND a.x < b[i].x"]
    assert [[n.value for n in names] for names in q.partition_by] == [["t", "id"], ["k k"]]
    assert [(o.column[0].value, o.descending, o.nulls) for o in q.order_by] == [
        ("ts", False, "FIRST"),
        ("seq", True, None),
        ("n", False, "LAST"),
    ]
    assert q.watermark is not None
    assert q.watermark.value == "INTERVAL 10 SECONDS"
    assert window_text(q.within) == "< INTERVAL 1 HOUR 30 MINUTES"
    raw = [q.emit, q.semantics, q.consume, q.skip, q.group_by, q.having]
    assert [t.value for t in raw if t is not None] == [
        "WATERMARK",
        "SKIP TILL ANY MATCH",
        "NONE",
        "SKIP TO LAST b",
        "a.x, a.y",
        "COUNT(*) > 1",
    ]
    assert [(r.expression.value, r.alias and r.alias.value, r.star) for r in q.returns] == [
        ("*", None, True),
        ("a.x", "x", False),
        ("sum(b.x)", "total", False),
        ("a.y + 1", None, False),
    ]
    assert q.with_timeouts is not None
    assert FULL[q.with_timeouts.start : q.with_timeouts.end] == "WITH TIMEOUTS"
    assert q.limit == 10


def test_texts_and_keys_keep_their_places() -> None:
    q = parse(FULL)
    for kind, span in q.clauses:
        assert FULL[span.start : span.end] == kind
    assert [kind for kind, _ in q.clauses][:4] == ["FROM", "PATTERN", "DEFINE", "WHERE"]
    assert q.clause("AFTER MATCH") is not None
    assert q.clause("SELECT") is None
    raw = [
        q.where[0],
        q.semantics,
        q.having,
        q.returns[1].expression,
        q.definitions[0].condition,
        q.sources[1].subquery,
    ]
    for text in raw:
        assert text is not None
        assert FULL[text.span.start : text.span.end] == text.value
    assert q.within is not None
    assert FULL[q.within.amount.span.start : q.within.amount.span.end] == "1 HOUR 30 MINUTES"
    assert FULL[q.within.span.start : q.within.span.end] == "< 1 HOUR 30 MINUTES"


def test_a_query_inside_a_statement() -> None:
    text = "SELECT m.* FROM (PATTERN A a ; B RETURN a.x AS `größe`) AS m WHERE x > 1"
    start, end = text.index("(") + 1, text.index(")")
    q = parse(text, start=start, end=end)
    assert q.text == text
    assert sexp(q.pattern) == "(; (as a A) B)"
    assert (q.pattern.span.start, q.pattern.span.end) == (text.index("A a"), text.index(" RETURN"))
    assert q.returns[0].alias == syntax.Name("größe", q.returns[0].alias.span, quoted=True)  # type: ignore[union-attr]
    with pytest.raises(ParseError) as raised:
        parse(text, start=start, end=text.index(" RETURN"))
    assert raised.value.column == text.index(" RETURN") + 1


def test_clauses_in_any_order_and_case() -> None:
    q = parse("return a.x order by ts within 5 pattern A a ; B where a.x > 1 from t")
    assert sexp(q.pattern) == "(; (as a A) B)"
    assert q.where[0].value == "a.x > 1"
    assert q.sources[0].table is not None


def test_common_table_expressions() -> None:
    text = "WITH x AS (SELECT 1 FROM y WHERE z), w (a, b) AS (SELECT 1, 2) FROM x PATTERN A RETURN *"
    q = parse(text)
    assert q.ctes is not None
    assert q.ctes.value == text[: text.index(" FROM x")]


@pytest.mark.parametrize(
    ("body", "window", "unit"),
    [
        ("10 MINUTES", "INTERVAL 10 MINUTES", "INTERVAL"),
        ("< 10 minutes", "< INTERVAL 10 minutes", "INTERVAL"),
        ("INTERVAL '10' MINUTE", "INTERVAL '10' MINUTE", "INTERVAL"),
        ("INTERVAL 10 MINUTES", "INTERVAL 10 MINUTES", "INTERVAL"),
        ("INTERVAL '1 02' DAY TO HOUR", "INTERVAL '1 02' DAY TO HOUR", "INTERVAL"),
        ("INTERVAL '10 minutes'", "INTERVAL '10 minutes'", "INTERVAL"),
        ("1 HOUR 30 MINUTES", "INTERVAL 1 HOUR 30 MINUTES", "INTERVAL"),
        ("500", "500", None),
        ("1.5", "1.5", None),
        ("100 EVENTS", "100 EVENTS", "EVENTS"),
        ("< 1 EVENT", "< 1 EVENTS", "EVENTS"),
    ],
)
def test_windows(body: str, window: str, unit: str | None) -> None:
    q = parse(f"PATTERN A WITHIN {body} RETURN *")
    assert window_text(q.within) == window
    assert q.within is not None
    assert q.within.unit == unit


@pytest.mark.parametrize(
    ("item", "expression", "alias"),
    [
        ("a.x", "a.x", None),
        ("a.x y", "a.x", "y"),
        ("a.x AS `y z`", "a.x", "y z"),
        ("f(a.x) y", "f(a.x)", "y"),
        ("b[1] y", "b[1]", "y"),
        ("1 one", "1", "one"),
        ("'s' s", "'s'", "s"),
        ("NULL n", "NULL", "n"),
        ("CASE WHEN a.x THEN 1 ELSE 2 END", "CASE WHEN a.x THEN 1 ELSE 2 END", None),
        ("CASE WHEN a.x THEN 1 ELSE 2 END y", "CASE WHEN a.x THEN 1 ELSE 2 END", "y"),
        ("a.x IS NULL", "a.x IS NULL", None),
        ("NOT a", "NOT a", None),
        ("x AND y", "x AND y", None),
        ("a.x * y", "a.x * y", None),
        ("a.ts + INTERVAL 1 HOUR", "a.ts + INTERVAL 1 HOUR", None),
        ("a.ts + INTERVAL 1 HOUR later", "a.ts + INTERVAL 1 HOUR", "later"),
        ("INTERVAL '1 02' DAY TO HOUR", "INTERVAL '1 02' DAY TO HOUR", None),
        ("a.x IS DISTINCT FROM b.x", "a.x IS DISTINCT FROM b.x", None),
        ("percentile_cont(0.5) WITHIN GROUP (ORDER BY b.x) m", "percentile_cont(0.5) WITHIN GROUP (ORDER BY b.x)", "m"),
        ("count(b) FILTER (WHERE b.x > 1)", "count(b) FILTER (WHERE b.x > 1)", None),
        ("a.limit", "a.limit", None),
        ("a.*", "a.*", None),
        ("a.from AS f", "a.from", "f"),
        ("extract(YEAR FROM a.ts) year", "extract(YEAR FROM a.ts)", "year"),
        ("'RETURN WHERE' w", "'RETURN WHERE'", "w"),
    ],
)
def test_return_items(item: str, expression: str, alias: str | None) -> None:
    (found,) = parse(f"PATTERN A a RETURN {item}").returns
    assert (found.expression.value, found.alias and found.alias.value) == (expression, alias)


def test_sources() -> None:
    q = parse("FROM trades TYPE kind, a.b.c x, `t t` TYPE, (PATTERN A RETURN *) AS p TYPE `k` PATTERN A RETURN *")
    assert [(s.alias and s.alias.value, s.type_column and s.type_column.value) for s in q.sources] == [
        (None, "kind"),
        ("x", None),
        ("TYPE", None),
        ("p", "k"),
    ]


# ---------------------------------------------------------------- the papers' texts


def test_sase() -> None:
    q = parse(
        """PATTERN SEQ(JobStart a, Mapper+ b[], JobEnd c)
WHERE a.job_id = b[i].job_id AND a.job_id = c.job_id
RETURN AVG(b[].period), MAX(b[].period)"""
    )
    assert sexp(q.pattern) == "(; (as a JobStart) (as b (1.. Mapper)) (as c JobEnd))"
    assert [r.expression.value for r in q.returns] == ["AVG(b[].period)", "MAX(b[].period)"]


def test_hamlet() -> None:
    q = parse(
        """RETURN T.district, COUNT(*), SUM(T.duration)
PATTERN SEQ(Request R, Travel T+, Cancel C)
WHERE [driver, rider]"""
    )
    assert sexp(q.pattern) == "(; (as R Request) (1.. (as T Travel)) (as C Cancel))"
    assert q.where[0].value == "[driver, rider]"


def test_cogra() -> None:
    q = parse(
        """RETURN patient, MIN(M.rate), MAX(M.rate)
PATTERN Measurement M+
SEMANTICS contiguous
WHERE [patient] AND M.rate < NEXT(M).rate AND M.activity = passive"""
    )
    assert sexp(q.pattern) == "(1.. (as M Measurement))"
    assert q.semantics is not None
    assert q.semantics.value == "contiguous"


def test_acel() -> None:
    q = parse(
        """PATTERN (SELL AS msft ; SELL AS intel ; SELL AS amzn)
FILTER msft[name = 'MSFT'] AND msft[price > 100] AND intel[name = 'INTC']
   AND amzn[name = 'AMZN'] AND amzn[price < 2000]
RETURN intel.price"""
    )
    assert isinstance(q.pattern, syntax.FilterPart)
    assert sexp(q.pattern.inner) == "(; (as msft SELL) (as intel SELL) (as amzn SELL))"
    assert q.pattern.condition.value.startswith("msft[name = 'MSFT'] AND")
    assert q.pattern.condition.value.endswith("amzn[price < 2000]")


# ---------------------------------------------------------------- any text gives a tree or a ParseError

WORDS = (
    "PATTERN RETURN FROM WHERE DEFINE WITHIN WITHIN LIMIT HAVING SEMANTICS WATERMARK ORDER PARTITION GROUP BY "
    "CONSUME AFTER MATCH SEQ ALL ANY START NXT MAX PROJECT AGG FILTER PART AS NOT AND OR UNLESS WITH TIMEOUTS "
    "EMIT ON ARRIVAL SELECT TYPE DESC NULLS FIRST INTERVAL MINUTES EVENTS PERMUTE RETRUN WHER A B a b x "
    "`q` 'text' 1 2.5 0 ( ) "
    "( ) [ ] { } , ; -> : :: + * ? ! . = < <= | || ^ $ - :+ :{2} {1,2} {3,} ' "
).split()


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(WORDS), max_size=25), st.sampled_from([" ", ""]), st.booleans())
def test_any_tokens(words: list[str], gap: str, framed: bool) -> None:
    soup = gap.join(words)
    text = f"PATTERN {soup} RETURN *" if framed else soup
    error = None
    try:
        query = parse(text)
    except ParseError as found:
        error = found
    if error is None:
        assert sexp(query.pattern)
    else:
        assert error.span is not None
        assert 0 <= error.span.start <= error.span.end <= len(text)
        assert "^" in str(error)


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=40))
def test_any_text(text: str) -> None:
    with pytest.raises(ParseError):
        parse("PATTERN A " + text + " (")


def test_depth_is_bounded() -> None:
    for text in ("(" * 200 + "A" + ")" * 200, "A" + "+" * 5000, "!" * 5000 + "A", "A" + " UNLESS B" * 5000):
        with pytest.raises(ParseError) as raised:
            parse(f"PATTERN {text} RETURN *")
        assert raised.value.condition == "TOO_DEEP"
    wide = parse("PATTERN " + " ; ".join(["A"] * 5000) + " RETURN *").pattern
    assert isinstance(wide, syntax.Chain)
    assert len(wide.items) == 5000
