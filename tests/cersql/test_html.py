"""What a notebook shows, as HTML that a parser reads back."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from pyspark.sql import Row

import cersql
from cersql.cli import notebook
from cersql.show import html
from cersql.show.html import Times

SVG = "{http://www.w3.org/2000/svg}"
SCHEMA = {"t": "ts INT, type STRING, v DOUBLE", "u": "at TIMESTAMP, type STRING"}


def tree(text: str) -> ElementTree.Element:
    return ElementTree.fromstring(f"<div>{text}</div>")


def circles(text: str) -> list[tuple[float, str]]:
    """(x, title) of each event in a timeline; those of the legend have no title."""
    found = []
    for circle in tree(text).iter(f"{SVG}circle"):
        title = circle.find(f"{SVG}title")
        if title is not None:
            found.append((float(circle.get("cx", "")), title.text or ""))
    return found


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "NULL"),
        (True, "true"),
        ("<b> & 'c'", "<b> & 'c'"),
        (Decimal("1.50"), "1.50"),
        (bytearray(b"\x01\xff"), "X'01FF'"),
        (datetime.datetime(2024, 1, 2, 3, 4, 5), "2024-01-02 03:04:05"),
        (datetime.date(2024, 1, 2), "2024-01-02"),
        ([1, None], "[1, NULL]"),
        (Row(ts=1, type="<A>"), "{ts: 1, type: <A>}"),
        ([Row(ts=1), Row(ts=2)], "[{ts: 1}, {ts: 2}]"),
        ({"k": [1]}, "{k → [1]}"),
        ([], "[]"),
    ],
)
def test_cells(value: Any, text: str) -> None:
    shown = tree(html.table(["<i>name"], [[value]]))
    assert [node.text for node in shown.iter("th")] == ["<i>name"]
    assert ["".join(node.itertext()) for node in shown.iter("td")] == [text]


def test_a_long_cell_is_cut() -> None:
    (cell,) = tree(html.table(["c"], [["x" * 1000]])).iter("td")
    assert (cell.text or "").endswith("x…")
    assert len(cell.text or "") == 200


def test_a_table_without_rows() -> None:
    shown = tree(html.table(["a", "b"], []))
    assert [node.text for node in shown.iter("th")] == ["a", "b"]
    assert not list(shown.iter("td"))
    assert html.timeline([], Times((("a", 0, None),))) == ""


def test_a_timeline_is_on_one_scale_from_each_first_event() -> None:
    times = Times((("<a>", 0, None), ("b", 1, "ts")))
    picture = html.timeline([[10, [Row(ts=15), Row(ts=20)]], [100, [Row(ts=105)]], [None, []]], times)
    left, middle, right = html._LABEL, html._LABEL + html._WIDTH / 2, html._LABEL + html._WIDTH
    assert circles(picture) == [
        (left, "<a>: 10"), (middle, "b: 15"), (right, "b: 20"), (left, "<a>: 100"), (middle, "b: 105")
    ]  # fmt: skip
    texts = [node.text for node in tree(picture).iter(f"{SVG}text")]
    assert texts == ["<a>", "b", "10", "100", "+ 10", "first event"]


def test_a_timeline_of_one_instant_or_of_nothing() -> None:
    assert circles(html.timeline([[Row(ts=7)]], Times((("a", 0, "ts"),)))) == [(html._LABEL, "a: 7")]
    assert html.timeline([[None], ["text"]], Times((("a", 0, None),))) == ""
    assert html.timeline([[1]], Times()) == ""
    assert html.timeline([[float("nan")], [True]], Times((("a", 0, None),))) == ""


def test_times_of_what_a_query_returns() -> None:
    def times(returned: str) -> Times:
        text = f"FROM t PATTERN A a ; B+ b ORDER BY ts RETURN {returned}"
        return html.times_of(cersql.compile(text, SCHEMA).query)

    assert times("*") == Times((("a", 2, "ts"), ("b", 3, "ts")), 0, 1)
    assert times("a.v, a.ts AS x, b.ts, match_end") == Times((("a", 1, None), ("b", 2, None)), None, 3)
    assert times("a.v + 1 AS ts") == Times()


def test_times_of_what_rows_hold() -> None:
    now = datetime.datetime(2024, 1, 1)
    rows = [[1, now, None, [Row(n=1, at=now)], now], [2, None, now.date(), [], now]]
    found = html.times_in(["id", "x", "d", "b", "match_start"], rows)
    assert found == Times((("x", 1, None), ("d", 2, None), ("b", 3, "at")), 4, None)
    picture = html.timeline([[now, now + datetime.timedelta(minutes=90)]], Times((), 0, 1))
    assert "+ 1:30:00" in picture
    assert not circles(picture)


class Frame:
    """As much of a DataFrame as is looked at."""

    def __init__(self, columns: list[str], rows: list[Any]) -> None:
        self.columns, self.rows, self.runs, self.most = columns, rows, 0, 0

    def limit(self, most: int) -> Frame:
        self.most = most
        return self

    def collect(self) -> list[Any]:
        self.runs += 1
        return self.rows[: self.most]


def test_matches_run_once_and_show_the_first() -> None:
    frame = Frame(["x", "y"], [(i, i + 1) for i in range(30)])
    query = cersql.compile("FROM t PATTERN A a ; B b ORDER BY ts RETURN a.ts AS x, b.ts AS y", SCHEMA)
    matches = cersql.Matches(frame, query)  # type: ignore[arg-type]
    assert repr(matches) == "<Matches: x, y>"
    assert frame.runs == 0
    assert matches._repr_html_() == matches._repr_html_()
    assert (frame.runs, frame.most) == (1, 21)
    shown = tree(matches._repr_html_())
    assert len(list(shown.iter("td"))) == 40
    assert len(circles(matches._repr_html_())) == 40
    assert [node.text for node in shown.iter("p")] == ["the first 20 of more"]
    assert matches.df is frame  # type: ignore[comparison-overlap]
    lines = repr(matches).splitlines()
    assert lines[:3] == ["x   y", "--  --", "0   1"]
    assert (len(lines), lines[-1]) == (23, "the first 20 of more")
    assert frame.runs == 1


def test_what_a_dataframe_can_do_is_a_hint() -> None:
    matches = cersql.Matches(Frame(["x"], []))  # type: ignore[arg-type]
    with pytest.raises(AttributeError, match=r"the DataFrame is \.df, as in \.df\.groupBy"):
        matches.groupBy("x")
    assert not hasattr(matches, "_ipython_display_")


def test_a_page_is_not_begun_where_it_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = Frame(["x"], [(1,)])
    with pytest.raises(ValueError, match="rows is 0"):
        cersql.Matches(frame).save(tmp_path / "x", rows=0)  # type: ignore[arg-type]
    monkeypatch.setattr("os.access", lambda path, mode: False)
    with pytest.raises(PermissionError, match=r"x\.html"):
        cersql.Matches(frame).save(tmp_path / "x.html")  # type: ignore[arg-type]
    assert frame.runs == 0


def test_text_for_terminals() -> None:
    rows = [[None, "x\ny"], [Row(a=1), "z" * 99]]
    assert html.text_table(["one", "2"], rows).splitlines() == [
        f"one     2{'':39}".rstrip(), f"------  {'-' * 40}", "NULL    x y", f"{{a: 1}}  {'z' * 39}…"
    ]  # fmt: skip


def test_matches_that_are_none() -> None:
    query = cersql.compile("FROM t PATTERN A a ORDER BY ts RETURN a.ts AS x", SCHEMA)
    shown = cersql.Matches(Frame(["x"], []), query)._repr_html_()  # type: ignore[arg-type]
    assert "0 matches" in shown
    assert "<svg" not in shown
    assert cersql.Matches(Frame([], []))._repr_html_() == "<p>Done.</p>"  # type: ignore[arg-type]


def test_a_pattern_shows_its_automaton() -> None:
    text = "FROM t DEFINE Low AS v < 1 AND type <> '<&>' PATTERN Low+ a ; B b ORDER BY ts RETURN *"
    shown = tree(cersql.compile(text, SCHEMA)._repr_html_())
    assert len(list(shown.iter(f"{SVG}svg"))) == 1
    formula, details = ("".join(node.itertext()) for node in shown.iter("pre"))
    assert formula.startswith(";")
    assert "== automaton ==" in details
    assert "order by: ts" in "".join(next(shown.iter("p")).itertext())


def test_a_pattern_in_a_terminal() -> None:
    class Printer:
        def __init__(self) -> None:
            self.said: list[str] = []
            self.text = self.said.append

    printer, compiled = Printer(), cersql.compile("FROM t PATTERN A a ; B b ORDER BY ts RETURN *", SCHEMA)
    assert repr(compiled) == "<Compiled: 3 states, 4 transitions>"
    compiled._repr_pretty_(printer, False)
    assert printer.said == [compiled.explain()]


def test_a_pattern_with_a_window_and_one_too_large_to_draw() -> None:
    schema = {"t": "ts TIMESTAMP, type STRING"}
    shown = cersql.compile("FROM t PATTERN A ORDER BY ts WITHIN 90 MINUTES RETURN *", schema)._repr_html_()
    assert "within: 1:30:00" in shown
    shown = cersql.compile("FROM t PATTERN (A : B){40} ORDER BY ts RETURN *", schema)._repr_html_()
    assert "too many states" in shown
    assert "<svg" not in shown
    tree(shown)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("--limit x", "invalid int value"),
        ("--limit 0", "from 1 on"),
        ("a b", "unrecognized arguments: b"),
        ("not-a-name", "name of a variable"),
        ("'open", "No closing quotation"),
        ("", "no Spark session"),
    ],
)
def test_a_mistake_in_the_line_of_the_magic(line: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cersql.cli.notebook.active", lambda: None)
    with pytest.raises(notebook._Shown, match=said):
        notebook.run({}, line, "FROM t PATTERN A a ORDER BY ts RETURN *")


class Shell:
    """As much of an IPython shell as the magic uses."""

    def __init__(self) -> None:
        self.user_ns: dict[str, Any] = {"spark": Session()}
        self.magics: dict[str, Any] = {}
        self.published: list[Any] = []
        self.display_formatter = self.display_pub = self

    def register_magic_function(self, function: Any, kind: str, name: str) -> None:
        self.magics[f"{kind} {name}"] = function

    def format(self, value: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        return {"text/plain": repr(value)}, {}

    def publish(self, data: Any, metadata: Any) -> None:
        self.published.append(data["text/plain"])


class Session:
    def sql(self, text: str) -> None:
        raise AssertionError


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch) -> Shell:
    """The magic is loaded, and what a statement gives is its text."""

    def result(spark: Any, text: str, limit: int) -> cersql.Matches:
        matches = cersql.Matches(Frame(["text"], [(text.strip(),)]), limit=limit)  # type: ignore[arg-type]
        matches.fetch()
        return matches

    monkeypatch.setattr(notebook, "_result", result)
    found = Shell()
    cersql.load_ipython_extension(found)
    return found


def test_a_cell_of_several_statements(shell: Shell) -> None:
    pattern = shell.magics["line_cell pattern"]
    cell = "CREATE PATTERN VIEW v AS FROM t PATTERN A ; B ORDER BY ts RETURN *;\nSELECT 1;\nSELECT ';' FROM v;\n"
    last = pattern("found --limit 5", cell)
    assert last.fetch() == [("SELECT ';' FROM v",)]
    assert shell.user_ns["found"] is last
    assert ["SELECT 1" in text for text in shell.published] == [True]
    assert repr(last).endswith("\n1 row")


def test_a_line_is_a_statement(shell: Shell) -> None:
    pattern = shell.magics["line_cell pattern"]
    assert pattern("FROM t PATTERN A{2,} ORDER BY ts RETURN *").fetch()[0][0].startswith("FROM t PATTERN A{2,}")
    assert pattern._ipython_magic_no_var_expand  # IPython would take {2,} for Python


OPEN = ["[UNCLOSED] ' is never closed. (line 2, column 8)", "", "SELECT 'open", "       ^"]


@pytest.mark.parametrize(
    ("cell", "said"),
    [("-- nothing\n;", ["There is no statement here."]), ("SELECT 1;\nSELECT 'open", OPEN)],
)
def test_what_is_wrong_has_no_traceback(cell: str, said: list[str], shell: Shell) -> None:
    with pytest.raises((notebook._Shown, cersql.ParseError)) as caught:
        shell.magics["line_cell pattern"]("", cell)
    assert caught.value._render_traceback_() == said  # type: ignore[attr-defined]
