"""Spellings of the papers, read as what they mean; and what other languages write, with what to write instead."""

from __future__ import annotations

import pytest
from queries import bound, check_error, filters

from cersql.binding.skip_points import shapes_of
from cersql.language.parse import parse
from cersql.statements.find import is_ours
from planner import cel
from planner.across import Across, Candidate
from planner.formula import Formula
from planner.physical import plan
from planner.query import Query

END = " ORDER BY ts RETURN *"

# ---------------------------------------------------------------- two spellings, one meaning


def query(text: str) -> Query:
    return bound(f"FROM t {text}{END}")


@pytest.mark.parametrize(
    ("printed", "plain"),
    [
        ("A IN x ; (B+) IN y", "A AS x ; (B+) AS y"),
        ("A+ IN x : B", "A+ AS x : B"),
        ("[A ; B]", "(A ; B)"),
        ("[[A ; B] OR C] AS x", "((A ; B) OR C) AS x"),
        ("A → B", "A -> B"),
        ("A ∨ B", "A OR B"),
        ("A ∧ A", "A AND A"),
        ("SEQ(A, ¬B, C)", "SEQ(A, !B, C)"),
        ("ITER(A a, 2) ; B", "A{2} a ; B"),
        ("A ; iter(B ; C, 3) AS x", "A ; (B ; C){3} AS x"),
        ("A ; ITER(B ; C, 2 WITHIN 5 HOURS)", "A ; ((B ; C){2} WITHIN 5 HOURS)"),
        ("NSEQ(A a, B b, C c)", "SEQ(A a, !B b, C c)"),
        ("ITER(NSEQ(A, B, C), 2)", "SEQ(A, !B, C){2}"),
        ("NSEQ ; Iter", "`NSEQ` ; `Iter`"),
        ("A⊕ x ; (B ; C) ⊕", "A:+ x ; (B ; C):+"),
        ("(A a ; B b) PART-BY (a.k, b.k)", "(A a ; B b) PART BY (a.k, b.k)"),
        ("(A a ; B b) PART BY [a.k, b.k]", "(A a ; B b) PART BY (a.k, b.k)"),
        ("(A ; B) PART BY [k]", "(A ; B) WHERE [k]"),
        ("(A ; B) PART-BY (k, v)", "(A ; B) WHERE [k, v]"),
        ("(A ; B)[k]", "(A ; B) WHERE [k]"),
        ("A+ x[k, v]", "A+ x WHERE [k, v]"),
        ("A k ; B[k]", "A k ; (B FILTER [k])"),
        ("((A ; B)[k]) AS x ; C", "((A ; B) PART BY (k)) AS x ; C"),
        ("A FILTER A.v > 1 IN x ; B", "(A FILTER A.v > 1) AS x ; B"),
        ("A FILTER A.v IN (1, 2) IN x ; B", "(A FILTER A.v IN (1, 2)) AS x ; B"),
        ("A+ x ; B PARTITION-BY k", "A+ x ; B PARTITION BY k"),
        ("A+ x WHERE x[increasing(v)]", "A+ x WHERE INCREASING(x.v)"),
        ("A+ x WHERE x[decreasing(v) AND k = 1]", "A+ x WHERE DECREASING(x.v) AND x[k = 1]"),
        ("A+ x WHERE x[k, increasing(v)]", "A+ x WHERE INCREASING(x.v) AND x[k]"),
        ("A+ x WHERE x[k AND v > 1]", "A+ x WHERE x[k] AND x[v > 1]"),
        ("A+ x WHERE x.v < NEXT(A).v", "A+ x WHERE x.v < NEXT(x).v"),
        ("A+ x WHERE A.v < NEXT(x).v", "A+ x WHERE x.v < NEXT(x).v"),
        ("A a ; B b WHERE a.v ≤ 1 ∧ b.v≥1∨a.k≠b.k", "A a ; B b WHERE a.v <= 1 AND b.v >= 1 OR a.k <> b.k"),
        ("A a ; B b WHERE ¬(a.v = 1)", "A a ; B b WHERE NOT (a.v = 1)"),
        ("A a ; B b WHERE [a.v = 1 OR b.v = 1] AND [k]", "A a ; B b WHERE (a.v = 1 OR b.v = 1) AND [k]"),
        ("A a ; B b WHERE [a[v = 1] ∧ b[v = 1]]", "A a ; B b WHERE a[v = 1] AND b[v = 1]"),
        ("A+ x WHERE [k] ∨ ([v] ∧ x.w > 1)", "A+ x WHERE ([k] OR [v]) AND ([k] OR x.w > 1)"),
        ("A ; B SEMANTICS skip-till-next-match", "A ; B SEMANTICS SKIP TILL NEXT MATCH"),
    ],
)
def test_the_same_formula(printed: str, plain: str) -> None:
    one, other = query(f"PATTERN {printed}"), query(f"PATTERN {plain}")
    assert shown(one.formula) == shown(other.formula)
    assert (one.strategy, one.partition_by, len(one.on_match)) == (
        other.strategy, other.partition_by, len(other.on_match),
    )  # fmt: skip


