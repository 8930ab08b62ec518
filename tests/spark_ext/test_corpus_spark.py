"""The cases of tests/cases through spark.sql: the same matches, each once.

tests/test_corpus.py runs all of them without Spark; here every sixth is enough, and `make exhaustive` runs the others.
"""

from __future__ import annotations

import corpus
import pytest
import sparks
from corpus import Case
from pyspark.sql import DataFrame, SparkSession

import cersql

CASES = corpus.load_cases()
OTHERS = pytest.mark.exhaustive


def refused(case: Case) -> bool:
    """Does the front end refuse it for now? tests/test_corpus.py keeps the list of these."""
    try:
        cersql.compile(case.query, schemas={"events": corpus.SCHEMA})
    except cersql.CersqlError:
        return True
    return False


def frame(session: SparkSession, case: Case) -> DataFrame:
    """The case's query over its rows. A later view of that name changes nothing in it."""
    sparks.view(session, "events", case.tuples(), corpus.spark_schema())
    return session.sql(case.query)


@pytest.fixture(scope="module")
def found(spark: SparkSession, request: pytest.FixtureRequest) -> dict[str, list[sparks.Bound]]:
    """The matches of the cases that are tested, read in a few jobs."""
    session = sparks.taught(spark)
    chosen = {item.callspec.id for item in request.session.items if item.path == request.path}  # type: ignore[attr-defined]
    cases = [case for case in CASES if case.id in chosen and not refused(case)]
    rows = sparks.together([frame(session, case) for case in cases])
    return {case.id: [sparks.bound(row) for row in own] for case, own in zip(cases, rows, strict=True)}


@pytest.mark.parametrize(
    "case", [pytest.param(case, id=case.id, marks=[OTHERS] if n % 6 else []) for n, case in enumerate(CASES)]
)
def test_case(case: Case, found: dict[str, list[sparks.Bound]]) -> None:
    if case.id not in found:
        pytest.xfail("the front end refuses it for now")
    assert sorted(map(sorted, found[case.id])) == sorted(map(sorted, case.matches))
