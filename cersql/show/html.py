"""What a notebook shows: a pattern's automaton, matches as a table and a timeline. Plain HTML and SVG, no Spark."""

from __future__ import annotations

import datetime
import decimal
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from planner.query import END_COLUMN, START_COLUMN, Query, key_column, variable_column

_LONGEST = 200  # characters of a cell
_NARROW = 40  # the same in text
_COLORS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#8c564b", "#e377c2")
MOST_POINTS = 3_000  # of a timeline
_LABEL, _WIDTH, _ROW, _LETTER = 170, 520, 18, 7
_STROKE = 'stroke="#bbb" stroke-width="3"'
_CELL = 'style="text-align:left;vertical-align:top"'


def automaton(svg: str | None, formula: str, facts: Sequence[tuple[str, str]], details: str) -> str:
    """A pattern: its automaton (None: too large to be drawn), its formula, facts, and more to unfold."""
    told = " · ".join(f"{escape(name)}: {escape(value)}" for name, value in facts)
    picture = "<p>The automaton has too many states to be drawn here.</p>" if svg is None else svg
    return (
        f'<div style="overflow-x:auto">{picture}</div><pre>{escape(formula)}</pre><p>{told}</p>'
        f"<details><summary>all of it: formula, automaton, plan</summary><pre>{escape(details)}</pre></details>"
    )