def shown(formula: Formula) -> object:
    """A formula whose conditions are written alike; filters stand in the order of their text."""
    around = []
    while isinstance(formula, cel.Filter | cel.Compare | cel.Agree):
        around.append(repr(formula).replace(repr(formula.inner), "").replace("(`", "`").replace(")'", "'"))
        formula = formula.inner
    return sorted(around), formula


def test_a_variable_may_be_called_in() -> None:
    assert [v.name for v in query("PATTERN A in ; B+ IN x").variables if not v.mark.startswith("@")] == ["in", "x"]


def test_columns_in_brackets_may_be_called_like_variables() -> None:
    assert shown(query("PATTERN A k ; B WHERE [k]").formula) == shown(query("PATTERN (A k ; B) PART BY (k)").formula)


def test_a_part_asks_its_own_sources_for_the_column() -> None:
    text = "FROM orders AS O, ticks AS T PATTERN {} ORDER BY {} RETURN *"
    schemas = {"orders": {"at": "bigint", "id": "int"}, "ticks": {"at": "bigint", "x": "int"}}
    for pattern in ("((O a ; O b)[id]) ; T", "((O a ; O b) FILTER [id]) ; T", "O+ a ; T t WHERE a[id]"):
        assert bound(text.format(pattern, "at"), schemas)
    marked = text.format("((O a ; T t)[‸id]) ; O", "at")
    check_error(marked, "UNKNOWN_COLUMN", "not a column of t", "asks of every event", schemas=schemas)


def test_return_knows_what_a_part_by_around_the_pattern_agrees_on() -> None:
    assert bound("FROM t PATTERN (A ; B) PART BY (k) ORDER BY ts RETURN k").outputs[0].name == "k"
    check_error("FROM t PATTERN ((A ; B) PART BY (k)) ; C ORDER BY ts RETURN ‸k", "UNQUALIFIED_COLUMN")


# ---------------------------------------------------------------- what is said of several events together


def test_or_is_an_or_of_formulas() -> None:
    formula = query("PATTERN A+ x ; B b WHERE [k] OR x[v] OR b.v > 5").formula
    assert isinstance(formula, cel.Or)
    terms = [node.terms for node in walk(formula) if isinstance(node, cel.Agree)]
    assert terms == [((None, "`k`"),), (("x", "`v`"),)]


def test_what_stands_alone_is_not_asked_twice() -> None:
    formula = query("PATTERN A+ x ; B b WHERE [k] AND ([k] OR [v]) AND ([v] OR b.v > 5)").formula
    assert len([node for node in walk(formula) if isinstance(node, cel.Or)]) == 1
    many = " AND ".join(f"([k] OR b.v > {n})" for n in range(8))
    ors = [node for node in walk(query(f"PATTERN A+ x ; B b WHERE {many}").formula) if isinstance(node, cel.Or)]
    assert len(ors) == 1


def test_many_alternatives_have_a_limit() -> None:
    ors = " AND ".join(f"([k] OR x.v > {n} OR [v])" for n in range(3))
    assert query(f"PATTERN A+ x ; B WHERE {ors}")
    ors = " AND ".join(f"(x{n}[k] OR x{n}[v])" for n in range(9))
    pattern = " ; ".join(f"A x{n}" for n in range(9))
    check_error(f"FROM t PATTERN {pattern} WHERE ‸{ors}{END}", "CONDITION_TOO_LARGE", "the limit is 256", "HAVING")


