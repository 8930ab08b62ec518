"""SEMANTICS, CONSUME BY, AFTER MATCH SKIP and WITH TIMEOUTS."""

from __future__ import annotations

import pytest
from queries import bound, check_error

from planner.physical import plan
from planner.query import REACHED_COLUMN, STATUS_COLUMN, Query, Skip
from runtime.program import Later
from runtime.program import Skip as RuntimeSkip

END = " ORDER BY ts RETURN *"


def query(clauses: str, pattern: str = "A a ; B b") -> Query:
    return bound(f"FROM t PATTERN {pattern} {clauses} ORDER BY ts RETURN *")


@pytest.mark.parametrize(
    ("written", "strategy"),
    [
        ("ALL", "ALL"), ("skip till  any match", "ALL"), ("SKIP_TILL_ANY_MATCH", "ALL"), ("skip-till-any-match", "ALL"),
        ("SKIP TILL NEXT MATCH", "NEXT_MATCH"), ("skip_till_next_match", "NEXT_MATCH"),
        ("STRICT CONTIGUITY", "STRICT"), ("strict", "STRICT"), ("contiguous", "STRICT"),
        ("NXT", "NXT"), ("next", "NXT"), ("LAST", "LAST"), ("Max", "MAX"),
    ],
)  # fmt: skip
def test_strategies_by_all_their_names(written: str, strategy: str) -> None:
    assert query(f"SEMANTICS {written}").strategy == strategy


def test_defaults() -> None:
    plain = query("CONSUME BY none")
    assert (plain.strategy, plain.consume, plain.skip, plain.timeouts) == ("ALL", "NONE", None, False)
    assert query("CONSUME BY any").consume == "ANY"
    assert query("CONSUME BY Partition SEMANTICS NXT").consume == "PARTITION"


@pytest.mark.parametrize(
    ("written", "skip"),
    [
        ("PAST LAST ROW", Skip("PAST LAST ROW")), ("to next row", Skip("TO NEXT ROW")),
        ("TO FIRST b", Skip("TO FIRST", "b")), ("TO LAST B", Skip("TO LAST", "b")), ("TO a", Skip("TO LAST", "a")),
        ("TO `a`", Skip("TO LAST", "a")),
    ],
)  # fmt: skip
def test_skips(written: str, skip: Skip) -> None:
    assert query(f"AFTER MATCH SKIP {written}").skip == skip


def test_the_point_of_a_skip_is_in_the_labels() -> None:
    by_type = query("AFTER MATCH SKIP TO FIRST H", "H x ; H y")
    assert by_type.skip == Skip("TO FIRST", "@H")
    assert by_type.marks == ("x", "y", "@H")
    assert query("AFTER MATCH SKIP TO first", "A first ; B last").skip == Skip("TO LAST", "first")


