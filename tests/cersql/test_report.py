"""The page of what was found: read back by a parser, and looked at in a browser where there is one."""

from __future__ import annotations

import datetime
import shutil
import struct
import subprocess
import zlib
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row
from pyspark.sql.types import ArrayType, MapType, StringType, StructType, TimestampNTZType, TimestampType

import cersql
from cersql.show import html
from cersql.show.funnel import Stage, funnel
from cersql.show.html import Times
from cersql.show.lanes import MOST_LANES, lanes
from cersql.show.report import MOST_TEXT, Section, page
from cersql.statements import report
from cersql.statements.report import Found
from spark_ext.zones import in_zone, zone_of

EVIL = "</title><script>alert(1)</script>"
QUERY = f"FROM t PATTERN `{EVIL}` a ; B+ b PARTITION BY k ORDER BY ts RETURN *"
SCHEMA = {"t": "ts TIMESTAMP, type STRING, k STRING, v INT"}
NOON = datetime.datetime(2024, 1, 2, 12)


class Reader(HTMLParser):
    """The elements of a page, what they refer to, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.references: list[str] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in ("meta", "br", "rect", "circle", "line", "path", "polygon") or tag in self.open:
            self.open.append(tag)
        self.references += [value or "" for name, value in attributes if name in ("src", "href", "xlink:href", "data")]
        self.references += [name for name, _ in attributes if name.startswith("on")]

    def handle_endtag(self, tag: str) -> None:
        if self.open and self.open[-1] == tag:
            self.open.pop()

    def handle_data(self, data: str) -> None:
        self.text += data


def row(key: Any, minute: int, n: int = 2) -> list[Any]:
    """A match as RETURN * gives it, with `n` events in b."""
    times = [NOON + datetime.timedelta(minutes=minute + i) for i in range(n + 1)]
    events = [Row(ts=time, type=EVIL, k=key, v=None) for time in times]
    return [key, times[0], times[-1], events[0], events[1:]]


COLUMNS = ["k", "match_start", "match_end", "a", "b"]


def section_of(rows: list[list[Any]], total: int | None = None, more: bool = False) -> Section:
    compiled = cersql.compile(QUERY, SCHEMA)
    found = Found(COLUMNS, rows, len(rows) if total is None else total, more)
    return report.section("q.sql, line 1", QUERY, found, [compiled], whole=True)


def whole(*sections: Section) -> str:
    return page("What was found", "times are those of UTC", sections)


def test_a_page_is_one_file_that_runs_and_loads_nothing() -> None:
    text = whole(section_of([row("x", 0), row(None, 5), row(EVIL, 7)]))
    read = Reader(text)
    assert not {"script", "link", "img", "iframe", "object"} & set(read.tags)
    assert read.references == []
    assert "http" not in text.replace('xmlns="http://www.w3.org/2000/svg"', "").replace('http-equiv="', "")
    assert "@import" not in text
    assert "url(" not in text
    assert read.tags.count("title") > 1  # those of events, beside the page's
    assert EVIL in read.text
    assert read.open == []
    for said in ("3 matches.", "NULL", "When, by k", "The rows", "How far starts came", "The automaton"):
        assert said in read.text


def test_what_is_left_out_is_told() -> None:
    rows = [row("x", i) for i in range(3)]
    said = "1,003 matches; the first 3 are drawn and listed, 1,000 not."
    assert said in Reader(whole(section_of(rows, 1003))).text
    said = "more than 100,000 matches; the first 3 are drawn and listed, 99,997 and more not."
    assert said in Reader(whole(section_of(rows, 100_000, more=True))).text
    assert "1 match." in Reader(whole(section_of(rows[:1]))).text


def test_no_matches_no_times_and_no_rows() -> None:
    text = Reader(whole(section_of([]))).text
    assert "0 matches." in text
    assert "When" not in text
    query = cersql.compile(QUERY.replace("*", "k"), SCHEMA)
    found = report.section("q", None, Found(["k"], [["x"]], 1, False), [query], whole=True)
    assert "These rows hold no times." in Reader(whole(found)).text
    silent = report.section("q", "CREATE VIEW v AS SELECT 1", None, [], whole=False)
    assert "The statement gives no rows." in Reader(whole(silent)).text
    unknown = report.section("q", None, Found(["n"], [[1]], 1, False), [], whole=False)
    assert "1 row." in Reader(whole(unknown)).text
    assert "The query of this DataFrame is not known here." in Reader(whole(unknown)).text


def test_a_query_without_its_tables_has_no_funnel() -> None:
    assert "Not told of this query: it was compiled without its tables." in Reader(whole(section_of([]))).text


def test_several_patterns_in_a_statement_are_numbered() -> None:
    queries = [cersql.compile(QUERY, SCHEMA)] * 2
    text = Reader(whole(report.section("q", "SELECT", None, queries, whole=False))).text
    assert "The automaton (pattern 1 of 2)" in text
    assert "The automaton (pattern 2 of 2)" in text


@pytest.mark.exhaustive
def test_a_page_stays_small() -> None:
    rows = [row(f"key {i % 70}", i, 1000) for i in range(report.SHOWN)]
    text = whole(section_of(rows, 10_000))
    assert len(text) < 1_000_000
    rows = [row(f"key {i % 70}", i) for i in range(report.SHOWN)]
    assert len(whole(section_of(rows, 10_000))) < 250_000


def test_a_long_text_is_cut() -> None:
    text = Reader(whole(Section("q", "SELECT " + "x" * 30_000, ()))).text
    assert "x …" in text
    assert len(text) < MOST_TEXT + 1000 + len(whole())


def test_a_text_stands_without_what_is_blank_around_it() -> None:
    assert "<pre>SELECT\n  1</pre>" in whole(Section("q", "\n\n    SELECT\n      1\n\n", ()))


# ---------------------------------------------------------------- pictures


def test_lanes_are_on_one_axis_and_in_order_of_appearance() -> None:
    times = Times((("a", 1, None), ("b", 2, None)))
    picture = lanes([["x", 0, 10], ["y", 50, 100], ["x", 20, None]], times, (0,))
    assert [label for label in ("x", "y") if f'text-anchor="end">{label}<title>' in picture] == ["x", "y"]
    assert picture.count('stroke-linecap="round"') == 3
    begin, width = 200, 660
    for time in (0, 10, 20, 50, 100):
        assert f'cx="{begin + width * time / 100:.1f}"' in picture
    assert ">0</text>" in picture
    assert ">100</text>" in picture


def test_lanes_of_too_many_keys_and_of_nothing() -> None:
    times = Times((("a", 1, None),))
    picture = lanes([[i, i] for i in range(MOST_LANES + 3)], times, (0,))
    assert "3 more keys among them, not drawn." in picture
    assert lanes([], times, (0,)) == ""
    assert lanes([[1, None]], times, (0,)) == ""
    assert "<title></title>" in lanes([[1, 5]], times, ())  # one lane, of no name


def test_a_long_key_is_cut_and_two_keys_are_joined() -> None:
    picture = lanes([["k" * 40, "<b>", 5]], Times((("a", 2, None),)), (0, 1))
    assert f">{'k' * 25}…<title>{'k' * 40}, &lt;b&gt;</title>" in picture


def test_keys_are_those_that_are_returned() -> None:
    def keys(returned: str) -> tuple[int, ...]:
        text = f"FROM t PATTERN A a PARTITION BY k, v ORDER BY ts RETURN {returned}"
        return html.keys_of(cersql.compile(text, SCHEMA).query)

    assert keys("*") == (0, 1)
    assert keys("a.ts, v AS x, k") == (2, 1)
    assert keys("a.ts") == ()


def test_the_bars_of_a_funnel() -> None:
    shown = funnel([Stage("<A> a", (), 400), Stage("B b", ("b.v < a.v",), 100), Stage("C", (), 0)])
    assert [width in shown for width in ("width:100.00%", "width:25.00%", "width:0.00%")] == [True] * 3
    text = Reader(shown).text
    for said in ("<A> a", "where b.v < a.v", "25.0 %", "0.0 %", "400"):
        assert said in text
    assert "width:0.00%" in funnel([Stage("A", (), 0), Stage("B", (), 0)])


# ---------------------------------------------------------------- zones


@pytest.mark.parametrize(
    ("name", "hours"),
    [("UTC", 0), ("Z", 0), ("+02:00", 2), ("GMT+3", 3), ("UTC-05:30", -5.5), ("Asia/Tokyo", 9), ("No/Where", None)],
)
def test_the_names_of_zones(name: str, hours: float | None) -> None:
    zone = zone_of(name)
    assert (zone.utcoffset(NOON) if zone else None) == (None if hours is None else datetime.timedelta(hours=hours))


def test_times_are_those_of_the_zone_wherever_they_stand() -> None:
    instant = datetime.datetime(2024, 1, 2, 12, tzinfo=datetime.UTC)
    local = instant.astimezone().replace(tzinfo=None)  # as collect gives it
    inner = StructType().add("t", TimestampType()).add("s", StringType())
    types = [TimestampType(), TimestampNTZType(), inner, ArrayType(inner), MapType(StringType(), TimestampType())]
    schema = StructType()
    for i, type in enumerate(types):
        schema.add(f"c{i}", type)
    event = Row(t=local, s="x")
    rows = in_zone([[local, NOON, event, [event, None], {"k": local}], [None] * 5], schema, zone_of("Asia/Tokyo"))  # type: ignore[arg-type]
    at = "2024-01-02 21:00:00"
    expected = [at, str(NOON), f"{{t: {at}, s: x}}", f"[{{t: {at}, s: x}}, NULL]", f"{{k → {at}}}"]
    assert [html.shown(value) for value in rows[0]] == expected
    assert rows[1] == [None] * 5


# ---------------------------------------------------------------- in a browser


def browser() -> str:
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        pytest.skip("there is no Chromium")
    return found


def pixels(png: bytes) -> dict[bytes, int]:
    """How often each color is in a picture of 8 bits a channel, as browsers write them."""
    at, data, width, channels = 8, b"", 0, 0
    while at < len(png):
        length, kind = struct.unpack(">I4s", png[at : at + 8])
        body = png[at + 8 : at + 8 + length]
        if kind == b"IHDR":
            width, _, depth, color = struct.unpack(">IIBB", body[:10])
            channels = {2: 3, 6: 4}[color]
            assert depth == 8
        data += body if kind == b"IDAT" else b""
        at += length + 12
    raw, stride = zlib.decompress(data), width * channels
    before, found = bytearray(stride), dict[bytes, int]()
    for start in range(0, len(raw), stride + 1):
        rule, line = raw[start], bytearray(raw[start + 1 : start + 1 + stride])
        for i in range(stride if rule else 0):
            left, up = line[i - channels] if i >= channels else 0, before[i]
            corner = before[i - channels] if i >= channels else 0
            guess = left + up - corner
            near = min((abs(guess - left), 0, left), (abs(guess - up), 1, up), (abs(guess - corner), 2, corner))[2]
            line[i] = (line[i] + (0, left, up, (left + up) // 2, near)[rule]) % 256
        before = line
        for i in range(0, stride, channels):
            color = bytes(line[i : i + 3])
            found[color] = found.get(color, 0) + 1
    return found


@pytest.mark.breadth(1)
@pytest.mark.slow
@pytest.mark.parametrize(("scheme", "paper"), [(1, "ffffff"), (0, "16191d")], ids=["light", "dark"])
def test_a_browser_shows_it(scheme: int, paper: str, tmp_path: Path) -> None:
    program = browser()
    section = section_of([row("x", 0), row(None, 5), row(EVIL, 7)])
    stages = funnel([Stage("A a", (), 40), Stage("B b", (), 10)])
    (tmp_path / "page.html").write_text(whole(section).replace("<h3>The automaton", f"{stages}<h3>The automaton"))
    options = [
        "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={tmp_path / 'own'}",
        f"--blink-settings=preferredColorScheme={scheme}", "--window-size=900,1100", "--enable-logging=stderr",
        f"--screenshot={tmp_path / 'shot.png'}",
    ]  # fmt: skip
    done = subprocess.run(
        [program, *options, (tmp_path / "page.html").as_uri()], capture_output=True, timeout=240, check=False
    )
    assert (tmp_path / "shot.png").exists(), done.stderr.decode()
    assert b"CONSOLE" not in done.stderr  # nothing was blocked or failed
    seen = pixels((tmp_path / "shot.png").read_bytes())
    assert max(seen, key=seen.__getitem__).hex() == paper
    bar = "1f77b4" if scheme else "4a9fdc"
    drawn = ["1f77b4", "d62728", bar]  # the events of a, those of b, and the funnel
    assert all(seen.get(bytes.fromhex(color), 0) > 20 for color in drawn)
