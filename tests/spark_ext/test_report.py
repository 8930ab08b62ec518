"""The page of what was found, from texts through Spark; its funnel held to hand computations and to the matches."""

from __future__ import annotations

import datetime
import html
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from sparks import local, settings, taught, view

import cersql
from cersql.cli import main as cli
from cersql.cli import running
from cersql.statements.funnel import funnel
from cersql.statements.planned import query_of

pytestmark = pytest.mark.jvm

#         id type  k     ts v
EVENTS = [
    (0, "A", "x", 0, 1),
    (1, "A", "x", 1, 5),
    (2, "B", "x", 2, 3),
    (3, "A", "x", 3, 2),
    (4, "C", "x", 4, 9),
    (5, "A", "y", 0, 1),
    (6, "B", "y", 9, 2),
    (7, "A", None, 1, 1),
    (8, "B", None, 2, 7),
    (9, "C", None, 3, 7),
    (10, "A", "z", 5, 1),
]
SCHEMA = "id INT, type STRING, k STRING, ts INT, v INT"
ORDER = "PARTITION BY k ORDER BY ts, id"


@pytest.fixture
def session(spark: SparkSession) -> SparkSession:
    found = taught(spark)
    view(found, "ev", EVENTS, SCHEMA)
    return found


def starts(session: SparkSession, text: str) -> list[int] | str:
    planned = query_of(cersql.sql(session, text))
    assert planned is not None
    found = funnel(planned)
    return found if isinstance(found, str) else [stage.starts for stage in found]


def read(path: Path) -> str:
    return html.unescape(path.read_text(encoding="utf-8"))


@pytest.mark.breadth(6)
@pytest.mark.parametrize(
    ("rest", "expected"),
    [
        # As: 0, 1, 3 of x, 5 of y, 7 of NULL, 10 of z. Before a B: 0, 1, 5, 7. Then a C: 0, 1, 7.
        (f"PATTERN A a ; B b ; C c {ORDER}", [6, 4, 3]),
        (f"PATTERN A a ; B b ; C c {ORDER} WITHIN 4", [6, 3, 3]),  # of y the B comes 9 later
        (f"PATTERN A a ; B b ; C c {ORDER} WITHIN 3", [6, 3, 2]),  # from 0 the C is 4 away
        (f"PATTERN A a ; B b ; C c WHERE b.v > a.v AND c.v > 8 {ORDER}", [6, 3, 1]),  # 1 has no greater B
        (f"PATTERN A a : B b ; C {ORDER}", [6, 3, 2]),
        (f"PATTERN A a ; !A n ; B b ; C {ORDER}", [6, 3, 2]),
        (f"PATTERN A a ; B b ; !C n {ORDER} WITHIN 3", [6, 3, 1]),  # 0 and its B, no C until 3
        (f"PATTERN A+ a ; B b ; C {ORDER} SEMANTICS SKIP TILL NEXT MATCH", [6, 4, 3]),
        (f"PATTERN A a ; B b ; C {ORDER} AFTER MATCH SKIP PAST LAST ROW", [6, 4, 3]),
        (
            f"PATTERN A a ; B b ; C c WHERE SUM(a.v) + SUM(b.v) + SUM(c.v) > 14 {ORDER}",
            [6, 4, 2],
        ),  # from 0 it is 1 + 3 + 9
        ("PATTERN A a ; B b ; C c WHERE [k] ORDER BY ts, id", [5, 3, 2]),  # NULL agrees with nothing
        ("PATTERN A a ; B b WHERE a.v > 100 ORDER BY ts, id", [0, 0]),
    ],
)
def test_the_starts_of_each_step(session: SparkSession, rest: str, expected: list[int]) -> None:
    text = f"FROM ev {rest} RETURN a.id AS start"
    assert starts(session, text) == expected


def test_the_last_step_has_the_starts_of_the_matches(session: SparkSession) -> None:
    text = f"FROM ev PATTERN (A+ a ; B b ; C? c) AS m WHERE COUNT(m) > 2 {ORDER} RETURN a[1].id AS start"
    found = starts(session, text)
    assert isinstance(found, list)
    assert found[-1] == len({row.start for row in session.sql(text).collect()}) == 3