def test_not_all_agree() -> None:
    pairs = query("PATTERN A a ; B b ; C c WHERE NOT [k] OR a.v > 5").formula
    assert isinstance(pairs, cel.Compare)
    assert [str(side) for side in pairs.sides] == [
        "a: `k` <> b: `k`",
        "a: `k` <> c: `k`",
        "b: `k` <> c: `k`",
        "a: `v` > 5",
    ]
    for of_match in ("A+ a ; B b WHERE NOT [k]", "A a? ; B b WHERE NOT [k]", "A+ a WHERE NOT a[k]"):
        assert len(query(f"PATTERN {of_match}").on_match) == 1
    assert query("PATTERN A a ; B b WHERE NOT [k] OR 1 = 0 AFTER MATCH SKIP PAST LAST ROW").on_match == ()


def test_each_side_has_negated_parts_of_its_own() -> None:
    formula = query("PATTERN SEQ(A a, !B b, C c) WHERE b.v > 5 AND ([k] OR [v])").formula
    numbers = [node.number for node in walk(formula) if isinstance(node, Across)]
    assert len(numbers) == len(set(numbers)) == 2
    inside = [node.inner for node in walk(formula) if isinstance(node, Candidate)]
    assert [node.terms for node in inside if isinstance(node, cel.Agree)] == [((None, "`k`"),), ((None, "`v`"),)]
    assert [filters(node.inner) for node in inside if isinstance(node, cel.Agree)] == ["b | b: v > 5"] * 2
    marked = "FROM t PATTERN SEQ(A a, !B b, C c) FILTER ([k] OR [v]) WHERE ‸b.v > 5" + END
    check_error(marked, "TWO_NEGATED_PARTS")


def walk(formula: Formula) -> list[Formula]:
    return [formula, *(node for child in formula.children() for node in walk(child))]


def test_a_boolean_column_of_a_variable_is_a_condition() -> None:
    schemas = {"t": {"ts": "timestamp", "type": "string", "ok": "boolean"}}
    flag = bound("FROM t PATTERN A a ; B b WHERE a[ok]" + END, schemas)
    assert filters(flag.formula) == "(a ; b) | a: (ok)"
    assert [text for text in flag.warnings if "a[ok = TRUE]" in text and "MIN(a.ok)" in text]
    assert not bound("FROM t PATTERN A a ; B b WHERE a[ok = TRUE]" + END, schemas).warnings
    assert isinstance(bound("FROM t PATTERN A a ; B b WHERE [ok]" + END, schemas).formula, cel.Agree)


@pytest.mark.parametrize(
    ("marked", "condition", "fragment"),
    [
        ("A a ; B b WHERE ‸[k] OR [v] SEMANTICS SKIP TILL NEXT MATCH", "NOT_SUPPORTED_YET", "event by event"),
        ("SEQ(A a, !B b, C c) WHERE ‸[k] OR b.v > 1", "NOT_SUPPORTED_YET", "beside what must not happen"),
        ("SEQ(A a, !B b, C c) WHERE NOT ‸b[k]", "NOT_SUPPORTED_YET", "beside what must not happen"),
        ("A msft ; B b WHERE ‸mstf[k = 1] AND b[v > 1]", "UNKNOWN_VARIABLE", "Did you mean msft?"),
        ("A a ; B b WHERE ‸c[k]", "UNKNOWN_VARIABLE", "In scope are"),
        ("A a ; B b WHERE a[‸foo]", "UNKNOWN_COLUMN", "It has"),
        ("A a ; B b WHERE [‸foo] OR [k]", "UNKNOWN_COLUMN", "It has"),
        ("(A a ; B b) PART BY (‸foo)", "UNKNOWN_COLUMN", "It has"),
        ("(A a ; B b)[‸foo]", "UNKNOWN_COLUMN", "It has"),
        ("(A a ; B b) PART BY (a.k, ‸k)", "NOT_SUPPORTED_YET", "PART BY (x.a, y.b)"),
        ("A a ; B b WHERE a[increasing(‸SUM(v))]", "NOT_SUPPORTED_YET", "inside INCREASING"),
    ],
)
def test_errors_of_conditions(marked: str, condition: str, fragment: str) -> None:
    check_error(f"FROM t PATTERN {marked}{END}", condition, fragment)


