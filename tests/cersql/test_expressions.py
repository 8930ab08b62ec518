"""Names in expressions: which are references, which are Spark's, and that the text stays what it was."""

from __future__ import annotations

import pytest

from cersql.binding.expressions import Bare, Call, Ref, Word, read, rendered, walk
from cersql.binding.scope import Names
from cersql.errors import ParseError
from runtime.errors import Span

VARIABLES = Names("a b x date end order first count year time values".split(), case_sensitive=False)


def nodes(text: str) -> tuple[object, ...]:
    return read(text, Span(0, len(text)), VARIABLES.get, VARIABLES.fold)


def refs(text: str) -> list[str]:
    """The references and bare names, as written."""
    found = [node for node in walk(nodes(text)) if isinstance(node, Ref | Bare)]
    return [("?" if isinstance(node, Bare) else "") + text[node.span.start : node.span.end] for node in found]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a.x > b.y", ["a.x", "b.y"]),
        ("A.x = `b`.`odd.name` + `a` . `tick``s`", ["A.x", "`b`.`odd.name`", "`a` . `tick``s`"]),
        ("a[].x + b[i].x + b[i-1].x + b[2].x + b[ i + 1 ].x",
         ["a[].x", "b[i].x", "b[i-1].x", "b[2].x", "b[ i + 1 ].x"]),
        ("a[x > 1 AND y = ']'] AND b", ["a[x > 1 AND y = ']']", "b"]),
        ("a.s.f.g + a.arr[0] + a.m['b.x'] + a.arr[b.i]", ["a.s", "a.arr", "a.m", "a.arr", "b.i"]),
        ("'a.x' = \"b.x\" -- a.x\n /* b.x */ || r'a.x'", []),
        ("foo + foo.bar + current_date", ["?foo", "?foo.bar", "?current_date"]),
        # functions and parts of names are no references
        ("a(1) + year(a.ts) + date(x.d) + system.builtin.sqrt(a.v)", ["a.ts", "x.d", "a.v"]),
        ("x.a.b", ["x.a"]),
        # casts
        ("a.x::int + CAST(b.y AS date) + TRY_CAST(a.z AS STRUCT<a: INT, b: ARRAY<x: INT>>).a", ["a.x", "b.y", "a.z"]),
        ("a.x::struct<a:int,b:array<int>> = b.y", ["a.x", "b.y"]),
        # lambdas hide variables in their bodies only
        ("exists(a.arr, x -> x > 1 AND x.f = b.v) AND x.v = 1", ["a.arr", "b.v", "x.v"]),
        ("aggregate(x.arr, 0, (a, `b`) -> a + b + x.v, A -> a * 2) + a.v", ["x.arr", "x.v", "a.v"]),
        ("exists(a.arr, q -> exists(q, a -> a > q)) AND a.v", ["a.arr", "a.v"]),
        # subqueries are Spark's
        ("a.v > (SELECT max(a.v) FROM t a WHERE a.b = 1) AND b.v IN (VALUES a, b) OR (values.v)",
         ["a.v", "b.v", "values.v"]),
        # words that are keywords beside certain others only
        ("date.x > DATE '2020-01-01' AND count(date) > 1", ["date.x", "date"]),
        ("end.x + COUNT(end) + CASE WHEN end.x THEN a.v ELSE 1 END", ["end.x", "end", "end.x", "a.v"]),
        ("CASE a.v WHEN 1 THEN CASE WHEN b.v THEN 1 END END + end", ["a.v", "b.v", "end"]),
        ("order.x + first.y + first(first.y)", ["order.x", "first.y", "first.y"]),
        ("INTERVAL 1 YEAR + INTERVAL '5' year + INTERVAL '1-2' YEAR TO MONTH + year.x + max(year)", ["year.x", "year"]),
        ("EXTRACT(YEAR FROM a.ts) + timestampadd(YEAR, 1, b.ts)", ["a.ts", "b.ts"]),
        ("a.ts AT TIME ZONE 'UTC' = time.ts", ["a.ts", "time.ts"]),
        ("struct(a.x AS b, b.x AS a) = b.x COLLATE x", ["a.x", "b.x", "b.x"]),
        ("f(a => b.x, :x)", ["b.x"]),
        ("rank() OVER (PARTITION BY a.k ORDER BY b.v)", ["a.k", "b.v"]),
        ("a.x IS NOT NULL AND NOT b.x IN (NULL, TRUE) OR a.y DIV 2 RLIKE 'x'", ["a.x", "b.x", "a.y"]),
    ],
)  # fmt: skip
def test_references(text: str, expected: list[str]) -> None:
    assert refs(text) == expected
    shown = rendered(text, nodes(text), lambda _: None, Span(0, len(text)))  # type: ignore[arg-type]
    assert shown.text == text