def test_groups_sources_and_ceql(session: SparkSession) -> None:
    assert starts(session, f"FROM ev PATTERN A a ; B b {ORDER} RETURN k, COUNT(*) AS n GROUP BY k") == [6, 4]
    view(session, "Sent", [(0, 1), (4, 2)], "ts INT, id INT")
    view(session, "Got", [(1, 1), (5, 3)], "ts INT, id INT")
    text = "PATTERN Sent s ; Got g WHERE s.id = g.id ORDER BY ts RETURN s.id AS id"
    assert starts(session, text) == [2, 1]
    ceql = "SELECT * FROM ev WHERE (A AS a ; B AS b) PARTITION BY [k] WITHIN 4 [ts]"
    assert starts(session, ceql) == [5, 2]  # there NULL is no key


def test_what_has_no_funnel_says_why(session: SparkSession, tmp_path: Path) -> None:
    df = cersql.sql(session, f"FROM ev PATTERN A a OR B b {ORDER} RETURN k")
    cersql.Matches(df).save(tmp_path / "x.html")
    assert "Not told of this query: the pattern is not a sequence of parts, A ; B." in read(tmp_path / "x.html")
    text = f"FROM ev PATTERN A a ; B b WHERE 1 / (b.v - 3) > a.v {ORDER} RETURN *"
    with settings(session, spark__sql__ansi__enabled="true"):
        assert "cannot be asked one by one" in str(starts(session, text))


# ---------------------------------------------------------------- Matches


def test_a_page_of_matches(session: SparkSession, tmp_path: Path) -> None:
    target = tmp_path / "x.html"
    text = f"FROM ev PATTERN A a ; B b ; C c {ORDER} RETURN *"
    known = cersql.sql(session, text)
    assert query_of(known.where("true")) is None
    cersql.Matches(known).save(target)
    page = read(target)
    for said in (text, "3 matches.", "When, by k", "NULL", "How far starts came", "66.7 %", "partition by: k"):
        assert said in page
    assert page.count("<svg") == 3
    cersql.Matches(session.sql(text), text).save(str(target), rows=1)
    page = read(target)
    assert "3 matches; the first 1 are drawn and listed, 2 not." in page
    assert "How far starts came" in page
    cersql.Matches(session.sql(text)).save(target)
    assert "The query of this DataFrame is not known here." in read(target)
    cersql.Matches(cersql.match(local(session, EVENTS, SCHEMA), text.removeprefix("FROM ev "))).save(target)
    assert "66.7 %" in read(target)
    cersql.Matches(session.sql(f"CREATE OR REPLACE PATTERN VIEW pv AS {text}")).save(target)
    assert "The statement gives no rows." in read(target)