def test_having_asks_the_whole_match() -> None:
    having = bound("FROM t PATTERN A+ x ; B b ORDER BY ts HAVING NOT [k] AND x[v] RETURN *").having[0].text
    assert having.count("array_min(__g) < array_max(__g)") == 2
    having = bound("FROM t PATTERN A+ x ORDER BY ts HAVING x[increasing(v)] RETURN *").having[0].text
    assert "__x < __y" in having
    marked = "FROM t PATTERN A+ x ORDER BY ts HAVING ‸PREV(x.v) < 1 RETURN *"
    check_error(marked, "NOT_SUPPORTED_YET", "It can stand in WHERE")


@pytest.mark.parametrize(
    "condition", ["NOT [k]", "[k] OR SUM(a.v) > 1", "NOT a[increasing(v)]", "a[increasing(v)] OR SUM(a.v) > 1"]
)
def test_what_no_run_can_tell_is_asked_of_the_whole(condition: str) -> None:
    """In WHERE of the match, inside the pattern of the part that is filtered."""
    whole = bound(f"FROM t PATTERN A+ a ; B b WHERE {condition} ORDER BY ts RETURN *")
    assert len(whole.on_match) == 1
    part = bound(f"FROM t PATTERN ((A+ a ; B b) FILTER {condition}) ; C ORDER BY ts RETURN *")
    assert [type(node).__name__ for node in part.formula.walk()].count("Judged") == 1


# ---------------------------------------------------------------- PROJECT( : p)


def test_project_that_keeps_nothing() -> None:
    found = query("PATTERN PROJECT( : A+ a ; B)")
    assert isinstance(found.formula, cel.Project)
    assert (found.formula.keep, found.marks, found.variables) == (frozenset(), (), ())
    assert [output.name for output in found.outputs] == ["match_start", "match_end"]
    assert plan(found)
    check_error("FROM t PATTERN PROJECT( : A a) WHERE ‸a.v > 1" + END, "UNKNOWN_VARIABLE", "PROJECT drops a")
    check_error("FROM t PATTERN PROJECT( : A a ; B) ORDER BY ts RETURN ‸SUM(1)", "NOT_SUPPORTED_YET", "SUM(x.a)")


def test_a_window_around_a_projection_is_over_all_its_events() -> None:
    assert not query("PATTERN PROJECT( : A ; B) WITHIN 5 MINUTES").warnings
    assert not query("PATTERN (PROJECT(B : A ; B) WITHIN 5 MINUTES) ; C").warnings
    assert query("PATTERN PROJECT( : A) WITHIN 5 MINUTES").warnings


# ---------------------------------------------------------------- what others write

