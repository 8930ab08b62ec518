"""Every condition of ParseError, BindError and PlanError: its place, and what it says and proposes."""

from __future__ import annotations

import pickle

import pytest
from queries import SCHEMAS, check_error, check_place

import cersql
import planner.automata.cea
from cersql.api import SchemaCatalog
from cersql.binding.bind import bind
from cersql.errors import BindError, ParseError, nearest, suggestion
from cersql.language.parse import parse
from planner.automata.cea import to_cea
from planner.cel import Event, Repeat, Sequence
from planner.errors import PlanError
from runtime.errors import Span

END = " ORDER BY ts RETURN *"

PARSE = [
    ("‸A ; B RETURN *", "UNEXPECTED_TOKEN", "Found A, expected a clause", "FROM t PATTERN"),
    ("FROM t PATTERN A‸", "MISSING_CLAUSE", "no RETURN clause", "RETURN *"),
    ("FROM t PATTERN A ‸PATTERN B RETURN *", "DUPLICATE_CLAUSE", "second PATTERN", "Write one"),
    ("FROM t PATTERN A ‸WHERE RETURN *", "EMPTY_CLAUSE", "WHERE is empty", "back-ticks"),
    ("FROM t PATTERN (‸) RETURN *", "EMPTY_PATTERN", "The pattern is empty", ""),
    ("FROM t PATTERN A ‸WHER a.x > 1 RETURN *", "MISSPELT_CLAUSE", "WHER is no clause", "Did you mean WHERE?"),
    ("FROM t PATTERN A ‸MEASURES A.x RETURN *", "UNKNOWN_CLAUSE", "MEASURES", "Write RETURN"),
    ("FROM t PATTERN A ‸UNLES B RETURN *", "UNKNOWN_OPERATOR", "UNLES", "Did you mean UNLESS?"),
    ("FROM t PATTERN A RETURN * ; ‸PATTERN B RETURN *", "TRAILING_TEXT", "follows the ';'", "one statement at a time"),
    ("FROM t PATTERN ‸(A RETURN *", "UNCLOSED", "( is never closed", ""),
    ("FROM t PATTERN A‸) RETURN *", "UNOPENED", ") closes nothing", ""),
    ("FROM t PATTERN " + "(" * 100 + "‸(A" + ")" * 101 + " RETURN *", "TOO_DEEP", "more than 100 deep", ""),
    (
        "FROM t PATTERN SEQ(A a ‸AND B b, C c) RETURN *",
        "COMMA_EXPECTED",
        "a comma separates the parts of SEQ",
        "SEQ(A a",
    ),
    ("FROM t PATTERN A ; ‸NSEQ(A, B) RETURN *", "NSEQ_PARTS", "NSEQ has 2 parts", "SEQ(A, !B, C)"),
    ("FROM t PATTERN A RETURN A.x AS ‸limit", "RESERVED_NAME", "limit is a keyword", "`limit`"),
    ("FROM t PATTERN A+‸? RETURN *", "RELUCTANT_LOOP", "reluctant loop", "("),
    ("FROM t PATTERN A ‸| B RETURN *", "FOREIGN_SYNTAX", "'|' is not written like this", "OR"),
    (
        "SELECT * FROM t ‸MATCH_RECOGNIZE (PATTERN (A) DEFINE A AS x > 1)",
        "MATCH_RECOGNIZE_TEXT",
        "not supported yet",
        "PATTERN",
    ),
    ("FROM t PATTERN A a WHERE a‸[0].x > 1 ORDER BY ts RETURN *", "BAD_INDEX", "[0] is no index", "a number from 1"),
    ("FROM t PATTERN A RETURN * LIMIT ‸x", "BAD_NUMBER", "expected a whole number", "LIMIT 10"),
    ("FROM t PATTERN A WITHIN ‸MINUTES RETURN *", "BAD_WINDOW", "Found MINUTES in WITHIN", ""),
    ("SELECT a.x FROM PATTERN [a=A -> ‸every b=B]", "NOT_SUPPORTED_YET", "'every' after '->'", "SELECT a.x"),
    ("SELECT * FROM t WHERE A FILTER A[abs(v) ‸/ 2 > 1]", "OTHER_MEANING", "has another meaning in CEQL", "x div y"),
]