def test_names_and_values_stay_text(session: SparkSession, tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>"
    view(session, "bad", [(0, evil, evil), (1, "B", evil)], f"ts INT, type STRING, `{evil}` STRING")
    text = f"FROM bad PATTERN `{evil}` ; B b PARTITION BY `{evil}` ORDER BY ts RETURN `{evil}`, b"
    cersql.Matches(cersql.sql(session, text)).save(tmp_path / "x.html")
    written = (tmp_path / "x.html").read_text()
    assert "<script" not in written.casefold()
    assert written.count("&lt;script&gt;") > 5


def test_times_are_those_of_the_sessions_zone(session: SparkSession, tmp_path: Path) -> None:
    at = datetime.datetime(2024, 1, 2, 12, tzinfo=datetime.UTC)
    view(session, "timed", [("A", at), ("B", at + datetime.timedelta(hours=1))], "type STRING, ts TIMESTAMP")
    with settings(session, spark__sql__session__timeZone="Asia/Tokyo"):
        cersql.Matches(cersql.sql(session, "FROM timed PATTERN A a ; B b ORDER BY ts RETURN *")).save(tmp_path / "x")
    page = read(tmp_path / "x")
    assert "times are those of Asia/Tokyo" in page
    assert ">2024-01-02 21:00:00</text>" in page
    assert "a: 2024-01-02 21:00:00" in page
    assert "+ 1:00:00" in page
    assert "12:00" not in page


def test_many_matches_make_no_large_page(session: SparkSession, tmp_path: Path) -> None:
    session.sql("SELECT id AS ts, IF(id < 100, 'A', 'B') AS type FROM range(200)").createOrReplaceTempView("many")
    text = "FROM many PATTERN A a ; B b ORDER BY ts RETURN *"
    cersql.Matches(cersql.sql(session, text)).save(tmp_path / "x")
    assert "10,000 matches; the first 100 are drawn and listed, 9,900 not." in read(tmp_path / "x")
    assert (tmp_path / "x").stat().st_size < 300_000


def test_errors_come_before_the_query_runs(session: SparkSession, tmp_path: Path) -> None:
    fails = cersql.Matches(cersql.sql(session, "SELECT raise_error('no') AS x"))
    for target, error in ((tmp_path, IsADirectoryError), (tmp_path / "none" / "x", FileNotFoundError)):
        with pytest.raises(error, match=re.escape(str(target))):
            fails.save(target)
    with pytest.raises(ValueError, match="rows is 0"):
        fails.save(tmp_path / "x", rows=0)
    with pytest.raises(Exception, match="no"):
        fails.save(tmp_path / "x")
    assert not list(tmp_path.iterdir())


def test_the_text_of_another_query(session: SparkSession) -> None:
    with pytest.raises(cersql.BindError, match="has the columns n, and the query gives k") as caught:
        cersql.Matches(session.sql("SELECT 1 AS n"), f"FROM ev PATTERN A a {ORDER} RETURN k")
    assert caught.value.condition == "OTHER_COLUMNS"
    with pytest.raises(cersql.CersqlError):
        cersql.Matches(session.sql("SELECT 1 AS n"), "FROM ev PATTERN A a ; ; RETURN k")


def test_a_stream_has_no_page(session: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(cersql.BindError) as caught:
        cersql.Matches(session.readStream.format("rate").load()).save(tmp_path / "x")
    assert caught.value.condition == "STREAM_REPORT"


# ---------------------------------------------------------------- the command line


@pytest.fixture
def shared(session: SparkSession, monkeypatch: pytest.MonkeyPatch) -> SparkSession:
    """The commands use the tests' session, and leave it running."""

    @contextmanager
    def started(name: str, *, verbose: bool, config: Any = None) -> Iterator[Any]:
        yield session

    monkeypatch.setattr(running, "started", started)
    return session


def test_run_writes_a_section_for_each_statement(
    shared: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    query = f"FROM ev PATTERN A a ; B b ; C c {ORDER} RETURN *"
    text = (
        f"CREATE OR REPLACE PATTERN VIEW v AS {query};\n{query};\n"
        f"SELECT count(*) AS n FROM v;\nSELECT s.k FROM ({query}) AS s"
    )
    (tmp_path / "q.sql").write_text(text)
    target = tmp_path / "report.html"
    assert cli.main(["run", str(tmp_path / "q.sql"), "--html", str(target), "--rows", "2"]) == 0
    assert capsys.readouterr().out == ""
    sections = re.split("<section>", read(target))[1:]
    assert [re.findall(r"line (\d)</h2>", section) for section in sections] == [["1"], ["2"], ["3"], ["4"]]
    view, whole, count, embedded = sections
    assert "The statement gives no rows." in view
    assert "66.7 %" in view
    assert "3 matches; the first 2 are drawn and listed, 1 not." in whole
    assert whole.count("The automaton") == 1
    assert "1 row." in count
    assert "The automaton" not in count
    assert "3 rows; the first 2" in embedded
    assert "66.7 %" in embedded


def test_an_error_leaves_no_page(shared: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "report.html"
    target.write_text("old")
    assert cli.main(["run", "-e", "SELECT 1; SELECT raise_error('no')", "--html", str(target)]) == 1
    assert "<text>:1" in capsys.readouterr().err
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