HINTS = [
    ("FROM t PATTERN A a ; B b FILTER ‸a[v > 1] AND b[v > 1]", "UNKNOWN_VARIABLE", "Write (A a ; B b) FILTER"),
    ("FROM t PATTERN A : B b FILTER ‸A.v > 1", "UNKNOWN_VARIABLE", "FILTER binds B b alone. Write (A : B b) FILTER"),
    ("FROM t PATTERN SEQ(A a, B b FILTER b.v > ‸a.v, C)", "UNKNOWN_VARIABLE", "Write (A a ; B b) FILTER"),
    ("FROM t PATTERN A a ; B b FILTER ‸c.v > 1", "UNKNOWN_VARIABLE", "In scope are"),
    ("FROM t PATTERN A a WHERE a[v IN ‸RANGE (1, 2 + 1)]", "UNEXPECTED_TOKEN", "Write BETWEEN 1 AND 2 + 1."),
    ("FROM t PATTERN A a WHERE a.v IN ‸RANGE(1, 2)", "UNEXPECTED_TOKEN", "Write BETWEEN 1 AND 2."),
    ("FROM t PATTERN A a WHERE a.v NOT IN ‸{1, 2}", "UNEXPECTED_TOKEN", "Write IN (1, 2)."),
    ("FROM t PATTERN A a WHERE a.v IN ‸{1..5}", "UNEXPECTED_TOKEN", "BETWEEN 1 AND 5"),
    ("FROM t PATTERN A a WHERE a.v > 1 ‸&& a.k = 1", "UNEXPECTED_TOKEN", "Write AND."),
    ("FROM t PATTERN A a WHERE a.v ‸=< 1", "UNEXPECTED_TOKEN", "Write <=."),
    ("FROM t PATTERN A a ; B b WHERE a.v ‸! = b.v", "UNEXPECTED_TOKEN", "Found '! =', expected a comparison"),
    ("FROM t PATTERN A a WHERE a.v ‸< > 1", "UNEXPECTED_TOKEN", "Write <>."),
    ("FROM t PATTERN A a WHERE a.v ‸> = 1", "UNEXPECTED_TOKEN", "Write >=."),
    ("FROM t PATTERN A a WHERE a.v > 1 ‸| | a.v < 0", "UNEXPECTED_TOKEN", "OR between conditions."),
    ("FROM t ‸MATCH (A a ; B b)", "UNKNOWN_CLAUSE", "Write PATTERN"),
    ("FROM t ‸MATCH A a ; B b", "UNKNOWN_CLAUSE", "Write PATTERN"),
    ("FROM t WHERE v > 1 ‸find A", "UNKNOWN_CLAUSE", "Write PATTERN"),
    ("FROM t ‸SEQ(A a, B b)", "MISSING_CLAUSE", "Write PATTERN SEQ(…)."),
    ("FROM t PATTERN A a WHERE a.v ‸=> 1", "UNEXPECTED_TOKEN", "Write >=."),
    ("FROM t PATTERN A a WHERE a.type ‸=~ 'x.*'", "UNEXPECTED_TOKEN", "Write RLIKE"),
    ("FROM t PATTERN A a WHERE a.type IS ‸'x'", "UNEXPECTED_TOKEN", "compared by '='"),
    ("FROM t PATTERN A a ; B b WHERE b.ts - a.ts < ‸5 MINUTES", "UNEXPECTED_TOKEN", "INTERVAL 5 MINUTES"),
    ("FROM t PATTERN A a ; B b PARTITION BY ‸[k]", "UNEXPECTED_TOKEN", "PARTITION BY k."),
    ("FROM t PATTERN A a ; B b WITHIN 10 ‸[ts]", "BAD_WINDOW", "write ORDER BY ts WITHIN"),
    ("FROM t PATTERN A a ; B b WITHIN 10 MINUTES ‸[ts]", "BAD_WINDOW", "write ORDER BY ts WITHIN"),
    ("FROM t PATTERN A a ; (B b WITHIN 10 MINUTES ‸SLIDE 30 SECONDS)", "NOT_SUPPORTED_YET", "whole pattern"),
    ("FROM t PATTERN A+ a ‸GROUPBY k", "UNKNOWN_CLAUSE", "Write GROUP BY."),
    ("FROM t PATTERN A ‸> B", "FOREIGN_SYNTAX", "Write A -> B"),
    ("FROM t PATTERN SEQ(A, ‸~B, C)", "FOREIGN_SYNTAX", "!A"),
    ("FROM t PATTERN A ; B SEMANTICS ‸ANY", "UNKNOWN_STRATEGY", "SKIP TILL ANY MATCH"),
    ("FROM t PATTERN A ; B SEMANTICS ‸any", "UNKNOWN_STRATEGY", "NXT (the earliest events)"),
    ("FROM t PATTERN NEXT(‸A ; B)", "NEXT_OF_TYPE", "strategy on whole patterns is NXT(p)"),
    ("FROM t PATTERN A ; NEXT(‸B+ b)", "NEXT_OF_TYPE", "NEXT(R r)"),
    ("FROM t PATTERN A ; NEXT(‸B OR C)", "NEXT_OF_TYPE", "NEXT(R r)"),
    ("FROM t PATTERN ‸every (A a -> B b)", "FOREIGN_SYNTAX", "every match is given"),
    ("FROM t PATTERN A -> ‸every b=B", "FOREIGN_SYNTAX", "every match is given"),
    ("FROM t PATTERN ‸[every a=A -> b=B]", "FOREIGN_SYNTAX", "SELECT … FROM PATTERN"),
    ("FROM t PATTERN A ; B ‸ALL ROWS PER MATCH", "UNKNOWN_CLAUSE", "SELECT inline(m)"),
    ("FROM t PATTERN ‸AND(A a, B b)", "UNEXPECTED_TOKEN", "ALL(A a, B b)"),
    ("FROM t PATTERN ‸OR(A a, B b)", "UNEXPECTED_TOKEN", "ANY(A a, B b)"),
    ("FROM t PATTERN SEQ‸[A a, B b]", "UNEXPECTED_TOKEN", "Write SEQ(…)."),
    ("FROM t PATTERN [A‸, B]", "UNEXPECTED_TOKEN", "expected ']'"),
    ("FROM t PATTERN A a‸[v > 1] ; B", "FOREIGN_SYNTAX", "a FILTER condition"),
    ("FROM t PATTERN (A ; B)‸[v > 1]", "FOREIGN_SYNTAX", "(p) FILTER condition"),
    ("FROM t PATTERN A‸[]", "FOREIGN_SYNTAX", "A FILTER condition"),
    ("FROM t PATTERN AGG( ‸; A)", "UNEXPECTED_TOKEN", "y : name = aggregate"),
    ("FROM t PATTERN A PART-BY ‸k", "UNEXPECTED_TOKEN", "PART BY (a)"),
    ("FROM t PATTERN A a WHERE a.name = ‸“x”", "UNEXPECTED_TOKEN", "as a keyboard does"),
    ("FROM t PATTERN SEQ(A+ a, B b) WHERE ‸skip_till_next_match(a, b) { [k] }", "FOREIGN_SYNTAX", "SEMANTICS"),
    ("‸EVENT SEQ(A a, B b) WHERE [k]", "UNKNOWN_CLAUSE", "Write PATTERN."),
    ("FROM t PATTERN A ‸&& B", "FOREIGN_SYNTAX", "'&&' is not"),
    ("FROM t PATTERN A a ‸— B b", "FOREIGN_SYNTAX", "Write A -> B"),
    ("FROM t PATTERN A WITHOUT ‸B", "FOREIGN_SYNTAX", "SEQ(A, !B, C)"),
    ("FROM t PATTERN SEQ(A a ‸B b)", "FOREIGN_SYNTAX", "Parts of SEQ stand between commas: SEQ(A a, B b)."),
    ("FROM t PATTERN SEQ(A a, (B b ‸C c))", "FOREIGN_SYNTAX", "A : B : C"),
    ("FROM t PATTERN A{2,3‸,4}", "UNEXPECTED_TOKEN", "{2,4}"),
    ("FROM t PATTERN A WITHIN ‸MINUTES 10", "BAD_WINDOW", "The number comes first: 10 MINUTES."),
    ("FROM t PATTERN A ; B WITHIN 9 ‸WITH TIMEOUTS", "BAD_WINDOW", "after the last item of RETURN"),
    ("FROM t PATTERN A ; B WITHIN 9 HOURS ‸WITH TIMEOUTS", "BAD_WINDOW", "after the last item of RETURN"),
    ("FROM t PATTERN A WITHIN ‸events 5", "BAD_WINDOW", "5 EVENTS."),
    ("FROM t PATTERN A ; B AFTER MATCH SKIP TO ‸NEXT", "BAD_CLAUSE", "SKIP TO NEXT ROW"),
    ('‸Pattern.begin("a").next("b").within(10)', "FOREIGN_SYNTAX", "PATTERN A a : B b"),
    ('‸begin("a").followedBy("b")', "FOREIGN_SYNTAX", "Flink"),
    ("FROM t DEFINE Up AS v > ‸PREV(v) PATTERN Up+ u", "NOT_SUPPORTED_YET", "WHERE x[i].v > x[i-1].v"),
]  # fmt: skip


