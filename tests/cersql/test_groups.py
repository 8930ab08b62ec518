"""GROUP BY over matches: what RETURN and HAVING can say beside it, and the error of each mistake at its place."""

from __future__ import annotations

import pytest
from queries import SCHEMAS, bound, check_error

import cersql

START = "FROM t PATTERN A a ; B+ b ; C c PARTITION BY k ORDER BY ts RETURN "


@pytest.mark.parametrize(
    ("text", "by", "sums"),
    [
        ("COUNT(*) GROUP BY ()", [], ["COUNT(*)"]),
        ("k, COUNT(*) GROUP BY k", ["k"], ["COUNT(*)"]),
        ("k, COUNT(*) GROUP BY 1", ["k"], ["COUNT(*)"]),
        ("k, COUNT(*) GROUP BY ALL", ["k"], ["COUNT(*)"]),
        ("COUNT(*), MAX(b.v) GROUP BY ALL", [], ["COUNT(*)", "MAX(b.v)"]),
        ("date(match_end) AS day, COUNT(b) AS n GROUP BY day", ["date(match_end)"], ["COUNT(b)"]),
        ("a.name, c.v + 1, SUM(b.v) GROUP BY a.name, c.v + 1", ["a.name", "c.v + 1"], ["SUM(b.v)"]),
        ("upper(A.NAME) AS x, (c.v + 1) * 2 GROUP BY a.name, c.v + 1", ["a.name", "c.v + 1"], []),
        ("k GROUP BY k HAVING COUNT(*) > 1 AND max(B.V) < 3", ["k"], ["COUNT(*)", "max(B.V)"]),
        ("SUM(b.v) / COUNT(*), sum(b.v) GROUP BY ()", [], ["SUM(b.v)", "COUNT(*)"]),
    ],
)
def test_groups(text, by, sums):
    groups = bound(START + text).groups
    assert groups is not None
    assert ([grouped.shown for grouped in groups.by], [own.shown for own in groups.sums]) == (by, sums)


@pytest.mark.parametrize(
    ("call", "function"),
    [
        ("COUNT(*)", "COUNT"),
        ("COUNT(b)", "COUNT"),
        ("COUNT(b.name)", "COUNT"),
        ("SUM(b.v)", "SUM OF DOUBLE"),
        ("AVG(b.k * 2)", "AVG OF DOUBLE"),
        ("MIN(b.name)", "MIN"),
        ("STDDEV(b.v)", None),
        ("COUNT(DISTINCT b.v)", None),
        ("SUM(a.v + b.v)", None),
        ("SUM(b.v) FILTER (WHERE b.w > 1)", None),
    ],
)
def test_which_aggregates_are_summed_up(call, function):
    groups = bound(f"{START}{call} GROUP BY ()").groups
    assert groups is not None
    (own,) = groups.sums
    assert own.function == function
    assert bool(own.reason) == (function is None)


ERRORS = [
    ("‸* GROUP BY k", "NOT_GROUPED", "what GROUP BY names"),
    ("‸a.v, COUNT(*) GROUP BY k", "NOT_GROUPED", "GROUP BY a.v", "MIN(a.v)"),
    ("COUNT(*) + ‸b.v GROUP BY k", "NOT_GROUPED"),
    ("COUNT(*) GROUP BY k HAVING ‸c.v > 1", "NOT_GROUPED"),
    ("‸match_start, COUNT(*) GROUP BY k", "NOT_GROUPED"),
    ("2 * ‸c.v + 1, COUNT(*) GROUP BY c.v + 1", "NOT_GROUPED"),
    ("COUNT(*) GROUP BY ‸b.v", "GROUP_KEY", "has one in each event of b", "[v]", "b[1].v"),
    ("COUNT(*) GROUP BY ‸COUNT(b)", "GROUP_KEY", "query around"),
    ("COUNT(*) GROUP BY ‸3", "GROUP_KEY", "RETURN, which has 1"),
    ("COUNT(*) GROUP BY ‸a", "EVENT_NOT_VALUE", "a.x"),
    ("COUNT(*) GROUP BY ‸window(match_end, '1 hour')", "GROUP_KEY", "WINDOW"),
    ("COUNT(*) GROUP BY a.‸x1", "UNKNOWN_COLUMN", "x1"),
    ("‸FIRST(b.v) GROUP BY k", "NOT_OF_GROUPS", "MIN_BY"),
    ("SUM(‸b[1].v) GROUP BY k", "NOT_SUPPORTED_YET", "one event"),
    ("SUM(‸d.v) GROUP BY k", "UNKNOWN_VARIABLE"),
    ("COUNT(*) ‸WITH TIMEOUTS GROUP BY k", "CLAUSES_EXCLUDE"),
    ("COUNT(*) ‸WITH TIMEOUTS WITHIN 9 SECONDS SLIDE 3 SECONDS", "CLAUSES_EXCLUDE", "a window that slides"),
]