BIND = [
    ("FROM ‸trade PATTERN A" + END, "UNKNOWN_SOURCE", "no table or view trade", "There are: orders, payments"),
    (
        "‸PATTERN A ; B" + END,
        "NO_SOURCE",
        "no type of its pattern (A, B) is a table",
        "Write FROM table before PATTERN",
    ),
    ("FROM t, ‸t PATTERN A" + END, "SAME_SOURCE_NAME", "Two sources are called t", "an alias"),
    ("FROM ‸twice PATTERN A" + END, "DUPLICATE_COLUMN", "twice has two columns called X", "in a subquery"),
    (
        "FROM orders, payments PATTERN orders ; ‸paymets" + END,
        "UNKNOWN_TYPE",
        "no event type paymets",
        "mean payments?",
    ),
    ("FROM orders DEFINE Big AS price > 1 PATTERN ‸Bog" + END, "UNKNOWN_TYPE", "no event type Bog", "mean Big?"),
    ("FROM orders PATTERN ‸A" + END, "NO_TYPE_COLUMN", "no row is of the type A", "FROM table TYPE column"),
    ("FROM t DEFINE A AS v > 1, B AS v > 2, ‸a AS v > 3 PATTERN A" + END, "DEFINED_TWICE", "a is defined twice", "OR"),
    ("FROM t PATTERN A a ; B bid WHERE\n  ‸bd.v > 1" + END, "UNKNOWN_VARIABLE", "no variable bd", "a, bid, A, B. Did"),
    ("FROM t PATTERN A a WHERE a.‸nam = 'x'" + END, "UNKNOWN_COLUMN", "nam is not a column of a", "mean name?"),
    ("FROM t PATTERN A a WHERE ‸v > 1" + END, "UNQUALIFIED_COLUMN", "v can have another value", "a.v"),
    (
        "FROM t PATTERN A a ; A b WHERE ‸A.v > 1 OR a.v > 2" + END,
        "AMBIGUOUS_VARIABLE",
        "the variable a or all",
        "rename a",
    ),
    ("FROM t PATTERN A ‸b ; B x" + END, "ALIAS_IS_TYPE", "b looks like the event type B", "b1"),
    ("FROM t PATTERN Sell ; ‸SELL" + END, "SAME_NAME", "SELL and Sell", "SELL AS x"),
    ("FROM t PATTERN A k PARTITION BY k ORDER BY ts RETURN ‸*", "COLUMN_CLASH", "partition column k", "k AS k_1"),
    ("FROM t PATTERN A match_end ORDER BY ts RETURN ‸*", "COLUMN_CLASH", "the variable match_end", "rename"),
    (
        "FROM t PATTERN A+ a ORDER BY ts RETURN COUNT(a) AS a HAVING ‸a > 1",
        "AMBIGUOUS_NAME",
        "a could be the events of a or a column of RETURN",
        "another name with AS",
    ),
    (
        "FROM t PATTERN A a ; B b ORDER BY ts RETURN a.v, b.v HAVING ‸v > 1",
        "AMBIGUOUS_NAME",
        "one column of RETURN or another",
        "with AS",
    ),
    ("FROM t PATTERN A+ a ORDER BY ts RETURN ‸MAX_BY(a.v)", "AGGREGATE_ARGUMENTS", "MAX_BY is not called", ""),
    ("FROM t PATTERN A+ a ORDER BY ts RETURN ‸SUM(a.v, a.w)", "AGGREGATE_ARGUMENTS", "SUM is not called", ""),
    (
        "FROM t PATTERN A+ a ORDER BY ts RETURN ‸HLL_SKETCH_AGG(a.v)",
        "NOT_OF_A_MATCH",
        "HLL_SKETCH_AGG cannot be computed",
        "GROUP BY only",
    ),
    (
        "FROM t PATTERN A+ a ORDER BY ts RETURN a.v, row_number() ‸OVER (ORDER BY a.v)",
        "ONE_ROW",
        "A window function (OVER)",
        "Put a SELECT around it",
    ),
    ("FROM t PATTERN A+ a ORDER BY ts RETURN SUM(a.v) ‸OVER ()", "ONE_ROW", "OVER", "Put a SELECT around it"),
    ("FROM t PATTERN A+ a ORDER BY ts RETURN 1 + ‸explode(a.arr)", "ONE_ROW", "EXPLODE, which makes", "SELECT"),
    ("FROM t PATTERN A a WHERE ‸a > 1" + END, "EVENT_NOT_VALUE", "a stands for whole events", "a.ts"),
    ("FROM t PATTERN A a ORDER BY ts RETURN ‸MAX(a).v", "EVENT_NOT_VALUE", "MAX(a) stands for", "MAX(a.v)"),
    ("FROM t PATTERN A a WHERE a.v > 1 ‸AND" + END, "EMPTY_CONDITION", "is empty", "AND stands between two"),
    (
        "FROM t PATTERN A a ; B b WHERE ‸" + " OR ".join(f"(a.v > {i} AND b.v > {i})" for i in range(9)) + END,
        "CONDITION_TOO_LARGE",
        "512 alternatives, the limit is 256",
        "DEFINE",
    ),
    (
        "FROM t PATTERN A a ; B b WHERE ‸" + " AND ".join(f"a.v > b.v + {i}" for i in range(257)) + END,
        "CONDITION_TOO_LONG",
        "joins 257 conditions on several events by AND, the limit is 256",
        "DEFINE",
    ),
    (
        "FROM t PATTERN A a WHERE ‸" + " AND ".join(f"a.v <> {i}" for i in range(4097)) + END,
        "CONDITION_TOO_LONG",
        "joins 4097 conditions by AND, the limit is 4096",
        "DEFINE",
    ),
    ("FROM t PATTERN A a RETURN *‸", "ORDER_MISSING", "in which order", "cersql.orderBy"),
    ("FROM t PATTERN A a ORDER BY ‸ts DESC RETURN *", "DESCENDING", "which is ascending", "SELECT * FROM (PATTERN"),
    ("FROM t PATTERN A a ORDER BY ts, ‸m RETURN *", "NOT_ORDERABLE", "m is map<string,int>, and ORDER BY", ""),
    ("FROM t PATTERN A a PARTITION BY ‸m" + END, "NOT_ORDERABLE", "and PARTITION BY cannot compare", ""),
    ("FROM t PATTERN A a WITHIN ‸500" + END, "WINDOW_UNIT", "ts is timestamp, which needs a duration", "500 SECONDS"),
    ("FROM t PATTERN A ALL ‸B?" + END, "MAY_BE_EMPTY", "each side of ALL needs an event", "A+ instead of A*"),
    ("FROM t PATTERN A ; NEXT(‸B ; C)" + END, "NEXT_OF_TYPE", "takes one event type", "NEXT(R r)"),
    ("FROM t PATTERN ‸!A" + END, "ONLY_ABSENCE", "Here nothing happens", "SEQ(A, !B, C)"),
    ("FROM t PATTERN A : ‸!B" + END, "ABSENCE_BESIDE_COLON", "next to ':'", "A -> !B -> C"),
    ("FROM t PATTERN (A ; ‸!B) OR C WITHIN 5 EVENTS" + END, "ABSENCE_AT_EDGE", "at the end of a sequence", "SEQ(A"),
    ("FROM t PATTERN A ; ‸!B" + END, "ABSENCE_WITHOUT_WINDOW", "at the end of the pattern needs", "WITHIN 10 MINUTES"),
    ("FROM t PATTERN A? ; ‸!B ; C" + END, "ABSENCE_BESIDE_NOTHING", "before this '!' may match nothing", "OR"),
    (
        "FROM t PATTERN A ; B? ; ‸!C WITHIN 5 SECONDS" + END,
        "ABSENCE_BESIDE_NOTHING",
        "before this '!' may match nothing",
        "UNION ALL",
    ),
    ("FROM t PATTERN SEQ(A x, !B ‸x, C)" + END, "NAME_IN_NEGATED_PART", "The variable x stands", "another name"),
    ("FROM t PATTERN SEQ(A, !B b, C) ORDER BY ts RETURN ‸b.v", "NEGATED_VARIABLE", "b must not happen", "in WHERE"),
    (
        "FROM t PATTERN SEQ(A, !B x, C, !B y, D) WHERE x.v > ‸y.v" + END,
        "TWO_NEGATED_PARTS",
        "for both: x and y",
        "join them with AND",
    ),
    (
        "FROM t PATTERN SEQ(A a, !B b, C) WHERE a.v > 1 OR ‸b.v > 1" + END,
        "NEGATED_OR",
        "on b, which must not",
        "one with !(b …), OR one with the other",
    ),
    ("FROM t PATTERN A SEMANTICS ‸skip_till_nxt_match" + END, "UNKNOWN_STRATEGY", "skip_till_nxt", "SKIP TILL NEXT"),
    ("FROM t PATTERN ‸A UNLESS B SEMANTICS SKIP TILL NEXT MATCH" + END, "STRATEGY_PATTERN", "UNLESS cannot", "NXT"),
    ("FROM t PATTERN A CONSUME BY ‸SOME" + END, "BAD_CLAUSE", "expected NONE, PARTITION or ANY", ""),
    (
        "FROM t PATTERN A SEMANTICS MAX ‸AFTER MATCH SKIP PAST LAST ROW" + END,
        "CLAUSES_EXCLUDE",
        "AFTER MATCH SKIP cannot stand beside SEMANTICS",
        "Beside AFTER MATCH SKIP can stand NXT",
    ),
    ("FROM t PATTERN A ORDER BY ts RETURN ‸match_status", "NO_TIMEOUTS", "WITH TIMEOUTS only", "RETURN … WITH"),
    (
        "FROM t PATTERN (A a ; B b ; C) PART BY (‸a.k, b.k)" + END,
        "PART_BY_COVERS",
        "C",
        "List an attribute of C as well: C.…",
    ),
    ("FROM t PATTERN A a ORDER BY ts RETURN ‸PREV(a.v)", "NOT_SUPPORTED_YET", "PREV", ""),
]
TWICE = {"twice": {"x": "int", "X": "int", "ts": "timestamp"}}