@pytest.mark.parametrize(
    ("marked", "condition", "fragment"),
    [
        ("SEMANTICS ‸skip till nxt match", "UNKNOWN_STRATEGY", "Did you mean SKIP TILL NEXT MATCH?"),
        ("SEMANTICS ‸strickt", "UNKNOWN_STRATEGY", "NXT, LAST, MAX. Did you mean STRICT?"),
        ("SEMANTICS ‸Contigous", "UNKNOWN_STRATEGY", "Did you mean CONTIGUOUS?"),
        ("SEMANTICS ‸skip_till_nex", "UNKNOWN_STRATEGY", "Did you mean SKIP TILL NEXT?"),
        ("CONSUME BY ‸PARTITON", "BAD_CLAUSE", "expected NONE, PARTITION or ANY. Did you mean PARTITION?"),
        ("AFTER MATCH ‸GO ON", "BAD_CLAUSE", "Found GO in AFTER MATCH"),
        ("AFTER MATCH SKIP PAST ‸FIRST ROW", "BAD_CLAUSE", "Found FIRST"),
        ("AFTER MATCH SKIP PAST LAST ROW ‸now", "BAD_CLAUSE", "the next clause"),
        ("AFTER MATCH SKIP ‸OVER b", "BAD_CLAUSE", "Found OVER"),
        ("AFTER MATCH SKIP TO‸", "BAD_CLAUSE", "the name of a variable"),
        ("AFTER MATCH SKIP TO ‸1", "BAD_CLAUSE", "the name of a variable"),
        ("AFTER MATCH SKIP TO FIRST b ‸c", "BAD_CLAUSE", "the next clause"),
        ("AFTER MATCH SKIP TO LAST‸", "BAD_CLAUSE", "a variable after LAST. For example: AFTER MATCH SKIP TO LAST a."),
        ("AFTER MATCH SKIP to first‸", "BAD_CLAUSE", "the name of a variable after FIRST"),
        ("AFTER MATCH SKIP TO ‸`last`", "UNKNOWN_VARIABLE", "no variable last"),
        ("AFTER MATCH SKIP TO LAST ‸ROW", "BAD_CLAUSE", "SKIP PAST LAST ROW"),
        ("AFTER MATCH SKIP TO FIRST ‸bb", "UNKNOWN_VARIABLE", "In scope are: a, b, A, B. Did you mean b?"),
        ("AFTER MATCH SKIP TO LAST ‸BB", "UNKNOWN_VARIABLE", "Did you mean B?"),
        ("SEMANTICS MAX ‸AFTER MATCH SKIP TO NEXT ROW", "CLAUSES_EXCLUDE", "AFTER MATCH SKIP cannot stand beside SEM"),
        ("AFTER MATCH SKIP TO NEXT ROW ‸SEMANTICS MAX", "CLAUSES_EXCLUDE", "SEMANTICS MAX cannot stand beside AFTER"),
        ("AFTER MATCH SKIP TO NEXT ROW ‸SEMANTICS strict", "CLAUSES_EXCLUDE", "LAST, SKIP TILL NEXT MATCH, or none"),
        ("AFTER MATCH SKIP TO NEXT ROW ‸CONSUME BY ANY", "CLAUSES_EXCLUDE", "CONSUME BY cannot stand beside AFTER"),
    ],
)  # fmt: skip
def test_errors(marked: str, condition: str, fragment: str) -> None:
    check_error(f"FROM t PATTERN A a ; B b {marked}{END}", condition, fragment)


def test_defaults_stand_beside_a_skip() -> None:
    assert query("SEMANTICS ALL CONSUME BY NONE AFTER MATCH SKIP TO NEXT ROW").skip


@pytest.mark.parametrize(
    ("strategy", "by"), [("ALL", "ALL"), ("NXT", "NXT"), ("LAST", "LAST"), ("SKIP TILL NEXT MATCH", "NXT")]
)
def test_the_strategies_that_stand_beside_a_skip(strategy: str, by: str) -> None:
    """They say which of the matches that complete together is taken; where all before the end goes, that consumes."""
    for to, consumes in (("PAST LAST ROW", by != "ALL"), ("TO LAST b", False)):
        program = plan(query(f"SEMANTICS {strategy} AFTER MATCH SKIP {to}")).program
        assert program.skip is not None
        assert (program.skip.by, program.consume) == (by, consumes)


def test_consume_beside_a_trailing_absence() -> None:
    start = "FROM t PATTERN SEQ(A, !B) WITHIN 5 EVENTS "
    check_error(
        start + "CONSUME BY ‸ANY" + END, "CLAUSES_EXCLUDE", "CONSUME BY ANY cannot stand beside a '!' at the end"
    )
    assert bound(start + "CONSUME BY NONE" + END)
    assert bound(start + "AFTER MATCH SKIP PAST LAST ROW" + END).skip
    assert bound("FROM t PATTERN SEQ(!B, A, !C, D) WITHIN 5 EVENTS CONSUME BY ANY" + END).consume == "ANY"


@pytest.mark.parametrize(
    ("marked", "construct"),
    [
        ("‸A AND A", "AND"), ("C ; (‸A ALL B)", "ALL"), ("‸A UNLESS B", "UNLESS"), ("A ; ‸START(B)", "START(…)"),
        ("‸NXT(A ; B)", "NXT(…)"), ("‸PROJECT(x : A x ; B)", "PROJECT"), ("(‸A ; B WITHIN 5 EVENTS) ; C", "WITHIN"),
    ],
)  # fmt: skip
def test_skip_till_next_match_knows_no_whole_matches(marked: str, construct: str) -> None:
    check_error(f"FROM t PATTERN {marked} SEMANTICS SKIP TILL NEXT MATCH{END}", "STRATEGY_PATTERN", construct)