@pytest.mark.parametrize("parts", ERRORS, ids=[parts[0] for parts in ERRORS])
def test_mistakes(parts):
    marked, condition, *fragments = parts
    check_error(START + marked, condition, *fragments)


def test_an_attribute_on_which_all_agree():
    text = "FROM t PATTERN A a ; B+ b WHERE [name] ORDER BY ts RETURN b.name, COUNT(*) GROUP BY b.name"
    groups = bound(text).groups
    assert groups is not None
    (grouped,) = groups.by
    assert (grouped.mark, grouped.row) == (None, "`name`")


@pytest.mark.parametrize(
    ("rest", "why"),
    [
        ("WHERE SUM(b.v) > 3 RETURN COUNT(*) GROUP BY ()", "WHERE asks about matches as a whole"),
        ("AFTER MATCH SKIP PAST LAST ROW RETURN COUNT(*) GROUP BY ()", "AFTER MATCH SKIP takes one match at a time"),
        ("RETURN COUNT(*) GROUP BY a.k + c.k", "a.k + c.k reads more than one event of a match"),
        ("RETURN VAR_POP(b.v) GROUP BY ()", "VAR_POP(b.v) is no sum over events"),
        ("RETURN COUNT(*), MAX(b.v) GROUP BY a.k", None),
    ],
)
def test_explain_says_how(rest, why):
    made = cersql.compile(f"FROM t PATTERN A a ; B+ b ; C c ORDER BY ts {rest}", SCHEMAS)
    text = made.explain("physical")
    if why is None:
        assert "groups are summed up in the compact set, once a node: no match is listed" in text
    else:
        assert f"groups are made of matches that are listed, since {why}" in text


WINDOWS = [
    ("COUNT(*) WITHIN 10 MINUTES SLIDE ‸x", "BAD_WINDOW", "how far the window slides"),
    ("COUNT(*) WITHIN ‸5 EVENTS SLIDE 2 EVENTS", "WINDOW_UNIT", "of time"),
    ("COUNT(*) WITHIN ‸< 5 MINUTES SLIDE 2 MINUTES", "WINDOW_UNIT", "their end is not in them"),
    ("COUNT(*) WITHIN 5 MINUTES SLIDE ‸0", "WINDOW_UNIT", "greater than zero"),
    ("COUNT(*) WITHIN 5 MINUTES SLIDE ‸2", "WINDOW_UNIT", "Write SLIDE 2 SECONDS."),
    ("‸* WITHIN 5 MINUTES SLIDE 1 MINUTE", "NOT_GROUPED", "aggregates"),
    ("‸a.v, COUNT(*) WITHIN 5 MINUTES SLIDE 1 MINUTE", "NOT_GROUPED", "GROUP BY a.v"),
    ("COUNT(*) WITHIN 5 MINUTES SLIDE 1 MINUTE GROUP BY WINDOW ‸5 MINUTES", "CLAUSES_EXCLUDE", "leave the other out"),
    ("COUNT(*) GROUP BY WINDOW ‸5 MINUTES SEMANTICS NXT", "CLAUSES_EXCLUDE", "WITHIN … SLIDE"),
    ("COUNT(*) GROUP BY WINDOW ‸5 MINUTES CONSUME BY PARTITION", "CLAUSES_EXCLUDE", "CONSUME BY"),
    ("COUNT(*) GROUP BY WINDOW ‸5 MINUTES AFTER MATCH SKIP PAST LAST ROW", "CLAUSES_EXCLUDE", "AFTER MATCH SKIP"),
    ("COUNT(*) WITHIN 5 MINUTES SLIDE 1 MINUTE ‸CONSUME BY ANY", "CLAUSES_EXCLUDE", "CONSUME BY PARTITION"),
]


@pytest.mark.parametrize("parts", WINDOWS, ids=[parts[0] for parts in WINDOWS])
def test_mistakes_in_windows_that_slide(parts):
    marked, condition, *fragments = parts
    check_error(START + marked, condition, *fragments)


def test_windows_over_what_has_no_multiples():
    schemas = {"ticks": {"x": "double", "day": "date"}}
    check_error("FROM ticks PATTERN ANY a ORDER BY x WITHIN 5 ‸SLIDE 1 RETURN COUNT(*)", "NOT_SUPPORTED_YET",
                "Order by a time", schemas=schemas)  # fmt: skip
    check_error("FROM ticks PATTERN ANY a ORDER BY day WITHIN 5 DAYS SLIDE ‸1 HOUR RETURN COUNT(*)", "WINDOW_UNIT",
                "less than one unit of day", schemas=schemas)  # fmt: skip


def test_windows_that_slide_are_keys():
    made = cersql.compile(START + "window.end, COUNT(*) WITHIN 10 MINUTES SLIDE 5 MINUTES", SCHEMAS)
    text = made.explain("physical")
    assert "PARTITION BY k and a row for each window of 600000000 every 300000000: each key's rows meet" in text
    assert "groups are summed up in the compact set, once a node" in text