def test_unicode_names() -> None:
    names = Names(["größe", "ÉTÉ"], case_sensitive=False)
    text = "GRÖSSE.x + GRÖßE.x + été.x"
    found = [n for n in read(text, Span(0, len(text)), names.get, names.fold) if isinstance(n, Ref | Bare)]
    assert [type(n) for n in found] == [Bare, Ref, Ref]  # for Spark ß and SS are two names


def test_parts_of_a_reference() -> None:
    (ref,) = nodes("b[3].price")
    assert ref == Ref("b", 3, "price", Span(0, 10), Span(5, 10), None, "b")
    (previous,) = nodes("B[i-1].price")
    assert isinstance(previous, Ref)
    assert (previous.variable, previous.written, previous.index) == ("b", "B", "previous")
    (condition,) = nodes("b[ price > 1 ]")
    assert isinstance(condition, Ref)
    assert condition.condition is not None
    assert condition.condition.value == "price > 1"
    assert nodes("b.*")[0] == Ref("b", None, "*", Span(0, 3), Span(2, 3), None, "b")


def test_calls() -> None:
    call, _, star = nodes("COUNT(DISTINCT a.x) + first(b).y")
    assert isinstance(call, Call)
    assert (call.function, call.distinct, len(call.arguments)) == ("COUNT", True, 1)
    assert isinstance(star, Call)
    assert (star.function, star.column) == ("FIRST", "y")
    assert [type(node) for node in nodes("max (1)")] == [Call]
    assert all(isinstance(node, Word) for node in nodes("maximum ( 1 )"))


@pytest.mark.parametrize("index", ["0", "-1", "i-2", "..i-1", "1.5", "'k'", "b.i"])
def test_wrong_index(index: str) -> None:
    text = f"1 + a[{index}].x"
    with pytest.raises(ParseError) as raised:
        nodes(text)
    assert raised.value.condition == "BAD_INDEX"
    assert raised.value.span == Span(5, text.index("]") + 1)


def test_locate() -> None:
    text = "a.x  >  f(b.yy)"
    sql = rendered(text, nodes(text), lambda n: "`col`" if isinstance(n, Ref) else None)  # type: ignore[arg-type]
    assert sql.text == "`col`  >  f(`col`)"
    assert sql.locate(2) == 0  # inside what replaces a.x
    assert sql.locate(sql.text.index("f(")) == text.index("f(")
    assert sql.locate(sql.text.rindex("`col`")) == text.index("b.yy")
    assert sql.locate(len(sql.text) - 1) == text.index(")")
    wrapped = sql.wrapped("NOT (", ")")
    assert wrapped.locate(5 + sql.text.index("f(")) == text.index("f(")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("SUM(DISTINCT b.v)", (["b"], True, 0, 0, False)),
        ("COUNT(ALL b.v)", (["b"], False, 0, 0, False)),
        ("COUNT(all.v)", (["all"], False, 0, 0, False)),
        ("FIRST(b.v IGNORE NULLS)", (["b"], False, 0, 0, True)),
        ("LAST(b.v) IGNORE NULLS", (["b"], False, 0, 0, True)),
        ("LAST(b.v) RESPECT NULLS", (["b"], False, 0, 0, False)),
        ("MODE() WITHIN GROUP (ORDER BY b.v DESC)", (["b"], False, 1, 0, False)),
        ("LISTAGG(b.v, ',') WITHIN GROUP (ORDER BY b.w, all.v NULLS LAST) FILTER (WHERE b.k > 1)",
         (["b", "b", "all", "b"], False, 2, 3, False)),
    ],
)  # fmt: skip
def test_calls_of_aggregates(text: str, found: tuple[list[str], bool, int, int, bool]) -> None:
    (call,) = read(text, Span(0, len(text)), {"b": "b", "all": "all"}.get)
    assert isinstance(call, Call)
    assert call.span == Span(0, len(text))
    variables = [node.variable for node in call.nodes if isinstance(node, Ref)]
    assert (variables, call.distinct, len(call.order), len(call.where), call.ignore_nulls) == found


def test_directions_of_keys() -> None:
    text = "LISTAGG(b.v) WITHIN GROUP (ORDER BY b.a, b.b DESC, b.c ASC NULLS LAST, b.d DESC NULLS FIRST)"
    (call,) = read(text, Span(0, len(text)), {"b": "b"}.get)
    assert isinstance(call, Call)
    keys = [(key.descending, key.last) for key in call.order]
    assert keys == [(False, False), (True, True), (False, True), (True, False)]


def test_like_any_is_no_aggregate() -> None:
    text = "b.name LIKE ANY ('x%', 'y%') AND b.name NOT LIKE SOME ('z%')"
    assert not any(isinstance(node, Call) for node in read(text, Span(0, len(text)), {"b": "b"}.get))
