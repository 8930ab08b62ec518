"""Arguments, output formats and exit codes of the command line."""

from __future__ import annotations

import io
import json
import logging
import platform
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from sparks import taught

from cersql.cli import demo, local, output, running, versions
from cersql.cli import main as cli
from cersql.cli.completion import completions, is_complete
from cersql.cli.progress import Progress, _listed, matches
from cersql.cli.streaming import stream_argument
from cersql.language.parse import parse
from runtime import compiling, warm
from runtime.program import package_version


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
        ["run", "QUERY", "--html", "nosuch/x.html"],
        ["run", "QUERY", "--html", "/"],
        ["run", "QUERY", "--html", "QUERY"],
        ["run", "QUERY", "--html", "x.html", "--format", "csv"],
        ["run", "QUERY", "--html", "x.html", "--output", "x.csv"],
    ],
)
def test_a_command_that_is_called_wrongly_exits_with_2(
    arguments: list[str], query: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code([argument.replace("QUERY", query) for argument in arguments]) == 2
    assert "cersql" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--html", "nosuch/x.html"], "cersql: --html nosuch/x.html: there is no folder nosuch\n"),
        (["--html", "/"], "cersql: --html / is a folder\n"),
        (["--html", "x.html", "-o", "x.csv"], "writes a page in place of what --format and --output write"),
    ],
)
def test_a_page_that_cannot_be_written(
    arguments: list[str], said: str, query: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(["run", query, *arguments]) == 2
    assert said in capsys.readouterr().err


def test_a_folder_that_takes_no_page(
    query: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.access", lambda path, mode: False)
    assert exit_code(["run", query, "--html", str(tmp_path / "x.html")]) == 2
    assert f"--html {tmp_path / 'x.html'} cannot be written: Permission denied" in capsys.readouterr().err


def exit_code(arguments: list[str]) -> int:
    """Of the command, also where argparse ends it."""
    try:
        return cli.main(arguments)
    except SystemExit as ended:
        return int(ended.code or 0)


@pytest.mark.parametrize("command", ["run", "explain", "check"])
def test_a_statement_in_the_place_of_a_file(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "started", lambda *_, **__: pytest.fail("Spark is not needed to say so"))
    text = "FROM t PATTERN A a ; B b\nORDER BY ts RETURN *" + " " * 9 + "-- " + "x" * 10_000
    assert exit_code([command, text]) == 2
    shown = "".join(capsys.readouterr())
    assert "put -e before a statement itself" in shown
    assert len(shown) < 500
    assert exit_code([command, "nosuch.sql"]) == 2
    assert "-e" not in "".join(capsys.readouterr())


def test_help_names_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(["--help"])
    assert caught.value.code == 0
    shown = capsys.readouterr().out
    assert all(command in shown for command in ("demo", "run", "explain", "check", "shell", "serve"))


@contextmanager
def no_spark(name: str, *, verbose: bool, config: Any = None) -> Iterator[None]:
    yield None


def test_an_error_of_ours_is_shown_at_its_place_in_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "two.sql"
    path.write_text("-- a comment\n\nSELECT 1;\nFROM t PATTERN A a\n  WHER a.x > 1 RETURN *", encoding="utf-8")
    monkeypatch.setattr(running, "started", no_spark)
    monkeypatch.setattr(running, "execute", lambda spark, statement: parse(statement.text))
    monkeypatch.setattr(running.output, "first_rows", lambda *rest: [])
    assert cli.main(["check", "--schema", "t=x:int,type:string,ts:int", str(path)]) == 1
    shown = capsys.readouterr()
    assert f"{path}:5:3: [MISSPELT_CLAUSE] WHER is no clause of a pattern query." in shown.out + shown.err
    assert "  WHER a.x > 1 RETURN *" in shown.out + shown.err


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("PATTERN A a SEMANTIC NXT RETURN *", True),
        ("CREATE TEMPORARY PATTERN VIEW v AS FROM t PATTERN SEQ(A a, B b RETURN *", True),
        ("SELECT * FROM (FROM t PATTERN A a WITHIN 5 FORTNIGHTS RETURN *)", True),
        ("SELECT pattern, `return` FROM (pattern)", False),
        ("SELECT 1; PATTERN A a SEMANTIC NXT RETURN *", False),
    ],
)
def test_a_mistake_in_the_first_statement_needs_no_spark(
    text: str, told: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def begun(name: str, *, verbose: bool, config: Any = None) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(running, "started", begun)
    code = cli.main(["run", "-e", text])
    assert (code == 1) == told
    assert ("<text>:1:" in capsys.readouterr().err) == told


def test_warm_compiles_every_family(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []
    monkeypatch.setattr(warm, "compile_kernels", compiled.append)
    monkeypatch.setattr(warm, "compile_sums", lambda: compiled.append("sums"))
    monkeypatch.setattr(warm, "compile_beginnings", lambda: compiled.append("beginnings"))
    assert cli.main(["warm"]) == 0
    assert compiled == ["plain", "timed", "registers", "deferred", "ranged", "two stacks", "pcea", "sums", "beginnings"]
    assert len(capsys.readouterr().out.splitlines()) == len(compiled)


def test_a_demo_without_its_data_says_where_they_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cli, "started", no_spark)
    monkeypatch.setattr(demo, "FOLDER", tmp_path)
    assert cli.main(["demo"]) == 1
    assert "make demo" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", "-- nothing\n", " ;\n;"])
def test_a_file_without_statements(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "empty.sql"
    path.write_text(text)
    assert cli.main(["run", str(path)]) == 1
    assert "holds no statement" in capsys.readouterr().err


def test_a_file_that_is_no_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "latin.sql"
    path.write_bytes(b"SELECT '\xe9'")
    assert cli.main(["run", str(path)]) == 2
    assert "it is not UTF-8 (byte 9)" in capsys.readouterr().err


def test_two_results_make_no_csv(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", "-e", "SELECT 1; SELECT 2", "--format", "csv"]) == 1
    assert "has 2 statements that give rows (lines 1 and 1)" in capsys.readouterr().err
    assert cli.main(["run", "-e", "SELECT 1", "--format", "parquet"]) == 2


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("CREATE OR REPLACE TEMPORARY PATTERN VIEW w AS FROM t PATTERN A a ORDER BY ts RETURN a.ts", 0),
        ("CREATE PATTERN VIEW w AS FROM t PATTERN A a ORDER BY tz RETURN a.ts", 1),
        ("CREATE PATTERN FUNCTION f AS PATTERN A a WITHIN 5 RETURN a.ts", 0),
        ("CREATE PATTERN FUNCTION f AS PATTERN A a WITHN 5 RETURN a.ts", 1),
        ("DROP PATTERN VEW w", 1),
    ],
)
def test_definitions_are_checked_without_spark(statement: str, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["check", "--schema", "t=type:string,ts:int", "-e", statement]) == code


def test_check_without_spark(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    query = "FROM t PATTERN A a ; B b WHERE a.x < b.x ORDER BY ts WITHIN 5 RETURN a.x"
    schema = ["--schema", "t=x INT, type STRING, ts INT"]
    assert cli.main(["check", "-e", query, *schema]) == 0
    assert cli.main(["check", "-e", query.replace("a.x <", "a.y <"), *schema]) == 1
    shown = capsys.readouterr()
    assert "[UNKNOWN_COLUMN] y is not a column of a" in shown.out + shown.err


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("SELECT 1;", True),
        ("SELECT 1", False),
        ("FROM t PATTERN A a ;", False),
        ("FROM t PATTERN A a ; B b RETURN *;", True),
        ("SELECT ';", False),
        ("FROM t PATTERN A a\n", True),
        ("quit", True),
        ("", True),
    ],
)
def test_when_enter_runs_what_was_typed(text: str, complete: bool) -> None:
    assert is_complete(text) == complete