def table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    head = "".join(f"<th {_CELL}>{escape(column)}</th>" for column in columns)
    body = "".join(f"<tr>{''.join(f'<td {_CELL}>{_cell(value)}</td>' for value in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: Any) -> str:
    if value is None:
        return '<span style="color:gray">NULL</span>'
    text = shown(value)
    return escape(text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…")


def text_table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """The same where there is no HTML, in columns of text."""
    cells = [list(columns), *([_short(value) for value in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ["  ".join(cell.ljust(n) for cell, n in zip(row, widths, strict=True)).rstrip() for row in cells]
    return "\n".join([lines[0], "  ".join("-" * n for n in widths), *lines[1:]])


def _short(value: Any) -> str:
    text = " ".join(shown(value).split())
    return text if len(text) <= _NARROW else text[: _NARROW - 1] + "…"


def shown(value: Any) -> str:
    """A value of Spark's as text."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime.datetime):
        return value.replace(tzinfo=None).isoformat(sep=" ")  # the zone is the session's, and is told once
    if isinstance(value, bytes | bytearray):
        return f"X'{value.hex().upper()}'"
    fields = _fields(value)
    if fields is not None:
        return "{" + ", ".join(f"{name}: {shown(inner)}" for name, inner in fields.items()) + "}"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{shown(key)} → {shown(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(shown, value)) + "]"
    return str(value)


def _fields(value: Any) -> dict[str, Any] | None:
    """The fields of a struct, which arrives as pyspark's Row: a tuple with names."""
    names = getattr(value, "__fields__", None)
    return None if names is None else dict(zip(names, value, strict=True))


# ---------------------------------------------------------------- times


@dataclass(frozen=True)
class Times:
    """Where the times are in a row of a result.

    `points`: (variable, index of the column, field in its struct or structs, or None where it is the time itself).
    `start`, `end`: the columns with those of the whole match.
    """

    points: tuple[tuple[str, int, str | None], ...] = ()
    start: int | None = None
    end: int | None = None


def times_of(query: Query) -> Times:
    """What the items of RETURN say: whole events, their times, match_start and match_end."""
    time = query.order_by[0].column
    texts = [output.sql.text.replace("`", "") for output in query.outputs]
    points: list[tuple[str, int, str | None]] = []
    for k, variable in enumerate(query.variables):
        for i, text in enumerate(texts):
            if text == variable_column(k) and time in query.used[k]:
                points.append((variable.name, i, time))
            elif text == f"{variable_column(k)}.{time}":
                points.append((variable.name, i, None))
    places = {text: i for i, text in reversed(list(enumerate(texts)))}
    return Times(tuple(points), places.get(START_COLUMN), places.get(END_COLUMN))


def keys_of(query: Query) -> tuple[int, ...]:
    """The columns of the result that are the PARTITION BY columns, in their order, as far as they are returned."""
    places = {output.sql.text.replace("`", ""): i for i, output in reversed(list(enumerate(query.outputs)))}
    keys = (places.get(key_column(i)) for i in range(len(query.partition_by)))
    return tuple(i for i in keys if i is not None)


def times_in(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Times:
    """What the values say, where nothing is known of the query: timestamps and dates, by the names of their columns."""
    points: list[tuple[str, int, str | None]] = []
    ends = {name: i for i, name in enumerate(columns) if name in ("match_start", "match_end")}
    for i, name in enumerate(columns):
        field = next((found for row in rows for found in _time_fields(row[i])), "")
        if field != "" and i not in ends.values():
            points.append((name, i, field))
    return Times(tuple(points), ends.get("match_start"), ends.get("match_end"))


def _time_fields(value: Any) -> Sequence[str | None]:
    """The first field of a struct that is a time, or None for a time itself; nothing if there is none."""
    if isinstance(value, datetime.date):
        return [None]
    if isinstance(value, list):
        return [field for inner in value[:1] for field in _time_fields(inner)]
    fields = _fields(value) or {}
    return [name for name, inner in fields.items() if isinstance(inner, datetime.date)][:1]


def _times(value: Any, field: str | None) -> list[Any]:
    if isinstance(value, list):
        return [time for inner in value for time in _times(inner, field)]
    fields = _fields(value)
    time = value if fields is None else fields.get(field or "")
    return [] if time is None or _number(time) is None else [time]


def _number(time: Any) -> float | None:
    """A time as seconds, days or the number that it is."""
    if isinstance(time, datetime.datetime):
        return (time if time.tzinfo else time.replace(tzinfo=datetime.UTC)).timestamp()
    if isinstance(time, datetime.date):
        return time.toordinal() * 86400.0
    if isinstance(time, int | float | decimal.Decimal) and not isinstance(time, bool) and math.isfinite(time):
        return float(time)
    return None


@dataclass(frozen=True)
class Line:
    """A match on a timeline: the times of its events by variable, as many as are drawn, and all times that bound it."""

    points: tuple[tuple[str, Any], ...]
    every: tuple[Any, ...]

    @property
    def title(self) -> str:
        return f"{shown(min(self.every, key=number_of))} – {shown(max(self.every, key=number_of))}"


def line_of(row: Sequence[Any], times: Times, n_rows: int) -> Line:
    """Of a match among `n_rows` that are drawn together, which share MOST_POINTS."""
    points = [(name, time) for name, i, field in times.points for time in _times(row[i], field)]
    ends = [time for i in (times.start, times.end) if i is not None for time in _times(row[i], None)]
    bounds = [pick((time for _, time in points), key=number_of) for pick in (min, max)] if points else []
    return Line(tuple(points[: max(2, MOST_POINTS // n_rows)]), (*bounds, *ends))


def number_of(time: Any) -> float:
    """A time of `Line` as a number: seconds where it is a date or a timestamp."""
    return _number(time) or 0.0


def colors(times: Times) -> dict[str, str]:
    """A color for each variable."""
    names = dict.fromkeys(name for name, _, _ in times.points)
    return {name: _COLORS[k % len(_COLORS)] for k, name in enumerate(names)}


def legend(color: Mapping[str, str], x: float) -> tuple[list[str], float]:
    """The variables with their colors, in a line at the top from `x` on, and where it ends."""
    parts = []
    for name in color:
        parts.append(f'<circle cx="{x:.0f}" cy="10" r="5" fill="{color[name]}"/>')
        parts.append(f'<text x="{x + 9:.0f}" y="14">{escape(name)}</text>')
        x += 30 + _LETTER * len(name)
    return parts, x


def picture(width: float, height: float, parts: Sequence[str]) -> str:
    size = f'viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="11">'
        f'<rect width="100%" height="100%" fill="white"/>{"".join(parts)}</svg>'
    )


def timeline(rows: Sequence[Sequence[Any]], times: Times) -> str:
    """A line for each match, from its first event, all on one scale; nothing where the rows hold no times."""
    lines = [line_of(row, times, len(rows)) for row in rows]
    lengths = [number_of(max(line.every, key=number_of)) - _first(line) for line in lines if line.every]
    if not lengths:
        return ""
    longest = max(lengths)
    color = colors(times)
    scale = _WIDTH / longest if longest > 0 else 0.0
    parts, width = legend(color, _LABEL)
    y = 30
    for line in lines:
        if line.every:
            first = _first(line)
            label = shown(min(line.every, key=number_of))
            parts.append(f'<text x="{_LABEL - 14}" y="{y + 4}" text-anchor="end">{escape(label)}</text>')
            end = _LABEL + (max(map(number_of, line.every)) - first) * scale
            title = f"<title>{escape(line.title)}</title>"
            parts.append(f'<line x1="{_LABEL}" y1="{y}" x2="{end:.1f}" y2="{y}" {_STROKE}>{title}</line>')
            for name, time in line.points:
                at = _LABEL + (number_of(time) - first) * scale
                title = f"<title>{escape(f'{name}: {shown(time)}')}</title>"
                parts.append(f'<circle cx="{at:.1f}" cy="{y}" r="5" fill="{color[name]}">{title}</circle>')
        y += _ROW
    temporal = isinstance(next(time for line in lines for time in line.every), datetime.date)
    reach = str(datetime.timedelta(seconds=round(longest, 6))) if temporal else f"{longest:g}"
    parts.append(f'<text x="{_LABEL + _WIDTH}" y="{y + 4}" text-anchor="end">+ {escape(reach)}</text>')
    parts.append(f'<text x="{_LABEL}" y="{y + 4}">first event</text>')
    return picture(max(_LABEL + _WIDTH + 20, width), y + 14, parts)


def _first(line: Line) -> float:
    return min(map(number_of, line.every))
