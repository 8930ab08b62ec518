"""docs/matrix.md: each operator of patterns beside each clause, on a stream. No Spark: plans and what refuses them.

`pytest --bless tests/test_matrix.py` writes the tables anew; read the diff. test_support.py holds single lines to what
EXPLAIN says in a session.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
import sparks
from pyspark.sql import SparkSession
from test_support import COLUMNS, speed

import cersql
import planner.physical
from cersql.language.clause_table import CLAUSES
from cersql.language.operators import OPERATORS
from planner.physical import PhysicalPlan
from runtime.errors import CersqlError
from spark_ext.streaming import Streaming
from spark_ext.windowed import kind_of

PAGE = Path(__file__).resolve().parent.parent / "docs/matrix.md"
BEGIN, END = "<!-- made by tests/test_matrix.py -->", "<!-- end -->"

# Each has a variable a, and all but those about absence a variable b as well.
PATTERNS = {
    "sequence": "A a ; B b",
    "immediately after": "A a : B b",
    "loop": "A+ a ; B b",
    "loop without gaps": "A:+ a : B b",
    "a number of times": "ITER(A a, 2) ; B b",
    "OR": "A a ; (B b OR C c)",
    "ANY": "ANY(A a, C c) ; B b",
    "ALL": "A a ALL B b",
    "AND": "(A a AND ANY x) ; B b",
    "UNLESS": "(A a ; B b) UNLESS C",
    "absence in the middle": "SEQ(A a, !C, B b)",
    "absence at the start": "!C ; A a ; B b",
    "absence at the end": "A a ; B b ; !C",
    "NSEQ": "NSEQ(A a, C c, B b)",
    "START": "START(A a ; B b)",
    "NEXT": "A a ; NEXT(B)",
    "PROJECT": "PROJECT(a, b : A a ; C ; B b)",
    "FILTER": "((A a ; B b) FILTER a.v < b.v) ; C",
    "PART BY": "(A a ; B b) PART BY (a.k, b.k)",
    "WITHIN inside": "(A a ; B b WITHIN 5 MINUTES) ; C",
    "a strategy at the end": "C ; NXT(A a ; B b)",
    "a strategy at the beginning": "LAST(A a ; B b) ; C",
    "STRICT inside": "C ; STRICT(A a ; B b)",
    "MAX inside": "C ; MAX(A+ a ; B b)",
    "AGG": "AGG(y : s = SUM(a.v) ; A+ a) ; B b",
}  # fmt: skip

HOUR = "WITHIN 1 HOUR"
BESIDE = {
    "WITHIN": HOUR,
    "no WITHIN": "",
    "WITHIN n EVENTS": "WITHIN 9 EVENTS",
    "DEFINE": f"DEFINE A AS v > 3 {HOUR}",
    "WHERE, of two events": f"WHERE a.v <= b.v {HOUR}",
    "WHERE, of the match": f"WHERE SUM(a.v) > 5 {HOUR}",
    "SKIP TILL NEXT MATCH": f"{HOUR} SEMANTICS SKIP TILL NEXT MATCH",
    "STRICT CONTIGUITY": f"{HOUR} SEMANTICS STRICT CONTIGUITY",
    "NXT": f"{HOUR} SEMANTICS NXT",
    "LAST": f"{HOUR} SEMANTICS LAST",
    "MAX": f"{HOUR} SEMANTICS MAX",
    "CONSUME BY PARTITION": f"{HOUR} CONSUME BY PARTITION",
    "CONSUME BY ANY": f"{HOUR} CONSUME BY ANY",
    "AFTER MATCH SKIP PAST LAST ROW": f"{HOUR} AFTER MATCH SKIP PAST LAST ROW",
    "AFTER MATCH SKIP TO NEXT ROW": f"{HOUR} AFTER MATCH SKIP TO NEXT ROW",
    "WITH TIMEOUTS": f"{HOUR} RETURN * WITH TIMEOUTS",
    "HAVING": f"{HOUR} HAVING SUM(a.v) > 1",
    "LIMIT": f"{HOUR} LIMIT 5",
    "EMIT ON ARRIVAL": f"{HOUR} EMIT ON ARRIVAL",
    "EMIT ON WATERMARK": f"{HOUR} EMIT ON WATERMARK",
    "GROUP BY": f"{HOUR} RETURN k, COUNT(*) GROUP BY k",
    "GROUP BY WINDOW": f"{HOUR} RETURN COUNT(*) GROUP BY WINDOW 2 HOURS",
    "SLIDE": f"{HOUR} SLIDE 30 MINUTES RETURN COUNT(*)",
}
ALWAYS = "FROM events PATTERN {} PARTITION BY k ORDER BY ts WATERMARK 1 MINUTE{}"


class Cell(NamedTuple):
    """yes, slow, no or – (an error over a table as well); and the error."""

    word: str
    error: CersqlError | None = None


def text_of(pattern: str, clauses: str) -> str:
    returned = "" if "RETURN" in clauses else " RETURN *"
    return ALWAYS.format(f"{pattern} {clauses}", returned)


def asked(plan: PhysicalPlan) -> None:
    """What a stream says of a plan, as far as that depends on the query alone. Raises CersqlError."""
    made: Any = object.__new__(kind_of(plan))
    made.plan, made.query = plan, plan.query
    made.types = {c.name: SimpleNamespace(simpleString=lambda c=c: c.type.lower()) for c in plan.query.columns}
    made.spark = SimpleNamespace(conf=SimpleNamespace(get=lambda name, default=None: default))
    Streaming._check(made, SimpleNamespace(is_stream=lambda relation: True))  # type: ignore[arg-type]
    assert made.holding is not None


def cell(pattern: str, clauses: str) -> Cell:
    try:
        made = cersql.compile(text_of(pattern, clauses), {"events": COLUMNS})
    except CersqlError as error:
        return Cell("–", error)
    try:
        asked(made.plan)
    except CersqlError as error:
        return Cell("no", error)
    return Cell(speed(str(made.plan)))


@functools.cache
def cells() -> dict[tuple[str, str], Cell]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planner.physical, "n_deterministic", lambda program: 0)  # which EXPLAIN counts, at length
        return {
            (operator, clause): cell(pattern, clauses)
            for operator, pattern in PATTERNS.items()
            for clause, clauses in BESIDE.items()
        }


def made() -> str:
    """The tables of the page."""
    found = cells()
    reasons: dict[str, tuple[str, str]] = {}  # a message: its number, and its condition

    def shown(own: Cell) -> str:
        if own.error is None:
            return own.word
        number, _ = reasons.setdefault(general(own.error), (str(len(reasons) + 1), own.error.condition))
        return f"{own.word} ({number})"

    lines = [f"| | {' | '.join(BESIDE)} |", f"|---|{'---|' * len(BESIDE)}"]
    for operator, pattern in PATTERNS.items():
        row = " | ".join(shown(found[operator, clause]) for clause in BESIDE)
        lines.append(f"| {operator}<br>`{pattern}` | {row} |")
    lines += ["", "| | error | |", "|---|---|---|"]
    lines += [f"| {number} | `{condition}` | {message} |" for message, (number, condition) in reasons.items()]
    return "\n".join(lines)


def general(error: CersqlError) -> str:
    """The message, without what differs by operator alone."""
    text = re.sub(r"\bafter \w+( and \w+)*, it", "it", error.message)
    return re.sub(r"^\S.* (?=cannot stand in a pattern under )", "It ", text)


def test_the_page_has_what_is_found(request: pytest.FixtureRequest) -> None:
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    wanted = f"{before}{BEGIN}\n\n{made()}\n\n{END}{after}"
    if request.config.getoption("--bless"):
        PAGE.write_text(wanted, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == wanted, "if it should have changed, pytest --bless, and read the diff"


def test_every_operator_and_every_clause_is_there() -> None:
    patterns, written = " ".join(PATTERNS.values()), " ".join((ALWAYS, *BESIDE.values(), "RETURN"))
    operators = {operator.word for operator in OPERATORS if operator.word not in ("AS", "SEQ")}  # `A a` is `A AS a`
    missing = {word for word in operators if not re.search(rf"\b{word}\b", patterns) and not _by_sign(word, patterns)}
    assert not missing, f"a line of PATTERNS for each: {missing}"
    absent = {key for key in CLAUSES if key not in written}
    assert not absent, f"a column for each, in BESIDE: {absent}"


def _by_sign(word: str, patterns: str) -> bool:
    return any(sign in patterns for operator in OPERATORS if operator.word == word for sign in operator.signs)


def test_what_a_stream_refuses_says_why_and_what_to_write() -> None:
    refused = {at: own.error for at, own in cells().items() if own.word == "no"}
    assert len(refused) > 40
    for at, error in refused.items():
        assert error is not None
        assert error.sqlstate == "0A000", (at, str(error))
        assert error.hint, (at, str(error))
        assert not set("#@") & set(error.message), "a name of ours, which no user knows"


def test_a_table_refuses_only_what_has_no_meaning() -> None:
    """Not a column that does not exist, say: then the cell would say nothing."""
    conditions = {own.error.condition for own in cells().values() if own.word == "–" and own.error is not None}
    assert conditions == {"CLAUSES_EXCLUDE", "STRATEGY_PATTERN", "ABSENCE_WITHOUT_WINDOW"}


@pytest.mark.exhaustive
def test_a_session_says_the_same(spark: SparkSession, tmp_path: Path) -> None:
    """By building the stream of each, with Spark's own types and analysis."""
    session = sparks.taught(spark)
    session.readStream.schema(COLUMNS).parquet(str(tmp_path)).createOrReplaceTempView("events")
    different = {}
    for (operator, clause), own in cells().items():
        text = text_of(PATTERNS[operator], BESIDE[clause])
        found = _refused(session, text)
        wanted = own.error.condition if own.error else None
        if (found and found.condition) != wanted or (found is not None and found.span is None):
            different[text] = str(found)
    assert not different, "\n".join(f"{text}: {found}" for text, found in different.items())


def _refused(session: SparkSession, text: str) -> CersqlError | None:
    try:
        cersql.sql(session, text)
    except CersqlError as error:
        return error
    return None