class Tables:
    def tables(self) -> list[str]:
        return ["trades", "odd name"]

    def columns(self, table: str) -> list[str]:
        return ["price", "volume"] if table == "trades" else []


@pytest.mark.parametrize(
    ("before", "word"),
    [
        ("FROM tr", "trades"),
        ("FROM trades PATTERN A a WHERE a.pr", "price"),
        ("FROM trades PATT", "PATTERN"),
        ("FROM trades PATTERN A a ORDER BY vol", "volume"),
        ("SELECT * FROM odd", "`odd name`"),
    ],
)
def test_completion(before: str, word: str) -> None:
    assert word in [found for found, _ in completions(before, "", Tables())]


# ---------------------------------------------------------------- with Spark


@pytest.fixture
def shared(spark: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The commands use the tests' session, and leave it running."""

    @contextmanager
    def started(name: str, *, verbose: bool, config: Any = None) -> Iterator[Any]:
        yield session

    session = taught(spark)
    session.conf.unset("cersql.peekRows")
    monkeypatch.setattr(running, "started", started)
    return session


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


EVENTS = "ts,type,v\n2024-01-01T00:00:00,sell,1\n2024-01-01T00:01:00,buy,2\n2024-01-01T00:02:00,sell,3\n"


@pytest.mark.breadth(6)
@pytest.mark.parametrize("format", ["csv", "json", "table"])
@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("PATTERN SELL a ; buy b", ["No row of t has the type 'SELL'. The nearest value is 'sell', in 2 of them."]),
        ("PATTERN sel a ; buy b", ["No row of t has the type 'sel'. The nearest value is 'sell', in 2 of them."]),
        ("PATTERN refund a ; buy b", ["No row of t has the type 'refund'. There are 'sell', 'buy'."]),
        ("PATTERN SEQ(sell a, !bye x, buy b)", ["has the type 'bye'. The nearest value is 'buy'"]),
        ("DEFINE Big AS v > 5 PATTERN Big a", ["No row is of the type Big: "]),
        ("PATTERN sell a ; buy b", []),
        ("DEFINE Big AS v > 2 PATTERN Big a", []),
    ],
)
def test_types_that_no_row_has_are_told_after_the_run(
    shared: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], statement: str, told: list[str], format: str
) -> None:
    (tmp_path / "t.csv").write_text(EVENTS)
    arguments = ["--table", f"t={tmp_path / 't.csv'}", "--format", format, "-q"]
    assert cli.main(["run", "-e", f"FROM t {statement} ORDER BY ts RETURN a.v", *arguments]) == 0
    lines = [line for line in capsys.readouterr().err.splitlines() if "No row" in line]
    assert len(lines) == len(told)
    assert all(fragment in line for line, fragment in zip(lines, told, strict=True))