@pytest.mark.parametrize("case", [*PARSE, *BIND], ids=lambda case: f"{case[1]}: {case[0][:60]}")
def test_condition(case: tuple[str, str, str, str]) -> None:
    marked, condition, message, hint = case
    error = check_error(marked, condition, message, hint, schemas=SCHEMAS | TWICE)
    assert message in error.message
    assert hint in (error.hint or "")


# About statements and parameters, which take a session: spark_ext/test_functions.py, spark_ext/test_commands.py and
# test_parameters.py.
STATEMENTS = {
    "UNKNOWN_PATTERN", "UNKNOWN_PARAMETER", "FUNCTION_ARGUMENTS", "PARAMETER_NAME", "PARAMETER_TYPE",
    "UNUSED_PARAMETER", "FUNCTION_WITH_SOURCE", "UNBOUND_PARAMETER", "ARGUMENT_COUNT",
}  # fmt: skip


def test_all_conditions_are_here() -> None:
    # DUPLICATE_PARAMETER is of CREATE PATTERN FUNCTION: test_statements.
    assert {case[1] for case in PARSE} | {"DUPLICATE_PARAMETER"} == set(ParseError.conditions)
    # FROM_BESIDE_DATAFRAME takes a DataFrame: test_sources; BARE_WORD is of cersql.compile: test_compile.
    bound = {case[1] for case in BIND} | {"FROM_BESIDE_DATAFRAME", "BARE_WORD"}
    streams = {
        "STREAM_RUNNING",
        "UNKNOWN_STREAM",
        "NO_STREAM",
        "STREAM_EXISTS",
        "LATE_OF_WHAT",
    }  # test_pattern_streams, test_late_rows
    keys = {"ROW_EXPRESSION", "CONSTANT_KEY", "UNSTEADY_KEY"}  # test_row_keys
    rows = {"ROWS_AND_EVENTS", "ROWS_OF_SOURCES"}  # test_source_rows
    sources = {"NO_COMMON_TYPE", "KEY_TYPES"} | keys | rows  # test_columns
    created = {"AGG_VARIABLE", "AGG_NAME", "AGG_ATTRIBUTES", "MIXED_VARIABLE"}  # test_rounds
    groups = {"NOT_GROUPED", "NOT_OF_GROUPS", "GROUP_KEY"}  # test_groups, here and through Spark
    reports = {"OTHER_COLUMNS", "STREAM_REPORT"}  # test_report, through Spark
    own = {"AGGREGATE_NAME", "AGGREGATE_FUNCTION", "AGGREGATE_LAW", "AGGREGATE_TYPE"}  # test_own_aggregates
    assert bound | STATEMENTS | streams | sources | created | groups | reports | own == set(BindError.conditions)
    planned = {"AUTOMATON_LIMIT", "TOO_COMPLEX", "TRANSITION_LIMIT"}  # below
    planned |= {"STREAM_UNBOUNDED", "EMIT_ON_ARRIVAL"}  # test_streaming, test_emission
    assert set(PlanError.conditions) == planned | set(PLAN)