@pytest.mark.parametrize(("marked", "condition", "fragment"), HINTS)
def test_hints(marked: str, condition: str, fragment: str) -> None:
    error = check_error(marked + END, condition)
    assert fragment in str(error)


def test_names_that_are_words_of_other_languages() -> None:
    check_error("FROM t match WHERE v > 1 AND find(v) RETURN *‸", "MISSING_CLAUSE", "PATTERN SEQ(A a, B b)")
    read = "PATTERN A find ; B b WHERE find.v < b.v AND array(b.v)::ARRAY<INT> = array(1)"
    assert query(read).variables[0].name == "find"
    assert query("PATTERN A a WHERE (a.v > 1) = !(a.k > 1) AND a.v < -a.v").types


@pytest.mark.parametrize(
    ("marked", "fragment"),
    [("‸CLASSIFIER()", "a column of RETURN *"), ("‸match_number()", "row_number()"), ("‸MATCH_ROWTIME()", "match_end"),
     ("A.v, ‸A[v]", "A.x")],
)  # fmt: skip
def test_hints_of_return(marked: str, fragment: str) -> None:
    check_error(f"FROM t PATTERN A ; B ORDER BY ts RETURN {marked}", "NOT_SUPPORTED_YET", fragment)


def test_a_type_may_be_called_every() -> None:
    assert parse("PATTERN every ; B RETURN *")
    assert parse("PATTERN every AS x -> every+ RETURN *")


