"""What is seen of a checkpoint before a stream starts. The folders are made by hand, so that no query runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import sparks
from pyspark.sql import SparkSession

from runtime.errors import CersqlError
from spark_ext.checkpoints import FILE, Standing, prepare, settings_of

PATTERNS = [Standing("meaning", "a query", "UTC")]
SETTINGS = {"cersql.stream.buckets": "8"}
TABLE = "spark_catalog.default.gone_on_from"
OPERATOR = 'v2\n{{"operatorInfo":{{"operatorId":0,"operatorName":"{}"}}}}'


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> Iterator[SparkSession]:
    session = sparks.taught(spark)
    session.sql(f"CREATE TABLE {TABLE} (x INT) USING parquet")
    yield session
    session.sql(f"DROP TABLE {TABLE}")


def begun(folder: Path, newest: int = 1) -> Path:
    """The checkpoint of a stream that START began, after its micro-batch of that number."""
    put(folder / "metadata", '{"id":"1c7e"}')
    for number in range(newest + 1):
        put(folder / f"offsets/{number}", 'v1\n{"batchWatermarkMs":0}\n{"logOffset":0}')
        put(folder / f"commits/{number}", 'v1\n{"nextBatchWatermarkMs":0}')
    put(folder / "sources/0/0", "v1\n{}")
    put(folder / "state/0/_metadata/v2/0", OPERATOR.format("transformWithStateInPandasExec"))
    entries = [{"meaning": "meaning", "described": "a query", "zone": "UTC"}]
    put(folder / FILE, json.dumps({"table": TABLE, "settings": SETTINGS, "patterns": entries}))
    return folder


def put(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def lose(place: Path) -> None:
    """Without what a checksum says beside it, which Spark writes."""
    if place.is_dir():
        for inner in place.iterdir():
            lose(inner)
        place.rmdir()
    else:
        place.unlink()


def seen(session: SparkSession, folder: Path, table: str = TABLE, patterns: list[Standing] = PATTERNS) -> str | None:
    """The condition and the text of what is said of it."""
    try:
        prepare(session, "s", str(folder), patterns, table, SETTINGS)
    except CersqlError as error:
        return str(error)
    return None


DAMAGED: dict[str, tuple[Callable[[Path], object], str]] = {
    "metadata gone": (lambda c: lose(c / "metadata"), "its file metadata is missing"),
    "metadata empty": (lambda c: put(c / "metadata", ""), "its file metadata is empty"),
    "metadata cut": (lambda c: put(c / "metadata", "{nonsense"), "its file metadata is not what Spark wrote"),
    "offsets empty": (lambda c: put(c / "offsets/1", ""), "its file offsets/1 does not begin with a version"),
    "offsets cut": (lambda c: put(c / "offsets/1", "v1\n{nonsense"), "its file offsets/1 is not what Spark wrote"),
    "commits cut": (lambda c: put(c / "commits/1", "nonsense"), "its file commits/1 does not begin with a version"),
    "offsets gone": (lambda c: lose(c / "offsets"), "micro-batch 1 is committed, and of its offsets none are there"),
    "newest offset gone": (
        lambda c: lose(c / "offsets/1"), "micro-batch 1 is committed, and of its offsets the newest are of 0",
    ),
    "sources gone": (lambda c: lose(c / "sources"), "its folder sources is missing"),
    "state gone": (lambda c: lose(c / "state"), "its folder state is missing"),
}  # fmt: skip


@pytest.mark.parametrize("case", DAMAGED)
def test_what_is_damaged(session: SparkSession, tmp_path: Path, case: str) -> None:
    damage, says = DAMAGED[case]
    damage(begun(tmp_path / "c"))
    told = seen(session, tmp_path / "c")
    assert told is not None
    assert told.startswith("[CHECKPOINT]")
    assert f"of the stream s is damaged: {says}" in told


def test_what_is_whole_can_be_gone_on_from(session: SparkSession, tmp_path: Path) -> None:
    assert seen(session, begun(tmp_path / "c")) is None
    lose(tmp_path / "c/commits/1")  # it was killed in a micro-batch, or before the first had ended
    assert seen(session, tmp_path / "c") is None
    lose(tmp_path / "c/commits")
    lose(tmp_path / "c/state")
    assert seen(session, tmp_path / "c") is None
    put(tmp_path / "c" / FILE, "somebody has changed it")
    assert seen(session, tmp_path / "c") is None
    assert settings_of(session, str(tmp_path / "c")) == {}


def test_a_file_is_no_checkpoint(session: SparkSession, tmp_path: Path) -> None:
    put(tmp_path / "c", "")
    assert "it is a file, and a checkpoint is a folder" in (seen(session, tmp_path / "c") or "")


def test_a_new_one_is_told_what_it_is_of(session: SparkSession, tmp_path: Path) -> None:
    assert settings_of(session, str(tmp_path / "c")) == {}
    assert seen(session, tmp_path / "c") is None
    begun(tmp_path / "other")
    assert json.loads((tmp_path / "c" / FILE).read_text()) == json.loads((tmp_path / "other" / FILE).read_text())
    assert settings_of(session, str(tmp_path / "other")) == SETTINGS


@pytest.mark.parametrize(
    ("operator", "says"),
    [
        (None, "by one that keeps no state"),
        ("stateStoreSave", "by one whose state is that of stateStoreSave"),
        ("transformWithStateInPandasExec", None),
        ("transformWithStateInPySparkExec", None),
    ],
)
def test_of_another_query(session: SparkSession, tmp_path: Path, operator: str | None, says: str | None) -> None:
    """One that START did not begin, with our operator or without."""
    folder = begun(tmp_path / "c")
    lose(folder / FILE)
    lose(folder / "state")
    if operator is not None:
        put(folder / "state/0/_metadata/metadata", OPERATOR.format(operator).replace("v2", "v1"))
    told = seen(session, folder)
    if says is None:
        assert told is None
    else:
        assert told is not None
        assert told.startswith("[CHECKPOINT_OTHER]")
        assert f"was begun by another query: {says}" in told
    assert seen(session, folder, patterns=[]) is None  # START of a query without a pattern


def test_of_another_pattern_also_as_it_was_noted_before(session: SparkSession, tmp_path: Path) -> None:
    """When only the patterns were."""
    folder = begun(tmp_path / "c")
    kept, other = (folder / FILE).read_text(), [Standing("another meaning", "another query", "UTC")]
    for text in (kept, json.dumps(json.loads(kept)["patterns"])):
        put(folder / FILE, text)
        told = seen(session, folder, patterns=other)
        assert told is not None
        assert told.startswith("[STREAM_CHANGED]")


def test_into_another_table(session: SparkSession, tmp_path: Path) -> None:
    folder = begun(tmp_path / "c")
    told = seen(session, folder, "spark_catalog.default.nowhere")
    assert told is not None
    assert told.startswith("[CHECKPOINT_TABLE]")
    assert f"the table spark_catalog.default.nowhere does not have: they went into {TABLE}" in told
    lose(folder / FILE)
    assert "does not have: there is no such table" in (seen(session, folder, "spark_catalog.default.nowhere") or "")


def test_into_a_table_that_has_come_further(session: SparkSession, tmp_path: Path) -> None:
    place = tmp_path / "t"
    session.sql(f"CREATE TABLE spark_catalog.default.further (x INT) USING parquet LOCATION '{place}'")
    for name in ("7", "8", "9.compact"):
        put(place / "_spark_metadata" / name, "v1")
    folder, table = begun(tmp_path / "c", newest=8), "spark_catalog.default.further"
    told = seen(session, folder, table)
    assert told is not None
    assert told.startswith("[CHECKPOINT_BEHIND]")
    assert "has the rows of micro-batch 9 and those before" in told
    assert "has come to 8" in told
    assert "is new" in (seen(session, tmp_path / "new", table) or "")
    put(folder / "offsets/9", 'v1\n{"batchWatermarkMs":0}\n{"logOffset":0}')  # it was killed before its commit
    assert seen(session, folder, table) is None
    session.sql(f"DROP TABLE {table}")