def test_automaton_limit_names_both_numbers() -> None:
    a = Event("A", frozenset({"A"}))
    with pytest.raises(PlanError) as raised:
        to_cea(Sequence(a, Sequence(a, a)), max_states=5)
    assert raised.value.condition == "AUTOMATON_LIMIT"
    assert "needs more than 5 states, the limit is 5" in raised.value.message
    assert "Shorten" in (raised.value.hint or "")


def test_transition_limit_names_both_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planner.automata.cea, "MAX_TRANSITIONS", 20)
    a = Event("A", frozenset({"A"}))
    assert to_cea(Repeat(a, 0, 3)).n_states
    for formula in (Repeat(a, 0, 9), Sequence(Repeat(a, 1, 3), Repeat(Repeat(a, 0, 2), 1, 3))):
        with pytest.raises(PlanError) as raised:
            to_cea(formula)
        assert raised.value.condition == "TRANSITION_LIMIT"
        assert int(raised.value.parameters["found"]) > 20
        assert raised.value.message.endswith("transitions, the limit is 20.")
        assert "Shorten" in (raised.value.hint or "")


PLAN = {
    "LABEL_LIMIT": f"FROM t PATTERN ALL({', '.join(f'T{i} a{i}' for i in range(22))}) ORDER BY ts RETURN *",
    "NESTING_LIMIT": f"FROM t PATTERN {'NXT(' * 9}A a{' ; B)' * 9} ORDER BY ts RETURN *",
    "TIMEOUTS": "FROM t PATTERN SEQ(A a, !B b, C c) UNLESS D WHERE a.k < b.k ORDER BY ts RETURN * WITH TIMEOUTS",
}