def test_skip_till_next_match_takes_the_rest() -> None:
    pattern = "SEQ((A a)+, !X, (B OR C{2,3}) : D?, E) FILTER a.v > 1"
    assert query("SEMANTICS SKIP TILL NEXT MATCH", pattern).strategy == "NEXT_MATCH"


# ---------------------------------------------------------------- timeouts


def test_timeouts_have_two_more_columns() -> None:
    found = bound("FROM t PATTERN A a ; B b ORDER BY ts RETURN * WITH TIMEOUTS")
    assert found.timeouts
    names = ["match_start", "match_end", "match_status", "match_reached", "a", "b"]
    assert [output.name for output in found.outputs] == names
    named = bound(
        "FROM t PATTERN A a ORDER BY ts RETURN a.v, upper(MATCH_STATUS) AS s, match_reached WITH TIMEOUTS "
        "HAVING match_status = 'timeout'"
    )
    assert [output.sql.text for output in named.outputs[1:]] == [f"upper(`{STATUS_COLUMN}`)", f"`{REACHED_COLUMN}`"]
    assert named.having[0].text == f"`{STATUS_COLUMN}` = 'timeout'"


def test_timeouts_errors() -> None:
    start = "FROM t PATTERN A a ORDER BY ts RETURN "
    check_error(start + "‸match_reached", "NO_TIMEOUTS", "WITH TIMEOUTS")
    check_error(start + "* HAVING ‸match_status = 'x'", "NO_TIMEOUTS")
    check_error(
        start + "COUNT(*) ‸WITH TIMEOUTS GROUP BY a.k", "CLAUSES_EXCLUDE", "WITH TIMEOUTS cannot stand beside GROUP"
    )
    check_error("FROM t PATTERN A match_status ORDER BY ts RETURN ‸* WITH TIMEOUTS", "COLUMN_CLASH", "match_status")


WHOLE = "FROM t PATTERN A a ; B+ b WHERE a.v > 1 AND ‸SUM(b.v) > 1"


@pytest.mark.parametrize(
    ("clause", "later"),
    [
        ("CONSUME BY PARTITION", Later(consume="PARTITION")),
        ("AFTER MATCH SKIP PAST LAST ROW", Later(skip=RuntimeSkip("PAST LAST ROW"))),
        ("CONSUME BY ANY SEMANTICS NXT PARTITION BY k", Later("NXT", "ANY")),
        ("SEMANTICS LAST AFTER MATCH SKIP TO FIRST b", Later(skip=RuntimeSkip("TO FIRST", "b", "LAST"))),
        ("SEMANTICS SKIP TILL NEXT MATCH CONSUME BY PARTITION", Later(consume="PARTITION")),
        ("SEMANTICS STRICT CONSUME BY PARTITION", Later(consume="PARTITION")),
    ],
)
def test_a_condition_on_the_whole_match_where_matches_are_consumed(clause: str, later: Later) -> None:
    """The engine lists, consumes nothing and skips nothing."""
    found = plan(bound(f"{WHOLE.replace('‸', '')} ORDER BY ts {clause} RETURN *"))
    assert found.later == later
    assert (found.query.consume, found.query.skip, found.program.consume, found.program.skip) == (
        "NONE", None, False, None,
    )  # fmt: skip
    assert "in a second pass" in str(found)


@pytest.mark.parametrize(
    "clause", ["CONSUME BY PARTITION", "SEMANTICS LAST AFTER MATCH SKIP TO FIRST b", "SEMANTICS MAX"]
)
def test_runs_count_events_themselves(clause: str) -> None:
    found = plan(bound(f"FROM t PATTERN A a ; B+ b WHERE COUNT(b) > 1 ORDER BY ts {clause} RETURN *"))
    assert (found.later, found.query.on_match) == (None, ())
    assert "COUNT(b) > 1: runs hold registers, of few values" in str(found)