def test_types_of_a_view_and_of_nothing(shared: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "t.csv").write_text(EVENTS)
    table = ["--table", f"t={tmp_path / 't.csv'}", "-q"]
    view = "CREATE OR REPLACE PATTERN VIEW w AS FROM t PATTERN sel a ORDER BY ts RETURN a.v"
    assert cli.main(["run", "-e", f"{view}; SELECT count(*) FROM w", *table]) == 0
    assert "<text>:1: warning: No row of t has the type 'sel'." in capsys.readouterr().err
    nothing = "FROM (SELECT * FROM t WHERE v > 9) AS q PATTERN sell a ORDER BY ts RETURN a.v"
    assert cli.main(["run", "-e", nothing, *table]) == 0
    assert "There are no rows to match." in capsys.readouterr().err


ARRIVING = """
    START PATTERN STREAM {name} AS
      FROM live PATTERN A a ; B b ORDER BY ts WITHIN 5 MINUTES WATERMARK 1 MINUTE RETURN a.v, b.v AS w
    INTO TABLE {name} CHECKPOINT '{folder}' TRIGGER AVAILABLE NOW;
    SELECT v, w FROM {name}
"""


def test_run_waits_for_a_stream(shared: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What follows reads its table, and its error is that of the statement, with the exit code of one."""
    arriving = tmp_path / "arriving"
    arriving.mkdir()
    statements = ARRIVING.format(name="arrived_cli", folder=tmp_path / "checkpoint")
    run = ["run", "-q", "-e", statements, "--format", "csv"]
    typed = ["--schema", "live=ts TIMESTAMP, type STRING, v INT"]
    assert cli.main([*run, "--stream", f"live={arriving}", *typed]) == 1
    assert f"--stream live='{arriving}/*.csv' --schema" in capsys.readouterr().err
    rows = "2024-01-01T00:00:00,A,1\n2024-01-01T00:00:01,B,2\n"
    (arriving / "a.csv").write_text(f"ts,type,v\n{rows}")
    (arriving / "no.txt").write_text("no rows\n")
    try:
        assert cli.main([*run, "--stream", f"live={arriving}/*.csv", *typed]) == 0
        assert capsys.readouterr().out == "v,w\n1,2\n"
        (arriving / "b.csv").write_text("ts,type,v\n2024-01-01T00:00:02,A,three\n")
        assert cli.main([*run, "--stream", f"live={arriving}", *typed]) == 1  # in the same table, and from that file on
        shown = capsys.readouterr().err
        assert "<text>:2: [FAILED_READ_FILE" in shown
        assert "b.csv" in shown
        assert "Logical Plan" not in shown
    finally:
        shared.sql("DROP TABLE IF EXISTS arrived_cli")


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("live", "is not NAME=FOLDER"),
        ("live=nowhere", "is no folder"),
        ("live=./*.txt", "*.parquet"),
        ("t=rate:x", "or rate"),
    ],
)
def test_streams_that_cannot_be(written: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["run", "-e", "SELECT 1", "--stream", written])
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def test_streams_by_rate() -> None:
    assert [stream_argument(f"t=rate{rows}").rate for rows in ("", ":20")] == [1, 20]


def test_a_table_with_a_header_alone(shared: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its columns have the types that --schema gives them, by name and not by place."""
    path = tmp_path / "h.csv"
    path.write_text("ts,type,v\n")
    query = ["-e", "FROM h PATTERN sell a ORDER BY ts WITHIN 5 MINUTES RETURN a.v", "-q", "--table", f"h={path}"]
    assert cli.main(["run", *query]) == 1
    shown = capsys.readouterr().err
    assert "has a header and no rows" in shown
    assert "--schema h='ts TYPE, …'" in shown
    typed = ["--schema", "h=v DOUBLE, TS TIMESTAMP", "--format", "csv"]
    assert cli.main(["run", *query, *typed]) == 0
    assert capsys.readouterr().out == "v\n"
    path.write_text("ts,type,v\n2024-01-01T00:00:00,sell,7\n")
    assert cli.main(["run", *query, *typed]) == 0
    assert capsys.readouterr().out == "v\n7.0\n"
    path.write_text("ts,type,v\n2024-01-01T00:00:00,sell,seven\n")
    assert cli.main(["run", *query, *typed]) == 1  # what is no DOUBLE is no NULL either
    assert "seven" in capsys.readouterr().err
    assert cli.main(["run", *query, "--schema", "h=tz TIMESTAMP"]) == 1
    assert f"{path} has no column tz. It has: ts, type, v." in capsys.readouterr().err
    assert cli.main(["run", "-q", "-e", "SELECT * FROM n", "--schema", "n=a INT", "--format", "csv"]) == 0
    assert capsys.readouterr().out == "a\n"
    assert cli.main(["check", *query[:2], "--table", f"h={path}", "--schema", "h=ts TIMESTAMP"]) == 0


def test_the_other_case_is_warned_of_before_the_run(
    shared: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "t.csv").write_text(EVENTS)
    query = ["-e", "FROM t PATTERN SELL a ; buy b ORDER BY ts RETURN a.v", "--table", f"t={tmp_path / 't.csv'}"]
    said = "No type in the first rows of t is 'SELL', and there is 'sell': types are compared exactly"
    for command in (["check"], ["explain", "--stage", "cel"]):
        assert cli.main([*command, *query]) == 0
        assert said in capsys.readouterr().out
    query[1] = query[1].replace("SELL", "sel")
    assert cli.main(["explain", "--stage", "cel", *query]) == 0
    assert "No row of t has the type 'sel'. The nearest value is 'sell', in 2 of them." in capsys.readouterr().out
    shared.conf.set("cersql.peekRows", "0")
    assert cli.main(["explain", "--stage", "cel", *query]) == 0
    assert said not in capsys.readouterr().out
    shared.conf.set("cersql.peekRows", "many")
    assert cli.main(["explain", *query]) == 1
    assert "[SETTING]" in capsys.readouterr().err


def test_the_line_of_progress_knows_the_matches(shared: Any) -> None:
    """While a statement runs; here, after it, there is none."""
    assert matches(shared) == ""
    shared.range(3).mapInArrow(lambda batches: batches, "id BIGINT").collect()
    shared.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    store = shared._jsparkSession.sharedState().statusStore()
    last = store.executionsList().last().executionId()
    assert _listed(store, last) == 3


def test_nested_values_are_json_in_csv(shared: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "nested.sql"
    path.write_text("SELECT array(named_struct('x', 1)) AS a, map('k', array(1)) AS m, date'2020-01-02' AS d")
    assert cli.main(["run", str(path), "--format", "csv"]) == 0
    assert capsys.readouterr().out.splitlines()[1] == '"[{""x"":1}]","{""k"":[1]}",2020-01-02'


def test_errors_of_spark_have_no_traceback(shared: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "wrong.sql"
    path.write_text("SELECT 1 AS x;\n\nSELECT * FROM nosuch")
    assert cli.main(["run", str(path)]) == 1
    shown = capsys.readouterr().err
    assert shown.startswith(f"{path}:3:15: [TABLE_OR_VIEW_NOT_FOUND]")
    assert "Traceback" not in shown
    assert "\tat " not in shown
    assert "UnresolvedRelation" not in shown


def test_a_view_of_one_statement_is_there_for_the_next(
    shared: Any, tmp_path: Path, table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = tmp_path / "views.sql", tmp_path / "out.csv"
    path.write_text(
        "CREATE OR REPLACE PATTERN VIEW pairs AS FROM t PATTERN ANY p ; ANY q ORDER BY a RETURN p.a AS p, q.a AS q;\n"
        "SELECT * FROM pairs ORDER BY p, q"
    )
    assert cli.main(["run", str(path), "--table", table, "--output", str(out)]) == 0
    assert out.read_text().splitlines() == ["p,q", "1,2", "1,3", "2,3"]
    assert cli.main(["explain", str(path), "--table", table, "--stage", "automaton"]) == 0
    assert "q0" in capsys.readouterr().out
    assert cli.main(["check", str(path), "--table", table]) == 0


def test_an_output_that_fails_leaves_the_old_one(shared: Any, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    out.write_text("old")
    assert cli.main(["run", "-e", "SELECT raise_error('no')", "--output", str(out)]) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["out.json"]
    assert out.read_text() == "old"


def test_the_shell_reads_the_standard_input(
    shared: Any, table: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = b"FROM t PATTERN ANY p : ANY q\nORDER BY a RETURN p.a AS p;\nSELECT 'two';"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert cli.main(["shell", "--table", table]) == 0
    shown = capsys.readouterr().out
    assert "(2 rows)" in shown
    assert "two" in shown


def test_py4j_is_quiet_at_the_end(caplog: pytest.LogCaptureFixture) -> None:
    """It tells the root logger of a JVM that is gone."""

    def told(path: str) -> None:
        root = logging.getLogger()
        root.handle(root.makeRecord("root", logging.ERROR, path, 1, path, (), None))

    local._quiet_py4j()
    local._quiet_py4j()  # a second session of the same process
    told("/lib/py4j/java_gateway.py")
    told("/lib/other/it.py")
    assert [record.getMessage() for record in caplog.records] == ["/lib/other/it.py"]
    logging.getLogger().removeFilter(local._is_not_py4js)


def test_version_says_what_a_report_needs(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["--version"])
    assert ended.value.code == 0
    first, python, java, packages = capsys.readouterr().out.splitlines()
    assert first == f"cersql {package_version()}"
    assert python.startswith(f"Python {platform.python_version()}, ")
    assert java.startswith("Java: ")
    assert f"pyspark {version('pyspark')}, " in packages
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    assert "Java: /nowhere/bin/java does not run" in versions.lines()


def test_the_demo_says_that_its_data_are_missing_before_spark_starts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "FOLDER", tmp_path)
    monkeypatch.setattr(cli, "started", None)
    assert cli.main(["demo"]) != 0
    assert "run `make demo` in a checkout" in capsys.readouterr().err


@pytest.mark.parametrize(("shown", "lines"), [(True, [f"cersql: {compiling.COMPILES}"]), (False, [])])
def test_a_command_says_that_it_compiles(shown: bool, lines: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Where stderr is no terminal, on which the line of progress says it; with --quiet nobody does."""
    with Progress(shown=shown):
        compiling._tell(compiling.COMPILES)
    assert " ".join(capsys.readouterr().err.split()) == " ".join(lines)
    assert compiling._tell == compiling.logger.warning


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("rnu QUERY", "There is no command rnu. Did you mean run?"),
        ("QUERY", "To run a file of statements: cersql run QUERY"),
        ("q.sql", "To run a file of statements: cersql run q.sql"),
        ("'FROM t PATTERN A RETURN *'", 'To run a text: cersql run -e "FROM t PATTERN A RETURN *"'),
        ("version", "Write cersql --version"),
        ("xyz", "There are: demo, run, "),
        ("--run QUERY", "cersql run"),
        ("run QUERY --tabel t=t.csv", "run has no option --tabel. Did you mean --table?"),
        ("run QUERY --zzzz", "It has: -h, --help, --execute"),
        ("run QUERY t=t.csv", "A table is given as --table t=t.csv"),
        ("run FROM t PATTERN A", 'A text is one argument, in quotes: cersql run -e "FROM t PATTERN A"'),
        ("shell QUERY", "Statements to begin with are given as --init QUERY"),
        ("warm QUERY", "QUERY is one argument too many."),
        ("run QUERY --format exel", "'exel' is none of table, csv, json, parquet."),
        ("explain QUERY --stage automat", "Did you mean automaton?"),
        ("run QUERY --rows ten", "cersql run --help says more."),
        ("completion", "required: shell"),
        ("", "usage: cersql"),
    ],
)
def test_a_mistyped_command_is_told_the_nearest_right_one(
    line: str, told: str, query: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(shlex.split(line.replace("QUERY", query))) == 2
    shown = capsys.readouterr()
    assert told.replace("QUERY", query) in shown.err
    assert not shown.out


def test_a_text_of_many_lines_is_printed_as_it_is() -> None:
    """EXPLAIN's, not as a cell of a table that is as wide as its longest line."""
    out = io.StringIO()
    output.print_rows(["plan"], [["== cel ==\nA / a\n  " + "x" * 200]], [], 100, Console(file=out), 0.5)
    assert out.getvalue() == "== cel ==\nA / a\n  " + "x" * 200 + "\n"
    output.print_rows(["name"], [["one"]], [], 100, Console(file=out, width=80))
    assert "name" in out.getvalue()