# ---------------------------------------------------------------- skip points


@pytest.mark.parametrize(
    ("pattern", "skip", "fragments"),
    [
        ("A a ; B b", "TO FIRST b", []),
        ("A a ; B b", "TO LAST b", []),
        ("A a ; B b", "TO FIRST a", ["every match begins with that event"]),
        ("A a ; B b", "TO a", ["every match begins with that event"]),
        ("A a ; B* b ; C c", "TO FIRST b", ["after a match without b"]),
        ("A a ; B{0,2} b ; C c", "TO LAST b", ["after a match without b"]),
        ("A+ a ; B b", "TO LAST a", ["after a match that begins with that event"]),
        ("A{2,} a ; B b", "TO LAST a", []),
        ("A{2} a ; B b", "TO LAST a", []),
        ("A? a ; B b", "TO LAST b", ["after a match that begins with that event"]),
        ("(A a OR B b) ; C c", "TO LAST b", ["begins with that event", "after a match without b"]),
        ("A a ALL B b", "TO LAST b", ["after a match that begins with that event"]),
        ("(A a ; B b) AS m", "TO FIRST m", ["every match begins with that event"]),
        ("(A a ; B b) AS m", "TO LAST m", []),
        ("SEQ(A a, !B b, C c)", "TO LAST c", []),
        ("PROJECT(b : A a ; B b)", "TO LAST b", []),
        ("(A a ; B b) FILTER b.v > 1", "TO FIRST b", []),
        ("A a ; B b", "PAST LAST ROW", []),
    ],
)
def test_skip_points_that_stay_where_they_are(pattern: str, skip: str, fragments: list[str]) -> None:
    found = [
        text for text in query(f"PATTERN {pattern} AFTER MATCH SKIP {skip}").warnings if "AFTER MATCH SKIP" in text
    ]
    assert len(found) == len(fragments)
    for text, fragment in zip(found, fragments, strict=True):
        assert fragment in text
        assert "PAST LAST ROW" in text


def test_shapes_of_a_part_that_keeps_nothing() -> None:
    formula = cel.Project(
        cel.Sequence(cel.Event("A", frozenset({"a"})), cel.Event("B", frozenset({"b"}))), frozenset({"b"})
    )
    assert shapes_of(formula, "a") == {(False, False, True)}
    assert shapes_of(cel.Repeat(formula, 0, 2), "b") == {None, (False, True, True)}


def test_signs_at_the_ends_of_a_pattern() -> None:
    assert is_ours("FROM t PATTERN ¬B ; A WITHIN 5 MINUTES ORDER BY ts RETURN *")
    check_error("FROM t PATTERN A⊕ ‸RETRUN *", "MISSPELT_CLAUSE", "RETURN")
