"""EMIT ON ARRIVAL | WATERMARK: where it may stand, what it says, and what is wrong with it."""

from __future__ import annotations

import pytest
from queries import bound, check_error

import cersql
from cersql.cli.completion import KEYWORDS
from cersql.language.parse import parse
from cersql.statements.parameters import fill_markers, uses
from planner.emission import on_arrival
from planner.streaming import meaning
from runtime.errors import Span

END = " ORDER BY ts RETURN *"


@pytest.mark.parametrize(
    ("clauses", "emit", "watermark_us"),
    [
        ("", None, None),
        ("EMIT ON ARRIVAL", "arrival", None),
        ("emit on watermark", "watermark", None),
        ("EMIT ON Watermark WATERMARK 10 SECONDS", "watermark", 10_000_000),
        ("WATERMARK 10 SECONDS EMIT ON ARRIVAL WITHIN 5 MINUTES", "arrival", 10_000_000),
        ("WITHIN 5 MINUTES EMIT ON WATERMARK SEMANTICS NXT WATERMARK 1 SECOND", "watermark", 1_000_000),
    ],
)
def test_what_it_says(clauses: str, emit: str | None, watermark_us: int | None) -> None:
    query = bound(f"FROM t PATTERN A a ; B b {clauses}{END}")
    assert (query.emit, query.watermark_us) == (emit, watermark_us)


def test_it_stands_anywhere() -> None:
    for text in (
        "EMIT ON WATERMARK FROM t PATTERN A ORDER BY ts RETURN *",
        "FROM t EMIT ON WATERMARK PATTERN A ORDER BY ts RETURN *",
        "FROM t PATTERN A ORDER BY ts RETURN * EMIT ON WATERMARK",
        "FROM t PATTERN A ORDER BY ts RETURN * EMIT ON WATERMARK;",
    ):
        assert bound(text).emit == "watermark"


@pytest.mark.parametrize("clause", ["EMIT ON ARRIVAL", "EMIT ON WATERMARK"])
def test_over_a_table_it_changes_nothing(clause: str) -> None:
    """One text for the table and for the stream."""
    schema = {"t": "ts TIMESTAMP, type STRING, v INT"}
    text = "FROM t PATTERN A a ; B b ORDER BY ts WITHIN 5 MINUTES {} RETURN a.v, b.v"
    plain, said = (cersql.compile(text.format(emit), schema) for emit in ("", clause))
    for stage in ("automaton", "physical", "program"):
        assert said.explain(stage) == plain.explain(stage)
    assert f"emit on: {clause.split()[-1].lower()}, of a stream" in said.explain("cel")
    assert "emit on" not in plain.explain("cel")


def test_a_state_belongs_to_it() -> None:
    """Of two texts that give matches at another time, one cannot go on from the state of the other; what is said in
    words, or left to what is possible, is the same."""
    plain, arrival, watermark = (
        meaning(query, on_arrival(query, chooses=False))
        for emit in ("", "EMIT ON ARRIVAL", "EMIT ON WATERMARK")
        for query in [bound(f"FROM t PATTERN A a ; B b {emit}{END}")]
    )
    assert plain == arrival != watermark
    assert meaning(bound("FROM t EMIT ON ARRIVAL PATTERN A x ; B y ORDER BY ts RETURN x.v"), arrival=True) == arrival


def test_its_words_are_names_elsewhere() -> None:
    query = bound(
        "FROM u PATTERN EMIT emit ; ARRIVAL b WHERE emit.on > b.emit ORDER BY ts RETURN emit.on AS on, b.arrival",
        {"u": {"ts": "timestamp", "type": "string", "on": "int", "emit": "int", "arrival": "int"}},
    )
    assert query.emit is None
    assert {"emit", "b"} <= {variable.name for variable in query.variables}


def test_queries_of_core_may_have_it() -> None:
    text = "SELECT * FROM S WHERE A; B PARTITION BY [k] ORDER BY ts EMIT ON WATERMARK WATERMARK 1 SECOND"
    query = parse(text)
    assert query.emit is not None
    assert (query.ceql, query.emit.value) == (True, "WATERMARK")
    assert query.watermark is not None


def test_parameters_beside_it() -> None:
    text = "FROM t PATTERN A a WHERE a.v > :v EMIT ON WATERMARK WATERMARK :late ORDER BY ts RETURN *"
    filled = fill_markers(text, [Span(0, len(text))], {"v": "5", "late": "INTERVAL '10' SECOND"})
    query = parse(filled.sql.text)
    assert query.emit is not None
    assert query.emit.value == "WATERMARK"
    assert query.watermark is not None
    assert query.watermark.value == "INTERVAL '10' SECOND"


def test_its_words_are_no_parameters_of_a_function() -> None:
    text = "PATTERN A a WHERE a.v > arrival EMIT ON ARRIVAL ORDER BY ts RETURN *"
    at = text.index("arrival")
    assert [span for span, _ in uses(text, Span(0, len(text)), "arrival", "f")] == [Span(at, at + len("arrival"))]


@pytest.mark.parametrize(
    ("marked", "condition", "fragment"),
    [
        ("‸EMIT ON", "EMPTY_CLAUSE", "ARRIVAL or WATERMARK"),
        ("EMIT ON ‸ARIVAL", "BAD_CLAUSE", "expected ARRIVAL or WATERMARK. Did you mean ARRIVAL?"),
        ("EMIT ON ‸WATERMRK", "BAD_CLAUSE", "Did you mean WATERMARK?"),
        ("EMIT ON ‸CHANGE", "BAD_CLAUSE", "For example: EMIT ON ARRIVAL."),
        ("EMIT ON ARRIVAL ‸NOW", "BAD_CLAUSE", "expected the next clause. Write: EMIT ON ARRIVAL."),
        ("EMIT ON WATERMARK ‸10 MINUTES", "BAD_CLAUSE", "Write: EMIT ON WATERMARK WATERMARK 10 MINUTES."),
        ("EMIT ON ARRIVAL ‸EMIT ON WATERMARK", "DUPLICATE_CLAUSE", "Write one EMIT ON clause."),
        ("WITHIN 5 MINUTES ‸EMIT CHANGES", "UNKNOWN_CLAUSE", "EMIT ON ARRIVAL or EMIT ON WATERMARK"),
        ("WITHIN 5 MINUTES ‸EMTI ON ARRIVAL", "MISSPELT_CLAUSE", "Did you mean EMIT ON?"),
    ],
)
def test_errors(marked: str, condition: str, fragment: str) -> None:
    check_error(f"FROM t PATTERN A a ; B b {marked}{END}", condition, fragment)


def test_the_shell_offers_it() -> None:
    assert {"EMIT ON", "EMIT ON ARRIVAL", "EMIT ON WATERMARK"} <= {*KEYWORDS}
