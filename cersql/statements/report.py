"""What a report shows of a result and of its pattern: matches on timelines, as a table, the funnel, the automaton."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

from cersql.errors import BindError
from cersql.show import html
from cersql.show.funnel import funnel as bars
from cersql.show.lanes import lanes
from cersql.show.report import Part, Section, page
from cersql.statements.funnel import funnel
from cersql.statements.planned import Compiled, Planned
from runtime.program import package_version

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SHOWN = 100  # matches that are drawn and listed
MOST_COUNTED = 100_000  # of a result whose rows must be made to be counted

_STARTS = (
    "A start is an event that begins at least one match of a prefix of the pattern within the window, however many it "
    "begins. A condition joins at the first step that has all its variables; {rest}"
)
_CHOOSING = "SEMANTICS, CONSUME BY, AFTER MATCH SKIP, HAVING and LIMIT choose among matches and do not count here."


class Found(NamedTuple):
    """The first rows of a result, and how many there are: exactly, or (`more`) more than that."""

    columns: list[str]
    rows: list[list[Any]]
    total: int
    more: bool


def found(df: DataFrame, planned: Planned | None, rows: int) -> Found:
    """The first `rows` of a result, times in the session's zone. Runs the query once, and once more to count its rows
    where there are others."""
    from spark_ext.zones import in_zone, zone_of

    if df.isStreaming:
        raise BindError("STREAM_REPORT", hint="Save what the stream has written: Matches(spark.table(…)).")
    first = [list(row) for row in df.limit(rows + 1).collect()]
    shown = in_zone(first[:rows], df.schema, zone_of(zone(df.sparkSession)) or _utc())
    if len(first) <= rows:
        return Found(df.columns, shown, len(first), False)
    counted = None if planned is None else planned.count()
    if counted is not None:
        return Found(df.columns, shown, counted.collect()[0][0], False)
    total = df.limit(MOST_COUNTED + 1).count()
    return Found(df.columns, shown, min(total, MOST_COUNTED), total > MOST_COUNTED)


def zone(spark: SparkSession) -> str:
    """The session's time zone, as it is set; UTC where Python does not know it."""
    from spark_ext.zones import zone_of

    name = str(spark.conf.get("spark.sql.session.timeZone"))
    return name if zone_of(name) is not None else "UTC"


def _utc() -> Any:
    from spark_ext.zones import zone_of

    return zone_of("UTC")


def result_parts(of: Found, compiled: Compiled | None) -> list[Part]:
    """Timelines and the table. Without the query, timestamps and dates are taken for times, and there are no keys."""
    times = html.times_in(of.columns, of.rows) if compiled is None else html.times_of(compiled.query)
    keys = () if compiled is None else html.keys_of(compiled.query)
    what = _plural(of.total, "match", "es") if compiled is not None else _plural(of.total, "row", "s")
    count = f"{'more than ' if of.more else ''}{what}"
    left_out = of.total - len(of.rows)
    if left_out:
        count += f"; the first {len(of.rows):,} are drawn and listed, {left_out:,}{' and more' if of.more else ''} not"
    parts = [Part("Found", f"<p>{count}.</p>")]
    pictures = lanes(of.rows, times, keys)
    if pictures:
        named = ", ".join(of.columns[i] for i in keys)
        parts.append(Part(f"When, by {named}" if named else "When", pictures))
        parts.append(Part("How long, each match from its first event", html.timeline(of.rows, times)))
    elif of.rows:
        hint = "RETURN whole events, their times, match_start or match_end, to see them on a timeline."
        parts.append(Part("When", f'<p class="told">These rows hold no times. {hint}</p>'))
    table = html.table(of.columns, of.rows)
    return [*parts, Part("The rows", table, folded=bool(pictures))]


def pattern_parts(of: Planned | Compiled) -> list[Part]:
    """How far starts came, and the automaton. Of a query that knows no tables there is the automaton alone."""
    compiled = of.compiled if isinstance(of, Planned) else of
    stages = funnel(of) if isinstance(of, Planned) else "it was compiled without its tables"
    if isinstance(stages, str):
        told = f'<p class="told">Not told of this query: {escape(stages)}.</p>'
    else:
        rest = f"what names none, at the last. {_CHOOSING}"
        told = f'{bars(stages)}<p class="told">{escape(_STARTS.format(rest=rest))}</p>'
    return [Part("How far starts came", told), Part("The automaton", compiled._repr_html_())]


def written(spark: SparkSession, title: str, sections: Sequence[Section]) -> str:
    """The page of a session's results."""
    text = page(title, f"cersql {package_version()} · times are those of {zone(spark)}", sections)
    return text.encode("utf-8", "replace").decode("utf-8")  # half of a character has no form in a file


def section(
    title: str, text: str | None, of: Found | None, patterns: Sequence[Planned | Compiled], whole: bool
) -> Section:
    """A statement: what it found (None: it gives no rows), and each pattern in it. `whole`: the result is that of its
    only pattern."""
    parts = [Part("Found", "<p>The statement gives no rows.</p>")]
    if of is not None:
        first = patterns[0] if whole else None
        parts = result_parts(of, first.compiled if isinstance(first, Planned) else first)
    for k, pattern in enumerate(patterns, 1):
        number = f" (pattern {k} of {len(patterns)})" if len(patterns) > 1 else ""
        parts += [replace(part, heading=f"{part.heading}{number}") for part in pattern_parts(pattern)]
    if not patterns and text is None:
        told = "The query of this DataFrame is not known here. Give its text, Matches(df, text), to see its pattern."
        parts.append(Part("The pattern", f'<p class="told">{escape(told)}</p>'))
    return Section(title, text, tuple(parts))


def _plural(n: int, what: str, ending: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else ending}"