@pytest.mark.parametrize("condition", PLAN)
def test_what_cannot_be_planned_is_said_at_the_pattern(condition: str) -> None:
    text = PLAN[condition]
    with pytest.raises(PlanError) as raised:
        cersql.compile(text, {name: dict(columns) for name, columns in SCHEMAS.items()})
    check_place(raised.value, text, text.index("PATTERN"), condition)
    assert raised.value.hint


def test_what_nests_too_deep_to_be_planned() -> None:
    condition = " AND ".join(f"a.v > b.v + {i}" for i in range(250))
    with pytest.raises(PlanError) as raised:
        cersql.compile(f"FROM t PATTERN A a ; B b WHERE {condition}{END}", SCHEMAS)
    assert raised.value.condition == "TOO_COMPLEX"
    assert raised.value.column == 8  # the pattern


def test_place_in_a_longer_text() -> None:
    text = "SELECT * FROM (\n\tFROM t PATTERN A a\n\tWHERE b.v > 1 ORDER BY ts RETURN *\n) AS m"
    start, end = text.index("FROM t"), text.index("\n)")
    tree = parse(text, start=start, end=end)
    with pytest.raises(BindError) as raised:
        bind(tree, SchemaCatalog(SCHEMAS))
    check_place(raised.value, text, text.index("b.v"), "UNKNOWN_VARIABLE")
    assert str(raised.value).endswith("\tWHERE b.v > 1 ORDER BY ts RETURN *\n\t      ^")


def test_missing_order_points_at_the_end_of_the_query_alone() -> None:
    text = "SELECT * FROM (FROM t PATTERN A a RETURN a.v + 1) AS m"
    tree = parse(text, start=text.index("FROM t"), end=text.index(") AS"))
    with pytest.raises(BindError) as raised:
        bind(tree, SchemaCatalog(SCHEMAS))
    check_place(raised.value, text, text.index(") AS"), "ORDER_MISSING")


def test_errors_cross_processes() -> None:
    error = BindError("UNKNOWN_VARIABLE", span=Span(3, 4), text="abc d", hint="In scope are: x.", name="d")
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.parameters) == (BindError, str(error), {"name": "d"})


def test_nearest_and_suggestion() -> None:
    assert nearest("PRISE", ["size", "price"]) == "price"
    assert nearest("xyz", ["size", "price"]) is None
    assert suggestion("prise", ["size", "price"], "It has") == "It has: size, price. Did you mean price?"
    assert suggestion("x", [], "It has") == "It has: (none)."
    assert suggestion("prise", ["size"], "It has", ["price"]) == "It has: size. Did you mean price?"


def test_of_names_that_differ_in_case_the_one_written_like_it_is_nearest_else_the_first() -> None:
    names = ["a", "b", "A", "B"]
    assert (nearest("bb", names), nearest("BB", names), nearest("Bb", names)) == ("b", "B", "b")