def test_a_condition_on_the_whole_match_where_starts_time_out() -> None:
    """The engine tells of every start; under STRICT a match with gaps is a match of its start all the same."""
    for clause, later in (("", Later(timeouts=True)), ("SEMANTICS STRICT", Later(timeouts=True, strict=True))):
        found = plan(bound(f"{WHOLE.replace('‸', '')} ORDER BY ts {clause} RETURN * WITH TIMEOUTS"))
        assert found.later == later
        assert (found.program.all_starts, found.query.strategy) == (True, "ALL")
        assert "WITH TIMEOUTS: in a second pass" in str(found)


def test_keys_are_found_before_the_strategy_is_left_to_the_second_pass() -> None:
    """A row that is copied for two keys would end matches that do not meet."""
    text = "FROM t PATTERN A a ; B b WHERE a.k = b.v AND COUNT(b) > 0 ORDER BY ts SEMANTICS NXT RETURN *"
    found = plan(bound(text))
    assert not found.query.links
    assert "is no key under NXT" in str(found)


def test_a_condition_on_the_whole_match_where_each_is_asked_for_itself() -> None:
    for clause in ("", "SEMANTICS STRICT", "SEMANTICS SKIP TILL NEXT MATCH"):
        found = plan(bound(f"{WHOLE.replace('‸', '')} ORDER BY ts {clause} RETURN *"))
        assert found.query.on_match
        assert (found.later, found.query.having) == (None, ())


@pytest.mark.parametrize("condition", ["a.v - b.v > 1", "abs(a.k - b.k) > 1", "a.v + b.v < 3 OR a.v > b.v"])
def test_a_run_that_must_take_what_it_can_computes_with_events(condition: str) -> None:
    query = bound(f"FROM t PATTERN A a ; B b WHERE {condition} ORDER BY ts SEMANTICS SKIP TILL NEXT MATCH RETURN *")
    assert not query.on_match
    assert plan(query).program.family == "registers"


@pytest.mark.parametrize("condition", ["a.name LIKE b.name", "hash(a.k, b.k) > 1", "a.name LIKE b.name OR a.v > b.v"])
def test_a_run_that_must_take_what_it_can_looks_up_what_it_cannot_compute(condition: str) -> None:
    query = bound(f"FROM t PATTERN A a ; B b WHERE {condition} ORDER BY ts SEMANTICS SKIP TILL NEXT MATCH RETURN *")
    assert not query.on_match
    found = plan(query)
    assert found.program.family == "bound"
    ((asked, ordered),) = found.tabulated
    assert ordered
    assert str(asked) == condition.partition(" OR ")[0]
    assert [number for number, _, _ in found.program.tables] == [0]


@pytest.mark.parametrize("condition", ["hash(a.k, b.k, c.k) > 1", "concat(a.name, c.name) LIKE b.name OR a.v > b.v"])
def test_a_run_that_must_take_what_it_can_knows_what_is_decided(condition: str) -> None:
    """What is neither a comparison nor arithmetic, of three events, is computed on matches, too late for a run."""
    clause = "ORDER BY ts SEMANTICS SKIP TILL NEXT MATCH RETURN *"
    check_error(f"FROM t PATTERN A a ; B b ; C c WHERE ‸{condition} {clause}", "NOT_SUPPORTED_YET", "HAVING would ask")
    assert bound(f"FROM t PATTERN A a ; B b ; C c {clause} HAVING {condition}").having


def test_a_condition_on_the_whole_match_decides_ties() -> None:
    """RETURN decides only among rows that the pattern cannot tell apart."""
    for condition, reads in (
        ("hash(a.v, b.w) > 5", {"v", "w"}),
        ("a.v * b.w > 5", {"v", "w"}),
        ("LAST(b.v) < 5", {"v"}),
        ("a.v > b.v", {"v"}),
    ):
        text = f"FROM t PATTERN A a : B b WHERE {condition} ORDER BY ts RETURN a.k"
        assert set(bound(text).reads) - {"type"} == reads


def test_a_condition_on_the_whole_match_where_matches_compete() -> None:
    for name in ("NXT", "LAST", "MAX"):
        found = plan(bound(f"{WHOLE.replace('‸', '')} ORDER BY ts SEMANTICS {name} RETURN * HAVING a.v > 3"))
        assert (found.later, found.query.strategy, found.program.choose) == (Later(name), "ALL", "ALL")
        assert f"{name}: in a second pass" in str(found)
        assert len(found.query.on_match) == len(found.query.having) == 1
