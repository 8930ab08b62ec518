"""Arguments, output formats and exit codes of the command line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import cersql
from cersql import cli, demo
from cersql.errors import ParseError
from runtime.errors import Span


@pytest.fixture
def query(tmp_path: Path) -> str:
    path = tmp_path / "query.sql"
    path.write_text("SELECT * FROM t ORDER BY a", encoding="utf-8")
    return str(path)


@pytest.fixture
def table(tmp_path: Path) -> str:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,x\n2,\n3,z\n", encoding="utf-8")
    return f"t={path}"


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["nosuch"],
        ["run"],
        ["run", "nosuch.sql"],
        ["run", "QUERY", "--table", "t"],
        ["run", "QUERY", "--table", "t=nosuch.csv"],
        ["run", "QUERY", "--table", "t=QUERY"],
        ["run", "QUERY", "--format", "xml"],
        ["run", "QUERY", "--rows", "0"],
    ],
)
def test_a_command_that_is_called_wrongly_exits_with_2(
    arguments: list[str], query: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main([argument.replace("QUERY", query) for argument in arguments])
    assert caught.value.code == 2
    assert "usage: cersql" in capsys.readouterr().err


def test_help_names_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(["--help"])
    assert caught.value.code == 0
    shown = capsys.readouterr().out
    assert all(command in shown for command in ("demo", "run", "explain"))


@contextmanager
def no_spark(name: str, *, verbose: bool) -> Iterator[None]:
    yield None


def test_an_error_of_ours_is_shown_without_a_traceback(
    query: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(spark: Any, text: str) -> None:
        raise ParseError("MISSING_CLAUSE", clause="RETURN", text=text, span=Span(7, 8))

    monkeypatch.setattr(cli, "started", no_spark)
    monkeypatch.setattr(cersql, "sql", fail, raising=False)
    assert cli.main(["run", query]) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.splitlines() == [
        "cersql: [MISSING_CLAUSE] The query has no RETURN clause. (line 1, column 8)",
        "",
        "SELECT * FROM t ORDER BY a",
        "       ^",
    ]


def test_a_demo_without_its_data_says_where_they_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cli, "started", no_spark)
    monkeypatch.setattr(demo, "FOLDER", tmp_path)
    assert cli.main(["demo"]) == 1
    assert "make demo" in capsys.readouterr().err


def test_explain_prints_the_stage(
    query: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cli, "started", no_spark)
    monkeypatch.setattr(cersql, "explain", lambda spark, text, stage=None: f"{stage}: {text}", raising=False)
    assert cli.main(["explain", query, "--stage", "automaton"]) == 0
    assert capsys.readouterr().out == "automaton: SELECT * FROM t ORDER BY a\n"


# ---------------------------------------------------------------- with Spark


@pytest.fixture
def shared(spark: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The commands use the tests' session, and leave it running."""

    @contextmanager
    def started(name: str, *, verbose: bool) -> Iterator[Any]:
        yield spark

    monkeypatch.setattr(cli, "started", started)
    monkeypatch.setattr(cersql, "sql", lambda session, text: session.sql(text), raising=False)
    return spark


def test_csv_and_json(shared: Any, query: str, table: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", query, "--table", table, "--format", "csv"]) == 0
    assert capsys.readouterr().out.splitlines() == ["a,b", "1,x", "2,", "3,z"]
    assert cli.main(["run", query, "--table", table, "--format", "json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert rows == [{"a": 1, "b": "x"}, {"a": 2, "b": None}, {"a": 3, "b": "z"}]


def test_a_table_says_that_there_is_more(
    shared: Any, query: str, table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["run", query, "--table", table, "--rows", "2"]) == 0
    shown = capsys.readouterr().out
    assert "NULL" in shown
    assert "z" not in shown
    assert "the first 2 rows" in shown


def test_nested_values_are_json_in_csv(shared: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "nested.sql"
    path.write_text("SELECT array(named_struct('x', 1)) AS a, map('k', array(1)) AS m, date'2020-01-02' AS d")
    assert cli.main(["run", str(path), "--format", "csv"]) == 0
    assert capsys.readouterr().out.splitlines()[1] == '"[{""x"": 1}]","{""k"": [1]}",2020-01-02'


def test_errors_of_spark_have_no_traceback(shared: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "wrong.sql"
    path.write_text("SELECT * FROM nosuch")
    assert cli.main(["run", str(path)]) == 1
    shown = capsys.readouterr().err
    assert shown.startswith("cersql: [TABLE_OR_VIEW_NOT_FOUND]")
    assert "Traceback" not in shown
    assert "\tat " not in shown
    assert "UnresolvedRelation" not in shown
